"""What the tests of ``doctor`` and ``setup`` share: the program as a process, and a small model that can lack anything."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from adapters.contract.platforms import ChatSection
from adapters.platforms import platforms
from gateway.config.sections import Config
from gateway.operate.doctor.looks import as_json, diagnose, exit_status
from tests.forked import run
from tests.listening import listening

ROOT = Path(__file__).parents[2]
S = TypeVar("S", bound=ChatSection)
KEY = "sk-small-model-0123456789"


@dataclass
class SmallModel:
    """An OpenAI-compatible endpoint with one model and one key."""

    models: list[str] = field(default_factory=lambda: ["small", "other"])
    lists: bool = True
    streams: bool = True
    calls_tools: bool = True
    keyless: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    url: str = ""

    def refuses(self, request: web.Request) -> web.Response | None:
        if self.keyless or request.headers.get("Authorization") == f"Bearer {KEY}":
            return None
        return web.json_response({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, status=401)

    async def list(self, request: web.Request) -> web.Response:
        if not self.lists:
            return web.Response(status=404)
        body = {"object": "list", "data": [{"id": name, "object": "model"} for name in self.models]}
        return self.refuses(request) or web.json_response(body)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        if (refused := self.refuses(request)) is not None:
            return refused
        body = await request.json()
        self.asked.append(body)
        if body["model"] not in self.models:
            words = f"The model {body['model']} does not exist"
            return web.json_response({"error": {"message": words, "code": "model_not_found"}}, status=404)
        function = {"name": "ping", "arguments": '{"word":"hello"}'}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        said: dict[str, Any] = {"tool_calls": [call]} if self.calls_tools else {"content": "pong"}
        end = "tool_calls" if self.calls_tools else "stop"
        if not self.streams:
            choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": end}
            return web.json_response({"choices": [choice]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for delta, finish in ((said, None), ({}, end)):
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


@asynccontextmanager
async def small_model() -> AsyncGenerator[SmallModel]:
    model = SmallModel()
    app = web.Application()
    app.router.add_get("/v1/models", model.list)
    app.router.add_post("/v1/chat/completions", model.chat)
    async with listening(app) as url:
        model.url = f"{url}/v1"
        yield model


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    """Both streams."""


async def outspoken(home: Path, *words: str, stdin: str = "", **env: str) -> Ran:
    """Run the program with this home."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    told = {**kept, "OUTSPOKEN_HOME": str(home), "NO_COLOR": "1", **env}
    ran = await asyncio.to_thread(run, list(words), told, stdin=stdin, together=True)
    assert "Traceback" not in ran.stdout, ran.stdout
    return Ran(ran.returncode, ran.stdout)


@dataclass(frozen=True)
class Told:
    """What ``doctor --json`` said."""

    status: int
    findings: list[dict[str, str]]
    text: str

    def of(self, check: str) -> dict[str, str]:
        found = [one for one in self.findings if one["check"] == check]
        assert found, f"nothing of {check} in {self.text}"
        return max(found, key=lambda one: ["ok", "note", "warning", "problem", "configuration"].index(one["level"]))

    def all_of(self, check: str) -> list[dict[str, str]]:
        return [one for one in self.findings if one["check"] == check]

    @property
    def problems(self) -> list[str]:
        return sorted({one["check"] for one in self.findings if one["level"] in ("problem", "configuration")})


async def doctor(
    home: Path, *, config: Path | None = None, env: Mapping[str, str] | None = None, own_process: bool = False
) -> Told:
    if own_process:
        words = ["--config", str(config)] if config else []
        ran = await outspoken(home, *words, "doctor", "--json", **(env or {}))
        told = ran.out
        assert json.loads(told)["status"] == ran.status
    else:
        findings = await diagnose(config, {"OUTSPOKEN_HOME": str(home), **(env or {})})
        told = json.dumps(as_json(findings, exit_status(findings)))
    body = json.loads(told)
    for one in body["findings"]:
        assert one["fix"] or one["level"] in ("ok", "note"), one
    return Told(body["status"], body["findings"], told)


def section_of(config: Config, kind: type[S]) -> S:
    """What is configured of a platform, as its own section."""
    return next(found for one in platforms() if isinstance(found := config.of(one), kind))
