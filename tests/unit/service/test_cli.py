import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def afterword(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_a_command_the_commands_are_listed_with_their_purpose() -> None:
    shown = afterword("--help")

    assert shown.returncode == 0
    for command in (
        "demo",
        "up",
        "run",
        "migrate",
        "topics",
        "ingest",
        "inject",
        "search",
        "facts",
        "jobs",
        "dlq",
        "doctor",
    ):
        assert command in shown.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("runn",),
        ("dlq", "purge"),
        ("dlq", "list", "--since", "x"),
        ("run", "--roles", "intakes"),
        ("inject",),
        ("jobs",),
    ],
)
def test_a_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    assert afterword(*arguments).returncode == 2


def test_a_setting_with_a_wrong_value_stops_the_start_with_one_line_that_names_it() -> None:
    shown = afterword("run", MEMORY_PORT="eighty")

    assert shown.returncode == 1
    assert shown.stdout == ""
    assert len(shown.stderr.strip().splitlines()) == 1
    assert "MEMORY_PORT" in shown.stderr
    assert "eighty" not in shown.stderr


def test_what_is_not_set_is_named() -> None:
    shown = afterword("topics")

    assert shown.returncode == 1
    assert "AFTERWORD_KAFKA is not set" in shown.stderr


@pytest.mark.parametrize("command", [("diff", "r"), ("promote", "r"), ("replay", "discard", "r", "--yes")])
def test_what_folds_by_a_command_folds_by_the_operators_own_types(command: tuple[str, ...]) -> None:
    shown = afterword(
        *command, MEMORY_TYPES_FILE="/nowhere/types.toml", AFTERWORD_DATABASE_URL="postgresql://127.0.0.1:1/x"
    )

    assert shown.returncode == 1
    assert "MEMORY_TYPES_FILE: /nowhere/types.toml" in shown.stderr
