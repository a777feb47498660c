"""The embedder's own process may die; nobody waits for ever, and it does not outlive its parent."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from clients.embeddings.local import USE_MULTILINGUAL, BatchSize, LocalEmbedder
from domain.errors import EmbedderUnavailableError

pytestmark = pytest.mark.anyio

# A child that speaks the frames, answers slowly, and notes how many texts came in each.
FAKE = """
import json, struct, sys, time
log = open(sys.argv[1], "a")
out = sys.stdout.buffer
out.write(struct.pack("<I", 0)); out.flush()
while head := sys.stdin.buffer.read(4):
    texts = json.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
    print(len(texts), file=log, flush=True)
    if "die" in texts: sys.exit(1)
    if "hang" in texts: time.sleep(60)
    time.sleep(0.05)
    body = b"".join(bytes([len(text) % 50]) * 1024 for text in texts)
    out.write(struct.pack("<I", len(body)) + body); out.flush()
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "batches"


@pytest.fixture
def command(tmp_path: Path, log: Path) -> tuple[str, ...]:
    script = tmp_path / "child.py"
    script.write_text(FAKE)
    return (sys.executable, str(script), str(log))


@pytest.fixture
async def embedder(command: tuple[str, ...]) -> AsyncGenerator[LocalEmbedder]:
    built = LocalEmbedder(command=command, batch=BatchSize(piece=8), answer_seconds=20)
    await built.start()
    yield built
    await built.aclose()


def batches(log: Path) -> list[int]:
    return [int(line) for line in log.read_text().split()]


async def test_what_arrives_meanwhile_goes_together_two_jobs_at_a_time(
    embedder: LocalEmbedder, log: Path
) -> None:
    await asyncio.gather(*(embedder.embed(["a"] * 5) for _ in range(6)))

    assert sum(batches(log)) == 30
    assert set(batches(log)) <= {5, 10}


async def test_a_standing_backlog_goes_in_larger_batches(embedder: LocalEmbedder, log: Path) -> None:
    await asyncio.gather(*(embedder.embed(["a"]) for _ in range(40)))

    assert max(batches(log)) == 16


async def test_a_job_of_many_texts_does_not_hold_up_the_others(embedder: LocalEmbedder, log: Path) -> None:
    many, one = await asyncio.gather(embedder.embed(["a"] * 30), embedder.embed(["bb"]))

    assert (len(many), len(one)) == (30, 1)
    assert max(batches(log)) <= 10
    assert one[0] == bytes([2]) * 1024


async def test_a_child_that_dies_fails_what_was_in_flight_and_comes_back(embedder: LocalEmbedder) -> None:
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["die"])

    assert len(await embedder.embed(["alive"])) == 1


async def test_a_child_that_hangs_is_ended_and_replaced(command: tuple[str, ...]) -> None:
    embedder = LocalEmbedder(command=command, answer_seconds=1)
    await embedder.start()
    before = embedder.child_pid
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["hang"])

    assert len(await embedder.embed(["alive"])) == 1
    assert embedder.child_pid != before
    await embedder.aclose()


async def test_who_gives_up_does_not_mix_up_the_answers_of_others(embedder: LocalEmbedder) -> None:
    first = asyncio.ensure_future(embedder.embed(["a"]))
    second = asyncio.ensure_future(embedder.embed(["bb"]))
    third = asyncio.ensure_future(embedder.embed(["ccc"]))
    await asyncio.sleep(0.01)
    first.cancel()
    second.cancel()

    assert (await third)[0] == bytes([3]) * 1024


async def test_who_waits_at_the_end_is_told(embedder: LocalEmbedder) -> None:
    waiting = [asyncio.ensure_future(embedder.embed(["a"] * 5)) for _ in range(8)]
    await asyncio.sleep(0.01)
    await embedder.aclose()

    results = await asyncio.gather(*waiting, return_exceptions=True)

    assert any(isinstance(result, EmbedderUnavailableError) for result in results)
    with pytest.raises(EmbedderUnavailableError):
        await embedder.embed(["a"])


async def test_a_child_that_cannot_start_is_an_outage() -> None:
    missing = LocalEmbedder(command=("/nonexistent/python",))
    failing = LocalEmbedder(command=(sys.executable, "-c", "raise SystemExit(3)"))

    for embedder in (missing, failing):
        with pytest.raises(EmbedderUnavailableError):
            await embedder.start()
        await embedder.aclose()


PARENT = """
import asyncio, sys
from clients.embeddings.local import LocalEmbedder
async def main():
    embedder = LocalEmbedder()
    await embedder.start()
    print(embedder.child_pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_the_child_dies_with_its_parent() -> None:
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = psutil.Process(int(await parent.stdout.readline()))

    os.kill(parent.pid, signal.SIGKILL)
    await parent.communicate()

    await asyncio.to_thread(child.wait, 20)
    assert not child.is_running()


def test_the_model_of_the_default_is_named() -> None:
    assert LocalEmbedder().info == USE_MULTILINGUAL
