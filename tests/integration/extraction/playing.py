"""A history played on the real database: in its order by one worker, or any way by several that die."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Final, LiteralString
from uuid import UUID

from clients.embeddings.hashing import HashingEmbedder
from consumers.translation import order_of
from domain.accept_conversation import AcceptConversation
from domain.arrivals import EndedConversation
from domain.extract_session import ExtractSession
from domain.jobs import Claim, Job, JobOrder, JobOutcome
from domain.memory.slots import slot_text
from domain.ports import EmbedderInfo, WindowCandidates
from domain.stores import Extracted
from domain.validation import Policy
from domain.windows import Window
from schemas.jobs import ExtractionJob
from schemas.wire import decode
from storage.jobs import PostgresJobs
from tests.integration.extraction.histories import DELETED_AT, Deletion, History, Owner, ReadsSayings, judge
from tests.integration.extraction.scripted import LIMITS, RECORD
from tests.integration.storage.stores import GRACE, MachineClock, Stores, words_of

_LIMITS: Final = replace(LIMITS, deadline=timedelta(seconds=60), window_chars=60)
_STOPPED: Final = 0.35
_REPEATED: Final = 0.25
_HELD_BACK: Final = 0.2

_ORDERS: Final[LiteralString] = (
    "SELECT id, value FROM lis.outbox WHERE topic LIKE 'extraction.jobs.%%' AND id > %s ORDER BY id"
)
_EMPTY: Final[LiteralString] = """
WITH a AS (DELETE FROM lis.outbox), b AS (DELETE FROM lis.extraction_jobs), c AS (DELETE FROM lis.sessions),
     d AS (DELETE FROM lis.chat_messages), e AS (DELETE FROM lis.session_windows),
     f AS (DELETE FROM lis.recall),
     g AS (DELETE FROM lis.assertions), h AS (DELETE FROM lis.judgements), i AS (DELETE FROM lis.retractions),
     j AS (DELETE FROM lis.text_vectors), k AS (DELETE FROM lis.memory_facts), l AS (DELETE FROM lis.scopes),
     m AS (DELETE FROM lis.memory_versions), n AS (DELETE FROM lis.pending_candidates),
     o AS (DELETE FROM lis.clarifications)
DELETE FROM lis.contradiction_notes"""
_DELETE: Final[LiteralString] = """
UPDATE lis.memory_facts
   SET status = 'deleted', deleted_at = %(at)s
 WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND avatar_id = %(avatar_id)s
   AND slot = %(slot)s AND norm = %(norm)s AND mode = 'holds' AND status <> 'deleted'"""
_UNDELETE: Final[LiteralString] = """
UPDATE lis.memory_facts
   SET status = 'active', deleted_at = NULL
 WHERE user_id = %(user_id)s AND tenant_id = %(tenant_id)s AND avatar_id = %(avatar_id)s
   AND slot = %(slot)s AND norm = %(norm)s AND mode = 'holds' AND status = 'deleted'"""


class StoppedError(Exception):
    """A worker's process ended here."""


class Stop(Enum):
    """Where a worker stops."""

    AFTER_CLAIM = auto()
    AFTER_MODEL = auto()
    BEFORE_COMMIT = auto()
    AFTER_COMMIT = auto()
    #: Not dead, but away until another worker has its job.
    LATE = auto()


@dataclass(slots=True, kw_only=True)
class _Attempt:
    """One delivery of an order to a worker, and where the worker stops on the way."""

    stop: Stop | None
    resumed: asyncio.Event = field(default_factory=asyncio.Event)
    overtakes: list["_Late"] = field(default_factory=list)

    async def reach(self, place: Stop) -> None:
        if self.stop is place:
            raise StoppedError
        if self.stop is Stop.LATE and place is Stop.AFTER_MODEL:
            await self.resumed.wait()
        if place is Stop.BEFORE_COMMIT:
            for one in self.overtakes:
                await one.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """A worker that is away with a job; it wakes between another worker's claim and commit of that job."""

    attempt: _Attempt
    running: "asyncio.Task[None]"

    async def end(self) -> None:
        self.attempt.resumed.set()
        await self.running


_ATTEMPT: Final[ContextVar[_Attempt]] = ContextVar("attempt")


class _Jobs(PostgresJobs):
    """The store of jobs of a worker that may stop around the commit."""

    async def commit(self, claim: Claim, extracted: Extracted, outcome: JobOutcome) -> Job:
        await _ATTEMPT.get().reach(Stop.BEFORE_COMMIT)
        job = await super().commit(claim, extracted, outcome)
        await _ATTEMPT.get().reach(Stop.AFTER_COMMIT)
        return job


class _Model(ReadsSayings):
    async def extract(self, window: Window) -> WindowCandidates:
        await _ATTEMPT.get().reach(Stop.AFTER_CLAIM)
        return await super().extract(window)


class _Embedder:
    def __init__(self) -> None:
        self._inner = HashingEmbedder()

    @property
    def info(self) -> EmbedderInfo:
        return self._inner.info

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        await _ATTEMPT.get().reach(Stop.AFTER_MODEL)
        return await self._inner.embed(texts)


class Worker:
    """Intake and extraction of one process."""

    def __init__(self, stores: Stores, name: str) -> None:
        self.stores = stores
        self.accept = AcceptConversation(intake=stores.intake(), tokenizer=words_of, grace=GRACE)
        self._extract = ExtractSession(
            jobs=_Jobs(
                stores.database,
                outgoing=stores.outgoing,
                tokenizer=words_of,
                clock=MachineClock(),
                worker=name,
            ),
            extractor=_Model(),
            embedder=_Embedder(),
            policy=Policy(),
            limits=_LIMITS,
            clock=MachineClock(),
        )

    async def deliver(self, order: JobOrder, attempt: _Attempt) -> None:
        """Do what ``order`` asks for, as far as ``attempt`` gets."""
        _ATTEMPT.set(attempt)
        await self._extract(order, RECORD)


async def forget(stores: Stores) -> None:
    """Leave nothing but the judgements of every owner."""
    await stores.run(_EMPTY)
    await judge(stores)


class Play:
    """One playing of a history over ``workers``."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._workers = workers
        self._stores = workers[0].stores
        self._taken: dict[int, JobOrder] = {}
        self._waiting: list[JobOrder] = []
        self._late: dict[UUID, list[_Late]] = defaultdict(list)

    async def in_order(self, history: History) -> frozenset[Deletion]:
        """Play it by day, by one worker; return the deletes that met a fact."""
        for conversation in history.final():
            await self._workers[0].accept(conversation)
            await self._drain()
        met = frozenset([one for one in history.deletions if await self._delete(one)])
        await self._drain()
        for one in met:
            if one.is_lifted:
                await self._undelete(one)
        await self._drain()
        return met

    async def disturbed(
        self, history: History, deletions: frozenset[Deletion], chance: random.Random
    ) -> None:
        """Play it in parts, out of order and repeatedly, by all workers at once, some of which stop."""
        arrivals = history.arrivals()
        arrivals += chance.sample(arrivals, int(_REPEATED * len(arrivals)))
        chance.shuffle(arrivals)
        to_do, to_lift = set(deletions), {one for one in deletions if one.is_lifted}
        size = -(-len(arrivals) // chance.randint(2, 4))
        for start in range(0, len(arrivals), size):
            await self._accept(arrivals[start : start + size])
            tried = sorted(to_do, key=str)
            met = await asyncio.gather(self._work(chance), *map(self._delete, tried))
            to_do -= {one for one, hit in zip(tried, met[1:], strict=True) if hit}
            to_lift -= {one for one in sorted(to_lift - to_do, key=str) if await self._undelete(one)}
        await self._drain()
        for one in sorted(to_do, key=str):
            assert await self._delete(one)
        for one in sorted(to_lift, key=str):
            assert await self._undelete(one)
        await self._drain()
        # What was delivered and done is delivered once more.
        await self._accept(chance.sample(arrivals, 5))
        self._waiting += chance.sample(list(self._taken.values()), min(len(self._taken), 10))
        await self._drain()

    async def _accept(self, arrivals: Sequence[EndedConversation]) -> None:
        """Take in ``arrivals``, over all workers at once."""
        count = len(self._workers)
        await asyncio.gather(
            *(_in_turn(worker, arrivals[number::count]) for number, worker in enumerate(self._workers))
        )

    async def _work(self, chance: random.Random) -> None:
        """Deliver most of what waits and some of what was done, each order to any worker."""
        orders = [*self._waiting, *await self._new_orders()]
        self._waiting = []
        done = sorted(self._taken)
        again = chance.sample(done, int(_REPEATED * len(done)))
        orders += [self._taken[number] for number in again]
        chance.shuffle(orders)
        held_back = int(_HELD_BACK * len(orders))
        self._waiting += orders[:held_back]
        attempts = [_attempt(chance) for _ in orders[held_back:]]
        lanes: dict[tuple[int, object], list[tuple[JobOrder, _Attempt]]] = defaultdict(list)
        for order, attempt in zip(orders[held_back:], attempts, strict=True):
            lanes[chance.randrange(len(self._workers)), order.user_id].append((order, attempt))
        await asyncio.gather(*(self._lane(self._workers[at], given) for (at, _), given in lanes.items()))

    async def _lane(self, worker: Worker, given: Sequence[tuple[JobOrder, _Attempt]]) -> None:
        for order, attempt in given:
            attempt.overtakes += self._late.get(order.job_id, [])
            running = asyncio.create_task(worker.deliver(order, attempt))
            if attempt.stop is Stop.LATE:
                self._late[order.job_id].append(_Late(attempt=attempt, running=running))
                # Its partition is another worker's by now.
                self._waiting.append(order)
                continue
            try:
                await running
            except StoppedError:
                self._waiting.append(order)

    async def _drain(self) -> None:
        """Work until nothing is left, with what is late at the end."""
        while True:
            for order in [*self._waiting, *await self._new_orders()]:
                overtakes = self._late.pop(order.job_id, [])
                await self._workers[0].deliver(order, _Attempt(stop=None, overtakes=overtakes))
                for one in overtakes:
                    await one.end()
            self._waiting = []
            late, self._late = self._late, defaultdict(list)
            for one in (one for ones in late.values() for one in ones):
                await one.end()
            if not late and not await self._new_orders(take=False):
                return

    async def _new_orders(self, *, take: bool = True) -> list[JobOrder]:
        """Return the orders that were written since, as the relay would send them."""
        rows = await self._stores.rows(_ORDERS, max(self._taken, default=0))
        new = {row["id"]: order_of(decode(ExtractionJob, row["value"]), RECORD) for row in rows}
        if take:
            self._taken |= new
        return list(new.values())

    async def _delete(self, deletion: Deletion) -> bool:
        params = {**_params(deletion), "at": DELETED_AT}
        async with self._stores.database.connection() as conn:
            return (await conn.execute(_DELETE, params)).rowcount > 0

    async def _undelete(self, deletion: Deletion) -> bool:
        async with self._stores.database.connection() as conn:
            return (await conn.execute(_UNDELETE, _params(deletion))).rowcount > 0


def _attempt(chance: random.Random) -> _Attempt:
    return _Attempt(stop=chance.choice([*Stop, Stop.LATE, Stop.LATE]) if chance.random() < _STOPPED else None)


def _params(deletion: Deletion) -> dict[str, object]:
    return {**Owner().columns, "slot": slot_text(deletion.slot), "norm": deletion.norm}


async def _in_turn(worker: Worker, arrivals: Sequence[EndedConversation]) -> None:
    for conversation in arrivals:
        await worker.accept(conversation)
