"""A circuit breaker: a provider that fails again and again is left alone for a while, then probed once."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from domain.errors import ModelRefusedError, ModelUnavailableError, UnreadableAnswerError


class CircuitBreaker:
    """Opens after ``failures`` calls in a row without an answer; ``pause`` seconds later one call may try.

    An answer that cannot be read and a refusal are answers: the provider is there.
    """

    def __init__(
        self, *, failures: int = 5, pause: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = failures
        self._pause = pause
        self._clock = clock
        self._failed = 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def admits(self) -> bool:
        """Whether a call may be made now."""
        if self._open_until is None:
            return True
        return not self._probing and self._clock() >= self._open_until

    @contextmanager
    def watch(self) -> Generator[None]:
        """Count the call inside; a call that is cancelled says nothing about the provider.

        Raises:
            ModelUnavailableError: no call may be made now.
        """
        if not self.admits:
            raise ModelUnavailableError("the circuit breaker is open")
        probe = self._open_until is not None
        self._probing = self._probing or probe
        try:
            yield
        except ModelUnavailableError:
            self._count_failure()
            raise
        except (UnreadableAnswerError, ModelRefusedError):
            self._close()
            raise
        else:
            self._close()
        finally:
            if probe:
                self._probing = False

    def _count_failure(self) -> None:
        self._failed += 1
        if self._failed >= self._limit:
            self._open_until = self._clock() + self._pause

    def _close(self) -> None:
        self._failed = 0
        self._open_until = None
