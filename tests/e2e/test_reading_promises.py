"""What the service promises of what it gives out: to whom, what, and what never."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest

from producers.client import MemoryClient
from producers.client_errors import MemoryNotFoundError
from producers.followers import FactNow
from schemas.fact import Fact
from tests.e2e.conftest import Engine
from tests.support.publishing import Read, create_topic, headers_of, in_order, read_all, until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

_CE_NAMES = {"ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time", "ce_subject", "content-type"}


async def test_nobody_reads_the_memory_of_another(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto.", "My name is Nadia."))
    job = await engine.tell(engine.conversation("I live in Leeds.", user_id=str(uuid4())))
    avatar = uuid4()

    assert "Leeds" not in (await engine.injected()).text
    assert (await engine.injected(avatar_id=str(avatar))).text == ""
    async with _client(engine, tenant_id="another") as stranger:
        assert (await stranger.inject(user=engine.user_id)).text == ""
        assert (await stranger.facts(user=engine.user_id)).items == ()
        with pytest.raises(MemoryNotFoundError):
            await stranger.job(job_id=job.job_id)


async def test_a_tenant_has_the_same_user_id_for_itself(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto."))
    theirs = engine.conversation("I live in Leeds.", tenant_id="another")
    async with _client(engine, tenant_id="another") as stranger:
        await engine.publisher.send_json(engine.topics.ended, theirs)
        await stranger.wait_until_remembered(UUID(theirs["session_id"]), timeout=20)

        theirs_now = (await stranger.facts(user=engine.user_id)).items
        assert [fact.fact_value for fact in theirs_now] == ["Leeds"]

    assert list((await engine.values()).values()) == ["Porto"]


async def test_a_secret_stands_in_no_table_and_on_no_topic_but_the_engines_own(engine: Engine) -> None:
    secret = f"Zq7{uuid4().hex[:12]}"
    said = (f"My password is {secret}.", "I live in Porto.", f"api_key={secret} please keep it")

    await engine.tell(engine.conversation(*said))

    assert await engine.tables.mentions("I live in Porto") != []
    assert await engine.tables.mentions(secret) == []
    for topic in engine.topics.every:
        if topic != engine.topics.ended:
            assert not [record for record in await read_all(engine.kafka, topic) if _has(record, secret)]
    assert secret not in (await engine.injected()).text


async def test_what_the_assistant_alone_said_is_not_the_users(engine: Engine) -> None:
    conversation = engine.conversation("I live in Porto.")
    conversation["messages"].append({"role": "assistant", "content": "My name is Nadia and I live in Leeds."})

    await engine.tell(conversation)

    assert list((await engine.values()).values()) == ["Porto"]


async def test_a_request_past_its_deadline_gets_no_reply(engine: Engine) -> None:
    late, in_time = uuid4().hex, uuid4().hex
    replies = f"{engine.topics.prefix}deadline.replies"
    await create_topic(engine.kafka, replies)
    now = int(time.time() * 1_000)

    await _ask(engine, replies, late, deadline_ms=str(now - 1))
    await _ask(engine, replies, in_time, deadline_ms=str(now + 20_000))

    assert await _replied(engine, replies) == [in_time]


async def test_a_reply_goes_to_no_topic_outside_the_allow_list(engine: Engine) -> None:
    elsewhere, allowed = f"{engine.topics.prefix}private", f"{engine.topics.prefix}allowed.replies"
    await create_topic(engine.kafka, elsewhere)
    await create_topic(engine.kafka, allowed)
    asked = uuid4().hex

    await _ask(engine, elsewhere, uuid4().hex)
    await _ask(engine, engine.topics.ended, uuid4().hex)
    await _ask(engine, allowed, asked)

    assert await _replied(engine, allowed) == [asked]
    assert await read_all(engine.kafka, elsewhere) == []
    assert not [r for r in await read_all(engine.kafka, engine.topics.ended) if r.header("correlation_id")]


async def test_a_reply_goes_to_the_partition_that_was_named_with_two_headers_only(engine: Engine) -> None:
    replies = f"{engine.topics.prefix}parts.replies"
    await create_topic(engine.kafka, replies, partitions=3)
    asked = uuid4().hex

    await _ask(engine, replies, asked, reply_partition="2")
    await _replied(engine, replies)

    (reply,) = await read_all(engine.kafka, replies)
    assert reply.partition == 2
    assert dict(reply.headers) == {"correlation_id": asked.encode(), "content-type": b"application/json"}
    assert reply.json()["ok"] is True


async def test_a_gateways_soft_delete_is_heard_and_told(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto.", "My name is Nadia."))
    facts = await engine.tables.facts(user_id=engine.user_id)
    gone = next(row["fact_id"] for row in facts if row["fact_value"] == "Porto")

    await engine.tables.rows(
        """UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()
            WHERE fact_id = %(id)s RETURNING 1""",
        {"id": gone},
    )

    assert "Porto" not in (await engine.injected()).text
    assert "Nadia" in (await engine.injected()).text

    async def told() -> bool:
        return any(fact.fact_id == gone and fact.fact is None for fact in await _facts_now(engine))

    await until(told, within=15, what="a tombstone", every=0.2)
    events = await read_all(engine.kafka, engine.topics.events)
    about = [record for record in events if (record.header("ce_type") or "").startswith("memory.fact.")]
    kinds = [r.header("ce_type") for r in about if r.json()["fact"]["fact_id"] == str(gone)]
    assert kinds == ["memory.fact.created", "memory.fact.deleted"]


async def test_a_deleted_fact_stays_deleted_until_it_is_said_again(engine: Engine) -> None:
    conversation = engine.conversation("I live in Porto.")
    await engine.tell(conversation)
    await engine.tables.rows(
        """UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now()
            WHERE user_id = %(user)s RETURNING 1""",
        {"user": engine.user_id},
    )
    await engine.publisher.send_json(engine.topics.replay, conversation)
    await engine.tell(engine.conversation("I live in Porto.", day=-3))
    assert (await engine.injected()).text == ""

    await engine.tell(engine.conversation("I live in Porto.", day=3_650))

    assert "Porto" in (await engine.injected()).text


async def test_the_stream_of_facts_ends_in_what_is_current(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Leeds."))
    await engine.tell(engine.conversation("I live in Porto.", day=3))

    async def is_told() -> bool:
        return {(f.fact_value, f.status) for f in _of(engine, await _facts_now(engine))} == {
            ("Leeds", "superseded"),
            ("Porto", "active"),
        }

    await until(is_told, within=15, what="both facts as they are now", every=0.2)


async def test_events_carry_every_attribute_and_each_id_once(engine: Engine) -> None:
    job = await engine.tell(engine.conversation("I live in Porto."))
    await engine.tell(engine.conversation("I live in Leeds.", day=2))

    async def is_told() -> bool:
        return "memory.fact.superseded" in in_order(await _events(engine), "ce_type")

    await until(is_told, within=15, what="the end of the first fact", every=0.2)
    events = await _events(engine)

    assert [kind for kind in in_order(events, "ce_type") if (kind or "").startswith("memory.job.")] == [
        *(f"memory.job.{change}" for change in ("queued", "started", "completed") * 2)
    ]
    for record in events:
        assert {name for name, _ in record.headers} >= _CE_NAMES
        assert record.header("ce_specversion") == "1.0"
        assert record.key == f"default:{engine.user_id}".encode()
    assert len(set(in_order(events, "ce_id"))) == len(events)
    assert str(job.job_id) in {record.json().get("job", {}).get("job_id") for record in events}


async def test_trace_and_correlation_go_from_header_to_header(engine: Engine) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    asked = uuid4().hex
    how = headers_of(traceparent=f"00-{trace}-00f067aa0ba902b7-01", correlation_id=asked)
    conversation = engine.conversation("I live in Porto.")

    await engine.publisher.send_json(engine.topics.ended, conversation, headers=how)
    await engine.client.wait_until_remembered(UUID(conversation["session_id"]), timeout=20)

    events = await _events(engine)
    assert {(record.header("traceparent") or "")[3:35] for record in events} == {trace}
    assert set(in_order(events, "correlation_id")) == {asked}


async def test_a_user_whose_facts_do_not_fit_gets_the_best_within_the_budget(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto.", "My name is Nadia.", "I work as a nurse."))

    whole = await engine.injected()
    short = await engine.injected(char_budget=len(whole.text) - 1)

    assert len(short.text) < len(whole.text)
    assert short.facts_count == whole.facts_count - 1
    assert short.omitted == {"budget": 1}
    assert whole.text.startswith(short.text.partition("\n\n")[0])


@asynccontextmanager
async def _client(engine: Engine, *, tenant_id: str) -> AsyncGenerator[MemoryClient]:
    client = MemoryClient(
        engine.kafka,
        tenant_id=tenant_id,
        topic_prefix=engine.topics.prefix,
        reply_topic=f"{engine.topics.prefix}stranger.replies",
    )
    async with client:
        yield client


async def _ask(engine: Engine, reply_to: str, asked: str, **more: str) -> None:
    how = headers_of(reply_to=reply_to, correlation_id=asked, **more)
    body = {"user_id": str(engine.user_id)}
    await engine.publisher.send_json(engine.topics.injection_requests, body, headers=how)


async def _replied(engine: Engine, topic: str) -> list[str | None]:
    """Return the correlation ids on ``topic`` once there are any, and nothing else came for a moment."""

    async def is_there() -> bool:
        return await read_all(engine.kafka, topic) != []

    await until(is_there, within=15, what="a reply", every=0.1)
    await asyncio.sleep(0.5)
    return in_order(await read_all(engine.kafka, topic), "correlation_id")


def _has(record: Read, words: str) -> bool:
    texts = (record.key or b"", record.value or b"", *(value or b"" for _, value in record.headers))
    return any(words.encode() in text for text in texts)


async def _facts_now(engine: Engine) -> list[FactNow]:
    """Return what the stream of facts gives until it has nothing more."""
    now: dict[UUID, FactNow] = {}
    stream = engine.client.facts_stream()
    try:
        while True:
            async with asyncio.timeout(1.5):
                fact = await anext(stream)
            now[fact.fact_id] = fact
    except TimeoutError:
        return list(now.values())
    finally:
        await stream.aclose()


def _of(engine: Engine, facts: list[FactNow]) -> list[Fact]:
    return [one.fact for one in facts if one.fact is not None and one.fact.user_id == engine.user_id]


async def _events(engine: Engine) -> list[Read]:
    records = await read_all(engine.kafka, engine.topics.events)
    return [record for record in records if record.key == f"default:{engine.user_id}".encode()]
