"""Take in conversations that come again, or come from files, in a lane of their own."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from consumers.conversation_ended import Accept
from consumers.decoding import decode
from consumers.translation import Repairs, Translator
from domain.arrivals import EndedConversation, Origin, Verdict
from domain.conversation import LIVE
from domain.errors import InvalidInputError
from domain.outbox import Headers, RawRecord
from domain.replays import ReplayMode
from schemas import conversation as wire
from schemas import headers

_LABEL: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


class ConversationReplayHandler:
    """Takes in what is replayed: to fill in what is missing, or to be done again under a label."""

    def __init__(
        self,
        accept: Accept,
        *,
        on_repairs: Callable[[Repairs], None],
        on_verdict: Callable[[Verdict], None] = lambda _verdict: None,
    ) -> None:
        self._accept = accept
        self._on_repairs = on_repairs
        self._on_verdict = on_verdict

    async def __call__(self, record: RawRecord) -> None:
        """Store the conversation of ``record`` as its headers say; without any it fills in what is missing.

        Raises:
            InvalidInputError: the record is no such message, or its headers say no mode, or no label for it.
            InfrastructureError: the database is away; nothing was stored.
        """
        mode, generation = _ordered(record.headers)
        translator = Translator()
        message = decode(wire.ConversationEnded, record.value)
        ended = translator.ended(message, record, origin=Origin.REPLAY, generation=generation)
        acceptance = await self._accept(_of_replay(ended, record.headers, mode))
        self._on_repairs(translator.repairs)
        self._on_verdict(acceptance.verdict)


def _ordered(given: Headers) -> tuple[ReplayMode, str]:
    """Return mode and generation that the headers ask for; a fill is of the live generation."""
    try:
        mode = ReplayMode(headers.text(given, headers.REPLAY_MODE) or ReplayMode.FILL)
    except ValueError as exc:
        expected = ", ".join(ReplayMode)
        raise InvalidInputError(
            f"{headers.REPLAY_MODE}: expected one of {expected}", field=headers.REPLAY_MODE
        ) from exc
    generation = headers.text(given, headers.REPLAY_GENERATION)
    if mode is ReplayMode.FILL:
        if generation not in (None, LIVE):
            raise _invalid_generation(f"expected {LIVE} for {mode}")
        return mode, LIVE
    if generation is None or generation == LIVE or not _LABEL.fullmatch(generation):
        raise _invalid_generation(f"expected a label for {mode}")
    return mode, generation


def _invalid_generation(expected: str) -> InvalidInputError:
    name = headers.REPLAY_GENERATION
    return InvalidInputError(f"{name}: {expected}", field=name)


def _of_replay(ended: EndedConversation, given: Headers, mode: ReplayMode) -> EndedConversation:
    """Note which replay ordered it; a writer's own id that is none of a replay's is not kept."""
    replay_id = headers.text(given, headers.REPLAY_ID)
    is_one = replay_id is not None and _LABEL.fullmatch(replay_id) is not None
    return replace(ended, replay_id=replay_id if is_one else None, replay_mode=mode)
