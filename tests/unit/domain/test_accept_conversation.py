"""What reaches intake of what was said."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

import pytest

from domain.accept_conversation import AcceptConversation, AcceptMessage
from domain.arrivals import Acceptance, EndedConversation, PostedMessage, Verdict
from domain.conversation import Message, UserRef
from domain.ports import RecallText
from domain.secrets import MARK

pytestmark = pytest.mark.anyio

SESSION: Final = UUID("00000000-0000-4000-8000-000000000001")
USER: Final = UserRef(user_id=UUID("00000000-0000-4000-8000-000000000002"))
NOON: Final = datetime(2024, 3, 1, 12, tzinfo=UTC)
GRACE: Final = timedelta(seconds=30)
SECRET: Final = "Tr0ub4dor" + "3x"
SAID: Final = Message(
    message_id="m0", position=0, role="user", content=f"My password is {SECRET}.", sent_at=NOON
)


class Intake:
    """Takes note of what it is given."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.words: list[RecallText] = []

    async def accept(
        self, conversation: EndedConversation, recall: Mapping[str, RecallText], *, grace: timedelta
    ) -> Acceptance:
        self.messages += conversation.messages or ()
        self.words += recall.values()
        return Acceptance(verdict=Verdict.ACCEPTED, job_id=SESSION, user_id=SESSION, revision=1)

    async def post(self, message: PostedMessage, recall: RecallText, *, grace: timedelta) -> None:
        self.messages.append(message.message)
        self.words.append(recall)


def words_of(text: str, language: str | None) -> RecallText:
    tokens = tuple(text.split())
    return RecallText(tokens=tokens, length=len(tokens))


async def test_a_secret_does_not_reach_the_tables_with_a_conversation() -> None:
    intake = Intake()
    accept = AcceptConversation(intake=intake, tokenizer=words_of, grace=GRACE)

    await accept(
        EndedConversation(tenant_id="acme", user=USER, session_id=SESSION, ended_at=NOON, messages=(SAID,))
    )

    assert [MARK in one.content for one in intake.messages] == [True]
    assert SECRET not in f"{intake.messages} {intake.words}"


async def test_a_secret_does_not_reach_the_tables_with_a_single_message() -> None:
    intake = Intake()
    accept = AcceptMessage(intake=intake, tokenizer=words_of, grace=GRACE)

    await accept(PostedMessage(tenant_id="acme", user=USER, session_id=SESSION, message=SAID))

    assert [MARK in one.content for one in intake.messages] == [True]
    assert SECRET not in f"{intake.messages} {intake.words}"


async def test_a_secret_in_the_name_of_a_speaker_does_not_reach_the_tables() -> None:
    intake = Intake()
    accept = AcceptMessage(intake=intake, tokenizer=words_of, grace=GRACE)
    named = replace(SAID, content="Hello.", name=f"password: {SECRET}")

    await accept(PostedMessage(tenant_id="acme", user=USER, session_id=SESSION, message=named))

    assert [one.content for one in intake.messages] == ["Hello."]
    assert SECRET not in f"{intake.messages} {intake.words}"
