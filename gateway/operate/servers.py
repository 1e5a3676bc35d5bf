"""The servers of tools of this configuration, begun for a look and ended again: for `doctor`, and for whoever tries a tool."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from adapters.checks.findings import Finding, Severity, ok, problem, warning
from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.text.counts import counted
from agent_core.tools.base import ToolContext, ToolOutcome
from agent_core.tools.mcp.calling import NotReached
from agent_core.tools.mcp.server import McpServer
from agent_core.tools.mcp.servers import McpServers
from agent_core.tools.offer import Unusable
from agent_core.tools.registry import ArgumentsUnreadable, Runnable, ToolRegistry
from gateway.config.misfits import MCP_FIX, NO_MCP
from gateway.config.paths import find_paths
from gateway.config.reading import redactor_of
from gateway.config.sections import Config
from gateway.config.tools.mcp import McpEntry
from gateway.operate.trying import ListedTool, NotTried


@asynccontextmanager
async def begun(config: Config, entries: Sequence[McpEntry]) -> AsyncGenerator[tuple[McpServers, ToolRegistry]]:
    """These servers, once each said what it can do or why it does not. Raises `NotTried`."""
    if find_spec("mcp") is None:
        raise NotTried(f"{NO_MCP} {MCP_FIX}")
    registry = ToolRegistry([], hide=redactor_of(config, os.environ).redact)
    with tempfile.TemporaryDirectory(prefix="outspoken-mcp-") as folder:
        servers = McpServers(
            [one.terms(_logins(entries)) for one in entries],
            registry,
            Path(folder),
            SystemClock(),
            result_chars=config.tools.result_chars,
        )
        async with servers.running():
            await asyncio.gather(*(_reached(one) for one in servers.servers.values()))
            yield servers, registry


def _logins(entries: Sequence[McpEntry]) -> Path:
    """Where the gateway keeps its logins."""
    return find_paths(os.environ).state_dir / "mcp" if any(one.oauth for one in entries) else Path()


async def _reached(server: McpServer) -> None:
    with suppress(NotReached):  # its status says so
        await server.ready()


async def looked_at(config: Config) -> list[Json]:
    """How each server is doing."""
    if not config.mcp.servers:
        return []
    async with begun(config, config.mcp.servers) as (servers, _):
        return servers.status()


async def listed_of(config: Config) -> tuple[list[ListedTool], list[Unusable]]:
    """What the servers bring, and which bring nothing; none is begun where none is configured."""
    entries = config.mcp.servers
    if not entries:
        return [], []
    try:
        async with begun(config, entries) as (servers, registry):
            found = [
                ListedTool(spec.name, spec.effect.value, f"mcp {server}", True, spec.description)
                for server, names in servers.names.items()
                for spec in registry.brought
                if spec.name in names.values()
            ]
            away = [Unusable(f"mcp {name}", one.why) for name, one in servers.servers.items() if not one.listing.tools]
    except NotTried as error:
        return [], [Unusable("mcp", str(error).rstrip("."))]
    return found, away


def entry_of(config: Config, server: str) -> McpEntry:
    """The server with this name. Raises `NotTried`."""
    entry = next((one for one in config.mcp.servers if one.name == server), None)
    if entry is None:
        there = ", ".join(one.name for one in config.mcp.servers) or "none"
        raise NotTried(f"There is no server called {server} in the configuration. There is: {there}.")
    return entry


async def tried(config: Config, server: str, tool: str, arguments: str, shown: Callable[[str], None]) -> ToolOutcome:
    """What a tool of a server gives; it is really run. Raises `NotTried`."""
    entry = entry_of(config, server)
    async with begun(config, [entry]) as (servers, registry):
        one = servers.servers[server]
        if not one.listing.tools:
            raise NotTried(f"The server {server} cannot be used: {one.why}.")
        names = servers.names[server]
        name = names.get(tool, tool)
        checked = registry.check(name, arguments)
        if isinstance(checked, ArgumentsUnreadable):
            raise NotTried(f"These arguments do not fit, so nothing was run. {checked.complaint}")
        if not isinstance(checked, Runnable):
            raise NotTried(f"The server {server} offers no tool called {tool}. It offers: {', '.join(names)}.")
        folder = Path.cwd()
        return await registry.run(checked, ToolContext("try", "1", "try:1", folder, "try", SystemClock(), shown))


def judged(status: Sequence[Json]) -> list[Finding]:
    """What a look at the servers found. Pure."""
    found: list[Finding] = []
    for one in status:
        assert isinstance(one, dict)
        name, tools = one["server"], one["tools"]
        assert isinstance(tools, list)
        if one["state"] != "ready":
            fix = f"Run {one['by']} by hand, or look at what it wrote: outspoken mcp list"
            found.append(problem("mcp", f"The server {name} cannot be used: {one['words']}.", fix))
            continue
        found.append(
            ok(
                "mcp",
                f"The server {name} ({one['about'] or 'it does not say what it is'}) has {counted(len(tools), 'tool')}.",
            )
        )
        if one["login"]:
            found.append(ok("mcp", f"The server {name}: {one['login']}."))
        left_out = one["left_out"]
        if isinstance(left_out, list) and left_out:
            fix = "Leave them out (deny in [mcp.NAME]), or report it to the server's makers."
            found.append(warning("mcp", f"Of the server {name} not offered: {'; '.join(map(str, left_out[:5]))}.", fix))
    return found


def not_there(words: str) -> Finding:
    """The package is missing."""
    what, _, fix = words.partition(" Install it: ")
    return Finding("mcp", Severity.CONFIGURATION, what, fix)
