import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.transcripts import turns_of


def said(transcript: str) -> list[tuple[str, str]]:
    return [(turn.role, turn.content) for turn in turns_of(transcript)]


TALK = [("user", "I live in Graz."), ("assistant", "Nice!"), ("user", "And I ski.")]


@pytest.mark.parametrize(
    "transcript",
    [
        "User: I live in Graz.\nAssistant: Nice!\nUser: And I ski.",
        "user: I live in Graz.\r\nassistant: Nice!\r\nuser: And I ski.".replace("\r", ""),
        "**User:** I live in Graz.\n\n**Assistant:** Nice!\n\n**User:** And I ski.",
        "Human: I live in Graz.\nAI: Nice!\nHuman: And I ski.",
        "[User]: I live in Graz.\n[Bot]: Nice!\n[User]: And I ski.",
        "[10:02] User: I live in Graz.\n[10:03] Assistant: Nice!\n[10:04] User: And I ski.",
        "Nutzer: I live in Graz.\nAssistent: Nice!\nNutzer: And I ski.",
        "用户\uff1aI live in Graz.\n助手\uff1aNice!\n用户\uff1aAnd I ski.",
        "Me: I live in Graz.\nYou: Nice!\nMe: And I ski.",
        "You: I live in Graz.\nChatGPT: Nice!\nYou: And I ski.",
        "You said:\nI live in Graz.\nChatGPT said:\nNice!\nYou said:\nAnd I ski.",
        "Marta: I live in Graz.\nAgent: Nice!\nMarta: And I ski.",
        "### User:\nI live in Graz.\n### Assistant:\nNice!\n### User:\nAnd I ski.",
    ],
)
def test_labels_of_many_forms_make_turns(transcript: str) -> None:
    assert said(transcript) == TALK


@pytest.mark.parametrize(
    "transcript",
    [
        "I live in Graz.\nI ski.",
        "Note: I live in Graz.",
        "Ann: I live in Bath.\nBob: I live in Rome.",
        "at 10:30 sharp",
    ],
)
def test_a_transcript_without_speakers_is_one_turn_of_the_user(transcript: str) -> None:
    assert said(transcript) == [("user", transcript)]


def test_lines_without_a_label_go_on_with_the_turn() -> None:
    text = "User: I train.\nIt is in April.\nNote: not May.\nAssistant: Great!"

    assert said(text) == [("user", "I train.\nIt is in April.\nNote: not May."), ("assistant", "Great!")]


def test_labels_in_a_code_block_are_code() -> None:
    text = "User: look\n```yaml\nUser: admin\nAssistant: none\n```\nAssistant: fine"

    assert said(text) == [
        ("user", "look\n```yaml\nUser: admin\nAssistant: none\n```"),
        ("assistant", "fine"),
    ]


def test_system_and_tool_lines_are_nobodys_words() -> None:
    assert said("System: be kind\nUser: hi\nTool: 42")[0] == ("system", "be kind")


def test_what_stands_before_the_first_label_is_the_users() -> None:
    assert said("Chat of May\nUser: hi") == [("user", "Chat of May"), ("user", "hi")]


@pytest.mark.parametrize("transcript", ["", " \n\t"])
def test_a_blank_transcript_has_no_turns(transcript: str) -> None:
    assert turns_of(transcript) == ()


@given(st.text(max_size=200))
def test_any_text_is_split(transcript: str) -> None:
    turns = turns_of(transcript)

    assert all(turn.content.strip() for turn in turns)
    assert sum(len(turn.content) for turn in turns) <= len(transcript)
