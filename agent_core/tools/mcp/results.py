"""What a server gave back, as a model can read it: text within bounds, and the rest as files of the workspace. Pure.

A model is shown text alone, so a picture, a sound or another file is put down as a file, and its place is told. Text that is longer than a result may be
is kept as a file as well, and the model sees its beginning and its end.

Laws (tests/mcp/test_results.py): every part that came is in the text, is a file, or is said to be left out; the text is
never longer than is allowed; a file's name is plain, and no two have one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mimetypes
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.text.shown import harmless
from agent_core.text.wellformed import storable

FOLDER = "mcp"
"""Of the workspace, where files are put."""
MOST_FILES = 20
MOST_FILE_BYTES = 25 * 1024 * 1024
MOST_PARTS = 1_000
LINK_CHARS = 2_000
ROOM_CHARS = 400
"""Kept free for the words about a file with the whole text."""
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of a result: its path in the workspace, and what is in it."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class McpResult:
    """What came of a call."""

    text: str
    files: tuple[ResultFile, ...] = ()
    failed: bool = False
    """The server says that the tool could not do what was asked."""
    left_out_chars: int = 0


_Part: TypeAlias = str | tuple[str, bytes, str]
"""Words; or what a file is, its bytes and its type."""


def read_result(raw: Mapping[str, Json], call: str, limit: int, hide: Callable[[str], str]) -> McpResult:
    """The result of `call` as it came from the server; its text within `limit` characters. `hide` takes secrets out before it is cut: half a secret
    is not known as one."""
    mark = hashlib.blake2b(call.encode("utf-8", "replace"), digest_size=4).hexdigest()
    lines: list[str] = []
    files: list[ResultFile] = []
    for part in _parts(raw):
        if isinstance(part, str):
            lines.append(part)
            continue
        what, data, kind = part
        if len(files) >= MOST_FILES or len(data) > MOST_FILE_BYTES:
            lines.append(f"[{what} of {len(data)} bytes ({kind}) is left out: it is too large, or one too many.]")
            continue
        path = f"{FOLDER}/{mark}-{len(files) + 1}{_ending(kind)}"
        files.append(ResultFile(path, data))
        lines.append(f"[{what} ({kind}, {len(data)} bytes) is in the workspace as {path}.]")
    text = hide("\n".join(lines).strip()) or "The tool gave no result; it says that it was done."
    text, more, left_out = _bounded(text, f"{FOLDER}/{mark}-whole.txt", limit)
    return McpResult(text, (*files, *more), raw.get("isError") is True, left_out)


def _bounded(text: str, path: str, limit: int) -> tuple[str, tuple[ResultFile, ...], int]:
    if len(text) <= limit:
        return text, (), 0
    data = text.encode("utf-8", "replace")
    kept = max(0, limit - ROOM_CHARS)
    head = kept * 2 // 3
    left_out = len(text) - kept
    if len(data) <= MOST_FILE_BYTES:
        where, files = f"all of it is in the workspace as {path}", (ResultFile(path, data),)
    else:
        where, files = "it is too long to be kept", ()
    shown = f"{text[:head]}\n[… {left_out} characters left out; {where} …]\n{text[len(text) - (kept - head) :]}"
    return shown[:limit], files, left_out


def _parts(raw: Mapping[str, Json]) -> list[_Part]:
    content = raw.get("content")
    given = content if isinstance(content, list) else []
    parts = [_part(one) for one in given[:MOST_PARTS]]
    if len(given) > MOST_PARTS:
        parts.append(f"[{len(given) - MOST_PARTS} more parts are left out.]")
    structured = raw.get("structuredContent")
    if structured is not None and not any(_says(part, structured) for part in parts):
        parts.append(_structured(structured))
    return parts


def _structured(value: Json) -> str:
    """As JSON; a server may send numbers and depths that one library knows and the other does not."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    except TypeError:
        return json.dumps(value, indent=2)


def _says(part: _Part, structured: Json) -> bool:
    """Whether a text is the structured result once more, as the protocol asks servers to send it."""
    if not isinstance(part, str):
        return False
    if isinstance(structured, dict) and [*structured.values()] == [part]:
        return True
    try:
        return orjson.loads(part) == structured
    except orjson.JSONDecodeError:
        return False


def _part(one: Json) -> _Part:
    if not isinstance(one, dict):
        return "[A part of the result cannot be read.]"
    kind = one.get("type")
    match kind:
        case "text":
            return harmless(storable(str(one.get("text") or "")))
        case "image":
            return _file("A picture", one.get("data"), one.get("mimeType"))
        case "audio":
            return _file("A sound", one.get("data"), one.get("mimeType"))
        case "resource":
            return _resource(one.get("resource"))
        case "resource_link":
            about = one.get("description") or one.get("title") or one.get("name") or ""
            return f"[A resource, to be read by the read_resource of this server: {_line(one.get('uri'))} {_line(about)}]".replace(
                " ]", "]"
            )
        case _:
            return f"[A part of the kind {_line(kind)[:60]!r} cannot be taken.]"


def _resource(resource: Json) -> _Part:
    if not isinstance(resource, dict):
        return "[A resource of the result cannot be read.]"
    uri, text = _line(resource.get("uri")), resource.get("text")
    if isinstance(text, str):
        return f"[{uri}]\n{harmless(storable(text))}"
    return _file(f"The resource {uri}", resource.get("blob"), resource.get("mimeType"))


def _file(what: str, data: Json, kind: Json) -> _Part:
    named = _PLAIN.sub("", str(kind).replace("/", "."))[:60].replace(".", "/", 1) if isinstance(kind, str) else ""
    try:
        found = base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except (binascii.Error, ValueError):
        found = b""
    if not found:
        return f"[{what} came without anything in it that can be read.]"
    return what, found, named or "application/octet-stream"


def _ending(kind: str) -> str:
    return mimetypes.guess_extension(kind, strict=False) or ".bin"


def _line(value: Json) -> str:
    return harmless(storable(str(value or "")[:LINK_CHARS])).replace("\n", " ")
