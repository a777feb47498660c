"""Logs to standard error, as JSON or for a console: ids, causes and counts, never anyone's words."""

import json
import logging
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from enum import StrEnum
from traceback import walk_tb
from typing import Final, TextIO, TypedDict, Unpack
from uuid import UUID

_CONTEXT: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("log_context", default=())

# Their lower levels print requests, records or statements, and with them what people said.
_QUIETED: Final = {
    "aiokafka": logging.WARNING,
    "asyncio": logging.WARNING,
    "faststream": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "psycopg": logging.WARNING,
    "uvicorn": logging.WARNING,
}
_REPEATING: Final = ("aiokafka", "faststream", "psycopg")
_MOST_KEYS: Final = 512
_DEEPEST_CAUSE: Final = 8
_MOST_FRAMES: Final = 12
_SHORT: Final = 2
_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


class LogFormat(StrEnum):
    """How a line looks."""

    JSON = "json"
    CONSOLE = "console"


class LogIds(TypedDict, total=False):
    """The ids that may stand beside a message; nothing that a person wrote is among them."""

    job_id: UUID | str
    session_id: UUID | str
    tenant_id: str
    user_id: UUID | str
    avatar_id: UUID | str
    correlation_id: str
    trace_id: str
    topic: str
    partition: int
    offset: int
    role: str
    instance: str


@contextmanager
def log_context(**ids: Unpack[LogIds]) -> Generator[None]:
    """Put ``ids`` beside every message that this task and its children log inside."""
    now = dict(_CONTEXT.get())
    now.update((name, _one_line(str(value))) for name, value in ids.items())
    token = _CONTEXT.set(tuple(now.items()))
    try:
        yield
    finally:
        _CONTEXT.reset(token)


class RepetitionLimit(logging.Filter):
    """Let one line a minute through for each message of a logger that repeats itself; then say how many went.

    A broker that is away makes its client write dozens of equal lines a second, and a database that is makes
    its pool write one for each connection and try.
    """

    def __init__(
        self,
        *,
        loggers: tuple[str, ...] = _REPEATING,
        interval: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._loggers = loggers
        self._interval = interval
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether ``record`` is written."""
        if not record.name.startswith(self._loggers):
            return True
        key = (record.name, str(record.msg))
        now = self._clock()
        last, left_out = self._seen.get(key, (None, 0))
        if last is not None and now - last < self._interval:
            self._seen[key] = (last, left_out + 1)
            return False
        self._seen.pop(key, None)
        while len(self._seen) >= _MOST_KEYS:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (now, 0)
        if left_out:
            record.left_out = left_out
        return True


class LineFormatter(logging.Formatter):
    """One line a record, with its ids; of an exception the types, the places, and only quotable messages.

    The message of an exception from elsewhere may quote what it failed on, a validation error always does. So
    only types in ``quotable`` are quoted, and the text of any other is cut out of the message as well.
    """

    def __init__(
        self, log_format: LogFormat, *, quotable: tuple[type[BaseException], ...] = (OSError,)
    ) -> None:
        super().__init__()
        self._log_format = log_format
        self._quotable = quotable

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of ``record``."""
        fields = self._fields(record)
        if self._log_format is LogFormat.JSON:
            return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))
        head = (
            f"{fields.pop('time')} {fields.pop('level'):<7} {fields.pop('logger')}: {fields.pop('message')}"
        )
        ids = " ".join(f"{name}={value}" for name, value in fields.items())
        return f"{head}  [{ids}]" if ids else head

    def _fields(self, record: logging.LogRecord) -> dict[str, str | int]:
        exception = record.exc_info[1] if record.exc_info else None
        fields: dict[str, str | int] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _one_line(self._without_words(record.getMessage(), exception)),
            **dict(_CONTEXT.get()),
        }
        left_out = record.__dict__.get("left_out")
        if isinstance(left_out, int):
            fields["left_out"] = left_out
        if exception is not None:
            fields["error"] = _one_line(" <- ".join(self._told(cause) for cause in _causes(exception)))
            fields["at"] = _places(exception)
        return fields

    def _told(self, exception: BaseException) -> str:
        name = type(exception).__name__
        return f"{name}: {exception}" if isinstance(exception, self._quotable) else name

    def _without_words(self, message: str, exception: BaseException | None) -> str:
        for cause in _causes(exception) if exception is not None else ():
            if not isinstance(cause, self._quotable):
                for words in (repr(cause), str(cause)):
                    message = message.replace(words, type(cause).__name__) if len(words) > _SHORT else message
        return message


def configure_logging(
    *,
    level: str,
    log_format: LogFormat,
    stream: TextIO | None = None,
    quotable: tuple[type[BaseException], ...] = (OSError,),
) -> None:
    """Send every logger's records of ``level`` and above to standard error, in ``log_format``.

    Args:
        level: a level's name; other libraries' loggers stay at WARNING at least.
        log_format: JSON for machines, console for people.
        stream: written to instead of standard error.
        quotable: exceptions whose messages never hold anybody's words.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(LineFormatter(log_format, quotable=quotable))
    handler.addFilter(RepetitionLimit())
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name, lowest in _QUIETED.items():
        logging.getLogger(name).setLevel(max(lowest, root.level))
    logging.captureWarnings(capture=True)


def _causes(exception: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = exception
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            return
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            yield from (inner for member in cause.exceptions for inner in _causes(member))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _places(exception: BaseException) -> str:
    frames = [
        f"{frame.f_code.co_filename.rsplit('/', 1)[-1]}:{line} {frame.f_code.co_name}"
        for frame, line in walk_tb(exception.__traceback__)
    ]
    return " > ".join(frames[-_MOST_FRAMES:])


def _one_line(text: str) -> str:
    return text.strip().translate(_CONTROLS)
