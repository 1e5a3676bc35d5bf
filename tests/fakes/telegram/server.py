"""The Bot API over HTTP: `/bot<token>/<method>` and `/file/bot<token>/<path>`."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson
from aiohttp import web

from tests.fakes.befalling import after, before
from tests.fakes.common import (
    Bell,
    Call,
    Door,
    Json,
    Log,
    Script,
)
from tests.fakes.telegram.errors import ApiError
from tests.fakes.telegram.methods import METHODS, known
from tests.fakes.telegram.params import Params, read_params
from tests.fakes.telegram.updates import MAX_BATCH
from tests.fakes.telegram.webhook import Deliverer, read_webhook
from tests.fakes.telegram.world import World

MAX_POLL_SECONDS = 50
"""The server's longest poll; a longer `timeout` counts as this."""
MAX_BODY_BYTES = 64 * 1024 * 1024
FILE = "file"
"""The route of downloads, in the log and in scripts."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_TOKEN = re.compile(r"\d+:[A-Za-z0-9_-]+")
_CONFLICT = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


@dataclass(slots=True)
class _Poll:
    """A getUpdates that is open."""

    request: web.Request
    ended: str = ""
    """Why it must end, if it must."""

    @property
    def waited_for(self) -> bool:
        """Whether the client is still there."""
        return self.request.transport is not None and not self.request.transport.is_closing()


class BotApi:
    """The server. One bot, one token."""

    def __init__(
        self, world: World, token: str, script: Script, bell: Bell, *, https_only: bool, webhook_retry_seconds: float
    ) -> None:
        self._world = world
        self._token = token
        self._script = script
        self._bell = bell
        self._https_only = https_only
        self._poll: _Poll | None = None
        self._running: set[asyncio.Task[object]] = set()
        self.log = Log()
        self.deliverer = Deliverer(world, bell, webhook_retry_seconds)
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/bot{token}/{method}", self._tracked(self._serve))
        app.router.add_get("/file/bot{token}/{path:.+}", self._tracked(self._download))
        app.router.add_route("*", "/{tail:.*}", self._nowhere)
        self.door = Door(app, world.clock)

    async def close(self) -> None:
        """Stop everything: requests that wait are cut."""
        await self.deliverer.stop()
        await self.door.shut()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))
        await self.door.close()

    # --- HTTP ---

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        params = Params(dict(request.query))
        call = self.log.open(request.path, params.values, {}, time.monotonic())
        return self._answer(call, ApiError(404, "Not Found"))

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
        token, asked = request.match_info["token"], request.match_info["method"]
        route = known(asked)
        try:
            params = await read_params(request)
        except ApiError as error:
            call = self.log.open(route or asked, {}, {}, time.monotonic())
            return self._answer(call, error)
        sizes = {name: len(upload.data) for name, upload in params.files.items()}
        call = self.log.open(route or asked, params.values, sizes, time.monotonic())
        call.faults = self._script.take(call.route, call.params)
        self._bell.ring()
        early = await before(request, call)
        if early is not None:
            return early
        refused = self._refuses(token, route)
        if refused is not None:
            return self._answer(call, refused)
        assert route is not None
        try:
            result = await self._execute(request, route, params)
        except ApiError as error:
            response = self._answer(call, error)
        else:
            call.ignored = params.unused
            response = self._answer(call, result)
        return await after(request, call, response)

    def _refuses(self, token: str, route: str | None) -> ApiError | None:
        """Why a request gets nowhere. A token without the right form is a path that is not there."""
        if not _TOKEN.fullmatch(token):
            return ApiError(404, "Not Found")
        if token != self._token:
            return ApiError(401, "Unauthorized")
        return ApiError(404, "Not Found") if route is None else None

    def _answer(self, call: Call, result: Json | ApiError) -> web.Response:
        if isinstance(result, ApiError):
            call.status, call.answer = result.code, result.body()
        else:
            call.status, call.answer = 200, {"ok": True, "result": result}
        call.ended_at = time.monotonic()
        self._bell.ring()
        return web.Response(
            status=call.status, body=orjson.dumps(call.answer), headers={"Content-Type": "application/json"}
        )

    # --- methods ---

    async def _execute(self, request: web.Request, route: str, params: Params) -> Json:
        match route:
            case "getUpdates":
                return await self._get_updates(request, params)
            case "setWebhook" | "deleteWebhook":
                return await self._set_webhook(params)
            case "getWebhookInfo":
                return self.deliverer.info()
            case _:
                return METHODS[route](self._world, params)

    def _allow(self, params: Params) -> None:
        """Remember `allowed_updates`; without it the last one holds, as on the server."""
        kinds = params.structure("allowed_updates")
        if isinstance(kinds, list):
            self._world.updates.allowed = frozenset(str(kind) for kind in kinds)
        elif kinds is not None:
            raise ApiError(400, "Bad Request: can't parse allowed_updates: an Array of String is expected")

    async def _get_updates(self, request: web.Request, params: Params) -> Json:
        """https://core.telegram.org/bots/api#getupdates. A second poll ends the one that is open, which gets 409."""
        if self.deliverer.webhook is not None:
            raise ApiError(409, _WEBHOOK_ACTIVE)
        offset = params.integer("offset")
        limit = max(1, min(params.integer("limit", MAX_BATCH), MAX_BATCH))
        seconds = max(0, min(params.integer("timeout"), MAX_POLL_SECONDS))
        self._allow(params)
        self._end_poll(_CONFLICT)
        poll = self._poll = _Poll(request)
        self._bell.ring()
        updates = self._world.updates
        end = time.monotonic() + seconds
        try:
            while poll.waited_for:
                updates.expire(self._world.clock.monotonic())
                batch = updates.fetch(offset, limit)
                left = end - time.monotonic()
                if batch or left <= 0:
                    return [update.to_json() for update in batch]
                await self._bell.wait(left)
                if poll.ended:
                    raise ApiError(409, poll.ended)
            return []
        finally:
            if self._poll is poll:
                self._poll = None

    @property
    def polled(self) -> bool:
        """Whether a poll is open now."""
        return self._poll is not None and self._poll.waited_for

    def _end_poll(self, words: str) -> None:
        if self._poll is not None:
            self._poll.ended = words
            self._poll = None
            self._bell.ring()

    async def _set_webhook(self, params: Params) -> Json:
        """https://core.telegram.org/bots/api#setwebhook; without a url the same as deleteWebhook."""
        webhook = read_webhook(params, https_only=self._https_only)
        params.text("ip_address")
        self._allow(params)
        if params.flag("drop_pending_updates"):
            self._world.updates.drop(self._world.updates.pending)
        if webhook is not None:
            self._end_poll("Conflict: terminated by setWebhook request")
        await self.deliverer.use(webhook)
        self._bell.ring()
        return True

    async def _download(self, request: web.Request) -> web.StreamResponse:
        token, path = request.match_info["token"], request.match_info["path"]
        call = self.log.open(FILE, {"path": path}, {}, time.monotonic())
        call.faults = self._script.take(FILE, call.params)
        early = await before(request, call)
        if early is not None:
            return early
        file = next((one for one in self._world.files.values() if one.path == path), None)
        if token != self._token or file is None:
            return self._answer(call, ApiError(404 if token == self._token else 401, "Not Found"))
        call.status, call.ended_at = 200, time.monotonic()
        response = web.Response(body=file.data, headers={"Content-Type": "application/octet-stream"})
        return await after(request, call, response)
