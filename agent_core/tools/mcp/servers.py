"""All servers of a gateway: their tools under names that do not clash, kept over restarts, and the tasks that look after them.

A turn has to know its tools when it begins, and a call that a killed process left has to find its tool at once: so what a server listed last is kept in
a file, and a server that is known from there is begun by the first call, not by the start. One that is not known is begun at the start,
beside everything else.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson
import structlog

from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.tools.base import Tool
from agent_core.tools.files.whole import write_whole
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.listed import MOST_TOOLS, Listing, ServerTool, kept_listing, written
from agent_core.tools.mcp.logins import LoginFile, login_words
from agent_core.tools.mcp.names import offered_names
from agent_core.tools.mcp.server import McpServer, ServerState
from agent_core.tools.mcp.terms import ServerTerms, class_of
from agent_core.tools.mcp.tool import McpTool
from agent_core.tools.registry import ToolRegistry

log = structlog.get_logger("mcp")

LEARN_SECONDS = 10.0
"""A turn waits so long for servers whose tools nobody knows yet."""
LIST_BYTES = 8 * 1024 * 1024


class McpServers:
    """The servers. `folder` keeps what they listed."""

    def __init__(
        self, terms: Sequence[ServerTerms], registry: ToolRegistry, folder: Path, clock: Clock, *, result_chars: int,
        offered: Collection[str] | None = None, withheld: Collection[str] = (), approval: Collection[str] = (),
        follow_ups: FollowUps = NOBODY_FOLLOWS,
    ) -> None:  # fmt: skip
        """Three lists of names as models read them: those that may be offered (None: all), those that may not, and those that need approval."""
        self._registry, self._folder, self._result_chars = registry, folder, result_chars
        self._offered, self._withheld, self._approval = offered, withheld, approval
        self._own, self._follow_ups = frozenset(registry.names), follow_ups
        self.lifeline = Lifeline()
        self._keeping: set[asyncio.Task[None]] = set()
        self._in_turn = asyncio.Lock()
        """One list is kept at a time: the one that is there then, so that the latest is kept last."""
        self.names: Mapping[str, Mapping[str, str]] = {}
        """Of each server, the names under which its tools are offered."""
        self.servers = {
            one.name: McpServer(one, self.lifeline, clock, self._changed, _known(folder, one)) for one in terms
        }
        self._registry.missing = self._missing
        self._bring()

    def _missing(self, name: str) -> str:
        """Why there is no tool of this name: its server is down."""
        for one in self.servers.values():
            if one.state is ServerState.DOWN and one.terms.prefix and name.startswith(one.terms.prefix):
                return f"Those that begin so are of the server {one.terms.name}, which cannot be used now: {one.why}."
        return ""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """They are looked after for the block, and over after it."""
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(one.run(), name=f"mcp {name}") for name, one in self.servers.items()]
        for one in self.servers.values():
            if not one.listing.tools:
                one.want()
        try:
            yield
        finally:
            for one in self.servers.values():
                one.leave()
            for task in tasks:
                task.cancel()
            await asyncio.wait((*tasks, *self._keeping))
            await self.lifeline.aclose()

    async def settled(self) -> None:
        """Wait a little for servers that are begun for the first time, until they are there or cannot be; a turn that begins without them has none of
        their tools."""
        unknown = [one for one in self.servers.values() if self._unknown(one)]
        with suppress(TimeoutError):
            async with asyncio.timeout(LEARN_SECONDS):
                await asyncio.gather(*(one.ready() for one in unknown), return_exceptions=True)

    @staticmethod
    def _unknown(server: McpServer) -> bool:
        return not server.listing.tools and server.state is ServerState.STARTING

    def status(self) -> list[Json]:
        """How each stands, for operators."""
        return [self._status(one) for one in self.servers.values()]

    def _status(self, one: McpServer) -> Json:
        offered, hide = self.names.get(one.terms.name, {}), self._registry.hide
        tools: list[Json] = [
            {
                "name": offered.get(tool.name, ""),
                "tool": tool.name,
                "class": class_of(one.terms, tool).value,
                "approval": one.terms.asks(tool.name),
                "description": tool.description,
            }
            for tool in one.listing.tools
        ]
        return {
            "server": one.terms.name,
            "state": one.state.value,
            "about": one.about,
            "by": one.terms.url or one.terms.command[0],
            "words": hide(one.why),
            "login": _login(one.terms),
            "begun": one.begun,
            "calls": one.calls,
            "tools": tools,
            "left_out": list(one.listing.left_out),
            "stderr": [hide(line) for line in one.lines[-5:]],
        }

    # ------------------------------------------------------------------ what is offered

    def _changed(self, server: McpServer) -> None:
        """A server listed other tools."""
        self._bring()
        keeping = asyncio.get_running_loop().create_task(self._keep(server), name=f"mcp {server.terms.name}: keep")
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)

    def _bring(self) -> None:
        """Hand the registry the tools of all servers, as they are now."""
        taken, names, tools = set(self._own), dict[str, Mapping[str, str]](), list[Tool]()
        room = MOST_TOOLS - len(self._own)
        for one in self.servers.values():
            listed = [tool for tool in one.listing.tools if one.terms.offers(tool.name)]
            offered = offered_names(one.terms.name, one.terms.prefix, (tool.name for tool in listed), taken)
            taken |= set(offered.values())
            offered = {tool: name for tool, name in offered.items() if self._may(name)}
            kept = [tool for tool in listed if tool.name in offered][:room]
            room -= len(kept)
            if len(kept) < len(offered):
                log.warning(
                    "mcp.too_many", server=one.terms.name, not_offered=len(offered) - len(kept), most=MOST_TOOLS
                )
            names[one.terms.name] = {tool.name: offered[tool.name] for tool in kept}
            tools += [self._tool(one, tool, offered[tool.name]) for tool in kept]
        self.names = names
        self._registry.bring(tools)

    def _tool(self, server: McpServer, listed: ServerTool, name: str) -> McpTool:
        asks = name in self._approval or server.terms.asks(listed.name)
        return McpTool(server, listed, name, self._result_chars, self._registry.hide, self._follow_ups, asks=asks)

    def _may(self, name: str) -> bool:
        return (self._offered is None or name in self._offered) and name not in self._withheld

    async def _keep(self, server: McpServer) -> None:
        async with self._in_turn:
            tools: list[Json] = [dict(written(tool)) for tool in server.listing.tools]
            data = orjson.dumps({"of": _digest(server.terms), "tools": tools})
            try:
                await asyncio.to_thread(write_whole, _file(self._folder, server.terms), data)
            except OSError as error:
                log.warning("mcp.list_not_kept", server=server.terms.name, error=error.strerror or type(error).__name__)


def _login(terms: ServerTerms) -> str:
    if terms.logins is None:
        return ""
    return login_words(LoginFile.of(terms.logins, terms.name).read(), terms.name, time.time())


def _file(folder: Path, terms: ServerTerms) -> Path:
    return folder / f"{terms.name}.tools.json"


def _digest(terms: ServerTerms) -> str:
    """Which program or address a kept list is of."""
    said = "\0".join((terms.name, *terms.command, terms.url, str(terms.folder or "")))
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=12).hexdigest()


def _known(folder: Path, terms: ServerTerms) -> Listing:
    """What a server listed last, if that was kept."""
    try:
        with _file(folder, terms).open("rb") as file:
            data = file.read(LIST_BYTES + 1)
        kept: Json = orjson.loads(data)
    except (OSError, ValueError):
        return Listing()
    tools = kept.get("tools") if isinstance(kept, dict) and kept.get("of") == _digest(terms) else None
    return kept_listing(tools) if isinstance(tools, list) else Listing()
