"""What a call of ``MemoryClient`` may raise."""


class MemoryClientError(Exception):
    """Base of what a call raises; ``retryable`` says that the same call may succeed later."""

    def __init__(self, message: str, *, code: str = "internal", retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable


class MemoryTimeoutError(MemoryClientError):
    """No answer came in time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="deadline_exceeded", retryable=True)


class MemoryUnavailableError(MemoryClientError):
    """The broker or the service cannot answer now."""

    def __init__(self, message: str, *, code: str = "upstream_unavailable") -> None:
        super().__init__(message, code=code, retryable=True)


class MemoryRequestError(MemoryClientError):
    """The service refuses the request as it is: ``code`` says why."""


class MemoryNotFoundError(MemoryRequestError):
    """What was asked for does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="not_found")


class SessionDiedError(MemoryClientError):
    """The session's job ended as dead; it will not be remembered without a redrive."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="dead")
