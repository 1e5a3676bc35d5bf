"""The file tools that only read, as they are declared. What they do is in `reading`, and done by a worker."""

from __future__ import annotations

from collections.abc import Mapping

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec
from agent_core.tools.files.reading import MAX_ENTRIES, MAX_MATCHES
from agent_core.tools.offer import Offer
from agent_core.tools.outside import outside
from agent_core.workers.pool import Job, Workers

JOB = Job("agent_core.tools.files.reading:work", 12.0)
_LESS = "Ask for less: a smaller folder, fewer lines, or a simpler query."
_PATH: Json = {"type": "string", "description": "Path inside the workspace, such as notes/today.txt", "minLength": 1}
_NUMBER: Json = {"type": "integer", "minimum": 1}


@dataclass(frozen=True, slots=True)
class Reader:
    """A tool that reads in the workspace."""

    spec: ToolSpec
    workers: Workers

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        request: dict[str, Json] = {
            "tool": self.spec.name,
            "arguments": dict(arguments),
            "workspace": str(context.workspace.absolute()),
        }
        return await outside(self.workers, JOB, request, owner=context.workspace, less=_LESS)


def _spec(name: str, description: str, required: tuple[str, ...], properties: dict[str, Json]) -> ToolSpec:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema, EffectClass.PURE, foreign=True)


SPECS = (
    _spec(
        "read_file",
        "Read a text file of the workspace, whole or some lines of it.",
        ("path",),
        {"path": _PATH, "first_line": _NUMBER, "lines": _NUMBER},
    ),
    _spec(
        "list_files",
        f"List the files of the workspace with their sizes, at most {MAX_ENTRIES}.",
        (),
        {
            "path": {"type": "string", "description": "Folder to list; the whole workspace if left out"},
            "recursive": {"type": "boolean", "description": "Also what is in its folders (default true)"},
        },
    ),
    _spec(
        "search_files",
        f"Find lines in the text files of the workspace; upper and lower case do not matter. At most {MAX_MATCHES} lines.",
        ("query",),
        {
            "query": {"type": "string", "minLength": 1, "maxLength": 500},
            "regex": {
                "type": "boolean",
                "description": "The query is a regular expression, in the syntax of RE2 (without look-around and back-references)",
            },
            "path": {"type": "string", "description": "Folder to search; the whole workspace if left out"},
        },
    ),
)


def readers(workers: Workers) -> tuple[Reader, ...]:
    """`read_file`, `list_files` and `search_files`."""
    return tuple(Reader(spec, workers) for spec in SPECS)


OFFER = Offer(1, lambda parts: readers(parts.workers))
