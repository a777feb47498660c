"""Every metric of the service: its name with the unit, its meaning and the closed set of each label."""

from collections.abc import Collection, Mapping
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.metrics import MetricWrapperBase

OTHER: Final = "other"

VERDICTS: Final = ("accepted", "duplicate", "revised", "conflict", "waiting", "empty")
JOB_STATUSES: Final = (
    "queued",
    "gated",
    "passthrough",
    "conflict",
    "running",
    "retrying",
    "completed",
    "dead",
)
CANDIDATE_OUTCOMES: Final = (
    "kept",
    "held",
    "shape",
    "low_confidence",
    "low_importance",
    "temporary",
    "ungrounded",
    "not_the_users_words",
    "secret",
    "special_category",
    "instruction",
)
FACT_CHANGES: Final = (
    "created",
    "reinforced",
    "revised",
    "superseded",
    "merged",
    "renamed",
    "deleted",
    "expired",
    "restored",
    "erased",
)
DEAD_LETTER_CLASSES: Final = ("undecodable", "invalid", "permanent", "exhausted")
PROVIDERS: Final = ("rules", "generate", "openai", "anthropic", "gemini")
CALL_OUTCOMES: Final = ("answered", "unreadable", "unavailable", "refused")
DIRECTIONS: Final = ("in", "out")
VERDICTS_OF_A_JUDGE: Final = ("same", "rivals", "compatible", "merge", "open")
INJECTION_OUTCOMES: Final = ("applied", "empty", "failed")
REPAIRS: Final = ("naive_time", "unknown_zone", "cleaned_text", "empty_message", "repeated_id")
HANDLED: Final = (
    "done",
    "undecodable",
    "invalid",
    "permanent",
    "exhausted",
    "dead",
    "put_back",
    "beyond_slots",
    "waiting",
)
LANES: Final = ("priority", "standard", "bulk", "replay")
ANSWERED: Final = ("ok", "failed", "deadline", "reply_topic", "undecodable", "unsent")
POOLS: Final = ("write", "read")
AWAITED: Final = ("database", "broker")
POOL_STATES: Final = ("used", "idle")
HTTP_CLASSES: Final = ("2xx", "3xx", "4xx", "5xx")
REQUEST_TOPICS: Final = ("memory.injection.requests.v1", "memory.queries.v1")
CONSUMED_TOPICS: Final = (
    "conversation.messages.v1",
    "conversation.ended.v1",
    "conversation.replay.v1",
    "extraction.jobs.priority.v1",
    "extraction.jobs.standard.v1",
    "extraction.jobs.bulk.v1",
    "extraction.jobs.replay.v1",
    "memory.commands.v1",
    *REQUEST_TOPICS,
)

_QUICK_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600)

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)


class Labelled(Generic[_Metric]):
    """A metric whose label values come from closed sets; a value outside its set is counted as ``other``."""

    def __init__(self, metric: _Metric, sets: Mapping[str, Collection[str]]) -> None:
        self._metric = metric
        self._sets = {name: frozenset(values) for name, values in sets.items()}

    def labels(self, **values: str) -> _Metric:
        """Return the series of ``values``; every label must be given."""
        known = {name: value if value in self._sets[name] else OTHER for name, value in values.items()}
        return self._metric.labels(**known)


class _Register:
    """Makes metrics on one registry; series of a single label start at 0, so a rate sees the first event."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, meaning: str) -> Counter:
        return Counter(name, meaning, registry=self._registry)

    def gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(name, meaning, registry=self._registry)

    def histogram(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, meaning, buckets=buckets, registry=self._registry)

    def counters(self, name: str, meaning: str, **sets: Collection[str]) -> Labelled[Counter]:
        counter = Counter(name, meaning, tuple(sets), registry=self._registry)
        if len(sets) == 1:
            (label, values), *_ = sets.items()
            for value in values:
                counter.labels(**{label: value})
        return Labelled(counter, sets)

    def gauges(self, name: str, meaning: str, **sets: Collection[str]) -> Labelled[Gauge]:
        return Labelled(Gauge(name, meaning, tuple(sets), registry=self._registry), sets)

    def histograms(
        self, name: str, meaning: str, buckets: tuple[float, ...], **sets: Collection[str]
    ) -> Labelled[Histogram]:
        histogram = Histogram(name, meaning, tuple(sets), buckets=buckets, registry=self._registry)
        return Labelled(histogram, sets)


class Metrics:
    """The metrics of one service object, bound to its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        register = _Register(registry)
        self._intake(register)
        self._jobs(register)
        self._models(register)
        self._memory(register)
        self._outbox(register)
        self._requests(register)
        self._consumers(register)
        self._infrastructure(register)

    def _intake(self, register: _Register) -> None:
        self.sessions = register.counters(
            "memory_sessions_total", "Ended conversations by what their arrival did.", verdict=VERDICTS
        )
        self.repairs = register.counters(
            "memory_repairs_total",
            "What was mended on the way in: a time without a zone, a text that cannot be stored as it is.",
            repair=REPAIRS,
        )
        self.dead_letters = register.counters(
            "memory_dead_letters_total",
            "Records kept as dead letters, by class.",
            error_class=DEAD_LETTER_CLASSES,
        )

    def _jobs(self, register: _Register) -> None:
        self.jobs = register.counters(
            "memory_jobs_total", "Changes of a job's status, by the new status.", status=JOB_STATUSES
        )
        self.workers_busy = register.gauges(
            "memory_lane_busy_workers", "Workers that have a job, by lane.", lane=LANES
        )
        self.workers_waited_for = register.gauges(
            "memory_lane_waiting_jobs", "Jobs in hand that wait for a worker, by lane.", lane=LANES
        )
        self.job_seconds = register.histogram(
            "memory_job_seconds", "Seconds from the claim of a job to the end of the attempt.", _SLOW_S
        )
        self.job_wait_seconds = register.histogram(
            "memory_job_wait_seconds", "Seconds from the queueing of a job to its claim.", _SLOW_S
        )
        self.claims_lost = register.counter(
            "memory_claims_lost_total", "Jobs that another worker had taken over by the time of a write."
        )

    def _models(self, register: _Register) -> None:
        self.model_calls = register.counters(
            "memory_model_calls_total",
            "Calls of language models, by provider and outcome.",
            provider=PROVIDERS,
            outcome=CALL_OUTCOMES,
        )
        self.model_seconds = register.histograms(
            "memory_model_seconds", "Seconds of one call of a language model.", _SLOW_S, provider=PROVIDERS
        )
        self.judgements = register.counters(
            "memory_judgements_total",
            "Pairs of values that a model judged, by its verdict; `open` where it gave none.",
            verdict=VERDICTS_OF_A_JUDGE,
        )
        self.model_tokens = register.counters(
            "memory_model_tokens_total",
            "Tokens sent to and received from language models.",
            provider=PROVIDERS,
            direction=DIRECTIONS,
        )
        self.windows_degraded = register.counter(
            "memory_windows_degraded_total", "Windows done by rules because no model could be reached."
        )
        self.embedding_seconds = register.histogram(
            "memory_embedding_seconds", "Seconds of one call of the embedder.", _QUICK_S
        )
        self.embedded_texts = register.counter("memory_embedded_texts_total", "Texts turned into vectors.")

    def _memory(self, register: _Register) -> None:
        self.candidates = register.counters(
            "memory_candidates_total",
            "Candidates by what became of them: kept, held, or why they were dropped.",
            outcome=CANDIDATE_OUTCOMES,
        )
        self.facts = register.counters(
            "memory_facts_total", "Changes of facts, by kind of change.", change=FACT_CHANGES
        )

    def _outbox(self, register: _Register) -> None:
        self.outbox_waiting = register.gauge(
            "memory_outbox_waiting_records", "Due records not yet published."
        )
        self.outbox_lag = register.gauge("memory_outbox_lag_seconds", "Age of the oldest due record.")
        self.outbox_published = register.counter(
            "memory_outbox_published_total", "Records that the broker took from the outbox."
        )
        self.producer_rebuilds = register.counter(
            "memory_producer_rebuilds_total", "Producers closed and made anew after a broker's error."
        )
        self.relay_leaders = register.gauge(
            "memory_relay_leaders",
            "1 in the process whose relay publishes; over all processes it should be 1.",
        )

    def _requests(self, register: _Register) -> None:
        self.injections = register.counters(
            "memory_injections_total", "Injections by outcome.", outcome=INJECTION_OUTCOMES
        )
        self.injection_seconds = register.histogram(
            "memory_injection_seconds", "Seconds to build one injection.", _QUICK_S
        )
        self.requests = register.counters(
            "memory_requests_total",
            "Requests over Kafka by outcome; all but ok and failed were left without an answer.",
            topic=REQUEST_TOPICS,
            outcome=ANSWERED,
        )
        self.request_seconds = register.histograms(
            "memory_request_seconds",
            "Seconds to answer one request over Kafka.",
            _QUICK_S,
            topic=REQUEST_TOPICS,
        )
        self.late_replies = register.counter(
            "memory_late_replies_total", "Replies that came when nobody waited for them any more."
        )
        self.http_requests = register.counters(
            "memory_http_requests_total", "Answered HTTP requests by class of status.", status=HTTP_CLASSES
        )
        self.http_seconds = register.histogram(
            "memory_http_seconds", "Seconds to answer one HTTP request.", _QUICK_S
        )

    def _consumers(self, register: _Register) -> None:
        self.records_handled = register.counters(
            "memory_records_handled_total",
            "Records by how their handling ended; waiting is a try that found database or broker away.",
            topic=CONSUMED_TOPICS,
            outcome=HANDLED,
        )
        self.consumer_lag = register.gauges(
            "memory_consumer_lag_records", "Records not yet done, by topic.", topic=CONSUMED_TOPICS
        )
        self.consumer_in_flight = register.gauges(
            "memory_consumer_in_flight_records", "Records in the hands of handlers.", topic=CONSUMED_TOPICS
        )
        self.consumer_poll_age = register.gauges(
            "memory_consumer_poll_age_seconds", "Seconds since a consumer last polled.", topic=CONSUMED_TOPICS
        )
        self.consumer_stalled = register.gauges(
            "memory_consumer_stalled_partitions",
            "Partitions at a stand because a handler failed in an unknown way.",
            topic=CONSUMED_TOPICS,
        )

    def _infrastructure(self, register: _Register) -> None:
        self.pool_connections = register.gauges(
            "memory_pool_connections", "Connections of a pool by state.", pool=POOLS, state=POOL_STATES
        )
        self.pool_waiting = register.gauges(
            "memory_pool_waiting_requests", "Callers that wait for a connection.", pool=POOLS
        )
        self.awaited = register.gauges(
            "memory_awaited",
            "1 while the service waits for it: it does not answer, or takes no writes.",
            what=AWAITED,
        )
        self._build = Info("memory_build", "What is running.", registry=self.registry)

    def built(self, *, version: str, python: str) -> None:
        """Publish which ``version`` runs on which ``python``, as ``memory_build_info``."""
        self._build.info({"version": version, "python": python})
