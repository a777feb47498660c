"""Do the jobs of one lane."""

import logging
from collections.abc import Mapping
from typing import Final, Protocol

from consumers.decoding import decode
from consumers.failures import Handled
from consumers.translation import order_of
from domain.errors import AfterwordError
from domain.extract_session import Ending
from domain.jobs import JobError, JobOrder
from domain.outbox import RawRecord
from schemas.jobs import ExtractionJob
from telemetry.logs import log_context

logger = logging.getLogger(__name__)

_HANDLED: Final[Mapping[Ending, Handled]] = {
    Ending.DONE: Handled.DONE,
    Ending.PUT_BACK: Handled.PUT_BACK,
    Ending.DEAD: Handled.DEAD,
}


class Extract(Protocol):
    """The use case that does a job, once."""

    async def __call__(self, order: JobOrder, record: RawRecord) -> Ending:
        """Do what ``order`` asks for; ``record`` becomes the dead letter of a job that dies."""
        ...

    async def fail(self, order: JobOrder, record: RawRecord, error: JobError) -> Ending:
        """Count a failed attempt that ended in an unforeseen way."""
        ...


class ExtractionJobHandler:
    """Decodes a record of a jobs topic and has the job done; says how that ended once it is committed."""

    def __init__(self, extract: Extract) -> None:
        self._extract = extract

    async def __call__(self, record: RawRecord) -> Handled:
        """Do the job of ``record``.

        Raises:
            InvalidInputError: the record orders nothing that is known.
            InfrastructureError: the database is away; the same record may be handled again.
        """
        order = order_of(decode(ExtractionJob, record.value), record)
        with log_context(tenant_id=order.tenant_id, user_id=order.user_id, job_id=order.job_id):
            return _HANDLED[await self._ending(order, record)]

    async def _ending(self, order: JobOrder, record: RawRecord) -> Ending:
        try:
            return await self._extract(order, record)
        except AfterwordError:
            raise
        except Exception as error:
            # A session that nobody foresaw fails by itself: it must not stall the sessions behind it.
            logger.exception("an attempt failed in an unforeseen way")
            name = type(error).__name__
            return await self._extract.fail(order, record, JobError(code="internal", message=name))
