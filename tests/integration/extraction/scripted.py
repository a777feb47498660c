"""Models and embedders that do what a test says."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from clients.embeddings.hashing import HashingEmbedder
from domain.errors import EmbedderUnavailableError
from domain.extract_session import ExtractionLimits, ExtractSession
from domain.follow_up import FollowUp
from domain.jobs import JobOrder
from domain.judging import AskJudge
from domain.memory.fold import DEFAULT
from domain.memory.timeline import Rules
from domain.outbox import RawRecord
from domain.ports import EmbedderInfo, Extractor, Usage, WindowCandidates
from domain.validation import Policy
from domain.windows import Window
from storage.jobs import PostgresJobs
from tests.integration.storage.stores import MachineClock, Stores, candidate, words_of

RECORD = RawRecord(
    topic="extraction.jobs.bulk.v1", partition=0, offset=7, key=b"k", value=b'{"raw": 1}', headers=()
)
LIMITS = ExtractionLimits(
    deadline=timedelta(seconds=5), attempt_delay=timedelta(0), outage_delay=timedelta(0)
)

Step = WindowCandidates | Exception | Callable[[], Awaitable[WindowCandidates]]


def says(*pairs: tuple[str, str]) -> WindowCandidates:
    """An answer with one candidate a pair of key and value, each grounded in the first message."""
    return WindowCandidates(
        candidates=tuple(replace(candidate(key, value), excerpt=value) for key, value in pairs),
        usage=Usage(model_calls=1, tokens_in=100, tokens_out=20),
        provider="openai/scripted",
    )


class ScriptedExtractor:
    """Plays one step a call, the last one again and again."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.calls = 0

    async def extract(self, window: Window) -> WindowCandidates:
        self.calls += 1
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, WindowCandidates) else await step()


class FlakyEmbedder:
    """Is away for the first ``away`` calls."""

    def __init__(self, away: int = 0) -> None:
        self._away = away
        self._inner = HashingEmbedder()

    @property
    def info(self) -> EmbedderInfo:
        return self._inner.info

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        if self._away > 0:
            self._away -= 1
            raise EmbedderUnavailableError("the embedder is away")
        return await self._inner.embed(texts)


def worker(  # noqa: PLR0913 - what one process works with
    stores: Stores,
    extractor: Extractor,
    *,
    embedder: FlakyEmbedder | None = None,
    limits: ExtractionLimits = LIMITS,
    rules: Rules = DEFAULT,
    name: str = "w1",
    ask_judge: AskJudge | None = None,
    follow_up: FollowUp | None = None,
) -> ExtractSession:
    """The use case of one worker."""
    return ExtractSession(
        jobs=PostgresJobs(
            stores.database,
            outgoing=stores.outgoing,
            tokenizer=words_of,
            clock=MachineClock(),
            worker=name,
            rules=rules,
        ),
        extractor=extractor,
        embedder=embedder or FlakyEmbedder(),
        policy=Policy(min_confidence=rules.keep, pending_confidence=rules.hold),
        limits=limits,
        clock=MachineClock(),
        ask_judge=ask_judge,
        follow_up=follow_up,
    )


async def run(extract: ExtractSession, order: JobOrder) -> None:
    """Hand ``order`` to a worker, as its consumer would."""
    await extract(order, RECORD)
