# ruff: noqa: RUF001 - letters that look like others are what is tested
"""The words that index a text are the words that ask for it, in every language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.stemming import SnowballStemmer
from domain.recall_tokens import INDEX_BYTES, RecallTokenizer, voted_language, words_of

TOKENIZER = RecallTokenizer(stemmer=SnowballStemmer())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("favorite_food", ["favorite", "food"]),
        ("Anna's café isn't", ["anna", "café", "isn"]),
        ("ＦＵＬＬ width №5", ["full", "width", "no5"]),
        ("İzmir", ["izmir"]),
        ("我住在上海 ok", ["我住在上海", "ok"]),
        ("", []),
        ("?! -- \x00", []),
    ],
)
def test_words_are_runs_of_letters_and_digits(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cats were running", ("the", "cat", "were", "run")),
        ("Ich mag die Katzen", ("ich", "mag", "die", "katz")),
        ("上海", ("上海",)),
        ("我住在", ("我住", "住在")),
        ("猫", ("猫",)),
        ("서울에 살아요", ("서울에", "살아요")),
        ("cats and cat", ("cat", "and")),
    ],
)
def test_a_text_is_indexed_by_the_stems_of_its_language(text: str, tokens: tuple[str, ...]) -> None:
    assert TOKENIZER.tokens_of(text) == tokens


@pytest.mark.parametrize(
    ("query", "tokens"),
    [
        ("What food do I like?", ("food", "like")),
        ("Wo wohnt meine Schwester?", ("wohnt", "schwest")),
        ("what is it", ("what", "is", "it")),
        ("", ()),
    ],
)
def test_function_words_leave_the_query_unless_they_are_all_of_it(
    query: str, tokens: tuple[str, ...]
) -> None:
    assert TOKENIZER.query_tokens_of(query) == tokens


@pytest.mark.parametrize(
    ("text", "usual", "language"),
    [
        ("I live in a house", "de", "en"),
        ("ich wohne in Berlin und du nicht", "en", "de"),
        ("я живу в городе и он не знает", "en", "ru"),
        ("я живу в місті і він не знає", "en", "uk"),
        ("Berlin", "fr", "fr"),
        ("", "nl", "nl"),
    ],
)
def test_function_words_and_letters_vote_for_the_language(text: str, usual: str, language: str) -> None:
    assert voted_language(words_of(text), usual) == language


@given(st.text(max_size=400))
def test_any_text_gives_distinct_words_that_fit_the_index(text: str) -> None:
    tokens = TOKENIZER.tokens_of(text)

    assert len(set(tokens)) == len(tokens)
    assert all(0 < len(token) <= 60 for token in tokens)
    assert sum(4 + len(token.encode("utf-8", "replace")) for token in tokens) <= INDEX_BYTES


@given(st.text(max_size=60))
def test_whatever_is_asked_for_stands_in_the_index_of_the_same_text(text: str) -> None:
    assert set(TOKENIZER.query_tokens_of(text)) <= set(TOKENIZER.tokens_of(text))


def test_a_long_text_is_indexed_by_its_beginning() -> None:
    tokens = TOKENIZER.tokens_of(" ".join(f"word{number}x" for number in range(2_000)))

    assert tokens[0] == "word0x"
    assert 80 < len(tokens) < 140
