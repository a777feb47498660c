"""What becomes of a record whose handling fails."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from consumers.failure_limit import FailureLimit, TooManyFailuresError
from consumers.failures import FailureGuard, Handled
from domain.errors import (
    AfterwordError,
    ClaimLostError,
    EmbedderUnavailableError,
    InvalidInputError,
    NotFoundError,
    StorageUnavailableError,
    UndecodableError,
)
from domain.outbox import RawRecord
from telemetry.logs import LineFormatter, LogFormat

pytestmark = pytest.mark.anyio


def record(offset: int = 0) -> RawRecord:
    return RawRecord(topic="t", partition=0, offset=offset, key=b"k", value=b"{", headers=(("h", b"\xff"),))


class Graveyard:
    """Dead letters in memory; ``away`` calls fail first."""

    def __init__(self, away: int = 0) -> None:
        self.away = away
        self.letters: list[tuple[RawRecord, str, str, int]] = []

    async def bury(self, record: RawRecord, *, error_class: str, reason: str, attempts: int) -> bool:
        if self.away:
            self.away -= 1
            raise StorageUnavailableError("away")
        self.letters.append((record, error_class, reason, attempts))
        return True


class Script:
    """A handler that raises or says what it is told to, call by call, and then succeeds."""

    def __init__(self, *ends: Exception | Handled) -> None:
        self._ends = list(ends)
        self.calls = 0

    async def __call__(self, record: RawRecord) -> Handled | None:
        self.calls += 1
        end = self._ends.pop(0) if self._ends else None
        if isinstance(end, Exception):
            raise end
        return end


class Waits:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def guard(
    handler: Script,
    graveyard: Graveyard,
    *,
    limit: FailureLimit | None = None,
    sleep: Waits | None = None,
    on_handled: Callable[[RawRecord, Handled], None] = lambda _record, _handled: None,
) -> FailureGuard:
    return FailureGuard(
        handler,
        dead_letters=graveyard,
        limit=limit or FailureLimit(),
        sleep=sleep or Waits(),
        on_handled=on_handled,
    )


async def test_an_outage_waits_in_place_and_counts_as_no_attempt() -> None:
    script, graveyard, waits = Script(*[StorageUnavailableError("away")] * 30), Graveyard(), Waits()

    await guard(script, graveyard, sleep=waits)(record())

    assert script.calls == 31
    assert graveyard.letters == []
    assert max(waits.seconds) <= 15.0


@pytest.mark.parametrize(
    ("error", "error_class"),
    [
        (UndecodableError("no JSON"), "undecodable"),
        (InvalidInputError("user_id: missing", field="user_id"), "invalid"),
        (NotFoundError("no such job"), "permanent"),
    ],
)
async def test_a_record_that_can_never_be_handled_is_buried_once_as_it_came(
    error: AfterwordError, error_class: str
) -> None:
    script, graveyard = Script(error), Graveyard(away=2)

    await guard(script, graveyard)(record())

    assert [(letter[0], letter[1], letter[3]) for letter in graveyard.letters] == [(record(), error_class, 1)]


async def test_a_failure_that_may_pass_is_tried_three_times() -> None:
    script, graveyard = Script(*[EmbedderUnavailableError("away")] * 3), Graveyard()

    await guard(script, graveyard)(record())

    assert [letter[1:] for letter in graveyard.letters] == [
        ("exhausted", "EmbedderUnavailableError: away", 3)
    ]


async def test_a_lost_claim_is_no_failure() -> None:
    graveyard = Graveyard()

    await guard(Script(ClaimLostError("other")), graveyard)(record())

    assert graveyard.letters == []


async def test_a_bug_is_let_through_and_nothing_is_buried() -> None:
    graveyard = Graveyard()

    with pytest.raises(ZeroDivisionError):
        await guard(Script(ZeroDivisionError()), graveyard)(record())

    assert graveyard.letters == []


async def test_when_most_records_fail_the_consumer_stops_instead_of_burying_the_topic() -> None:
    graveyard, limit = Graveyard(), FailureLimit()
    failing = guard(Script(*[InvalidInputError("bad")] * 60), graveyard, limit=limit)

    for offset in range(50):
        await failing(record(offset))
    with pytest.raises(TooManyFailuresError):
        await failing(record(50))
    with pytest.raises(TooManyFailuresError):
        await failing(record(51))

    assert len(graveyard.letters) == 50
    assert limit.reached


async def test_half_of_the_records_may_fail() -> None:
    graveyard, limit = Graveyard(), FailureLimit()

    for offset in range(200):
        errors = [InvalidInputError("bad")] if offset % 2 else []
        await guard(Script(*errors), graveyard, limit=limit)(record(offset))

    assert len(graveyard.letters) == 100
    assert not limit.reached


async def test_dead_jobs_count_as_failures_and_those_put_back_as_nothing() -> None:
    graveyard, told = Graveyard(), list[Handled]()
    ends = [Handled.PUT_BACK, Handled.PUT_BACK, Handled.DEAD] * 51
    failing = guard(Script(*ends), graveyard, on_handled=lambda _record, handled: told.append(handled))

    for offset in range(len(ends) - 1):
        await failing(record(offset))
    with pytest.raises(TooManyFailuresError, match="more than half of the last 100 messages failed"):
        await failing(record(len(ends)))

    assert told == ends
    assert graveyard.letters == []


async def test_a_few_failures_after_a_start_do_not_stop_the_consumer() -> None:
    graveyard = Graveyard()
    failing = guard(Script(*[InvalidInputError("bad")] * 50), graveyard)

    for offset in range(60):
        await failing(record(offset))

    assert len(graveyard.letters) == 50


async def test_every_line_about_a_record_names_its_place(caplog: pytest.LogCaptureFixture) -> None:
    formatter = LineFormatter(LogFormat.CONSOLE)
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(formatter.format(record))

    logger, handler = logging.getLogger("consumers.failures"), Lines()
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, logger="consumers.failures"):
            await guard(Script(StorageUnavailableError("away")), Graveyard())(record(7))
    finally:
        logger.removeHandler(handler)

    assert len(lines) == 2
    assert all("topic=t partition=0 offset=7" in line for line in lines)


@pytest.mark.parametrize(
    "error", [None, StorageUnavailableError("their words"), InvalidInputError("no user", field="user_id")]
)
async def test_no_line_about_a_record_quotes_it(
    caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    spoken = RawRecord(topic="t", partition=0, offset=1, key=b"k", value=b"their words", headers=())
    script = Script(*[error] if error is not None else [])

    with caplog.at_level(logging.DEBUG):
        await guard(script, Graveyard())(spoken)

    assert caplog.messages
    assert "their words" not in caplog.text


async def test_letters_that_a_person_sent_again_and_that_die_again_stop_no_consumer() -> None:
    graveyard, limit = Graveyard(), FailureLimit()
    failing = guard(Script(*[InvalidInputError("bad")] * 60), graveyard, limit=limit)
    names = {"dlq-topic": b"t", "dlq-partition": b"0", "dlq-offset": b"1", "dlq-replays": b"1"}

    for offset in range(60):
        await failing(replace(record(offset), headers=tuple(names.items())))

    assert len(graveyard.letters) == 60
