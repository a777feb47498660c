"""Stems of words by Snowball."""

from collections.abc import Sequence
from typing import Final

import Stemmer

_ALGORITHMS: Final = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "fi": "finnish", "fr": "french", "hu": "hungarian", "id": "indonesian", "it": "italian",
    "nl": "dutch", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish",
    "tr": "turkish",
}  # fmt: skip


class SnowballStemmer:
    """PyStemmer as the domain's ``Stemmer``; belongs to one thread."""

    def __init__(self) -> None:
        self._stemmers = {language: Stemmer.Stemmer(name) for language, name in _ALGORITHMS.items()}

    def stem(self, words: Sequence[str], language: str) -> list[str]:
        """Return the stems of ``words``; words of a language without a stemmer come back as they are."""
        stemmer = self._stemmers.get(language)
        return list(words) if stemmer is None else list(stemmer.stemWords(list(words)))
