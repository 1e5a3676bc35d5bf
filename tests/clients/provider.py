"""A provider for programs: it says hello, calls the tool that it is offered, fits a schema, and does what it is ordered to:
``call NAME {…}``, ``fail 429``, ``cut``, and every fault of `faults` as ``[NAME#MARK]``."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from tests.clients.faults import FAULTS, Asked, End, Send, Status, Step, Wait, good
from tests.listening import listening

KNOWN = {"city": "Paris", "name": "Ada", "age": 36}
ERRORS = {401: ("authentication_error", "invalid_api_key"), 429: ("rate_limit_error", "rate_limit_exceeded")}
ORDERED = re.compile(r"\[([a-z ,]+)#(\w+)\]")


@dataclass
class Provider:
    """Listens on a free port; every request is kept."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: Counter[str] = field(default_factory=Counter[str])
    """How often, by the mark of a fault."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        self.requests.append(body)
        last = body["messages"][-1]
        ordered = [found for message in body["messages"] for found in ORDERED.findall(text_of(message.get("content")))]
        if ordered:
            return await self._faulty(request, body, *ordered[-1])
        words = text_of(last["content"])
        if failing := re.search(r"\bfail (\d+)", words):
            return _error(int(failing[1]))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in _reply(body, last, words):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            await response.write(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
            if finish == "cut":
                assert request.transport is not None
                request.transport.abort()
                return response
        usage = {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15}
        await response.write(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    async def _faulty(self, request: web.Request, body: dict[str, Any], name: str, mark: str) -> web.StreamResponse:
        self.asked[mark] += 1
        fault, asked = FAULTS[name], asked_in(body)
        return await _act(request, fault.acts(asked) if self.asked[mark] <= fault.times else good(asked))


def asked_in(body: Mapping[str, Any]) -> Asked:
    """A request, as its fault sees it."""
    messages: list[dict[str, Any]] = body["messages"]
    since = max(at for at, message in enumerate(messages) if ORDERED.search(text_of(message.get("content"))))
    after = messages[since + 1 :]
    results = [message for message in after if message["role"] == "tool"]
    last = results[-1] if results else messages[since]
    found = None if results else _fitting_tool(dict(body))
    reply = _reply(dict(body), last, "" if last is messages[since] else text_of(last["content"]))
    return Asked(
        body=body,
        answer=[delta for delta, _ in reply if delta],
        finish=next(finish for _, finish in reply if finish),
        tool=(found["name"], found["arguments"]) if found else None,
        results=len(results),
        advised=any("no more tools can be called" in text_of(message.get("content")) for message in messages),
        said=any(message["role"] == "assistant" and message.get("content") and not message.get("tool_calls") for message in after),
    )  # fmt: skip


async def _act(request: web.Request, steps: Sequence[Step]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    assert request.transport is not None
    for step in steps:
        match step:
            case Status():
                headers = {**step.headers, "Content-Type": step.kind}
                return web.Response(status=step.code, body=step.body, headers=headers)
            case Send():
                if not response.prepared:
                    await response.prepare(request)
                await response.write(step.data)
            case Wait():
                await asyncio.sleep(step.seconds)
            case End.RESET:
                request.transport.abort()
                return response
            case End.HANG:
                if not response.prepared:
                    await response.prepare(request)
                await asyncio.sleep(60)
    return response


def text_of(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in cast("list[dict[str, object]]", content))
    return str(content or "")


def _error(status: int) -> web.Response:
    kind, code = ERRORS.get(status, ("server_error", "server_error"))
    error = {"message": "as it was ordered", "type": kind, "param": None, "code": code}
    headers = {"Retry-After": "1"} if status == 429 else None
    return web.json_response({"error": error}, status=status, headers=headers)


def _fitting(schema: dict[str, Any]) -> str:
    return json.dumps({name: KNOWN[name] for name in schema.get("properties", {}) if name in KNOWN})


def _reply(body: dict[str, Any], last: dict[str, Any], words: str) -> list[tuple[dict[str, Any], str | None]]:
    """Deltas, each with its finish reason."""
    if re.search(r"\bcut\b", words):
        return [({"role": "assistant", "content": "The first half,"}, None), ({"content": " and"}, "cut")]
    if last["role"] == "tool":
        return [({"role": "assistant", "content": f"It is {words}."}, None), ({}, "stop")]
    if ordered := re.search(r"\bcall (\w+) ({.*})", words):
        call = {
            "index": 0,
            "id": "call_1",
            "type": "function",
            "function": {"name": ordered[1], "arguments": ordered[2]},
        }
        return [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
    if found := _fitting_tool(body):
        call = {"index": 0, "id": "call_1", "type": "function", "function": found}
        return [({"role": "assistant", "tool_calls": [call]}, None), ({}, "tool_calls")]
    form: dict[str, Any] = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return [({"role": "assistant", "content": _fitting(form["json_schema"]["schema"])}, None), ({}, "stop")]
    if form.get("type") == "json_object":
        return [({"role": "assistant", "content": json.dumps({"name": "Ada", "age": 36})}, None), ({}, "stop")]
    return [({"role": "assistant", "content": "Hello,"}, None), ({"content": " you."}, None), ({}, "stop")]


def _fitting_tool(body: dict[str, Any]) -> dict[str, str] | None:
    """The tool of the program's that asks for what is known here."""
    tools: list[dict[str, dict[str, Any]]] = body.get("tools") or []
    for tool in tools:
        schema: dict[str, Any] = tool["function"].get("parameters") or {}
        properties: dict[str, object] = schema.get("properties", {})
        if set(properties) in ({"city"}, {"name", "age"}):  # the gateway's own ask for other things
            return {"name": tool["function"]["name"], "arguments": _fitting(schema)}
    return None


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider]:
    made = Provider()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", made.handle)
    async with listening(app) as url:
        made.url = f"{url}/v1"
        yield made
