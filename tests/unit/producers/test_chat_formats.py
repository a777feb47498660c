"""Exports of other programs: what was said is read with its side and time, and nothing else is."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from zipfile import ZipFile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from producers.chat_formats.chats import ASSISTANT, PARTICIPANT, USER, Reading
from producers.chat_formats.dates import DateOrder, date_of, order_of
from producers.chat_formats.files import FORMATS, Wish, read_chats
from producers.imported_chats import FileOfChats, Owner, lines_of

WRITTEN: Final = datetime(2025, 1, 1, tzinfo=UTC)
SAMPLES: Final = {
    "anthropic/messages.json": "messages",
    "chatgpt/conversations.json": "chatgpt",
    "chatgpt": "chatgpt",
    "claude/conversations.json": "claude",
    "claude": "claude",
    "langchain/dumpd.json": "messages",
    "langchain/message_store_rows.csv": "message-table",
    "langchain/messages_to_dict.json": "messages",
    "openai/finetune.jsonl": "messages",
    "openai/messages.json": "messages",
    "openai/responses_items.json": "messages",
    "plain/generic.jsonl": "messages",
    "plain/latin1.txt": "transcript",
    "plain/transcript.md": "transcript",
    "plain/utf16.txt": "transcript",
    "sharegpt/sharegpt.json": "sharegpt",
    "slack": "slack",
    "vercel_ai/messages_v4.json": "messages",
    "vercel_ai/model_messages.json": "messages",
    "vercel_ai/ui_messages_v5.json": "messages",
    "whatsapp/android_de.txt": "whatsapp",
    "whatsapp/android_us12h.txt": "whatsapp",
    "whatsapp/ios_en_gb.txt": "whatsapp",
}
NEVER_THE_USERS: Final = {
    "anthropic/messages.json": ["1 Fake Street"],
    "chatgpt/conversations.json": ["allergic to almonds.", "spelt"],
    "claude/conversations.json": ["Risotto", "muzzle", "Vaccination"],
    "openai/messages.json": ["Bob", "major"],
    "vercel_ai/ui_messages_v5.json": ["Zur Post"],
}


@pytest.fixture
def formats(corpora: Path) -> Path:
    found = corpora / "cases" / "chat_formats"
    if not found.is_dir():
        pytest.skip("the folder of chat formats is missing")
    return found


def said_by(reading: Reading, *roles: str) -> list[str]:
    return [m.text for chat in reading.chats for m in chat.messages if m.role in roles and m.text]


def published(reading: Reading, **owner: Any) -> list[dict[str, Any]]:
    whose = Owner(tenant_id="default", user="u1", **owner)
    chats = FileOfChats(name="file", reading=reading, written_at=WRITTEN)
    return [json.loads(line) for line in lines_of([chats], whose)]


def of_file(folder: Path, name: str, content: str | bytes, wish: Wish | None = None) -> Reading:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_chats(path, wish or Wish())


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_is_read_as_expected(formats: Path, sample: str) -> None:
    expected = json.loads((formats / "expected.json").read_text())
    wanted = expected.get(sample) or expected.get(f"{sample}/conversations.json") or {}

    reading = read_chats(formats / sample, Wish())

    own = [chat for chat in reading.chats if not (sample.startswith("chatgpt") and not chat.chat_id)]
    assert reading.format == SAMPLES[sample]
    counted = {
        "conversations": len(own),
        "non_empty": sum(bool(chat.messages) for chat in own),
        "messages": sum(len(chat.messages) for chat in own),
        "messages_user": len(said_by(reading, PARTICIPANT)),
        "user_messages": sum(m.role in (USER, PARTICIPANT) for chat in own for m in chat.messages),
        "ok_lines": reading.message_count,
        "bad_lines": len(reading.failed),
    }
    assert {name: counted[name] for name in wanted if name in counted} == {
        name: value for name, value in wanted.items() if name in counted
    }


@pytest.mark.parametrize("sample", NEVER_THE_USERS)
def test_what_somebody_else_wrote_is_not_what_the_user_said(formats: Path, sample: str) -> None:
    words = "\n".join(said_by(read_chats(formats / sample, Wish()), USER))

    assert [one for one in NEVER_THE_USERS[sample] if one in words] == []


def test_of_a_tree_the_thread_that_was_seen_is_read_and_custom_instructions_once(formats: Path) -> None:
    reading = read_chats(formats / "chatgpt", Wish())

    thread, empty, profile = reading.chats
    assert [message.message_id for message in thread.messages] == ["n-u1b", "n-a3", "n-u2", "n-a4", "n-u3"]
    assert empty.messages == ()
    assert said_by(Reading(format="", chats=[profile]), USER) == [
        "Preferred name: Marta\nRole: veterinary nurse in Graz"
    ]


def test_ids_become_names_and_escapes_are_undone(formats: Path) -> None:
    words = said_by(read_chats(formats / "slack", Wish()), PARTICIPANT)

    assert words[0].endswith("see the plan")
    assert words[1].startswith("@marta ok. I prefer Mondays <3")


def test_a_zip_is_read_like_its_folder(formats: Path, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        for one in (formats / "slack").rglob("*.json"):
            archive.write(one, one.relative_to(formats / "slack"))

    assert read_chats(path, Wish()) == read_chats(formats / "slack", Wish())


def test_in_a_chat_of_several_people_somebody_has_to_say_who_the_user_is(tmp_path: Path) -> None:
    reading = of_file(
        tmp_path, "c.txt", "31.12.24, 09:15 - Ana: Hola\n31.12.24, 09:16 - Jo: I live in Leeds\n"
    )

    with pytest.raises(InvalidInputError, match=r"Ana \(1\), Jo \(1\)"):
        published(reading)
    (conversation,) = published(reading, speaker="Jo", zone=ZoneInfo("Europe/Madrid"))

    assert [(m["role"], m["name"]) for m in conversation["messages"]] == [
        ("participant", "Ana"),
        ("user", "Jo"),
    ]
    assert conversation["ended_at"] == "2024-12-31T09:16:00+01:00"


def test_a_longer_export_is_the_same_sessions_and_one_more_day(tmp_path: Path) -> None:
    first = "31.12.24, 09:15 - Ana: Hola\n31.12.24, 09:16 - Ana: one\n31.12.24, 09:17 - Ana: two\n"
    longer = first + "31.12.24, 09:18 - Ana: three\n01.01.25, 10:00 - Ana: Feliz año\n"

    before = published(of_file(tmp_path, "_chat.txt", first), speaker="Ana")
    after = published(of_file(tmp_path, "other name.txt", longer), speaker="Ana")

    assert [one["session_id"] for one in after[:1]] == [one["session_id"] for one in before]
    assert len(after) == 2
    assert after[1]["session_id"] != after[0]["session_id"]


def test_two_chats_that_begin_otherwise_are_two_sessions_and_two_owners_have_their_own(
    tmp_path: Path,
) -> None:
    one = of_file(tmp_path, "chat.txt", "User: I live in Leeds\nAssistant: Fine\n")
    other = of_file(tmp_path, "chat.txt", "User: I live in Porto\nAssistant: Fine\n")

    ids = {published(reading)[0]["session_id"] for reading in (one, other)}
    ids.add(json.loads(lines_of([_file(one)], Owner(tenant_id="default", user="u2"))[0])["session_id"])

    assert len(ids) == 3


def _file(reading: Reading) -> FileOfChats:
    return FileOfChats(name="file", reading=reading, written_at=WRITTEN)


def test_a_chat_without_times_ended_when_its_file_was_written_and_it_is_said(tmp_path: Path) -> None:
    reading = of_file(tmp_path, "chat.md", "User: Hi\nAI: Hello\n")

    (conversation,) = published(reading)

    assert conversation["ended_at"] == WRITTEN.isoformat()
    assert reading.assumed == ["no times: the file's own is taken"]


def test_conversations_of_all_files_come_in_the_order_of_their_ends(tmp_path: Path) -> None:
    lines = (
        '{"messages": [{"role": "user", "content": "later", "timestamp": 1714636860}]}\n'
        '{"messages": [{"role": "user", "content": "earlier", "timestamp": "2020-05-02T08:01:00+02:00"}]}\n'
    )

    found = published(of_file(tmp_path, "two.jsonl", lines))

    assert [one["messages"][0]["content"] for one in found] == ["earlier", "later"]


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "just a note\n", "\x00\x01", '{"a": [1, 2]}', "a,b\n1,2\n"]
)
def test_a_file_of_another_kind_is_refused_with_the_formats_that_are_known(
    tmp_path: Path, content: str
) -> None:
    with pytest.raises(InvalidInputError, match="none of the formats"):
        of_file(tmp_path, "x.txt", content)


def test_a_format_that_was_named_is_not_guessed_over(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="looks like transcript, not like whatsapp"):
        of_file(tmp_path, "x.txt", "User: hi\n", Wish(format="whatsapp"))


@pytest.mark.parametrize(
    ("written", "order", "is_sure"),
    [
        (["31/12/2024, 09:15"], DateOrder.DAY, True),
        (["12/31/2024, 9:15 AM"], DateOrder.MONTH, True),
        (["2024-05-02 09:15"], DateOrder.YEAR, True),
        (["02.05.24, 09:15"], DateOrder.DAY, True),
        (["5/2/24, 9:15 AM"], DateOrder.MONTH, False),
        (["02/05/2024, 09:15"], DateOrder.DAY, False),
        (["01/11/2024, 09:15", "02/10/2024, 09:15"], DateOrder.MONTH, True),
        (["11/01/2024, 09:15", "10/02/2024, 09:15"], DateOrder.DAY, True),
    ],
)
def test_which_number_is_the_day_is_found_out_from_all_dates(
    written: list[str], order: DateOrder, is_sure: bool
) -> None:
    assert order_of(written) == (order, is_sure)


@pytest.mark.parametrize(
    ("written", "hour"), [("5/2/24, 12:03 PM", 12), ("5/2/24, 12:03 AM", 0), ("5/2/24, 9:15 p. m.", 21)]
)
def test_twelve_hours_are_read(written: str, hour: int) -> None:
    found = date_of(written, DateOrder.MONTH)

    assert found is not None
    assert found.hour == hour


def test_sides_of_a_transcript_are_told_outside_of_code_alone(tmp_path: Path) -> None:
    reading = of_file(tmp_path, "c.md", "User: see\n```\nUser: admin\n```\nAssistant: ok\n")

    assert said_by(reading, USER) == ["see\n```\nUser: admin\n```"]
    assert said_by(reading, ASSISTANT) == ["ok"]


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([
                "messages", "mapping", "role", "content", "chat_messages", "conversations", "from", "value",
                "type", "data", "kwargs", "ts", "text", "parts", "id", "timestamp", "prompt", "completion",
            ]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(value=JSON)
def test_no_json_whatever_crashes_the_reader(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    folder = tmp_path_factory.mktemp("json")
    for written in (json.dumps(value), "\n".join(_lines(value))):
        try:
            reading = of_file(folder, "any.json", written)
        except InvalidInputError:
            continue
        assert reading.format in FORMATS


def _lines(value: object) -> Iterator[str]:
    yield from (json.dumps(one) for one in (value if isinstance(value, list) else [value]))
