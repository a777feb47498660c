"""Times of the wire as points in time."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def zone_of(name: str | None) -> tzinfo | None:
    """Return the zone called ``name``; None when there is none by that name."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A name that points outside the zone data raises ValueError, one that is a folder OSError.
        return None


def at(moment: datetime, *zones: tzinfo | None, on_naive: Callable[[], None]) -> datetime:
    """Return ``moment`` in UTC; without a zone it takes the first of ``zones`` that is known, else UTC."""
    if moment.tzinfo is None:
        on_naive()
        moment = moment.replace(tzinfo=next((zone for zone in zones if zone is not None), UTC))
    return moment.astimezone(UTC)
