"""What a request to forget reaches, and above all what it does not."""

from collections.abc import Callable

import pytest

from domain.candidates import Candidate
from domain.memory.stances import Stance

Read = Callable[..., list[Candidate]]


def forgotten(read: Read, text: str) -> set[tuple[str, str]]:
    return {(one.key, one.about) for one in read(text) if one.stance is Stance.FORGETS}


@pytest.mark.parametrize(
    "text",
    [
        "Forget everything about me.",
        "Please forget everything.",
        "Forget everything you know about me.",
        "Delete all my data, please.",
        "Forget everything I told you.",
        "Forget me.",
    ],
)
def test_everything_is_forgotten_where_nothing_else_is_said(read: Read, text: str) -> None:
    assert forgotten(read, text) == {("*", "self")}


@pytest.mark.parametrize(
    "text",
    [
        "Forget everything about my car.",
        "Forget everything I said about my job.",
        "Please forget everything about my ex.",
        "Forget everything you know about Python, let's use Rust.",
        "Forget all about my job.",
        "Forget about the report and tell me a joke.",
        "Forget all the formatting.",
    ],
)
def test_a_request_about_one_thing_never_reaches_everything(read: Read, text: str) -> None:
    assert "*" not in {key for key, _ in forgotten(read, text)}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("Forget my mother's name.", "mother"),
        ("Forget my mum's name.", "mother"),
        ("Forget my sister's address.", "sister"),
        ("Forget my dog's name.", "dog"),
        ("Forget my boss's phone number.", "boss"),
    ],
)
def test_what_is_somebody_elses_is_not_taken_for_the_users_own(read: Read, text: str, about: str) -> None:
    found = forgotten(read, text)

    assert {whose for _, whose in found} == {about}


@pytest.mark.parametrize(
    ("text", "key"),
    [("Forget my name.", "name"), ("Forget my car.", "vehicle"), ("Please forget my address.", "address")],
)
def test_the_users_own_is_forgotten_by_its_word(read: Read, text: str, key: str) -> None:
    assert (key, "self") in forgotten(read, text)
