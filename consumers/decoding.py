"""Bytes into messages, with errors in the domain's terms."""

from typing import TypeVar

from pydantic import BaseModel

from domain.errors import InvalidInputError, UndecodableError
from schemas import wire

M = TypeVar("M", bound=BaseModel)


def decode(model: type[M], raw: bytes | None) -> M:
    """Read ``raw`` as ``model``.

    Raises:
        UndecodableError: ``raw`` is no JSON.
        InvalidInputError: it is no such message; the error names the field and what was expected, and
            quotes nothing.
    """
    try:
        return wire.decode(model, raw)
    except wire.WireError as error:
        kind = InvalidInputError if error.readable else UndecodableError
        raise kind(str(error), field=error.field) from None
