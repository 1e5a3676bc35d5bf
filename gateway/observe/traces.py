"""Traces by OTLP: a span for each turn, and below it for its model calls, its tools and what was delivered. Off unless configured.

Spans are made from signals, when what they stand for is over; nothing waits for them. A turn's trace has ids that follow from the
turn's own, so a turn that another process takes over, and what is delivered after its end, stay in one trace. Names are those of
OpenTelemetry's conventions for generative AI, where they have one.

Laws: no word of a person's or the model's text is in a span; a collector that is away costs its spans, and nothing else.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import structlog

from adapters.contract.pacing import worth_saying
from adapters.http.tracecontext import TraceParent, parsed
from agent_core.signals import ModelCalled, PartSent, Signal, Signals, ToolRan, TurnClosed
from agent_core.tools.base import ToolStatus
from gateway.version import program_version

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

log = structlog.get_logger("traces")

Value = str | int | float | tuple[str, ...]
Continues = Callable[[str, str], None]
"""Told a turn and the ``traceparent`` of who asked for it."""

SEND_SECONDS = 5.0
"""How long a collector may take, and how long the end of the program waits for the last spans."""
BATCH_MS = 2_000
LIBRARY = "opentelemetry"
MOST_PARENTS = 10_000
"""So many turns that go on with their callers' traces are remembered."""


def _nobody(turn: str, traceparent: str) -> None:
    """Where nothing is traced."""


@asynccontextmanager
async def traced(endpoint: str, signals: Signals) -> AsyncGenerator[Continues]:
    """What happens is traced for the block; gives who is told of a caller's trace. Without an endpoint, nothing is done."""
    if not endpoint:
        yield _nobody
        return
    provider = _provider(endpoint)
    library = logging.getLogger(f"{LIBRARY}.exporter")
    level = library.level
    library.setLevel(logging.CRITICAL)  # it is told below, and not with every batch
    traces = Traces(provider)
    signals.listen(traces.on)
    try:
        yield traces.continues
    finally:
        await _ended(provider)
        library.setLevel(level)


async def _ended(provider: TracerProvider) -> None:
    """Send the last spans, or give them up after a while. In a thread that the end of the program does not wait for."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        provider.shutdown()
        with suppress(RuntimeError):  # nobody waits any more, and the loop is closed
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=end, name="traces end", daemon=True).start()
    try:
        async with asyncio.timeout(SEND_SECONDS):
            await over.wait()
    except TimeoutError:
        log.warning("traces.left")


def _provider(endpoint: str) -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    resource = Resource.create({"service.name": "outspoken", "service.version": program_version()})
    exporter = _telling(OTLPSpanExporter(endpoint=endpoint, timeout=SEND_SECONDS))
    provider = TracerProvider(sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=BATCH_MS))
    return provider


def _telling(exporter: SpanExporter) -> SpanExporter:
    """The same, with a line in the log the 1st, 2nd, 4th, 8th … time in a row that a batch is lost."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from typing_extensions import override

    class Telling(SpanExporter):
        lost = 0

        @override
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            result = exporter.export(spans)
            self.lost = 0 if result is SpanExportResult.SUCCESS else self.lost + 1
            if self.lost and worth_saying(self.lost):
                log.warning("traces.not_sent", count=len(spans), times=self.lost)
            return result

        @override
        def shutdown(self) -> None:
            exporter.shutdown()

    return Telling()


class Traces:
    """Makes spans of signals."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

        class GivenIds(RandomIdGenerator):
            """Gives the ids that a turn's own span is to have."""

            trace = span = 0

            def generate_trace_id(self) -> int:
                given, self.trace = self.trace, 0
                return given or super().generate_trace_id()

            def generate_span_id(self) -> int:
                given, self.span = self.span, 0
                return given or super().generate_span_id()

        self._ids = provider.id_generator = GivenIds()
        self._tracer = provider.get_tracer("outspoken", program_version())
        self._parents: OrderedDict[str, TraceParent] = OrderedDict()

    def continues(self, turn: str, traceparent: str) -> None:
        """The turn's span goes below that of its caller, in the caller's trace."""
        parent = parsed(traceparent)
        if parent is not None:
            self._parents[turn] = parent
            if len(self._parents) > MOST_PARENTS:
                self._parents.popitem(last=False)

    def on(self, signal: Signal) -> None:
        """Make a span of what is over."""
        match signal:
            case TurnClosed():
                self._turn(signal)
            case ModelCalled():
                self._model(signal)
            case ToolRan():
                self._tool(signal)
            case PartSent():
                self._part(signal)
            case _:
                pass

    def _turn(self, turn: TurnClosed) -> None:
        trace, self._ids.span = ids_of(turn.turn)
        self._ids.trace = 0 if turn.turn in self._parents else trace
        facts: dict[str, Value] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "outspoken",
            "gen_ai.conversation.id": turn.session,
            "gen_ai.provider.name": turn.endpoint,
            "gen_ai.request.model": turn.model,
            "gen_ai.usage.input_tokens": turn.input_tokens,
            "gen_ai.usage.output_tokens": turn.output_tokens,
            "outspoken.turn": turn.turn,
            "outspoken.surface": turn.surface,
            "outspoken.exit": turn.exit,
            "outspoken.steps": turn.steps,
        }
        parent = self._parents.get(turn.turn)
        above = _in(parent.trace, parent.span) if parent is not None else None
        self._span(
            "invoke_agent outspoken",
            None,
            turn.began_at,
            turn.ended_at,
            facts,
            "" if turn.clean else turn.exit,
            above=above,
        )

    def _model(self, call: ModelCalled) -> None:
        facts: dict[str, Value] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.conversation.id": call.session,
            "gen_ai.provider.name": call.endpoint,
            "gen_ai.request.model": call.model,
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            "outspoken.turn": call.turn,
            "outspoken.call": call.name,
        }
        if call.reason:
            facts["gen_ai.response.finish_reasons"] = (call.reason,)
        if call.content_at:
            facts["gen_ai.response.time_to_first_chunk"] = max(0, call.content_at - call.began_at) / 1000
        if call.status:
            facts["http.response.status_code"] = call.status
        self._span(f"chat {call.model}", call.turn, call.began_at, call.ended_at, facts, call.error, out=True)

    def _tool(self, tool: ToolRan) -> None:
        facts: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.conversation.id": tool.session,
            "gen_ai.tool.name": tool.tool,
            "gen_ai.tool.call.id": tool.call,
            "outspoken.turn": tool.turn,
        }
        error = "" if tool.status == ToolStatus.OK.value else tool.status
        self._span(f"execute_tool {tool.tool}", tool.turn, tool.began_at, tool.ended_at, facts, error)

    def _part(self, part: PartSent) -> None:
        if ":" in part.origin:
            return  # words beside turns
        facts: dict[str, Value] = {
            "outspoken.platform": part.platform,
            "outspoken.part": part.kind,
            "outspoken.turn": part.origin,
        }
        self._span(f"deliver {part.platform}", part.origin, part.wanted_at, part.sent_at, facts, "", out=True)

    def _span(
        self,
        name: str,
        turn: str | None,
        began_at: int,
        ended_at: int,
        facts: Mapping[str, Value],
        error: str,
        *,
        out: bool = False,
        above: Context | None = None,
    ) -> None:
        """One span, below that of `turn`; None: it is a turn's own, below its caller's if there is one (`above`). `out`: it asked somebody outside."""
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind, Status, StatusCode

        where = self._below(turn) if turn is not None else (above or Context())
        kind = SpanKind.CLIENT if out else SpanKind.INTERNAL
        told = {key: value for key, value in facts.items() if value not in ("", ())}
        if error:
            told["error.type"] = error
        span = self._tracer.start_span(name, where, kind, told, start_time=began_at * 1_000_000)
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(max(began_at, ended_at) * 1_000_000)

    def _below(self, turn: str) -> Context:
        trace, span = ids_of(turn)
        parent = self._parents.get(turn)
        return _in(parent.trace if parent is not None else trace, span)


def ids_of(turn: str) -> tuple[int, int]:
    """The ids of a turn's trace and of its own span. Pure."""
    digest = hashlib.blake2b(turn.encode(), digest_size=24).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:]) or 1


def _in(trace: int, span: int) -> Context:
    """Below a span that is known by its ids."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    return set_span_in_context(NonRecordingSpan(SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(1))))
