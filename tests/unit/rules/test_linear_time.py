"""What a text costs grows with its length alone: what patterns are tried on is counted, not the clock."""

import pytest

from domain.memory.vocabulary import builtin_vocabulary
from domain.rules.clauses import clauses, sentences
from domain.rules.loading import LANGUAGES, load_rulebook, rule_text
from domain.rules.rulebook import Rulebook

MOST_COPIES = 12
LONGEST_CLAUSE = 400
HOSTILE = (
    "I'm a nurse, 34, ",
    "I live in Porto and ",
    "my sister Ana, who lives in Porto, ",
    "if I were ",
    "a",
    "I ",
    ", ",
    "and and ",
    "((((",
    "I'm not, I'm not, ",
    "\u6211\u4f4f\u5728",
    "Ich bin ",
    "j'ai ",
)


@pytest.fixture(scope="module", params=LANGUAGES)
def book(request: pytest.FixtureRequest) -> Rulebook:
    return load_rulebook(rule_text(str(request.param)), builtin_vocabulary())


def tried(text: str, book: Rulebook) -> int:
    """How many characters patterns are tried on."""
    found = [clause for sentence in sentences(text) for clause in clauses(sentence, book)]
    assert all(len(clause.text) <= LONGEST_CLAUSE for clause in found)
    return sum(len(clause.text) for clause in found)


@pytest.mark.parametrize("token", HOSTILE)
def test_twice_the_text_is_at_most_twice_the_work(book: Rulebook, token: str) -> None:
    short, long = (tried(token * (size // len(token)), book) for size in (2000, 4000))

    assert long <= 2 * short + 2 * LONGEST_CLAUSE * MOST_COPIES
    assert long <= MOST_COPIES * 4000 + LONGEST_CLAUSE * MOST_COPIES
