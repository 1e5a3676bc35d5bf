"""The declarations of the file tools that write, inside the session's workspace. What they do is in `writing`."""

from __future__ import annotations

from agent_core.jsonvalue import Json
from agent_core.tools.base import EffectClass, ToolSpec
from agent_core.tools.files import writing
from agent_core.tools.files.writing import WritingTool
from agent_core.tools.offer import Offer

_PATH: Json = {"type": "string", "description": "Path inside the workspace, such as notes/today.txt", "minLength": 1}


def _schema(required: tuple[str, ...], **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


_CONTENT: Json = {"type": "string", "description": "The text"}
FILE_TOOLS: tuple[WritingTool, ...] = (
    WritingTool(
        ToolSpec(
            "write_file",
            "Write a text file of the workspace; an existing one is replaced. For long texts write a first part, then "
            "use append_file.",
            _schema(("path", "content"), path=_PATH, content=_CONTENT),
            EffectClass.KEYED,
        ),
        writing.plan_write,
        writing.says_write,
    ),
    WritingTool(
        ToolSpec(
            "append_file",
            "Add text to the end of a file of the workspace; makes the file if it is not there.",
            _schema(("path", "content"), path=_PATH, content=_CONTENT),
            EffectClass.KEYED,
        ),
        writing.plan_append,
        writing.says_append,
    ),
    WritingTool(
        ToolSpec(
            "edit_file",
            "Replace a piece of text in a file of the workspace. The old text must occur exactly once, unless everywhere is true.",
            _schema(
                ("path", "old", "new"),
                path=_PATH,
                old={"type": "string", "minLength": 1, "description": "The text to replace, exactly as it stands"},
                new={"type": "string", "description": "What to put in its place"},
                everywhere={"type": "boolean", "description": "Replace all occurrences"},
            ),
            EffectClass.KEYED,
        ),
        writing.plan_edit,
        writing.says_edit,
    ),
    WritingTool(
        ToolSpec(
            "delete_file",
            "Remove a file or an empty folder of the workspace. It cannot be brought back. Folders that become empty go with their last file.",
            _schema(("path",), path=_PATH),
            EffectClass.KEYED,
        ),
        writing.plan_delete,
        writing.says_delete,
        removes=True,
    ),
)


OFFER = Offer(2, lambda _: FILE_TOOLS)
