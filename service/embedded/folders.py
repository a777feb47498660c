"""Folders that one process holds at a time, and temporary ones that leave nothing behind."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from service.embedded.children import unprivileged_owner
from service.embedded.errors import EmbeddedError, FolderInUseError
from service.embedded.orphans import stop_orphan

DEMO_PREFIX: Final = "afterword-demo-"
_OWNER_FILE: Final = "owner"
_STACK: Final = "stack"
_UNFINISHED_S: Final = 60.0


def prepare(folder: Path) -> None:
    """Create ``folder``; under root let the unprivileged user of the children pass through it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if unprivileged_owner() is None:
        return
    folder.chmod(0o711)
    for parent in folder.resolve().parents:
        if not parent.stat().st_mode & 0o001:
            raise EmbeddedError(
                f"{folder} cannot be reached by the unprivileged user that PostgreSQL runs as under root "
                f"({parent} is closed to others): choose a folder such as /var/lib/afterword"
            )


@contextmanager
def held(folder: Path, name: str = "lock") -> Generator[None]:
    """Hold ``folder`` for this process alone; the lock ends with the process, however it ends."""
    path = folder / name
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            holder = path.read_text().strip() or "another one"
            raise FolderInUseError(f"{folder} is in use by process {holder}; stop it first") from exc
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def temporary_folder(prefix: str = DEMO_PREFIX) -> Generator[Path]:
    """Give the path of a stack folder that is removed at the end, or by `clear_stale` after a kill -9."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        if unprivileged_owner() is not None:
            folder.chmod(0o711)
        with held(folder, _OWNER_FILE):
            yield folder / _STACK
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def clear_stale(prefix: str = DEMO_PREFIX) -> None:
    """Stop and remove what temporary stacks of this user left whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_stale(folder):
            await stop_orphan(folder / _STACK / "data")
            shutil.rmtree(folder, ignore_errors=True)


def _is_stale(folder: Path) -> bool:
    try:
        status = folder.lstat()
        if folder.is_symlink() or not folder.is_dir() or status.st_uid != os.geteuid():
            return False
        if not (folder / _OWNER_FILE).exists():
            # The process that made it may be about to take it.
            return time.time() - status.st_mtime > _UNFINISHED_S
        with held(folder, _OWNER_FILE):
            return True
    except (FolderInUseError, FileNotFoundError):
        return False
