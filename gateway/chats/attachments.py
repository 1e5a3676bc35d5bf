"""What comes with a message: files into the session's workspace, and what is in them before the model.

They are fetched when their turn is about to begin: until the turn is open the message waits in the inbox, so that after a restart they are
fetched again, and what lies in the workspace already is not put there twice.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import structlog

from adapters.contract.base import FromChat
from adapters.contract.chat import Attachment, AttachmentKind, CallFailed, ChatPort, Fate
from agent_core.documents.kinds import FileKind
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import QuotaKind, blocks, for_person
from agent_core.messages import GATEWAY_PREFIX, InputMessage, text_of
from agent_core.model.speech.terms import paid_by
from agent_core.records import dataclass
from agent_core.rules.taint import ATTACHED
from agent_core.text.shown import plain
from agent_core.text.tongue import clause, known_sentence, speak
from agent_core.tools.base import UNLIMITED, NoRoom, Purse, Space
from agent_core.tools.files.workspace import MAX_NAME_BYTES, PathRefused, made, put_new
from gateway.chats.readout import SHOWN_CHARS, SHOWN_IN_ALL, FileReaders, Readout, part_of, parts_of, quoted
from gateway.delivery.calls import UPLOAD_SECONDS, called
from gateway.limits.quotas import Quotas

log = structlog.get_logger("chat")

FILE_BYTES = 20 * 1024 * 1024
"""The most that Telegram lets a bot download (https://core.telegram.org/bots/api#getfile)."""
TRIES = 3
RECORDED = (FileKind.SOUND, FileKind.VIDEO)
NO_WORDS = "(sent without words)"

Tell = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TakenAttachment:
    """What became of one attachment."""

    note: str
    """For the model."""
    name: str = ""
    text: str = ""
    """What is in it, if it is text."""
    beside: str = ""
    """The file of the workspace that holds this text."""
    said: str = ""
    """What the person says in it themselves: a voice message."""
    deaf: str = ""
    """Why nothing else of this message is listened to, either."""
    part: Json = None
    """For the model's own eyes or ears, if it has them."""
    complaint: str = ""
    """For the person, if it was not taken, or if nobody here can tell what is in it."""


NAME_CHARS = 200
LARGER = clause("it is larger than 20 MB")
AWAY = clause("the platform that it lies on is not connected any more")
NO_RECORDING = clause("it is no recording")
NOT_KEPT = clause("no file can be stored here just now")


class Attachments:
    """Fetches them when their turn is about to begin."""

    def __init__(self, quotas: Quotas | None, readers: FileReaders) -> None:
        self._quotas = quotas
        self._readers = readers

    async def fetched(
        self, inbound: FromChat, workspace: Path, port: ChatPort | None, tell: Tell, purse: Purse | None = None
    ) -> FromChat:
        """The message with its attachments, as the turn takes it. `tell` says to the person what was not taken; `purse` pays for listening."""
        space = UNLIMITED if self._quotas is None else self._quotas.space(inbound, workspace)
        taken: list[TakenAttachment] = []
        for sent in inbound.chat.attachments:
            one = replace(sent, name=plain(sent.name)[:NAME_CHARS])  # it stands in the gateway's own words
            deaf = next((before.deaf for before in taken if before.deaf), "")
            with paid_by(purse):
                taken.append(await self._take(port, one, workspace, space, deaf))
        for complaint in dict.fromkeys(one.complaint for one in taken if one.complaint):
            await tell(complaint)
        own = [*(text_of(m.content) for m in inbound.input), *(one.said for one in taken)]
        said = "\n".join(words for words in own if words.strip()) or NO_WORDS
        words = f"{said}\n\n{GATEWAY_PREFIX} {notes_of(taken)}"
        content = parts_of(words, [one.part for one in taken if one.part is not None])
        foreign = inbound.chat.foreign or (ATTACHED if inbound.chat.brings_others else "")
        return replace(inbound, input=(InputMessage(content, foreign=foreign),))

    async def _take(
        self, port: ChatPort | None, one: Attachment, workspace: Path, space: Space, deaf: str
    ) -> TakenAttachment:
        if one.kind is AttachmentKind.OTHER:
            return TakenAttachment(
                f"[The person also sent a {one.name}, which you cannot get. They are told so.]",
                complaint=speak("I cannot take this here: {kind}.", kind=one.name),
            )
        if one.refused:
            return _no_room(one, one.refused)
        if one.size > FILE_BYTES:
            return _not_taken(one, LARGER)
        if port is None:
            return _not_taken(one, AWAY)
        try:
            data = await self._fetch(port, one)
        except CallFailed as error:
            log.warning("attachment.not_fetched", name=one.name, words=error.words)
            return _not_taken(one, error.words)
        found = await self._readers.read(data, one.name, one.mime, workspace, deaf)
        if one.kind is AttachmentKind.VOICE and found.kind not in RECORDED:
            found = replace(found, text="", native=False, why=NO_RECORDING)
        text = found.text.encode("utf-8", "replace") if found.text and not found.plain else b""
        said = _said(found) if one.kind is AttachmentKind.VOICE else ""
        try:
            path, beside = await put(workspace, space, one.name, data, text)
        except NoRoom as error:
            return replace(_no_room(one, for_person(error.full)), said=said)
        except OSError:
            return replace(_not_taken(one, NOT_KEPT), said=said)
        return _taken(one, found, data, path, beside)

    @staticmethod
    async def _fetch(port: ChatPort, one: Attachment) -> bytes:
        for attempt in range(TRIES):
            try:
                return await called(port.fetch(one.ref, FILE_BYTES), "the platform", UPLOAD_SECONDS)
            except CallFailed as error:
                if error.fate is Fate.REFUSED or attempt == TRIES - 1:
                    raise
                await asyncio.sleep(min(30.0, error.retry_after or 1.0))
        raise AssertionError


def _taken(one: Attachment, found: Readout, data: bytes, path: str, beside: str) -> TakenAttachment:
    """What is said of a file that lies in the workspace. Pure."""
    about = ", ".join(filter(None, (f"{len(data)} bytes", found.about)))
    note = f"[The person attached {one.name} ({about}); it is in your workspace as {path}"
    if found.why:
        words = unread_words(one.name, found)
        note = f"{note}. You cannot tell what is in it: {found.why}. They are told so.]"
        return TakenAttachment(note, complaint=words, deaf=found.deaf)
    if found.native:
        return TakenAttachment(f"{note}.]", part=part_of(found, path, data))
    if one.kind is AttachmentKind.VOICE:
        whose = "They recorded it themselves: the words of their message are what they say in it"
        return TakenAttachment(f"{note}. {whose}.]", said=_said(found))
    where = "" if beside == path else f", its text as {beside}"
    return TakenAttachment(f"{note}{where}.]", name=one.name, text=found.text, beside=beside)


def unread_words(name: str, found: Readout) -> str:
    """What a person reads of a file that nobody here can read. Pure."""
    why = known_sentence(found.why)
    return speak("I have put {file} into the workspace, but I cannot tell what is in it: {why}.", file=name, why=why)


def _said(found: Readout) -> str:
    """What a person says, as their words."""
    return found.text.replace(GATEWAY_PREFIX, "(outspoken)")


def notes_of(taken: list[TakenAttachment]) -> str:
    """What the model reads of all that came with a message. Pure."""
    room, lines = SHOWN_IN_ALL, list[str]()
    for one in taken:
        lines.append(one.note)
        if one.text:
            shown = quoted(one.name, one.text, min(room, SHOWN_CHARS), one.beside)
            room -= min(len(one.text), room, SHOWN_CHARS)
            lines.append(shown)
    return "\n".join(lines)


def _not_taken(one: Attachment, why: str) -> TakenAttachment:
    return TakenAttachment(
        f"[The person attached {one.name}, which could not be taken: {why}.]",
        complaint=not_taken_words(one.name, why),
    )


def not_taken_words(name: str, why: str) -> str:
    """What its person reads of a file that was not taken. Pure."""
    return speak("I could not take {file}: {why}.", file=name, why=known_sentence(why))


def _no_room(one: Attachment, words: str) -> TakenAttachment:
    """The person reads the reason once, however many files they sent."""
    note = f"[The person attached {one.name}; there was no room for it, so it was not taken. They are told why.]"
    return TakenAttachment(note, complaint=words)


def safe_name(name: str) -> str:
    """A file name without anything that could lead elsewhere, and so short that tools take it with a number and an ending more: they count bytes, of
    which a letter has up to four."""
    plain = re.sub(r"[^\w.+ -]+", "_", Path(name).name).strip(". ")
    return plain[-100:].encode()[-(MAX_NAME_BYTES - len("-999.txt")) :].decode("utf-8", "ignore") or "file"


async def put(workspace: Path, space: Space, name: str, data: bytes, text: bytes) -> tuple[str, str]:
    """Where a file lies in the workspace from now on, and its text, if it has one to be put beside it. Raises `NoRoom`, or `OSError`: what a person says beside a file is
    answered also where no file can be stored."""
    adding = {QuotaKind.WORKSPACE: blocks(len(data)) + blocks(len(text)), QuotaKind.FILES: 2 if text else 1}
    async with space.hold(adding):
        try:
            path = await asyncio.to_thread(save, workspace, name, data)
            return path, await asyncio.to_thread(save, workspace, f"{path}.txt", text) if text else path
        except OSError as error:
            log.warning("attachment.not_kept", folder=str(workspace), error=error.strerror or str(error))
            raise


def save(workspace: Path, name: str, data: bytes) -> str:
    """Write a new file, unless the same is there already, under whatever name; an existing one is never overwritten, nor what a link
    there leads to."""
    try:
        made(workspace)
    except PathRefused as away:
        raise OSError(str(away)) from away
    same = _same(workspace, data)
    if same:
        return same
    plain = safe_name(name)
    stem, dot, ending = plain.rpartition(".")
    if not stem:
        stem, dot, ending = plain, "", ""
    for number in range(1, 1000):
        candidate = plain if number == 1 else f"{stem}-{number}{dot}{ending}"
        with suppress(FileExistsError):
            put_new(workspace / candidate, data)
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
