"""`afterword diff` and `afterword promote` as an operator sees them."""

from collections.abc import Sequence

import anyio
import pytest
from typer.testing import CliRunner, Result

from domain.generations import NotPromotableError
from service.cli.commands import app
from tests.integration.storage.replaying import LABEL, again, redo, start
from tests.integration.storage.stores import ANA, Stores, candidate, ended

pytestmark = [pytest.mark.anyio, pytest.mark.integration]


async def _ran(url: str, *arguments: str) -> Result:
    environment = {"AFTERWORD_DATABASE_URL": url, "COLUMNS": "250"}

    def run(given: Sequence[str]) -> Result:
        return CliRunner(env=environment).invoke(app, given)

    return await anyio.to_thread.run_sync(run, arguments)


async def test_the_table_shows_values_and_evidence_and_obeys_nothing_in_them(
    stores: Stores, migrated_url: str
) -> None:
    conversation = ended("s1", "hello")
    await stores.remember(conversation, candidate("home_city", "Porto"), candidate("pet", "dog"))
    excerpt = "I live \x1b[31min [bold]Lyon[/bold]\nnow"
    await redo(stores, again(conversation), candidate("home_city", "Lyon", excerpt=excerpt))
    await start(stores)

    shown = await _ran(migrated_url, "diff", LABEL)

    assert shown.exit_code == 0, shown.output
    assert f"user {ANA.user_id} of acme" in shown.output
    assert "“I live in [bold]Lyon[/bold] now”" in shown.output
    assert "\x1b" not in shown.output
    assert "1 users: 1 facts added, 2 gone, 0 changed" in shown.output


async def test_what_is_not_ready_is_named_and_not_promoted(stores: Stores, migrated_url: str) -> None:
    conversation = ended("s1", "hello")
    await stores.remember(conversation, candidate("home_city", "Porto"))
    await stores.claimed(again(conversation))
    await start(stores)

    shown = await _ran(migrated_url, "diff", LABEL)
    refused = await _ran(migrated_url, "promote", LABEL)
    partly = await _ran(migrated_url, "promote", LABEL, "--partial")

    assert f"Not compared, open: 1 sessions ({conversation.session_id})" in shown.stderr
    assert isinstance(refused.exception, NotPromotableError)
    assert "1 open, 0 dead, 0 changed since" in str(refused.exception)
    assert partly.stdout.strip() == "0 users promoted, 0 facts changed."
