"""ChatGPT's export: a tree of messages, of which the thread that the user saw is read."""

from collections.abc import Iterator, Sequence
from typing import Final

from producers.chat_formats.chats import ASSISTANT, USER, Chat, ChatMessage, Reading
from producers.chat_formats.values import Table, items, moment, table, text

NAME: Final = "chatgpt"

_SPOKEN: Final = frozenset({"text", "multimodal_text"})
_PROFILE: Final = "user_editable_context"


def is_chatgpt(value: object) -> bool:
    """Say whether ``value`` is a list of conversations with trees."""
    return any("mapping" in table(one) for one in items(value)) or "mapping" in table(value)


def read_chatgpt(value: object) -> Reading:
    """Read the visible thread of each conversation.

    Custom instructions stand in every conversation; they become one chat of their own, so that they are
    evidence once.
    """
    reading = Reading(format=NAME)
    profiles: dict[str, None] = {}
    for found in [value] if "mapping" in table(value) else items(value):
        conversation = table(found)
        nodes = table(conversation.get("mapping"))
        if not nodes:
            reading.skipped["no conversation"] += 1
            continue
        thread = list(_thread(nodes, conversation.get("current_node")))
        said = [one for message in thread if (one := _message(message, reading, profiles)) is not None]
        reading.skipped["other branch"] += sum(
            table(table(node).get("message")).get("id") not in {one.get("id") for one in thread}
            and table(node).get("message") is not None
            for node in nodes.values()
        )
        reading.chats.append(
            Chat(
                chat_id=text(conversation.get("id") or conversation.get("conversation_id")),
                messages=tuple(said),
                ended_at=moment(conversation.get("update_time") or conversation.get("create_time")),
            )
        )
    reading.chats += _profile_chats(profiles, reading.chats)
    reading.skipped = +reading.skipped
    return reading


def _thread(nodes: Table, current: object) -> Sequence[Table]:
    """Walk from the current node to the root; a file that names none is read from its newest leaf."""
    found: list[Table] = []
    seen: set[str] = set()
    place = text(current) or _newest_leaf(nodes)
    while place in nodes and place not in seen:
        seen.add(place)
        node = table(nodes[place])
        if (message := table(node.get("message"))) or node.get("message") is not None:
            found.append(message)
        place = text(node.get("parent"))
    return found[::-1]


def _newest_leaf(nodes: Table) -> str:
    leaves = [name for name, node in nodes.items() if not items(table(node).get("children"))]
    return leaves[-1] if leaves else ""


def _message(message: Table, reading: Reading, profiles: dict[str, None]) -> ChatMessage | None:
    content = table(message.get("content"))
    kind, role = text(content.get("content_type")), text(table(message.get("author")).get("role"))
    metadata = table(message.get("metadata"))
    if kind == _PROFILE:
        profiles[text(content.get("user_profile")).strip()] = None
        return None
    if metadata.get("is_visually_hidden_from_conversation") or message.get("weight") == 0:
        reading.skipped["hidden"] += 1
        return None
    if kind not in _SPOKEN or message.get("recipient", "all") != "all" or role not in (USER, ASSISTANT):
        reading.skipped[f"{kind or 'unknown'} of {role or 'nobody'}"] += 1
        return None
    return ChatMessage(
        role=role,
        text="\n".join(_parts(content)),
        message_id=text(message.get("id")) or None,
        sent_at=moment(message.get("create_time")),
    )


def _parts(content: Table) -> Iterator[str]:
    for part in items(content.get("parts")):
        if isinstance(part, str):
            yield part
        elif table(part).get("content_type") == "audio_transcription":
            yield text(table(part).get("text"))


def _profile_chats(profiles: dict[str, None], chats: Sequence[Chat]) -> Iterator[Chat]:
    ends = [chat.ended_at for chat in chats if chat.ended_at is not None]
    for profile in (one for one in profiles if one):
        yield Chat(
            messages=(ChatMessage(role=USER, text=profile, sent_at=min(ends) if ends else None),),
            ended_at=min(ends) if ends else None,
        )
