"""What `doctor` and `setup` look at in a model endpoint: whether it is there, takes the key, has the model, streams, and calls a tool.

The one small call goes the whole way that a turn's calls go; the list of models is asked for beside it, to say which there are.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING

import orjson
from typing_extensions import override

from adapters.checks.findings import Finding, Seen, ok, problem, warning
from adapters.checks.probe import NoReply, Probe, ProbeTrouble, ServerReply, environment_proxy, skew_of, unreachable
from agent_core.causes import BreakCause, cause_words
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Endpoint, first_to_talk
from agent_core.ports import SystemClock
from agent_core.records import dataclass
from agent_core.settings import Route
from agent_core.text.nearest import nearest
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke, Event, ReplyFinished, TextArrived, ToolCallNamed

if TYPE_CHECKING:
    from agent_core.model.transport import ModelAnswer

CALL_SECONDS = 60.0
"""How long the first content of the small call is waited for: a local server may have to load the model."""
TOOL = "ping"
ASKED = 'Call the tool ping with the word "hello". Do not answer in words.'
TOOLS = orjson.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": TOOL,
                "description": "Gives the word back. Call it whenever you are asked to.",
                "parameters": {
                    "type": "object",
                    "properties": {"word": {"type": "string"}},
                    "required": ["word"],
                },
            },
        }
    ]
)
ADDRESS_KEY, PROXY_KEY = "[model] base_url", "HTTPS_PROXY"
KEY_FIX = "Take a key that is valid at this endpoint; then: outspoken setup model."
_ADDRESS_FIX = f"Look whether the server runs and {ADDRESS_KEY} is right."
REACH_FIXES = {
    BreakCause.UNREACHABLE: _ADDRESS_FIX,
    BreakCause.CONNECTION_REFUSED: f"Start that server, or set the port in {ADDRESS_KEY} right.",
    BreakCause.UNKNOWN_NAME: f"Set the name in {ADDRESS_KEY} right, or this machine's name server.",
    BreakCause.BAD_CERTIFICATE: "Have that server's certificate mended, or name its authority's file in SSL_CERT_FILE.",
    BreakCause.NOT_TLS: f"Write http:// in {ADDRESS_KEY}, or take the port that speaks TLS.",
    BreakCause.WANTS_TLS: f"Write https:// in {ADDRESS_KEY}.",
    BreakCause.NOT_CONNECTED: f"Look whether a firewall is on the way, and whether {ADDRESS_KEY} and {PROXY_KEY} are right.",
    BreakCause.NO_ROUTE: f"{ADDRESS_KEY} is not the API's address; it often ends in /v1.",
    BreakCause.BY_PROXY: f"Look at {PROXY_KEY} and at what stands between this machine and {ADDRESS_KEY}.",
    BreakCause.REGION: "Take a provider that serves this country, or let the calls go out elsewhere.",
}


@dataclass(frozen=True, slots=True)
class TrialCall:
    """What came of the small call."""

    ending: ReplyFinished | CallBroke
    events: Sequence[Event]
    streamed: bool
    """It came as a stream of events, and not as one piece."""


@dataclass(frozen=True, slots=True)
class ModelSeen(Seen):
    """What is known of the endpoint now."""

    models: tuple[str, ...] = ()
    """The models that it lists; empty if it has no list."""


class _Watched(ModelClient):
    """The client of turns, which lets the head of the answer be seen."""

    kind = ""
    date = ""

    @override
    @asynccontextmanager
    async def open_stream(self, endpoint: Endpoint, request: ModelRequest) -> AsyncGenerator[ModelAnswer]:
        async with super().open_stream(endpoint, request) as answer:
            self.kind = answer.headers.get("content-type", "")
            self.date = answer.headers.get("date", "")
            yield answer


@dataclass(slots=True)
class Listed:
    """What the lists of models came to."""

    names: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list[Finding])
    reached: bool = True


async def listed(endpoint: Endpoint, line: Probe) -> tuple[ServerReply | NoReply, ...]:
    """What the endpoint says when each of its keys asks for the list of models."""
    address = f"{endpoint.base_url.rstrip('/')}/models"
    return tuple(
        await asyncio.gather(
            *(
                line.ask("GET", address, {**endpoint.headers, "Authorization": f"Bearer {credential.secret}"})
                for credential in endpoint.credentials
            )
        )
    )


async def first_names(endpoints: Sequence[Endpoint]) -> list[str]:
    """The model that each of these is asked for without a name; of those that list none, nothing."""
    lines = [Probe(one.label, proxy=environment_proxy(one.base_url)) for one in endpoints]
    replies = await asyncio.gather(*(listed(one, line) for one, line in zip(endpoints, lines, strict=True)))
    seen = [judged_list(one, reply) for one, reply in zip(endpoints, replies, strict=True)]
    return [first_to_talk(one.names) for one in seen if one.names]


async def check(endpoint: Endpoint, redactor: Redactor) -> ModelSeen:
    """Look at one endpoint. Never raises for what it or the network does."""
    line = Probe(endpoint.label, proxy=environment_proxy(endpoint.base_url))
    replies = await listed(endpoint, line)
    seen = judged_list(endpoint, replies)
    if not seen.reached or len(seen.findings) == len(replies):  # not there, or no key is taken
        return ModelSeen(tuple(seen.findings), line.skew_seconds)
    model = next(iter(endpoint.models), "") or first_to_talk(seen.names) or "default"
    taken = next(
        (one.id for one, reply in zip(endpoint.credentials, replies, strict=True) if not _refused(reply)),
        endpoint.credentials[0].id,
    )
    call, skew = await _called(endpoint, Route(model, endpoint.label, taken), redactor)
    findings = (*seen.findings, *judged_call(call, endpoint.label, model, seen.names))
    return ModelSeen(findings, line.skew_seconds if line.skew_seconds is not None else skew, seen.names)


def judged_list(endpoint: Endpoint, replies: Sequence[ServerReply | NoReply]) -> Listed:
    """What the lists of models say of address and keys. An endpoint without a list is none the worse for it."""
    out = Listed()
    for number, reply in enumerate(replies, 1):
        which = f"key number {number}" if len(replies) > 1 else "the key"
        match reply:
            case NoReply(trouble=ProbeTrouble.TIME):
                pass  # a list that does not come: the call will tell
            case NoReply():
                out.reached = False
                out.findings = [
                    unreachable(
                        "model.reach",
                        f"The model at {endpoint.label}",
                        reply,
                        proxy_key=PROXY_KEY,
                        address_key=ADDRESS_KEY,
                    )
                ]
                return out
            case ServerReply(status=401 | 403):
                out.findings.append(
                    problem("model.key", f"{endpoint.label} does not accept {which} ({reply.status}).", KEY_FIX)
                )
            case ServerReply():
                out.names = out.names or names_of(reply)
    return out


def names_of(reply: ServerReply) -> tuple[str, ...]:
    """The models of a list."""
    data = reply.table.get("data")
    names = [one.get("id") for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    return tuple(name for name in names if isinstance(name, str))


def _refused(reply: ServerReply | NoReply) -> bool:
    return isinstance(reply, ServerReply) and reply.status in (401, 403)


async def _called(endpoint: Endpoint, route: Route, redactor: Redactor) -> tuple[TrialCall, float | None]:
    clock = SystemClock()
    client = _Watched([endpoint], clock, redactor)
    events: list[Event] = []
    request = ModelRequest(
        route,
        0,
        [{"role": "user", "content": ASKED}],
        TOOLS,
        first_content_seconds=CALL_SECONDS,
        stall_seconds=CALL_SECONDS,
    )
    began = time.time()
    try:
        ending = await client.ask(request, events.extend)
    finally:
        await client.aclose()
    skew = skew_of(client.date, began, time.time()) if client.date else None
    return TrialCall(ending, events, "event-stream" in client.kind), skew


def judged_call(call: TrialCall, label: str, model: str, names: Sequence[str]) -> list[Finding]:
    """What the small call says of key, model, stream and tools."""
    if isinstance(call.ending, CallBroke):
        return [judged_break(call.ending, label, model, names)]
    findings = [ok("model.answers", f"{model} at {label} answers.")]
    said = any(isinstance(event, TextArrived) for event in call.events)
    called = any(isinstance(event, ToolCallNamed) and event.name == TOOL for event in call.events)
    if not call.streamed:
        what = f"{label} does not stream: people see nothing of an answer before it is complete."
        findings.append(warning("model.stream", what, "Switch streaming on in that server, or take one that streams."))
    else:
        findings.append(ok("model.stream", f"{label} streams."))
    if called:
        findings.append(ok("model.tools", f"{model} calls tools."))
    else:
        how = "answered in words" if said else "said nothing"
        what = f"{model} was asked to call a tool, and {how}: files, memory and web pages may be out of its reach."
        fix = "Take a model that is made for tools, or switch them on in that server (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice)."
        findings.append(warning("model.tools", what, fix))
    return findings


def judged_break(broke: CallBroke, label: str, model: str, names: Sequence[str]) -> Finding:
    """Why the small call came to nothing, and what to do."""
    detail = f" It says: {broke.detail}" if broke.detail else ""
    match broke.cause:
        case BreakCause.UNAUTHORISED | BreakCause.FORBIDDEN:
            return problem("model.key", f"{label} does not accept the key.{detail}", KEY_FIX)
        case BreakCause.PAYMENT_REQUIRED:
            return problem(
                "model.key", f"The account at {label} has no credit.{detail}", "Top it up, or take another key."
            )
        case BreakCause.NOT_FOUND:
            near = nearest(model, names, 3, 0.4) or list(names[:5])
            there = f"It has, for example: {', '.join(near)}." if near else "Ask it for its list: GET /models."
            fix = f"{there} Set [model] name, or run: outspoken setup model. If every name fails, [model] base_url is not the API's (it often ends in /v1)."
            return problem("model.name", f"{label} has no model {model}.{detail}", fix)
        case BreakCause.RATE_LIMITED:
            return warning(
                "model.rate",
                f"{label} asks for fewer calls (429).{detail}",
                "Wait, or add a second key: [model] api_keys.",
            )
        case (
            BreakCause.UNREACHABLE
            | BreakCause.CONNECTION_REFUSED
            | BreakCause.UNKNOWN_NAME
            | BreakCause.BAD_CERTIFICATE
            | BreakCause.NOT_TLS
            | BreakCause.WANTS_TLS
            | BreakCause.NOT_CONNECTED
            | BreakCause.NO_ROUTE
            | BreakCause.BY_PROXY
            | BreakCause.REGION
        ):
            why = cause_words(broke.cause, status=broke.status, detail=broke.detail)
            where = f" ({broke.detail})" if broke.detail and broke.detail not in why else ""
            return problem(
                "model.reach", f"The model at {label} cannot be reached: {why}{where}.", REACH_FIXES[broke.cause]
            )
        case BreakCause.NO_CONTENT | BreakCause.STALLED:
            fix = "Look at that server's log and load; [model] first_content_seconds says how long a turn waits."
            return problem("model.answers", f"{model} at {label} said nothing for {CALL_SECONDS:.0f} s.", fix)
        case BreakCause.BAD_REQUEST:
            fix = "If it refuses tools or streaming, take another model; [model] extra_body may hold a field that it does not know."
            return problem("model.answers", f"{label} refuses the call.{detail}", fix)
        case _:
            fix = "Try again; if it fails again, look at that server's log. [model] fallbacks names models for such times."
            why = cause_words(broke.cause, seconds=broke.waited_seconds, status=broke.status)
            return problem("model.answers", f"The call to {label} failed: {why}.{detail}", fix)
