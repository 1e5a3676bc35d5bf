"""Files that come within a request of the API or of the web page: into the workspace, and what is in them before the model.

What the model takes as it is goes on to it, and so does what nobody here can read: perhaps the model can. What comes from the page lies in the workspace in
any case, as what comes from a chat does. What a client brings along of earlier
messages is read likewise, and remembered for a while, as clients bring it with every request.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from adapters.contract.base import FromApi
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import for_person
from agent_core.messages import GATEWAY_PREFIX, InputMessage, Message, text_of
from agent_core.model.speech.terms import paid_by
from agent_core.records import dataclass
from agent_core.rules.taint import ATTACHED
from agent_core.text.shown import plain
from agent_core.tools.base import UNLIMITED, NoRoom, Purse, Space
from gateway.chats.attachments import (
    NAME_CHARS,
    NO_WORDS,
    NOT_KEPT,
    TakenAttachment,
    not_taken_words,
    notes_of,
    put,
    unread_words,
)
from gateway.chats.readout import BUSY, FileReaders, Readout, part_of
from gateway.limits.quotas import Quotas

REMEMBERED = 16
PAGE = "web"


@dataclass(frozen=True, slots=True)
class Enclosed:
    """A file in a part of a message."""

    name: str
    mime: str
    data: bytes


def enclosed_in(part: Json) -> Enclosed | None:
    """The file that a part holds; None if it is none, or cannot be decoded. Pure."""
    match part:
        case {"type": "file", "file": {"file_data": str(text), **more}}:
            name = more.get("filename")
            mime, data = _decoded(text)
            called = plain(name)[:NAME_CHARS] if isinstance(name, str) and name else "file"
            return Enclosed(called, mime, data) if data is not None else None
        case {"type": "input_audio", "input_audio": {"data": str(text), **more}}:
            form = more.get("format")
            ending = form if isinstance(form, str) and form.isalnum() else "wav"
            _, data = _decoded(text)
            return Enclosed(f"sound.{ending}", f"audio/{ending}", data) if data is not None else None
        case _:
            return None


def _decoded(text: str) -> tuple[str, bytes | None]:
    """A data URL, or bare base64: its type and bytes, of which there may be none; None if it is neither."""
    head, comma, data = text.partition(",")
    mime = head.removeprefix("data:").partition(";")[0] if comma and head.startswith("data:") else ""
    try:
        return mime, base64.b64decode(data if comma else text, validate=True)
    except (binascii.Error, ValueError):
        return mime, None


class EnclosedFiles:
    """Reads them when their turn is about to begin."""

    def __init__(self, quotas: Quotas | None, readers: FileReaders) -> None:
        self._quotas = quotas
        self._readers = readers
        self._earlier: dict[bytes, tuple[TakenAttachment, ...]] = {}
        """What was found in files that clients brought along, by their bytes."""

    async def told(self, inbound: FromApi, workspace: Path, purse: Purse | None = None) -> FromApi:
        """The message as the turn takes it. `purse` pays for listening."""
        with paid_by(purse):
            return await self._told(inbound, workspace)

    async def _told(self, inbound: FromApi, workspace: Path) -> FromApi:
        space = UNLIMITED if self._quotas is None else self._quotas.space(inbound, workspace)
        page = inbound.surface == PAGE
        read = [await self._read(one, workspace, space, page=page) for one in inbound.input]
        history = inbound.own_history
        if history is not None:
            history = tuple([await self._remembered(message) for message in history])
        return replace(inbound, input=tuple(read), own_history=history)

    async def _read(self, message: InputMessage, workspace: Path, space: Space, *, page: bool) -> InputMessage:
        rest, taken = list[Json](), list[TakenAttachment]()
        for part in message.content if isinstance(message.content, list) and message.role == "user" else ():
            one = enclosed_in(part)
            found = await self._readers.read(one.data, one.name, one.mime, workspace) if one is not None else None
            if one is None or found is None or not (page or (found.text and not found.native)):
                rest.append(part)
                continue
            kept = await _kept(one, found, workspace, space)
            taken.append(kept)
            rest += [kept.part] if kept.part is not None else []
        if not taken:
            return message
        told = tuple(dict.fromkeys(one.complaint for one in taken if one.complaint)) if page else ()
        return replace(message, content=with_notes(rest, taken), foreign=message.foreign or ATTACHED, told=told)

    async def _remembered(self, message: Message) -> Message:
        content = message.get("content")
        if message.get("role") != "user" or not isinstance(content, list):
            return message
        rest, taken = list[Json](), list[TakenAttachment]()
        for part in content:
            one = enclosed_in(part)
            known = await self._known(one) if one is not None else ()
            taken += known
            rest += [] if known else [part]
        return {**message, "content": with_notes(rest, taken)} if taken else message

    async def _known(self, one: Enclosed) -> Sequence[TakenAttachment]:
        """What is in an earlier file; nothing if it stays as it is."""
        mark = hashlib.blake2b(one.name.encode() + b"\0" + one.data, digest_size=16).digest()
        if mark not in self._earlier:
            found = await self._readers.read(one.data, one.name, one.mime, mark)
            note = f"[The person attached {one.name} ({found.about}).]"
            told = (TakenAttachment(note, name=one.name, text=found.text),) if found.text and not found.native else ()
            if found.why == BUSY:
                return told  # of this moment: the next request has it read
            self._earlier[mark] = told
            if len(self._earlier) > REMEMBERED:
                del self._earlier[next(iter(self._earlier))]
        return self._earlier[mark]


def with_notes(rest: list[Json], taken: list[TakenAttachment]) -> Json:
    """A message's content with what was read of its files. Pure."""
    notes = f"{GATEWAY_PREFIX} {notes_of(taken)}"
    bare = all(isinstance(part, dict) and part.get("type") == "text" for part in rest)
    if bare:
        return f"{text_of(rest) or NO_WORDS}\n\n{notes}"
    return [*rest, {"type": "text", "text": f"\n{notes}"}]


async def _kept(one: Enclosed, found: Readout, workspace: Path, space: Space) -> TakenAttachment:
    """What is said of a file, which lies in the workspace if there is room for it."""
    text = found.text.encode("utf-8", "replace") if found.text and not found.plain else b""
    about = ", ".join(filter(None, (f"{len(one.data)} bytes", found.about)))
    try:
        path, beside = await put(workspace, space, one.name, one.data, text)
    except OSError:
        note = f"[The person attached {one.name} ({about}); it could not be stored in your workspace. They are told"
        path, beside, complaint = "", "", not_taken_words(one.name, NOT_KEPT)
    except NoRoom as error:
        note = (
            f"[The person attached {one.name} ({about}); there was no room for it in your workspace. They are told why"
        )
        path, beside, complaint = "", "", for_person(error.full)
    else:
        complaint = ""
        note = f"[The person attached {one.name} ({about}); it is in your workspace as {path}"
    if found.native:
        return TakenAttachment(f"{note}.]", part=part_of(found, path or one.name, one.data), complaint=complaint)
    if found.why:
        note = f"{note}. You cannot tell what is in it: {found.why}. They are told so.]"
        return TakenAttachment(note, complaint=complaint or unread_words(one.name, found))
    where = "" if beside == path else f", its text as {beside}"
    return TakenAttachment(f"{note}{where}.]", name=one.name, text=found.text, beside=beside, complaint=complaint)
