"""How far a replay is, on standard error: a bar in a terminal, else a line now and then."""

import time
from types import TracebackType
from typing import Final, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from domain.feed_replay import FeedState
from domain.replays import Replay
from service.cli.output import err

_LINE_EVERY_S: Final = 5.0


class ReplayBar:
    """Shows what is published of a replay, what is under way, its rate, and how long the rest will take."""

    def __init__(self, replay: Replay) -> None:
        self._console = err()
        self._total = replay.total
        self._before = _passed(replay)
        self._began = time.monotonic()
        self._told = self._began
        columns = (
            TextColumn("Replaying"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=self._console, disable=not self._console.is_terminal)
        self._task = self._bar.add_task("", total=self._total or None, completed=self._before)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, state: FeedState) -> None:
        """Show how far feeding is."""
        passed, now = _passed(state.replay), time.monotonic()
        rate = (passed - self._before) / max(now - self._began, 1e-9)
        ended, dead = state.jobs.jobs.get("completed", 0), state.jobs.dead
        told = f"{state.under_way} under way, {ended} done, {dead} dead, {rate:.1f}/s"
        self._bar.update(self._task, completed=passed, description=told)
        if not self._console.is_terminal and now - self._told >= _LINE_EVERY_S:
            self._told = now
            left = max(self._total - passed, 0)
            estimate = f"about {left / rate:.0f} s left" if rate > 0 else "no estimate yet"
            self._say(f"{passed} of {self._total} published, {told}, {estimate}")

    def wait(self, reason: str | None) -> None:
        """Say that something is waited for, or that it is there again (None)."""
        self._say(f"waiting: {reason}" if reason is not None else "going on")

    def _say(self, line: str) -> None:
        self._console.print(line, markup=False, soft_wrap=True)


def _passed(replay: Replay) -> int:
    return replay.published + sum(replay.skipped.values())
