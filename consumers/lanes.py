"""Run the records of partitions: one at a time per key, many keys at once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Final

from consumers.failure_limit import TooManyFailuresError
from consumers.partitions import Partition
from domain.outbox import RawRecord

logger = logging.getLogger(__name__)

Handler = Callable[[RawRecord], Awaitable[None]]

_CANCEL_SECONDS: Final = 2.0


class Lanes:
    """Starts a task per key with work; the tasks live in the group of the consumer that polls."""

    def __init__(
        self,
        handler: Handler,
        group: asyncio.TaskGroup,
        *,
        on_progress: Callable[[], None],
        on_giving_up: Callable[[TooManyFailuresError], None],
    ) -> None:
        self._handler = handler
        self._group = group
        self._on_progress = on_progress
        self._on_giving_up = on_giving_up

    def start(self, partition: Partition, key: Hashable) -> None:
        """Work on the records of ``key`` until there are none."""
        task = self._group.create_task(self._run(partition, key))
        partition.tasks.add(task)
        task.add_done_callback(partition.tasks.discard)

    async def drain(self, partitions: Iterable[Partition], *, seconds: float) -> None:
        """Let what runs finish within ``seconds``, then cancel it; nothing waiting is started any more."""
        partitions = list(partitions)
        for partition in partitions:
            partition.close()
        running = {task for partition in partitions for task in partition.tasks}
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            _, stuck = await asyncio.wait(late, timeout=_CANCEL_SECONDS)
            logger.warning("%d handlers were cancelled, %d of them have not ended", len(late), len(stuck))

    async def _run(self, partition: Partition, key: Hashable) -> None:
        while (record := partition.next_of(key)) is not None:
            if not await self._handled(record):
                partition.stall()
                self._on_progress()
                return
            partition.finished(key)
            self._on_progress()

    async def _handled(self, record: RawRecord) -> bool:
        try:
            await self._handler(record)
        except TooManyFailuresError as error:
            self._on_giving_up(error)
            return False
        except Exception as error:  # noqa: BLE001 - the last stop: a bug must stall its partition, not skip or kill
            logger.error(  # noqa: TRY400 - the error's own text may have the user's words
                "a handler leaked %s at %s; partition %s of %s stalls at offset %s",
                type(error).__name__,
                _place(error),
                record.partition,
                record.topic,
                record.offset,
            )
            return False
        return True


def _place(error: BaseException) -> str:
    """Return where ``error`` was raised, without anything it says."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "an unknown place" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
