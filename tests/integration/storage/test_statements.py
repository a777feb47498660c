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

pytestmark = [pytest.mark.anyio, pytest.mark.integration]

_PARAMETER: Final = re.compile(r"%\((\w+)\)[sb]")
_MOST_CHARACTERS: Final = 4096
_MOST_PARAMETERS: Final = 50

#: Look-ups by the id of a session or job within a tenant, and what belongs to no user.
WITHOUT_A_USER: Final = {
    "intake_sql.RESOLVE_USER": "finds the user",
    "intake_sql.LOCK_SESSION": "a session by its id; the caller compares the user",
    "job_sql.TAKE_STRANDED": "jobs of everybody whose record was lost",
    "reads.FIND_JOB": "a job by its id, or by its session's",
}
USER_TABLES: Final = (
    "sessions|chat_messages|session_windows|extraction_jobs|assertions|judgements|slot_links|retractions|text_vectors|"
    "memory_facts|memory_versions|scopes|pending_candidates|clarifications|contradiction_notes|recall|proxy_users"
)


def statements() -> Iterator[tuple[str, str]]:
    for info in iter_modules(storage.__path__):
        module = import_module(f"storage.{info.name}")
        for name in getattr(module, "__annotations__", {}):
            if name.isupper() and not name.startswith("_") and isinstance(vars(module)[name], str):
                yield f"{info.name}.{name}", vars(module)[name]


STATEMENTS: Final = {
    name: text for name, text in statements() if re.match(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b", text)
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
    if not re.search(rf"lis\.({USER_TABLES})\b", text) or name in WITHOUT_A_USER:
        return

    for place in _places(text):
        assert "tenant_id" in place, f"no tenant in {place}"
        assert "user_id" in place, f"no user in {place}"


def test_every_exception_is_a_statement() -> None:
    assert set(WITHOUT_A_USER) <= set(STATEMENTS)


def test_a_statement_without_its_tenant_is_found() -> None:
    text = "SELECT f.fact_id FROM lis.memory_facts AS f WHERE f.user_id = %(user_id)s"

    assert any("tenant_id" not in place for place in _places(text))


def test_migrations_are_numbered_without_gaps() -> None:
    versions = [one.version for one in load_migrations()]

    assert versions == list(range(1, len(versions) + 1))


def _places(text: str) -> Iterator[str]:
    """Yield, for each mention of a table of a user, the part in which its rows are chosen."""
    for mention in re.finditer(rf"(?:FROM|JOIN|UPDATE|INTO)\s+lis\.(?:{USER_TABLES})\b", text):
        rest = text[mention.start() :]
        end = re.search(r"\n\s*\)|\bJOIN lis\.", rest[4:])
        yield rest[: end.start() + 4] if end else rest
