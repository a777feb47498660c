"""Settings of the database (docs/reference/settings.md, "Database")."""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, SecretStr

from service.connections import DatabaseConnection, DatabaseParts
from service.setting_types import Count, DatabaseUrl, Seconds
from service.settings_group import Conflict, SettingsGroup


class DatabaseSettings(SettingsGroup):
    """How the database is reached: by a URL, or by the variables of libpq."""

    afterword_database_url: DatabaseUrl | None = None
    """The database. Unset, and no PG… set: `up` and `demo` start a database of their own."""
    afterword_database_direct_url: DatabaseUrl | None = None
    """The database past a pooler, for relay, leadership and migrations. Unset: the same."""
    pghost: str | None = None
    """Host of the database, instead of a URL; `localhost` when another PG… is set."""
    pgport: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Port of the database; 5432 when another PG… is set."""
    pgdatabase: str | None = None
    """Name of the database; `lis` when another PG… is set."""
    pguser: str | None = None
    """Name at the database; `lis` when another PG… is set."""
    pgpassword: SecretStr | None = None
    """Password at the database."""
    pgsslmode: str | None = None
    """TLS to the database. Unset: `require`, but on this machine what its client does by default."""
    pgchannelbinding: str | None = None
    """Channel binding of the database's login. Unset: what its client does by default."""
    db_pool_max: Count = 10
    """Most connections of one pool."""
    db_answer_sec: Seconds = 15.0
    """Longest wait for an answer of the database; then the connection is dropped and the work begins anew."""
    enable_db_on_startup: bool = True
    """Whether a start brings the database up to date; off where `afterword migrate` is run by hand."""

    @property
    def database(self) -> DatabaseConnection | None:
        """The database that is set, by its URL or by any PG…; None asks for an embedded one."""
        url = self.afterword_database_url or self._url_of_parts()
        if url is None:
            return None
        return DatabaseConnection(url=url, direct_url=self.afterword_database_direct_url or url)

    def _url_of_parts(self) -> SecretStr | None:
        named = {
            "host": self.pghost,
            "port": self.pgport,
            "database": self.pgdatabase,
            "user": self.pguser,
            "password": self.pgpassword,
            "ssl_mode": self.pgsslmode,
            "channel_binding": self.pgchannelbinding,
        }
        given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        return DatabaseParts(**given).url if given else None

    def conflicts(self) -> Iterable[Conflict]:
        """Yield what of the database does not fit together."""
        yield from super().conflicts()
        is_alone = self.afterword_database_direct_url is not None and self.database is None
        yield "AFTERWORD_DATABASE_DIRECT_URL", is_alone, "needs AFTERWORD_DATABASE_URL"
