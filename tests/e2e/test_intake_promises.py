"""What the service promises of conversations that come in, through the front door."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.e2e.conftest import GRACE_S, MORNING, Engine
from tests.support.publishing import Outgoing, Read, headers_of, read_all, until

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


async def test_what_the_user_says_is_remembered_and_injected(engine: Engine) -> None:
    job = await engine.tell(engine.conversation("My name is Nadia.", "I live in Porto."))

    assert job.status == "completed"
    assert job.result is not None
    assert job.result.provider == "rules"
    assert "Porto" in (await engine.values()).values()
    reply = await engine.injected()
    assert reply.text.startswith("## User Memory\n- [")
    assert reply.facts_count == len(reply.included) >= 2


async def test_the_same_conversation_twice_changes_nothing(engine: Engine) -> None:
    conversation = engine.conversation("I live in Porto.")
    await engine.tell(conversation)
    before = await engine.tables.facts(user_id=engine.user_id)

    await engine.tell(conversation)
    await engine.settled()

    assert await engine.tables.facts(user_id=engine.user_id) == before
    job = await engine.client.job(session_id=UUID(conversation["session_id"]))
    assert (job.revision, job.attempts) == (1, 1)


async def test_an_old_conversation_that_comes_late_changes_nothing_current(engine: Engine) -> None:
    await engine.tell(engine.conversation("I live in Porto.", day=5))
    await engine.tell(engine.conversation("I live in Leeds.", day=1))

    assert "Porto" in (await engine.values()).values()
    assert "Leeds" not in (await engine.values()).values()
    past = await engine.client.facts(user=engine.user_id, status="superseded")
    assert [fact.fact_value for fact in past.items] == ["Leeds"]


async def test_a_user_known_by_another_name_is_one_user(engine: Engine) -> None:
    name = f"engine-user-{uuid4().hex}"
    first = engine.conversation("My name is Nadia.", user_id=None, external_user_id=name)
    second = engine.conversation("I live in Porto.", user_id=None, external_user_id=name, day=1)

    jobs = [await engine.tell(first), await engine.tell(second)]

    assert jobs[0].user_id == jobs[1].user_id
    assert len(await engine.values(user=name)) == len(await engine.values(user=jobs[0].user_id)) >= 2
    assert (await engine.injected(user=name)).facts_count >= 2


async def test_asking_about_a_user_never_seen_creates_nothing(engine: Engine) -> None:
    name = f"nobody-{uuid4().hex}"

    reply = await engine.injected(user=name)

    assert (reply.text, reply.facts_count, reply.applied) == ("", 0, False)
    assert await engine.values(user=name) == {}
    known = await engine.tables.rows(
        "SELECT user_id FROM lis.proxy_users WHERE external_user_id = %(name)s", {"name": name}
    )
    assert known == []


async def test_a_plain_transcript_is_read_turn_by_turn(engine: Engine) -> None:
    transcript = "User: I live in Porto.\nAssistant: I live in Leeds.\nUser: Lovely."

    await engine.tell(engine.conversation(messages=None, transcript=transcript))

    values = (await engine.values()).values()
    assert "Porto" in values
    assert "Leeds" not in values


async def test_messages_that_came_before_need_not_come_again(engine: Engine) -> None:
    session = uuid4()
    await _post(engine, session, 0, "My name is Nadia.")
    await _post(engine, session, 1, "I live in Porto.")

    await engine.tell(engine.conversation(messages=None, session_id=str(session), message_count=2))

    assert "Porto" in (await engine.values()).values()


async def test_an_end_waits_for_the_messages_that_it_counts(engine: Engine) -> None:
    session = uuid4()
    ended = engine.conversation(messages=None, session_id=str(session), message_count=2)
    await engine.publisher.send_json(engine.topics.ended, ended)
    await _post(engine, session, 0, "My name is Nadia.")
    await _post(engine, session, 1, "I live in Porto.")

    job = await engine.client.wait_until_remembered(session, timeout=20)

    assert job.status == "completed"
    assert len(await engine.values()) >= 2


async def test_a_message_after_the_end_is_a_revision(engine: Engine) -> None:
    conversation = engine.conversation("My name is Nadia.")
    await engine.tell(conversation)
    session = UUID(conversation["session_id"])

    await _post(engine, session, 1, "I live in Porto.")
    job = await engine.revision_of(session, 2)

    assert job.status == "completed"
    assert "Porto" in (await engine.values()).values()


async def test_an_end_that_stays_without_a_message_is_gated_as_empty(engine: Engine) -> None:
    waited_for = await engine.tell(engine.conversation(messages=None))
    said_to_be = await engine.tell(engine.conversation())

    for job in (waited_for, said_to_be):
        assert (job.status, job.gate) == ("gated", "empty")
    assert waited_for.finished_at is not None
    assert waited_for.finished_at - waited_for.queued_at >= timedelta(seconds=GRACE_S / 2)


async def test_more_messages_are_a_revision_that_replaces(engine: Engine) -> None:
    session = uuid4()
    await engine.tell(engine.conversation("I live in Porto.", session_id=str(session)))

    longer = engine.conversation(
        "I live in Porto.",
        "My name is Nadia.",
        session_id=str(session),
        ended_at=(MORNING + timedelta(hours=2)).isoformat(),
    )
    await engine.publisher.send_json(engine.topics.ended, longer)
    await engine.revision_of(session, 2)

    facts = await engine.tables.facts(user_id=engine.user_id)
    assert {"Porto", "Nadia"} <= {row["fact_value"] for row in facts}
    # The same session saying it again is no second session that says it.
    assert {row["reinforced"] for row in facts} == {0}


async def test_other_words_under_a_known_id_are_a_conflict_for_a_person_to_see(engine: Engine) -> None:
    session = uuid4()
    await engine.tell(engine.conversation("I live in Porto.", session_id=str(session)))

    await engine.publisher.send_json(
        engine.topics.ended, engine.conversation("I live in Leeds.", session_id=str(session))
    )
    await engine.settled()

    assert "Leeds" not in (await engine.values()).values()
    noted = await engine.tables.rows(
        "SELECT conflict FROM lis.sessions WHERE session_id = %(session)s", {"session": session}
    )
    assert noted[0]["conflict"] is not None


async def test_a_session_of_another_user_is_refused(engine: Engine) -> None:
    session = uuid4()
    await engine.tell(engine.conversation("I live in Porto.", session_id=str(session)))
    other = engine.conversation("I live in Leeds.", session_id=str(session), user_id=str(uuid4()), day=1)

    await engine.publisher.send_json(engine.topics.ended, other)
    letter = await _dead_letter(engine, str(other["user_id"]))

    assert letter.header("dlq-error-class") == "permanent"
    assert await engine.values(user=UUID(other["user_id"])) == {}


async def test_the_replay_topic_fills_in_what_is_missing(engine: Engine) -> None:
    known = engine.conversation("I live in Porto.", day=2)
    await engine.tell(known)
    missing = engine.conversation("I live in Leeds.", day=1)
    how = headers_of(**{"replay-id": "r1", "replay-mode": "fill"})

    for conversation in (known, missing):
        await engine.publisher.send_json(engine.topics.replay, conversation, headers=how)
    job = await engine.client.wait_until_remembered(UUID(missing["session_id"]), timeout=20)

    assert job.generation == "live"
    facts = await engine.tables.facts(user_id=engine.user_id)
    assert {(row["fact_value"], row["status"]) for row in facts} == {
        ("Porto", "active"),
        ("Leeds", "superseded"),
    }
    assert (await engine.client.job(session_id=UUID(known["session_id"]))).revision == 1


@pytest.mark.parametrize(
    ("value", "error_class"),
    [
        (b"\xff\xfe{not json", "undecodable"),
        (b'{"session_id": "no uuid"}', "invalid"),
        (
            b'{"session_id": "6f2c0a52-8f4e-4d6f-9a2e-1f8a4c1d2b3e", "ended_at": "2026-03-02T09:00:00Z"}',
            "invalid",
        ),
        (None, "undecodable"),
    ],
    ids=["no json", "no session id", "no user", "no value"],
)
async def test_what_cannot_be_taken_in_is_one_dead_letter_byte_for_byte(
    engine: Engine, value: bytes | None, error_class: str
) -> None:
    key = f"broken-{uuid4().hex}"
    headers = (("traceparent", b"\xff\xfe"), ("x-mine", b"\x00\x80bytes"), ("x-mine", b"twice"))
    place = await engine.publisher.send(
        Outgoing(topic=engine.topics.ended, value=value, key=key.encode(), headers=headers)
    )

    letter = await _dead_letter(engine, key)

    assert letter.value == value
    assert letter.headers[:3] == headers
    assert letter.header("dlq-topic") == engine.topics.ended
    assert (int(letter.header("dlq-partition") or -1), int(letter.header("dlq-offset") or -1)) == place[0]
    assert letter.header("dlq-error-class") == error_class
    assert letter.header("dlq-attempts") == "1"


async def test_a_broken_record_holds_nothing_up(engine: Engine) -> None:
    conversation = engine.conversation("I live in Porto.")
    key = f"default:{engine.user_id}".encode()

    await engine.publisher.send(Outgoing(topic=engine.topics.ended, value=b"{", key=key))
    job = await engine.tell(conversation)

    assert job.status == "completed"


async def _post(engine: Engine, session: UUID, position: int, content: str) -> None:
    await engine.client.post_message(
        user=engine.user_id,
        session_id=session,
        position=position,
        role="user",
        content=content,
        sent_at=MORNING + timedelta(minutes=position),
    )


async def _dead_letter(engine: Engine, about: str) -> Read:
    """Return the one dead letter whose key names ``about``."""

    async def found() -> bool:
        return bool(await _letters(engine, about))

    await until(found, within=15, what="a dead letter", every=0.2)
    letters = await _letters(engine, about)
    assert len(letters) == 1
    return letters[0]


async def _letters(engine: Engine, about: str) -> list[Read]:
    letters = await read_all(engine.kafka, engine.topics.dead_letters)
    return [letter for letter in letters if about in (letter.key or b"").decode()]
