"""The options of `afterword replay`: what is wrong is named, before anything is begun."""

import pytest
from typer.testing import CliRunner

from service.cli.commands import app

ENVIRONMENT = {"COLUMNS": "200", "TERM": "dumb", "AFTERWORD_KAFKA": "127.0.0.1:1"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("start", "--mode", "redo"), "--mode"),
        (("start", "--from-offset", "1"), "--from-offset"),
        (("start", "--from", "yesterday"), "--from"),
        (("start", "--to", "soon"), "--to"),
        (("start", "--id", "Live!"), "--id"),
        (("start", "--id", "live"), "--id"),
        (("start", "--user", "ana"), "--user"),
        (("start", "--rate", "-1"), "--rate"),
        (("start", "--topic", "t", "--user", "00000000-0000-0000-0000-000000000001"), "--user"),
        (("resume", "r", "--ahead", "0"), "--ahead"),
        (("discard", "r"), "--yes"),
    ],
)
def test_a_wrong_option_is_named(arguments: tuple[str, ...], named: str) -> None:
    shown = CliRunner(env=ENVIRONMENT).invoke(app, ("replay", *arguments))

    assert shown.exit_code == 2
    assert named in shown.output


@pytest.mark.parametrize("name", ["start", "list", "pause", "resume", "discard"])
def test_each_command_shows_an_example(name: str) -> None:
    shown = CliRunner(env=ENVIRONMENT).invoke(app, ("replay", name, "--help"))

    assert f"afterword replay {name}" in shown.output
