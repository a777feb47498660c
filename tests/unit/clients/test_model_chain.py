"""The chain goes on to the next provider, waits no longer than it may, and says what the failures mean."""

import asyncio
from collections.abc import Callable

import pytest

from clients.llm.breaker import CircuitBreaker
from clients.llm.chain import ONCE_MORE, Patience, ProviderChain
from clients.llm.provider import Completion, ProviderBusyError, Request
from domain.errors import ModelRefusedError, ModelUnavailableError, UnreadableAnswerError

pytestmark = pytest.mark.anyio

QUESTION = Request(fixed="", varying="?", max_tokens=100)
Outcome = str | Completion | Exception


class FakeTime:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class FakeProvider:
    """Plays outcomes in order; the last one stays."""

    def __init__(self, name: str, *outcomes: Outcome) -> None:
        self.name = name
        self.asked: list[Request] = []
        self._outcomes = list(outcomes)

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        assert timeout > 0
        self.asked.append(request)
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return Completion(text=outcome, tokens_in=10, tokens_out=1) if isinstance(outcome, str) else outcome


def read(text: str) -> str:
    if text.startswith("garbage"):
        raise UnreadableAnswerError("no JSON")
    return text


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def chain(time: FakeTime) -> Callable[..., ProviderChain]:
    def build(*providers: FakeProvider) -> ProviderChain:
        return ProviderChain(
            providers=providers, patience=Patience(deadline=60), clock=time, sleep=time.sleep
        )

    return build


def busy(retry_after: float | None = None, *, again: bool = True) -> ProviderBusyError:
    return ProviderBusyError("busy", again=again, retry_after=retry_after)


async def test_the_first_provider_that_answers_is_enough(chain: Callable[..., ProviderChain]) -> None:
    first, second = FakeProvider("a", "one"), FakeProvider("b", "two")

    answered = await chain(first, second).ask(QUESTION, read)

    assert (answered.value, answered.provider) == ("one", "a")
    assert (answered.usage.model_calls, answered.usage.tokens_in, answered.usage.tokens_out) == (1, 10, 1)
    assert second.asked == []


async def test_a_busy_provider_is_asked_again_and_every_call_is_counted(
    chain: Callable[..., ProviderChain], time: FakeTime
) -> None:
    answered = await chain(FakeProvider("a", busy(), busy(), "one")).ask(QUESTION, read)

    assert answered.usage.model_calls == 3
    assert len(time.slept) == 2


async def test_retry_after_is_honoured(chain: Callable[..., ProviderChain], time: FakeTime) -> None:
    await chain(FakeProvider("a", busy(20), "one")).ask(QUESTION, read)

    assert 20 <= time.slept[0] < 30


async def test_a_retry_after_beyond_the_deadline_is_not_waited_for(
    chain: Callable[..., ProviderChain], time: FakeTime
) -> None:
    answered = await chain(FakeProvider("a", busy(600)), FakeProvider("b", "two")).ask(QUESTION, read)

    assert answered.provider == "b"
    assert time.slept == []


@pytest.mark.parametrize(
    ("failure", "calls"),
    [(busy(), 3), (busy(again=False), 1), (UnreadableAnswerError("x"), 2), (ModelRefusedError("x"), 1)],
)
async def test_after_a_failure_the_next_provider_is_asked(
    chain: Callable[..., ProviderChain], failure: Exception, calls: int
) -> None:
    first = FakeProvider("a", failure)

    answered = await chain(first, FakeProvider("b", "two")).ask(QUESTION, read)

    assert answered.value == "two"
    assert len(first.asked) == calls
    assert answered.usage.model_calls == calls + 1


async def test_an_unreadable_answer_is_asked_for_once_more(chain: Callable[..., ProviderChain]) -> None:
    provider = FakeProvider("a", "garbage", "one")

    answered = await chain(provider).ask(QUESTION, read)

    assert answered.value == "one"
    assert provider.asked[1].varying == "?" + ONCE_MORE
    assert provider.asked[1].max_tokens == 100


async def test_an_answer_that_had_no_room_gets_twice_as_much(chain: Callable[..., ProviderChain]) -> None:
    provider = FakeProvider("a", Completion(text="garbage", cut=True), "one")

    await chain(provider).ask(QUESTION, read)

    assert provider.asked[1].max_tokens == 200


@pytest.mark.parametrize(
    ("failures", "verdict"),
    [
        ((busy(), busy()), ModelUnavailableError),
        ((ModelRefusedError("x"), ModelRefusedError("x")), ModelRefusedError),
        ((ModelRefusedError("x"), busy()), ModelUnavailableError),
        (("garbage", busy()), UnreadableAnswerError),
        ((busy(), UnreadableAnswerError("x")), UnreadableAnswerError),
        ((ModelRefusedError("x"), "garbage"), UnreadableAnswerError),
    ],
)
async def test_the_failures_of_all_providers_have_one_meaning(
    chain: Callable[..., ProviderChain], failures: tuple[Outcome, Outcome], verdict: type[Exception]
) -> None:
    providers = [FakeProvider(name, outcome) for name, outcome in zip("ab", failures, strict=True)]

    with pytest.raises(verdict):
        await chain(*providers).ask(QUESTION, read)


async def test_a_provider_that_fails_again_and_again_is_left_alone(
    chain: Callable[..., ProviderChain], time: FakeTime
) -> None:
    first, second = FakeProvider("a", *[busy()] * 5, "back"), FakeProvider("b", "two")
    both = chain(first, second)
    for _ in range(3):
        await both.ask(QUESTION, read)
    assert len(first.asked) == 5

    time.now += 31

    assert (await both.ask(QUESTION, read)).value == "back"


def test_an_open_breaker_lets_one_probe_through() -> None:
    time = FakeTime()
    breaker = CircuitBreaker(failures=2, pause=10, clock=time)
    for _ in range(2):
        with pytest.raises(ModelUnavailableError), breaker.watch():
            raise busy()
    assert not breaker.admits

    time.now = 10
    with breaker.watch():
        assert not breaker.admits
        with pytest.raises(ModelUnavailableError), breaker.watch():
            pytest.fail("a second probe")

    assert breaker.admits


def test_a_probe_that_fails_opens_the_breaker_again() -> None:
    time = FakeTime()
    breaker = CircuitBreaker(failures=1, pause=10, clock=time)
    for moment in (0, 10):
        time.now = moment
        with pytest.raises(ModelUnavailableError), breaker.watch():
            raise busy()

    assert not breaker.admits


def test_a_cancelled_probe_leaves_room_for_another() -> None:
    time = FakeTime()
    breaker = CircuitBreaker(failures=1, pause=10, clock=time)
    with pytest.raises(ModelUnavailableError), breaker.watch():
        raise busy()
    time.now = 10

    with pytest.raises(asyncio.CancelledError), breaker.watch():
        raise asyncio.CancelledError

    assert breaker.admits


@pytest.mark.parametrize("answer", [UnreadableAnswerError("x"), ModelRefusedError("x")])
def test_a_provider_that_answers_badly_is_still_there(answer: Exception) -> None:
    breaker = CircuitBreaker(failures=1)

    with pytest.raises(type(answer)), breaker.watch():
        raise answer

    assert breaker.admits
