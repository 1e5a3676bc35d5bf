"""A provider that does as its person's words say: ``script: [["tool", {…}], …]`` makes these calls, one a step, and then a last word."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from agent_core.messages import text_of
from tests.gateway.rig import Model, call_chunk, chunk

DONE = "That is all."
Step = Sequence[Any]
"""(tool, arguments)."""


def script(*steps: Step) -> str:
    """The words of a person who wants these calls."""
    return f"script: {json.dumps(steps)}"


def words_of(message: dict[str, Any]) -> str:
    """The text of a message."""
    content: Any = message.get("content")
    return text_of(content or "")


async def _reply(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    last = max(
        (n for n, one in enumerate(messages) if one["role"] == "user" and "script: " in words_of(one)), default=None
    )
    if last is None:
        await response.write(chunk({"content": DONE}, "stop"))
        return
    steps: list[Step]
    steps = json.JSONDecoder().raw_decode(words_of(messages[last]).partition("script: ")[2])[0]
    number = sum(one["role"] == "assistant" for one in messages[last:])
    if number < len(steps):
        name, arguments = steps[number]
        await response.write(call_chunk(name, json.dumps(arguments), call=f"call_{number}"))
    else:
        await response.write(chunk({"content": DONE}, "stop"))


@asynccontextmanager
async def scripted() -> AsyncGenerator[Model]:
    """The provider; what it was asked is in `requests`."""
    model = Model(_reply)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/chat/completions", model.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield model
    finally:
        await runner.cleanup()
