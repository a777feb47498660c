"""Commands for a shadow replay: what it would change, and making it what is served."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from uuid import UUID

import typer
from rich.progress import Progress as Bar

from domain.generations import (
    Chosen,
    CompareGenerations,
    Evidence,
    FactDifference,
    Progress,
    PromoteGeneration,
    ScopeDifference,
    Standing,
)
from domain.memory.facts import FactRow
from domain.text_cleaning import clean
from service.cli.database import opened_generations
from service.cli.output import Json, err, out, print_json, print_table
from service.settings import load_settings
from service.wiring import rules_of
from storage.job_rows import user_id_of

_DEFAULT_TENANT: Final = "default"
_SHOWN: Final = ("fact_value", "status", "intervals", "confidence")
_COLUMNS: Final = ("change", "fact", "key", "before", "after", "said in")
_NOTHING: Final = "No fact would change."
_MOST_EXCERPT: Final = 80

ReplayId = Annotated[str, typer.Argument(help="The replay, as `afterword replay list` prints it.")]


@dataclass(slots=True, kw_only=True)
class _Sum:
    """What the differences come to."""

    users: int = 0
    added: int = 0
    gone: int = 0
    changed: int = 0
    provenance: int = 0

    def add(self, one: ScopeDifference) -> None:
        """Count one scope."""
        self.users += 1
        self.added += one.added
        self.gone += one.gone
        self.changed += one.changed
        self.provenance += one.revised_provenance


def diff(
    replay_id: ReplayId,
    user: Annotated[
        str | None,
        typer.Option("--user", help="Only this user: a UUID of Afterword's, or an id of your own."),
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="In the tables also facts of which only the provenance changes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell what promoting a shadow replay would change, user by user, with the evidence; change nothing.

    With `--json` one line a fact, one a user, and one with the sums at the end.

    Example: `afterword diff again-1 --json > diff.jsonl`
    """
    asyncio.run(_diff(replay_id, _chosen(user, tenant), everything=everything, as_json=as_json))


def promote(
    replay_id: ReplayId,
    partial: Annotated[
        bool, typer.Option("--partial", help="Promote what is complete and leave the rest as it is served.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Serve what a shadow replay made, user after user, with one event for each changed fact.

    Interrupted and run again it goes on with what is left.

    Example: `afterword promote again-1`
    """
    done = asyncio.run(_promote(replay_id, partial=partial))
    if as_json:
        print_json({"replay_id": replay_id, "users": done.scopes, "facts": done.facts})
        return
    out().print(f"{done.scopes} users promoted, {done.facts} facts changed.")


async def _diff(replay_id: str, chosen: Chosen, *, everything: bool, as_json: bool) -> None:
    total = _Sum()
    settings = load_settings()
    async with opened_generations(settings) as (_, store):
        compare = CompareGenerations(store=store, rules=rules_of(settings))
        standing = await compare.standing(replay_id, chosen)
        async for one in compare(replay_id, chosen):
            total.add(one)
            if as_json:
                _print_lines(one)
            else:
                _print_scope(one, everything=everything)
    if as_json:
        print_json({"kind": "sum", **_counts(total), "sessions": _standing(standing)})
        return
    _print_sum(total, standing)


async def _promote(replay_id: str, *, partial: bool) -> Progress:
    async with opened_generations(load_settings()) as (_, store):
        with Bar(console=err(), transient=True) as bar:
            task = bar.add_task("Promoting", total=None)

            def shown(progress: Progress) -> None:
                what = f"Promoting: {progress.facts} facts changed"
                bar.update(task, completed=progress.scopes, total=progress.total, description=what)

            return await PromoteGeneration(store=store)(replay_id, partial=partial, on_scope=shown)


def _print_lines(one: ScopeDifference) -> None:
    scope = {"tenant_id": one.scope.tenant, "user_id": one.scope.user, "avatar_id": one.scope.avatar}
    for fact in one.facts:
        print_json({"kind": "fact", **scope, **_fact_line(fact)})
    counts = {"added": one.added, "gone": one.gone, "changed": one.changed}
    print_json({"kind": "user", **scope, **counts, "provenance_alone": one.revised_provenance})


def _fact_line(one: FactDifference) -> Mapping[str, Any]:
    return {
        "fact_id": one.fact_id,
        "change": one.change.value,
        "fields": one.fields,
        "before": _fact(one.before, one.evidence_before),
        "after": _fact(one.after, one.evidence_after),
    }


def _fact(fact: FactRow | None, evidence: tuple[Evidence, ...]) -> Mapping[str, Any] | None:
    if fact is None:
        return None
    return {
        "key": fact.fact_key,
        "value": fact.fact_value,
        "content": fact.content,
        "status": fact.status.value,
        "confidence": fact.confidence,
        "intervals": [[_time(start), _time(end)] for start, end in fact.intervals],
        "revision": fact.revision,
        "method": fact.extraction_method,
        "model": fact.model,
        "spec_version": fact.spec_version,
        "evidence": [
            {
                "session_id": said.session_id,
                "generation": said.generation,
                "message_ids": said.message_ids,
                "excerpt": said.excerpt,
                "said_at": said.said_at.isoformat(),
            }
            for said in evidence
        ],
    }


def _print_scope(one: ScopeDifference, *, everything: bool) -> None:
    shown = [fact for fact in one.facts if everything or not fact.is_provenance_alone]
    if not shown:
        return
    out().print(f"user {one.scope.user} of {_plain(one.scope.tenant)}", markup=False)
    print_table(_COLUMNS, map(_row, shown), nothing=_NOTHING)
    out().print()


def _row(one: FactDifference) -> tuple[object, ...]:
    fact = one.after or one.before
    before, after = _cell(one.before, one), _cell(one.after, one)
    said = one.evidence_after or one.evidence_before
    change = "provenance" if one.is_provenance_alone else one.change.value
    key = _plain(fact.fact_key) if fact is not None else ""
    return (change, one.fact_id, key, before, after, "\n".join(map(_said, said)))


def _cell(fact: FactRow | None, one: FactDifference) -> str:
    """Show the value, and what else differs of it."""
    if fact is None:
        return ""
    more = [name for name in _SHOWN[1:] if name in one.fields]
    told = {
        "status": fact.status.value,
        "confidence": str(fact.confidence),
        "intervals": ", ".join(
            f"{_time(start) or '…'} – {_time(end) or '…'}" for start, end in fact.intervals
        ),
    }
    return "\n".join((_plain(fact.fact_value), *(f"{name} {told[name]}" for name in more)))


def _said(one: Evidence) -> str:
    excerpt = _plain(one.excerpt)
    short = excerpt if len(excerpt) <= _MOST_EXCERPT else f"{excerpt[:_MOST_EXCERPT]}…"
    return f"{one.said_at:%Y-%m-%d} {one.session_id} {' '.join(map(_plain, one.message_ids))} “{short}”"


def _print_sum(total: _Sum, standing: Standing) -> None:
    out().print(
        f"{total.users} users: {total.added} facts added, {total.gone} gone, {total.changed} changed, "
        f"{total.provenance} of which only the provenance changes."
    )
    for name, count in (("open", standing.open), ("dead", standing.dead), ("changed", standing.changed)):
        if count:
            named = ", ".join(map(str, standing.named.get(name, ())))
            err().print(f"Not compared, {name}: {count} sessions ({named})", markup=False)


def _counts(total: _Sum) -> Mapping[str, int]:
    return {
        "users": total.users,
        "added": total.added,
        "gone": total.gone,
        "changed": total.changed,
        "provenance_alone": total.provenance,
    }


def _standing(one: Standing) -> Mapping[str, Any]:
    counts = {
        "compared": one.ready,
        "serving": one.serving,
        "open": one.open,
        "dead": one.dead,
        "changed": one.changed,
        "empty": one.empty,
    }
    return {**counts, "named": one.named}


def _chosen(user: str | None, tenant: str | None) -> Chosen:
    if user is None:
        return Chosen(tenant_id=tenant)
    try:
        return Chosen(tenant_id=tenant, user_id=UUID(user))
    except ValueError:
        of = tenant or _DEFAULT_TENANT
        return Chosen(tenant_id=of, user_id=user_id_of(of, user))


def _plain(text: str) -> str:
    """Return ``text`` on one line, without anything that a terminal obeys."""
    return " ".join(clean(text).text.split())


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None
