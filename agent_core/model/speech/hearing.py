"""Speech to text: by the endpoint's ``/audio/transcriptions``, or by a program.

An endpoint is sent the sound as it came, if it is of a kind that such endpoints take, else as Ogg, if ffmpeg is there. What comes back is text or a
reason; a stall is a failure like any other (`asking`).
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from math import ceil

import aiohttp

from agent_core.jsonvalue import Json, read_loosely
from agent_core.limits.budgets import CallSpent
from agent_core.model.speech.asking import SpeechRequest, asked
from agent_core.model.speech.program import TARGET, TEXT_BYTES
from agent_core.model.speech.terms import TOKENS_A_SECOND, SpeechFailed, SpeechTerms, paid
from agent_core.ports import Clock
from agent_core.text.tongue import clause
from agent_core.workers.pool import Job, Workers, WorkerTrouble, WorkFailed

ENDINGS: Mapping[str, str] = {
    "audio/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/mp4": ".m4a",
    "audio/m4a": ".m4a",
    "audio/x-m4a": ".m4a",
    "audio/wav": ".wav",
    "audio/flac": ".flac",
    "audio/webm": ".webm",
    "video/mp4": ".mp4",
    "video/webm": ".webm",
}
"""What endpoints take, by the ending that tells them (https://platform.openai.com/docs/guides/speech-to-text)."""
ANY_ENDING = ".bin"
BYTES_A_SECOND: Mapping[str, int] = {"audio/wav": 16_000, "audio/flac": 16_000, "audio/mpeg": 8_000}
FEWEST_BYTES_A_SECOND = 3_000
"""Of speech as chats record it (Opus, about 24 kbit/s)."""
MOST_SECONDS = 86_400
"""More than that no sound has that is taken."""
OTHER_SOUND = clause("it does not take this kind of sound, and it cannot be made another: {why}")
SLOW = clause("it took longer than {seconds} s")
BUSY = clause("the gateway has too much to do just now")
BROKE = clause("the program for it broke off")
UNREADABLE = clause("what it answers cannot be read")


class Transcriber:
    """Turns speech into text."""

    def __init__(self, terms: SpeechTerms, programs: Workers, clock: Clock) -> None:
        """`programs`: workers that may begin processes."""
        self._terms = terms
        self._programs = programs
        self._clock = clock

    async def heard(self, data: bytes, mime: str) -> str:
        """What is said; empty if nothing is. Raises `SpeechFailed`, and takes at most `SpeechTerms.seconds`."""
        terms = self._terms
        if terms.command:
            found = await ran(self._programs, terms, terms.command, data, {"ending": ENDINGS.get(mime, ANY_ENDING)})
            return str(found["text"])
        ending = ENDINGS.get(mime, "")
        if not ending:
            data, ending, mime = await self._as_ogg(data), ".ogg", "audio/ogg"
        body, kind = await _form(terms, data, f"sound{ending}", mime)
        request = SpeechRequest("/audio/transcriptions", body, kind, TEXT_BYTES)

        async def call() -> tuple[str, CallSpent]:
            answer, said = await asked(terms, request, self._clock)
            return _text_of(answer, said)

        return await paid("heard", terms.model, _most(len(data), mime), call)

    async def _as_ogg(self, data: bytes) -> bytes:
        command = ("ffmpeg", "-v", "error", "-protocol_whitelist", "file", "-i", "{file}", "-f", "wav", "{out}")
        more: dict[str, Json] = {"ending": ANY_ENDING, "sound": True, "into": ".ogg"}
        try:
            return base64.b64decode(str((await ran(self._programs, self._terms, command, data, more))["sound"]))
        except SpeechFailed as error:
            raise SpeechFailed(OTHER_SOUND.format(why=error)) from error


async def ran(
    programs: Workers, terms: SpeechTerms, command: tuple[str, ...], data: bytes, more: Mapping[str, Json]
) -> Mapping[str, Json]:
    """What a program gives, see `agent_core.model.speech.program`. Raises `SpeechFailed`."""
    request: dict[str, Json] = {"command": list(command), "seconds": terms.seconds, **more}
    job = Job(TARGET, terms.seconds + 3, answer_bytes=32_000_000)
    try:
        found = await programs.run(job, request, data)
    except WorkFailed as error:
        raise SpeechFailed(_worker_words(error.trouble, terms.seconds)) from error
    assert isinstance(found, dict)
    if why := found.get("why"):
        raise SpeechFailed(str(why))
    return found


def _worker_words(trouble: WorkerTrouble, seconds: float) -> str:
    match trouble:
        case WorkerTrouble.SLOW:
            return SLOW.format(seconds=f"{seconds:g}")
        case WorkerTrouble.BUSY | WorkerTrouble.CLOSED | WorkerTrouble.NO_PROCESS:
            return BUSY
        case _:
            return BROKE


async def _form(terms: SpeechTerms, data: bytes, name: str, mime: str) -> tuple[bytes, str]:
    """The request, and its type."""
    form = aiohttp.MultipartWriter("form-data", boundary=f"outspoken{secrets.token_hex(16)}")
    for key, value in (("model", terms.model), ("response_format", "json"), ("language", terms.language)):
        if value:
            form.append(value).set_content_disposition("form-data", name=key)
    form.append(data, {"Content-Type": mime}).set_content_disposition("form-data", name="file", filename=name)
    return await form.as_bytes(), form.content_type


def _most(size: int, mime: str) -> CallSpent:
    """What listening to a sound may use: its length is guessed from its size, and is seldom more. Pure."""
    seconds = size / BYTES_A_SECOND.get(mime, FEWEST_BYTES_A_SECOND)
    tokens = ceil(seconds * TOKENS_A_SECOND)
    return CallSpent(input_tokens=tokens, output_tokens=tokens // 2, seconds=seconds)


def _spent(found: Json) -> CallSpent:
    """What an endpoint says that it used: tokens, or seconds (https://platform.openai.com/docs/api-reference/audio). Pure."""
    told = found.get("usage") if isinstance(found, dict) else None
    match told:
        case {"type": "duration", "seconds": int() | float() as seconds} if 0 < seconds < MOST_SECONDS:
            return CallSpent(seconds=float(seconds))
        case {"input_tokens": int(given), "output_tokens": int(made)} if given >= 0 and made >= 0:
            return CallSpent(input_tokens=given, output_tokens=made)
        case _:
            return CallSpent()


def _text_of(answer: bytes, said: str) -> tuple[str, CallSpent]:
    """What an endpoint says: JSON with a ``text``, or the text itself; and what that used. Raises `SpeechFailed`."""
    try:
        found = read_loosely(answer)
    except ValueError:
        if "text/plain" in said:
            return answer.decode("utf-8", "replace").strip(), CallSpent()
        found = None
    text = found.get("text") if isinstance(found, dict) else None
    if not isinstance(text, str):
        raise SpeechFailed(UNREADABLE)
    return text.strip(), _spent(found)
