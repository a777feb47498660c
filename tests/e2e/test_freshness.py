"""Who reads the topics alone ends with the facts of the database (docs/architecture/events.md)."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, LiteralString
from uuid import NAMESPACE_URL, uuid5

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from domain.conversation import NIL_AVATAR
from domain.memory.assertions import Claim, Scope, claim_id
from domain.memory.slots import slot_of, slot_text
from producers.client import MemoryClient
from producers.wire_json import fact_body, to_json
from storage.fact_rows import FACT_COLUMNS, fact_from_row
from tests.e2e.conftest import MORNING
from tests.support.kafka import KafkaServer
from tests.support.postgres import PostgresServer
from tests.support.publishing import Outgoing, Publisher, Read, lag, publishing, read_all, until
from tests.support.service import RunningService
from tests.support.tables import Tables, looking

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

Body = Mapping[str, Any]
View = dict[str, Body]

_ANA, _BEA = (str(uuid5(NAMESPACE_URL, name)) for name in ("fresh ana", "fresh bea"))
_AVATAR: Final = str(uuid5(NAMESPACE_URL, "fresh avatar"))
# Segments that are closed at once and cleaned as soon as there is anything to clean.
_COMPACTED_SOON: Final = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "0",
}
_GONE: Final = frozenset({"memory.fact.erased", "memory.fact.renamed"})
_FACTS: Final[LiteralString] = "SELECT " + FACT_COLUMNS + " FROM lis.memory_facts AS f"  # noqa: S608
_JUDGE: Final[LiteralString] = """
INSERT INTO lis.judgements
       (user_id, tenant_id, avatar_id, left_claim, right_claim, authority, verdict, merged_text, left_slot,
        right_slot, judge)
VALUES (%(user)s, 'default', %(avatar)s, least(%(one)s::uuid, %(other)s::uuid),
        greatest(%(one)s::uuid, %(other)s::uuid), 2, %(verdict)s, %(text)s, %(slot)s, %(slot)s, 'somebody')
RETURNING 1"""
_DELETE: Final[LiteralString] = """
UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()
 WHERE user_id = %(user)s AND fact_value = %(value)s AND status = 'active' RETURNING fact_id"""
_UNDELETE: Final[LiteralString] = """
UPDATE lis.memory_facts SET status = 'active', deleted_at = NULL
 WHERE user_id = %(user)s AND fact_value = %(value)s AND status = 'deleted' RETURNING fact_id"""


_UNSETTLED: Final[LiteralString] = """
SELECT 1 AS one FROM lis.outbox
 UNION ALL
SELECT 1 FROM lis.extraction_jobs WHERE status <> 'completed'
 UNION ALL
SELECT 1 FROM lis.memory_facts WHERE told_status IS DISTINCT FROM status"""
# What the load below does to facts; an expiry is not told in this version.
_KINDS: Final = {
    f"memory.fact.{change}"
    for change in (
        *("created", "reinforced", "revised", "superseded", "merged", "renamed"),
        *("deleted", "restored", "erased"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A service with topics and tables of its own."""

    service: RunningService
    tables: Tables
    publisher: Publisher

    async def tell(self, *conversations: Body) -> None:
        """Tell of ``conversations`` in this order and wait until all has been done and sent."""
        for one in conversations:
            await self.publisher.send_json(self.service.topics.ended, one)
        await self.settled()

    async def settled(self) -> None:
        """Return when nothing is left to do or to send."""

        async def is_settled() -> bool:
            if await lag(self.service.kafka, [self.service.topics.ended]):
                return False
            return not await self.tables.rows(_UNSETTLED)

        await until(is_settled, within=20, what="all done and sent", every=0.1)

    async def change(self, statement: LiteralString, **params: object) -> None:
        """Run a statement of a gateway or of somebody who judges; it has to meet something."""
        assert await self.tables.rows(statement, params)

    async def send_again(self, topic: str, count: int) -> None:
        """Send the last ``count`` records of ``topic`` a second time.

        A relay does so that died between an acknowledgement and its delete.
        """
        last = (await read_all(self.service.kafka, topic))[-count:]
        await self.publisher.send(
            *(Outgoing(topic=topic, key=one.key, value=one.value, headers=one.headers) for one in last)
        )

    async def facts(self) -> View:
        """Return the facts of the database as the wire has them."""
        rows = [fact_from_row(row) for row in await self.tables.rows(_FACTS)]
        return {str(row.fact_id): _shown(json.loads(to_json(fact_body(row)))) for row in rows}


@pytest.fixture
async def scene(
    apache_kafka: KafkaServer, postgres: PostgresServer, migrated_url: str, topic_prefix: str, tmp_path: Path
) -> AsyncGenerator[Scene]:
    service = RunningService(
        tmp_path, kafka=apache_kafka, database_url=migrated_url, topic_prefix=topic_prefix
    )
    await _create(apache_kafka.bootstrap, service.topics.facts)
    async with (
        service,
        looking(migrated_url) as tables,
        publishing(apache_kafka.bootstrap) as publisher,
    ):
        yield Scene(service=service, tables=tables, publisher=publisher)


async def _load(scene: Scene) -> None:
    """Let everything happen that can happen to facts."""
    for user in (_ANA, _BEA):
        await _judge(scene, user, "home_city", ("lisboa", "lisbon"), verdict="same")
        await _judge(scene, user, "likes", ("coffee", "tea"), verdict="merge", text="coffee and tea")
    pets = _conversation(_ANA, 3, "I have a cat.", "I have a dog.")
    first = [
        _conversation(_ANA, 1, "I live in Porto.", "My name is Nadia."),
        _conversation(_ANA, 8, "I live in Lisboa.", "I like tea."),
        _conversation(_BEA, 1, "I live in Lisbon.", "I work as a nurse."),
        pets,
        _conversation(_ANA, 5, "I moved from Porto to Leeds.", "I like coffee."),
        _conversation(_ANA, 2, "I live in Porto.", avatar_id=_AVATAR),
        _conversation(_ANA, 9, "I live in Porto. Sorry, I mean Lisboa."),
    ]
    await scene.tell(*first)
    await scene.change(_DELETE, user=_BEA, value="nurse")
    await scene.change(_DELETE, user=_ANA, value="Nadia")
    # Lisbon was said before Lisboa, which is the same: the fact goes on under the id of the older wording.
    await scene.tell(
        _conversation(_ANA, 7, "I live in Lisbon."), first[0], _conversation(_BEA, 2, "I work as a nurse.")
    )
    for topic in (scene.service.topics.events, scene.service.topics.facts):
        await scene.send_again(topic, 15)
    await scene.change(_UNDELETE, user=_ANA, value="Nadia")
    # The same session, longer; and the same one, with another end.
    longer = _conversation(_BEA, 4, "I have a parrot.", "I like tea.", session_id=pets["session_id"])
    await scene.tell(
        {**longer, "user_id": _ANA, "ended_at": _at(4, minutes=90)},
        _conversation(_ANA, 10, "Please forget that I like tea."),
        *first[2:5],
    )


async def _judge(
    scene: Scene, user: str, key: str, values: tuple[str, str], *, verdict: str, text: str | None = None
) -> None:
    slot, scope = slot_of(key), Scope(tenant="default", user=user, avatar=str(NIL_AVATAR))
    one, other = (claim_id(scope, Claim(slot, value)) for value in values)
    await scene.change(
        _JUDGE,
        user=user,
        avatar=NIL_AVATAR,
        one=one,
        other=other,
        verdict=verdict,
        text=text,
        slot=slot_text(slot),
    )


def _conversation(user: str, day: int, *said: str, **more: str) -> dict[str, Any]:
    messages = [
        {"message_id": f"m{place}", "role": "user", "content": text, "sent_at": _at(day, minutes=place)}
        for place, text in enumerate(said)
    ]
    return {
        "session_id": str(uuid5(NAMESPACE_URL, f"{user} {day}")),
        "user_id": user,
        "ended_at": _at(day, minutes=60),
        "messages": messages,
        **more,
    }


def _at(day: int, *, minutes: int) -> str:
    return (MORNING + timedelta(days=day, minutes=minutes)).isoformat()


async def test_readers_of_the_topics_alone_end_with_the_facts_of_the_database(scene: Scene) -> None:
    await _load(scene)
    topics, kafka = scene.service.topics, scene.service.kafka
    facts = await scene.facts()
    shown = {one: fact for one, fact in facts.items() if fact["status"] != "deleted"}
    assert Counter(fact["status"] for fact in facts.values()).keys() == {"active", "superseded", "deleted"}

    events = await read_all(kafka, topics.events)
    told, folded = _folded(events)
    assert folded == facts
    # Nothing is told that did not happen, and nothing that happened is left out: one event a version.
    assert told.keys() >= _KINDS
    versions = await scene.tables.rows("SELECT count(*) AS n FROM lis.memory_versions")
    assert told.total() == versions[0]["n"]

    assert _newest(await read_all(kafka, topics.facts)) == shown
    assert await _streamed(scene, shown) == shown
    assert _newest(await _compacted(scene)) == shown
    assert await _streamed(scene, shown) == shown


def _folded(events: Iterable[Read]) -> tuple[Counter[str], View]:
    """Fold events as their page says; return how many of each type there were, and the facts."""
    seen: set[str | None] = set()
    kinds: Counter[str] = Counter()
    facts: View = {}
    for record in events:
        kind, number = record.header("ce_type") or "", record.header("ce_id")
        if number in seen or not kind.startswith("memory.fact."):
            continue
        seen.add(number)
        kinds[kind] += 1
        fact = record.json()["fact"]
        if kind in _GONE:
            del facts[fact["fact_id"]]
        else:
            assert fact["revision"] > facts.get(fact["fact_id"], {"revision": 0})["revision"]
            facts[fact["fact_id"]] = _shown(fact)
    return kinds, facts


def _newest(records: Iterable[Read]) -> View:
    """Return what the last record of each key says."""
    last = {(record.key or b"").decode(): record for record in records}
    return {key: _shown(record.json()) for key, record in last.items() if record.value}


def _shown(fact: Body) -> Body:
    """Leave out what is no part of an event: when the fact was last injected."""
    return {name: value for name, value in fact.items() if name != "last_seen_at"}


async def _streamed(scene: Scene, expected: View) -> View:
    """Return the facts of the client's stream, when they are as ``expected`` or after a while."""
    found: View = {}
    client = MemoryClient(
        scene.service.kafka,
        topic_prefix=scene.service.topics.prefix,
        reply_topic=f"{scene.service.topics.prefix}fresh.replies",
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(5), client, aclosing(client.facts_stream()) as stream:
            async for now in stream:
                found.pop(str(now.fact_id), None)
                if now.fact is not None:
                    found[str(now.fact_id)] = _shown(
                        json.loads(now.fact.model_dump_json(exclude={"evidence"}))
                    )
                if found == expected:
                    break
    return found


async def _compacted(scene: Scene) -> Sequence[Read]:
    """Return the records of the facts once the broker has compacted them."""
    topic = scene.service.topics.facts
    # The broker leaves the segment that it writes to alone, and begins a new one with the next record.
    marks = [uuid5(NAMESPACE_URL, f"mark {number}") for number in range(12)]
    await scene.publisher.send(*(Outgoing(topic=topic, key=str(one).encode(), value=None) for one in marks))

    async def is_compacted() -> bool:
        keys = [record.key for record in await read_all(scene.service.kafka, topic)]
        return len(keys) == len(set(keys))

    await until(is_compacted, within=40, what="the topic of facts is compacted", every=0.3)
    return await read_all(scene.service.kafka, topic)


async def _create(bootstrap: str, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 2, 1, topic_configs=_COMPACTED_SOON)])
    finally:
        await admin.close()
