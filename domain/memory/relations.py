"""How the claims of a component relate: which slots and values are one, which exclude each other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from domain.memory.assertions import (
    Assertion,
    Authority,
    Claim,
    Judgement,
    Merge,
    Mode,
    Rivals,
    Same,
    SlotLink,
    Verdict,
)
from domain.memory.clusters import Edge, Grouping, group
from domain.memory.gists import Gist
from domain.memory.slots import Slot, arity_of, asks, is_known
from domain.memory.values import EVERYTHING, must_differ, parts
from domain.memory.vocabulary import Arity


class LineKey(NamedTuple):
    """One line of the story: a group of slots, one thing in it, and a mode."""

    family: Slot
    subject: str
    mode: Mode


class Joint(NamedTuple):
    """A stored or implied wish to show two values as one text."""

    left: str
    right: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relations:
    """Everything that judgements say about the statements of one component."""

    families: Mapping[Slot, Slot]
    subjects: Mapping[tuple[Slot, str], str]
    within: Mapping[tuple[Slot, str, str], Verdict]
    partners: Mapping[tuple[Slot, str], Sequence[str]]
    across: Mapping[LineKey, Mapping[LineKey, str]]
    joints: Mapping[Slot, Sequence[Joint]]
    refused: frozenset[tuple[str, str]]

    def key(self, claim: Claim) -> LineKey:
        """Return the line that ``claim`` belongs to."""
        family = self.families.get(claim.slot, claim.slot)
        return LineKey(family, self.subjects.get((family, claim.norm), claim.norm), claim.mode)

    def verdict(self, one: LineKey, other: LineKey) -> Verdict | None:
        """Return what was judged about two lines of one family."""
        low, high = sorted((one.subject, other.subject))
        return self.within.get((one.family, low, high))

    def judged(self, key: LineKey) -> Iterator[LineKey]:
        """Yield the lines of the same family and mode about which something was judged against ``key``."""
        for subject in self.partners.get((key.family, key.subject), ()):
            yield LineKey(key.family, subject, key.mode)

    def arity(self, family: Slot) -> Arity:
        """Return how many values of ``family`` may hold at once."""
        kinds = {slot: arity_of(slot) for slot, root in self.families.items() if root == family} or {
            family: arity_of(family)
        }
        known = [kind for slot, kind in kinds.items() if is_known(slot)]
        return known[0] if known else min(kinds.values(), key=(Arity.ONE, Arity.FREE).index)

    def asks(self, family: Slot) -> bool:
        """Say whether each change in ``family`` is put to the user."""
        return any(asks(slot) for slot, root in self.families.items() if root == family)


def relate(
    statements: Sequence[Assertion],
    judgements: Iterable[Judgement],
    links: Iterable[SlotLink],
    gist: Gist | None = None,
) -> Relations:
    """Work out the relations among ``statements``; a judgement counts only while both sides are said.

    Values of one family with the same ``gist`` are one, unless a judgement or a guard keeps them apart.
    """
    families = families_of({s.slot for s in statements}, links)
    said: dict[Slot, set[str]] = defaultdict(set)
    for statement in statements:
        said[families[statement.slot]].add(statement.claim.norm)
    inner, outer = _sorted_out(judgements, families)
    groupings = {
        family: _group_values(norms, inner[family], _reworded(family, norms, gist))
        for family, norms in said.items()
    }
    subjects = {(f, norm): root for f, grouping in groupings.items() for norm, root in grouping.root.items()}
    within = _within(inner, said, subjects)
    return Relations(
        families=families,
        subjects=subjects,
        within=within,
        partners=_partners(within),
        across=_across(outer, families, subjects),
        joints={f: tuple(_joints(said[f], inner[f])) for f in said},
        refused=frozenset((e.left, e.right) for g in groupings.values() for e in g.refused),
    )


def families_of(slots: set[Slot], links: Iterable[SlotLink]) -> Mapping[Slot, Slot]:
    """Group ``slots`` by ``links``; two keys that the vocabulary knows never become one."""
    best: dict[tuple[Slot, Slot], SlotLink] = {}
    for link in sorted(links, key=lambda one: (one.authority, not one.same)):
        best[link.pair] = link
    edges = [Edge(-link.authority, *pair) for pair, link in best.items() if link.same]

    def apart(one: Slot, other: Slot) -> bool:
        judged = best.get((min(one, other), max(one, other)))
        return (is_known(one) and is_known(other)) or (judged is not None and not judged.same)

    return group(slots, edges, apart).root


Pairs = dict[tuple[str, str], Judgement]


def _sorted_out(
    judgements: Iterable[Judgement], families: Mapping[Slot, Slot]
) -> tuple[Mapping[Slot, Pairs], dict[tuple[Claim, Claim], Judgement]]:
    """Keep the weightiest answer on each pair, those within a family apart from those across."""
    inner: dict[Slot, Pairs] = defaultdict(dict)
    outer: dict[tuple[Claim, Claim], Judgement] = {}
    for judgement in sorted(judgements, key=lambda one: (one.rank, one.pair)):
        left, right = judgement.pair
        if families[left.slot] == families[right.slot]:
            low, high = sorted((left.norm, right.norm))
            inner[families[left.slot]][low, high] = judgement
        else:
            outer[left, right] = judgement
    return inner, outer


def _group_values(norms: set[str], judged: Pairs, reworded: Iterable[Edge[str]]) -> Grouping[str]:
    single = _single_occurrences(norms)
    edges = [
        Edge(-j.authority, *pair)
        for pair, j in judged.items()
        if isinstance(j.verdict, Same) and _fits(j, pair)
    ]
    edges += [Edge(-Authority.USER - 1, dated, bare) for bare, dated in single.items()]
    edges += reworded

    def apart(one: str, other: str) -> bool:
        judgement = judged.get((min(one, other), max(one, other)))
        return judgement is not None and not isinstance(judgement.verdict, Same)

    return group(norms - {EVERYTHING}, edges, apart)


def _reworded(family: Slot, norms: set[str], gist: Gist | None) -> Iterator[Edge[str]]:
    """Yield an edge between the values that come down to the same, and that no guard keeps apart."""
    if gist is None:
        return
    by_gist: dict[str, list[str]] = defaultdict(list)
    for norm in sorted(norms - {EVERYTHING}):
        by_gist[gist(family, norm)].append(norm)
    for alike in by_gist.values():
        for one, other in combinations(alike, 2):
            if must_differ(one, other) is None:
                yield Edge(-Authority.RULES, one, other)


def _fits(judgement: Judgement, pair: tuple[str, str]) -> bool:
    """Refuse "the same" across different numbers, and from mere distance across any guard."""
    guard = must_differ(*pair)
    if judgement.authority >= Authority.OPERATOR or guard is None:
        return True
    return guard != "numbers" and judgement.authority >= Authority.MODEL


def _single_occurrences(norms: set[str]) -> dict[str, str]:
    """Map an event said without a date to its only dated occurrence."""
    dated: dict[str, list[str]] = defaultdict(list)
    for norm in norms:
        base, found, _ = norm.rpartition(" @ ")
        if found:
            dated[base].append(norm)
    return {base: only[0] for base, only in dated.items() if len(only) == 1 and base in norms}


def _within(
    inner: Mapping[Slot, Pairs], said: Mapping[Slot, set[str]], subjects: Mapping[tuple[Slot, str], str]
) -> Mapping[tuple[Slot, str, str], Verdict]:
    best: dict[tuple[Slot, str, str], tuple[tuple[int, float, int, str], Verdict]] = {}
    for family, judged in inner.items():
        for (left, right), judgement in judged.items():
            low, high = sorted((subjects.get((family, left), left), subjects.get((family, right), right)))
            known = best.get((family, low, high))
            if (
                low != high
                and not isinstance(judgement.verdict, Same)
                and (known is None or known[0] < judgement.rank)
            ):
                best[family, low, high] = (judgement.rank, judgement.verdict)
    found = {key: verdict for key, (_, verdict) in best.items()}
    for family, norms in said.items():
        for part, whole in _compounds(norms):
            low, high = sorted((subjects.get((family, part), part), subjects.get((family, whole), whole)))
            if low != high:
                found.setdefault((family, low, high), Merge(whole))
    return found


def _partners(within: Mapping[tuple[Slot, str, str], Verdict]) -> Mapping[tuple[Slot, str], Sequence[str]]:
    found: dict[tuple[Slot, str], list[str]] = defaultdict(list)
    for family, low, high in sorted(within):
        found[family, low].append(high)
        found[family, high].append(low)
    return found


def _compounds(norms: set[str]) -> Iterator[tuple[str, str]]:
    for whole in sorted(norms):
        for part in sorted(parts(whole) & norms):
            yield part, whole


def _joints(norms: set[str], judged: Pairs) -> Iterator[Joint]:
    for (left, right), judgement in sorted(judged.items(), key=lambda item: (-item[1].authority, item[0])):
        if isinstance(judgement.verdict, Merge):
            yield Joint(left, right, judgement.verdict.text)
    for part, whole in _compounds(norms):
        if (min(part, whole), max(part, whole)) not in judged:
            yield Joint(part, whole, whole)


def _across(
    outer: Mapping[tuple[Claim, Claim], Judgement],
    families: Mapping[Slot, Slot],
    subjects: Mapping[tuple[Slot, str], str],
) -> Mapping[LineKey, Mapping[LineKey, str]]:
    found: dict[LineKey, dict[LineKey, str]] = defaultdict(dict)
    for pair, judgement in sorted(outer.items()):
        if isinstance(judgement.verdict, Rivals):
            one, other = (
                LineKey(families[c.slot], subjects.get((families[c.slot], c.norm), c.norm), c.mode)
                for c in pair
            )
            found[one][other] = found[other][one] = judgement.note
    return found
