"""The roles of a process: what of the service it runs."""

from collections.abc import Iterable
from enum import StrEnum

from domain.errors import InvalidInputError


class Role(StrEnum):
    """A part of the service that can run in a process of its own."""

    INTAKE = "intake"
    EXTRACTION = "extraction"
    RESPONDER = "responder"
    COMMANDS = "commands"
    RELAY = "relay"
    UPKEEP = "upkeep"
    HTTP = "http"


ALL_ROLES = frozenset(Role)


def roles_of(names: str) -> frozenset[Role]:
    """Read ``names``, separated by commas; an empty text means all roles.

    Raises:
        InvalidInputError: a name is no role.
    """
    found = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in found if name not in set(Role)]
    if unknown:
        raise InvalidInputError(f"no such role: {unknown[0]}; known are {', '.join(Role)}", field="roles")
    return frozenset(map(Role, found)) or ALL_ROLES


def split(roles: Iterable[Role]) -> tuple[frozenset[Role], frozenset[Role]]:
    """Return what runs in this process and what needs one of its own.

    The responder shares its loop with nothing: beside extraction its median would be three times as high.
    """
    wanted = frozenset(roles)
    apart = wanted & {Role.RESPONDER}
    return (wanted - apart, apart) if wanted - apart else (apart, frozenset())
