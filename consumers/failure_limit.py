"""Tell a poisonous message from a broken service: when most messages fail, none is buried any more."""

from collections import deque
from typing import Final

_WINDOW: Final = 100


class TooManyFailuresError(Exception):
    """More than half of the last messages failed; the consumer stands still until somebody looks."""


class FailureLimit:
    """Watches the last ``window`` outcomes of one consumer."""

    def __init__(self, window: int = _WINDOW) -> None:
        self._failed: deque[bool] = deque(maxlen=window)
        self._most = window // 2
        self.reached = False

    def succeeded(self) -> None:
        """Note a message that was handled."""
        self._failed.append(False)

    def failed(self) -> None:
        """Note a message that failed for good, before it is buried.

        Raises:
            TooManyFailuresError: it is one too many; it must not be buried.
        """
        self._failed.append(True)
        self.reached = self.reached or sum(self._failed) > self._most
        self.check()

    def check(self) -> None:
        """Let work start, or refuse it.

        Raises:
            TooManyFailuresError: the limit was reached.
        """
        if self.reached:
            raise TooManyFailuresError("more than half of the last messages failed")
