"""Words that are one slip of a finger apart."""

from collections.abc import Collection, Iterator


def one_typo_away(word: str, known: Collection[str]) -> str | None:
    """Return the word of ``known`` that one letter more, less, other or swapped makes of ``word``.

    Of several the first in the order of the alphabet, so that the same question finds the same.
    """
    near = [one for one in known if one[:1] == word[:1] or one[1:] == word[1:] or one[:2] == word[1::-1]]
    found = sorted(set(near) & set(_slips(word, "".join(sorted(set("".join(near)))))))
    return found[0] if found else None


def _slips(word: str, letters: str) -> Iterator[str]:
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        if tail:
            yield head + tail[1:]
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]
        for letter in letters:
            yield head + letter + tail
            if tail and letter != tail[0]:
                yield head + letter + tail[1:]
