"""What the file tools read: a file, a listing, a search, inside the session's workspace.

A model chooses the pattern, and what lies in the workspace, so `work` runs in a worker process; each of the three also ends by itself
in time, with what it has found so far.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.text.shown import plain
from agent_core.tools.base import ToolOutcome, ToolStatus
from agent_core.tools.files.patterns import compiled
from agent_core.tools.files.workspace import (
    LEFT_OVER,
    FileMissing,
    PathRefused,
    elsewhere,
    folder,
    names_of,
    open_file,
    split_file,
)

READ_BYTES = 2_000_000
MAX_ENTRIES = 500
MAX_MATCHES = 200
MAX_NAMES = 100_000
"""How many entries of one folder are looked at."""
DEEPEST = 20
LINE_CHARS = 2_000
UNREADABLE = "\ufffd"
SECONDS = 8.0
"""After these a listing or a search ends with what it has."""


def _text(arguments: Mapping[str, Json], name: str) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else ""


def _number(arguments: Mapping[str, Json], name: str, default: int) -> int:
    value = arguments.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def read_text(workspace: Path, path: str) -> str:
    """The text of a file. Raises `PathRefused`."""
    folders, name = split_file(path)
    with folder(workspace, folders) as directory:
        descriptor = open_file(directory, name, path)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > READ_BYTES:
                raise PathRefused(f"{path} has {size} bytes; files of up to {READ_BYTES} bytes can be read.")
            data = file.read(READ_BYTES + 1)
    if b"\0" in data:
        raise PathRefused(f"{path} is not a text file ({len(data)} bytes).")
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
    if UNREADABLE in text:
        text += f"\n({UNREADABLE} stands for what is no UTF-8, or stands there itself)"
    return ToolOutcome(ToolStatus.OK, text, facts={"path": path, "lines": len(chosen)})


def listing(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    path = _text(arguments, "path")
    recursive = arguments.get("recursive") is not False
    if not workspace.exists() and not names_of(path):
        return ToolOutcome(ToolStatus.OK, "(The workspace is empty.)")
    deadline = time.monotonic() + SECONDS
    found: list[str] = []
    more = ""
    deep: list[str] = []
    for name, info in _walk(workspace, names_of(path), deep, recursive=recursive):
        if len(found) >= MAX_ENTRIES:
            more = f"\n(and more; only the first {MAX_ENTRIES} entries are listed)"
            break
        if time.monotonic() > deadline:
            more = "\n(and perhaps more; it took too long, so the listing ends here)"
            break
        shown = plain(name)
        found.append(f"{shown}/" if stat.S_ISDIR(info.st_mode) else f"{shown}  {info.st_size} bytes")
    text = "\n".join(found) or "(Nothing is there.)"
    return ToolOutcome(ToolStatus.OK, text + more + _too_deep(deep, "list_files"), facts={"entries": len(found)})


def _walk(
    workspace: Path, names: list[str], deep: list[str], *, recursive: bool, levels: int = DEEPEST
) -> Iterator[tuple[str, os.stat_result]]:
    """(path, stat) of what lies below a folder, sorted; links are left out. Folders that lie too deep to be looked into are put into `deep`."""
    with folder(workspace, names) as directory:
        with os.scandir(directory) as entries:
            here = sorted(entry.name for entry in islice(entries, MAX_NAMES))
        for name in here:
            if LEFT_OVER.fullmatch(name):
                continue
            try:
                info = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                continue  # it went while we looked
            if stat.S_ISLNK(info.st_mode):
                continue
            yield _said("/".join([*names, name])), info
            if recursive and stat.S_ISDIR(info.st_mode):
                if levels:
                    yield from _walk(workspace, [*names, name], deep, recursive=True, levels=levels - 1)
                else:
                    deep.append(_said("/".join([*names, name])))


def _too_deep(deep: Sequence[str], tool: str) -> str:
    """That some folders were not looked into, and how they can be."""
    if not deep:
        return ""
    others = f" and {len(deep) - 1} more folders" if len(deep) > 1 else ""
    return (
        f"\n(not looked into: {plain(deep[0])}{others}, more than {DEEPEST} folders deep; {tool} with that path does)"
    )


def _said(name: str) -> str:
    """A name as text, also one that is none."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _matcher(arguments: Mapping[str, Json]) -> Callable[[str], bool]:
    """Whether a line matches."""
    query = _text(arguments, "query")
    if arguments.get("regex") is True:
        return compiled(query)
    folded = query.casefold()
    return lambda line: folded in line.casefold()


def search(arguments: Mapping[str, Json], workspace: Path) -> ToolOutcome:
    matches = _matcher(arguments)
    if not workspace.exists():
        return ToolOutcome(ToolStatus.OK, "(The workspace is empty.)")
    deadline = time.monotonic() + SECONDS
    found: list[str] = []
    note = ""
    deep: list[str] = []
    for name, info in _walk(workspace, names_of(_text(arguments, "path")), deep, recursive=True):
        if time.monotonic() > deadline:
            note = _ENDED
        elif not stat.S_ISDIR(info.st_mode) and info.st_size <= READ_BYTES:
            note = _search_file(workspace, name, matches, found, deadline)
        if note:
            break
    text = "\n".join(found) or "(Nothing was found.)"
    return ToolOutcome(ToolStatus.OK, text + note + _too_deep(deep, "search_files"), facts={"matches": len(found)})


_ENDED = "\n(more may be there; the search was ended here)"


def _search_file(workspace: Path, name: str, matches: Callable[[str], bool], found: list[str], deadline: float) -> str:
    """Adds the lines that match; a note if the search is to end."""
    try:
        lines = read_text(workspace, name).splitlines()
    except PathRefused:
        return ""
    for number, line in enumerate(lines, 1):
        if len(found) >= MAX_MATCHES or time.monotonic() > deadline:
            return _ENDED
        if matches(line[:LINE_CHARS]):
            found.append(f"{plain(name)}:{number}: {line[:200].strip()}")
    return ""


def work(request: dict[str, Json], blob: bytes) -> Json:  # noqa: ARG001 - every job is given bytes
    """A job for a worker: one of the three, by its name."""
    arguments = request["arguments"]
    assert isinstance(arguments, dict)
    look = {"read_file": read, "list_files": listing, "search_files": search}[str(request["tool"])]
    try:
        outcome = look(arguments, Path(str(request["workspace"])))
    except FileMissing as missing:
        outcome = ToolOutcome(ToolStatus.FAILED, f"{missing}{elsewhere(Path(str(request['workspace'])))}")
    except PathRefused as refusal:
        outcome = ToolOutcome(ToolStatus.FAILED, str(refusal))
    except OSError as error:
        outcome = ToolOutcome(ToolStatus.FAILED, f"The file system refused: {error.strerror or type(error).__name__}.")
    return {"status": outcome.status.value, "text": outcome.text, "facts": dict(outcome.facts)}
