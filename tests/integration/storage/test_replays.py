"""Replays as they are kept, and which stored sessions they mean."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from domain.conversation import UserRef
from domain.errors import ConflictError
from domain.replays import (
    Position,
    Replay,
    ReplayMode,
    ReplayStatus,
    Standing,
    StoredSession,
    StoredSessions,
    TopicRecords,
)
from storage.replays import PostgresReplays
from tests.integration.storage.replaying import LABEL, again, redo
from tests.integration.storage.stores import ANA, MARCH, TENANT, Stores, candidate, ended, session_id

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

ALL = StoredSessions(until=MARCH + timedelta(days=30))
BEN = UserRef(user_id=uuid4())


def a_replay(
    source: StoredSessions | TopicRecords = ALL,
    *,
    mode: ReplayMode = ReplayMode.SHADOW,
    position: Position | None = None,
) -> Replay:
    return Replay(
        replay_id=LABEL,
        generation="live" if mode is ReplayMode.FILL else LABEL,
        mode=mode,
        status=ReplayStatus.RUNNING,
        source=source,
        rate=50.0,
        total=3,
        position=position,
        published=0,
        skipped={},
        started_at=MARCH,
    )


def position_behind(one: StoredSession) -> Position:
    return {
        "ended_at": one.ended_at.isoformat(),
        "tenant_id": one.tenant_id,
        "session_id": str(one.session_id),
    }


@pytest.fixture
def replays(stores: Stores) -> PostgresReplays:
    return PostgresReplays(stores.database)


@pytest.mark.parametrize(
    "source",
    [
        ALL,
        StoredSessions(until=MARCH, since=MARCH - timedelta(days=1), tenant_id="acme", user_id=uuid4()),
        TopicRecords(topic="p.ended", starts={"0": 3, "1": 0}, ends={"0": 9, "1": 4}, tenant_id="acme"),
    ],
)
async def test_a_replay_is_kept_as_it_was_given(
    replays: PostgresReplays, source: StoredSessions | TopicRecords
) -> None:
    await replays.create(a_replay(source))

    assert await replays.get(LABEL) == a_replay(source)
    assert list(await replays.newest(most=5)) == [a_replay(source)]
    assert await replays.get("other") is None
    with pytest.raises(ConflictError):
        await replays.create(a_replay())


async def test_counts_are_added_and_the_position_is_the_last_one(replays: PostgresReplays) -> None:
    await replays.create(a_replay())

    await replays.advance(LABEL, position={"0": 4}, published=3, skipped={"other_tenant": 1})
    await replays.advance(LABEL, position={"0": 9}, published=2, skipped={"other_tenant": 2, "not_there": 1})
    await replays.advance(LABEL, position={"0": 9}, published=0, skipped={})

    kept = await replays.get(LABEL)
    assert kept is not None
    assert (kept.published, kept.position) == (5, {"0": 9})
    assert kept.skipped == {"other_tenant": 3, "not_there": 1}


async def test_the_status_moves_only_from_where_it_may(replays: PostgresReplays) -> None:
    await replays.create(a_replay())
    running, paused, done = ReplayStatus.RUNNING, ReplayStatus.PAUSED, ReplayStatus.DONE

    moved = [
        await replays.move(LABEL, start=(paused,), to=done),
        await replays.move(LABEL, start=(running,), to=paused),
        await replays.move(LABEL, start=(running, paused), to=done),
        await replays.move("other", start=(running,), to=done),
    ]

    assert moved == [running, paused, done, None]
    kept = await replays.get(LABEL)
    assert kept is not None
    assert kept.finished_at is not None


async def test_one_feeds_at_a_time_and_one_that_fell_silent_is_followed(
    stores: Stores, replays: PostgresReplays
) -> None:
    await replays.create(a_replay())
    first, second = uuid4(), uuid4()

    assert await replays.begin_feeding(LABEL, first)
    assert not await replays.begin_feeding(LABEL, second)
    await stores.run("UPDATE lis.replays SET updated_at = now() - interval '1 minute'")
    assert await replays.begin_feeding(LABEL, second)
    assert await replays.beat(LABEL, first) is None
    assert await replays.beat(LABEL, second) is ReplayStatus.RUNNING
    await replays.end_feeding(LABEL, first)
    assert not await replays.begin_feeding(LABEL, first)
    await replays.end_feeding(LABEL, second)
    assert await replays.begin_feeding(LABEL, first)


async def test_a_label_means_the_sessions_without_a_job_under_it_in_the_order_of_their_ends(
    stores: Stores, replays: PostgresReplays
) -> None:
    said = [ended(name, "I live in Porto", at=MARCH + timedelta(days=day)) for day, name in enumerate("cab")]
    for one in said:
        await stores.remember(one, candidate("home_city", "Porto"))
    names = [session_id(name) for name in "cab"]

    first = await replays.next_sessions(a_replay(), most=2)
    rest = await replays.next_sessions(a_replay(position=position_behind(first[-1])), most=2)
    await redo(stores, again(said[0]), candidate("home_city", "Lyon"))
    left = await replays.next_sessions(a_replay(), most=9)

    assert [one.session_id for one in (*first, *rest)] == names
    assert [one.session_id for one in left] == names[1:]
    assert await replays.count_sessions(ReplayMode.SHADOW, LABEL, ALL) == 2
    assert (await replays.progress(LABEL)).jobs == {"completed": 1}


async def test_sessions_are_chosen_by_time_tenant_and_user(stores: Stores, replays: PostgresReplays) -> None:
    for day, user in enumerate((ANA, ANA, BEN)):
        conversation = ended(f"s{day}", "I live in Porto", at=MARCH + timedelta(days=day), user=user)
        await stores.remember(conversation, candidate("home_city", "Porto"))
    ends = [one.ended_at for one in await replays.next_sessions(a_replay(), most=9)]

    async def chosen(source: StoredSessions) -> Sequence[UUID]:
        found = await replays.next_sessions(a_replay(source), most=9)
        assert len(found) == await replays.count_sessions(ReplayMode.SHADOW, LABEL, source)
        return [one.session_id for one in found]

    s0, s1, s2 = (session_id(f"s{day}") for day in range(3))
    assert await chosen(StoredSessions(since=ends[1], until=ends[2])) == [s1]
    assert await chosen(StoredSessions(until=ALL.until, user_id=BEN.user_id)) == [s2]
    assert await chosen(StoredSessions(until=ALL.until, tenant_id=TENANT)) == [s0, s1, s2]
    assert await chosen(StoredSessions(until=ALL.until, tenant_id="other")) == []


async def test_a_fill_means_the_sessions_that_have_no_job_in_what_serves(
    stores: Stores, replays: PostgresReplays
) -> None:
    fill = a_replay(mode=ReplayMode.FILL)
    for name in ("lost", "there"):
        await stores.remember(ended(name, "I live in Porto"), candidate("home_city", "Porto"))
    await stores.run("DELETE FROM lis.extraction_jobs WHERE session_id = %s", session_id("lost"))

    assert [one.session_id for one in await replays.next_sessions(fill, most=9)] == [session_id("lost")]
    assert await replays.count_sessions(ReplayMode.FILL, "live", ALL) == 1


async def test_it_is_told_which_sessions_are_unseen_open_and_ended(
    stores: Stores, replays: PostgresReplays
) -> None:
    said = [ended(name, "I live in Porto") for name in ("unseen", "open", "ended")]
    for one in said:
        await stores.remember(one, candidate("home_city", "Porto"))
    await stores.claimed(again(said[1]))
    await redo(stores, again(said[2]), candidate("home_city", "Porto"))
    asked = [(TENANT, session_id(name)) for name in ("ended", "unseen", "open", "never heard of")]

    standing = await replays.standing(a_replay(), asked)

    assert standing == [Standing.ENDED, Standing.UNSEEN, Standing.OPEN, Standing.UNSEEN]
    assert (await replays.progress(LABEL)).open == 1
