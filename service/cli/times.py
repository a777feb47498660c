"""Times as options say them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import typer

_AGO: Final = re.compile(r"(?P<count>\d{1,6})(?P<unit>[smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str | None, option: str) -> datetime | None:
    """Read a time, or how long ago it was (``2h``); one without a zone is in UTC.

    Raises:
        typer.BadParameter: it is neither; the message names ``option``.
    """
    if text is None:
        return None
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as exc:
        raise typer.BadParameter(
            "expected a time such as 2026-03-01T12:00:00Z, or 2h", param_hint=option
        ) from exc
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
