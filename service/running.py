"""Run roles until asked to stop: prepare, start, say when all serve, and end inside one budget."""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version

from domain.errors import AfterwordError
from gateway.parts import ComponentState
from producers.topics_admin import TopicsAdmin
from service.answering import Http, responder_parts
from service.components import Component, Components
from service.observing import observing, reached, reporting
from service.own_files import vocabulary_of
from service.parts import ProcessPart
from service.processes import stdin_ended
from service.roles import Role, split
from service.settings import Settings, unknown_names
from service.surroundings import Surroundings, when_there
from service.wiring import stop_budget, topic_settings
from service.writing import command_parts, extraction_parts, intake_parts, relay_parts, upkeep_parts
from storage.migrate import migrate
from telemetry.logs import configure_logging

logger = logging.getLogger(__name__)

_CHILD_SHARE = 0.9
_FIXED = {
    Role.INTAKE: intake_parts,
    Role.EXTRACTION: extraction_parts,
    Role.RELAY: relay_parts,
    Role.COMMANDS: command_parts,
}


async def run_service(
    settings: Settings,
    roles: frozenset[Role],
    stop: asyncio.Event,
    on_ready: Callable[[], None],
    *,
    bound_to_stdin: bool = False,
) -> None:
    """Run ``roles`` until ``stop``; call ``on_ready`` once when all of them serve.

    A database or a broker that is not there yet is waited for.

    Raises:
        AfterwordError: the start is refused, or a part ended by itself.
    """
    configure_logging(
        level=settings.log_level, log_format=settings.log_format, quotable=(AfterwordError, OSError)
    )
    for name in unknown_names():
        logger.warning("nothing reads the setting %s", name)
    vocabulary_of(settings)
    here, apart = split(roles)
    watching = asyncio.create_task(_stop_with_stdin(stop)) if bound_to_stdin else None
    try:
        await _Running(settings, here, apart, is_bound=bound_to_stdin).run(stop, on_ready)
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _stop_with_stdin(stop: asyncio.Event) -> None:
    try:
        await stdin_ended()
    finally:
        # Also when it cannot be watched: a process that nothing binds would outlive who started it.
        stop.set()


class _Running:
    """The roles of this process, and the process for those that need one of their own."""

    def __init__(
        self, settings: Settings, here: frozenset[Role], apart: frozenset[Role], *, is_bound: bool
    ) -> None:
        self._settings = settings
        self._is_bound = is_bound
        self._here = here
        self._apart = apart
        self._components: Components | None = None

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], None]) -> None:
        async with Surroundings(self._settings) as shared:
            shared.metrics.built(version=version("afterword"), python=sys.version.split()[0])
            processes = _apart(self._apart, self._settings)
            http = Http(shared, self._states, processes) if Role.HTTP in self._here else None
            early: list[Component] = [http.part, *reached(shared)] if http is not None else []

            async def later() -> Sequence[Component]:
                await self._prepare(shared)
                parts = [*processes, *await self._parts(shared, http)]
                parts.append(observing(shared, [*early, *parts]))
                if self._is_bound:
                    parts.append(reporting(shared, [*early, *parts]))
                return parts

            budget = stop_budget(self._settings).parts
            self._components = Components(early, budget=budget, later=later)
            await self._components.run(stop, on_ready)

    async def _prepare(self, shared: Surroundings) -> None:
        """Bring the database up to date and create the topics, waiting for both."""
        direct, prefix = shared.database.direct_url.get_secret_value(), shared.topics.prefix
        if self._settings.enable_db_on_startup:
            await when_there("the database", lambda: migrate(direct, topic_prefix=prefix))
        if self._settings.afterword_create_topics:
            admin = TopicsAdmin(shared.broker, shared.topics, topic_settings(self._settings))
            await when_there("the broker", admin.create_missing)

    async def _parts(self, shared: Surroundings, http: Http | None) -> Sequence[Component]:
        parts: list[Component] = []
        for role in sorted(self._here, key=list(Role).index):
            match role:
                case Role.INTAKE | Role.EXTRACTION | Role.RELAY | Role.COMMANDS:
                    parts += await _FIXED[role](shared)
                case Role.RESPONDER:
                    parts += await responder_parts(shared)
                case Role.UPKEEP:
                    parts += await upkeep_parts(shared)
                case Role.HTTP:
                    # It answers already; now the memory is behind it.
                    parts += [] if http is None else [await http.opened()]
        return parts

    async def _states(self) -> Mapping[str, ComponentState]:
        if self._components is None:
            return {"service": ComponentState(is_ready=False, detail="starting")}
        return self._components.states()


def _apart(roles: frozenset[Role], settings: Settings) -> Sequence[ProcessPart]:
    if not roles:
        return ()
    # A little less than the budget of all parts: whoever is cut off cannot see to a child any more.
    return (ProcessPart(sorted(roles), within=stop_budget(settings).parts * _CHILD_SHARE),)
