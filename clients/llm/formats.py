"""Asking for JSON in the strictest way that a server takes."""

from collections.abc import Callable, Mapping, Sequence

from clients.endpoint import EndpointRefusedError, JsonEndpoint
from clients.llm.provider import Request
from clients.llm.wire import call
from domain.errors import ModelRefusedError

Payload = Callable[[Request], Mapping[str, object]]


class AnswerFormats:
    """Posts a request in the first of ``formats`` that is not refused, and keeps to that one from then on."""

    def __init__(self, *, endpoint: JsonEndpoint, name: str, formats: Sequence[Payload]) -> None:
        self._endpoint = endpoint
        self._name = name
        self._formats = tuple(formats)

    async def ask(self, request: Request, *, timeout: float) -> bytes:
        """Return the body of the answer.

        Raises:
            ProviderBusyError: no answer.
            ModelRefusedError: refused in every format that is left.
        """
        for payload_of in self._formats:
            try:
                body = await call(self._endpoint, payload_of(request), timeout=timeout)
            except EndpointRefusedError as exc:
                if payload_of is self._formats[-1]:
                    raise ModelRefusedError(str(exc)) from exc
                continue
            # A format that worked is the only one from now on: a later refusal is then about the request.
            self._formats = (payload_of,)
            return body
        raise ModelRefusedError(f"{self._name} refused the request")
