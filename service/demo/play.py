"""Play the demonstration as an engine would, and check on the way that what it shows is true."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from rich.console import Console
from rich.table import Table
from rich.text import Text

from domain.errors import AfterwordError
from producers.client import MemoryClient
from schemas.fact import Fact
from service.demo.story import FIRST, OLDEST, SECOND, THIRD, Day, Line

_SOON_S: Final = 60.0
_GAP: Final = timedelta(minutes=1)
_HEADER: Final = "## User Memory"

Facts = Mapping[UUID, Fact]


class DemoFailedError(AfterwordError):
    """The demonstration saw something that must not be."""


class Demo:
    """One user, four conversations, one of them twice and the oldest last."""

    def __init__(self, memory: MemoryClient, console: Console) -> None:
        self._memory = memory
        self._console = console
        self._user = uuid4()
        self._sessions: dict[str, UUID] = {}

    async def play(self) -> None:
        """Play all of it.

        Raises:
            DemoFailedError: something was not as promised.
        """
        known: Facts = {}
        for day in (FIRST, SECOND, THIRD):
            known = await self._tell(day, known)
        text = await self._inject("What the next prompt gets")
        await self._repeat(SECOND, known)
        await self._send_oldest(known, text)

    async def _tell(self, day: Day, before: Facts) -> Facts:
        self._heading(f"{day.ended_at:%d %B %Y}: {day.title}")
        await self._send(day)
        after = await self._facts()
        for line in day.lines:
            self._show(line, after.values())
        self._show_changes(before, after)
        return after

    async def _repeat(self, day: Day, before: Facts) -> None:
        self._heading(f"The conversation of {day.ended_at:%d %B} comes a second time")
        await self._send(day)
        after = await self._facts()
        _must(after == before, "a repeated conversation changed something")
        self._console.print("  Nothing changed: the same facts, and no new revision of any.")

    async def _send_oldest(self, before: Facts, text: str) -> None:
        self._heading(f"{OLDEST.ended_at:%d %B %Y}: {OLDEST.title}")
        await self._send(OLDEST)
        after = await self._facts()
        self._show_changes(before, after)
        _must(_current(after) == _current(before), "an old conversation changed what is current")
        again = await self._inject("The prompt stays as it was")
        _must(again == text, "an old conversation changed the prompt")

    async def _send(self, day: Day) -> None:
        session = self._sessions.setdefault(day.title, uuid4())
        first = day.ended_at - len(day.lines) * _GAP
        await self._memory.conversation_ended(
            session_id=session,
            user=self._user,
            ended_at=day.ended_at,
            messages=[
                {
                    "message_id": str(number),
                    "role": line.role,
                    "content": line.text,
                    "sent_at": (first + number * _GAP).isoformat(),
                }
                for number, line in enumerate(day.lines)
            ],
        )
        await self._memory.wait_until_remembered(session, timeout=_SOON_S)

    async def _facts(self) -> Facts:
        page = await self._memory.facts(user=self._user, status=["active", "superseded"], limit=100)
        # When a fact was last shown is no part of what is remembered.
        return {fact.fact_id: fact.model_copy(update={"last_seen_at": None}) for fact in page.items}

    async def _inject(self, title: str) -> str:
        self._heading(title)
        reply = await self._memory.inject(user=self._user)
        _must(reply.text.startswith(_HEADER), "the injection has no header")
        self._console.print(Text(reply.text.rstrip()), soft_wrap=True)
        return reply.text

    def _show(self, line: Line, facts: Iterable[Fact]) -> None:
        cited = any(_cites(fact, line) for fact in facts)
        _must(cited != bool(line.left_out), f"not as told: a line of {line.role}")
        mark = Text("  - ", style="yellow") if line.left_out else Text("  + ", style="green")
        told = Text(f"{line.role}: {_shown(line)}")
        why = Text(f"  (left out: {line.left_out})", style="dim") if line.left_out else Text("")
        self._console.print(mark + told + why, soft_wrap=True)

    def _show_changes(self, before: Facts, after: Facts) -> None:
        changed = [fact for key, fact in sorted(after.items(), key=_by_time) if before.get(key) != fact]
        table = Table(
            "what changed", "fact", "value", "from", "to", box=None, padding=(0, 2), header_style="dim"
        )
        for fact in changed:
            table.add_row(
                *map(Text, (_change(before, fact), fact.fact_key, fact.fact_value, *_interval(fact)))
            )
        self._console.print(table)

    def _heading(self, title: str) -> None:
        self._console.print()
        self._console.print(Text(title, style="bold"))


def _must(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition reads best in front
    if not holds:
        raise DemoFailedError(otherwise)


def _current(facts: Facts) -> Sequence[Fact]:
    return sorted((one for one in facts.values() if one.status == "active"), key=lambda one: one.fact_id)


def _cites(fact: Fact, line: Line) -> bool:
    excerpt = fact.source_excerpt or ""
    return bool(excerpt) and (excerpt in line.text or line.text in excerpt)


def _shown(line: Line) -> str:
    return line.text if "secret" not in line.left_out else "By the way, my password is ▮."


def _by_time(item: tuple[UUID, Fact]) -> tuple[bool, str, str]:
    fact = item[1]
    return (fact.status == "active", fact.fact_key, fact.fact_value)


def _change(before: Facts, fact: Fact) -> str:
    if fact.fact_id not in before:
        return "remembered" if fact.status == "active" else "remembered as history"
    return "ended" if fact.status != "active" else "revised"


def _interval(fact: Fact) -> tuple[str, str]:
    start = f"{fact.valid_from:%d %b %Y}" if fact.valid_from else ""
    return start, f"{fact.valid_to:%d %b %Y}" if fact.valid_to else ""
