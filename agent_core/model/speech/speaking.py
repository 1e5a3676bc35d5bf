"""Text to speech: by the endpoint's ``/audio/speech``, or by a program."""

from __future__ import annotations

import base64
from collections.abc import Callable
from math import ceil

import orjson

from agent_core.documents.kinds import FileKind, kind_of
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BYTES_A_TOKEN, CallSpent
from agent_core.model.speech.asking import SpeechRequest, asked
from agent_core.model.speech.hearing import ENDINGS, ran
from agent_core.model.speech.program import SOUND_BYTES
from agent_core.model.speech.terms import TOKENS_A_SECOND, SpeechFailed, SpeechTerms, paid
from agent_core.ports import Clock
from agent_core.workers.pool import Workers

CHARS_A_SECOND = 14
"""Of text that is read out at an ordinary pace."""


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

            async def call() -> tuple[bytes, CallSpent]:
                return (await asked(terms, request, self._clock))[0], CallSpent()

            data = await paid("spoken", terms.model, _most(text), call)
        kind, mime = kind_of(data, "audio/mp4")
        if kind is not FileKind.SOUND:
            raise SpeechFailed("what came is no sound")
        return data, ENDINGS.get(mime, ".mp3")


def _most(text: str) -> CallSpent:
    """What saying it uses, which endpoints do not tell. Pure."""
    seconds = len(text) / CHARS_A_SECOND
    given = ceil(len(text.encode("utf-8", "replace")) / BYTES_A_TOKEN)
    return CallSpent(input_tokens=given + ceil(seconds * TOKENS_A_SECOND), seconds=seconds)
