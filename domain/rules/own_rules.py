"""What an operator changes about the rules: rules of their own, and rules that are off."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRules:
    """Rules beside those of the package, by language, and the full names of the rules that are ``off``.

    ``digest`` is that of the file that they were read from.
    """

    by_language: Mapping[str, Sequence[Table]] = field(default_factory=dict)
    off: frozenset[str] = frozenset()
    digest: str = ""

    def of(self, language: str) -> Sequence[Table]:
        """Return the operator's rules for ``language``."""
        return self.by_language.get(language, ())

    @property
    def names(self) -> tuple[str, ...]:
        """The full names of the operator's rules."""
        return tuple(
            full_name(language, str(one["name"]))
            for language in self.by_language
            for one in self.of(language)
        )

    def without(self, off: frozenset[str]) -> "OwnRules":
        """Return these rules with ``off`` switched off."""
        return replace(self, off=off)

    def version(self, texts: Sequence[str]) -> str:
        """Name the rules as they are used: those of ``texts``, the operator's, and without what is off."""
        digest = hashlib.sha256("\0".join([*texts, self.digest, *sorted(self.off)]).encode())
        return f"rules-1+{digest.hexdigest()[:12]}"


def full_name(language: str, name: str) -> str:
    """Return the name under which a rule is told and switched off: "en/home_city-1"."""
    return f"{language}/{name}"


PACKAGE_RULES: Final = OwnRules()
