"""What a server has to read (its resources), as two tools beside its own. Pure.

Nothing of it is put before the model unasked: it lists and reads what it wants, and follows what a result names in the same way. What is read is
always what is there now, so nobody subscribes to a resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agent_core.jsonvalue import Json
from agent_core.text.shown import harmless
from agent_core.text.wellformed import storable
from agent_core.tools.mcp.listed import Listing, ServerTool

LIST, READ = "list_resources", "read_resource"
LINE_CHARS = 400


def with_resources(listing: Listing, server: str) -> Listing:
    """The listing with our two tools; one whose name the server has itself stays the server's."""
    nothing: dict[str, Json] = {"type": "object", "properties": {}, "additionalProperties": False}
    uri: dict[str, Json] = {"type": "string", "minLength": 1, "description": "As it is listed, or named in a result"}
    one: dict[str, Json] = {
        "type": "object", "properties": {"uri": uri}, "required": ["uri"], "additionalProperties": False
    }  # fmt: skip
    ours = (
        ServerTool(LIST, f"List what the server {server} has to read: its resources.", nothing, read_only=True, resources="list"),
        ServerTool(READ, f"Read a resource of the server {server}.", one, read_only=True, resources="read"),
    )  # fmt: skip
    names = {tool.name for tool in listing.tools}
    return replace(listing, tools=(*listing.tools, *(tool for tool in ours if tool.name not in names)))


def resource_list(found: Sequence[Json]) -> Mapping[str, Json]:
    """What can be read, a line each, as a result."""
    lines = [_line(one) for one in found if isinstance(one, dict)]
    words = "\n".join(lines) or "The server has nothing to read now."
    return {"content": [{"type": "text", "text": words}]}


def _line(one: Mapping[str, Json]) -> str:
    uri = one.get("uri")
    where = (
        uri if isinstance(uri, str) else f"{one.get('uriTemplate') or ''} (a pattern: fill in what stands in braces)"
    )
    about = " – ".join(str(one[key]) for key in ("title", "name", "description") if isinstance(one.get(key), str))
    kind = f" [{one['mimeType']}]" if isinstance(one.get("mimeType"), str) else ""
    return " ".join(harmless(storable(f"{where}{kind} {about}")).split())[:LINE_CHARS]


def resource_parts(contents: Sequence[Json]) -> Mapping[str, Json]:
    """What is in a resource, as a result."""
    parts: list[Json] = [{"type": "resource", "resource": one} for one in contents]
    return {"content": parts or [{"type": "text", "text": "There is nothing in it."}]}
