"""The metrics of several processes as one text: what has the same name and labels is added up."""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

_Key = tuple[str, tuple[tuple[str, str], ...]]


class _Merged:
    """What ``generate_latest`` asks of a registry: families, each once."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families: dict[str, Metric] = {}
        for family in families:
            known = self._families.get(family.name)
            self._families[family.name] = family if known is None else _added(known, family)

    def collect(self) -> Iterable[Metric]:
        return self._families.values()


def exposition(own: CollectorRegistry, others: Iterable[str] = ()) -> bytes:
    """Return the metrics of ``own`` and of the processes whose texts are ``others``, in Prometheus' format.

    Counters, histograms and gauges are added up; what only describes stays that of ``own``.
    """
    texts = tuple(others)
    if not texts:
        return generate_latest(own)
    told = (family for text in texts for family in text_string_to_metric_families(text) if _counts(family))
    return generate_latest(_Merged([*own.collect(), *told]))


def _counts(family: Metric) -> bool:
    return not family.name.endswith(("_created", "_info"))


def _added(one: Metric, other: Metric) -> Metric:
    values: dict[_Key, Sample] = {_key(sample): sample for sample in one.samples}
    for sample in other.samples:
        known = values.get(_key(sample))
        values[_key(sample)] = sample if known is None else _sum(known, sample)
    merged = Metric(one.name, one.documentation, one.type)
    merged.samples = list(values.values())
    return merged


def _sum(one: Sample, other: Sample) -> Sample:
    return one._replace(value=one.value + other.value)


def _key(sample: Sample) -> _Key:
    labels: Mapping[str, str] = sample.labels
    return sample.name, tuple(sorted(labels.items()))
