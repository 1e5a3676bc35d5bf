"""Counts and serves what `gateway.observe.metricscatalogue` declares: from the gateway's signals, or read when somebody asks.

Law: nothing is counted that is not declared there. Nothing is global: each gateway has a registry of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from adapters.http.common import guarded
from adapters.http.routes import HttpRoute
from gateway.observe.looplag import LoopWatch
from gateway.observe.metricscatalogue import (
    GATEWAYS_OWN,
    OURS,
    GatewayParts,
    KnownAtStart,
    LoopLate,
    Metric,
    MetricKind,
    Told,
)
from gateway.version import program_version

MOST_VALUES = 100
"""So many values of a label that comes from outside are told apart."""
MOST_SERIES = 2_000
"""So many are found without the library's asking."""
OTHER = "other"
FROM_OUTSIDE = frozenset({"model", "endpoint", "tool", "gen_ai_provider_name", "gen_ai_request_model"})
OPENMETRICS = "application/openmetrics-text"


class Metrics:
    """Counts. `on` takes the signals; `read_from` says where the rest is read."""

    def __init__(self, currency: str) -> None:
        disable_created_metrics()  # series beside each counter that nobody asks for
        self.registry = CollectorRegistry()
        self._own = dict(zip(GATEWAYS_OWN, (currency, program_version(), "chat"), strict=True))
        self._made: dict[str, Counter | Histogram] = {}
        self._told_by: defaultdict[type, list[Metric]] = defaultdict(list)
        self._series: dict[tuple[str, ...], Callable[[float], None]] = {}
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        for metric in OURS:
            if metric.on is not None:
                self._made[metric.name] = _made(metric, self.registry)
                self._told_by[metric.on.signal].append(metric)
        ProcessCollector(registry=self.registry)
        self.loop = LoopWatch(lambda late: self.on(LoopLate(late)))

    def read_from(self, parts: GatewayParts) -> None:
        """From now on what is read is read from `parts`."""
        self.registry.register(_Readings(self, parts))

    def begin(self, known: KnownAtStart) -> None:
        """Have the series that are known beforehand from now on, at 0."""
        for metric in OURS:
            for values in metric.begin(known) if metric.begin is not None else ():
                self._made[metric.name].labels(*self.labels(metric, values))

    def on(self, signal: Told) -> None:
        """Count what happened."""
        for metric in self._told_by[type(signal)]:
            if metric.on is None:
                continue
            for amount, *values in metric.on.amounts(signal):
                count = self._series.get((metric.name, *values)) or self._one(metric, tuple(values))
                count(amount)

    def _one(self, metric: Metric, values: tuple[str, ...]) -> Callable[[float], None]:
        """What counts in the series of these values; those that were counted first are found again at once."""
        made = self._made[metric.name]
        one = made.labels(*self.labels(metric, values)) if metric.labels else made
        count = one.inc if isinstance(one, Counter) else one.observe
        if len(self._series) < MOST_SERIES:
            self._series[metric.name, *values] = count
        return count

    def labels(self, metric: Metric, values: tuple[str, ...]) -> list[str]:
        """The values of a metric's labels, those that are the gateway's own among them."""
        given = iter(values)
        return [self._own[name] if name in self._own else self._label(name, next(given)) for name in metric.labels]

    def _label(self, name: str, value: str) -> str:
        if name not in FROM_OUTSIDE:
            return value
        seen = self._seen[name]
        if value not in seen and len(seen) >= MOST_VALUES:
            return OTHER
        seen.add(value)
        return value

    def watching_loop(self, notes: Path | None = None) -> AbstractAsyncContextManager[None]:
        """For the block it is looked how late the loop is; see `gateway.observe.looplag`."""
        return self.loop.watching(notes)

    # ------------------------------------------------------------------ /metrics

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """All of them as they are now, and the type of that; in OpenMetrics if `accept` asks for it."""
        # The header is not handed to the library, which trips over versions that are no numbers.
        encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
        return encode(self.registry), content_type

    def routes(self, key: str | None) -> list[web.RouteDef]:
        """Guarded as ``/status`` is."""

        async def serve(request: web.Request) -> web.Response:
            body, content_type = self.text(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": content_type})

        return [HttpRoute.METRICS.served(guarded(key, serve))]


def _made(metric: Metric, registry: CollectorRegistry) -> Counter | Histogram:
    if metric.kind is MetricKind.COUNTER:
        return Counter(metric.name, metric.says, metric.labels, registry=registry)
    return Histogram(metric.name, metric.says, metric.labels, buckets=metric.buckets, registry=registry)


class _Readings(Collector):
    """What is read when somebody asks."""

    def __init__(self, metrics: Metrics, parts: GatewayParts) -> None:
        self._metrics = metrics
        self._parts = parts

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """So that registering it reads nothing."""
        return iter(())

    @override
    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        for metric in OURS:
            if metric.read is None:
                continue
            made = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
            family = made(metric.name, metric.says, labels=metric.labels)
            for value, *labels in metric.read(self._parts):
                family.add_metric(self._metrics.labels(metric, tuple(labels)), value)
            yield family
