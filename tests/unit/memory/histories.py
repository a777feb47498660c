"""Random histories: sessions, opinions and commands, for the promises of the fold."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from domain.memory.assertions import (
    Also,
    Assertion,
    Authority,
    Claim,
    Compatible,
    Corrects,
    InsteadOf,
    Judgement,
    Merge,
    Mode,
    Retraction,
    RetractionKind,
    Rivals,
    Same,
    SlotLink,
    Stance,
    claim_id,
)
from domain.memory.fold import Opinion
from domain.memory.slots import EVERYWHERE, Slot, slot_of
from tests.unit.memory.builders import SCOPE, at, said

CITY, DIET, LIKES, EVENT = map(slot_of, ("home_city", "diet", "likes", "event"))
RUNS, STORE = slot_of("runs_on"), slot_of("data_store")
SLOTS = (CITY, DIET, LIKES, EVENT, RUNS, STORE)
VALUES = ("a", "b", "c", "x 15", "x 17", "a, b")
EPOCH = at("2024-01-01")
DAYS = st.integers(0, 12)
SESSIONS = [f"s{number}" for number in range(6)]
Told = list[Assertion]
Taken = list[Retraction]
Item = TypeVar("Item")
History = list[tuple[set[Assertion], set[Opinion], set[Retraction]]]


@st.composite
def statements(
    draw: DrawFn,
    slots: Sequence[Slot] = SLOTS,
    values: Sequence[str] = VALUES,
    stances: Sequence[Stance] = tuple(Stance),
    confidences: Sequence[float] = (0.5, 0.9),
    *,
    plain: bool = False,
) -> list[Assertion]:
    """Draw sessions with a day each, and at most one statement at each position of a session."""
    days = draw(st.lists(DAYS, min_size=1, max_size=6))
    places = draw(
        st.lists(st.tuples(st.integers(0, len(days) - 1), st.integers(0, 2)), unique=True, max_size=12)
    )
    told = [
        draw(
            statement(f"s{number}", days[number], position, slots, values, stances, confidences, plain=plain)
        )
        for number, position in places
    ]
    return [*told, *draw(sweeps())] if slots is SLOTS and Stance.FORGETS in stances else told


def sweeps() -> SearchStrategy[list[Assertion]]:
    """Draw at most one "forget everything", in a session of its own."""
    sweep = st.builds(
        lambda day: said(
            EPOCH + timedelta(days=day, hours=6), EVERYWHERE, "*", stance=Stance.FORGETS, session="sweep"
        ),
        DAYS,
    )
    return st.lists(sweep, max_size=1)


@st.composite
def statement(  # noqa: PLR0913, PLR0917 - what is drawn from
    draw: DrawFn,
    session: str,
    day: int,
    position: int,
    slots: Sequence[Slot],
    values: Sequence[str],
    stances: Sequence[Stance],
    confidences: Sequence[float],
    *,
    plain: bool,
) -> Assertion:
    """Draw one statement; a ``plain`` one has no dates and no amendment."""
    moment = EPOCH + timedelta(days=day, minutes=position)
    stance = draw(st.sampled_from(stances))
    sweeping = stance in (Stance.DENIES, Stance.FORGETS)
    dates = st.none() if plain else st.none() | st.builds(lambda d: EPOCH + timedelta(days=d), DAYS)
    amendments: SearchStrategy[Also | InsteadOf | Corrects | None] = st.none()
    if not plain:
        amendments |= st.just(Also()) | st.builds(InsteadOf, st.sampled_from(values))
        amendments |= st.builds(Corrects, st.none() | st.sampled_from(values), st.booleans())
    since, until = draw(dates), draw(dates)
    if since is not None and until is not None and until < since:
        since, until = until, since
    return Assertion(
        scope=SCOPE,
        session_id=session,
        position=position,
        said_at=moment,
        slot=draw(st.sampled_from(slots)),
        value=draw(st.sampled_from((*values, "*") if sweeping else [one for one in values if one != "*"])),
        stance=stance,
        amends=draw(amendments),
        valid_from=since,
        valid_to=until,
        expires_at=draw(dates),
        confidence=draw(st.sampled_from(confidences)),
    )


def claims() -> SearchStrategy[Claim]:
    return st.builds(Claim, st.sampled_from(SLOTS), st.sampled_from(VALUES), st.sampled_from(Mode))


VERDICTS = st.sampled_from(
    [Same(), Rivals(), Compatible(), Merge("a and b"), Merge("a and b and c"), Merge("a, b")]
)
PAIRS = st.builds(
    lambda slot, left, right, verdict, authority: Judgement(
        left=Claim(slot, left), right=Claim(slot, right), verdict=verdict, authority=authority
    ),
    st.sampled_from(SLOTS),
    st.sampled_from((*VALUES, "a and b")),
    st.sampled_from(VALUES),
    VERDICTS,
    st.sampled_from(Authority),
)
CROSS = st.builds(lambda one, other: Judgement(left=one, right=other, verdict=Rivals()), claims(), claims())
LINKS = st.builds(
    lambda one, other, same: SlotLink(left=one, right=other, same=same),
    st.sampled_from(SLOTS),
    st.sampled_from(SLOTS),
    st.booleans(),
)
OPINIONS: SearchStrategy[list[Opinion]] = st.lists(st.one_of(PAIRS, CROSS, LINKS), max_size=6)
TARGETS = st.one_of(st.sampled_from(SLOTS), claims().map(lambda one: claim_id(SCOPE, one)))
COMMANDS = st.lists(
    st.builds(
        lambda target, day, kind: Retraction(
            target=target, at=EPOCH + timedelta(days=day, hours=12), kind=kind
        ),
        TARGETS,
        DAYS,
        st.sampled_from(RetractionKind),
    ),
    max_size=4,
)


COUPLED = (DIET, LIKES, RUNS)
COUPLED_CLAIMS = st.builds(Claim, st.sampled_from(COUPLED), st.just("a"))
COUPLINGS: SearchStrategy[list[Opinion]] = st.lists(
    st.builds(
        lambda one, other: Judgement(left=one, right=other, verdict=Rivals()), COUPLED_CLAIMS, COUPLED_CLAIMS
    ),
    min_size=1,
    max_size=3,
)


@st.composite
def edits(draw: DrawFn, *, coupled: bool = False) -> History:
    """Draw a history of what the store holds: batches come, sessions and opinions go."""
    few = statements(COUPLED, ("a",), (Stance.HOLDS, Stance.DENIES), (0.9,), plain=True)
    told, opinions = draw(few if coupled else statements()), draw(COUPLINGS if coupled else OPINIONS)
    commands = draw(COMMANDS)
    held, judged, taken = set(told), set(opinions), set(commands)
    history = [(set(held), set(judged), set(taken))]
    for _ in range(draw(st.integers(1, 4))):
        held ^= set(draw(some(told)))
        judged ^= set(draw(some(opinions)))
        taken ^= set(draw(some(commands)))
        history.append((set(held), set(judged), set(taken)))
    return history


def some(pool: Sequence[Item]) -> SearchStrategy[list[Item]]:
    """Draw what comes or goes in one step."""
    return st.lists(st.sampled_from(pool), max_size=2) if pool else st.just([])


#: The fields of a plain confident statement of a session of its own.
FRESH: dict[str, Any] = {
    "session_id": "again",
    "stance": Stance.HOLDS,
    "amends": None,
    "valid_from": None,
    "valid_to": None,
    "expires_at": None,
    "confidence": 0.9,
}
