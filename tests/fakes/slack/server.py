"""Slack over HTTP: the Web API, Socket Mode, uploads, downloads, and `response_url`s."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum

import orjson
from aiohttp import web

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
from tests.fakes.slack import files, responses
from tests.fakes.slack.errors import ApiError, ratelimited_error
from tests.fakes.slack.methods import CONNECT, METHODS
from tests.fakes.slack.params import Params, read_params
from tests.fakes.slack.rates import HISTORY, RateGate
from tests.fakes.slack.sockets import Sockets
from tests.fakes.slack.world import APP, TEAM, World

MAX_BODY_BYTES = 64 * 1024 * 1024
SOCKET, UPLOAD, FILE, RESPONSE = "socket", "upload", "file", "response_url"
"""Routes beside the methods, in the log and in scripts."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LOGIN = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body></body></html>"


class TokenState(StrEnum):
    """What is the matter with the app's tokens, in the word of the Web API."""

    GOOD = ""
    REVOKED = "token_revoked"
    INACTIVE = "account_inactive"
    INVALID = "invalid_auth"
    EXPIRED = "token_expired"


class SlackServer:
    """The server. One app, one workspace, one token of each kind."""

    def __init__(
        self, world: World, script: Script, bell: Bell, sockets: Sockets, *, bot_token: str, app_token: str
    ) -> None:
        self._world = world
        self._script = script
        self._bell = bell
        self._sockets = sockets
        self._bot_token = bot_token
        self._app_token = app_token
        self._running: set[asyncio.Task[object]] = set()
        self.rates: RateGate | None = None
        self.token_state = TokenState.GOOD
        self.scopes: set[str] = set()
        self.log = Log()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        for prefix in ("slack", "api"):
            app.router.add_route("*", f"/{prefix}/{{method:[^/]*}}", self._tracked(self._serve))
        app.router.add_get("/link/", self._tracked(self._link))
        app.router.add_post("/upload/v1/{file}", self._tracked(self._upload))
        app.router.add_get("/files-pri/{path:.+}", self._tracked(self._download))
        app.router.add_get("/login", self._login)
        for prefix in ("actions", "commands"):
            app.router.add_post(f"/{prefix}/{{tail:.+}}", self._tracked(self._respond))
        app.router.add_route("*", "/{tail:.*}", self._nowhere)
        self.door = Door(app, world.clock)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self.door.port}"

    async def close(self) -> None:
        """Stop everything: requests that wait are cut."""
        await self._sockets.close()
        await self.door.shut()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running))
        await self.door.close()

    # --- HTTP ---

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        call = self.log.open(request.path, dict(request.query), {}, time.monotonic())
        call.status, call.ended_at = 404, time.monotonic()
        return web.Response(status=404, text="not found")

    async def _login(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=_LOGIN, content_type="text/html")

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

    def _open(self, route: str, params: Mapping[str, Json], size: int | None = None) -> Call:
        call = self.log.open(route, params, {} if size is None else {"body": size}, time.monotonic())
        call.faults = self._script.take(route, call.params)
        self._bell.ring()
        return call

    def _json(self, call: Call, result: JsonObject | ApiError, scope: str = "") -> web.Response:
        headers = {"Content-Type": "application/json; charset=utf-8", "X-OAuth-Scopes": ",".join(sorted(self.scopes))}
        if scope:
            headers["X-Accepted-OAuth-Scopes"] = scope.replace(" ", ",")
        if isinstance(result, ApiError):
            call.status, call.answer = result.status, result.body()
            headers.update(result.headers())
        else:
            call.status, call.answer = 200, {"ok": True, **result}
        call.ended_at = time.monotonic()
        self._bell.ring()
        return web.Response(status=call.status, body=orjson.dumps(call.answer), headers=headers)

    def _plain(self, call: Call, status: int, text: str) -> web.Response:
        call.status, call.answer, call.ended_at = status, text, time.monotonic()
        self._bell.ring()
        return web.Response(status=status, text=text)

    # --- methods ---

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        try:
            params = await read_params(request, method)
        except ApiError as error:
            return self._json(self._open(method, {}), error)
        call = self._open(method, params.values)
        early = await before(request, call)
        if early is not None:
            return early
        scope = METHODS[method].scope if method in METHODS else ""
        try:
            result = self._execute(method, params, call)
        except ApiError as error:
            response = self._json(call, error, scope)
        else:
            response = self._json(call, result, scope)
        return await after(request, call, response)

    def _execute(self, method: str, params: Params, call: Call) -> JsonObject:
        if method not in METHODS and method != CONNECT:
            raise ApiError("unknown_method", req_method=method)
        self._authorize(method, params)
        if self.rates is not None:
            self._limit(self.rates, method, params)
        if method == CONNECT:
            if not self._sockets.enabled:
                raise ApiError("link_disabled")
            ticket = self._sockets.new_ticket()
            origin = self.origin.replace("http", "ws", 1)
            return {"url": f"{origin}/link/?ticket={ticket}&app_id={APP}"}
        result = METHODS[method].run(self._world, params)
        params.passed("team_id")
        call.ignored = params.unused
        return result

    def _limit(self, gate: RateGate, method: str, params: Params) -> None:
        wait = gate.ask(method, str(params.values.get("channel", "")), self._world.clock.monotonic())
        if wait:
            raise ratelimited_error(wait)
        if method in HISTORY and gate.rates.history_page is not None:
            asked = params.integer("limit", gate.rates.history_page)
            params.values["limit"] = min(asked, gate.rates.history_page)

    def _authorize(self, method: str, params: Params) -> None:
        """Whether the token may do that.

        Raises:
            ApiError: it may not.
        """
        if method == "api.test":
            return
        if params.token is None:
            raise ApiError("not_authed")
        if params.token not in {self._bot_token, self._app_token}:
            raise ApiError("invalid_auth")
        if self.token_state is not TokenState.GOOD:
            raise ApiError(self.token_state.value)
        if (method == CONNECT) != (params.token == self._app_token):
            raise ApiError("not_allowed_token_type")
        if method == CONNECT:
            return
        wanted = METHODS[method].scope.split()
        if wanted and not self.scopes.intersection(wanted):
            raise ApiError("missing_scope", needed=wanted[0], provided=",".join(sorted(self.scopes)))

    # --- the rest ---

    async def _link(self, request: web.Request) -> web.StreamResponse:
        call = self._open(SOCKET, dict(request.query))
        early = await before(request, call)
        if early is not None:
            return early
        response = await self._sockets.serve(request)
        call.status, call.ended_at = response.status, time.monotonic()
        return response

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        if request.content_type == "multipart/form-data":
            form = await request.post()
            parts = [part.file.read() for part in form.values() if isinstance(part, web.FileField)]
            data = parts[0] if parts else b""
        call = self._open(UPLOAD, {"file": request.match_info["file"]}, len(data))
        early = await before(request, call)
        if early is not None:
            return early
        good = files.receive(self._world, request.match_info["file"], data)
        response = self._plain(call, 200 if good else 400, f"OK - {len(data)}" if good else "bad upload")
        return await after(request, call, response)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        """Without a good token the answer is a page to log in, as on the server, and not an error."""
        path = request.match_info["path"]
        call = self._open(FILE, {"path": path})
        early = await before(request, call)
        if early is not None:
            return early
        call.ended_at = time.monotonic()
        given = request.headers.get("Authorization", "")
        if given != f"Bearer {self._bot_token}" or self.token_state is not TokenState.GOOD:
            call.status = 302
            return web.Response(status=302, headers={"Location": f"{self.origin}/login?redir={request.path}"})
        file = self._world.files.get(path.partition("/")[0].removeprefix(f"{TEAM}-"))
        if file is None or "files:read" not in self.scopes:
            return await after(request, call, self._plain(call, 404 if file is None else 403, "file_not_found"))
        call.status = 200
        response = web.Response(body=file.data, headers={"Content-Type": file.mime_type})
        return await after(request, call, response)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            params = responses.read(body, request.content_type)
        except ApiError as error:
            return self._plain(self._open(RESPONSE, {}), 400, error.error)
        call = self._open(RESPONSE, {"path": request.path, **params.values})
        early = await before(request, call)
        if early is not None:
            return early
        try:
            responses.use(self._world, f"{self.origin}{request.path}", params)
        except ApiError as error:
            response = self._plain(call, error.status, error.error)
        else:
            response = self._plain(call, 200, "ok")
        return await after(request, call, response)
