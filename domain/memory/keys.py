"""How a key is spelled: lower snake case without fillers, 3 to 64 characters."""

import hashlib
import re
from functools import lru_cache
from typing import Final

from domain.memory.values import normalise

KEY_LENGTH: Final = 64

_RUN: Final = re.compile(r"_+")
_NOT_WORD: Final = re.compile(r"[\W]+|_+")
_VALID: Final = re.compile(r"^[a-z][a-z0-9_]{2,63}$")
_NOISE: Final = re.compile(
    r"^(?:the_)?(?:user(?:_?s)?|my|his|her|their|person)_|^(?:is|has|have)_(?=[a-z]+_)"
)


@lru_cache(maxsize=4096)
def canonical_key(key: str) -> str:
    """Spell ``key`` the way keys are spelled; a key with no such spelling is named by its digest."""
    snake = _RUN.sub("_", _NOT_WORD.sub("_", normalise(key))).strip("_")
    for spelled in (_without_noise(snake)[:KEY_LENGTH].rstrip("_"), snake[:KEY_LENGTH].rstrip("_")):
        if _VALID.match(spelled):
            return spelled
    return f"key_{hashlib.sha256(snake.encode()).hexdigest()[:12]}"


def _without_noise(snake: str) -> str:
    while (shorter := _NOISE.sub("", snake)) != snake:
        snake = shorter
    return snake
