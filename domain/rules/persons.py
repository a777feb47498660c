"""Whom "he" and "she" mean: the one person of the user's that a turn has spoken of so far."""

from collections.abc import Mapping

from domain.memory.values import normalise


class Persons:
    """The persons that one turn has named, by the pronoun that may stand for them.

    A pronoun stands for somebody only where one person fits it: after "my brother" and "my boss" nobody
    knows who "he" is. An animal fits every pronoun.
    """

    def __init__(
        self,
        pronouns: Mapping[str, frozenset[str]],
        relations: Mapping[str, str],
        animals: Mapping[str, str],
    ) -> None:
        self._pronouns = pronouns
        self._families = {**animals, **relations}
        self._animals = frozenset(animals.values())
        self._named: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._named)

    def see(self, relation: str, name: str | None) -> None:
        """Note that the user's ``relation`` was spoken of, by their ``name`` or without it."""
        family = self._families.get(normalise(relation), "")
        if name or family not in self._named:
            self._named[family] = f"my {relation} {name}" if name else f"my {relation}"

    def see_somebody(self) -> None:
        """Note that somebody was spoken of who may be meant by any pronoun."""
        self._named[""] = ""

    def meant_by(self, pronoun: str) -> str | None:
        """Return whom ``pronoun`` stands for, None when that is nobody or not certain."""
        word = normalise(pronoun)
        if word not in self._pronouns:
            return None
        fitting = self._pronouns[word] | self._animals
        found = [who for family, who in self._named.items() if not family or family in fitting]
        return found[0] if len(found) == 1 and found[0] else None
