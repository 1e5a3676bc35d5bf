"""The model of the incidents: `tests.chats.model`'s, which can also be refused, loop, promise, and have a list of models."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from aiohttp import web
from typing_extensions import override

from tests.chats.model import Messages, ScriptedModel, chunk, text_of
from tests.listening import listening

Refusal = tuple[int, str]
"""An HTTP status, and the provider's words."""


def never(_: dict[str, Any]) -> Refusal | None:
    """A provider without troubles."""
    return None


def asks_for(body: dict[str, Any], words: str) -> bool:
    """Whether a person said this anywhere in the conversation."""
    return any(words in text_of(m["content"]) for m in body["messages"] if m["role"] == "user")


@dataclass
class TroubledModel(ScriptedModel):
    """Lines it knows besides: ``loop`` (the same call again and again), ``promise`` (an announcement and no act)."""

    refuse: Callable[[dict[str, Any]], Refusal | None] = never
    """What is refused, and how."""
    names: tuple[str, ...] = ("m1", "m2")
    stalls: str = ""
    """The model that says nothing."""
    ahead_seconds: int = 0
    """Its clock, compared with this machine's."""

    async def list(self, _: web.Request) -> web.Response:
        """What it has."""
        return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in self.names]})

    @override
    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if (refused := self.refuse(body)) is not None:
            status, words = refused
            return web.json_response({"error": {"message": words}}, status=status)
        if body["model"] == self.stalls:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await self.released.wait()
            return response
        return await super().handle(request)

    @override
    async def _reply(self, messages: Messages, response: web.StreamResponse) -> None:
        words = self.last(messages)
        if "loop" in words:
            await self._call(response, "read_file", {"path": "notes.txt"})
        elif "promise" in words and messages[-1]["role"] != "tool":
            await response.write(chunk({"content": "Sure. I will now write the file and run the tests:"}))
            await self._end(response)
        elif words.startswith("append"):
            arguments = json.dumps({"path": "log.txt", "content": "x\n"})
            function = {"name": "append_file", "arguments": arguments}
            if messages[-1]["role"] == "tool":
                await self._say(response, "Appended.")
                return
            call = {"index": 0, "id": "call_append", "type": "function", "function": function}
            await response.write(chunk({"tool_calls": [call]}, "tool_calls") + b"data: [DONE]\n\n")
        else:
            await super()._reply(messages, response)

    async def dated(self, _: web.Request, response: web.StreamResponse) -> None:
        """Give an answer the time of its own clock."""
        response.headers["Date"] = formatdate(time.time() + self.ahead_seconds, usegmt=True)


@asynccontextmanager
async def troubled_model() -> AsyncGenerator[TroubledModel]:
    """It listens for the block."""
    model = TroubledModel()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_get("/v1/models", model.list)
    app.router.add_post("/v1/chat/completions", model.handle)
    app.on_response_prepare.append(model.dated)
    async with listening(app) as url:
        model.url = f"{url}/v1"
        try:
            yield model
        finally:
            model.release()
