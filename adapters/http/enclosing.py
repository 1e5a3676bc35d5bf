"""Files that the page sends within a message, as parts of it. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib

import orjson

from adapters.http.common import Problem
from agent_core.jsonvalue import Json
from agent_core.messages import FILE_LINE

MOST_FILES = 10
NAME_CHARS = 200
ENVELOPE_BYTES = 1_000_000
"""Of a request, what is not its files."""


def most_bytes(body_bytes: int) -> int:
    """How large the files of a message may be in all, if a request has so many bytes: they come in base64."""
    return max(0, (body_bytes - ENVELOPE_BYTES) // 4 * 3)


def content_of(text: str, files: Json) -> Json | Problem:
    """A message's content: its words, and its files as parts; each is named in the words."""
    if files is None or files == []:
        return text if text.strip() else Problem(400, "text must be text that is not empty.", param="text")
    if not isinstance(files, list) or len(files) > MOST_FILES:
        return Problem(400, f"files must be a list of at most {MOST_FILES} files.", param="files")
    parts, named = list[Json](), list[str]()
    for number, one in enumerate(files):
        part = _part(one)
        if part is None:
            words = "must have a name, and data as a data: address in base64"
            return Problem(400, f"files[{number}] {words}.", param=f"files[{number}]")
        named.append(f"{FILE_LINE}{part[0]}")
        parts.append(part[1])
    words = "\n".join(filter(str.strip, (text, *named)))
    return [{"type": "text", "text": words}, *parts]


def _part(one: Json) -> tuple[str, Json] | None:
    name, data = (one.get("name"), one.get("data")) if isinstance(one, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(data, str) or not data.startswith("data:"):
        return None
    _, marked, encoded = data.partition(";base64,")
    if not marked:
        return None
    try:
        base64.b64decode(encoded, validate=True)  # of a file that is empty, nothing: that is told with its turn
    except (binascii.Error, ValueError):
        return None
    called = "".join(c if c.isprintable() else " " for c in name).strip()[:NAME_CHARS] or "file"
    return called, {"type": "file", "file": {"filename": called, "file_data": data}}


def digest_of(content: Json) -> str:
    """What tells one message from another under the same id."""
    return content if isinstance(content, str) else hashlib.sha256(orjson.dumps(content)).hexdigest()
