"""A start that has to wait, and how it is broken off."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from service.embedded.children import free_port

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


async def start(*arguments: str, **environment: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "service",
        "run",
        *arguments,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


def nothing_there() -> dict[str, str]:
    return {
        "AFTERWORD_KAFKA": f"127.0.0.1:{free_port()}",
        "AFTERWORD_DATABASE_URL": f"postgresql://lis@127.0.0.1:{free_port()}/lis",
    }


async def waits_for(what: bytes, process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    lines: list[bytes] = []
    async with asyncio.timeout(20):
        while not lines or what not in lines[-1]:
            lines.append(await process.stderr.readline())
            assert lines[-1], lines


@pytest.mark.parametrize(
    ("environment", "what"),
    [({}, b"waiting for the database"), ({"ENABLE_DB_ON_STARTUP": "false"}, b"waiting for the broker")],
)
async def test_what_is_not_there_yet_is_waited_for_and_sigterm_ends_the_wait_at_once(
    environment: dict[str, str], what: bytes
) -> None:
    process = await start(**nothing_there(), **environment)
    await waits_for(what, process)

    process.send_signal(signal.SIGTERM)
    asked = time.monotonic()
    async with asyncio.timeout(20):
        output, _ = await process.communicate()

    assert process.returncode == 0
    assert output == b""
    assert time.monotonic() - asked < 8


async def test_http_says_what_is_waited_for_before_anything_is_there() -> None:
    port = free_port()
    process = await start(**nothing_there(), MEMORY_PORT=str(port), MEMORY_LLM_TIMEOUT_SEC="5")
    await waits_for(b"waiting for the database", process)

    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        health = await client.get("/health")
        async with asyncio.timeout(20):
            while (ready := await client.get("/ready")).json()["components"]["broker"][
                "detail"
            ] == "starting":
                await asyncio.sleep(0.1)
        metrics = (await client.get("/metrics")).text
        facts = await client.get("/api_lis/memory", params={"user_id": str(uuid4())})
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        await process.communicate()

    assert health.json() == {"service": "memory_service", "status": "ok"}
    assert ready.status_code == 503
    away = {"ready": False, "detail": "does not answer"}
    assert {name: ready.json()["components"][name] for name in ("database", "broker")} == {
        "database": away,
        "broker": away,
    }
    assert 'memory_awaited{what="database"} 1.0' in metrics
    assert facts.status_code == 503
    assert facts.json()["error"]["code"] == "storage_unavailable"
    assert facts.json()["error"]["retryable"] is True
    assert process.returncode == 0


async def test_a_process_bound_to_its_standard_input_ends_with_it_also_while_it_waits() -> None:
    process = await start("--bound-to-stdin", **nothing_there())
    await waits_for(b"waiting for the database", process)

    assert process.stdin is not None
    process.stdin.close()
    async with asyncio.timeout(20):
        await process.communicate()

    assert process.returncode == 0


async def test_a_start_that_is_refused_is_told_in_one_line() -> None:
    process = await start()

    async with asyncio.timeout(20):
        _, errors = await process.communicate()

    assert process.returncode == 1
    (line,) = errors.decode().splitlines()
    assert line.startswith("afterword: AFTERWORD_KAFKA is not set; ")


@pytest.mark.parametrize("roles", ["", "http"])
async def test_the_pools_of_the_roles_are_waited_for_too(roles: str) -> None:
    settings = {**nothing_there(), "ENABLE_DB_ON_STARTUP": "false", "AFTERWORD_CREATE_TOPICS": "false"}
    process = await start("--roles", roles, **settings, MEMORY_PORT="0")
    await waits_for(b"waiting for the database", process)

    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(20):
        await process.communicate()

    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
