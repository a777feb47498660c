"""Which embedder the stored vectors are of; another one must not be mixed in."""

from typing import Final, LiteralString

from domain.errors import PermanentError
from domain.ports import EmbedderInfo
from storage.pool import Database

REGISTER: Final[LiteralString] = """
    WITH added AS (
        INSERT INTO lis.embedders (purpose, model, dimensions)
        VALUES ('memory', %(model)s, %(dimensions)s)
            ON CONFLICT DO NOTHING
    )
    SELECT model, dimensions
      FROM lis.embedders
     WHERE purpose = 'memory'
"""


class EmbedderMismatchError(PermanentError):
    """The stored vectors are of another embedder than the one that is configured."""


async def require_embedder(database: Database, info: EmbedderInfo) -> None:
    """Note the first embedder of a database, and refuse another one.

    Raises:
        EmbedderMismatchError: vectors of another embedder are stored; the message names the way out.
    """
    async with database.connection() as conn:
        cursor = await conn.execute(REGISTER, {"model": info.model, "dimensions": info.dimensions})
        row = await cursor.fetchone()
    if row is not None and (row[0], row[1]) != (info.model, info.dimensions):
        raise EmbedderMismatchError(
            f"stored vectors are of {row[0]} with {row[1]} dimensions, configured is {info.model} with "
            f"{info.dimensions}: run `afterword reembed`, or configure the stored one"
        )
