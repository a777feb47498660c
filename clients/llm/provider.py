"""What every provider of a language model looks like to the chain."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from domain.errors import ModelUnavailableError


class ProviderBusyError(ModelUnavailableError):
    """A provider did not answer.

    ``again`` says whether it may be asked once more; ``retry_after`` are the seconds that it asked for.
    """

    def __init__(self, message: str, *, again: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model; ``fixed`` is the same in every call, so that servers can keep it."""

    fixed: str
    varying: str
    schema: Mapping[str, object] | None = None
    schema_name: str = "answer"
    temperature: float = 0.1
    max_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The text that a model answered, and what it cost; ``cut`` when it had no room to end."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0
    cut: bool = False


class Provider(Protocol):
    """One model behind one endpoint."""

    @property
    def name(self) -> str:
        """The name in settings, logs and provenance."""
        ...

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        """Return the answer to ``request`` within ``timeout`` seconds.

        Raises:
            ProviderBusyError: no answer.
            UnreadableAnswerError: an answer without a text.
            ModelRefusedError: the provider refuses this request for good.
        """
        ...
