"""A connection by the `mcp` package: what is opened, what is asked, and what comes back as plain JSON.

This is the only module that loads the package's client, which takes a second and thirty MiB: it is imported by the first server that is begun, in a
thread. What the package checks of a result by the server's own schema is left out: it would match the server's patterns on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import httpx2
from mcp import types
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import middle, plain
from agent_core.text.wellformed import label, storable
from agent_core.tools.mcp.calling import Lost, ServerRefused, Unreadable
from agent_core.tools.mcp.http import over_http
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.logins import LoginFile, login_words
from agent_core.tools.mcp.stdio import over_stdio
from agent_core.tools.mcp.terms import ServerTerms

WORDS_CHARS = 2_000
PROGRESS_CHARS = 120
MOST_PAGES = 50
_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)

for _name in ("mcp", "client"):  # what the package logs may hold what people said; what matters of it is told by ours
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


@dataclass(frozen=True)
class Connected:
    """A server that can be asked. Any task may."""

    client: Client
    link: McpLink
    about: str

    async def tools(self, most: int) -> list[Json]:
        """Its tools as they are listed, `most` at most. Raises `Lost`, `ServerRefused`, `Unreadable`."""
        found: list[Json] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            try:
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self.client.session.list_tools(params=params)
            except (MCPError, ValidationError, RuntimeError) as error:
                raise _trouble(error, self.link) from None
            found += [cast("Json", one.model_dump(by_alias=True, mode="json", exclude_none=True)) for one in page.tools]
            if len(found) >= most or not page.next_cursor or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        return found[:most]

    async def call(self, tool: str, arguments: Mapping[str, Json], heard: Callable[[str], None]) -> Mapping[str, Json]:
        """What a tool gives. Raises `Lost`, `ServerRefused`, `Unreadable`."""

        async def told(progress: float, total: float | None, message: str | None) -> None:
            heard(progress_words(progress, total, message))

        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=dict(arguments)))
        try:
            result = await self.client.session.send_request(request, _RESULT, progress_callback=told)
        except (MCPError, ValidationError, RuntimeError, OSError) as error:
            raise _trouble(error, self.link) from None
        if isinstance(result, types.InputRequiredResult):
            raise ServerRefused("it asks for something that cannot be answered here")
        return cast("Mapping[str, Json]", result.model_dump(by_alias=True, mode="json", exclude_none=True))


@asynccontextmanager
async def connection(
    terms: ServerTerms,
    link: McpLink,
    lifeline: Lifeline,
    notified: Callable[[], None],
    auth: httpx2.Auth | None = None,
) -> AsyncGenerator[Connected]:
    """A connection for the block, opened and closed by the same task. Raises whatever the way to the server raises."""

    async def said(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            notified()

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(terms.start_seconds):
            login = auth or _login(terms, link)
            transport = over_stdio(terms, link, lifeline) if terms.command else over_http(terms, link, login)
            info = types.Implementation(name="outspoken", version="1")
            client = Client(transport, client_info=info, message_handler=said, cache=None)
            await stack.enter_async_context(client)
        server = client.server_info
        about = f"{server.title or server.name} {server.version}" if server is not None else ""
        yield Connected(client, link, label(about, 100))
        link.closing()


def _login(terms: ServerTerms, link: McpLink) -> httpx2.Auth | None:
    """How requests are signed, where the server wants a login. Raises `LoginNeeded` where nobody has logged in."""
    if terms.logins is None:
        return None
    from agent_core.tools.mcp.oauth import LoginNeeded, StoredLogin

    file = LoginFile.of(terms.logins, terms.name)
    kept = file.read()
    if not isinstance(kept.get("tokens"), dict):
        raise LoginNeeded(login_words({}, terms.name, 0))
    return StoredLogin(terms, file, link)


def progress_words(done: float, total: float | None, message: str | None) -> str:
    """How far a call is, as it is shown."""
    share = f"{done:g} of {total:g}" if total else f"{done:g}"
    said = middle(plain(storable(message.strip())), PROGRESS_CHARS) if message and message.strip() else ""
    return f"{said} ({share})" if said else share


def _trouble(error: Exception, link: McpLink) -> Lost | ServerRefused | Unreadable:
    if isinstance(error, MCPError):
        if link.over.is_set() or (error.code, error.message) == (types.CONNECTION_CLOSED, "Connection closed"):
            return Lost(f"went away ({link.why})" if link.why else "went away")
        if link.failed:
            why, link.failed = link.failed, ""
            return Unreadable(why)
        if link.refused:
            why, link.refused = link.refused, ""
            return ServerRefused(why)
        if error.code == types.CONNECTION_CLOSED and error.message.startswith("SSE stream"):
            link.broke("its stream of events ended")
            return Lost(f"went away ({link.why})")
        return ServerRefused(_server_words(error))
    if isinstance(error, ValidationError):
        return Unreadable("answered with something that is no result")
    return Lost(f"went away ({link.why or type(error).__name__})")


def _server_words(error: MCPError) -> str:
    return middle(storable(error.message), WORDS_CHARS) or f"error {error.code}"
