"""What the file tools read: a file, a listing, a search, inside the session's workspace. Each is one function of arguments and a folder."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from agent_core.tools.base import Json, ToolOutcome, ToolStatus
from agent_core.tools.workspace import Refused, folder, names_of, open_file, split_file

READ_BYTES = 2_000_000
MAX_ENTRIES = 500
MAX_MATCHES = 200
LINE_CHARS = 2_000
SEARCH_SECONDS = 10.0


def _text(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else ""


def _number(arguments: Mapping[str, Json], name: str, default: int) -> int:
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def read_text(workspace: Path, path: str) -> str:
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


def read(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path = _text(arguments, "path")
    lines = read_text(workspace, path).splitlines(keepends=True)
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


def listing(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
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


def search(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
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
            lines = read_text(workspace, name).splitlines()
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
