"""What the wire formats of language models share: the call, and reading what came back."""

import json
import math
from collections.abc import Mapping

from clients.endpoint import EndpointUnavailableError, JsonEndpoint
from clients.llm.provider import ProviderBusyError
from domain.errors import UnreadableAnswerError


async def call(endpoint: JsonEndpoint, payload: Mapping[str, object], *, timeout: float) -> bytes:
    """Post ``payload``; a refusal of the request comes through as it is.

    Raises:
        ProviderBusyError: no answer.
        EndpointRefusedError: the server says that the request itself is wrong.
    """
    try:
        return await endpoint.post(payload, timeout=timeout)
    except EndpointUnavailableError as exc:
        raise ProviderBusyError(str(exc), again=exc.again, retry_after=exc.retry_after) from exc


def decoded(body: bytes, name: str) -> object:
    """Return the JSON of ``body``.

    Raises:
        UnreadableAnswerError: the body is empty, cut, or no JSON.
    """
    if not body.strip():
        raise UnreadableAnswerError(f"{name} answered with an empty body")
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise UnreadableAnswerError(f"{name} answered with something that is no JSON") from exc
    return found


def refuse_error(envelope: Mapping[str, object], name: str) -> None:
    """Raise where an answer with status 200 speaks of an error.

    Raises:
        ProviderBusyError: it does; the text of the error is not repeated, since it may quote the request.
    """
    if envelope.get("error") not in (None, "", False, {}, []):
        raise ProviderBusyError(f"{name} answered 200 with an error inside")


def table(value: object) -> Mapping[str, object]:
    """Return ``value`` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def first_table(values: object) -> Mapping[str, object]:
    """Return the first of ``values`` where they are a list of objects, else an empty one."""
    return table(values[0]) if isinstance(values, list) and values else {}


def count(value: object) -> int:
    """Return ``value`` where it is a plausible number of tokens, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(min(max(value, 0), 10_000_000))


def joined_text(content: object) -> str:
    """Return the text of a message, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(text for part in parts if isinstance(text := table(part).get("text"), str))
