"""Windows for tests of the model clients."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from domain.conversation import Message
from domain.windows import Window

ENDED: datetime = datetime(2024, 5, 1, 10, 0, tzinfo=UTC)


def window_of(turns: Iterable[tuple[str, str]], *, overlap: int = 0) -> Window:
    """Build the window of ``turns``, (role, text) each."""
    messages = tuple(
        Message(
            message_id=f"msg-{place}",
            position=place,
            role=role,
            content=text,
            sent_at=ENDED - timedelta(minutes=60 - place),
        )
        for place, (role, text) in enumerate(turns)
    )
    return Window(
        session_id=UUID(int=7),
        index=0,
        messages=messages,
        overlap=overlap,
        ended_at=ENDED,
        timezone="Europe/Lisbon",
        language="en",
    )
