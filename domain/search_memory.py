"""Find what a scope's memory holds about a question (docs/architecture/retrieval.md)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Protocol
from uuid import UUID

from domain.conversation import UserRef
from domain.errors import EmbedderUnavailableError, InvalidInputError
from domain.memory.facts import FactRow
from domain.named_periods import Period, named_periods
from domain.ports import Clock, Embedder
from domain.recall_tokens import RecallTokenizer
from domain.spelling import one_typo_away

MOST_FOUND: Final = 50
_MOST_WORDS: Final = 64
_SHORTEST_MISSPELT: Final = 4
_VECTOR_SHARE: Final = 0.35
_LEAST_SCORE: Final = 0.15
_LEAST_OF_BEST: Final = 0.5
_NAMED: Final = 0.3
_WHOLE_QUESTION: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A question to the memory of one scope; ``topics`` names what it is about, where the caller knows."""

    tenant_id: str
    user: UserRef
    avatar_id: UUID
    query: str
    categories: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    limit: int
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as the database is asked: distinct words, a vector or None, and the periods it names.

    ``share`` is the part of a score that the vector has; without one the words are alone.
    """

    tenant_id: str
    user: UserRef
    avatar_id: UUID
    words: tuple[str, ...]
    vector: bytes | None
    periods: tuple[Period, ...]
    categories: frozenset[str]
    topics: frozenset[str]
    limit: int
    as_of: datetime | None
    share: float = _VECTOR_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFact:
    """A fact with what it scored, and its likeness to the question, 0 to 1."""

    fact: FactRow
    score: float
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The best rows, best first, and for each word of the question how many rows have it."""

    facts: tuple[FoundFact, ...]
    frequencies: tuple[int, ...]


class SearchesFacts(Protocol):
    """Searches the facts of one scope in one statement."""

    async def search(self, question: Question) -> Findings:
        """Return the best facts for ``question``, without a cut-off."""
        ...

    async def known_words(self, question: Question, *, shortest: int, longest: int) -> Collection[str]:
        """Return the words of the scope's facts that are so many characters long."""
        ...


class SearchMemory:
    """Asks the embedder, then the database once; a word that nothing has is looked for with one typo."""

    def __init__(
        self, *, facts: SearchesFacts, embedder: Embedder, tokenizer: RecallTokenizer, clock: Clock
    ) -> None:
        self._facts = facts
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._clock = clock

    async def __call__(self, request: SearchRequest) -> Sequence[FoundFact]:
        """Return what is relevant to ``request``, best first; nothing where nothing is.

        Raises:
            InvalidInputError: the limit is not between 1 and 50.
            StorageUnavailableError: the database did not answer.
        """
        if not 1 <= request.limit <= MOST_FOUND:
            raise InvalidInputError(f"limit: expected 1 to {MOST_FOUND}", field="limit")
        question = await self._question(request)
        findings = await self._facts.search(question)
        if mended := await self._mended(question, findings.frequencies):
            findings = await self._facts.search(mended)
        found = self._with_names(findings.facts, request.query)
        return relevant(found, has_vector=question.vector is not None)[: request.limit]

    def _with_names(self, found: Sequence[FoundFact], query: str) -> Sequence[FoundFact]:
        """Lift what the question names in full, by its key or another name, over what shares words."""
        said = set(self._tokenizer.tokens_of(query, limit=_WHOLE_QUESTION))
        lifted = [
            replace(one, score=one.score + _NAMED) if self._is_named(one.fact, said) else one for one in found
        ]
        return sorted(lifted, key=lambda one: -one.score)

    def _is_named(self, fact: FactRow, said: set[str]) -> bool:
        names = (fact.fact_key, *fact.aliases)
        return any(words and said.issuperset(words) for words in map(self._tokenizer.query_tokens_of, names))

    async def _question(self, request: SearchRequest) -> Question:
        words = self._tokenizer.query_tokens_of(request.query)
        return Question(
            tenant_id=request.tenant_id,
            user=request.user,
            avatar_id=request.avatar_id,
            words=_fewest(words),
            vector=await self._vector(request.query),
            periods=tuple(named_periods(request.query, self._clock.now())),
            categories=request.categories,
            topics=request.topics,
            limit=MOST_FOUND,
            as_of=request.as_of,
        )

    async def _vector(self, query: str) -> bytes | None:
        """Embed ``query``; without an embedder the words find alone."""
        try:
            (vector,) = await self._embedder.embed([query.replace("?", ".")])
        except EmbedderUnavailableError:
            return None
        return vector

    async def _mended(self, question: Question, frequencies: Sequence[int]) -> Question | None:
        """Return ``question`` with the words that nothing has replaced by one that is a typo away."""
        unknown = [
            word
            for word, rows in zip(question.words, frequencies, strict=False)
            if rows == 0 and len(word) >= _SHORTEST_MISSPELT and word.isalpha()
        ]
        if not unknown:
            return None
        shortest, longest = min(map(len, unknown)) - 1, max(map(len, unknown)) + 1
        known = await self._facts.known_words(question, shortest=shortest, longest=longest)
        meant = {word: near for word in unknown if (near := one_typo_away(word, known))}
        if not meant:
            return None
        words = tuple(dict.fromkeys(meant.get(word, word) for word in question.words))
        return replace(question, words=words)


def relevant(found: Sequence[FoundFact], *, has_vector: bool) -> Sequence[FoundFact]:
    """Return those of ``found`` that are about the question at all: good enough, and near the best."""
    if not found:
        return ()
    least = _LEAST_SCORE if has_vector else _LEAST_SCORE * (1 - _VECTOR_SHARE)
    cut = max(least, _LEAST_OF_BEST * found[0].score)
    return [one for one in found if one.score >= cut]


def _fewest(words: Sequence[str]) -> tuple[str, ...]:
    """Return ``words``, of a very long question the longest: the rarest, near enough."""
    if len(words) <= _MOST_WORDS:
        return tuple(words)
    return tuple(sorted(words, key=len, reverse=True)[:_MOST_WORDS])
