"""Commands about facts: each applied once, folded in its own transaction."""

from collections.abc import Mapping, Sequence
from typing import Final, LiteralString
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import dict_row

from domain.command_facts import Applied, CommandRef
from domain.conversation import LIVE, UserRef
from domain.memory.assertions import Assertion, RetractionKind, Scope, claim_id
from domain.memory.facts import FactRow
from domain.memory.projection import Status
from domain.memory.reconcile import Occasion, reconcile
from domain.memory.timeline import Rules
from domain.ports import RecallTokenizer
from storage.commit_read_sql import AS_PROJECTION, LOCK_SCOPES
from storage.commit_reads import ScopeReader, Touched
from storage.commit_writes import Writes, lock_key, owner_of
from storage.evidence_rows import assertion_row
from storage.fact_rows import FACT_COLUMNS, fact_from_row
from storage.intake_rows import proposed_user_id
from storage.intake_sql import RESOLVE_USER
from storage.outbox_rows import outbox_rows
from storage.outgoing import Outgoing
from storage.pool import Database

NOTE_COMMAND: Final[LiteralString] = """
    INSERT INTO lis.applied_commands (user_id, tenant_id, avatar_id, command_id, kind)
    VALUES (%(user_id)s, %(tenant_id)s, %(avatar_id)s, %(command_id)s, %(kind)s)
        ON CONFLICT DO NOTHING
    RETURNING command_id
"""
NOTE_RESULT: Final[LiteralString] = """
    UPDATE lis.applied_commands
       SET fact_id = %(fact_id)s,
           removed = %(removed)s
     WHERE user_id = %(user_id)s
       AND tenant_id = %(tenant_id)s
       AND command_id = %(command_id)s
"""
READ_RESULT: Final[LiteralString] = """
    SELECT fact_id, removed
      FROM lis.applied_commands
     WHERE user_id = %(user_id)s
       AND tenant_id = %(tenant_id)s
       AND command_id = %(command_id)s
"""
KNOWN_USER: Final[LiteralString] = """
    SELECT user_id
      FROM lis.proxy_users
     WHERE tenant_id = %(tenant_id)s
       AND external_user_id = %(external_user_id)s
"""
ADD_RETRACTIONS: Final[LiteralString] = """
    INSERT INTO lis.retractions (user_id, tenant_id, avatar_id, command_id, target_claim, kind, at, source)
    SELECT %(user_id)s, %(tenant_id)s, %(avatar_id)s, %(command_id)s, n.name, %(kind)s, %(at)s, 'command'
      FROM unnest(%(names)s::uuid[]) AS n (name)
"""
# The id that a fact has now, or one that it had under an earlier name.
FIND_FACT: Final[LiteralString] = (
    "SELECT "  # noqa: S608 - literals alone
    + FACT_COLUMNS
    + """
      FROM lis.memory_facts AS f
     WHERE f.user_id = %(user_id)s
       AND f.tenant_id = %(tenant_id)s
       AND f.avatar_id = %(avatar_id)s
       AND (f.fact_id = %(fact_id)s OR %(fact_id)s = ANY (f.names))
     ORDER BY f.fact_id = %(fact_id)s DESC
     LIMIT 1
"""
)


class PostgresFactCommands:
    """``domain.command_facts.FactCommands``."""

    def __init__(
        self, database: Database, *, outgoing: Outgoing, tokenizer: RecallTokenizer, rules: Rules
    ) -> None:
        self._database = database
        self._outgoing = outgoing
        self._tokenizer = tokenizer
        self._rules = rules

    async def user_of(self, tenant_id: str, user: UserRef) -> UUID:
        """Return the user, made known where the id is the tenant's own and new."""
        if user.user_id is not None:
            return user.user_id
        params = {
            "tenant_id": tenant_id,
            "external_user_id": user.external_user_id,
            "user_id": proposed_user_id(tenant_id, user),
        }
        async with self._database.connection() as conn:
            row = await (await conn.execute(RESOLVE_USER, params)).fetchone()
        return row[0] if row is not None else proposed_user_id(tenant_id, user)

    async def known_user_of(self, tenant_id: str, user: UserRef) -> UUID | None:
        """Return the user, or None for an id of the tenant's own that was never seen."""
        if user.user_id is not None:
            return user.user_id
        params = {"tenant_id": tenant_id, "external_user_id": user.external_user_id}
        async with self._database.connection() as conn:
            row = await (await conn.execute(KNOWN_USER, params)).fetchone()
        return row[0] if row is not None else None

    async def find(self, scope: Scope, fact_id: UUID) -> FactRow | None:
        """Return the fact that has, or once had, ``fact_id``."""
        async with self._database.connection() as conn:
            return await _fact(conn, scope, fact_id)

    async def add(
        self, scope: Scope, ref: CommandRef, assertion: Assertion, vectors: Mapping[str, bytes], model: str
    ) -> Applied:
        """Add a statement and fold its slot; a command that was applied before changes nothing."""
        writes = Writes(tokenizer=self._tokenizer)
        writes.assertions.append(assertion_row(assertion))
        writes.add_vectors(scope, model, vectors)
        touched = Touched(
            scope=scope,
            slots=(),
            session_id=str(ref.command_id),
            generation=LIVE,
            assertions=(assertion,),
        )
        return await self._applied(scope, ref, touched, writes, claim_id(scope, assertion.claim))

    async def retract(self, scope: Scope, ref: CommandRef, fact: FactRow, kind: RetractionKind) -> Applied:
        """Add one retraction for each name of ``fact`` and fold its slot."""
        retraction = {
            **owner_of(scope),
            "command_id": ref.command_id,
            "kind": kind.value,
            # An engine's clock may run behind what was said last.
            "at": max(ref.at, fact.last_said_at),
            "names": sorted({fact.fact_id, *fact.names}),
        }
        touched = Touched(scope=scope, slots=(fact.slot,))
        writes = Writes(tokenizer=self._tokenizer)
        return await self._applied(scope, ref, touched, writes, fact.fact_id, retraction=retraction)

    async def _applied(
        self,
        scope: Scope,
        ref: CommandRef,
        touched: Touched,
        writes: Writes,
        about: UUID,
        *,
        retraction: Mapping[str, object] | None = None,
    ) -> Applied:
        command = {**owner_of(scope), "command_id": ref.command_id, "kind": ref.kind}
        async with self._database.transaction() as conn:
            await conn.execute(LOCK_SCOPES, {"keys": [lock_key(scope)]})
            if await (await conn.execute(NOTE_COMMAND, command)).fetchone() is None:
                return await _known(conn, scope, command)
            await conn.execute(AS_PROJECTION)
            if retraction is not None:
                await conn.execute(ADD_RETRACTIONS, retraction)
            before, after = await self._folded(conn, scope, touched, writes)
            fact = _named(after, about)
            removed = len(_active(before) - _active(after))
            found = {"fact_id": fact.fact_id if fact is not None else None, "removed": removed}
            await conn.execute(NOTE_RESULT, {**command, **found})
        self._outgoing.wake()
        return Applied(fact=fact, removed=removed)

    async def _folded(
        self, conn: AsyncConnection, scope: Scope, touched: Touched, writes: Writes
    ) -> tuple[Mapping[UUID, FactRow], Mapping[UUID, FactRow]]:
        """Fold what the command touches and write the difference; return the facts before and after."""
        reader = ScopeReader(conn, [touched])
        await reader.send()
        reading = (await reader.collect())[0]
        projected = reconcile(reading.stored(), Occasion(reason="command"), self._rules)
        events = writes.add_projected(scope, projected, reading.now, None)
        writes.records += outbox_rows(
            events, self._outgoing.encode, tenant_id=scope.tenant, user_id=scope.user
        )
        await writes.send(conn)
        gone = set(projected.facts_removed)
        kept = {one: fact for one, fact in reading.facts.items() if one not in gone}
        return reading.facts, {**kept, **{fact.fact_id: fact for fact in projected.facts}}


async def _known(conn: AsyncConnection, scope: Scope, command: Mapping[str, object]) -> Applied:
    """Return what a command did that was applied before, with the fact as it is now."""
    row = await (await conn.execute(READ_RESULT, command)).fetchone()
    fact_id, removed = row if row is not None else (None, 0)
    return Applied(fact=await _fact(conn, scope, fact_id) if fact_id is not None else None, removed=removed)


async def _fact(conn: AsyncConnection, scope: Scope, fact_id: UUID) -> FactRow | None:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(FIND_FACT, {**owner_of(scope), "fact_id": fact_id})
        row = await cursor.fetchone()
    return fact_from_row(row) if row is not None else None


def _named(facts: Mapping[UUID, FactRow], name: UUID) -> FactRow | None:
    found: Sequence[FactRow] = [one for one in facts.values() if name == one.fact_id or name in one.names]
    return found[0] if found else None


def _active(facts: Mapping[UUID, FactRow]) -> set[UUID]:
    return {one for one, fact in facts.items() if fact.status is Status.ACTIVE}
