"""Dead letters: the record as it came, and why it could not be processed."""

from datetime import datetime
from typing import Final

from domain.outbox import OutboxRecord, RawRecord
from schemas import headers
from schemas.topics import Topics

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
        kept = tuple(pair for pair in record.headers if not pair[0].startswith(headers.DLQ_PREFIX))
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
