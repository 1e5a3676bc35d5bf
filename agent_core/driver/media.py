"""Keeps the pictures and the sound of a reply as files, beside those that tools send: in the journal stands where they lie.

Each lies in a place of its own, named by turn and model call, and is there as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import structlog

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, QuotaKind, blocks
from agent_core.model.made import DATA, FILES
from agent_core.records import dataclass
from agent_core.tools.base import UNLIMITED, NoRoom, Space
from agent_core.tools.files.whole import write_whole

log = structlog.get_logger("turn")
SOUND = "audio/wav"
"""What is taken for it where nobody says more: what begins as no known form of sound is OpenAI's bare samples."""
_BEGINNINGS = {
    b"RIFF": "audio/wav",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}


@dataclass(frozen=True, slots=True)
class MediaKeeper:
    """Where the files of one turn go, and who has to have room for them."""

    folder: Path
    turn: str
    space: Callable[[], Space] = lambda: UNLIMITED
    """Asked by the few replies that have any."""

    async def keep(self, made: dict[str, Json], number: int) -> dict[str, Json]:
        """The same with the data in files; `number`: of the model call."""
        files = made.get(FILES)
        if not isinstance(files, list):
            return made
        kept: list[Json] = []
        for index, entry in enumerate(files):
            kept.append(await self._one(entry, f"{number}-{index}") if isinstance(entry, dict) else entry)
        return {**made, FILES: kept}

    async def _one(self, entry: dict[str, Json], name: str) -> Json:
        pieces = entry.get(DATA)
        bare = {key: value for key, value in entry.items() if key != DATA}
        if not isinstance(pieces, list):
            return bare
        try:
            data = await asyncio.to_thread(_decoded, [str(piece) for piece in pieces])
            mime = str(bare.get("mime") or _sound_of(data))
            path = self._place(name) / f"{bare.get('kind')}{mimetypes.guess_extension(mime) or '.bin'}"
            async with self.space().hold({QuotaKind.SPOOL: blocks(len(data)) + BLOCK}, path.parent):
                await asyncio.to_thread(write_whole, path, data)
        except (OSError, NoRoom, ValueError) as error:  # what a provider takes for base64 may be none, or no ASCII
            log.warning("media.not_kept", turn=self.turn, kind=str(bare.get("kind")), error=type(error).__name__)
            return {**bare, "lost": True}
        return {**bare, "mime": mime, "bytes": len(data), "file": str(path)}

    def _place(self, name: str) -> Path:
        return self.folder / hashlib.blake2b(f"{self.turn}:made{name}".encode(), digest_size=12).hexdigest()


def _decoded(pieces: list[str]) -> bytes:
    return b"".join(b64decode(piece) for piece in pieces)


def _sound_of(data: bytes) -> str:
    return next((mime for begins, mime in _BEGINNINGS.items() if data.startswith(begins)), "audio/pcm")
