"""The way for a program that begins us and speaks over our standard input and output."""

from __future__ import annotations

import sys
from typing import TextIO, cast

import anyio
from mcp.server.stdio import stdio_server

from adapters.mcpserver.doing import GatewayWay
from adapters.mcpserver.serving import Context, mcp_server
from agent_core.text.wellformed import whole_json


class _Lines:
    """Standard input, line by line. What the package cannot read it passes over, and whoever asked would wait for ever."""

    def readline(self) -> str:
        return whole_json(sys.stdin.buffer.readline()).decode("utf-8", "replace")


async def serve_stdio(version: str, way: GatewayWay) -> None:
    """Serve until the input ends."""

    async def way_of(_: Context) -> GatewayWay:
        return way

    server = mcp_server(version, way_of)
    async with stdio_server(anyio.wrap_file(cast("TextIO", _Lines()))) as (read, write):
        await server.run(read, write, server.create_initialization_options())
