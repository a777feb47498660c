"""The example of the README does what the README says, word for word."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.service import RunningService

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

ROOT: Final = Path(__file__).resolve().parents[2]
_EXAMPLE: Final = re.compile(
    r"^<!-- example: client -->\n```python\n(?P<code>.*?)^```\n\n```text\n(?P<output>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_MOST_LINES: Final = 40


def example() -> re.Match[str]:
    found = _EXAMPLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert found, "the README has no example with its output"
    return found


def test_the_example_is_short_enough_to_be_read() -> None:
    assert len(example()["code"].splitlines()) < _MOST_LINES


async def test_the_example_of_the_readme_prints_what_the_readme_shows(afterword: RunningService) -> None:
    found = example()

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        "-c",
        found["code"],
        cwd=ROOT,
        env={"AFTERWORD_KAFKA": afterword.kafka, "AFTERWORD_TOPIC_PREFIX": afterword.topics.prefix},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        output, errors = await process.communicate()

    assert process.returncode == 0, errors.decode()
    assert output.decode().split() == found["output"].split()
