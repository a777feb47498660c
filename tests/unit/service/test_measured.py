"""What is counted of models and jobs."""

from collections.abc import Mapping
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry

from clients.llm.provider import Completion, ProviderBusyError, Request
from consumers.failures import Handled
from domain.errors import ModelRefusedError, UnreadableAnswerError
from domain.outbox import RawRecord
from service.measured import Counted, MeasuredProvider
from telemetry.metrics import Metrics

pytestmark = pytest.mark.anyio


class Provider:
    """Answers, or raises what it is told to."""

    name = "openai/small"

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def complete(self, request: Request, *, timeout: float) -> Completion:
        if self._error is not None:
            raise self._error
        return Completion(text="{}")


def counted(metrics: Metrics, name: str, labels: Mapping[str, str]) -> float:
    return metrics.registry.get_sample_value(name, dict(labels)) or 0.0


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, "answered"),
        (ProviderBusyError("away"), "unavailable"),
        (TimeoutError(), "unavailable"),
        (UnreadableAnswerError("no text"), "unreadable"),
        (ModelRefusedError("400"), "refused"),
    ],
)
async def test_every_call_of_a_model_is_counted_by_how_it_ended(
    error: Exception | None, outcome: str
) -> None:
    metrics = Metrics(CollectorRegistry())
    provider = MeasuredProvider(Provider(error), metrics)

    with suppress(ProviderBusyError, TimeoutError, UnreadableAnswerError, ModelRefusedError):
        await provider.complete(Request(fixed="", varying=""), timeout=1)

    labels = {"provider": "openai", "outcome": outcome}
    assert counted(metrics, "memory_model_calls_total", labels) == 1
    assert counted(metrics, "memory_model_seconds_count", {"provider": "openai"}) == 1


@pytest.mark.parametrize("handled", list(Handled))
def test_each_dead_letter_is_counted_where_it_is_written(handled: Handled) -> None:
    metrics = Metrics(CollectorRegistry())
    record = RawRecord(
        topic="x.conversation.ended.v1", partition=0, offset=0, key=None, value=None, headers=()
    )

    Counted(metrics, topic_prefix="x.").handled(record, handled)

    labels = {"topic": "conversation.ended.v1", "outcome": handled.value}
    assert counted(metrics, "memory_records_handled_total", labels) == 1
    is_letter = handled.value in {"undecodable", "invalid", "permanent", "exhausted"}
    letters = counted(metrics, "memory_dead_letters_total", {"error_class": handled.value})
    assert letters == (1 if is_letter else 0)
