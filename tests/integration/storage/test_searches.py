"""Search in one statement: its scores are those of the recipe, and every filter is inside it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pytest

from clients.embeddings.hashing import HashingEmbedder
from clients.stemming import SnowballStemmer
from domain.conversation import NIL_AVATAR, UserRef
from domain.errors import EmbedderUnavailableError
from domain.jobs import JobOutcome
from domain.memory.evidence import assertions_of
from domain.memory.sentences import claim_sentence
from domain.ports import EmbedderInfo
from domain.recall_tokens import RecallTokenizer
from domain.search_memory import FoundFact, Question, SearchMemory, SearchRequest
from domain.stores import Extracted
from storage.searches import PostgresSearches
from tests.integration.storage.stores import (
    ANA,
    DEADLINE,
    MARCH,
    TENANT,
    MachineClock,
    Stores,
    candidate,
    ended,
    order_of,
    somebody,
)

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

TOKENS: Final = RecallTokenizer(stemmer=SnowballStemmer())
EMBEDDER: Final = HashingEmbedder()
SAID: Final = (
    ("home_city", "Lisbon"),
    ("job_title", "nurse at the harbour hospital"),
    ("likes", "black coffee in the morning"),
    ("likes", "long walks along the harbour"),
    ("pet", "a parrot called Pixel"),
    ("database", "Postgres 17 on the invoice job"),
    ("allergy", "peanuts"),
    ("goal", "to read forty books this year"),
)


class Silent:
    """An embedder that is away."""

    @property
    def info(self) -> EmbedderInfo:
        return EMBEDDER.info

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        raise EmbedderUnavailableError("away")


async def remembers(
    stores: Stores, name: str, *said: tuple[str, str], user: UserRef = ANA, **more: Any
) -> None:
    """Have ``user`` say facts, with their words and vectors as the service makes them."""
    talk = ended(name, "hello", user=user, at=more.pop("at", MARCH))
    accepted = await stores.accept(talk)
    jobs = stores.jobs(tokenizer=TOKENS)
    claim = await jobs.claim(order_of(talk, accepted), deadline=DEADLINE)
    assert claim is not None
    candidates = [candidate(key, value, at=talk.ended_at, confidence=0.9) for key, value in said]
    assertions = [
        replace(one, **more)
        for one in assertions_of(claim.scope, claim.session.session_id, "live", candidates)
    ]
    sentences = [claim_sentence(one.claim) for one in assertions]
    vectors = dict(zip(sentences, await EMBEDDER.embed(sentences), strict=True))
    extracted = Extracted(
        assertions=tuple(assertions), windows={}, vectors=vectors, model=EMBEDDER.info.model, dropped={}
    )
    await jobs.commit(claim, extracted, JobOutcome())


def search(stores: Stores, embedder: HashingEmbedder | Silent = EMBEDDER) -> SearchMemory:
    return SearchMemory(
        facts=PostgresSearches(stores.database), embedder=embedder, tokenizer=TOKENS, clock=MachineClock()
    )


def asked(query: str, *, user: UserRef = ANA, tenant: str = TENANT, **more: Any) -> SearchRequest:
    return SearchRequest(tenant_id=tenant, user=user, avatar_id=NIL_AVATAR, query=query, limit=10, **more)


async def values(stores: Stores, query: str, **more: Any) -> list[str]:
    return [one.fact.fact_value for one in await search(stores)(asked(query, **more))]


async def test_the_scores_are_those_of_the_recipe_to_three_digits(stores: Stores) -> None:
    await remembers(stores, "talk", *SAID)
    query = "Where is the harbour hospital, and which coffee in the morning?"
    words = TOKENS.query_tokens_of(query)
    (vector,) = await EMBEDDER.embed([query])
    question = Question(
        tenant_id=TENANT,
        user=ANA,
        avatar_id=NIL_AVATAR,
        words=words,
        vector=vector,
        periods=(),
        categories=frozenset(),
        topics=frozenset(),
        limit=50,
        as_of=None,
    )

    found = await PostgresSearches(stores.database).search(question)

    rows = await stores.rows(
        "SELECT id, dl, tsvector_to_array(tsv) AS words, importance, confidence FROM lis.recall "
        "WHERE kind = 0"
    )
    expected = _by_hand(words, vector, rows, await _vectors(stores, rows))
    assert len(found.facts) == len(SAID)
    assert [one.fact.fact_id for one in found.facts] == [one for one, _ in expected]
    assert [one.score for one in found.facts] == pytest.approx([score for _, score in expected], abs=5e-4)


async def _vectors(stores: Stores, rows: Sequence[Any]) -> dict[Any, np.ndarray]:
    found = await stores.rows("SELECT id, embedding::text AS vector FROM lis.recall WHERE kind = 0")
    return {
        row["id"]: np.array([float(one) for one in row["vector"].strip("[]").split(",")]) for row in found
    }


def _by_hand(
    words: Sequence[str], vector: bytes, rows: Sequence[Any], vectors: dict[Any, np.ndarray]
) -> list[tuple[Any, float]]:
    """Score as section 1 of the recipe says, without a database."""
    asked_vector = np.frombuffer(vector, dtype="<f2").astype(float)
    count, mean = len(rows), sum(row["dl"] for row in rows) / len(rows)
    rarity = {}
    for word in words:
        having = sum(word in row["words"] for row in rows)
        rarity[word] = math.log(1 + (count - having + 0.5) / (having + 0.5))
    scores = []
    for row in rows:
        covered = sum(rarity[word] for word in words if word in row["words"]) / sum(rarity.values())
        length = 1.675 / (1 + 0.9 * (0.75 + 0.25 * row["dl"] / mean))
        own = vectors[row["id"]]
        cosine = float(own @ asked_vector / (np.linalg.norm(own) * np.linalg.norm(asked_vector)))
        prior = 0.001 * (row["importance"] - 5) + 0.01 * (row["confidence"] - 0.8)
        scores.append((row["id"], 0.65 * covered * length + 0.35 * max(cosine, 0) + prior))
    return sorted(scores, key=lambda one: (-round(one[1], 9), one[0]))


async def test_a_question_finds_what_it_is_about_and_one_about_nothing_stored_finds_nothing(
    stores: Stores,
) -> None:
    await remembers(stores, "talk", *SAID)

    assert (await values(stores, "What is the parrot called?"))[0] == "a parrot called Pixel"
    assert await values(stores, "quantum chromodynamics lattice") == []


async def test_without_an_embedder_words_find_alone(stores: Stores) -> None:
    await remembers(stores, "talk", *SAID)

    found = await search(stores, Silent())(asked("Which invoice job?"))

    assert [one.fact.fact_value for one in found] == ["Postgres 17 on the invoice job"]
    assert [one.likeness for one in found] == [0.0]


@pytest.mark.parametrize("typo", ["parot", "parrrot", "parrto", "parret"])
async def test_a_word_with_one_typo_finds_its_row(stores: Stores, typo: str) -> None:
    await remembers(stores, "talk", *SAID)

    found: Sequence[FoundFact] = await search(stores, Silent())(asked(f"{typo}?"))

    assert [one.fact.fact_value for one in found] == ["a parrot called Pixel"]


async def test_another_name_of_a_thing_finds_it(stores: Stores) -> None:
    await remembers(stores, "talk", *SAID)
    await remembers(stores, "later", ("cluster", "Kubernetes"), aliases=("k8s", "our cluster"))

    assert await values(stores, "what about k8s") == ["Kubernetes"]


async def test_what_a_question_names_comes_before_what_shares_its_words(stores: Stores) -> None:
    await remembers(stores, "cache", ("cache", "Redis on a single node"), aliases=("Redis",))
    await remembers(
        stores, "auth", ("auth", "sessions depend on Redis, deploys on nothing"), at=MARCH + timedelta(days=1)
    )

    assert await values(stores, "What are we using Redis for?") == ["Redis on a single node"]


async def test_what_belongs_to_another_topic_stays_out(stores: Stores) -> None:
    await remembers(stores, "code", ("editor", "Helix with a dark theme"), topics=("code",))
    await remembers(
        stores, "home", ("lamp", "a dark theme lamp"), topics=("home",), at=MARCH + timedelta(days=1)
    )
    await remembers(stores, "both", ("likes", "a dark theme"), at=MARCH + timedelta(days=2))

    everywhere = set(await values(stores, "dark theme"))
    code = set(await values(stores, "dark theme", topics=frozenset({"code"})))

    assert everywhere == {"Helix with a dark theme", "a dark theme lamp", "a dark theme"}
    assert code == {"Helix with a dark theme", "a dark theme"}


async def test_nobody_finds_what_another_said(stores: Stores) -> None:
    await remembers(stores, "talk", *SAID)

    assert await values(stores, "parrot", user=somebody()) == []
    assert await values(stores, "parrot", tenant="other") == []
    assert await values(stores, "parrot", user=UserRef(external_user_id="never seen")) == []


async def test_a_deleted_fact_is_found_no_more_from_that_statement_on(stores: Stores) -> None:
    await remembers(stores, "talk", *SAID)
    await stores.run(
        "UPDATE lis.memory_facts SET status = 'deleted', deleted_at = now() WHERE fact_value LIKE '%%Pixel'"
    )

    assert "a parrot called Pixel" not in await values(stores, "parrot called Pixel")


async def test_what_was_true_then_is_found_then(stores: Stores) -> None:
    await remembers(stores, "talk", ("home_city", "Lisbon"))
    await remembers(stores, "later", ("home_city", "Porto"), at=MARCH + timedelta(days=100))
    then = MARCH + timedelta(days=10)

    assert await values(stores, "home city") == ["Porto"]
    assert await values(stores, "home city", as_of=then) == ["Lisbon"]
    assert await values(stores, "home city", as_of=datetime(2020, 1, 1, tzinfo=UTC)) == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "the and of",
        "'",
        "\\",
        "a & b | !c <-> d",
        "(" * 50,
        "word " * 300,
        "สวัสดี",
        "🦜",
        "我对花生过敏",
    ],
)
async def test_any_question_is_answered(stores: Stores, query: str) -> None:
    await remembers(stores, "talk", *SAID)

    await search(stores)(asked(query))
    await search(stores, Silent())(asked(query))
