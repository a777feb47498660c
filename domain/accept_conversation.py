"""Take in ended conversations and single messages: cleaned, without secrets, once each."""

from dataclasses import replace
from datetime import timedelta

from domain.arrivals import Acceptance, EndedConversation, PostedMessage
from domain.conversation import Message
from domain.ports import RecallText, RecallTokenizer
from domain.secrets import redact
from domain.stores import Intake


class AcceptConversation:
    """Store a conversation that ended, with a job to extract it; a repeat changes nothing."""

    def __init__(self, *, intake: Intake, tokenizer: RecallTokenizer, grace: timedelta) -> None:
        self._intake = intake
        self._tokenizer = tokenizer
        self._grace = grace

    async def __call__(self, conversation: EndedConversation) -> Acceptance:
        """Store ``conversation`` and say what its arrival did.

        Raises:
            StorageUnavailableError: nothing was stored; the same call may be made again.
        """
        messages = conversation.messages
        if messages is None:
            return await self._intake.accept(conversation, {}, grace=self._grace)
        kept = tuple(map(_redacted, messages))
        recall = {message.message_id: self._words(message, conversation.language) for message in kept}
        return await self._intake.accept(replace(conversation, messages=kept), recall, grace=self._grace)

    def _words(self, message: Message, language: str | None) -> RecallText:
        return self._tokenizer(message.content, language)


class AcceptMessage:
    """Store one message of a conversation that may still go on."""

    def __init__(self, *, intake: Intake, tokenizer: RecallTokenizer, grace: timedelta) -> None:
        self._intake = intake
        self._tokenizer = tokenizer
        self._grace = grace

    async def __call__(self, posted: PostedMessage) -> None:
        """Store ``posted``; one that comes after the end of its session makes a new revision of it.

        Raises:
            StorageUnavailableError: nothing was stored; the same call may be made again.
        """
        message = _redacted(posted.message)
        recall = self._tokenizer(message.content, posted.language)
        await self._intake.post(replace(posted, message=message), recall, grace=self._grace)


def _redacted(message: Message) -> Message:
    """Replace secrets before anything is stored; the raw text is not kept anywhere but in dead letters."""
    content = redact(message.content)
    name = redact(message.name) if message.name is not None else None
    if (content, name) == (message.content, message.name):
        return message
    return replace(message, content=content, name=name)
