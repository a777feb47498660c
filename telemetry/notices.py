"""A warning that is told once for as long as its cause lasts (docs/architecture/outages.md)."""

import logging


class Notice:
    """Tells of a trouble when it begins, and no more until it is over, however often it is met meanwhile."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self.is_on = False

    def begins(self, message: str, *values: object) -> None:
        """Log ``message`` as a warning, unless this trouble was told of already."""
        if not self.is_on:
            self._logger.warning(message, *values)
        self.is_on = True

    def is_over(self) -> None:
        """Tell of the next one again."""
        self.is_on = False
