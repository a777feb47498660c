"""Commands to the memory, told apart by ``type``; each is applied once per ``command_id``."""

from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from schemas.conversation import Scoped
from schemas.wire import Identifier, Moment, Received

_MOST_NAMES: Final = 32

Value = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class Command(Scoped):
    """What every command has: an id of the sender's, under which it is applied once."""

    command_id: UUID


class FactStore(Command):
    """Remember a fact, as one statement of the sender's."""

    type: Literal["fact.store"]
    category: str
    fact_key: Identifier
    fact_value: Value
    content: str | None = Field(default=None, max_length=500)
    aliases: tuple[Name, ...] = Field(default=(), max_length=_MOST_NAMES)
    topics: tuple[Name, ...] = Field(default=(), max_length=_MOST_NAMES)
    confidence: float = Field(default=0.95, ge=0.0, le=1.0)
    importance: float = Field(default=5.0, ge=0.0, le=10.0)
    expires_at: Moment | None = None
    said_at: Moment | None = None
    shared: bool = False


class FactUpdate(Command):
    """Give a fact another value: it changed, or it was wrong."""

    type: Literal["fact.update"]
    fact_id: UUID
    fact_value: Value
    how: Literal["change", "correction"] = Field(default="change", alias="as")


class FactDelete(Command):
    """Hide what was said of a fact up to now (``forget``), or take it back as wrong (``disown``)."""

    type: Literal["fact.delete"]
    fact_id: UUID
    mode: Literal["forget", "disown"] = "forget"


class FactRestore(Command):
    """Lift earlier deletes of a fact."""

    type: Literal["fact.restore"]
    fact_id: UUID


class CommandType(Received):
    """The part of a command that tells which one it is."""

    type: str


AnyCommand = FactStore | FactUpdate | FactDelete | FactRestore

COMMANDS: Final[dict[str, type[AnyCommand]]] = {
    "fact.store": FactStore,
    "fact.update": FactUpdate,
    "fact.delete": FactDelete,
    "fact.restore": FactRestore,
}
