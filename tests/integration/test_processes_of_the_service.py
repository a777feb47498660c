"""The service's own processes: how many there are, and that none outlives the first."""

import asyncio
from pathlib import Path

import psutil
import pytest

from tests.support.kafka import KafkaServer
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def test_killing_the_service_ends_its_responder_and_its_embedder(
    kafka: KafkaServer, database_url: str, topic_prefix: str, tmp_path: Path
) -> None:
    service = RunningService(tmp_path, kafka=kafka, database_url=database_url, topic_prefix=topic_prefix)
    try:
        await service.start()
        children = psutil.Process(service.pid).children(recursive=True)
        told = {" ".join(child.cmdline()) for child in children}

        psutil.Process(service.pid).kill()
        async with asyncio.timeout(20):
            while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
                await asyncio.sleep(0.05)

        assert any("--roles responder" in line for line in told)
        assert any("clients.embeddings.child" in line for line in told)
    finally:
        service.clear()
