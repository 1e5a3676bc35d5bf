"""A real server of tools by streamable HTTP on loopback, that can be ended, begun anew, and made to misbehave; with a login if that is wanted."""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken, TokenError
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, Response


@dataclass
class Logins:
    """An authorization server of one user, who agrees to everything."""

    clients: dict[str, OAuthClientInformationFull] = field(default_factory=dict[str, OAuthClientInformationFull])
    codes: dict[str, AuthorizationCode] = field(default_factory=dict[str, AuthorizationCode])
    good: dict[str, AccessToken] = field(default_factory=dict[str, AccessToken])
    renewing: dict[str, RefreshToken] = field(default_factory=dict[str, RefreshToken])
    good_seconds: int = 3600
    renewed: int = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24), scopes=params.scopes or [], expires_at=time.time() + 60, client_id=client.client_id or "",
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly, resource=params.resource,
        )  # fmt: skip
        self.codes[code.code] = code
        return f"{params.redirect_uri}?code={code.code}&state={params.state}"

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> Any:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: Any
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id or "", authorization_code.resource)

    def _tokens(self, client: str, resource: str | None) -> OAuthToken:
        access, refresh = f"secret-{secrets.token_hex(8)}", f"renew-{secrets.token_hex(8)}"
        until = int(time.time()) + self.good_seconds
        self.good[access] = AccessToken(token=access, client_id=client, scopes=[], expires_at=until, resource=resource)
        self.renewing[refresh] = RefreshToken(token=refresh, client_id=client, scopes=[], resource=resource)
        return OAuthToken(access_token=access, expires_in=self.good_seconds, refresh_token=refresh)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> Any:
        return self.renewing.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: Any, scopes: list[str]
    ) -> OAuthToken:
        if self.renewing.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewed += 1
        return self._tokens(client.client_id or "", refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.good.get(token)

    async def revoke_token(self, token: Any) -> None: ...

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise TokenError("unsupported_grant_type")


@dataclass
class HttpTools:
    """The server; `answers` is a status that it says to everything, 0 if it serves."""

    port: int
    logins: Logins | None = None
    status: int = 0
    effects: list[str] = field(default_factory=list[str])
    cutting: asyncio.Event = field(default_factory=asyncio.Event)
    """Once it is set, streams of events that calls of `cut` have got end without an answer."""
    sessions: bool = False
    """It speaks the protocol of before 2026, which has sessions."""
    forgets: tuple[int, str] | None = None
    """What it says to every request in a session that it had before this was set; it knows those that begin later."""
    known: set[bytes] = field(default_factory=set[bytes])
    gone: set[bytes] = field(default_factory=set[bytes])
    issuer: str = ""
    """What the authorization server says that it is, if it is not as the tools' server spells it."""
    _server: uvicorn.Server | None = None
    _task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def begin(self) -> None:
        server = uvicorn.Server(
            uvicorn.Config(self._app(), "127.0.0.1", self.port, log_level="critical", timeout_graceful_shutdown=1)
        )
        self._server, self._task = server, asyncio.create_task(server.serve())
        async with asyncio.timeout(20):
            while not server.started:
                await asyncio.sleep(0.02)

    async def end(self) -> None:
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
            self._server = None

    def forget(self, status: int, said: str) -> None:
        """From now on no session is known that was begun before."""
        self.forgets, self.gone = (status, said), set(self.known)

    def _forgotten(self, scope: Any) -> bool:
        session = _named(scope, b"mcp-session-id")
        if session:
            self.known.add(session)
        return session in self.gone

    def _app(self) -> Any:
        base = f"http://127.0.0.1:{self.port}"
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(base), resource_server_url=AnyHttpUrl(f"{base}/mcp"),
            validate_token_resource=True, client_registration_options=ClientRegistrationOptions(enabled=True),
        )  # fmt: skip
        server: MCPServer[Any] = (
            MCPServer("tickets", auth=auth, auth_server_provider=self.logins) if self.logins else MCPServer("tickets")
        )

        @server.tool(annotations=ToolAnnotations(read_only_hint=True))
        def look() -> str:
            self.effects.append("look")
            return "three tickets"

        @server.tool()
        async def close(seconds: float = 0) -> str:
            self.effects.append("close")
            await asyncio.sleep(seconds)
            return "closed"

        @server.tool()
        async def cut() -> str:
            raise AssertionError("never gets here")

        inner = server.streamable_http_app()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if self.issuer and scope.get("path", "").startswith("/.well-known/oauth-authorization-server"):
                places = {
                    "authorization_endpoint": "authorize",
                    "token_endpoint": "token",
                    "registration_endpoint": "register",
                }
                said = {"issuer": self.issuer, **{name: f"{base}/{path}" for name, path in places.items()}}
                await JSONResponse(said)(scope, receive, send)
            elif self.status and scope["type"] == "http":
                await Response("no", self.status)(scope, receive, send)
            elif self.sessions and _named(scope, b"mcp-protocol-version").startswith(b"2026"):
                await Response("no", 400)(scope, receive, send)
            elif self._forgotten(scope) and self.forgets is not None:
                status, said = self.forgets
                kind = "application/json" if said.startswith("{") else "text/plain"
                await Response(said, status, media_type=kind)(scope, receive, send)
            else:
                said = await _body(receive) if scope.get("method") == "POST" else None
                if said and b'"name":"cut"' in said["body"]:
                    self.effects.append("cut")
                    head = [(b"content-type", b"text/event-stream")]
                    await send({"type": "http.response.start", "status": 200, "headers": head})
                    await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})
                    await self.cutting.wait()
                    await send({"type": "http.response.body", "body": b""})
                else:
                    await inner(scope, _again(said, receive) if said else receive, send)

        return app


async def _body(receive: Any) -> dict[str, Any]:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return {"type": "http.request", "body": body, "more_body": False}


def _again(said: dict[str, Any], receive: Any) -> Any:
    waiting = [said]

    async def received() -> Any:
        return waiting.pop() if waiting else await receive()

    return received


def _named(scope: Any, header: bytes) -> bytes:
    return dict(scope.get("headers", ())).get(header, b"")


@asynccontextmanager
async def http_tools(logins: Logins | None = None, *, sessions: bool = False) -> AsyncGenerator[HttpTools]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tools = HttpTools(port, logins, sessions=sessions)
    await tools.begin()
    try:
        yield tools
    finally:
        await tools.end()
