"""What every message of the contract has in common, and how bytes become one without quoting them back."""

import json
import re
from datetime import datetime
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

_EARLIEST_YEAR: Final = 1900
_LATEST_YEAR: Final = 2200
_MOST_FIELD_CHARS: Final = 80
_LONE_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


class WireError(Exception):
    """Bytes that are not the message they should be.

    ``field`` says where, ``problem`` what was wrong and what was expected, never in the sender's words. With
    ``readable`` false the bytes are no JSON at all.
    """

    def __init__(self, problem: str, *, field: str = "", readable: bool = True) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem
        self.readable = readable


class Received(BaseModel):
    """A message that others write: what is not in the contract is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class Sent(BaseModel):
    """A message that this service writes; readers must ignore what they do not know."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


def _plausible(value: datetime) -> datetime:
    if not _EARLIEST_YEAR <= value.year <= _LATEST_YEAR:
        raise ValueError(f"expected a time between {_EARLIEST_YEAR} and {_LATEST_YEAR}")
    return value


Moment = Annotated[datetime, AfterValidator(_plausible)]
"""A time that may lack its zone."""

Identifier = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f\ufffd]+$")
]
"""An id of somebody else: printable, short, and of one line.

None with a replacement mark: two ids that were mended could be the same one, and two users would share one
memory.
"""

M = TypeVar("M", bound=BaseModel)


def decode(model: type[M], raw: bytes | None) -> M:
    """Read ``raw`` as ``model``. Invalid UTF-8 and lone surrogates in it become replacement marks.

    Raises:
        WireError: ``raw`` is no JSON, or no such message.
    """
    if raw is None:
        raise WireError("the record has no value, expected JSON", readable=False)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        if not _is_syntax(error):
            raise problem_of(error) from None
    try:
        return model.model_validate_json(_mended(raw))
    except ValidationError as error:
        raise problem_of(error) from None


def problem_of(error: ValidationError) -> WireError:
    """Name the first field that is wrong, and what was expected there."""
    first = error.errors(include_url=False, include_context=True, include_input=False)[0]
    return WireError(_expected(first), field=_path(first), readable=not _is_syntax(error))


def _is_syntax(error: ValidationError) -> bool:
    return any(
        detail["type"] in ("json_invalid", "json_type", "string_unicode")
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _mended(raw: bytes) -> bytes:
    try:
        value = json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise WireError("expected JSON in UTF-8", readable=False) from None
    text = json.dumps(value, ensure_ascii=False)
    return _LONE_SURROGATE.sub("\ufffd", text).encode()


def _path(detail: ErrorDetails) -> str:
    """Join the path of a problem; names that a sender made up are cut."""
    return ".".join(str(part) for part in detail["loc"])[:_MOST_FIELD_CHARS]


def _expected(detail: ErrorDetails) -> str:
    """Return what pydantic says was expected; its sentences quote limits and names, never the input."""
    if detail["type"] in _QUOTING:
        return _QUOTING[detail["type"]]
    return detail["msg"].removeprefix("Value error, ")


_QUOTING: Final = {
    "json_invalid": "expected JSON in UTF-8",
    "datetime_from_date_parsing": "expected a time of RFC 3339",
    "datetime_parsing": "expected a time of RFC 3339",
    "datetime_object_invalid": "expected a time of RFC 3339",
    "uuid_parsing": "expected a UUID",
    "union_tag_invalid": "expected a known type",
}
