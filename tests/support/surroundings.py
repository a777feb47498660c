"""What the machine offers to the tests: chosen servers, Docker, Java, corpora."""

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The environment of a test run, read once."""

    kafka: str | None
    database_url: str | None
    corpora: Path
    cache: Path


def read_surroundings() -> Surroundings:
    """Read the variables that steer the tests."""
    environment = os.environ  # noqa: TID251
    cache = environment.get("XDG_CACHE_HOME")
    corpora = environment.get("AFTERWORD_CORPORA")
    return Surroundings(
        kafka=environment.get("AFTERWORD_TEST_KAFKA"),
        database_url=environment.get("AFTERWORD_TEST_DATABASE_URL"),
        corpora=Path(corpora).expanduser() if corpora else ROOT.parent / "shared",
        cache=Path(cache) if cache else Path.home() / ".cache",
    )


def pause(seconds: float) -> None:
    """Wait between two looks at a server, outside of any event loop."""
    time.sleep(seconds)  # noqa: TID251


def docker_answers() -> bool:
    """Return whether a Docker engine is there, not just its client."""
    return _runs("docker", "version", "--format", "{{.Server.Version}}")


def java_works() -> bool:
    """Return whether a Java machine starts."""
    return _runs("java", "-version")


def maven_works() -> bool:
    """Return whether Maven starts."""
    return _runs("mvn", "-v")


def _runs(program: str, *arguments: str) -> bool:
    path = shutil.which(program)
    if path is None:
        return False
    try:
        return (
            subprocess.run([path, *arguments], capture_output=True, timeout=20, check=False).returncode == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
