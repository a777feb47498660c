"""Chats out of files, by the command: remembered with their own times, once."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.e2e.conftest import Engine
from tests.support.publishing import until
from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ROOT: Final = Path(__file__).resolve().parents[2]
CHAT: Final = (
    "31.12.24, 09:15 - Ana: Hola! I live in Bergen.\n"
    "31.12.24, 09:16 - Jo: I live in Porto.\n"
    "02.01.25, 10:00 - Jo: I work as a nurse.\n"
)


async def ingest(service: RunningService, *arguments: str, code: int = 0) -> list[Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        "ingest",
        *arguments,
        "--json",
        cwd=ROOT,
        env={"AFTERWORD_KAFKA": service.kafka, "AFTERWORD_TOPIC_PREFIX": service.topics.prefix},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        output, errors = await process.communicate()
    assert process.returncode == code, errors.decode()
    return [json.loads(line) for line in output.splitlines()]


async def test_a_chat_of_two_people_becomes_the_memory_of_the_one_who_is_named(
    afterword: RunningService, engine: Engine, tmp_path: Path
) -> None:
    user = f"customer-{uuid4().hex[:8]}"
    path = tmp_path / "WhatsApp Chat with Ana.txt"
    path.write_text(CHAT)
    command = (str(path), "--user", user, "--user-speaker", "Jo", "--timezone", "Europe/Lisbon")

    report, done = await ingest(afterword, *command)

    async def remembered() -> bool:
        return {"Porto", "nurse"} <= set((await engine.values(user=user)).values())

    await until(remembered, within=30, what="the chat to be remembered", every=0.2)
    page = await engine.client.facts(user=user)
    assert (report["format"], report["conversations"], done["published"]) == ("whatsapp", 2, 2)
    assert "Bergen" not in (await engine.values(user=user)).values()
    said = {fact.fact_value: fact.last_said_at.date().isoformat() for fact in page.items}
    assert (said["Porto"], said["nurse"]) == ("2024-12-31", "2025-01-02")

    await ingest(afterword, *command)
    await engine.settled()
    again = await engine.client.facts(user=user)
    assert [(one.fact_id, one.revision) for one in again.items] == [
        (one.fact_id, one.revision) for one in page.items
    ]


async def test_whose_side_is_the_users_is_asked_for(afterword: RunningService, tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(CHAT)

    assert await ingest(afterword, str(path), "--user", "u", code=2) == []
    assert await ingest(afterword, str(path), code=2) == []
