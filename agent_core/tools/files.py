"""File tools: read, write, append, edit, list and search, inside the session's workspace.

The work is done in threads, never on the event loop. `write_file` is *keyed*: the same content twice is the same file, and a
file is replaced as a whole or not at all. Appending and editing twice is not the same, so those are declared as *effects*.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_core.tools.base import EffectClass, Json, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.reading import read_text
from agent_core.tools.workspace import Refused, folder, split_file

WRITE_CHARS = 5_000_000
_PATH: Json = {"type": "string", "description": "Path inside the workspace, such as notes/today.txt", "minLength": 1}
Work = Callable[[Mapping[str, Json], Path], ToolOutcome]


@dataclass(frozen=True, slots=True)
class FileTool:
    """A declaration, and the function that does the work in a thread."""

    spec: ToolSpec
    work: Work

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        try:
            return await asyncio.to_thread(self.work, arguments, context.workspace)
        except Refused as refusal:
            return ToolOutcome(ToolStatus.FAILED, str(refusal))
        except OSError as error:
            return ToolOutcome(ToolStatus.FAILED, f"The file system refused: {error.strerror or type(error).__name__}.")


def _schema(required: tuple[str, ...], **properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else ""


def _replace_file(workspace: Path, path: str, text: str) -> None:
    """Write a file as a whole or not at all: beside it first, made durable, then moved over it."""
    folders, name = split_file(path)
    with folder(workspace, folders, create=True) as directory:
        _must_be_replaceable(directory, name, path)
        beside = f".{secrets.token_hex(8)}.part"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8", "replace"))
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            os.unlink(beside, dir_fd=directory)
            raise
        os.fsync(directory)


def _must_be_replaceable(directory: int, name: str, shown: str) -> None:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise Refused(f"{shown} exists and is not a regular file.")


# ---------------------------------------------------------------------- the tools


def _write(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path, text = _text(arguments, "path"), _text(arguments, "content")
    if len(text) > WRITE_CHARS:
        raise Refused(f"The content has {len(text)} characters; at most {WRITE_CHARS} can be written at once.")
    _replace_file(workspace, path, text)
    return ToolOutcome(ToolStatus.OK, f"Wrote {path}: {_size(text)}.", facts={"path": path, "chars": len(text)})


def _append(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path, text = _text(arguments, "path"), _text(arguments, "content")
    folders, name = split_file(path)
    with folder(workspace, folders, create=True) as directory:
        _must_be_replaceable(directory, name, path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=directory), "ab") as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
            size = file.tell()
    return ToolOutcome(
        ToolStatus.OK, f"Appended {_size(text)} to {path}; it has {size} bytes now.", facts={"path": path}
    )


def _edit(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path, old, new = (_text(arguments, name) for name in ("path", "old", "new"))
    text = read_text(workspace, path)
    count = text.count(old)
    if not count:
        raise Refused(f"The old text does not occur in {path}. Read the file and copy the text exactly.")
    everywhere = arguments.get("everywhere") is True
    if count > 1 and not everywhere:
        raise Refused(f"The old text occurs {count} times in {path}. Give more of it, or set everywhere to true.")
    _replace_file(workspace, path, text.replace(old, new))
    places = count if everywhere else 1
    return ToolOutcome(
        ToolStatus.OK, f"Edited {path}: {places} place{'s' if places > 1 else ''} replaced.", facts={"path": path}
    )


def _size(text: str) -> str:
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    return f"{lines} line{'' if lines == 1 else 's'}, {len(text.encode('utf-8', 'replace'))} bytes"


_CONTENT: Json = {"type": "string", "description": "The text"}
FILE_TOOLS: tuple[FileTool, ...] = (
    FileTool(
        ToolSpec(
            "write_file",
            "Write a text file of the workspace; an existing one is replaced. For long texts write a first part, then "
            "use append_file.",
            _schema(("path", "content"), path=_PATH, content=_CONTENT),
            EffectClass.KEYED,
        ),
        _write,
    ),
    FileTool(
        ToolSpec(
            "append_file",
            "Add text to the end of a file of the workspace; makes the file if it is not there.",
            _schema(("path", "content"), path=_PATH, content=_CONTENT),
            EffectClass.EFFECT,
        ),
        _append,
    ),
    FileTool(
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
            EffectClass.EFFECT,
        ),
        _edit,
    ),
)
