"""The server of the `mcp` package with our tools: both generations of the protocol, on whatever way it is connected.

This module loads the package's server, which takes seconds and some thirty MiB; it is imported when somebody first connects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from adapters.mcpserver.catalogue import ServedTool, offered_to
from adapters.mcpserver.doing import PRESSING, GatewayWay, done
from agent_core.jsonvalue import Json

INSTRUCTIONS = (
    "outspoken is a gateway to an agent. ask gives it a question and waits for the answer; name a session to go on with a conversation. "
    "A result that is marked as an error is no answer: its notice says what was not done."
)
PROGRESS_SECONDS = 0.25
"""Progress is told this often at most."""
Context: TypeAlias = ServerRequestContext[dict[str, Any], Any]
WayOf = Callable[[Context], Awaitable[GatewayWay]]

for _name in ("mcp", "sse_starlette"):  # what they log may hold what people said; what matters is told to the client
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


def mcp_server(version: str, way_of: WayOf) -> Server[dict[str, Any]]:
    """The server; `way_of` says for each call how the gateway is reached and as whom."""

    async def list_tools(context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        way = await way_of(context)
        return types.ListToolsResult(tools=[_listed(one) for one in _of(way)])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        way = await way_of(context)
        tool = next((one for one in _of(way) if one.name == params.name), None)
        if tool is None:
            there = ", ".join(one.name for one in _of(way)) or "none"
            raise MCPError(
                types.INVALID_PARAMS, f"There is no tool {params.name[:60]!r} for this key. There is: {there}."
            )
        reply = await done(tool, cast("dict[str, Json]", params.arguments or {}), way, _Progress(context).heard)
        content: list[types.ContentBlock] = [types.TextContent(text=reply.text)]
        content += [types.ImageContent(data=one.data, mime_type=one.kind) for one in reply.pictures]
        return types.CallToolResult(content=content, structured_content=dict(reply.structured), is_error=reply.failed)

    return Server(
        "outspoken",
        version=version,
        title="outspoken",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _of(way: GatewayWay) -> tuple[ServedTool, ...]:
    return offered_to(talks=way.talks, operates=way.operates)


def _listed(one: ServedTool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=one.title,
        read_only_hint=one.read_only,
        destructive_hint=one.destructive,
        idempotent_hint=one.idempotent,
        open_world_hint=one.open_world,
    )
    return types.Tool(
        name=one.name,
        title=one.title,
        description=one.words,
        input_schema=one.input_schema(),
        output_schema=one.output_schema(),
        annotations=hints,
    )


class _Progress:
    """Tells the client how a call goes, counted up, at a pace, and nothing twice."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._count = 0
        self._last = ""
        self._at = 0.0

    async def heard(self, words: str) -> None:
        now = asyncio.get_running_loop().time()
        if words == self._last or (self._count and now - self._at < PROGRESS_SECONDS and words not in PRESSING):
            return
        self._count += 1
        self._last, self._at = words, now
        await self._session.report_progress(self._count, None, words)
