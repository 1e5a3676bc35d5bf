"""A server of tools that asks its person, and has something to read; by the package's own server. ``deskserver.py RECORD``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp.types import ResourceLink
from pydantic import BaseModel, Field

app = MCPServer("desk")
record = Path(sys.argv[1])


class Table(BaseModel):
    """What is asked about a table."""

    seats: int = Field(title="Seats", ge=1, le=12)
    where: Literal["inside", "garden"] = "inside"
    quiet: bool = False


async def _wish() -> Elicit[Table]:
    return Elicit("Which table?\nWe have [many](https://evil.example).", Table)


@app.tool()
async def book(name: str, wish: Annotated[Table, Resolve(_wish)]) -> str:
    """Book a table."""
    with record.open("a") as file:
        file.write(f"{name} {wish.seats}\n")
    return f"booked {wish.seats} seats {wish.where} for {name}, {'quiet' if wish.quiet else 'loud'}"


@app.tool()
async def menu() -> list[ResourceLink]:
    """Say where the menu is."""
    return [ResourceLink(type="resource_link", uri="menu://today", name="menu")]


@app.resource("menu://today", mime_type="text/plain")
def today() -> str:
    """What there is to eat today."""
    return "soup, bread"


@app.resource("dish://{name}")
def dish(name: str) -> str:
    """A dish."""
    return f"{name} with herbs"


@app.tool()
async def grow(ctx: Context) -> str:
    """Have one tool more."""
    app.add_tool(lambda: "here", name="more", description="more")
    await ctx.notify_tools_changed()
    return "grown"


app.run()
