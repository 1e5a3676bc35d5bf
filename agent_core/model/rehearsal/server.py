"""Serves the rehearsal model on a loopback socket: real HTTP, real server-sent events, real broken connections."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

from agent_core.jsonvalue import Json
from agent_core.model.rehearsal.conversation import RehearsalRequest, key_of, read
from agent_core.model.rehearsal.script import plan, told_to_its_end
from agent_core.model.rehearsal.sound import heard, hummed
from agent_core.model.rehearsal.wire import (
    BreakOff,
    EndReply,
    Page,
    PlayedCall,
    RawBytes,
    Refuse,
    Say,
    Script,
    Show,
    Stall,
    Think,
)

PACE_SECONDS = 0.012
PIECE_CHARS = 6
PING_SECONDS = 2.0
REMEMBERED = 500
ANEW_SECONDS = 60.0
"""Who asks the same so long after the last reply to it begins anew: whoever asked before was stopped, or has gone."""


class RehearsalServer:
    """The server. `base_url` and `api_key` are what a client needs."""

    def __init__(self, speed: float = 1.0) -> None:
        self.base_url = ""
        self.api_key = secrets.token_hex(16)
        self.requests: deque[dict[str, Json]] = deque(maxlen=REMEMBERED)
        self.cancelled = 0
        """How often a client hung up in the middle of a reply."""
        self.anew_seconds = ANEW_SECONDS
        self._pause = PACE_SECONDS / speed
        self._asked: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By the words that were asked: how often, and when the last reply to them was over."""

    def app(self) -> web.Application:
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.add_routes([web.post("/v1/chat/completions", self._chat), web.get("/v1/models", self._models)])
        app.add_routes([web.post("/v1/audio/transcriptions", self._listen), web.post("/v1/audio/speech", self._speak)])
        return app

    def _count(self, key: str) -> int:
        """The how-many-th request for these words this is."""
        count, at = self._asked.pop(key, (0, 0.0))
        now = asyncio.get_running_loop().time()
        count = count + 1 if now - at < self.anew_seconds else 1
        self._asked[key] = (count, now)
        while len(self._asked) > REMEMBERED:
            self._asked.popitem(last=False)
        return count

    def _refused(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == f"Bearer {self.api_key}":
            return None
        return _error(Refuse(401, "This is the rehearsal model of another process.", "invalid_api_key"))

    async def _models(self, request: web.Request) -> web.Response:
        return self._refused(request) or web.json_response(
            {"object": "list", "data": [{"id": "rehearsal", "object": "model"}]}
        )

    async def _listen(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        file = (await request.post()).get("file")
        if not isinstance(file, web.FileField):
            return _error(Refuse(400, "file is missing"))
        with file.file as sound:
            return web.json_response({"text": heard(sound.read())})

    async def _speak(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        body: Json = orjson.loads(await request.read())
        text = body.get("input") if isinstance(body, dict) else None
        if not isinstance(text, str) or not text:
            return _error(Refuse(400, "input is missing"))
        return web.Response(body=hummed(text), content_type="audio/wav")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        refused = self._refused(request)
        if refused is not None:
            return refused
        body: Json = orjson.loads(await request.read())
        if not isinstance(body, dict) or not isinstance(messages := body.get("messages"), list):
            return _error(Refuse(400, "messages must be a list"))
        self.requests.append(body)
        key = key_of(messages)
        asked = self._count(key)
        conversation = read(
            messages, body.get("tools"), asked, asked, choice=body.get("tool_choice"), form=body.get("response_format")
        )
        script = plan(conversation)
        match script[0]:
            case Refuse():
                return _error(script[0])
            case Page():
                return web.Response(body=script[0].body, content_type=script[0].kind)
            case _:
                try:
                    response = await self._stream(request, script, conversation)
                finally:
                    if key in self._asked:
                        self._asked[key] = (self._asked[key][0], asyncio.get_running_loop().time())
                if told_to_its_end(conversation, script):
                    self._asked.pop(key, None)
                return response

    async def _stream(self, request: web.Request, script: Script, conversation: RehearsalRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            whole = await self._perform(request, response, script, conversation)
        except (ConnectionError, asyncio.CancelledError):
            self.cancelled += 1
            raise
        if whole:
            await response.write(b"data: [DONE]\n\n")
        return response

    async def _perform(
        self, request: web.Request, response: web.StreamResponse, script: Script, conversation: RehearsalRequest
    ) -> bool:
        """Act the script out; True if it came to a proper end."""
        spent = 0
        for step in script:
            match step:
                case Say():
                    spent += len(step.text)
                    await self._say(response, "content", step.text, 4 if step.slow else 1)
                case Think():
                    await self._say(response, "reasoning_content", step.text, 1)
                case Show():
                    image: dict[str, Json] = {"type": "image_url", "index": 0, "image_url": {"url": step.url}}
                    await response.write(_chunk({"images": [image]}))
                case PlayedCall():
                    await self._call(response, step, conversation.asked)
                case RawBytes():
                    await response.write(step.data)
                case Stall():
                    while True:
                        await response.write(b": ping\n\n")
                        await asyncio.sleep(PING_SECONDS)
                case BreakOff():
                    if request.transport is not None:
                        request.transport.abort()
                    return False
                case EndReply():
                    await response.write(_chunk({}, step.reason))
                    usage = {"prompt_tokens": len(conversation.words) // 4 + 20, "completion_tokens": spent // 4 + 1}
                    await response.write(b"data: " + orjson.dumps({"choices": [], "usage": usage}) + b"\n\n")
                    return True
                case Refuse() | Page():
                    raise AssertionError("an answer that is no stream stands alone")
        return False

    async def _say(self, response: web.StreamResponse, name: str, text: str, slowness: int) -> None:
        for start in range(0, len(text), PIECE_CHARS):
            await response.write(_chunk({name: text[start : start + PIECE_CHARS]}))
            await asyncio.sleep(self._pause * slowness)

    async def _call(self, response: web.StreamResponse, step: PlayedCall, asked: int) -> None:
        call = f"call_{asked}_{secrets.token_hex(4)}"
        function: dict[str, Json] = {"name": step.name, "arguments": ""}
        await response.write(
            _chunk({"tool_calls": [{"index": 0, "id": call, "type": "function", "function": function}]})
        )
        arguments = step.arguments if step.cut < 0 else step.arguments[: step.cut]
        for start in range(0, len(arguments), 40):
            piece: dict[str, Json] = {"arguments": arguments[start : start + 40]}
            await response.write(_chunk({"tool_calls": [{"index": 0, "function": piece}]}))
            await asyncio.sleep(self._pause)


def _chunk(delta: dict[str, Json], finish: str | None = None) -> bytes:
    chunk: dict[str, Json] = {
        "id": "chatcmpl-rehearsal",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "rehearsal",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: " + orjson.dumps(chunk) + b"\n\n"


def _error(refuse: Refuse) -> web.Response:
    body = orjson.dumps({"error": {"message": refuse.message, "type": "rehearsal", "code": refuse.code or None}})
    headers = {"Retry-After": str(refuse.retry_after)} if refuse.retry_after else None
    return web.Response(status=refuse.status, body=body, content_type="application/json", headers=headers)


@asynccontextmanager
async def rehearsal_server(speed: float = 1.0) -> AsyncGenerator[RehearsalServer]:
    """The rehearsal model on a free loopback port, for the block. `speed` 2 is twice as fast."""
    server = RehearsalServer(speed)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield server
    finally:
        await runner.cleanup()
