"""What a statement does with its value, and the sort of fact that it is evidence of."""

from enum import StrEnum


class Stance(StrEnum):
    """What a statement does with its value."""

    HOLDS = "holds"
    DENIES = "denies"
    HELD = "held"
    PLANS = "plans"
    FORGETS = "forgets"


class Mode(StrEnum):
    """The sort of fact that a statement is evidence of."""

    HOLDS = "holds"
    DENIES = "denies"
    PLANS = "plans"
