"""Natural batches: what arrives while a flush runs goes with the next one. No timer, no background task."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

Flush = Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]]


class _Waiting(Generic[Item, Result]):
    """A caller in the queue: woken with its result, or to flush for itself and those behind it."""

    __slots__ = ("item", "woken")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.woken: asyncio.Future[tuple[Result | Exception] | None] = (
            asyncio.get_running_loop().create_future()
        )


class NaturalBatch(Generic[Item, Result]):
    """Runs ``flush`` for up to ``cap`` callers at a time; the first one in the queue does it for the others.

    ``flush`` gives one result an item, in their order; an exception in the place of a result is raised at its
    caller alone. An exception that ``flush`` raises reaches every caller of that flush.
    """

    def __init__(self, flush: Flush[Item, Result], *, cap: int) -> None:
        self._flush = flush
        self._cap = cap
        self._queue: deque[_Waiting[Item, Result]] = deque()
        self._busy = False

    async def submit(self, item: Item) -> Result:
        """Return what ``flush`` gives for ``item``."""
        mine = _Waiting[Item, Result](item)
        self._queue.append(mine)
        if self._busy:
            await self._wait(mine)
        if not mine.woken.done() or mine.woken.result() is None:
            self._busy = True
            return await self._lead(mine)
        return _given(mine.woken.result())

    async def _wait(self, mine: _Waiting[Item, Result]) -> None:
        try:
            await mine.woken
        except asyncio.CancelledError:
            if mine in self._queue:
                self._queue.remove(mine)
            if mine.woken.done() and not mine.woken.cancelled() and mine.woken.result() is None:
                self._pass_on()
            raise

    async def _lead(self, mine: _Waiting[Item, Result]) -> Result:
        batch = [self._queue.popleft() for _ in range(min(self._cap, len(self._queue)))]
        others = [one for one in batch if one is not mine]
        try:
            results = await self._flush([one.item for one in batch])
        except asyncio.CancelledError:
            # The leader was cancelled, not the others: they go with the next flush.
            self._queue.extendleft(one for one in reversed(others) if not one.woken.done())
            raise
        except Exception as exc:
            for one in others:
                _wake(one, exc)
            raise
        else:
            for one, result in zip(batch, results, strict=True):
                if one is not mine:
                    _wake(one, result)
            return _given((results[batch.index(mine)],))
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let the next caller in the queue flush, if there is one."""
        self._busy = False
        for one in self._queue:
            if not one.woken.done():
                self._busy = True
                one.woken.set_result(None)
                return


def _wake(one: _Waiting[Item, Result], result: Result | Exception) -> None:
    if not one.woken.done():
        one.woken.set_result((result,))


def _given(result: tuple[Result | Exception] | None) -> Result:
    assert result is not None  # noqa: S101 - narrows the type: callers have looked
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]
