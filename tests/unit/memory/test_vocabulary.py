"""One vocabulary for rules, prompt and fold."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from domain.memory.fact_keys import fact_key_of, read_fact_key
from domain.memory.keys import canonical_key
from domain.memory.slots import SELF, Slot, about_of, arity_of, read_key, slot_from_text, slot_of, slot_text
from domain.memory.stances import Mode, Stance
from domain.memory.vocabulary import Arity, SlotType, builtin_vocabulary, load_vocabulary

VOCABULARY = builtin_vocabulary()
KINDS = list(VOCABULARY.slots.values())


def test_there_are_fifteen_types_and_every_slot_is_filed_under_one() -> None:
    assert len(VOCABULARY.types) == 15
    assert {kind.category for kind in KINDS} <= VOCABULARY.types.keys()


def test_a_name_belongs_to_one_slot_only() -> None:
    counted = Counter(name for kind in KINDS for name in kind.names)

    assert [name for name, number in counted.items() if number > 1] == []
    assert all(canonical_key(name) == name for name in counted)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_each_name_of_a_slot_means_it(kind: SlotType) -> None:
    assert {slot_of(name).key for name in kind.names} == {kind.key}


@pytest.mark.parametrize(
    ("key", "slot", "stance"),
    [
        ("lives in", Slot("home_city"), None),
        ("User's home address", Slot("address", SELF, "home"), None),
        ("office_address", Slot("address", SELF, "work"), None),
        ("shipping_address", Slot("address", SELF, "delivery"), None),
        ("previous_city", Slot("home_city"), Stance.HELD),
        ("dislikes", Slot("likes"), Stance.DENIES),
        ("travel_plans", Slot("visited_places"), Stance.PLANS),
        ("sister_residence", Slot("home_city", "sister"), None),
        ("mom_name", Slot("name", "mother"), None),
        ("best_friend_job", Slot("job_title", "best_friend"), None),
        ("has_wife", Slot("relative", "partner"), None),
        ("dog_name", Slot("name", "dog"), None),
        ("bee_allergy", Slot("bee_allergy"), None),
        ("family_status", Slot("family_status"), None),
        ("brother_occupation", Slot("job_title", "brother"), None),
        ("family_origin", Slot("family_origin"), None),
        ("favorite_color", Slot("favorite_color"), None),
    ],
)
def test_what_a_key_of_a_model_means(key: str, slot: Slot, stance: Stance | None) -> None:
    assert read_key(key) == (slot, stance)


def test_an_unnamed_relative_of_several_is_not_one_person() -> None:
    assert arity_of(Slot("home_city", "sister")) is Arity.MANY
    assert arity_of(Slot("home_city", about_of("Sister", "Ana"))) is Arity.ONE
    assert arity_of(Slot("home_city", about_of("wife"))) is Arity.ONE
    assert about_of("best friend") == "best_friend"


def test_a_topic_describes_a_free_key() -> None:
    described = VOCABULARY.described("favorite_ice_cream")

    assert described is not None
    assert (described[0].category, described[1]) == ("preference", "ice_cream")
    assert VOCABULARY.category_of("favorite_color").name == "preference"
    assert VOCABULARY.category_of("nobody_knows_it").name == "fact"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
ABOUTS = st.one_of(
    st.just(SELF),
    st.sampled_from(sorted(VOCABULARY.relatives.several)),
    st.builds(
        about_of, st.sampled_from(sorted(VOCABULARY.relatives.several)), st.sampled_from(["ana", "jo lee"])
    ),
    TEXTS,
)
NAMES = sorted(name for kind in KINDS for name in kind.names)
PIECES = st.sampled_from(
    ["not", "plans", "sister", "friend", "best", "ana", "home", "address", "residence", "has"]
)
MADE_UP = st.lists(PIECES, min_size=1, max_size=4).map("_".join).map(canonical_key)
SLOTS = st.builds(
    Slot,
    st.sampled_from([kind.key for kind in KINDS])
    | st.sampled_from(NAMES)
    | MADE_UP
    | TEXTS.map(canonical_key),
    ABOUTS,
    st.sampled_from(["", "home", "work"]) | TEXTS,
)


@given(SLOTS)
def test_a_slot_and_its_text_are_a_bijection(slot: Slot) -> None:
    assert slot_from_text(slot_text(slot)) == slot


@pytest.mark.parametrize("text", ["", "home_city", "a|b", "a|b|c|d"])
def test_a_text_that_is_no_slot_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="slot"):
        slot_from_text(text)


@given(SLOTS, st.sampled_from(Mode))
def test_a_shown_key_is_valid_and_either_reads_back_or_has_a_digest(slot: Slot, mode: Mode) -> None:
    key = fact_key_of(slot, mode)

    assert len(key) <= 64
    assert canonical_key_shape(key)
    assert is_digest(key) or read_fact_key(key) == (slot, mode)


def is_digest(key: str) -> bool:
    head, _, tail = key.rpartition("_x")
    return bool(head) and len(tail) == 12 and set(tail) <= set("0123456789abcdef")


def canonical_key_shape(key: str) -> bool:
    return key[0].isalpha() and key.isascii() and key == key.lower() and key.replace("_", "a").isalnum()


@given(st.lists(st.tuples(SLOTS, st.sampled_from(Mode)), max_size=30))
def test_two_slots_are_never_shown_under_one_key(pairs: list[tuple[Slot, Mode]]) -> None:
    keys = {pair: fact_key_of(*pair) for pair in pairs}

    assert len(set(keys.values())) == len(keys)


def test_all_of_the_vocabulary_is_shown_under_plain_keys_of_their_own() -> None:
    abouts = [SELF, "sister", "sister/ana", "best_friend", "partner"]
    slots = [Slot(kind.key, about) for kind in KINDS for about in abouts]
    slots += [Slot(kind.key, SELF, one) for kind in KINDS for one in kind.qualifiers]
    pairs = [(slot, mode) for slot in slots for mode in Mode]

    keys = {pair: fact_key_of(*pair) for pair in pairs}

    assert len(set(keys.values())) == len(pairs)
    assert [pair for pair, key in keys.items() if is_digest(key)] == []


@pytest.mark.parametrize(
    ("slot", "mode", "key"),
    [
        (Slot("home_city", "sister"), Mode.HOLDS, "sister_residence"),
        (Slot("home_city", "sister/ana"), Mode.HOLDS, "sister_ana_residence"),
        (Slot("address", SELF, "home"), Mode.HOLDS, "home_address"),
        (Slot("likes"), Mode.DENIES, "dislikes"),
        (Slot("pet"), Mode.DENIES, "not_pet"),
        (Slot("home_city"), Mode.PLANS, "plans_home_city"),
        (Slot("relative", "partner"), Mode.HOLDS, "has_partner"),
        (Slot("likes", "sister"), Mode.DENIES, "not_sister_interests"),
        (Slot("favorite_color"), Mode.HOLDS, "favorite_color"),
        (Slot("keeps", "sister"), Mode.HOLDS, "sister_keeps"),
        (Slot("address", "sister/ana", "work"), Mode.HOLDS, "sister_ana_work_address"),
        (Slot("relative", "sister/ana"), Mode.PLANS, "plans_has_sister_ana"),
    ],
)
def test_shown_keys(slot: Slot, mode: Mode, key: str) -> None:
    assert fact_key_of(slot, mode) == key


@pytest.mark.parametrize(
    ("slot", "mode", "head"),
    [
        (Slot("not_happy"), Mode.HOLDS, "not_happy_x"),
        (Slot("dislikes"), Mode.HOLDS, "dislikes_x"),
        (Slot("sister_residence"), Mode.HOLDS, "sister_residence_x"),
        (Slot("runs_on", "invoice job"), Mode.HOLDS, "invoice_job_runs_on_x"),
        (Slot("ab"), Mode.HOLDS, "ab_x"),
        (Slot("home_city", "\u5f20\u4f1f"), Mode.HOLDS, "residence_x"),
        (Slot("a1", "9" * 60), Mode.HOLDS, "key_" + "9" * 46 + "_x"),
        (Slot("a" * 64), Mode.DENIES, "not_" + "a" * 46 + "_x"),
    ],
)
def test_a_key_that_would_read_as_another_one_gets_a_digest(slot: Slot, mode: Mode, head: str) -> None:
    shown = fact_key_of(slot, mode)

    assert shown[:-12] == head
    assert is_digest(shown)


TYPE = '[types.fact]\ndescription = "d"\n[relations]\none = ["mother"]\nseveral = []\n'
SLOT = '[[slots]]\nkey = "home_city"\ntype = "fact"\narity = "one"\nsentence = "User lives in {value}."\n'


def test_a_small_vocabulary_can_be_loaded() -> None:
    loaded = load_vocabulary(TYPE + SLOT)

    assert loaded.slots["home_city"].importance == loaded.types["fact"].importance == 5.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("types = \n", "line 1"),
        (TYPE + SLOT.replace("one", "two"), r"1 \(home_city\): arity: 'two'"),
        (TYPE + SLOT.replace('"fact"', '"fiction"'), r"1 \(home_city\): type: 'fiction'"),
        (TYPE + SLOT.replace("home_city", "Home City"), r"key: 'Home City' is spelled 'home_city'"),
        (TYPE + SLOT.replace("{value}", "{value.x}"), "no such place"),
        (TYPE + SLOT.replace("{value}", "{value"), r"1 \(home_city\): sentence"),
        (TYPE + SLOT + "colour = 1\n", r"1 \(home_city\): colour: no such field"),
        (TYPE + SLOT + 'ask = "yes"\n', "ask: true or false"),
        (TYPE + SLOT + "importance = -1\n", "importance: a number"),
        (TYPE + SLOT + 'aliases = "city"\n', "aliases: a list"),
        (TYPE + SLOT + "aliases = [1]\n", "aliases: a list"),
        (TYPE + SLOT + 'aliases = ["city", "city"]\n', "'city' belongs to"),
        (TYPE + SLOT + 'qualified = { home = ["home_city"] }\n', "'home' is none of the qualifiers"),
        (TYPE + SLOT + "qualified = 1\n", "qualified: a table"),
        (TYPE + SLOT + 'relative_key = "residence"\n', "relative_key: 'residence'"),
        (
            TYPE + SLOT + SLOT.replace("home_city", "town") + 'aliases = ["home_city"]\n',
            "'home_city' belongs to",
        ),
        (TYPE + '[relations.same]\nmum = "aunt"\n' + SLOT, "'aunt' is no relation"),
        (TYPE + SLOT.replace('sentence = "User lives in {value}."\n', ""), "sentence: a text is needed"),
        ("slots = [1]\n", r"\[\[slots\]\] 1: a table"),
        ('slots = "x"\n', "list of tables"),
    ],
)
def test_an_error_in_a_vocabulary_names_the_entry_and_the_field(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_vocabulary(text)
