"""Commands for dead letters: looking at them, sending them again, deleting them."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar

import typer
from rich.progress import Progress

from domain.dead_letter_view import RecordView, raw_view, redacted_view
from domain.dead_letters import DeadLetter, LetterFilter, LetterStatus, LetterSummary, Place
from domain.errors import NotFoundError
from domain.redrive_dead_letters import Plan, PurgeDeadLetters, RedriveDeadLetters
from producers.dead_letters import RedriveEncoder
from producers.encoding import Encoder
from schemas.topics import Topics
from service.cli.database import opened_database
from service.cli.output import Json, err, out, print_json, print_table
from service.cli.times import moment
from service.settings import load_settings
from service.wiring import event_source
from storage.dead_letter_queries import PostgresDeadLetterQueries

T = TypeVar("T")

_NOTHING: Final = "There are no such dead letters."

Topic = Annotated[
    list[str] | None,
    typer.Option("--topic", help="Only of this topic, with or without the prefix; repeatable."),
]
Class = Annotated[
    list[str] | None,
    typer.Option(
        "--class", help="Only of this class: undecodable, invalid, permanent, exhausted; repeatable."
    ),
]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Only of this tenant, where it could be read.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", help="First failed at this time or later: RFC 3339 (UTC without a zone), or 2h, 7d ago."
    ),
]
Until = Annotated[str | None, typer.Option("--until", help="First failed before this time.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="Most letters; without it all.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count; change nothing.")]
Status = Annotated[
    list[LetterStatus] | None, typer.Option("--status", help="Only in this status; repeatable.")
]


def list_letters(
    topic: Topic = None,
    error_class: Class = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    status: Status = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most letters.")] = 100,
    as_json: Json = False,
) -> None:
    """List dead letters, newest first, without their bytes.

    Example: `afterword dlq list --class undecodable --since 2h`
    """
    wanted = _filter(topic, error_class, tenant, since, until, tuple(status or ()))
    letters, total = asyncio.run(_with_letters(lambda store: _listed(store, wanted, limit)))
    if as_json:
        for letter in letters:
            print_json(_summary(letter))
        return
    columns = ("topic", "partition", "offset", "class", "status", "replays", "tenant", "failed", "reason")
    print_table(columns, map(_row, letters), nothing=_NOTHING)
    if total > len(letters):
        err().print(f"{total} in all; ask with a higher --limit.")


def show(
    topic: Annotated[str, typer.Argument(help="The topic, with its prefix, as `list` prints it.")],
    partition: Annotated[int, typer.Argument(min=0)],
    offset: Annotated[int, typer.Argument(min=0)],
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Print the record as it came, SECRETS INCLUDED; with --json also its bytes."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show one dead letter: why it died, its headers, key and value, with secrets replaced by a mark.

    What is no text is escaped. `--raw` leaves the secrets in.

    Example: `afterword dlq show conversation.ended.v1 3 1042`
    """
    place = Place(topic=topic, partition=partition, offset=offset)
    letter = asyncio.run(_with_letters(lambda store: store.find(place)))
    if letter is None:
        raise NotFoundError(f"there is no dead letter at {topic} {partition} {offset}")
    view = raw_view(letter.record) if raw else redacted_view(letter.record)
    if as_json:
        print_json({**_summary(letter.summary), **_shown(view), **(_bytes(letter) if raw else {})})
        return
    about = [(name, value) for name, value in _summary(letter.summary).items() if value is not None]
    print_table(("", ""), [*about, *((f"header {name}", value) for name, value in view.headers)], nothing="")
    print_table(("", ""), [("key", view.key)], nothing="")
    out().print(view.value if view.value is not None else "(a tombstone)", markup=False, soft_wrap=True)


def redrive(
    topic: Topic = None,
    error_class: Class = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Also those under way: for records that were lost with a broker."),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Send open dead letters again, each once, in a lane of their own and never into the live topic.

    One transaction a letter: what is interrupted goes on where it stopped.

    Example: `afterword dlq redrive --class exhausted --limit 100`
    """
    statuses = (LetterStatus.OPEN, *((LetterStatus.REDRIVEN,) if again else ()))
    wanted = _filter(topic, error_class, tenant, since, until, statuses)
    plan, done = asyncio.run(_with_letters(lambda store: _redriven(store, wanted, limit, is_dry=dry_run)))
    _report(plan, done, limit, "redriven", as_json=as_json)
    if plan.stranded and not as_json:
        err().print(f"{plan.stranded} are of topics that have no lane to be redriven in; they stay open.")


def purge(
    topic: Topic = None,
    error_class: Class = None,
    tenant: Tenant = None,
    since: Since = None,
    until: Until = None,
    status: Status = None,
    limit: Limit = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete; there is no way back.")] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Delete dead letters from the database; needs `--yes` or `--dry-run`.

    Example: `afterword dlq purge --status closed --until 30d --yes`
    """
    if yes == dry_run:
        raise typer.BadParameter("give --yes to delete, or --dry-run to count", param_hint="--yes")
    wanted = _filter(topic, error_class, tenant, since, until, tuple(status or ()))
    plan, done = asyncio.run(_with_letters(lambda store: _purged(store, wanted, limit, is_dry=dry_run)))
    _report(plan, done, limit, "purged", as_json=as_json)


app = typer.Typer(help="Dead letters: list, show, redrive, purge.", no_args_is_help=True)
for _name, _command in (("list", list_letters), ("show", show), ("redrive", redrive), ("purge", purge)):
    app.command(_name)(_command)


async def _listed(
    store: PostgresDeadLetterQueries, wanted: LetterFilter, limit: int
) -> tuple[list[LetterSummary], int]:
    total = sum(group.count for group in await store.groups(wanted))
    return list(await store.page(wanted, most=limit)), total


async def _redriven(
    store: PostgresDeadLetterQueries, wanted: LetterFilter, limit: int | None, *, is_dry: bool
) -> tuple[Plan, int | None]:
    use_case = RedriveDeadLetters(letters=store, lanes=RedriveEncoder(_topics()).lanes)
    plan = await use_case.plan(wanted)
    if is_dry:
        return plan, None
    with Progress(console=err(), transient=True) as progress:
        task = progress.add_task("Redriving", total=_most(plan, limit))
        return plan, await use_case(wanted, limit=limit, on_redriven=lambda: progress.advance(task))


async def _purged(
    store: PostgresDeadLetterQueries, wanted: LetterFilter, limit: int | None, *, is_dry: bool
) -> tuple[Plan, int | None]:
    use_case = PurgeDeadLetters(letters=store)
    plan = await use_case.plan(wanted)
    if is_dry:
        return plan, None
    with Progress(console=err(), transient=True) as progress:
        task = progress.add_task("Purging", total=_most(plan, limit))
        return plan, await use_case(wanted, limit=limit, on_purged=lambda gone: progress.advance(task, gone))


def _report(plan: Plan, done: int | None, limit: int | None, what: str, *, as_json: bool) -> None:
    """Say what was done, or, after a dry run, what would be."""
    if as_json:
        groups = [{"topic": one.topic, "class": one.error_class, "count": one.count} for one in plan.groups]
        found = {"matching": plan.total, "stranded": plan.stranded, "groups": groups}
        print_json({what: done or 0, "dry_run": done is None, **found})
        return
    if done is not None:
        out().print(f"{done} of {plan.total} dead letters {what}.")
        return
    rows = [(one.topic, one.error_class, one.count) for one in plan.groups]
    print_table(("topic", "class", "letters"), rows, nothing=_NOTHING)
    out().print(f"{_most(plan, limit)} of {plan.total} dead letters would be {what}.")


def _most(plan: Plan, limit: int | None) -> int:
    return plan.total if limit is None else min(plan.total, limit)


async def _with_letters(work: Callable[[PostgresDeadLetterQueries], Awaitable[T]]) -> T:
    async with _letters() as store:
        return await work(store)


@asynccontextmanager
async def _letters() -> AsyncGenerator[PostgresDeadLetterQueries]:
    """Open the dead letters.

    Raises:
        InvalidInputError: the database is older than this release.
    """
    topics = _topics()
    encode = Encoder(topics, event_source(topics))
    async with opened_database(load_settings()) as database:
        yield PostgresDeadLetterQueries(database, encode=encode, encode_redriven=RedriveEncoder(topics))


def _topics() -> Topics:
    return Topics(load_settings().afterword_topic_prefix)


def _filter(
    topic: list[str] | None,
    error_class: list[str] | None,
    tenant: str | None,
    since: str | None,
    until: str | None,
    statuses: tuple[LetterStatus, ...],
) -> LetterFilter:
    prefix = load_settings().afterword_topic_prefix
    names = {name for one in topic or () for name in (one, f"{prefix}{one}")}
    return LetterFilter(
        topics=tuple(sorted(names)),
        error_classes=tuple(error_class or ()),
        statuses=statuses,
        tenant_id=tenant,
        since=moment(since, "--since"),
        until=moment(until, "--until"),
    )


def _row(letter: LetterSummary) -> tuple[object, ...]:
    place = letter.place
    at = f"{letter.first_failed_at:%Y-%m-%d %H:%M:%S}"
    about = (letter.error_class, letter.status, letter.replays, letter.tenant_id, at, letter.reason)
    return (place.topic, place.partition, place.offset, *about)


def _summary(letter: LetterSummary) -> dict[str, Any]:
    return {
        "topic": letter.place.topic,
        "partition": letter.place.partition,
        "offset": letter.place.offset,
        "class": letter.error_class,
        "reason": letter.reason,
        "status": letter.status.value,
        "attempts": letter.attempts,
        "replays": letter.replays,
        "tenant_id": letter.tenant_id,
        "bytes": letter.size,
        "sent_at": _time(letter.sent_at),
        "first_failed_at": _time(letter.first_failed_at),
        "redriven_at": _time(letter.redriven_at),
        "closed_at": _time(letter.closed_at),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _shown(view: RecordView) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in view.headers]
    return {"headers": headers, "key": view.key, "value": view.value}


def _bytes(letter: DeadLetter) -> dict[str, Any]:
    record = letter.record
    return {
        "key_base64": _base64(record.key),
        "value_base64": _base64(record.value),
        "headers_base64": [{"name": name, "value": _base64(value)} for name, value in record.headers],
    }


def _base64(data: bytes | None) -> str | None:
    return base64.b64encode(data).decode() if data is not None else None
