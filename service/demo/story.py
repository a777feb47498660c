"""What the demonstration says: conversations of one user, and what should come of each line."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One message; ``left_out`` says why nothing of it may be remembered, and is empty where something is."""

    role: str
    text: str
    left_out: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One conversation."""

    title: str
    ended_at: datetime
    lines: tuple[Line, ...]


FIRST: Final = Day(
    title="a name, a city, a liking, a secret",
    ended_at=datetime(2026, 3, 2, 18, 30, tzinfo=UTC),
    lines=(
        Line(role="user", text="Hi! My name is Ada Novak and I live in Lisbon."),
        Line(
            role="assistant",
            text="Nice to meet you, Ada. You must be a keen surfer.",
            left_out="the assistant said it, not the user",
        ),
        Line(role="user", text="I love black coffee."),
        Line(
            role="user",
            text="By the way, my password is Tr0ub4dor-4711.",
            left_out="a secret; it is stored as a mark",
        ),
        Line(role="user", text="Should I buy a bicycle?", left_out="a question says nothing about the user"),
    ),
)
SECOND: Final = Day(
    title="the opposite of a liking",
    ended_at=datetime(2026, 3, 16, 8, 5, tzinfo=UTC),
    lines=(
        Line(role="user", text="I work as a nurse."),
        Line(
            role="assistant",
            text="Do you still start with black coffee?",
            left_out="a question of the assistant",
        ),
        Line(role="user", text="No, I don't like black coffee anymore."),
    ),
)
THIRD: Final = Day(
    title="a move to another city",
    ended_at=datetime(2026, 4, 20, 21, 10, tzinfo=UTC),
    lines=(
        Line(role="user", text="I moved to Porto."),
        Line(
            role="assistant",
            text="Then you will like the river.",
            left_out="the assistant said it, not the user",
        ),
    ),
)
OLDEST: Final = Day(
    title="older than all of them, and last to arrive",
    ended_at=datetime(2026, 1, 11, 12, 0, tzinfo=UTC),
    lines=(Line(role="user", text="I live in Braga. I work as a waiter."),),
)
