"""The command that publishes conversations out of files."""

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from domain.errors import InvalidInputError
from producers.chat_formats.dates import DateOrder
from producers.chat_formats.files import FORMATS, Wish, read_chats
from producers.connection import Producer, ProducerSettings
from producers.imported_chats import FileOfChats, Owner, lines_of
from producers.ingest import Ingest
from schemas.topics import Topics
from service.cli.memory import Avatar, Tenant, user_of
from service.cli.output import Json, err, out, print_json
from service.settings import Settings, load_settings
from service.wiring import broker_of

LINES: Final = "afterword"
_OURS: Final = frozenset({"session_id", "ended_at"})
_LOOKED_AT: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """A file whose lines are conversations of ours."""

    path: Path


def ingest(
    files: Annotated[
        list[Path],
        typer.Argument(help="Files, folders or ZIP archives; - is standard input, one conversation a line."),
    ],
    user: Annotated[
        str | None, typer.Option("--user", help="Whose chats they are: a UUID, or an id of your own.")
    ] = None,
    tenant: Tenant = "default",
    avatar: Avatar = None,
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", help=f"What the files are: {', '.join((LINES, *FORMATS))}. Else it is guessed."
        ),
    ] = None,
    speaker: Annotated[
        str | None, typer.Option("--user-speaker", help="The user's name in chats of several people.")
    ] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="Zone of times that say none.")] = "UTC",
    date_order: Annotated[
        DateOrder | None, typer.Option("--date-order", help="Order of dates such as 02/05/24; else guessed.")
    ] = None,
    skip: Annotated[int, typer.Option("--skip", min=0, help="Pass over the first conversations.")] = 0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and report; publish nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Publish conversations out of files to the replay topic; what is known already changes nothing.

    Reads exports of ChatGPT, Claude, Slack and WhatsApp, ShareGPT files, messages as models' interfaces and
    LangChain write them, pasted transcripts, and JSON lines of `ConversationEnded`.

    Examples: `afterword ingest conversations.json --user customer-17 --dry-run`

    `afterword ingest "Chat with Ana.txt" --user customer-17 --user-speaker "Jo Doe" --timezone Europe/Paris`
    """
    if format_ is not None and format_ not in (LINES, *FORMATS):
        raise typer.BadParameter(f"expected one of {', '.join((LINES, *FORMATS))}", param_hint="--format")
    sources = [_source(path, format_, date_order) for path in files]
    chats = [one for one in sources if isinstance(one, FileOfChats)]
    if chats and user is None:
        raise typer.BadParameter("needed: these chats do not say whose they are", param_hint="--user")
    written: list[bytes] = []
    if user is not None:
        owner = Owner(
            tenant_id=tenant,
            user=user_of(user),
            avatar_id=avatar,
            speaker=speaker,
            zone=_zone(timezone),
        )
        written = _lines(chats, owner)
    for one in chats:
        _report(one, as_json=as_json)
    lines = [one.path for one in sources if isinstance(one, _Lines)]
    failed = sum(len(one.reading.failed) for one in chats)
    if not dry_run:
        failed += asyncio.run(_publish(load_settings(), written[skip:], lines, as_json=as_json))
    if failed:
        raise typer.Exit(1)


def _source(path: Path, format_: str | None, order: DateOrder | None) -> FileOfChats | _Lines:
    if str(path) == "-" or format_ == LINES or (format_ is None and _is_ours(path)):
        return _Lines(path=path)
    reading = read_chats(path, Wish(format=format_, date_order=order))
    return FileOfChats(
        name=str(path), reading=reading, written_at=datetime.fromtimestamp(path.stat().st_mtime, UTC)
    )


def _is_ours(path: Path) -> bool:
    """Say whether the first line of a file is a conversation as engines send it."""
    if not path.is_file():
        return False
    with path.open("rb") as opened:
        first = next((line for line in opened if line.strip()), b"")[:_LOOKED_AT]
    try:
        value: Any = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.keys() >= _OURS


def _lines(chats: Sequence[FileOfChats], owner: Owner) -> list[bytes]:
    try:
        return lines_of(chats, owner)
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint=error.field) from None


def _zone(name: str) -> tzinfo:
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise typer.BadParameter(
            f"{name!r} is no time zone; expected a name such as Europe/Paris", param_hint="--timezone"
        ) from None


def _report(one: FileOfChats, *, as_json: bool) -> None:
    reading = one.reading
    if as_json:
        print_json({
            "file": one.name, "format": reading.format, "conversations": len(reading.chats),
            "messages": reading.message_count, "skipped": reading.skipped, "failed": reading.failed,
            "assumed": reading.assumed,
        })  # fmt: skip
        return
    err().print(
        f"{one.name}: {reading.format}, {len(reading.chats)} conversations, {reading.message_count} messages",
        markup=False,
        soft_wrap=True,
    )
    for reason, count in sorted(reading.skipped.items()):
        err().print(f"  left out: {count} × {reason}", markup=False, soft_wrap=True)
    for place, why in reading.failed:
        err().print(f"  not read: {place}: {why}", markup=False, soft_wrap=True)
    for assumption in reading.assumed:
        err().print(f"  assumed: {assumption}", markup=False, soft_wrap=True)


async def _publish(
    settings: Settings, written: Sequence[bytes], files: Sequence[Path], *, as_json: bool
) -> int:
    """Publish everything; return how many lines were refused."""
    published, refused = 0, 0
    bar = Progress(
        TextColumn("Publishing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=err()
    )
    async with Producer(broker_of(settings), ProducerSettings(linger_ms=5)) as producer:
        with bar:
            task = bar.add_task("publishing", total=None if files else len(written))

            def on_published(count: int) -> None:
                nonlocal published
                published += count
                bar.update(task, completed=published)

            publish = Ingest(
                producer,
                Topics(settings.afterword_topic_prefix),
                replay_id=f"ingest-{datetime.now(UTC):%Y%m%dT%H%M%S}",
                on_published=on_published,
            )
            try:
                await publish(written)
                for path in files:
                    refused += await _publish_lines(publish, path)
            except asyncio.CancelledError:
                err().print(f"{published} conversations published; --skip {published} goes on from there")
                raise
    if as_json:
        print_json({"published": published, "refused": refused})
    else:
        out().print(f"{published} conversations published, {refused} lines refused.")
    return refused


async def _publish_lines(publish: Ingest, path: Path) -> int:
    with ExitStack() as stack:
        ingested = await publish(_opened(path, stack))
    for number, why in ingested.refused:
        err().print(f"{path}:{number}: {why}", markup=False, soft_wrap=True)
    return len(ingested.refused)


def _opened(path: Path, stack: ExitStack) -> Iterable[bytes]:
    opened = sys.stdin.buffer if str(path) == "-" else stack.enter_context(path.open("rb"))
    return _each(opened)


def _each(lines: Iterable[bytes]) -> Iterator[bytes]:
    yield from lines
