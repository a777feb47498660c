"""Every statement of the storage package, against the migrated database."""

import re
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

import pytest
from psycopg import AsyncConnection

import storage
from storage.migrate import load_migrations
from storage.search_sql import SLOTS, search_statement

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_PARAMETER: Final = re.compile(r"%\((\w+)\)[sb]")
_MOST_CHARACTERS: Final = 4096
_MOST_PARAMETERS: Final = 50

#: Look-ups by the id of a session or job within a tenant, and what belongs to no user.
WITHOUT_A_USER: Final = {
    "intake_sql.RESOLVE_USER": "finds the user",
    "intake_sql.LOCK_SESSION": "a session by its id; the caller compares the user",
    "job_sql.CLAIM": "counts the running jobs of a tenant; what it takes it finds by the user, too",
    "job_sql.COUNT_WAITING": "counts the waiting jobs of a tenant",
    "job_sql.TAKE_STRANDED": "jobs of everybody whose record was lost",
    "degraded_jobs.TAKE_DEGRADED": "jobs of everybody that rules did in the place of a model",
    "degraded_jobs.READ_REDONE": "jobs by their ids",
    "generation_sql.IS_SERVING": "jobs of everybody under a label",
    "generation_sql.HOLD_UNSERVED": "jobs of everybody under a label",
    "generation_sql.HOLD_REPLACED": "jobs of everybody under a label",
    "replay_sql.COUNT_MEANT": "sessions of everybody whom the operator means",
    "replay_sql.NEXT_MEANT": "sessions of everybody whom the operator means",
    "replay_sql.READ_STANDING": "sessions by their ids within a tenant",
    "replay_sql.COUNT_JOBS": "jobs of everybody that a replay ordered",
    "reads.FIND_JOB": "a job by its id, or by its session's",
    "reads.ENDED_SESSIONS": "sessions by their ids within a tenant",
}
#: The jobs of everybody, and facts by ids that a read of their scope gave: the id is made of the scope.
WITHOUT_A_TENANT: Final = {
    "job_sql.TAKE_STRANDED": ["FROM extraction_jobs AS o"],
    "degraded_jobs.TAKE_DEGRADED": ["FROM extraction_jobs AS o"],
    "generation_sql.IS_SERVING": ["FROM extraction_jobs AS j"],
    "generation_sql.HOLD_UNSERVED": ["FROM sessions AS s"],
    "generation_sql.HOLD_REPLACED": ["FROM sessions AS s"],
    "replay_sql.COUNT_JOBS": ["FROM extraction_jobs AS j"],
    "last_seen.STAMP": ["JOIN memory_facts AS h"],
}
USER_TABLES: Final = (
    "sessions|chat_messages|session_windows|extraction_jobs|assertions|judgements|slot_links|retractions|text_vectors|"
    "memory_facts|memory_versions|scopes|pending_candidates|clarifications|contradiction_notes|recall|proxy_users"
)

_MENTION: Final = re.compile(rf"\b(FROM|JOIN|UPDATE|INTO)\s+lis\.({USER_TABLES})\b(?:\s+AS\s+(\w+))?")


def statements() -> Iterator[tuple[str, str]]:
    for info in iter_modules(storage.__path__):
        module = import_module(f"storage.{info.name}")
        for name in getattr(module, "__annotations__", {}):
            if name.isupper() and not name.startswith("_") and isinstance(vars(module)[name], str):
                yield f"{info.name}.{name}", vars(module)[name]


STATEMENTS: Final = {
    name: text for name, text in statements() if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", text)
} | {
    f"search_sql.search_statement({slots}, {', '.join(how) or 'now'})": search_statement(
        slots, **dict.fromkeys(how, True)
    )
    for slots in SLOTS[:2]
    for how in ((), ("as_of",), ("categories", "topics"))
}


def test_there_are_statements() -> None:
    assert len(STATEMENTS) > 40


@pytest.mark.parametrize("name", STATEMENTS)
async def test_a_statement_fits_the_schema(migrated_module_url: str, name: str) -> None:
    numbers: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if match[1] not in numbers:
            numbers.append(match[1])
        return f"${numbers.index(match[1]) + 1}"

    text = _PARAMETER.sub(numbered, STATEMENTS[name])
    async with await AsyncConnection.connect(migrated_module_url, autocommit=True) as conn:
        await conn.execute(f"PREPARE checked AS {text}".encode())


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_is_small_enough_for_its_conversion_to_be_kept(name: str) -> None:
    text = STATEMENTS[name]

    assert len(text) <= _MOST_CHARACTERS
    assert len(set(_PARAMETER.findall(text))) <= _MOST_PARAMETERS


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_on_rows_of_a_user_names_tenant_and_user(name: str) -> None:
    text = STATEMENTS[name]

    assert list(_unnamed(text, "tenant_id")) == WITHOUT_A_TENANT.get(name, [])
    if name not in WITHOUT_A_USER:
        assert list(_unnamed(text, "(?:external_)?user_id")) == []


def test_what_the_database_does_by_itself_names_tenant_and_user() -> None:
    for migration in load_migrations():
        assert list(_unnamed(migration.sql, "tenant_id")) == []
        assert list(_unnamed(migration.sql, "user_id")) == []


def test_every_exception_is_a_statement() -> None:
    assert {*WITHOUT_A_USER, *WITHOUT_A_TENANT} <= set(STATEMENTS)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT f.tenant_id FROM lis.memory_facts AS f WHERE f.user_id = %(user_id)s",
        "DELETE FROM lis.recall WHERE user_id = %(user_id)s RETURNING tenant_id",
        "UPDATE lis.sessions AS s SET revision = 1 FROM json_to_recordset(%(a)s) AS g (tenant_id text)"
        " WHERE s.user_id = g.user_id",
        "SELECT 1 FROM lis.recall AS r JOIN lis.assertions AS a ON a.user_id = r.user_id"
        " WHERE r.tenant_id = %(tenant_id)s",
        "SELECT 1 FROM lis.recall AS r JOIN lis.assertions AS a ON a.tenant_id = r.tenant_id",
        "INSERT INTO lis.scopes AS c (user_id, avatar_id) SELECT user_id, avatar_id FROM given",
    ],
)
def test_a_statement_without_its_tenant_is_found(text: str) -> None:
    assert len(list(_unnamed(text, "tenant_id"))) == 1


def test_migrations_are_numbered_without_gaps() -> None:
    versions = [one.version for one in load_migrations()]

    assert versions == list(range(1, len(versions) + 1))


def _unnamed(text: str, column: str) -> Iterator[str]:
    """Yield each mention of a table of a user whose rows are chosen, or written, without ``column``."""
    mentions = list(_MENTION.finditer(text))
    for mention in mentions:
        verb, table, alias = mention.groups()
        if verb == "INTO":
            if not re.match(rf"[^(]*\([^)]*\b{column}\b", text[mention.end() :]):
                yield f"{verb} {table}"
            continue
        own = rf"{alias}\.{column}" if alias else rf"(?<![.\w]){column}"
        compared = re.findall(rf"(?:{own}|\({own}[^()]*\)|\([^()]*, {own}\))\s*(?:=|IN\b)", text)
        if len(compared) < sum(one[1] != "INTO" and one[3] == alias for one in mentions):
            yield f"{verb} {table} AS {alias}"
