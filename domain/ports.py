"""What the use cases need from outside, as protocols. Adapters: ``storage/`` and ``clients/``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.candidates import Candidate
from domain.memory.assertions import Verdict
from domain.memory.questions import Question
from domain.windows import Window


class Clock(Protocol):
    """The time of this machine; never the time of a fact."""

    def now(self) -> datetime:
        """Return the current time with a zone."""
        ...


class LanguageGuesser(Protocol):
    """Guesses which languages a text may be in."""

    def guess(self, text: str) -> dict[str, float]:
        """Return ISO 639-1 codes with their probability, the best five at most."""
        ...


class Stemmer(Protocol):
    """Cuts words to their stems."""

    def stem(self, words: Sequence[str], language: str) -> list[str]:
        """Return the stems of ``words``; words of a language without a stemmer come back as they are."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallText:
    """The words under which a message or a fact can be found: distinct tokens and their number."""

    tokens: tuple[str, ...]
    length: int


class RecallTokenizer(Protocol):
    """Makes the words under which a text can be found (docs/architecture/recall.md)."""

    def __call__(self, text: str, language: str | None) -> RecallText:
        """Return the words of ``text``; ``language`` is the user's usual one, which breaks ties."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    """What belongs to an embedder and is stored beside its vectors."""

    model: str
    dimensions: int
    near_duplicate_distance: float
    max_chars: int


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def info(self) -> EmbedderInfo:
        """The model behind the vectors."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        """Return one vector a text, little-endian float16, ``info.dimensions`` long.

        Raises:
            EmbedderUnavailableError: the embedder did not answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one window cost."""

    model_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return what both cost."""
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCandidates:
    """What one window gave; ``degraded`` when rules stood in for a model that could not be reached."""

    candidates: tuple[Candidate, ...]
    usage: Usage = Usage()
    provider: str = "rules"
    degraded: bool = False


class Extractor(Protocol):
    """Reads one window and proposes candidates."""

    async def extract(self, window: Window) -> WindowCandidates:
        """Return the candidates of ``window``, unchecked.

        Raises:
            ModelUnavailableError: no provider could be reached.
            UnreadableAnswerError: providers answered, none of them readably.
            ModelRefusedError: every provider refused for good.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a judge could tell; a question without a verdict stays open."""

    verdicts: Mapping[Question, Verdict]
    usage: Usage = Usage()
    judge: str = ""


class Judge(Protocol):
    """Tells how two values of one slot relate."""

    async def judge(self, questions: Sequence[Question]) -> Judged:
        """Answer ``questions``, all in one call; ``Merge`` only with a text that both sides bear out.

        Raises:
            ModelUnavailableError: nobody could be reached.
            UnreadableAnswerError: somebody answered, and not readably.
            ModelRefusedError: refused for good.
        """
        ...
