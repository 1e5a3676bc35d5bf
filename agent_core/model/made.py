"""What a reply holds beside text, thoughts and calls: pictures, sound, sources, probabilities. Pure.

| what | where | who |
|---|---|---|
| pictures | ``images`` of a delta or message, or ``image_url`` parts of its content | OpenRouter, LiteLLM (Gemini, GPT) |
| sound | ``audio`` of a delta or message: its data in pieces, each base64 of its own, and the words that are spoken | OpenAI |
| sources | ``annotations`` | OpenAI, OpenRouter |
| probabilities | ``logprobs`` of a choice | OpenAI, vLLM, llama.cpp |

It is bounded: what does not fit is left out whole, and that is said. Words that are spoken are text as well, so that whoever hears nothing reads
them; a reply that is nothing but pictures or sound without words gets a word that says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

MOST_FILES = 16
FILE_CHARS = 32 * 1024 * 1024
"""Of all pictures and sound of a reply, as base64."""
BESIDE_BYTES = 1024 * 1024
"""The same of sources and probabilities."""
FILES, DATA, LEFT_OUT = "files", "data", "left_out"


@dataclass(slots=True)
class MadeKeeper:
    """Collects it from one reply."""

    size: int = 0
    """How much has come; it grows with each piece."""
    _files: tuple[dict[str, Json], ...] = ()
    _data: tuple[list[Json], ...] = ()
    _audio: int = -1
    """Which of the files is the sound."""
    _lists: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    _left_out: tuple[str, ...] = ()
    _chars: int = 0
    _bytes: int = 0

    def delta(self, delta: Mapping[str, Json]) -> str:
        """See what a delta or message has of it; the words that are spoken in it."""
        images = delta.get("images")
        for image in images if isinstance(images, list) else ():
            self.part(image)
        self._add("annotations", delta.get("annotations"))
        audio = delta.get("audio")
        return self._sound(audio) if isinstance(audio, dict) else ""

    def part(self, part: Json) -> None:
        """A picture, as a part of content has it."""
        holder = part.get("image_url") if isinstance(part, dict) else None
        url = holder.get("url") if isinstance(holder, dict) else holder
        if not isinstance(url, str) or not url:
            return
        head, comma, data = url.partition(",")
        if url.startswith("data:") and comma:
            self._file({"kind": "image", "mime": head[5:].split(";")[0] or "image/png"}, data)
        elif url.startswith(("https://", "http://")) and len(url) <= 4_096:
            self._file({"kind": "image", "url": url}, "")

    def logprobs(self, found: Json) -> None:
        """Probabilities of a choice."""
        if isinstance(found, dict):
            for name in ("content", "refusal"):
                self._add(f"logprobs.{name}", found.get(name))

    def _sound(self, audio: Mapping[str, Json]) -> str:
        data, words = audio.get(DATA), audio.get("transcript")
        if self._audio < 0 and (data or words or audio.get("id")):
            self._audio = len(self._files)
            self._file({"kind": "audio"}, "")
        if 0 <= self._audio < len(self._files):
            sound = self._files[self._audio]
            for name in ("id", "expires_at"):
                if isinstance(audio.get(name), str | int):
                    sound[name] = audio[name]
            if isinstance(words, str):
                sound["transcript"] = f"{sound.get('transcript') or ''}{words}"
            if isinstance(data, str) and data and self._room(len(data), "audio"):
                self._data[self._audio].append(data)
        self.size += 1
        return words if isinstance(words, str) else ""

    def _file(self, entry: dict[str, Json], data: str) -> None:
        self.size += max(1, len(data))
        if len(self._files) >= MOST_FILES:
            self._leave_out(str(entry["kind"]))
        elif self._room(len(data), str(entry["kind"])):
            self._files += (entry,)
            pieces: list[Json] = [data] if data else []
            self._data += (pieces,)

    def _room(self, chars: int, kind: str) -> bool:
        if self._chars + chars > FILE_CHARS:
            self._leave_out(kind)
            return False
        self._chars += chars
        return True

    def _leave_out(self, kind: str) -> None:
        if kind not in self._left_out:
            self._left_out += (kind,)

    def _add(self, name: str, found: Json) -> None:
        if not isinstance(found, list) or not found or name in self._left_out:
            return
        try:
            self._bytes += len(orjson.dumps(found))
        except TypeError:
            self._bytes = BESIDE_BYTES + 1
        self.size += 1
        if self._bytes > BESIDE_BYTES:
            self._lists.pop(name, None)
            self._leave_out(name)
        else:
            self._lists.setdefault(name, []).extend(found)

    @property
    def words(self) -> str:
        """What stands for pictures and sound where nothing is said."""
        kinds = [str(entry["kind"]) for entry in self._files]
        pictures, sound = kinds.count("image"), "audio" in kinds
        said = [f"{pictures} pictures" if pictures > 1 else "a picture"] if pictures else []
        return f"({' and '.join([*said, *(['sound'] if sound else [])])})" if kinds else ""

    def kept(self) -> dict[str, Json]:
        """All of it, the data of files as lists of base64 in `DATA`; empty if there is nothing."""
        found: dict[str, Json] = {}
        if self._files:
            files: list[Json] = [
                {**entry, DATA: data} if data else entry for entry, data in zip(self._files, self._data, strict=True)
            ]
            found[FILES] = files
        found |= self._lists
        if self._left_out:
            found[LEFT_OUT] = list(self._left_out)
        return found
