"""Providers in order, each with time-out, retries and breaker, until one gives a readable answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from clients.llm.breaker import CircuitBreaker
from clients.llm.provider import Completion, Provider, ProviderBusyError, Request
from domain.errors import AfterwordError, ModelRefusedError, ModelUnavailableError, UnreadableAnswerError
from domain.ports import Usage
from telemetry.notices import Notice

logger = logging.getLogger(__name__)

T = TypeVar("T")

ONCE_MORE: Final = (
    "\n\nThe answer to this could not be read. "
    "Answer with one complete JSON object of the given form and nothing else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Generic[T]):
    """What was read, from whom, and what all the calls cost, failed ones included."""

    value: T
    provider: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds for one call and for a question in all, and how often one provider is called."""

    timeout: float = 30.0
    tries: int = 3
    deadline: float = 90.0
    longest_pause: float = 8.0


class ProviderChain:
    """Asks providers in order; the breaker of each is kept as long as the chain."""

    def __init__(
        self,
        *,
        providers: Sequence[Provider],
        patience: Patience | None = None,
        breakers: Mapping[str, CircuitBreaker] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not providers:
            raise ValueError("a chain needs a provider")
        self._providers = tuple(providers)
        self._patience = patience or Patience()
        given = breakers or {}
        self._breakers = {
            each.name: given.get(each.name) or CircuitBreaker(clock=clock) for each in providers
        }
        self._silent = {each.name: Notice(logger) for each in providers}
        self._clock = clock
        self._sleep = sleep

    async def ask(self, request: Request, read: Callable[[str], T]) -> Answered[T]:
        """Return what ``read`` makes of the first answer for which it raises no UnreadableAnswerError.

        Raises:
            ModelUnavailableError: no provider could be reached within the deadline.
            UnreadableAnswerError: at least one answered, and none of them readably.
            ModelRefusedError: every provider refused for good.
        """
        question = _Question(request=request, until=self._clock() + self._patience.deadline)
        failures: list[AfterwordError] = []
        for provider in self._providers:
            try:
                value = await self._ask_one(provider, question, read)
            except (ModelUnavailableError, UnreadableAnswerError, ModelRefusedError) as exc:
                self._silent[provider.name].begins("no answer from %s: %s", provider.name, exc)
                failures.append(exc)
            else:
                self._silent[provider.name].is_over()
                return Answered(value=value, provider=provider.name, usage=question.usage)
        raise _verdict(failures) from failures[-1]

    async def _ask_one(self, provider: Provider, question: "_Question", read: Callable[[str], T]) -> T:
        """Ask ``provider``, and once more where its answer cannot be read; a cut one gets twice the room."""
        cut = False
        try:
            completion = await self._patiently(provider, question, question.request)
            cut = completion.cut
            return read(completion.text)
        except UnreadableAnswerError as exc:
            logger.info("asking %s once more: %s", provider.name, exc)
        completion = await self._patiently(provider, question, _once_more(question.request, cut=cut))
        return read(completion.text)

    async def _patiently(self, provider: Provider, question: "_Question", request: Request) -> Completion:
        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda exc: isinstance(exc, ProviderBusyError) and exc.again),
            wait=self._pause,
            stop=lambda state: self._is_over(state, question),
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self._call, provider, question, request)

    def _pause(self, state: RetryCallState) -> float:
        """Wait what the provider asked for, and a random part that grows from try to try."""
        failure = state.outcome.exception() if state.outcome is not None else None
        asked = failure.retry_after if isinstance(failure, ProviderBusyError) else None
        jitter = wait_random_exponential(multiplier=0.5, max=self._patience.longest_pause)(state)
        return (asked or 0.0) + jitter

    def _is_over(self, state: RetryCallState, question: "_Question") -> bool:
        waits_too_long = self._clock() + state.upcoming_sleep >= question.until
        return waits_too_long or stop_after_attempt(self._patience.tries)(state)

    async def _call(self, provider: Provider, question: "_Question", request: Request) -> Completion:
        timeout = min(self._patience.timeout, question.until - self._clock())
        if timeout <= 0:
            raise ModelUnavailableError("there is no time left to ask")
        with self._breakers[provider.name].watch():
            question.count(model_calls=1)
            completion = await provider.complete(request, timeout=timeout)
        question.count(tokens_in=completion.tokens_in, tokens_out=completion.tokens_out)
        return completion


@dataclass(slots=True, kw_only=True)
class _Question:
    """One question on its way along the chain."""

    request: Request
    until: float
    usage: Usage = field(default_factory=Usage)

    def count(self, *, model_calls: int = 0, tokens_in: int = 0, tokens_out: int = 0) -> None:
        self.usage = Usage(
            model_calls=self.usage.model_calls + model_calls,
            tokens_in=self.usage.tokens_in + tokens_in,
            tokens_out=self.usage.tokens_out + tokens_out,
        )


def _once_more(request: Request, *, cut: bool) -> Request:
    room = request.max_tokens * 2 if cut else request.max_tokens
    return replace(request, varying=request.varying + ONCE_MORE, max_tokens=room)


def _verdict(failures: Sequence[AfterwordError]) -> AfterwordError:
    """Say what the failures of all providers mean together.

    One unreadable answer makes it a failed attempt, though others were away: waiting for them without
    counting could go on for ever with a conversation that no model answers well.
    """
    if any(isinstance(failure, UnreadableAnswerError) for failure in failures):
        return UnreadableAnswerError("no provider gave an answer that can be read")
    if all(isinstance(failure, ModelRefusedError) for failure in failures):
        return ModelRefusedError("every provider refused the request")
    return ModelUnavailableError("no provider could be reached")
