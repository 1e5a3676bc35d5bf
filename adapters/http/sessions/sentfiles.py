"""Files that the agent sent, as the page and programs get them: each under an id that holds its turn, and for nobody who may not read that.

Theory. Who wrote a file is the model, or whoever the model listened to. So none is ever a document of our origin: a browser is told to store it,
to run nothing in it and to guess nothing about it; and its type is that of its bytes, among which there is no type that a browser would run.

Law (tests/adapters/test_sent_files.py): whatever bytes and name a file has, its type is one of a list, and its headers can be sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from aiohttp import web

from adapters.contract.base import Ended
from adapters.delivery.parts import call_mark
from adapters.http.common import HEADERS, Problem, problem_response, spoken
from agent_core.jsonvalue import Json
from agent_core.text.tongue import sentence
from agent_core.turn.view import Bubble, BubbleKind, View

_ID = re.compile(r"file_(t_[0-9a-z]+)_([0-9a-f]{12})")
HEAD_BYTES = 2_048
"""As much tells what a file is."""
NO_FILE = Problem(
    404, sentence("There is no such file, or it is not kept any more."), param="file", code="file_not_found"
)
UNSAID = "application/octet-stream"
_BY_NAME: Mapping[str, str] = {
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".md": "text/markdown",
    ".json": "application/json",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
}
"""What the bytes alone do not say: what sort of text it is, and what is in an archive."""
_FOR_ITS_OWN_SAKE: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


def file_id(turn: str, bubble: Bubble) -> str:
    """By which a file that was sent or made is asked for; empty if the bubble is none. Pure."""
    return f"file_{turn}_{call_mark(bubble.key)}" if turn and bubble.kind is BubbleKind.FILE and bubble.path else ""


def named_file(name: str) -> tuple[str, str] | None:
    """(turn, mark of the bubble) of what is named so; None if nothing ever is. Pure."""
    found = _ID.fullmatch(name)
    return (found[1], found[2]) if found is not None else None


def files_in(turn: str, seen: View) -> list[tuple[str, str]]:
    """What a turn has sent and made: of each its id and its name. Pure."""
    return [(name, one.text) for one in seen.bubbles if (name := file_id(turn, one))]


def sent_files(ended: Ended, conversation: str) -> list[Json]:
    """The same for programs, with where each is. Pure."""
    where = f"/v1/outspoken/sessions/{quote(conversation, safe='')}/files"
    return [{"id": one, "name": name, "url": f"{where}/{one}"} for one, name in files_in(ended.turn, ended.view)]


def type_of(head: bytes, name: str) -> str:
    """The type that a file is served as. Pure."""
    from agent_core.documents.kinds import FileKind, kind_of  # of those who ask for a file

    kind, found = kind_of(head)
    told = _BY_NAME.get(Path(name).suffix.lower(), "")
    match kind:
        case FileKind.TEXT:
            return (
                UNSAID
                if b"\0" in head
                else f"{told if told.startswith(('text/', 'application/json')) else 'text/plain'}; charset=utf-8"
            )
        case FileKind.ZIP:
            return told if told.startswith("application/vnd.") else found
        case FileKind.PROGRAM | FileKind.OLD_OFFICE | FileKind.EMPTY:
            return UNSAID
        case FileKind.PICTURE | FileKind.SOUND | FileKind.VIDEO | FileKind.PDF | FileKind.PACKED:
            return found


def disposition(name: str) -> str:
    """The header that has a browser store a file under its name (RFC 6266). Pure."""
    plain = re.sub(r"[^A-Za-z0-9 ._()+-]", "_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"


async def file_response(request: web.Request, path: Path | None) -> web.StreamResponse:
    """The file; None is one that there is not."""
    head = await asyncio.to_thread(_head, path) if path is not None else None
    if path is None or head is None:
        return problem_response(spoken(NO_FILE), request.get(HEADERS))
    return web.FileResponse(path, headers=_headers(head, path.name))


def bytes_response(request: web.Request, file: tuple[str, bytes] | None) -> web.StreamResponse:
    """The same of a file that lies nowhere: its name, and what is in it."""
    if file is None:
        return problem_response(spoken(NO_FILE), request.get(HEADERS))
    name, data = file
    return web.Response(body=data, headers=_headers(data[:HEAD_BYTES], name))


def _headers(head: bytes, name: str) -> dict[str, str]:
    return {**_FOR_ITS_OWN_SAKE, "Content-Type": type_of(head, name), "Content-Disposition": disposition(name)}


def _head(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return None
