"""Parts of a clause that lack a subject or a verb, completed to clauses of their own.

"I'm Ana, 34, a nurse from Porto" says four things, and "my sister Ana, who lives in Porto" two. What may be
completed, and by which words, is data: ``[fragments]`` of a rule file.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_MOST: Final = 8


class Fragments:
    """Completes the fragments of one language."""

    __slots__ = ("_after", "_at", "_elided", "_inside", "_relative", "_words")

    def __init__(self, patterns: Mapping[str, re.Pattern[str]], words: Mapping[str, str]) -> None:
        self._after = patterns.get("after")
        self._at = patterns.get("at")
        self._inside = patterns.get("inside")
        self._relative = patterns.get("relative")
        self._elided = patterns.get("elided")
        self._words = words

    def complete(self, text: str, subject: str, *, may_lack_subject: bool = False) -> Iterator[str]:
        """Yield ``text``, a clause about ``subject``, and the clauses that its fragments stand for.

        A sentence that nobody is the subject of may be one of the user's own: "Moved to Porto last week".
        """
        yield text
        if may_lack_subject and not subject and self._elided is not None:
            match = self._elided.match(text)
            if match is not None and match.lastgroup:
                text = f"{self._words[match.lastgroup]}{text}"
                yield text
        if self._relative is not None and subject and (who := self._relative.search(text)):
            yield f"{subject} {text[who.end() :]}"
        if self._after is None or self._at is None or not (head := self._after.match(text)):
            return
        places = [match for match in self._at.finditer(text, head.end()) if match.lastgroup][:_MOST]
        starts = [*(match.start() for match in places), len(text)]
        yield from self._parts(text[: starts[0]], is_first=True)
        for match, end in zip(places, starts[1:], strict=True):
            own = match.start(str(match.lastgroup))
            yield from self._parts(f"{self._words[str(match.lastgroup)]}{text[own:end]}")

    def _parts(self, text: str, *, is_first: bool = False) -> Iterator[str]:
        """Yield ``text`` and what follows it without a comma: "a nurse", "from Porto"."""
        if not is_first:
            yield text
        if self._inside is not None and (match := self._inside.match(text)):
            yield f"{self._words['am']}{text[match.end() :]}"
