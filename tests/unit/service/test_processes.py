"""Processes of our own: heard for as long as they live, and never left behind."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from service.processes import ProcessFailedError, ServiceProcess

pytestmark = pytest.mark.anyio

TALKS = """
import sys
print("hello"); print("ready", flush=True)
sys.stdout.write("x" * 1_000_000); sys.stdout.flush()
sys.stdout.close()
sys.stdin.read()
"""
IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


@asynccontextmanager
async def process(script: str) -> AsyncGenerator[ServiceProcess]:
    started = await ServiceProcess.of(
        (sys.executable, "-c", script), name="test", environment={"PATH": "/usr/bin:/bin"}
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            os.kill(started.pid, signal.SIGKILL)
        await started.stop(within=5)


async def test_what_a_process_writes_after_it_is_ready_does_not_hold_it_up() -> None:
    async with process(TALKS.replace("sys.stdin.read()", "")) as talking, asyncio.timeout(20):
        await talking.ready(within=10)

        assert await talking.wait() == 0


async def test_a_process_that_ends_before_it_is_ready_is_told_with_its_code() -> None:
    async with process("raise SystemExit(3)") as ending:
        with pytest.raises(ProcessFailedError, match="ended with code 3"):
            await ending.ready(within=10)


async def test_a_process_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async with process("import sys; print('read'); sys.stdin.read()") as silent:
        with pytest.raises(ProcessFailedError, match="did not serve within"):
            await silent.ready(within=0.5)


async def test_a_process_that_does_not_stop_in_time_is_killed() -> None:
    async with process(IGNORES) as stubborn, asyncio.timeout(20):
        await stubborn.ready(within=10)

        assert await stubborn.stop(within=0.2) == -signal.SIGKILL


async def test_a_stop_that_is_cut_off_leaves_no_process_behind() -> None:
    async with process(IGNORES) as stubborn, asyncio.timeout(20):
        await stubborn.ready(within=10)

        stopping = asyncio.create_task(stubborn.stop(within=60))
        await asyncio.sleep(0.1)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)

        assert await stubborn.wait() == -signal.SIGKILL
