"""What was counted and read, as Prometheus reads it: by its own library, which is loaded when somebody first asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from gateway.observe.counted import CounterSeries, Series
from gateway.observe.metricscatalogue import Metric, MetricKind

GOES_OVER = 1e6
OPENMETRICS = "application/openmetrics-text"
Counted = Mapping[str, Mapping[tuple[str, ...], Series]]
Read = Mapping[str, Iterable[tuple[float, list[str]]]]


def exposed(metrics: Sequence[Metric], counted: Counted, read: Read, accept: str) -> tuple[bytes, str]:
    """All of it, and the type of that; in OpenMetrics if `accept` asks for it."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Ours(metrics, counted, read))
    registry.register(_process())
    # The header is not handed to the library, which trips over versions that are no numbers.
    encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
    return encode(registry), content_type


@cache
def _process() -> ProcessCollector:
    return ProcessCollector(registry=CollectorRegistry())


class _Ours(Collector):
    def __init__(self, metrics: Sequence[Metric], counted: Counted, read: Read) -> None:
        self._metrics = metrics
        self._counted = counted
        self._read = read

    @override
    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily]:
        for metric in self._metrics:
            if metric.on is not None:
                yield _family(metric, self._counted[metric.name])
        for metric in self._metrics:
            if metric.name in self._read:
                made = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
                family = made(metric.name, metric.says, labels=metric.labels)
                for value, labels in self._read[metric.name]:
                    family.add_metric(labels, value)
                yield family


def _family(metric: Metric, series: Mapping[tuple[str, ...], Series]) -> CounterMetricFamily | HistogramMetricFamily:
    if metric.kind is MetricKind.COUNTER:
        counter = CounterMetricFamily(metric.name, metric.says, labels=metric.labels)
        for labels, one in series.items():
            assert isinstance(one, CounterSeries)
            counter.add_metric(labels, one.value)
        return counter
    histogram = HistogramMetricFamily(metric.name, metric.says, labels=metric.labels)
    bounds = [*map(_written, metric.buckets), "+Inf"]
    for labels, one in series.items():
        assert not isinstance(one, CounterSeries)
        histogram.add_metric(labels, [*zip(bounds, accumulate(map(float, one.counts)), strict=True)], one.total)
    return histogram


def _written(bound: float) -> str:
    """A bucket's bound, as the library itself writes it: as Go does, which goes over to exponents sooner than Python."""
    if bound < GOES_OVER:
        return repr(float(bound))
    mantissa, _, exponent = f"{bound:e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{exponent}"
