"""What comes with a message: files into the session's workspace, pictures before models that see, and a word about the rest."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import structlog

from adapters.contract.base import FromChat
from adapters.contract.chat import Attachment, AttachmentKind, CallFailed, ChatPort, Fate
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import QuotaKind, blocks, for_person
from agent_core.messages import InputMessage, text_of
from agent_core.records import dataclass
from agent_core.rules.taint import ATTACHED
from agent_core.tools.base import UNLIMITED, NoRoom, Space
from gateway.limits.quotas import Quotas

log = structlog.get_logger("chat")

FILE_BYTES = 20 * 1024 * 1024
"""The most that Telegram lets a bot download (https://core.telegram.org/bots/api#getfile)."""
PICTURE_BYTES = 5 * 1024 * 1024
"""A larger one is kept as a file, and not put before the model."""
TRIES = 3
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TakenAttachment:
    """What became of one attachment."""

    note: str
    """For the model."""
    picture: str = ""
    """A data URL, if the model is to see it."""
    complaint: str = ""
    """For the person, if it was not taken."""


class Attachments:
    """Fetches them when their turn is about to begin."""

    def __init__(self, quotas: Quotas | None = None, *, sees_pictures: bool) -> None:
        self._quotas = quotas
        self._sees = sees_pictures

    async def fetched(self, inbound: FromChat, workspace: Path, port: ChatPort | None, tell: Tell) -> FromChat:
        """The message with its attachments, as the turn takes it. `tell` says to the person what was not taken."""
        space = UNLIMITED if self._quotas is None else self._quotas.space(inbound, workspace)
        taken = [await self._take(port, one, workspace, space) for one in inbound.chat.attachments]
        for complaint in dict.fromkeys(one.complaint for one in taken if one.complaint):
            await tell(complaint)
        words = "\n".join(
            [*(text_of(m.content) for m in inbound.input if text_of(m.content)), *(one.note for one in taken)]
        )
        content: Json = words
        pictures: list[Json] = [
            {"type": "image_url", "image_url": {"url": one.picture}} for one in taken if one.picture
        ]
        if pictures:
            content = [{"type": "text", "text": words}, *pictures]
        return replace(inbound, input=(InputMessage(content, foreign=inbound.chat.foreign or ATTACHED),))

    async def _take(self, port: ChatPort | None, one: Attachment, workspace: Path, space: Space) -> TakenAttachment:
        if one.kind is AttachmentKind.OTHER:
            return TakenAttachment(f"[The person also sent a {one.name}, which you cannot get.]")
        if one.refused:
            return _no_room(one, one.refused)
        if port is None or one.size > FILE_BYTES:
            return _not_taken(one, "it is larger than 20 MB")
        try:
            data = await self._fetch(port, one)
        except CallFailed as error:
            log.warning("attachment.not_fetched", name=one.name, words=error.words)
            return _not_taken(one, error.words)
        if one.kind is AttachmentKind.FILE and not is_text(data):
            return _not_taken(one, "it is neither text nor a picture")
        try:
            async with space.hold({QuotaKind.WORKSPACE: blocks(len(data)), QuotaKind.FILES: 1}):
                path = await asyncio.to_thread(_save, workspace, one.name, data)
        except NoRoom as error:
            return _no_room(one, for_person(error.full))
        seen = one.kind is AttachmentKind.IMAGE and self._sees and one.mime in PICTURES and len(data) <= PICTURE_BYTES
        picture = f"data:{one.mime};base64,{base64.b64encode(data).decode()}" if seen else ""
        return TakenAttachment(
            f"[The person attached {one.name} ({len(data)} bytes); it is in your workspace as {path}.]", picture
        )

    @staticmethod
    async def _fetch(port: ChatPort, one: Attachment) -> bytes:
        for attempt in range(TRIES):
            try:
                return await port.fetch(one.ref, FILE_BYTES)
            except CallFailed as error:
                if error.fate is Fate.REFUSED or attempt == TRIES - 1:
                    raise
                await asyncio.sleep(min(30.0, error.retry_after or 1.0))
        raise AssertionError


def _not_taken(one: Attachment, why: str) -> TakenAttachment:
    return TakenAttachment(
        f"[The person attached {one.name}, which could not be taken: {why}.]",
        complaint=f"I could not take {one.name}: {why}.",
    )


def _no_room(one: Attachment, words: str) -> TakenAttachment:
    """The person reads the reason once, however many files they sent."""
    note = f"[The person attached {one.name}; there was no room for it, so it was not taken. They are told why.]"
    return TakenAttachment(note, complaint=words)


def is_text(data: bytes) -> bool:
    """Whether bytes are text that tools can read."""
    if b"\0" in data[:8192]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def safe_name(name: str) -> str:
    """A file name without anything that could lead elsewhere."""
    plain = re.sub(r"[^\w.+ -]+", "_", Path(name).name).strip(". ")
    return plain[-100:] or "file"


def _save(workspace: Path, name: str, data: bytes) -> str:
    """Write a new file, unless the same is there already, under whatever name; an existing one is never overwritten."""
    workspace.mkdir(parents=True, exist_ok=True)
    same = _same(workspace, data)
    if same:
        return same
    plain = safe_name(name)
    stem, dot, ending = plain.rpartition(".")
    if not stem:
        stem, dot, ending = plain, "", ""
    for number in range(1, 1000):
        candidate = plain if number == 1 else f"{stem}-{number}{dot}{ending}"
        path = workspace / candidate
        if not path.exists():
            path.write_bytes(data)
            return candidate
    raise OSError("too many files of one name")


def _same(workspace: Path, data: bytes) -> str:
    """The name of a file with these bytes; empty if there is none."""
    with os.scandir(workspace) as found:
        sized = sorted(
            one.name
            for one in found
            if one.is_file(follow_symlinks=False) and one.stat(follow_symlinks=False).st_size == len(data)
        )
    return next((name for name in sized if (workspace / name).read_bytes() == data), "")
