import asyncio
import io
import json
import logging
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from telemetry.logs import LineFormatter, LogFormat, RepetitionLimit, configure_logging, log_context

WORDS = "anna lives in kyiv"
logger = logging.getLogger("domain.something")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _Wanted(BaseModel):
    number: int


def _fail_at_the_broker() -> None:
    try:
        int(WORDS)
    except ValueError as cause:
        raise ConnectionError("broker is away") from cause


def _fail_in_a_group() -> None:
    raise ExceptionGroup("several", [ValueError(WORDS)])


@pytest.fixture
def stream() -> Generator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in ("aiokafka", "httpx", "asyncio", "psycopg")}
    stream = io.StringIO()
    configure_logging(level="INFO", log_format=LogFormat.JSON, stream=stream, quotable=(OSError,))
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def _record(message: str, name: str = "aiokafka.client") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, __file__, 1, message, None, None)


def test_a_line_has_time_level_logger_message_and_the_ids_of_its_task(stream: io.StringIO) -> None:
    with log_context(job_id="j1", topic="conversation.ended.v1", offset=7):
        logger.info("done in %s", 3)

    (line,) = _lines(stream)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "domain.something",
        "message": "done in 3",
        "job_id": "j1",
        "topic": "conversation.ended.v1",
        "offset": "7",
    }


@pytest.mark.anyio
async def test_ids_of_tasks_at_once_do_not_mix(stream: io.StringIO) -> None:
    async def work(job: str) -> None:
        with log_context(job_id=job):
            await asyncio.sleep(0)
            logger.info("%s", job)

    async with asyncio.TaskGroup() as group:
        for job in ("a", "b", "c"):
            group.create_task(work(job))
    logger.info("after")

    *inside, after = _lines(stream)
    assert all(line["job_id"] == line["message"] for line in inside)
    assert "job_id" not in after


def test_what_a_validation_error_quotes_is_not_logged(stream: io.StringIO) -> None:
    try:
        _Wanted.model_validate({"number": WORDS})
    except ValidationError as exc:
        logger.exception("broken: %s", exc)  # noqa: TRY401 - the careless way on purpose

    assert WORDS not in stream.getvalue()
    (line,) = _lines(stream)
    assert line["error"] == "ValidationError"
    assert "test_what_a_validation_error_quotes" in line["at"]


def test_what_a_cause_quotes_is_not_logged(stream: io.StringIO) -> None:
    try:
        _fail_at_the_broker()
    except ConnectionError:
        logger.exception("waiting")

    assert WORDS not in stream.getvalue()
    assert _lines(stream)[0]["error"] == "ConnectionError: broker is away <- ValueError"


def test_what_a_member_of_a_group_quotes_is_not_logged(stream: io.StringIO) -> None:
    try:
        _fail_in_a_group()
    except ExceptionGroup:
        logger.exception("failed")

    assert WORDS not in stream.getvalue()
    assert _lines(stream)[0]["error"] == "ExceptionGroup <- ValueError"


def test_other_libraries_tell_nothing_below_a_warning(stream: io.StringIO) -> None:
    logging.getLogger("aiokafka.consumer").debug(WORDS)
    logging.getLogger("httpx").info("GET http://x/?query=%s", WORDS)

    assert stream.getvalue() == ""


def test_a_console_line_cannot_be_forged_by_a_line_end() -> None:
    formatter = LineFormatter(LogFormat.CONSOLE)

    line = formatter.format(_record("one\nERROR two\x1b[31m", "domain.x"))

    assert "\n" not in line
    assert "\x1b" not in line


@given(st.text())
def test_any_message_is_one_line_in_either_format(message: str) -> None:
    for log_format in LogFormat:
        line = LineFormatter(log_format).format(_record(message))

        assert not set(line) & set("\n\r\x1b\x85\x00")


def test_a_broker_that_is_away_makes_one_line_a_minute() -> None:
    clock = Clock()
    limit = RepetitionLimit(clock=clock)

    written = 0
    for _ in range(200):
        written += limit.filter(_record("Unable connect to node"))
        clock.now += 0.9

    assert written == 3


def test_the_next_line_tells_how_many_were_left_out() -> None:
    clock = Clock()
    limit = RepetitionLimit(clock=clock)
    formatter = LineFormatter(LogFormat.JSON)

    for _ in range(5):
        limit.filter(_record("Unable connect to node"))
    clock.now += 61
    record = _record("Unable connect to node")

    assert limit.filter(record)
    assert json.loads(formatter.format(record))["left_out"] == 4


def test_our_own_lines_and_other_messages_are_never_held_back() -> None:
    limit = RepetitionLimit(clock=Clock())

    assert limit.filter(_record("Unable connect to node"))
    assert limit.filter(_record("Heartbeat failed"))
    assert all(limit.filter(_record("job is dead", "domain.jobs")) for _ in range(3))
