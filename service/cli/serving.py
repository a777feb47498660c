"""Commands that run the service."""

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import typer

from domain.errors import InvalidInputError
from service.cli.output import err, out
from service.local import play_demo, stay_up
from service.roles import roles_of
from service.running import run_service
from service.settings import load_settings

_INTERRUPTED = 130


def run(
    roles: Annotated[
        str, typer.Option(help="Roles of this process, with commas between; without it all of them.")
    ] = "",
    bound_to_stdin: Annotated[
        bool, typer.Option("--bound-to-stdin", hidden=True, help="Stop when standard input ends.")
    ] = False,
) -> None:
    """Run the service on AFTERWORD_KAFKA and AFTERWORD_DATABASE_URL; prints `ready` when every role serves.

    Example: `AFTERWORD_KAFKA=localhost:9092 AFTERWORD_DATABASE_URL=postgresql://… afterword run`
    """
    try:
        wanted = roles_of(roles)
    except InvalidInputError as exc:
        raise typer.BadParameter(str(exc), param_hint="--roles") from exc
    settings = load_settings()

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    _until_signal(lambda stop: run_service(settings, wanted, stop, ready, bound_to_stdin=bound_to_stdin))


def up() -> None:
    """Run everything here: a database that is kept, a broker that keeps nothing, and all roles.

    What AFTERWORD_KAFKA, AFTERWORD_DATABASE_URL or PG… name is used instead of an embedded part.
    """
    settings = load_settings()
    _until_signal(lambda stop: stay_up(settings, stop, out()))


def demo() -> None:
    """Watch conversations go in, facts appear and an injection come back; nothing is left behind."""
    settings = load_settings()
    _until_signal(lambda stop: play_demo(settings, stop, out()))


def _until_signal(work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run ``work`` until it ends; SIGTERM and SIGINT ask it to stop, a second SIGINT cuts it off."""

    async def watched() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        running = asyncio.current_task()

        def asked() -> None:
            if stop.is_set() and running is not None:
                running.cancel()
            stop.set()

        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_signal_handler(signal.SIGINT, asked)
        await work(stop)

    try:
        asyncio.run(watched())
    except asyncio.CancelledError:
        err().print("interrupted")
        raise typer.Exit(_INTERRUPTED) from None
