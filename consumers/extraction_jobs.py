"""Do the jobs of one lane."""

import logging
from typing import Protocol

from consumers.decoding import decode
from consumers.translation import order_of
from domain.errors import AfterwordError
from domain.jobs import JobError, JobOrder
from domain.outbox import RawRecord
from schemas.jobs import ExtractionJob

logger = logging.getLogger(__name__)


class Extract(Protocol):
    """The use case that does a job, once."""

    async def __call__(self, order: JobOrder, record: RawRecord) -> None:
        """Do what ``order`` asks for; ``record`` becomes the dead letter of a job that dies."""
        ...

    async def fail(self, order: JobOrder, record: RawRecord, error: JobError) -> None:
        """Count a failed attempt that ended in an unforeseen way."""
        ...


class ExtractionJobHandler:
    """Decodes a record of a jobs topic and has the job done; returns when it is committed or given back."""

    def __init__(self, extract: Extract) -> None:
        self._extract = extract

    async def __call__(self, record: RawRecord) -> None:
        """Do the job of ``record``.

        Raises:
            InvalidInputError: the record orders nothing that is known.
            InfrastructureError: the database is away; the same record may be handled again.
        """
        order = order_of(decode(ExtractionJob, record.value), record)
        try:
            await self._extract(order, record)
        except AfterwordError:
            raise
        except Exception as error:
            # A session that nobody foresaw fails by itself: it must not stall the sessions behind it.
            logger.exception("an attempt failed in an unforeseen way")
            name = type(error).__name__
            await self._extract.fail(order, record, JobError(code="internal", message=name))
