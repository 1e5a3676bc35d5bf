"""Counts what `gateway.observe.metricscatalogue` declares, from the gateway's signals, and gives all of it when somebody asks.

A gateway that nobody asks counts all the same, so counting needs nothing but Python: Prometheus' library, which brings Python's own web server
along, is loaded by the first who asks (`gateway.observe.exposing`).

Law: nothing is counted that is not declared there. Nothing is global.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from aiohttp import web

from adapters.http.common import guarded
from adapters.http.routes import HttpRoute
from agent_core.beside import loaded
from gateway.observe.counted import CounterSeries, HistogramSeries, Series
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
"""So many are found at once."""
OTHER = "other"
FROM_OUTSIDE = frozenset({"model", "endpoint", "tool", "gen_ai_provider_name", "gen_ai_request_model"})

_AS_GIVEN = frozenset(metric.name for metric in OURS if FROM_OUTSIDE.union(GATEWAYS_OWN).isdisjoint(metric.labels))
"""Metrics whose labels are what their signals say."""


class Metrics:
    """Counts. `on` takes the signals; `read_from` says where the rest is read."""

    def __init__(self, currency: str) -> None:
        self._own = dict(zip(GATEWAYS_OWN, (currency, program_version(), "chat"), strict=True))
        self._told_by: defaultdict[type, list[Metric]] = defaultdict(list)
        self.counted: dict[str, dict[tuple[str, ...], Series]] = {}
        """The series of each metric that is counted, by the values of its labels."""
        self._known: dict[tuple[str, ...], Series] = {}
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        self.parts: GatewayParts | None = None
        for metric in OURS:
            if metric.on is not None:
                self.counted[metric.name] = {}
                self._told_by[metric.on.signal].append(metric)
                if not metric.labels:
                    self._series(metric, ())
        self.loop = LoopWatch(lambda late: self.on(LoopLate(late)))

    def read_from(self, parts: GatewayParts) -> None:
        """From now on what is read is read from `parts`."""
        self.parts = parts

    def begin(self, known: KnownAtStart) -> None:
        """Have the series that are known beforehand from now on, at 0."""
        for metric in OURS:
            for values in metric.begin(known) if metric.begin is not None else ():
                self._series(metric, values)

    def on(self, signal: Told) -> None:
        """Count what happened."""
        for metric in self._told_by[type(signal)]:
            if metric.on is None:
                continue
            for amount, *values in metric.on.amounts(signal):
                series = self._known.get((metric.name, *values)) or self._one(metric, tuple(values))
                series.add(amount)

    def _one(self, metric: Metric, values: tuple[str, ...]) -> Series:
        """The series of these values; those that were counted first are found again at once."""
        series = self._series(metric, values)
        if len(self._known) < MOST_SERIES:
            self._known[metric.name, *values] = series
        return series

    def _series(self, metric: Metric, values: tuple[str, ...]) -> Series:
        there = self.counted[metric.name]
        labels = values if metric.name in _AS_GIVEN else tuple(self.labels(metric, values))
        series = there.get(labels)
        if series is None:
            there[labels] = series = (
                CounterSeries() if metric.kind is MetricKind.COUNTER else HistogramSeries(metric.buckets)
            )
        return series

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
        from gateway.observe.exposing import exposed

        return exposed(OURS, self.counted, self._read(), accept)

    def _read(self) -> Mapping[str, Iterable[tuple[float, list[str]]]]:
        """The numbers that are read, with the values of their labels, by metric."""
        parts = self.parts
        if parts is None:
            return {}
        return {
            metric.name: [(value, self.labels(metric, tuple(values))) for value, *values in metric.read(parts)]
            for metric in OURS
            if metric.read is not None
        }

    def routes(self, key: str | None) -> list[web.RouteDef]:
        """Guarded as ``/status`` is."""

        async def serve(request: web.Request) -> web.Response:
            await loaded("gateway.observe.exposing")
            body, content_type = self.text(request.headers.get("Accept", ""))
            return web.Response(body=body, headers={"Content-Type": content_type})

        return [HttpRoute.METRICS.served(guarded(key, serve))]
