"""The contract of the rules. An error becomes a row here before it becomes a rule."""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.candidates import Method
from domain.conversation import SessionText
from domain.memory.assertions import Corrects
from domain.memory.stances import Stance
from domain.memory.vocabulary import builtin_vocabulary
from domain.ports import WindowCandidates
from domain.rules.extractor import RuleExtractor
from domain.windows import windows_of
from tests.unit.rules.conftest import Facts, Read, shown, window

STATED = [
    ("I used to live in Cairo but now I live in Ghent.", {"was home_city=Cairo", "home_city=Ghent"}),
    ("I'm Polish and I work as a welder.", {"citizenship=Polish", "job_title=welder"}),
    ("I speak Czech and German.", {"language=Czech", "language=German"}),
    ("I'm allergic to shellfish and dust.", {"allergy=shellfish", "allergy=dust"}),
    ("I don't like mushrooms, but I love olives.", {"not likes=mushrooms", "likes=olives"}),
    (
        "I have a dog named Rex and a cat called Miso.",
        {"pet=a dog", "pet=a cat", "pet_name=Rex", "pet_name=Miso"},
    ),
    ("My favourite food is ramen because it's warm.", {"favorite_food=ramen"}),
    ("My address is Hauptstr. 5, 10115 Berlin.", {"home_address=Hauptstr. 5, 10115 Berlin"}),
    ("i live in dublin and i'm 34", {"home_city=dublin", "age=34"}),
    (
        "In summer I prefer cider, in winter stout.",
        {"prefers=cider (in summer)", "prefers=stout (in winter)"},
    ),
    ("I have two brothers and a sister.", {"brother.relative=two brothers", "sister.relative=a sister"}),
    ("I no longer smoke.", {"not smoking=smokes"}),
    ("I don't have any pets.", {"not pet=*"}),
    ("I've never been to Japan.", {"not visited_places=Japan"}),
    ("I'm flying to Lisbon next month.", {"plans visited_places=Lisbon"}),
    ("I used to work at Globex.", {"was employer=Globex"}),
    ("Ich bin Arzt.", {"job_title=Arzt"}),
    ("Ich wohne in Köln und arbeite als Lehrerin.", {"home_city=Köln", "job_title=Lehrerin"}),
    ("Je m'appelle Chloé et je suis allergique aux arachides.", {"name=Chloé", "allergy=arachides"}),
    ("Me llamo Lucía y no me gusta el café.", {"name=Lucía", "not likes=el café"}),
    ("我朋友住在上海。我住在南京。", {"home_city=南京"}),
    ("彼女は東京に住んでいます。私は札幌に住んでいます。", {"home_city=札幌"}),
]

NOT_STATED = [
    "If I were a teacher I'd love it.",
    "I wish I lived in Madrid.",
    "I might be allergic to nuts, not sure.",
    "Do I look like a doctor?",
    "I'm not a vegetarian.",
    "I don't live in Berlin anymore.",
    "My friend thinks I'm a doctor.",
    "He told me he lives in Bonn.",
    "She works as a lawyer.",
    "The lyrics go: I am the walrus.",
    '"I am a barbie girl" is stuck in my head',
    "Let's roleplay. I am Sir Lancelot and I live in Camelot.",
    "For my game: I am Arthur, I live in Avalon.",
    "Please write a bio: I am Lea, I live in Bern.",
    "Can you rewrite this? I am a nurse and I live in York.",
    "Translate to French: I live in Rome and I am a cook.",
    "I have a question about Python.",
    "I love this idea!",
    "I'm 90% sure.",
    "I am 300 years old.",
    "I live in hope.",
    "Oh great, I just LOVE waiting in line. /s",
    "I'm a pilot. Just kidding.",
    "Traceback (most recent call last):\nValueError: I live in Rome",
    "From: Ann <a@b.org>\nSubject: Hi\n\nI am Ann and I live in Bath.",
    "Dear Sir,\nI am Ann and I live in Bath.\nRegards, Ann",
    "User: I am Bob\nAssistant: hello Bob\nUser: I live in Rome",
    "<!doctype html><p>I live in Rome</p>",
    "```\nI live in Rome\n```",
    "I said 'I live in Rome' once",
    "@@ -1 +1 @@\n- I live in Rome\n+ I live in Bonn",
    "id,name,city\n1,I live in,Rome",
    "## User Memory\n- [personal_info] home_city: Rome\n- [fact] I live in Rome\n",
    "Wenn ich in Berlin wohnen würde, wäre ich glücklich.",
    "Ich bin kein Vegetarier.",
    "Si j'habitais à Paris, je serais heureux.",
    "No soy vegetariano.",
    "Mi chiamo Marco e vivo a Milano.",
    "Ik heet Jan en ik woon in Utrecht.",
]

MORNING = "What do you drink in the morning, tea or coffee?"

SECRETS = [
    ("My password is " + "hunter2-zebra and I live in Graz.", "hunter2"),
    ("My key is sk-live-" + "abcdEFGH1234567890abcd and I live in Graz.", "abcdEFGH"),
    ("My token: ghp_" + "abcdefghijklmnopqrstuvwxyz012345 and I live in Graz.", "abcdefghij"),
    ("Card 4111 1111 " + "1111 1111 and I live in Graz.", "1111"),
    ("IBAN DE89 3704 " + "0044 0532 0130 00 and I live in Graz.", "3704"),
    ("我的密码是abc12345。我住在北京。", "abc12345"),
]

HOSTILE = [
    "a", "i ", "my name is ", '"', "(", "1 ", ", and", "i like tea and ", "my dog Rex ", "i am a, ", "a: b\n",
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STATED)
def test_what_the_user_states_is_found(facts: Facts, text: str, expected: set[str]) -> None:
    assert expected <= facts(text)


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_the_user_does_not_state_is_no_fact(facts: Facts, text: str) -> None:
    assert facts(text) == set()


def test_a_relative_keeps_its_own_facts(facts: Facts) -> None:
    found = facts("My sister Olga lives in Bergen and works as a baker. I live in Tromsø.")

    assert found >= {"sister.name=Olga", "sister/olga.home_city=Bergen", "home_city=Tromsø"}
    assert any(one.startswith("sister") and one.endswith("job_title=baker") for one in found)
    assert "job_title=baker" not in found


def test_one_wife_is_one_person_with_and_without_her_name(read: Read) -> None:
    found = read([("user", "My wife Ana works as a nurse."), ("user", "My wife lives in Bergen.")])

    assert [shown(one) for one in found] == [
        "partner.name=Ana",
        "partner.job_title=nurse",
        "partner.home_city=Bergen",
    ]
    assert {one.category for one in found} == {"relationship"}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([("user", "I live in Linz."), ("user", "No, I meant Graz.")], {"home_city=Graz"}),
        ([("user", "I'm Tom, sorry, Tim.")], {"name=Tim"}),
        ([("user", "I live in Paris jk")], set()),
        ([("user", "I'm a nurse."), ("user", "Just kidding.")], set()),
        ([("assistant", "What is your name?"), ("user", "Marta")], {"name=Marta"}),
        ([("assistant", "So you live in Hamburg, right?"), ("user", "Yes.")], {"home_city=Hamburg"}),
        ([("assistant", MORNING), ("user", "coffee")], {"prefers=coffee over tea"}),
        ([("assistant", MORNING), ("user", "The former.")], {"prefers=tea over coffee"}),
        ([("assistant", MORNING), ("user", "Both!")], set()),
        ([("assistant", "Do you speak Czech?"), ("user", "Yes")], {"language=Czech"}),
        ([("assistant", "Are you vegetarian?"), ("user", "no")], set()),
        ([("user", "I live in Pisa. I like tea."), ("user", "Forget everything.")], set()),
        ([("user", "Let's roleplay. I am Bo."), ("user", "Game over. I live in Pisa.")], {"home_city=Pisa"}),
        ([("user", ""), ("user", "I live in Pisa.")], {"home_city=Pisa"}),
        ([("user", "I live in Pisa. Don't remember this.")], set()),
        ([("assistant", "You live in Hamburg."), ("user", "Hm, maybe.")], set()),
        ([("user", "I like tea."), ("user", "Forget that I like tea.")], set()),
        ([("user", "I live in Pisa. I like tea."), ("user", "Please forget where I live.")], {"likes=tea"}),
    ],
)
def test_turns_are_read_together(facts: Facts, turns: Sequence[tuple[str, str]], expected: set[str]) -> None:
    assert facts(turns) == expected


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_leaves_no_trace_and_the_rest_survives(read: Read, text: str, secret: str) -> None:
    found = read(text)

    assert [one.key for one in found] == ["home_city"]
    assert all(secret not in one.value + one.content + one.excerpt for one in found)


@pytest.mark.parametrize(
    "turns",
    [
        [("user", "I live in Bern, no wait, I mean Basel.")],
        [("assistant", "So you live in Basel, right?"), ("user", "Yes.")],
        [("user", "I live in Bern."), ("user", "No, I meant Basel.")],
    ],
)
def test_excerpt_and_value_stand_in_the_cited_messages(read: Read, turns: Sequence[tuple[str, str]]) -> None:
    found = read(turns)[-1]

    cited = " ".join(text for place, (_, text) in enumerate(turns) if f"m{place}" in found.message_ids)
    assert found.value == "Basel"
    assert found.excerpt in cited
    assert found.value in cited


def test_a_correction_names_the_slip_and_leaves_it_to_the_fold(read: Read) -> None:
    slip, right = read("I live in Bern, no wait, I mean Basel.")

    assert (slip.value, right.value, right.amends) == ("Bern", "Basel", Corrects("Bern"))


def test_a_name_that_the_assistant_got_wrong_is_corrected(read: Read) -> None:
    (found,) = read([("assistant", "Nice to meet you, Marta!"), ("user", "It's Martha.")])

    assert (found.key, found.value, found.amends) == ("name", "Martha", Corrects("Marta"))


def test_values_of_one_slot_stay_side_by_side_in_the_order_in_which_they_were_said(read: Read) -> None:
    found = read([("user", "I live in Oslo."), ("user", "I live in Turku."), ("user", "I live in Oslo.")])

    assert [one.value for one in found] == ["Oslo", "Turku", "Oslo"]
    assert [one.position for one in found] == sorted({one.position for one in found})


def test_a_repeat_joins_and_cites_both_messages(read: Read) -> None:
    (found,) = read([("user", "I live in Oslo."), ("user", "As I said, I live in Oslo.")])

    assert found.message_ids == ("m0", "m1")


def test_a_candidate_carries_the_time_of_its_message_and_no_start_that_nobody_stated(
    extractor: RuleExtractor,
) -> None:
    late, early = datetime.fromisoformat("2025-06-01T10:00Z"), datetime.fromisoformat("2023-06-01T10:00Z")
    turns = window([("user", "I live in Oslo."), ("user", "I live in Turku.")])
    first, second = turns.messages

    found = extractor.read(
        replace(turns, messages=(replace(first, sent_at=late), replace(second, sent_at=early)))
    )

    assert [(one.said_at, one.valid_from) for one in found] == [(late, None), (early, None)]


@pytest.mark.parametrize(
    ("sent", "timezone", "expected"),
    [
        ("2024-02-29T23:30:00-08:00", None, "2024-02-28T00:00:00-08:00"),
        ("2024-03-01T07:30:00+00:00", "America/Los_Angeles", "2024-02-28T00:00:00-08:00"),
        ("2024-03-01T07:30:00+00:00", "No/Where", "2024-02-29T00:00:00+00:00"),
    ],
)
def test_yesterday_is_counted_where_the_user_is(
    extractor: RuleExtractor, sent: str, timezone: str | None, expected: str
) -> None:
    at = datetime.fromisoformat(sent)

    (found,) = extractor.read(window("I turned 30 yesterday.", at, timezone=timezone))

    assert found.valid_from is not None
    assert found.valid_from.isoformat() == expected


def test_a_day_to_come_does_not_make_a_taste_a_plan(read: Read) -> None:
    found = read("I like tea, see you tomorrow.")

    assert (found[0].value, found[0].valid_from, found[0].stance) == ("tea", None, Stance.HOLDS)


def test_a_request_to_forget_reaches_what_earlier_conversations_said(read: Read) -> None:
    found = read("Please forget my address.")

    assert [shown(one) for one in found] == ["-home_address=*"]
    assert found[0].stance is Stance.FORGETS


def test_a_request_to_forget_everything_is_about_every_slot(read: Read) -> None:
    assert [shown(one) for one in read("Please forget everything about me.")] == ["-*=*"]


def test_a_joke_about_the_window_before_is_forgotten(extractor: RuleExtractor) -> None:
    turns = window([("user", "I'm a nurse."), ("user", "Just kidding.")])

    found = extractor.read(replace(turns, overlap=1))

    assert [shown(one) for one in found] == ["-job_title=nurse"]


def test_what_only_the_overlap_says_is_not_proposed_again(extractor: RuleExtractor) -> None:
    turns = window([("user", "I live in Oslo."), ("assistant", "Nice."), ("user", "I like tea.")])

    found = extractor.read(replace(turns, overlap=2))

    assert [shown(one) for one in found] == ["likes=tea"]


def test_an_answer_to_a_question_of_the_overlap_is_new(extractor: RuleExtractor) -> None:
    turns = window([("assistant", "What is your name?"), ("user", "Marta")])

    found = extractor.read(replace(turns, overlap=1))

    assert [shown(one) for one in found] == ["name=Marta"]


@pytest.mark.parametrize("max_chars", [60, 100, 5000])
def test_however_a_session_is_cut_everything_is_proposed_once(
    extractor: RuleExtractor, max_chars: int
) -> None:
    said = [f"I live in {city}." for city in ("Oslo", "Turku", "Bergen", "Ghent", "Graz", "Linz")]
    turns = window([("user", text) for text in said])
    session = SessionText(session_id=turns.session_id, ended_at=turns.ended_at, messages=turns.messages)

    found = [one for piece in windows_of(session, max_chars=max_chars) for one in extractor.read(piece)]

    assert [f"I live in {one.value}." for one in found] == said


def test_reasoning_names_the_rule_and_its_pattern(read: Read) -> None:
    (found,) = read("I live in Oslo.")

    assert found.method is Method.RULES
    assert found.reasoning.startswith("rule en/home_city-")
    assert "live" in found.reasoning
    assert "Oslo" not in found.reasoning


def test_lines_of_a_bridged_chat_belong_to_their_speakers(facts: Facts) -> None:
    assert facts("[Ana] I live in Faro.\n[Rui] I live in Braga.") == {
        "ana.home_city=Faro",
        "rui.home_city=Braga",
    }


@pytest.mark.anyio
@pytest.mark.parametrize("repeats", [1, 400])
async def test_short_and_long_windows_are_extracted_alike(extractor: RuleExtractor, repeats: int) -> None:
    found = await extractor.extract(window("I live in Oslo. " + "The sea was calm. " * repeats))

    assert isinstance(found, WindowCandidates)
    assert [one.value for one in found.candidates] == ["Oslo"]


def test_a_language_without_rules_gives_nothing() -> None:
    class Italian:
        def guess(self, text: str) -> dict[str, float]:
            return {"it": 0.9}

    extractor = RuleExtractor(vocabulary=builtin_vocabulary(), languages=Italian(), rule_languages=("en",))

    assert extractor.read(window("Mi chiamo Marco e vivo a Milano.")) == []


@pytest.mark.parametrize("token", HOSTILE)
def test_hostile_text_is_read_in_linear_time(extractor: RuleExtractor, token: str) -> None:
    start = time.perf_counter()
    extractor.read(window(token * (25_000 // len(token))))

    assert time.perf_counter() - start < 5


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool", ""]), st.text(max_size=200)), max_size=4)
)
def test_no_text_breaks_the_extractor(extractor: RuleExtractor, turns: list[tuple[str, str]]) -> None:
    extractor.read(window(turns))
