"""The commands of ``afterword``, put together."""

from collections.abc import Callable, Sequence
from typing import Final

import typer

from service.cli import dead_letters, generations, ingest, memory, replay, serving, upkeep

app = typer.Typer(
    name="afterword",
    help="Long-term memory that is written after a conversation ends.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

_COMMANDS: Final[Sequence[Callable[..., None]]] = (
    serving.demo,
    serving.up,
    serving.run,
    ingest.ingest,
    memory.inject,
    memory.search,
    memory.facts,
    memory.jobs,
    generations.diff,
    generations.promote,
    upkeep.migrate,
    upkeep.topics,
    upkeep.doctor,
)
for command in _COMMANDS:
    app.command()(command)
app.add_typer(dead_letters.app, name="dlq")
app.add_typer(replay.app, name="replay")
