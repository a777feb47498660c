from prometheus_client import CollectorRegistry, generate_latest

from telemetry.exposition import exposition
from telemetry.metrics import Metrics


def test_what_two_processes_counted_is_added_up() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    one.injections.labels(outcome="applied").inc(2)
    other.injections.labels(outcome="applied").inc(3)
    other.injection_seconds.observe(0.004)
    one.built(version="1", python="3.11")
    other.built(version="1", python="3.11")

    text = exposition(one.registry, [generate_latest(other.registry).decode()]).decode()

    assert 'memory_injections_total{outcome="applied"} 5.0' in text
    assert "memory_injection_seconds_count 1.0" in text
    assert 'memory_build_info{python="3.11",version="1"} 1.0' in text


def test_each_family_is_there_once() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())

    text = exposition(one.registry, [generate_latest(other.registry).decode()]).decode()

    types = [line for line in text.splitlines() if line.startswith("# TYPE ")]
    assert len(types) == len(set(types))


def test_alone_a_process_tells_its_own() -> None:
    alone = Metrics(CollectorRegistry())

    assert exposition(alone.registry) == generate_latest(alone.registry)
