"""File tools: read, write, append, edit, list and search, inside the session's workspace.

The work is done in threads, never on the event loop. `write_file` is *keyed*: the same content twice is the same file, and a
file is replaced as a whole or not at all. Appending and editing twice is not the same, so those are declared as *effects*.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_core.tools.base import EffectClass, Json, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.workspace import Refused, folder, names_of, open_file, split_file

READ_BYTES = 2_000_000
WRITE_CHARS = 5_000_000
MAX_ENTRIES = 500
MAX_MATCHES = 200
LINE_CHARS = 2_000
SEARCH_SECONDS = 10.0
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


def _number(arguments: Mapping[str, Json], name: str, default: int) -> int:
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _read_text(workspace: Path, path: str) -> str:
    """The text of a file. Raises `Refused`."""
    folders, name = split_file(path)
    with folder(workspace, folders) as directory:
        descriptor = open_file(directory, name, path)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > READ_BYTES:
                raise Refused(f"{path} has {size} bytes; files of up to {READ_BYTES} bytes can be read.")
            data = file.read(READ_BYTES + 1)
    if b"\0" in data:
        raise Refused(f"{path} is not a text file ({len(data)} bytes).")
    return data.decode("utf-8", "replace")


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


def _read(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path = _text(arguments, "path")
    lines = _read_text(workspace, path).splitlines(keepends=True)
    first = max(1, _number(arguments, "first_line", 1))
    count = max(1, _number(arguments, "lines", len(lines) or 1))
    chosen = lines[first - 1 : first - 1 + count]
    text = "".join(chosen)
    if not lines:
        text = f"({path} is empty.)"
    elif first > len(lines):
        return ToolOutcome(ToolStatus.FAILED, f"{path} has only {len(lines)} lines.")
    elif len(chosen) < len(lines):
        text += f"\n(lines {first} to {first + len(chosen) - 1} of {len(lines)})"
    return ToolOutcome(ToolStatus.OK, text, facts={"path": path, "lines": len(chosen)})


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
    text = _read_text(workspace, path)
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


def _list(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path = _text(arguments, "path")
    recursive = arguments.get("recursive") is not False
    if not workspace.exists() and not names_of(path):
        return ToolOutcome(ToolStatus.OK, "(The workspace is empty.)")
    found: list[str] = []
    more = False
    for name, info in _walk(workspace, names_of(path), recursive=recursive):
        if len(found) >= MAX_ENTRIES:
            more = True
            break
        found.append(f"{name}/" if stat.S_ISDIR(info.st_mode) else f"{name}  {info.st_size} bytes")
    text = "\n".join(found) or "(Nothing is there.)"
    if more:
        text += f"\n(and more; only the first {MAX_ENTRIES} entries are listed)"
    return ToolOutcome(ToolStatus.OK, text, facts={"entries": len(found)})


def _walk(workspace: Path, names: list[str], *, recursive: bool) -> Iterator[tuple[str, os.stat_result]]:
    """(path, stat) of what lies below a folder, sorted; links are left out."""
    with folder(workspace, names) as directory:
        entries = sorted(entry.name for entry in os.scandir(directory))
        infos = [(name, os.stat(name, dir_fd=directory, follow_symlinks=False)) for name in entries]
    for name, info in infos:
        if name.endswith(".part") or stat.S_ISLNK(info.st_mode):
            continue
        yield "/".join([*names, name]), info
        if recursive and stat.S_ISDIR(info.st_mode) and len(names) < 20:
            yield from _walk(workspace, [*names, name], recursive=True)


_NESTED = re.compile(r"[+*}]\)?[+*{]|\([^)]*[+*][^)]*\)[+*{]")


def _pattern(arguments: Mapping[str, Json]) -> Callable[[str], bool]:
    """Whether a line matches. Regular expressions that can take for ever are refused."""
    query = _text(arguments, "query")
    if arguments.get("regex") is not True:
        folded = query.casefold()
        return lambda line: folded in line.casefold()
    if _NESTED.search(query):
        raise Refused("This regular expression repeats a repetition, which can take for ever. Put it more simply.")
    try:
        pattern = re.compile(query, re.IGNORECASE)
    except re.error as error:
        raise Refused(f"The regular expression cannot be read: {error}.") from None
    return lambda line: pattern.search(line) is not None


def _search(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    matches = _pattern(arguments)
    if not workspace.exists():
        return ToolOutcome(ToolStatus.OK, "(The workspace is empty.)")
    deadline = time.monotonic() + SEARCH_SECONDS
    found: list[str] = []
    note = ""
    for name, info in _walk(workspace, names_of(_text(arguments, "path")), recursive=True):
        if stat.S_ISDIR(info.st_mode) or info.st_size > READ_BYTES:
            continue
        try:
            lines = _read_text(workspace, name).splitlines()
        except Refused:
            continue
        for number, line in enumerate(lines, 1):
            if len(found) >= MAX_MATCHES or time.monotonic() > deadline:
                note = "\n(more may be there; the search was ended here)"
                break
            if matches(line[:LINE_CHARS]):
                found.append(f"{name}:{number}: {line[:200].strip()}")
        if note:
            break
    text = "\n".join(found) or "(Nothing was found.)"
    return ToolOutcome(ToolStatus.OK, text + note, facts={"matches": len(found)})


def _size(text: str) -> str:
    lines = text.count("\n") + (0 if text.endswith("\n") or not text else 1)
    return f"{lines} line{'' if lines == 1 else 's'}, {len(text.encode('utf-8', 'replace'))} bytes"


_CONTENT: Json = {"type": "string", "description": "The text"}
_NUMBER: Json = {"type": "integer", "minimum": 1}
FILE_TOOLS: tuple[FileTool, ...] = (
    FileTool(
        ToolSpec(
            "read_file",
            "Read a text file of the workspace, whole or some lines of it.",
            _schema(("path",), path=_PATH, first_line=_NUMBER, lines=_NUMBER),
            EffectClass.PURE,
        ),
        _read,
    ),
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
    FileTool(
        ToolSpec(
            "list_files",
            f"List the files of the workspace with their sizes, at most {MAX_ENTRIES}.",
            _schema(
                (),
                path={"type": "string", "description": "Folder to list; the whole workspace if left out"},
                recursive={"type": "boolean", "description": "Also what is in its folders (default true)"},
            ),
            EffectClass.PURE,
        ),
        _list,
    ),
    FileTool(
        ToolSpec(
            "search_files",
            f"Find lines in the text files of the workspace; upper and lower case do not matter. At most {MAX_MATCHES} lines.",
            _schema(
                ("query",),
                query={"type": "string", "minLength": 1, "maxLength": 500},
                regex={"type": "boolean", "description": "The query is a regular expression"},
                path={"type": "string", "description": "Folder to search; the whole workspace if left out"},
            ),
            EffectClass.PURE,
        ),
        _search,
    ),
)
