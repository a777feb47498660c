from pathlib import Path

import pytest

from domain.errors import InvalidInputError
from domain.memory.vocabulary import builtin_vocabulary, load_vocabulary
from service.own_files import rules_beside, vocabulary_of
from service.settings import Settings, SettingsError

SLOT = """
[types.plan]
description = "What the user has bought."
importance = 7

[[slots]]
key = "subscription"
type = "plan"
arity = "one"
sentence = "User has the {value} plan."
aliases = ["tariff"]
"""
RULE = """
[[rules]]
name = "tariff"
language = "en"
slot = "likes"
say = ["{Im} on the {value} plan"]
"""
BASE = """
[types.fact]
description = "A statement."

[[slots]]
key = "colour"
type = "fact"
arity = "many"
sentence = "User likes {value}."
aliases = []

[relations]
one = []
several = []
animals = []
"""


def settings(tmp_path: Path, **files: str) -> Settings:
    """Settings whose file options name files with these contents."""
    paths = {}
    for name, text in files.items():
        paths[name] = tmp_path / f"{name}.toml"
        paths[name].write_text(text, encoding="utf-8")
    return Settings(_env_file=None, **paths)  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue]


def test_types_and_slots_are_added_to_those_of_the_package() -> None:
    found = load_vocabulary(BASE, SLOT)

    assert set(found.slots) == {"colour", "subscription"}
    assert found.by_name["tariff"].category == "plan"
    assert found.slots["subscription"].importance == 7


def test_a_slot_of_the_same_name_takes_the_place_of_the_packages() -> None:
    again = '[[slots]]\nkey = "colour"\ntype = "fact"\narity = "one"\nsentence = "User paints in {value}."\n'

    assert load_vocabulary(BASE, again).slots["colour"].sentence == "User paints in {value}."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[slots]]\nkey = 1", "[[slots]] 1 (1): type: a text is needed"),
        ('[[slots]]\nkey = "x"\ntype = "none"', "type: 'none' is none of"),
        ("[[slots]]\nkey = \n", "at line 2"),
        ("[relations]\none = []", "relations: no such field"),
    ],
)
def test_a_wrong_file_of_types_is_refused_with_its_entry(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        load_vocabulary(BASE, text)

    assert complaint in str(refused.value)


def test_a_wrong_file_stops_the_start_and_is_named(tmp_path: Path) -> None:
    wrong = settings(tmp_path, memory_types_file="[[slots]]\nkey = 1")

    with pytest.raises(SettingsError) as refused:
        vocabulary_of(wrong)

    assert str(refused.value).startswith(
        f"MEMORY_TYPES_FILE: {tmp_path / 'memory_types_file.toml'}: [[slots]] "
    )
    assert "name" in builtin_vocabulary().slots


def test_a_wrong_rule_stops_the_start_and_is_named(tmp_path: Path) -> None:
    wrong = settings(tmp_path, memory_rules_file=RULE.replace('"likes"', '"nothing"'))

    with pytest.raises(
        SettingsError, match=r"MEMORY_RULES_FILE: .*\[\[rules\]\] 1 .*slot: 'nothing' is none"
    ):
        rules_beside(wrong, builtin_vocabulary())


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    gone = Settings(_env_file=None, memory_rules_file=tmp_path / "gone.toml")  # pyright: ignore[reportCallIssue]

    with pytest.raises(SettingsError, match="cannot be read: FileNotFoundError"):
        rules_beside(gone, builtin_vocabulary())


def test_own_rules_and_switches_are_taken_together(tmp_path: Path) -> None:
    chosen = settings(tmp_path, memory_rules_file=RULE)
    chosen = chosen.model_copy(update={"memory_rules_off": ("en/tariff", "en/age-1")})

    found = rules_beside(chosen, builtin_vocabulary())

    assert found.names == ("en/tariff",)
    assert found.off == {"en/tariff", "en/age-1"}


def test_an_unknown_name_of_a_rule_stops_the_start(tmp_path: Path) -> None:
    chosen = settings(tmp_path).model_copy(update={"memory_rules_off": ("en/nothing-1",)})

    with pytest.raises(SettingsError, match="MEMORY_RULES_OFF: no rule has the name 'en/nothing-1'"):
        rules_beside(chosen, builtin_vocabulary())
