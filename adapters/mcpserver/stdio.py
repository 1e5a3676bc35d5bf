"""The way for a program that begins us and speaks over our standard input and output."""

from __future__ import annotations

from mcp.server.stdio import stdio_server

from adapters.mcpserver.doing import GatewayWay
from adapters.mcpserver.serving import Context, mcp_server


async def serve_stdio(version: str, way: GatewayWay) -> None:
    """Serve until the input ends."""

    async def way_of(_: Context) -> GatewayWay:
        return way

    server = mcp_server(version, way_of)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
