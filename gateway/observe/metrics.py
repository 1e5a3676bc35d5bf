"""The metrics of one gateway: counted from its signals, or read when somebody asks. ``/metrics`` serves them.

Law: there is one list, `gateway.observe.metricscatalogue`; nothing is counted under a name that is not in it. Nothing is global: each
gateway has a registry of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

from agent_core.limits.budgets import NANOS
from agent_core.signals import (
    Committed,
    ConnectionCut,
    FirstSign,
    LawBroken,
    MessageTaken,
    ModelCalled,
    PartSent,
    RequestRefused,
    SendFailed,
    Signal,
    SpendStopped,
    Spent,
    TooFast,
    ToolRan,
    TurnBegan,
    TurnClosed,
    TurnedAway,
)
from agent_core.turn.exits import BreakCause, ExitCode
from gateway.http.admin import guarded
from gateway.observe import metricscatalogue as m
from gateway.observe.looplag import LoopWatch
from gateway.observe.metricscatalogue import Kind, Metric

MOST_VALUES = 100
"""So many values of a label that comes from outside are told apart."""
OTHER = "other"
FROM_OUTSIDE = frozenset({"model", "endpoint", "tool", "gen_ai_provider_name", "gen_ai_request_model"})
STALLED = (BreakCause.NO_CONTENT.value, BreakCause.STALLED.value)
OPENMETRICS = "application/openmetrics-text"


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a metric that is read."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


Read = Callable[[], Iterable[Reading]]


class Metrics:
    """Counts. `on` takes the signals; `read_from` says where the rest is read."""

    def __init__(self, currency: str) -> None:
        disable_created_metrics()  # series beside each counter that nobody asks for
        self.registry = CollectorRegistry()
        self._currency = currency
        self._counters: dict[str, Counter] = {}
        self._histograms: dict[str, Histogram] = {}
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        for metric in (one for one in m.OURS if not one.read):
            if metric.kind is Kind.COUNTER:
                self._counters[metric.name] = Counter(metric.name, metric.says, metric.labels, registry=self.registry)
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name, metric.says, metric.labels, buckets=metric.buckets, registry=self.registry
                )
        ProcessCollector(registry=self.registry)
        self._loop = LoopWatch(lambda late: self.observe(m.LOOP_LAG, late))

    def read_from(self, read: Read) -> None:
        """From now on what is read comes from `read`."""
        self.registry.register(_Readings(lambda: (*read(), Reading(m.LOOP_HELD, self._loop.longest))))

    def begin(self, series: Iterable[tuple[Metric, tuple[str, ...]]]) -> None:
        """Have these series from now on, at 0; see `gateway.observe.firstseries`."""
        for metric, values in series:
            made = self._counters.get(metric.name) or self._histograms[metric.name]
            made.labels(*self._labels(metric, values))

    def _label(self, name: str, value: str) -> str:
        if name not in FROM_OUTSIDE:
            return value
        seen = self._seen[name]
        if value not in seen and len(seen) >= MOST_VALUES:
            return OTHER
        seen.add(value)
        return value

    def _labels(self, metric: Metric, values: tuple[str, ...]) -> list[str]:
        return [self._label(name, value) for name, value in zip(metric.labels, values, strict=True)]

    def count(self, metric: Metric, *values: str, by: float = 1) -> None:
        """Add to a counter. `values` are its labels."""
        counter = self._counters[metric.name]
        (counter.labels(*self._labels(metric, values)) if metric.labels else counter).inc(by)

    def observe(self, metric: Metric, amount: float, *values: str) -> None:
        """Put an amount into a histogram. `values` are its labels."""
        histogram = self._histograms[metric.name]
        (histogram.labels(*self._labels(metric, values)) if metric.labels else histogram).observe(amount)

    def on(self, signal: Signal) -> None:
        """Count what happened."""
        match signal:
            case Committed():
                outcome = "stored" if signal.stored else "failed"
                self.observe(m.COMMIT_SECONDS, signal.seconds, outcome)
                self.count(m.STORE_OPERATIONS, outcome, by=signal.operations)
            case MessageTaken():
                self.count(m.MESSAGES, signal.account.partition("/")[0], signal.lane)
            case RequestRefused():
                self.count(m.REQUESTS_REFUSED, str(signal.status))
            case ConnectionCut():
                self.count(m.CONNECTIONS_CUT, signal.why)
            case TurnedAway():
                self.count(m.TURNED_AWAY, signal.account.partition("/")[0])
            case TurnBegan():
                self.observe(m.TURN_WAIT, signal.waited_ms / 1000, signal.surface)
            case FirstSign():
                self.observe(m.FIRST_SIGN, signal.after_ms / 1000, signal.surface)
            case ModelCalled():
                self._called(signal)
            case ToolRan():
                self.observe(m.TOOL_SECONDS, (signal.ended_at - signal.began_at) / 1000, signal.tool, signal.status)
            case TurnClosed():
                self._closed(signal)
            case PartSent():
                lag = max(0, signal.sent_at - signal.wanted_at) / 1000
                self.observe(m.DELIVERY_LAG, lag, signal.platform)
            case SendFailed(final=True):
                self.count(m.DELIVERY_FAILED, signal.platform, signal.cause)
            case SendFailed():
                self.count(m.DELIVERY_RETRIES, signal.platform, signal.fate, signal.cause)
            case TooFast():
                self.count(m.DELIVERY_PAUSES, signal.platform, by=signal.seconds)
            case Spent():
                self.count(m.SPENT_TOKENS, signal.model, str(signal.estimated).lower(), by=signal.tokens)
                self.count(m.SPENT_MONEY, signal.model, self._currency, by=signal.nanos / NANOS)
            case SpendStopped():
                self.count(m.SPEND_STOPPED, signal.budget, signal.measure)
            case LawBroken():
                self.count(m.LAWS_BROKEN)

    def _called(self, call: ModelCalled) -> None:
        of = ("chat", call.endpoint, call.model)
        self.observe(m.CALL_SECONDS, max(0, call.ended_at - call.began_at) / 1000, *of, call.error)
        if call.content_at:
            self.observe(m.CALL_FIRST, max(0, call.content_at - call.began_at) / 1000, *of)
        for kind, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
            if tokens:
                self.observe(m.TOKEN_USAGE, tokens, *of, kind)
        if call.error in STALLED:
            self.count(m.STALLS, call.endpoint, call.model, call.error)

    def _closed(self, turn: TurnClosed) -> None:
        self.count(m.TURNS, turn.exit, turn.surface)
        self.observe(m.TURN_SECONDS, max(0, turn.ended_at - turn.began_at) / 1000, turn.surface)
        if turn.content_at:
            self.observe(m.FIRST_CONTENT, max(0, turn.content_at - turn.began_at) / 1000, turn.surface)
        for trouble in turn.troubles:
            if trouble.code == ExitCode.ANSWERED.value:
                continue  # says that an earlier one is over
            self.count(m.TROUBLES, trouble.code, trouble.cause, trouble.endpoint, trouble.model)
            if trouble.rung:
                self.count(m.REMEDIES, trouble.code, trouble.rung, trouble.outcome)

    def watching_loop(self, notes: Path | None = None) -> AbstractAsyncContextManager[None]:
        """For the block it is looked how late the loop is; see `gateway.observe.looplag`."""
        return self._loop.watching(notes)

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

        return [web.get("/metrics", guarded(key, serve))]


class _Readings(Collector):
    """What is read when somebody asks."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def describe(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """So that registering it reads nothing."""
        return iter(())

    @override
    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        families = {metric.name: _family(metric) for metric in m.OURS if metric.read}
        for reading in self._read():
            families[reading.metric.name].add_metric(reading.labels, reading.value)
        yield from families.values()


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    made = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    return made(metric.name, metric.says, labels=metric.labels)
