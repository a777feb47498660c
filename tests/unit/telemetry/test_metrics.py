from prometheus_client import CollectorRegistry, generate_latest

from consumers.failures import Handled
from consumers.requests import Answered
from consumers.translation import Repair
from domain.arrivals import Verdict
from domain.candidates import DropReason
from domain.jobs import JobStatus
from telemetry import metrics
from telemetry.metrics import Metrics


def _text(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_two_services_in_one_process_do_not_share_metrics() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())

    one.late_replies.inc()

    assert "memory_late_replies_total 1.0" in _text(one.registry)
    assert "memory_late_replies_total 0.0" in _text(other.registry)


def test_label_sets_are_those_of_the_code_that_counts() -> None:
    assert set(metrics.REPAIRS) == set(Repair)
    assert set(metrics.HANDLED) == set(Handled)
    assert set(metrics.ANSWERED) == set(Answered)
    assert set(metrics.VERDICTS) == set(Verdict)
    assert set(metrics.JOB_STATUSES) == set(JobStatus)
    assert set(metrics.CANDIDATE_OUTCOMES) == {"kept", "held", *DropReason}


def test_a_label_value_outside_its_set_makes_no_series_of_its_own() -> None:
    subject = Metrics(CollectorRegistry())

    subject.sessions.labels(verdict="what anna said").inc()

    assert "anna" not in _text(subject.registry)
    assert 'memory_sessions_total{verdict="other"} 1.0' in _text(subject.registry)


def test_every_metric_is_named_by_thing_and_unit_and_explained() -> None:
    subject = Metrics(CollectorRegistry())
    subject.built(version="1", python="3.11")
    units = (
        "seconds",
        "records",
        "handlers",
        "workers",
        "jobs",
        "partitions",
        "connections",
        "requests",
        "leaders",
        "awaited",
        "build",
    )

    for family in subject.registry.collect():
        assert family.name.startswith("memory_")
        assert family.documentation.endswith(".")
        assert family.type == "counter" or family.name.endswith(units), family.name


def test_series_of_a_single_label_are_there_before_the_first_event() -> None:
    text = _text(Metrics(CollectorRegistry()).registry)

    assert 'memory_dead_letters_total{error_class="exhausted"} 0.0' in text


def test_build_info_tells_version_and_python() -> None:
    subject = Metrics(CollectorRegistry())

    subject.built(version="0.1.0", python="3.11.7")

    assert 'memory_build_info{python="3.11.7",version="0.1.0"} 1.0' in _text(subject.registry)
