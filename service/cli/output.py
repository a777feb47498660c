"""How commands talk: tables for people, JSON lines for machines, progress on standard error."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines, one object a line.")]


def out() -> Console:
    """Return a console on standard output."""
    return Console(highlight=False, soft_wrap=False)


def err() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON object on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, nothing: str) -> None:
    """Print a table, or ``nothing`` when there are no rows; cells are text, never markup."""
    table = Table(*columns, box=None, padding=(0, 2, 0, 0), header_style="bold")
    count = 0
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
        count += 1
    out().print(table if count else Text(nothing))
