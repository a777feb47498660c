"""Dead letters: the record as it came, and why it could not be processed."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from domain.outbox import OutboxRecord, RawRecord
from schemas import headers
from schemas.topics import LANES, Topics

_MOST_REASON_CHARS: Final = 500


class DeadLetterEncoder:
    """Makes the record for the dead-letter topic: key, value and headers unchanged, ours behind them."""

    def __init__(self, topics: Topics) -> None:
        self._topic = topics.dead_letters

    def __call__(
        self,
        record: RawRecord,
        *,
        error_class: str,
        reason: str,
        attempts: int,
        first_failed_at: datetime,
        replays: int = 0,
    ) -> OutboxRecord:
        """Return the dead letter of ``record``; its ``dlq-`` headers, from an earlier death, are replaced."""
        kept = _own_headers(record)
        why = {
            headers.DLQ_TOPIC: record.topic,
            headers.DLQ_PARTITION: str(record.partition),
            headers.DLQ_OFFSET: str(record.offset),
            headers.DLQ_ERROR: reason[:_MOST_REASON_CHARS],
            headers.DLQ_ERROR_CLASS: error_class,
            headers.DLQ_ATTEMPTS: str(attempts),
            headers.DLQ_FIRST_FAILED_AT: first_failed_at.isoformat(),
            headers.DLQ_REPLAYS: str(replays),
        }
        ours = tuple((name, value.encode()) for name, value in why.items())
        return OutboxRecord(topic=self._topic, key=record.key, value=record.value, headers=kept + ours)


class RedriveEncoder:
    """Makes the record that a dead letter is sent again as: its own bytes, never for the live topic."""

    def __init__(self, topics: Topics) -> None:
        self._messages = topics.messages
        self._replay = topics.replay
        self._lanes = {
            **dict.fromkeys((topics.ended, topics.messages, topics.replay), topics.replay),
            **{topics.jobs(lane): topics.jobs("replay") for lane in LANES},
        }

    @property
    def lanes(self) -> Collection[str]:
        """The topics whose dead letters have a lane."""
        return self._lanes.keys()

    def __call__(self, record: RawRecord, *, replays: int) -> OutboxRecord:
        """Return ``record``, that died and is sent again for the ``replays``-th time, for its lane.

        Key, value and headers are its own; the ``dlq-`` headers say where it was first read. A posted message
        is named as one, for the topic no longer says it, and keeps the time of its sending, which may be all
        the time it has.
        """
        about = {
            headers.DLQ_TOPIC: record.topic,
            headers.DLQ_PARTITION: str(record.partition),
            headers.DLQ_OFFSET: str(record.offset),
            headers.DLQ_REPLAYS: str(replays),
        }
        if record.topic == self._messages or self._was_message(record):
            about[headers.DLQ_KIND] = headers.MESSAGE
        if record.timestamp is not None:
            about[headers.DLQ_SENT_MS] = str(int(record.timestamp.timestamp() * 1000))
        ours = tuple((name, value.encode()) for name, value in about.items())
        lane = self._lanes[record.topic]
        return OutboxRecord(
            topic=lane, key=record.key, value=record.value, headers=_own_headers(record) + ours
        )

    def _was_message(self, record: RawRecord) -> bool:
        return (
            record.topic == self._replay and headers.text(record.headers, headers.DLQ_KIND) == headers.MESSAGE
        )


def _own_headers(record: RawRecord) -> headers.Headers:
    return tuple(pair for pair in record.headers if not pair[0].startswith(headers.DLQ_PREFIX))
