"""A connection by the `mcp` package: what is opened, what is asked, and what comes back as plain JSON.

This is the only module that loads the package's client, which takes a second and thirty MiB: it is imported by the first server that is begun, in a
thread. What the package checks of a result by the server's own schema is left out: it would match the server's patterns on the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import httpx2
from mcp import types
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCResponse
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter, ValidationError

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import middle, plain
from agent_core.text.wellformed import label, storable
from agent_core.tools.asking import NOBODY, AnswerAction, ToolAnswer
from agent_core.tools.mcp.calling import Lost, ServerRefused, Unreadable, Untaken
from agent_core.tools.mcp.http import over_http
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import ON_ITS_WAY, McpLink, OnItsWay
from agent_core.tools.mcp.listed import as_agreed
from agent_core.tools.mcp.logins import LoginFile, login_words
from agent_core.tools.mcp.stdio import over_stdio
from agent_core.tools.mcp.terms import ServerTerms

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream, Transport, TransportStreams

WORDS_CHARS = 2_000
PROGRESS_CHARS = 120
MOST_PAGES = 50
MOST_RESOURCES = 500
MOST_ROUNDS = 10
"""So often a call may be answered by another question."""
STATE_SECONDS = 0.2
_NO_RESULT = "answered with something that is no result"
_NOT_READ = ("Failed to parse", "Unexpected content type", "server answered a request with 202")
"""How the package says that an answer came by HTTP which it cannot read: as if the server had refused, which it has not."""
Ask: TypeAlias = Callable[[str, Json, str], Awaitable[ToolAnswer]]
"""(words, the form's schema, or an address) to what the person says."""


async def nobody(words: str, schema: Json, address: str) -> ToolAnswer:  # noqa: ARG001 - an `Ask` is asked so
    """Where there is nobody to ask."""
    return NOBODY


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
        self.link.left_out.clear()
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

    @property
    def has_resources(self) -> bool:
        """Whether there is something to read."""
        can = self.client.session.server_capabilities
        return can is not None and can.resources is not None

    async def resources(self) -> list[Json]:
        """What can be read, and patterns of addresses for more; bounded. Raises `Lost`, `ServerRefused`, `Unreadable`."""
        found: list[Json] = []
        cursor: str | None = None
        try:
            for _ in range(MOST_PAGES):
                params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self.client.session.list_resources(params=params)
                found += [_plain(one) for one in page.resources]
                if len(found) >= MOST_RESOURCES or not page.next_cursor or page.next_cursor == cursor:
                    break
                cursor = page.next_cursor
            with suppress(MCPError):  # many servers have none, and do not know the question
                found += [
                    _plain(one) for one in (await self.client.session.list_resource_templates()).resource_templates
                ]
        except (MCPError, ValidationError, RuntimeError, OSError) as error:
            raise _trouble(error, self.link) from None
        return found[:MOST_RESOURCES]

    async def read(self, uri: str) -> list[Json]:
        """What is in a resource. Raises `Lost`, `ServerRefused`, `Unreadable`."""
        try:
            result = await self.client.session.read_resource(uri)
        except (MCPError, ValidationError, RuntimeError, OSError) as error:
            raise _trouble(error, self.link) from None
        return [_plain(one) for one in result.contents]

    async def listen(self, changed: Callable[[], None]) -> bool:
        """Where a server tells of changes only to those who subscribe: until the subscription ends. False if it has none to offer."""
        session = self.client.session
        can = session.server_capabilities
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS or can is None or can.tools is None:
            return False
        if not can.tools.list_changed:
            return False
        try:
            async with self.client.listen(tools_list_changed=True) as heard:
                async for _ in heard:
                    changed()
        except SubscriptionLost:
            return True
        except (MCPError, RuntimeError, OSError, TimeoutError):
            return False
        return True

    async def call(
        self, tool: str, arguments: Mapping[str, Json], heard: Callable[[str], None], ask: Ask
    ) -> Mapping[str, Json]:
        """What a tool gives; `ask` answers what it asks the person meanwhile. Raises `Untaken`, `Lost`, `ServerRefused`, `Unreadable`."""

        async def told(progress: float, total: float | None, message: str | None) -> None:
            heard(progress_words(progress, total, message))

        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        for asked_before in range(MOST_ROUNDS):
            way = OnItsWay(taken=asked_before > 0)
            token = ON_ITS_WAY.set(way)
            try:
                request = types.CallToolRequest(params=params)
                result = await self.client.session.send_request(request, _RESULT, progress_callback=told)
            except (MCPError, ValidationError, RuntimeError, OSError) as error:
                raise Untaken(way.untaken) if way.untaken else _trouble(error, self.link) from None
            finally:
                ON_ITS_WAY.reset(token)
            if not isinstance(result, types.InputRequiredResult):
                return cast("Mapping[str, Json]", result.model_dump(by_alias=True, mode="json", exclude_none=True))
            responses: types.InputResponses = {}
            for key, wanted in (result.input_requests or {}).items():
                if not isinstance(wanted, types.ElicitRequest):
                    raise ServerRefused("it asks for something that cannot be answered here")
                responses[key] = await _elicited(wanted.params, ask)
            if not responses:
                await asyncio.sleep(STATE_SECONDS)
            state = result.request_state
            params = types.CallToolRequestParams(
                name=tool, arguments=dict(arguments), input_responses=responses or None, request_state=state
            )
        raise ServerRefused("it asks again and again instead of giving a result")


def _plain(model: BaseModel) -> Json:
    return cast("Json", model.model_dump(by_alias=True, mode="json", exclude_none=True))


async def _elicited(params: types.ElicitRequestParams, ask: Ask) -> types.ElicitResult:
    """What the person says to what a server asks."""
    address = params.url if isinstance(params, types.ElicitRequestURLParams) else ""
    schema = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
    answer = await ask(params.message, cast("Json", schema), address)
    content = cast("dict[str, str | int | float | bool | list[str] | None]", dict(answer.content))
    accepted = answer.action is AnswerAction.ACCEPT and not address
    return types.ElicitResult(action=answer.action.value, content=content if accepted else None)


@asynccontextmanager
async def connection(
    terms: ServerTerms,
    link: McpLink,
    lifeline: Lifeline,
    notified: Callable[[], None],
    auth: httpx2.Auth | None = None,
    ask: Ask = nobody,
) -> AsyncGenerator[Connected]:
    """A connection for the block, opened and closed by the same task. Raises whatever the way to the server raises.

    `ask` answers what the server asks beside any call: which one it means, servers of before 2026 do not say.
    """

    async def asked(
        context: ClientRequestContext,  # noqa: ARG001 - it is given by its name
        params: types.ElicitRequestParams,
    ) -> types.ElicitResult | types.ErrorData:
        return await _elicited(params, ask)

    async def said(message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification | types.ResourceListChangedNotification):
            notified()

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(terms.start_seconds):
            login = auth or _login(terms, link)
            transport = over_stdio(terms, link, lifeline) if terms.command else over_http(terms, link, login)
            info = types.Implementation(name="outspoken", version="1")
            client = Client(
                _sifted(transport, link), client_info=info, message_handler=said, elicitation_callback=asked, cache=None
            )
            try:
                await stack.enter_async_context(client)
            except* ValidationError:
                raise Unreadable(_NO_RESULT) from None
        server = client.server_info
        about = f"{server.title or server.name} {server.version}" if server is not None else ""
        yield Connected(client, link, label(about, 100))
        link.closing()


@asynccontextmanager
async def _sifted(way: Transport, link: McpLink) -> AsyncGenerator[TransportStreams]:
    """The same way to a server, with its list of tools sifted, tool by tool; what is left out is noted at the link.

    The package takes a list as a whole or not at all: one tool whose schema says no type would take all others away with it.
    """
    async with way as (incoming, outgoing):
        yield _Sifted(incoming, link), outgoing


class _Sifted:
    """Implements the package's `ReadStream`."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], link: McpLink) -> None:
        self._inner, self._link = inner, link

    @property
    def last_context(self) -> object:
        """In whose context the last message was sent, where the way there knows."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._read(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._read(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)

    def _read(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            result = cast("dict[str, Json]", item.message.result)
            if isinstance(listed := result.get("tools"), list):
                found = [as_agreed(one) for one in listed]
                tools: list[Json] = [one for one in found if not isinstance(one, str)]
                if tools:  # a list of nothing but something else is no list of tools, as the package says
                    result["tools"] = tools
                    self._link.left_out += [words for words in found if isinstance(words, str)]
        return item


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
            return Lost("went away (its stream of events ended)")  # each call has its own, so others go on
        if error.message.startswith(_NOT_READ):
            return Unreadable(_NO_RESULT)
        return ServerRefused(_server_words(error))
    if isinstance(error, ValidationError):
        return Unreadable(_NO_RESULT)
    return Lost(f"went away ({link.why or type(error).__name__})")


def _server_words(error: MCPError) -> str:
    return middle(storable(error.message), WORDS_CHARS) or f"error {error.code}"
