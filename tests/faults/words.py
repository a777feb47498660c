"""How a broken promise is put."""

from collections.abc import Iterable
from typing import Final

_MOST_NAMED: Final = 3
_LONGEST: Final = 160


def told(problem: str, found: Iterable[object]) -> list[str]:
    """Return one line about ``found``; none where there is nothing."""
    every = list(found)
    if not every:
        return []
    named = ", ".join(str(one)[:_LONGEST] for one in every[:_MOST_NAMED])
    return [f"{len(every)} {problem}: {named}{', …' if len(every) > _MOST_NAMED else ''}"]
