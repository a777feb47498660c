"""The command line: ``afterword``."""

import sys

from rich.console import Console

from domain.errors import AfterwordError
from producers.client_errors import MemoryClientError
from service.cli.commands import app

FAILED = 1


def main() -> None:
    """Run a command; end with 0 when it is done, 1 when it failed, 2 on a wrong usage."""
    try:
        app(prog_name="afterword")
    except (AfterwordError, MemoryClientError, OSError) as exc:
        Console(stderr=True).print(
            f"afterword: {exc}", style="red", markup=False, highlight=False, soft_wrap=True
        )
        sys.exit(FAILED)
