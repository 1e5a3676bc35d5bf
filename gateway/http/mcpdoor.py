"""``/mcp``: the gateway as a server of tools for other agents and editors, by streamable HTTP. Off unless the configuration turns it on.

Who calls is found out before anything of the protocol is read: a key for talking opens what talks, the operators' key what operates, and where no
keys are needed whoever sits at this machine has both. Pages of other origins are refused as everywhere. The protocol's library is loaded by the
first request. What a tool does goes through the API like everybody else's requests, so limits, budgets and rights are those of the key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from aiohttp import web

from adapters.contract.callers import Caller, Callers
from adapters.http.common import WRONG_KEY, Problem, caller_of, problem_response
from adapters.http.routes import HttpRoute
from gateway.console.access import Access
from gateway.version import program_version

if TYPE_CHECKING:
    from adapters.mcpserver import streamable
    from adapters.mcpserver.streamable import StreamableDoor

NAMES_USERS = ("X-Outspoken-User", "X-OpenWebUI-User-Id", "X-OpenWebUI-User-Email")
OFF = Problem(
    404,
    "This gateway serves no MCP over HTTP. Whoever runs it can turn it on: [server] mcp = true. "
    "On its own machine, outspoken mcp serve needs nothing of the kind.",
    code="mcp_off",
)


class McpEntrance:
    """Serves it. `url` says where the gateway itself is reached from this machine, once it listens."""

    def __init__(
        self,
        callers: Callers,
        access: Access,
        origins: tuple[str, ...],
        most_bytes: int,
        url: Callable[[], str],
        *,
        on: bool,
    ) -> None:
        self._callers, self._access, self._origins, self._on = callers, access, origins, on
        self._most_bytes, self._url = most_bytes, url
        self._door: StreamableDoor | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    def routes(self) -> list[web.RouteDef]:
        return [route.served(self._serve) for route in (HttpRoute.MCP, HttpRoute.MCP_LISTEN, HttpRoute.MCP_LEAVE)]

    async def aclose(self, _: web.Application | None = None) -> None:
        """End what is open."""
        self._closed = True
        if self._door is not None:
            await self._door.aclose()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        if not self._on:
            return problem_response(OFF)
        caller = caller_of(request, self._callers, self._origins)
        operates = self._access.refusal(request) is None  # without the operators' key, where there is one, it refuses
        if isinstance(caller, Problem) and not (operates and caller is WRONG_KEY):
            headers = {"WWW-Authenticate": "Bearer"} if caller.status == 401 else {}
            return problem_response(caller, headers)
        if self._closed:
            words = "The gateway is being stopped. Ask again in a moment."
            return problem_response(Problem(503, words, "server_error", code="shutting_down", retry_after=30))
        from adapters.mcpserver.doing import GatewayWay

        shown = request.headers.get("Authorization", "").partition(" ")[2].strip() or None
        talks = isinstance(caller, Caller)
        way = GatewayWay(
            self._url(),
            shown if talks else None,
            shown if operates and self._access.key is not None else None,
            {name: value for name in NAMES_USERS if (value := request.headers.get(name)) is not None},
            talks=talks,
            operates=operates,
            wait_seconds=0,
        )
        door = await self._opened()
        return await door.serve(request, way)

    async def _opened(self) -> StreamableDoor:
        async with self._opening:
            if self._door is None:
                module = await asyncio.to_thread(import_module, "adapters.mcpserver.streamable")
                door = cast("type[streamable.StreamableDoor]", module.StreamableDoor)(
                    program_version(), self._most_bytes
                )
                await door.opened()
                self._door = door
            return self._door
