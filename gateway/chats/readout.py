"""What a model is told of a file that came with a message, and its person where nobody here can tell what is in it.

Whatever it is, there is a text for the model or a reason for the person: which of them, is decided here; reading is done by a worker
(`agent_core.documents`), listening by `agent_core.model.speech`.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

import structlog

from agent_core.documents.kinds import FileKind, kind_of
from agent_core.documents.reading import JOB
from agent_core.jsonvalue import Json
from agent_core.messages import GATEWAY_PREFIX
from agent_core.records import dataclass
from agent_core.text.tongue import clause
from agent_core.workers.pool import Workers, WorkerTrouble, WorkFailed

log = structlog.get_logger("chat")

PICTURE_BYTES = 5 * 1024 * 1024
"""A larger one is kept as a file, and not put before the model."""
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
"""Those that models take."""
SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
"""Those that models take, and what they are called there."""
NATIVE_BYTES = 10 * 1024 * 1024
"""A larger PDF or sound is not put before the model as it is."""
SHOWN_CHARS = 6_000
"""Of one file's text the model reads at once."""
SHOWN_IN_ALL = 18_000
"""Of all files of one message."""
NO_EYES = clause("it is a video, and those cannot be watched here")
NO_EARS = clause("it is a sound, and nobody has set up here what turns speech into text. Please write it")
NO_PICTURES = clause("the model here sees no pictures")
OTHER_KIND = clause("models do not take pictures of this kind ({kind}); as JPEG or PNG they do")
LARGE_PICTURE = clause("it is a picture of more than {size} MB")
NOT_HEARD = clause("it has to be listened to, and that failed: {why}")
NO_WORDS_HEARD = clause("no words were heard in it")
SLOW = clause("reading it took longer than {seconds} s")
MEMORY = clause("reading it takes more memory than a file is given here")
BUSY = clause("the gateway is too busy to read it just now. Please send it again later")
BUG = clause("it could not be read, because of an internal error")


class Listener(Protocol):
    """Turns speech into text."""

    async def heard(self, data: bytes, mime: str) -> str:
        """What is said; empty if nothing is. Raises `agent_core.model.speech.terms.SpeechFailed`."""
        ...


@dataclass(frozen=True, slots=True)
class Readout:
    """What was found in a file."""

    kind: FileKind
    mime: str
    text: str = ""
    about: str = ""
    """What it is, in a few words."""
    plain: bool = False
    """The file itself is that text."""
    why: str = ""
    """Why the model is shown nothing of it, for the person."""
    deaf: str = ""
    """Why nothing can be listened to just now."""
    native: bool = False
    """The model is given it as it is: a picture for its eyes, a sound for its ears."""


class FileReaders:
    """Of the gateway."""

    def __init__(self, workers: Workers, ears: Listener | None = None, *, takes: Collection[FileKind]) -> None:
        self._workers = workers
        self._ears = ears
        self._takes = takes

    async def read(self, data: bytes, name: str, claimed: str, owner: object, deaf: str = "") -> Readout:
        """What is in a file. Never raises for what the file holds. `deaf`: why it is not listened to, as the one before it could not be."""
        kind, mime = kind_of(data, claimed)
        bare = Readout(kind, mime)
        match kind:
            case FileKind.PICTURE:
                why = self._not_seen(mime, len(data))
                return replace(bare, about=mime, native=not why, why=why)
            case FileKind.PDF if kind in self._takes and len(data) <= NATIVE_BYTES:
                return replace(bare, about="PDF", native=True)
            case FileKind.SOUND if kind in self._takes and mime in SOUNDS and len(data) <= NATIVE_BYTES:
                return replace(bare, about="a sound", native=True)
            case FileKind.SOUND:
                return await self._heard(replace(bare, about="a sound"), data, deaf, NO_EARS)
            case FileKind.VIDEO:
                return await self._heard(replace(bare, about="a video"), data, deaf, NO_EYES)
            case _:
                return await self._told(bare, data, name, owner)

    def _not_seen(self, mime: str, size: int) -> str:
        if FileKind.PICTURE not in self._takes:
            return NO_PICTURES
        if mime not in PICTURES:
            return OTHER_KIND.format(kind=mime.partition("/")[2].upper())
        return LARGE_PICTURE.format(size=PICTURE_BYTES // 2**20) if size > PICTURE_BYTES else ""

    async def _heard(self, bare: Readout, data: bytes, deaf: str, nobody: str) -> Readout:
        if self._ears is None or deaf:
            return replace(bare, why=deaf or nobody)
        from agent_core.model.speech.terms import SpeechFailed

        try:
            text = await self._ears.heard(data, bare.mime)
        except SpeechFailed as error:
            why = NOT_HEARD.format(why=error)
            return replace(bare, why=why, deaf=why if error.lasts else "")
        about = f"{bare.about}; this is what is said in it, transcribed by a machine"
        return replace(bare, about=about, text=text, why="" if text else NO_WORDS_HEARD)

    async def _told(self, bare: Readout, data: bytes, name: str, owner: object) -> Readout:
        try:
            found = await self._workers.run(JOB, {}, data, owner=owner)
        except WorkFailed as error:
            log.warning("attachment.not_read", name=name, error=error.trouble.value)
            return replace(bare, why=_trouble_words(error.trouble))
        assert isinstance(found, dict)
        if why := str(found.get("why", "")):
            return replace(bare, why=why)
        return replace(bare, text=str(found["text"]), about=str(found["about"]), plain=found["plain"] is True)


def _trouble_words(trouble: WorkerTrouble) -> str:
    match trouble:
        case WorkerTrouble.SLOW:
            return SLOW.format(seconds=f"{JOB.seconds:g}")
        case WorkerTrouble.MEMORY | WorkerTrouble.SIZE | WorkerTrouble.DIED | WorkerTrouble.DEPTH:
            return MEMORY
        case WorkerTrouble.BUSY | WorkerTrouble.CLOSED | WorkerTrouble.NO_PROCESS:
            return BUSY
        case WorkerTrouble.BUG | WorkerTrouble.UNSENDABLE:
            return BUG


def quoted(name: str, text: str, room: int, beside: str) -> str:
    """As much of a file's text as the model reads at once: `room` characters; `beside` is where the rest is, if it is kept. Pure."""
    clean = text.replace(GATEWAY_PREFIX, "(outspoken)").strip()
    if len(clean) <= room:
        return f"This is its text:\n{clean}\n(end of {name})"
    if room <= 0:
        return f"Its text is in {beside}: read_file." if beside else "Its text is left out: there is no room for it."
    rest = f"; all of it is in {beside}: read_file" if beside else "; the rest is not kept"
    return f"It begins like this:\n{clean[:room]}\n(only the first {room} of {len(clean)} characters{rest})"


def part_of(found: Readout, name: str, data: bytes) -> Json:
    """What the model is given as it is, as a part of a message. Pure."""
    encoded = base64.b64encode(data).decode()
    match found.kind:
        case FileKind.SOUND:
            return {"type": "input_audio", "input_audio": {"data": encoded, "format": SOUNDS[found.mime]}}
        case FileKind.PDF:
            return {"type": "file", "file": {"filename": name, "file_data": f"data:{found.mime};base64,{encoded}"}}
        case _:
            return {"type": "image_url", "image_url": {"url": f"data:{found.mime};base64,{encoded}"}}


def parts_of(words: str, parts: list[Json]) -> Json:
    """A message's content: its words, and what the model is given as it is. Pure."""
    return [{"type": "text", "text": words}, *parts] if parts else words
