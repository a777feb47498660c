"""One JSON endpoint of a model server over a client that is shared and kept."""

import asyncio
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import aiohttp
import httpx
import orjson
from httpx_aiohttp import HttpxAiohttpClient

from domain.errors import PermanentError, TransientError

_REFUSALS: Final = frozenset({400, 413, 422})
_WORTH_ANOTHER_TRY: Final = frozenset({408, 409, 425, 429})
_CONNECT_SECONDS: Final = 5.0


class EndpointUnavailableError(TransientError):
    """The server did not give an answer.

    ``again`` says whether a moment's patience may help; ``retry_after`` is what the server asked for.
    """

    def __init__(self, message: str, *, again: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.again = again
        self.retry_after = retry_after


class EndpointRefusedError(PermanentError):
    """The server refused the request itself."""


def open_client(*, connections: int) -> httpx.AsyncClient:
    """Return a client that keeps up to ``connections`` open; more than that in flight wait for one."""
    limits = httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=30.0
    )
    return HttpxAiohttpClient(limits=limits, follow_redirects=False)


def joined_url(base: str, path: str) -> str:
    """Return the URL of ``path`` under ``base``, which may name it or its version already."""
    base = base.rstrip("/")
    if base.endswith(path):
        return base
    version = "/" + path.split("/")[1]
    return base + (path.removeprefix(version) if base.endswith(version) else path)


class JsonEndpoint:
    """Posts JSON to one URL, with a bearer token or with the ``headers`` that the server asks for."""

    def __init__(
        self,
        *,
        client: httpx.AsyncClient,
        url: str,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        name: str = "",
    ) -> None:
        self.name = name or httpx.URL(url).host
        self._client = client
        self._url = url
        authorization = {"authorization": f"Bearer {token}"} if token else {}
        self._headers = {"content-type": "application/json", **authorization, **(headers or {})}
        self._timeout = timeout

    async def post(self, payload: Mapping[str, object], *, timeout: float | None = None) -> bytes:
        """Return the body of the answer to ``payload``; the whole call takes at most ``timeout`` seconds.

        Raises:
            EndpointUnavailableError: no answer, or one that speaks of an outage, a limit or missing rights.
            EndpointRefusedError: the server says that the request itself is wrong.
        """
        seconds = self._timeout if timeout is None else min(timeout, self._timeout)
        patience = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.post(
                    self._url, content=orjson.dumps(payload), headers=self._headers, timeout=patience
                )
        except (TimeoutError, httpx.ReadTimeout) as exc:
            # Not again: whoever is slow now would take the time that the next provider needs.
            raise EndpointUnavailableError(
                f"{self.name} did not answer within {seconds:.1f} s", again=False
            ) from exc
        except (httpx.HTTPError, aiohttp.ClientError, OSError) as exc:
            raise EndpointUnavailableError(f"{self.name} could not be read: {type(exc).__name__}") from exc
        self._check(response)
        return response.content

    def _check(self, response: httpx.Response) -> None:
        status = response.status_code
        if response.is_success:
            return
        if status in _REFUSALS:
            raise EndpointRefusedError(f"{self.name} refused the request with {status}")
        raise EndpointUnavailableError(
            f"{self.name} answered {status}",
            again=status >= HTTPStatus.INTERNAL_SERVER_ERROR or status in _WORTH_ANOTHER_TRY,
            retry_after=seconds_of(response.headers.get("retry-after")),
        )


def seconds_of(retry_after: str | None) -> float | None:
    """Read a ``Retry-After`` header: seconds, or a date; None where it says neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        return _seconds_until(retry_after)


def _seconds_until(date: str) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)
