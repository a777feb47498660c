"""Do the jobs of one lane."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from consumers.decoding import decode
from consumers.failures import Handled
from consumers.translation import order_of
from domain.errors import AfterwordError
from domain.extract_session import Ending
from domain.jobs import JobError, JobKind, JobOrder
from domain.outbox import RawRecord
from domain.slots import Pace
from schemas.jobs import ExtractionJob
from telemetry.logs import log_context

logger = logging.getLogger(__name__)

_HANDLED: Final[Mapping[Ending, Handled]] = {
    Ending.DONE: Handled.DONE,
    Ending.PUT_BACK: Handled.PUT_BACK,
    Ending.BEYOND_SLOTS: Handled.BEYOND_SLOTS,
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

    async def put_off(self, order: JobOrder, *, job_seconds: float) -> None:
        """Order a job again for when a slot is expected, where a job takes ``job_seconds``."""
        ...


class Share(Protocol):
    """What a lane may have of the workers (``consumers.worker_shares.LaneShare``)."""

    def admits(self, tenant: str) -> bool:
        """Say whether another job of ``tenant`` may be begun."""
        ...

    def has_enough(self, tenant: str) -> None:
        """Note that ``tenant`` has as many jobs as it may."""
        ...

    def worker(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """Hold one worker for a job of ``tenant``."""
        ...


class ExtractionJobHandler:
    """Decodes a record of a jobs topic and has the job done; says how that ended once it is committed."""

    def __init__(
        self, extract: Extract, *, share: Share, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._extract = extract
        self._share = share
        self._clock = clock
        self._pace = Pace()

    async def __call__(self, record: RawRecord) -> Handled:
        """Do the job of ``record``.

        Raises:
            InvalidInputError: the record orders nothing that is known.
            InfrastructureError: the database is away; the same record may be handled again.
        """
        order = order_of(decode(ExtractionJob, record.value), record)
        with log_context(tenant_id=order.tenant_id, user_id=order.user_id, job_id=order.job_id):
            return _HANDLED[await self._in_turn(order, record)]

    async def _in_turn(self, order: JobOrder, record: RawRecord) -> Ending:
        """Do the job when a worker is free; one that may not start now is put off and waits for none."""
        tenant = order.tenant_id
        ending = Ending.BEYOND_SLOTS
        # Only an extraction has a row that can wait for its time.
        if order.kind is not JobKind.EXTRACT or self._share.admits(tenant):
            began = self._clock()
            async with self._share.worker(tenant):
                ending = await self._ending(order, record)
            if ending is not Ending.BEYOND_SLOTS:
                self._pace.note(self._clock() - began)
                return ending
            self._share.has_enough(tenant)
        await self._extract.put_off(order, job_seconds=self._pace.seconds)
        return ending

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
