"""The command line: ``afterword``."""

import sys
from typing import Final

FAILED: Final = 1
INTERRUPTED: Final = 130


def main() -> None:
    """Run a command; end with 0 when it is done, 1 when it failed, 2 on a wrong usage, 130 on Ctrl-C."""
    try:
        _run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


def _run() -> None:
    # Imported here, since what takes a second or two must be interruptible without a traceback too.
    from rich.console import Console  # noqa: PLC0415

    from domain.errors import AfterwordError  # noqa: PLC0415
    from producers.client_errors import MemoryClientError  # noqa: PLC0415
    from service.cli.commands import app  # noqa: PLC0415

    try:
        app(prog_name="afterword")
    except (AfterwordError, MemoryClientError) as exc:
        told = str(exc)
    except OSError as exc:
        told = (
            f"{exc.filename}: {exc.strerror}" if exc.filename and exc.strerror else exc.strerror or str(exc)
        )
    else:
        return
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        f"afterword: {told}", style="red", markup=False
    )
    sys.exit(FAILED)
