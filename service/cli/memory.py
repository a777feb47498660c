"""Commands that speak to a running service over Kafka, as an engine does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar
from uuid import UUID

import typer

from producers.client import MemoryClient
from service.cli.output import Json, err, out, print_json, print_table
from service.settings import load_settings
from service.wiring import broker_of

T = TypeVar("T")

User = Annotated[str, typer.Option("--user", help="The user: a UUID of Afterword's, or an id of your own.")]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant.")]
Avatar = Annotated[UUID | None, typer.Option("--avatar", help="The avatar; without it the default one.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for an answer.")]


def inject(
    user: User,
    tenant: Tenant = "default",
    avatar: Avatar = None,
    query: Annotated[str | None, typer.Option("--query", help="What the next turn is about.")] = None,
    char_budget: Annotated[int | None, typer.Option("--char-budget", help="Longest text.")] = None,
    timeout: Timeout = 10.0,
    as_json: Json = False,
) -> None:
    """Print what a prompt would get of a user's memory.

    Example: `afterword inject --user 7c1f3f0e-6c0b-4b43-9d57-0a3d7b1f2c11`
    """
    mode = "ranked" if query is None else "relevant"
    more = {"avatar_id": avatar, "char_budget": char_budget, "mode": mode, "query": query}
    reply = _ask(tenant, lambda memory: memory.inject(user=user_of(user), timeout=timeout, **more))
    if as_json:
        print_json(reply.model_dump(mode="json"))
        return
    out().print(reply.text.rstrip() or "Nothing is remembered of this user.", markup=False, soft_wrap=True)


def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    tenant: Tenant = "default",
    avatar: Avatar = None,
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="What it is about; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=50, help="Most facts.")] = 6,
    timeout: Timeout = 10.0,
    as_json: Json = False,
) -> None:
    """Find what is remembered of a user about something; nothing where nothing is.

    Example: `afterword search "what does she drink" --user customer-17`
    """
    more = {"avatar_id": avatar, "topics": topic, "limit": limit}
    found = _ask(tenant, lambda memory: memory.search(query, user=user_of(user), timeout=timeout, **more))
    if as_json:
        for one in found:
            print_json(one.model_dump(mode="json"))
        return
    print_table(
        ("score", "category", "key", "value"),
        ((f"{one.score:.2f}", one.fact.category, one.fact.fact_key, one.fact.fact_value) for one in found),
        nothing="Nothing is remembered about this.",
    )


def facts(
    user: User,
    tenant: Tenant = "default",
    avatar: Avatar = None,
    everything: Annotated[bool, typer.Option("--all", help="Also what no longer holds.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="Most facts.")] = 100,
    timeout: Timeout = 10.0,
    as_json: Json = False,
) -> None:
    """List what is remembered of a user.

    Example: `afterword facts --user customer-17 --all --json`
    """
    status = ["active", "superseded", "deleted", "expired"] if everything else ["active"]
    more = {"avatar_id": avatar, "status": status, "limit": limit}
    page = _ask(tenant, lambda memory: memory.facts(user=user_of(user), timeout=timeout, **more))
    if as_json:
        for fact in page.items:
            print_json(fact.model_dump(mode="json"))
        return
    print_table(
        ("category", "key", "value", "status", "confidence", "last said"),
        (
            (
                f.category,
                f.fact_key,
                f.fact_value,
                f.status,
                f"{f.confidence:.2f}",
                f"{f.last_said_at:%Y-%m-%d %H:%M}",
            )
            for f in page.items
        ),
        nothing="Nothing is remembered of this user.",
    )
    if page.next_cursor:
        err().print(f"More than {limit}; ask with a higher --limit.")


def jobs(
    session: Annotated[UUID | None, typer.Option("--session", help="A session: its newest job.")] = None,
    job: Annotated[UUID | None, typer.Option("--job", help="A job.")] = None,
    tenant: Tenant = "default",
    timeout: Timeout = 10.0,
    as_json: Json = False,
) -> None:
    """Show the job of a session: whether its conversation is remembered yet, and what came of it.

    Example: `afterword jobs --session 0b6b1f6e-3a5f-4a53-8a87-0f5a9d6f0c11`
    """
    if session is None and job is None:
        raise typer.BadParameter("give --session or --job")
    found = _ask(tenant, lambda memory: memory.job(session_id=session, job_id=job, timeout=timeout))
    shown = found.model_dump(mode="json")
    if as_json:
        print_json(shown)
        return
    print_table(("", ""), ((name, value) for name, value in shown.items() if value is not None), nothing="")


def _ask(tenant: str, question: Callable[[MemoryClient], Awaitable[T]]) -> T:
    settings = load_settings()

    async def asked() -> T:
        prefix = settings.afterword_topic_prefix
        async with MemoryClient(broker_of(settings), tenant_id=tenant, topic_prefix=prefix) as memory:
            return await question(memory)

    return asyncio.run(asked())


def user_of(text: str) -> str | UUID:
    """Return the user that ``text`` names: a UUID is ours, anything else an id of the caller's own."""
    try:
        return UUID(text)
    except ValueError:
        return text
