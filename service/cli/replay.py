"""Commands that run history through the service again."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final
from uuid import UUID, uuid4

import typer

from domain.conversation import LIVE
from domain.errors import InvalidInputError, NotFoundError
from domain.feed_replay import FeedEnd, FeedOutcome, Pace
from domain.generations import NotPromotableError
from domain.replays import Replay, ReplayMode, ReplayProgress, ReplayStatus, StoredSessions, TopicRecords
from producers.replaying import topic_records
from service.cli.database import opened_database, opened_generations
from service.cli.output import Json, err, out, print_json, print_table
from service.cli.replay_feeding import Feeding, fed, how_to_go_on
from service.cli.times import moment
from service.settings import Settings, load_settings
from service.wiring import broker_of
from storage.replays import PostgresReplays

app = typer.Typer(name="replay", help="Run history through the service again.", no_args_is_help=True)

_RUNNABLE: Final = (ReplayStatus.RUNNING, ReplayStatus.PAUSED)
_COLUMNS: Final = (
    *("replay", "mode", "status", "source", "published", "of"),
    *("done", "dead", "skipped", "rate", "started"),
)
_NOTHING: Final = "There are no replays."
_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

ReplayId = Annotated[str, typer.Argument(help="The replay, as `afterword replay list` prints it.")]
Rate = Annotated[
    float, typer.Option("--rate", min=0, help="Conversations a second; 0 is as fast as they are done.")
]
Ahead = Annotated[
    int, typer.Option("--ahead", min=1, max=10_000, help="Most conversations published and not done.")
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait until the jobs are done, not only published.")
]


@app.command()
def start(
    mode: Annotated[
        ReplayMode,
        typer.Option(
            "--mode",
            help="fill: what has no result. reprocess: again, and served as it is done. "
            "shadow: again, unseen until `afterword promote`.",
        ),
    ] = ReplayMode.FILL,
    since: Annotated[
        str | None, typer.Option("--from", help="Ended (of a topic: sent) at this time or later; or 7d ago.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--to", help="Ended (of a topic: sent) before this time; else now.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")] = None,
    user: Annotated[UUID | None, typer.Option("--user", help="Only this user.")] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="The records of this topic instead of the stored sessions.")
    ] = None,
    from_offset: Annotated[
        int | None, typer.Option("--from-offset", min=0, help="First offset of each partition of the topic.")
    ] = None,
    replay_id: Annotated[
        str | None, typer.Option("--id", help="Name of the replay, and label of what it makes.")
    ] = None,
    rate: Rate = 50.0,
    ahead: Ahead = 128,
    wait: Wait = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count; change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Publish stored sessions, or the records of a topic, to the replay topic, and wait for their jobs.

    Ctrl-C pauses it; `afterword replay resume` goes on.

    Examples: `afterword replay start --mode shadow --tenant acme --from 2026-01-01`

    `afterword replay start --topic conversation.ended.v1 --from-offset 0`
    """
    if topic is None and from_offset is not None:
        raise typer.BadParameter("needs --topic", param_hint="--from-offset")
    if topic is not None and user is not None:
        raise typer.BadParameter("does not go with --topic", param_hint="--user")
    settings = load_settings()
    sessions = StoredSessions(
        since=moment(since, "--from"),
        until=moment(until, "--to") or datetime.now(UTC),
        tenant_id=tenant,
        user_id=user,
    )
    label = replay_id or f"rp-{uuid4().hex[:8]}"
    if label == LIVE or _LABEL.fullmatch(label) is None:
        raise typer.BadParameter("expected small letters, digits and hyphens", param_hint="--id")

    async def started() -> int:
        source = (
            sessions
            if topic is None
            else await _topic(settings, topic, sessions, from_offset=from_offset, has_end=until is not None)
        )
        async with opened_database(settings) as database:
            store = PostgresReplays(database)
            total = await _total(store, mode, label, source)
            if dry_run:
                _tell_total(total, "conversations" if topic is None else "records", as_json=as_json)
                return 0
            replay = _new(label, mode, source, rate=rate or None, total=total)
            await store.create(replay)
            how = Feeding(pace=Pace(rate=rate or None, ahead=ahead), waits=wait)
            outcome = await fed(settings, store, replay, how)
            return await _told(store, label, outcome, how, as_json=as_json)

    raise typer.Exit(asyncio.run(started()))


@app.command()
def resume(
    replay_id: ReplayId,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0, help="Conversations a second; else as it was started.")
    ] = None,
    ahead: Ahead = 128,
    wait: Wait = True,
    as_json: Json = False,
) -> None:
    """Go on with a replay that was paused, or whose command died.

    Example: `afterword replay resume rp-1f0c7c2e`
    """
    settings = load_settings()

    async def resumed() -> int:
        async with opened_database(settings) as database:
            store = PostgresReplays(database)
            replay = await _found(store, replay_id)
            if (
                await store.move(replay_id, start=_RUNNABLE, to=ReplayStatus.RUNNING)
                is not ReplayStatus.RUNNING
            ):
                raise InvalidInputError(f"{replay_id} is {replay.status}: nothing is left to feed")
            pace = Pace(rate=(replay.rate if rate is None else rate) or None, ahead=ahead)
            how = Feeding(pace=pace, waits=wait)
            outcome = await fed(settings, store, replay, how)
            return await _told(store, replay_id, outcome, how, as_json=as_json)

    raise typer.Exit(asyncio.run(resumed()))


@app.command()
def pause(replay_id: ReplayId) -> None:
    """Let a replay stop; what is published already is finished, at most as much as it was let ahead.

    Example: `afterword replay pause rp-1f0c7c2e`
    """

    async def paused() -> None:
        async with opened_database(load_settings()) as database:
            store = PostgresReplays(database)
            replay = await _found(store, replay_id)
            status = await store.move(replay_id, start=_RUNNABLE, to=ReplayStatus.PAUSED)
            if status is not ReplayStatus.PAUSED:
                raise InvalidInputError(f"{replay_id} is {replay.status}: there is nothing to pause")

    asyncio.run(paused())
    out().print(f"{replay_id} is paused; `afterword replay resume {replay_id}` goes on.", markup=False)


@app.command(name="list")
def list_replays(
    limit: Annotated[int, typer.Option("--limit", min=1, help="Most replays.")] = 50,
    as_json: Json = False,
) -> None:
    """List replays, newest first.

    Example: `afterword replay list --json`
    """

    async def listed() -> list[tuple[Replay, ReplayProgress]]:
        async with opened_database(load_settings()) as database:
            store = PostgresReplays(database)
            return [(one, await store.progress(one.replay_id)) for one in await store.newest(most=limit)]

    found = asyncio.run(listed())
    if as_json:
        for one, progress in found:
            print_json(_line(one, progress))
        return
    print_table(_COLUMNS, [_row(one, progress) for one, progress in found], nothing=_NOTHING)


@app.command()
def discard(
    replay_id: ReplayId,
    replaced: Annotated[
        bool, typer.Option("--replaced", help="Remove what it took the place of, instead of what it made.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Needed: what is removed does not come back.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what a shadow made; or, with --replaced, what a reprocess or a promotion took the place of.

    Example: `afterword replay discard rp-1f0c7c2e --yes`
    """
    if not yes:
        raise typer.BadParameter("needed: what is removed does not come back", param_hint="--yes")
    with err().status("Discarding"):
        count = asyncio.run(_discarded(load_settings(), replay_id, replaced=replaced))
    if as_json:
        print_json({"replay_id": replay_id, "removed": count})
    else:
        out().print(f"{count} sessions' rows removed.")


async def _topic(
    settings: Settings, topic: str, times: StoredSessions, *, from_offset: int | None, has_end: bool
) -> TopicRecords:
    prefix = settings.afterword_topic_prefix
    name = topic if topic.startswith(prefix) else f"{prefix}{topic}"
    try:
        return await topic_records(
            broker_of(settings),
            name,
            from_offset=from_offset,
            since=times.since,
            until=times.until if has_end else None,
            tenant_id=times.tenant_id,
        )
    except InvalidInputError as error:
        raise typer.BadParameter(str(error), param_hint=error.field) from None


async def _total(
    store: PostgresReplays, mode: ReplayMode, label: str, source: StoredSessions | TopicRecords
) -> int:
    if isinstance(source, StoredSessions):
        return await store.count_sessions(mode, label, source)
    return sum(source.ends[one] - source.starts[one] for one in source.ends)


def _tell_total(total: int, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json({what: total})
    else:
        out().print(f"{total} {what} would be replayed.")


def _new(
    label: str, mode: ReplayMode, source: StoredSessions | TopicRecords, *, rate: float | None, total: int
) -> Replay:
    return Replay(
        replay_id=label,
        generation=LIVE if mode is ReplayMode.FILL else label,
        mode=mode,
        status=ReplayStatus.RUNNING,
        source=source,
        rate=rate,
        total=total,
        position=None,
        published=0,
        skipped={},
        started_at=datetime.now(UTC),
    )


async def _told(
    store: PostgresReplays, replay_id: str, outcome: FeedOutcome, how: Feeding, *, as_json: bool
) -> int:
    """Tell what came of a replay, and return the exit code."""
    replay, progress = await _found(store, replay_id), await store.progress(replay_id)
    if as_json:
        print_json({**_line(replay, progress), "missing": outcome.missing})
    else:
        done = progress.jobs.get("completed", 0)
        out().print(
            f"{replay_id} is {replay.status}: {replay.published} conversations published, "
            f"{_skipped(replay)}; jobs: {done} done, {progress.open} open, {progress.dead} dead.",
            markup=False,
            soft_wrap=True,
        )
    for line in _advice(replay, progress, outcome, how):
        err().print(line, markup=False, soft_wrap=True)
    is_failed = progress.dead or outcome.missing or outcome.end is FeedEnd.TAKEN_OVER
    return 1 if is_failed else 0


def _advice(replay: Replay, progress: ReplayProgress, outcome: FeedOutcome, how: Feeding) -> Iterator[str]:
    """Say what there is to do now."""
    replay_id = replay.replay_id
    if outcome.end is FeedEnd.TAKEN_OVER:
        yield f"another command feeds {replay_id} now"
    if progress.dead:
        yield f"{progress.dead} jobs died; `afterword dlq list` shows them"
    if outcome.missing:
        yield (
            f"{outcome.missing} conversations were not taken in: see whether the service runs, "
            "and what `afterword dlq list` shows"
        )
    if replay.status is ReplayStatus.PAUSED:
        yield how_to_go_on(replay_id)
    elif outcome.end is FeedEnd.FED and not how.waits:
        yield f"all is published; `afterword replay resume {replay_id}` waits for its jobs and closes it"


async def _discarded(settings: Settings, replay_id: str, *, replaced: bool) -> int:
    async with opened_generations(settings) as (database, generations):
        store = PostgresReplays(database)
        replay = await _found(store, replay_id)
        if replay.mode is ReplayMode.FILL:
            raise InvalidInputError(f"{replay_id} is a fill: what it did is the live memory")
        if replaced:
            return await generations.drop_replaced(replay.generation)
        # First, so that nobody feeds it any more.
        await store.move(replay_id, start=tuple(ReplayStatus), to=ReplayStatus.DISCARDED)
        try:
            return await generations.discard(replay.generation)
        except NotPromotableError:
            await store.move(replay_id, start=(ReplayStatus.DISCARDED,), to=replay.status)
            raise


async def _found(store: PostgresReplays, replay_id: str) -> Replay:
    found = await store.get(replay_id)
    if found is None:
        raise NotFoundError(f"there is no replay {replay_id}; `afterword replay list` shows them")
    return found


def _row(one: Replay, progress: ReplayProgress) -> tuple[object, ...]:
    done = progress.jobs.get("completed", 0)
    source = "sessions" if isinstance(one.source, StoredSessions) else one.source.topic
    at = f"{one.started_at:%Y-%m-%d %H:%M:%S}"
    skipped = sum(one.skipped.values())
    counts = (one.published, one.total, done, progress.dead, skipped, one.rate or "", at)
    return (one.replay_id, one.mode, one.status, source, *counts)


def _skipped(one: Replay) -> str:
    """Say what was skipped, and why."""
    reasons = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(one.skipped.items()))
    return f"{sum(one.skipped.values())} skipped" + (f" ({reasons})" if reasons else "")


def _line(one: Replay, progress: ReplayProgress) -> Mapping[str, Any]:
    source = one.source
    told = (
        {"kind": "sessions", "from": source.since, "to": source.until, "user_id": source.user_id}
        if isinstance(source, StoredSessions)
        else {"kind": "topic", "topic": source.topic, "starts": source.starts, "ends": source.ends}
    )
    return {
        "replay_id": one.replay_id,
        "mode": one.mode,
        "status": one.status,
        "source": {**told, "tenant_id": source.tenant_id},
        "published": one.published,
        "skipped": dict(one.skipped),
        "total": one.total,
        "jobs": dict(progress.jobs),
        "rate": one.rate,
        "started_at": one.started_at.isoformat(),
        "finished_at": one.finished_at.isoformat() if one.finished_at is not None else None,
    }
