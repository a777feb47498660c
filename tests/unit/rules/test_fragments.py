import pytest

from tests.unit.rules.conftest import Facts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "I'm Ana, 34, a nurse from Porto.",
            {"name=Ana", "age=34", "job_title=nurse", "origin=Porto"},
        ),
        ("Moved to Basel last month.", {"home_city=Basel"}),
        ("Vegetarian here.", {"diet=Vegetarian"}),
        ("Allergic to penicillin.", {"allergy=penicillin"}),
        ("My sister Ana, who lives in Porto, is a nurse.", {
            "sister.name=Ana", "sister/ana.home_city=Porto", "sister/ana.job_title=nurse",
        }),
    ],
)  # fmt: skip
def test_what_lacks_a_subject_or_a_verb_is_completed(facts: Facts, text: str, expected: set[str]) -> None:
    found = facts(text)

    assert expected <= found
    assert not {one for one in found if "." not in one} - expected


@pytest.mark.parametrize(
    "text",
    [
        "I bought a gift for a nurse, 34, from Porto.",
        "My sister called. Moved to Basel last month.",
        "I'm writing a character, Ben, 40, a cop from Boston.",
        "I'm a long way from Porto.",
        "Summer is here, where shall we go?",
        "Is she a nurse, 34, from Porto?",
    ],
)
def test_what_is_said_of_others_is_not_completed_to_the_users(facts: Facts, text: str) -> None:
    found = facts(text)

    assert not {
        one for one in found if one.split("=")[0] in {"age", "job_title", "home_city", "origin", "name"}
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My brother Karl visited us. He works as a baker.", {"brother/karl.job_title=baker"}),
        ("I have a daughter, Mia. She is 7.", {"daughter/mia.age=7"}),
    ],
)
def test_a_pronoun_means_the_one_person_that_was_named(facts: Facts, text: str, expected: set[str]) -> None:
    assert expected <= facts(text)


@pytest.mark.parametrize(
    "text",
    [
        "My brother Karl met my boss. He is a lawyer.",
        "My brother is fine. My dog is old. He is 12.",
        "He works as a baker.",
        "My sister is here. He works as a baker.",
    ],
)
def test_a_pronoun_that_may_mean_two_means_nobody(facts: Facts, text: str) -> None:
    assert not {one for one in facts(text) if "lawyer" in one or "baker" in one or "=12" in one}
