"""Tell a poisonous message from a broken service: when most messages fail, none is buried any more."""

from collections import deque
from typing import Final

from domain.errors import AfterwordError

_WINDOW: Final = 100


class TooManyFailuresError(AfterwordError):
    """More than half of the last messages failed; the consumer ends, so that somebody looks."""


class FailureLimit:
    """Watches the last ``window`` outcomes of one consumer.

    It is reached by more than half a window of failures, however few messages came before: a handful that
    fail after a start are no reason to end.
    """

    def __init__(self, window: int = _WINDOW) -> None:
        self._failed: deque[bool] = deque(maxlen=window)
        self._window = window
        self.reached = False

    def succeeded(self) -> None:
        """Note a message that was handled."""
        self._failed.append(False)

    def failed(self) -> None:
        """Note a message that failed for good, before it is buried where that is ours to do.

        Raises:
            TooManyFailuresError: it is one too many; it must not be buried.
        """
        self._failed.append(True)
        self.reached = self.reached or sum(self._failed) > self._window // 2
        self.check()

    def check(self) -> None:
        """Let work start, or refuse it.

        Raises:
            TooManyFailuresError: the limit was reached.
        """
        if self.reached:
            raise TooManyFailuresError(
                f"more than half of the last {self._window} messages failed, the dead letters say why; "
                "no more are buried"
            )
