"""Discord over HTTP: the API at `/api/v10`, attachments, and the handshakes of the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import orjson
from aiohttp import BodyPartReader, web

from tests.fakes.befalling import after, before
from tests.fakes.common import (
    Bell,
    Call,
    Door,
    Json,
    JsonObject,
    Log,
    Script,
)
from tests.fakes.discord.errors import ApiError, Code, invalid_field, plain, refused
from tests.fakes.discord.faults import VIA
from tests.fakes.discord.forms import OCTETS, Asked, Upload
from tests.fakes.discord.gateway import PATH, RESUME_PATH, Gateway
from tests.fakes.discord.rates import RateGate, Rates, Verdict
from tests.fakes.discord.replies import Reply, done
from tests.fakes.discord.routes import Entry, Found, Route, find
from tests.fakes.discord.world import World

MAX_BODY_BYTES = 64 * 1024 * 1024
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_OF_INTERACTIONS = frozenset(
    {Route.CALLBACK, Route.FOLLOW_UP, Route.GET_RESPONSE, Route.EDIT_RESPONSE, Route.DELETE_RESPONSE}
)


class Api:
    """The server. One bot, one token."""

    def __init__(
        self, world: World, gateway: Gateway, token: str, script: Script, bell: Bell, rates: Rates, shards: int
    ) -> None:
        self._world = world
        self._gateway = gateway
        self._token = token
        self._script = script
        self._bell = bell
        self._shards = shards
        self._running: set[asyncio.Task[object]] = set()
        self.gate = RateGate(rates)
        self.log = Log()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/attachments/{tail:.*}", self._tracked(self._download))
        app.router.add_get(PATH, self._tracked(self._handshake))
        app.router.add_get(RESUME_PATH, self._tracked(self._handshake))
        app.router.add_route("*", "/{tail:.*}", self._tracked(self._serve))
        self.door = Door(app, world.clock)

    async def open(self) -> None:
        """Listen."""
        await self.door.open()
        self._world.origin = f"http://127.0.0.1:{self.door.port}"

    async def close(self) -> None:
        """Stop everything: requests that wait are cut."""
        await self.door.shut()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))
        await self.door.close()

    # --- HTTP ---

    def _tracked(self, serve: _Handler) -> _Handler:
        """Remember who is at work, because a handler outlives a connection that is cut."""

        async def handle(request: web.Request) -> web.StreamResponse:
            task = asyncio.current_task()
            assert task is not None
            self._running.add(task)
            try:
                return await serve(request)
            finally:
                self._running.discard(task)

        return handle

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        found = find(request.method, request.rel_url.raw_path)
        name = found.entry.route.value if found.entry is not None else Route.UNKNOWN.value
        try:
            asked = await _read(request, found.path)
        except ApiError as error:
            call = self.log.open(name, dict(found.path), {}, time.monotonic())
            return self._answer(call, error)
        params = asked.params() if found.entry is not None else {"path": f"{request.method} {request.path}"}
        sizes = {upload.field: len(upload.data) for upload in asked.files}
        call = self.log.open(name, params, sizes, time.monotonic())
        early = await self._before(request, call)
        if early is not None:
            return early
        refusal = self._refuses(request, found)
        if refusal is not None:
            return self._answer(call, refusal)
        entry = found.entry
        assert entry is not None
        verdict = self._rate(entry, asked)
        if verdict.retry_after > 0:
            return self._flood(call, verdict)
        try:
            result = self._ask_itself(entry) if entry.handler is None else entry.handler(self._world, asked)
        except ApiError as error:
            response = self._answer(call, error, verdict.headers)
        else:
            call.ignored = asked.unused()
            response = self._answer(call, result, verdict.headers)
        return await after(request, call, response)

    def _refuses(self, request: web.Request, found: Found) -> ApiError | None:
        if found.is_old:
            return refused(Code.INVALID_API_VERSION)
        if found.entry is None:
            return plain(405, "Method Not Allowed") if found.is_known else plain(404, "Not Found")
        if found.entry.needs_token and request.headers.get("Authorization") != f"Bot {self._token}":
            return plain(401, "Unauthorized")
        return None

    def _rate(self, entry: Entry, asked: Asked) -> Verdict:
        clock = self._world.clock
        major = asked.path[entry.major] if entry.major is not None else ""
        counts = entry.route not in _OF_INTERACTIONS
        return self.gate.ask(entry.route, major, clock.monotonic(), clock.unix(), counts_globally=counts)

    def _ask_itself(self, entry: Entry) -> Reply:
        """The routes that tell of the gateway."""
        body: JsonObject = {"url": self._world.origin.replace("http", "ws", 1) + PATH}
        if entry.route is Route.GET_GATEWAY_BOT:
            limit: JsonObject = {
                "total": 1000,
                "remaining": self._gateway.starts_left,
                "reset_after": 86_400_000,
                "max_concurrency": self._gateway.max_concurrency,
            }
            body.update(shards=self._shards, session_start_limit=limit)
        return done(body)

    def _flood(self, call: Call, verdict: Verdict) -> web.Response:
        body: JsonObject = {
            "message": "You are being rate limited.",
            "retry_after": round(verdict.retry_after, 3),
            "global": verdict.is_global,
        }
        headers = {**verdict.headers, "Retry-After": str(max(1, round(verdict.retry_after)))}
        if verdict.is_global:
            headers["X-RateLimit-Global"] = "true"
        return self._answer(call, Reply(429, body), headers)

    def _answer(self, call: Call, result: Reply | ApiError, headers: Mapping[str, str] | None = None) -> web.Response:
        reply = Reply(result.status, result.body()) if isinstance(result, ApiError) else result
        call.status, call.answer, call.ended_at = reply.status, reply.body, time.monotonic()
        self._bell.ring()
        told = {"Via": VIA, **(headers or {})}
        if reply.status == 204:
            return web.Response(status=204, headers=told)
        # Exactly this: discord.py reads JSON under no other content type.
        told["Content-Type"] = "application/json"
        return web.Response(status=reply.status, body=orjson.dumps(reply.body), headers=told)

    # --- faults ---

    async def _before(self, request: web.Request, call: Call) -> web.StreamResponse | None:
        """What befalls a request before the platform acts; an answer ends it."""
        call.faults = self._script.take(call.route, call.params)
        self._bell.ring()
        return await before(request, call)

    # --- beside the API ---

    async def _handshake(self, request: web.Request) -> web.StreamResponse:
        route = Route.HANDSHAKE if request.path == PATH else Route.RESUME_HANDSHAKE
        call = self.log.open(route.value, dict(request.query), {}, time.monotonic())
        early = await self._before(request, call)
        if early is not None:
            return early
        call.status, call.ended_at = 101, time.monotonic()
        return await self._gateway.serve(request)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        call = self.log.open(Route.ATTACHMENT.value, {"path": request.path}, {}, time.monotonic())
        early = await self._before(request, call)
        if early is not None:
            return early
        file = self._world.attachments.get(request.path)
        signed = file is not None and request.rel_url.path_qs == file.path
        if file is None or not signed or file.expires_at < self._world.clock.unix():
            call.status, call.ended_at = 404, time.monotonic()
            return web.Response(status=404, text="This content is no longer available.")
        call.status, call.ended_at = 200, time.monotonic()
        response = web.Response(body=file.data, headers={"Content-Type": file.mime_type or OCTETS})
        return await after(request, call, response)


async def _read(request: web.Request, path: Mapping[str, str]) -> Asked:
    """Take a request apart.

    Raises:
        ApiError: the body cannot be read.
    """
    query: dict[str, Json] = dict(request.query)
    match request.content_type:
        case "application/json":
            return Asked(path, query, _parsed(await request.read()), [])
        case "multipart/form-data":
            body: Json = None
            files: list[Upload] = []
            async for part in await request.multipart():
                assert isinstance(part, BodyPartReader)
                data = bytes(await part.read())
                if part.filename is not None:
                    kind = part.headers.get("Content-Type", OCTETS)
                    files.append(Upload(part.name or "", part.filename, kind, data))
                elif part.name == "payload_json":
                    body = _parsed(data)
                else:
                    raise invalid_field(part.name or "", "FAKE_DOES_NOT_KNOW", "Fields go into payload_json.")
            return Asked(path, query, body, files)
        case _:
            if await request.read():
                raise plain(415, "Unsupported Media Type")
            return Asked(path, query, None, [])


def _parsed(data: bytes) -> Json:
    try:
        return cast("Json", orjson.loads(data)) if data.strip() else None
    except orjson.JSONDecodeError:
        raise refused(Code.INVALID_JSON) from None
