"""Text to speech: by the endpoint's ``/audio/speech``, or by a program."""

from __future__ import annotations

import base64
from collections.abc import Callable

import orjson

from agent_core.documents.kinds import FileKind, kind_of
from agent_core.jsonvalue import Json
from agent_core.model.speech.asking import SpeechRequest, asked
from agent_core.model.speech.hearing import ENDINGS, ran
from agent_core.model.speech.program import SOUND_BYTES
from agent_core.model.speech.terms import SpeechFailed, SpeechTerms
from agent_core.ports import Clock
from agent_core.workers.pool import Workers


class Speaker:
    """Turns text into speech."""

    def __init__(self, terms: SpeechTerms, programs: Callable[[], Workers], clock: Clock) -> None:
        self._terms = terms
        self._programs = programs
        self._clock = clock

    async def spoken(self, text: str) -> tuple[bytes, str]:
        """The sound, and its file's ending. Raises `SpeechFailed`, and takes at most `SpeechTerms.seconds`."""
        terms = self._terms
        if terms.command:
            more: dict[str, Json] = {"text": text, "sound": True, "into": ".ogg"}
            found = await ran(self._programs(), terms, terms.command, b"", more)
            data = base64.b64decode(str(found["sound"]))
        else:
            body = {"model": terms.model, "input": text, "voice": terms.voice, "response_format": "opus"}
            request = SpeechRequest("/audio/speech", orjson.dumps(body), "application/json", SOUND_BYTES)
            data, _ = await asked(terms, request, self._clock)
        kind, mime = kind_of(data, "audio/mp4")
        if kind is not FileKind.SOUND:
            raise SpeechFailed("what came is no sound")
        return data, ENDINGS.get(mime, ".mp3")
