"""Traces against a collector of ours that speaks OTLP: what is in them, what never is, and that a collector that is away harms nobody."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import StatusCode
from structlog.testing import capture_logs

from adapters.http.tracecontext import TraceParent, parsed, traceparent_of
from agent_core.signals import LawBroken, ModelCalled, PartSent, Signals, ToolRan, TurnClosed
from gateway.observe import traces
from gateway.observe.traces import Traces, ids_of, traced
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import telegram_harness
from tests.listening import listening
from tests.serving import served

Value = str | int | float | list[str]


def plain(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "array_value":
            return [one.string_value for one in value.array_value.values]
        case other:
            raise AssertionError(other)


@dataclass
class Collector:
    """Takes spans at `url`."""

    url: str = ""
    spans: list[Span] = field(default_factory=list[Span])
    resource: dict[str, Value] = field(default_factory=dict[str, Value])
    raw: bytes = b""

    async def take(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        body = await request.read()
        self.raw += body
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = {one.key: plain(one.value) for one in group.resource.attributes}
            self.spans += [span for scope in group.scope_spans for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")

    def named(self, begin: str) -> list[Span]:
        return [span for span in self.spans if span.name.startswith(begin)]


@asynccontextmanager
async def collector() -> AsyncGenerator[Collector]:
    made = Collector()
    app = web.Application()
    app.router.add_post("/v1/traces", made.take)
    async with listening(app) as url:
        made.url = f"{url}/v1/traces"
        yield made


def facts(span: Span) -> dict[str, Value]:
    return {one.key: plain(one.value) for one in span.attributes}


async def test_a_turn_is_one_trace_with_its_calls_tools_and_deliveries_and_no_word_of_anybody(tmp_path: Path) -> None:
    async with collector() as spans, telegram_harness(tmp_path) as telegram:
        chat = telegram.private(eve := telegram.person("Evangeline"))
        async with running(telegram, OUTSPOKEN_TELEMETRY__OTLP_ENDPOINT=spans.url):
            telegram.say(chat, eve, "write marmalade.txt: rhubarb")
            await answer(telegram, chat, "Done", 20)
            telegram.model.failing = True
            telegram.say(chat, eve, "say gooseberry")
            await telegram.until(lambda: any("⚠️" in one.text for one in telegram.seen(chat)), 30)
    good, bad = sorted(spans.named("invoke_agent"), key=lambda span: span.start_time_unix_nano)
    assert spans.resource["service.name"] == "outspoken"
    told = facts(good)
    assert (told["gen_ai.operation.name"], told["outspoken.exit"], told["outspoken.surface"]) == (
        "invoke_agent",
        "answered",
        "telegram",
    )
    assert good.parent_span_id == b""
    assert (bad.status.code, good.status.code) == (Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET)
    below = [span for span in spans.spans if span.trace_id == good.trace_id and span is not good]
    assert {span.parent_span_id for span in below} == {good.span_id}
    assert sorted(span.name.split()[0] for span in below) == ["chat", "chat", "deliver", "deliver", "execute_tool"]
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans.spans)
    model, tool, deliver = (
        next(span for span in below if span.name.startswith(n)) for n in ("chat", "execute_tool", "deliver")
    )
    assert (model.kind, tool.kind, deliver.kind) == (
        Span.SPAN_KIND_CLIENT,
        Span.SPAN_KIND_INTERNAL,
        Span.SPAN_KIND_CLIENT,
    )
    assert facts(model)["gen_ai.provider.name"] == facts(good)["gen_ai.provider.name"]
    assert facts(model)["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert facts(tool)["gen_ai.tool.name"] == "write_file"
    assert facts(deliver)["outspoken.platform"] == "telegram"
    failed = [span for span in spans.named("chat") if span.trace_id == bad.trace_id]
    assert failed
    assert all(facts(span)["error.type"] == "server_error" for span in failed)
    assert all(facts(span)["http.response.status_code"] == 503 for span in failed)
    for word in (b"marmalade", b"rhubarb", b"gooseberry", b"Evangeline"):
        assert word not in spans.raw


CALLED = ModelCalled(turn="t_1", session="s", name="1", endpoint="e", model="m", began_at=0, ended_at=10, content_at=5)


def closed(turn: str) -> TurnClosed:
    return TurnClosed(
        turn=turn, session="s", surface="api", exit="answered", clean=True, began_at=1_000, ended_at=2_000
    )


@given(st.text(), st.text())
def test_ids_follow_from_the_turn_and_are_valid(one: str, other: str) -> None:
    trace, span = ids_of(one)
    assert 0 < trace < 2**128
    assert 0 < span < 2**64
    assert (ids_of(other) == (trace, span)) is (one == other)


async def test_two_processes_of_one_turn_make_one_trace() -> None:
    async with collector() as spans:
        for signal in (CALLED, closed("t_1")):  # the first process dies, the second ends the turn
            told = Signals()
            async with traced(spans.url, told):
                told.tell(signal)
                told.tell(LawBroken())
    call, turn = spans.spans
    assert (call.trace_id, call.parent_span_id) == (turn.trace_id, turn.span_id)
    assert call.span_id != turn.span_id


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.sampled_from(["00", "01"]))
def test_a_callers_header_is_read(trace: int, span: int, flags: str) -> None:
    value = f"00-{trace:032x}-{span:016x}-{flags}"
    assert parsed(traceparent_of([value])) == TraceParent(trace, span)
    assert traceparent_of([value, value]) == "", "two of them are none"
    assert traceparent_of([f"{value}-more"]) == "", "this version has no more"
    assert parsed(traceparent_of([f"cc{value[2:]}-more"])) == TraceParent(trace, span), "a later one may"


@given(st.text(max_size=70) | st.sampled_from([PARENT.upper(), PARENT[:-1], f"ff{PARENT[2:]}", f"00-{0:032x}-00f067aa0ba902b7-01", f"00-{1:032x}-{0:016x}-01", ""]))  # fmt: skip
def test_a_header_that_is_not_as_it_has_to_be_is_none(value: str) -> None:
    assert parsed(value) is None or parsed(value) == parsed(traceparent_of([value]))
    if value == "" or value.startswith(("ff", "00-0000")) or value != value.lower() or len(value) == 54:
        assert traceparent_of([value]) == ""


async def test_a_turn_goes_on_with_its_callers_trace_and_else_has_one_of_its_own(tmp_path: Path) -> None:
    async with collector() as there:
        async with (
            served(tmp_path, {"OUTSPOKEN_TELEMETRY__OTLP_ENDPOINT": there.url}) as up,
            aiohttp.ClientSession() as client,
        ):
            for value in (PARENT, "00-nonsense-00f067aa0ba902b7-01", ""):
                headers = {"traceparent": value, "tracestate": "a=b,,="} if value else {}
                body = {"messages": [{"role": "user", "content": "list files"}]}
                async with client.post(f"{up.url}/v1/chat/completions", json=body, headers=headers) as response:
                    assert response.status == 200
        turns = there.named("invoke_agent")
    assert len(turns) == 3
    trace, span = bytes.fromhex(PARENT[3:35]), bytes.fromhex(PARENT[36:52])
    theirs = [turn for turn in turns if turn.trace_id == trace]
    assert [turn.parent_span_id for turn in theirs] == [span]
    assert [turn.parent_span_id for turn in turns if turn.trace_id != trace] == [b"", b""]
    below = [one for one in there.spans if one.trace_id == trace and one.name != theirs[0].name]
    assert {one.parent_span_id for one in below} == {theirs[0].span_id}
    assert {one.name.split()[0] for one in below} == {"chat", "execute_tool"}


async def test_a_collector_that_is_away_costs_its_spans_only_and_does_not_hold_up_the_end() -> None:
    async with collector() as spans:
        url = spans.url
    began, told = time.monotonic(), Signals()
    with capture_logs() as lines:
        async with traced(url, told):
            told.tell(closed("t_1"))
    assert [line["event"] for line in lines] in (["traces.not_sent"], ["traces.left"])
    assert time.monotonic() - began < 120


async def test_without_an_endpoint_nothing_is_loaded_and_with_one_it_is_sent_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded = list[str]()

    def provider(endpoint: str) -> TracerProvider:
        loaded.append(endpoint)
        return TracerProvider()

    monkeypatch.setattr(traces, "_provider", provider)
    for endpoint in ("", "http://127.0.0.1:9/v1/traces"):
        told = Signals()
        async with traced(endpoint, told):
            told.tell(closed("t_1"))
    assert loaded == ["http://127.0.0.1:9/v1/traces"]


class Kept(SpanExporter):
    """Keeps the spans."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += spans
        return SpanExportResult.SUCCESS


def made() -> tuple[Traces, list[ReadableSpan]]:
    provider, kept = TracerProvider(sampler=ALWAYS_ON), Kept()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return Traces(provider), kept.spans


times = st.integers(0, 10**12)


@given(times, times, times, st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["", "stalled"]))
def test_a_span_has_the_times_and_the_figures_of_what_it_stands_for(
    began: int, took: int, content: int, tokens_in: int, tokens_out: int, error: str
) -> None:
    traces, spans = made()
    call = ModelCalled(
        turn="t_1", session="s", name="1", endpoint="e", model="m", began_at=began, ended_at=began + took,
        content_at=content and began + content, input_tokens=tokens_in, output_tokens=tokens_out, error=error,
    )  # fmt: skip
    traces.on(call)
    (span,) = spans
    told = dict(span.attributes or {})
    assert (span.start_time, span.end_time) == (began * 1_000_000, (began + took) * 1_000_000)
    assert told.get("gen_ai.response.time_to_first_chunk") == (content / 1000 if content else None)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (tokens_in, tokens_out)
    assert told.get("error.type", "") == error


def test_what_was_asked_for_in_a_callers_trace_is_in_it_as_long_as_that_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.observe.traces.MOST_PARENTS", 3)
    traces, spans = made()
    for number in range(5):
        traces.continues(f"t_{number}", f"00-{number + 1:032x}-{number + 1:016x}-01")
        traces.continues(f"t_{number}", "nonsense")
    for number in range(5):
        traces.on(replace(CALLED, turn=f"t_{number}"))
        traces.on(closed(f"t_{number}"))
    found = {str((span.attributes or {})["outspoken.turn"]): span for span in spans}
    contexts = {turn: (span.context, span.parent) for turn, span in found.items()}
    for number in range(5):
        context, parent = contexts[f"t_{number}"]
        assert context is not None
        kept = number >= 2
        trace, span = ids_of(f"t_{number}")
        assert context.trace_id == (number + 1 if kept else trace)
        assert context.span_id == span
        assert (parent.span_id if parent is not None else 0) == (number + 1 if kept else 0)
    by_turn = [[one for one in spans if (one.attributes or {})["outspoken.turn"] == f"t_{n}"] for n in range(5)]
    assert all(len({one.context.trace_id for one in each if one.context}) == 1 for each in by_turn), (
        "a turn is one trace"
    )


@pytest.mark.parametrize(("status", "error"), [("ok", ""), ("failed", "failed"), ("refused", "refused")])
def test_a_tool_that_did_not_do_what_it_was_to_is_an_error_and_words_beside_turns_are_no_span(
    status: str, error: str
) -> None:
    traces, spans = made()
    traces.on(ToolRan(turn="t_1", session="s", call="c", tool="x", status=status, began_at=5, ended_at=9))
    traces.on(PartSent(platform="slack", kind="text", origin="inbox:4", wanted_at=1, sent_at=2))
    (span,) = spans
    assert (span.attributes or {}).get("error.type", "") == error
    assert (span.status.status_code is StatusCode.ERROR) is bool(error)


def test_a_collector_that_answers_after_the_end_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, raised = threading.Event(), list[object]()
    monkeypatch.setattr(traces, "SEND_SECONDS", 0.01)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    provider: Any = SimpleNamespace(shutdown=answers.wait)
    asyncio.run(traces._ended(provider))
    ending = [one for one in threading.enumerate() if one.name == "traces end"]
    answers.set()
    for one in ending:
        one.join(30)
    assert ending
    assert raised == []
