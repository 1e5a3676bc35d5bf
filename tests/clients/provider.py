"""A provider for programs: it says hello, calls the tool that it is offered, fits a schema, and does what it is ordered to:
``call NAME {…}``, ``fail 429``, ``cut``."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from aiohttp import web

from tests.listening import listening

KNOWN = {"city": "Paris", "name": "Ada", "age": 36}
ERRORS = {401: ("authentication_error", "invalid_api_key"), 429: ("rate_limit_error", "rate_limit_exceeded")}


@dataclass
class Provider:
    """Listens on a free port; every request is kept."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        self.requests.append(body)
        last = body["messages"][-1]
        words = _text(last["content"])
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


def _text(content: object) -> str:
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
