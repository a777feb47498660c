"""What people write in passing: a fact beside a question, a nickname of a word, an emoji before it."""

import pytest

from tests.unit.rules.conftest import Facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We're based in Tucson, so anything drought-proof for the yard?", {"home_city=Tucson"}),
        ("we left Arizona in March and we're up in Duluth now", {"home_city=Duluth"}),
        ("Finally got the keys to our flat in Utrecht!", {"home_city=Utrecht"}),
        ("moved form Perth to Hobart", {"home_city=Hobart"}),
        ("These days I sell insurance.", {"job_title=sells insurance"}),
        ("I teach chemistry.", {"job_title=chemistry teacher"}),
        ("I'm a crane operator.", {"job_title=crane operator"}),
        ("I been playing sax for about twelve years", {"instruments=sax"}),
        ("we've got two ferrets", {"pet=two ferrets"}),
        ("I've got 3 chickens", {"pet=3 chickens"}),
        ("\U0001f95b❌ I'm lactose intolerant so no milk for me either", {"intolerances=lactose"}),
        ("I'm alergic to shellfish.", {"allergy=shellfish"}),
        ("Kiwi makes my lips swell up.", {"allergy=Kiwi"}),
        ("Careful with the satay - peanuts put me in hospital twice.", {"allergy=peanuts"}),
        ("I don't touch dairy.", {"avoids_food=dairy"}),
        ("I've completely gone off rowing.", {"not likes=rowing"}),
        ("Good morning. This is Walter Nkemelu.", {"name=Walter Nkemelu"}),
        ("I'm turning 30 on the 9th of May!", {"birthday=9th of May"}),
        ("Being deaf in one ear I always ask for captions.", {"accessibility=deaf in one ear"}),
    ],
)
def test_ordinary_turns_are_understood(facts: Facts, text: str, expected: set[str]) -> None:
    assert expected <= facts(text)


@pytest.mark.parametrize(
    "text",
    [
        "This is ridiculous.",
        "We're in trouble now.",
        "I'm in Paris now for a week, so what should I see?",
        "He teaches chemistry.",
        "I'm selling my car.",
        "It makes my eyes itch.",
        "Scrap the weight thing, don't keep it.",
    ],
)
def test_what_only_looks_like_it_is_left(facts: Facts, text: str) -> None:
    told = facts(text)

    assert not {
        one for one in told if one.split("=")[0] in {"name", "home_city", "job_title", "allergy", "weight"}
    }
