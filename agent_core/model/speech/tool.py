"""The tool that says something aloud: a sound in the chat, as a voice message where the platform has them.

Keyed as `send_file` is: the sound has a place of its own for each key, so that a call that is begun again says the same.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, QuotaKind, blocks
from agent_core.messages import VOICE_STEM
from agent_core.model.speech.terms import SpeechFailed, paid_by
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.files.whole import write_whole

SPEAK = "speak"
MOST_CHARS = 4_000
"""OpenAI's own limit is 4 096 (https://platform.openai.com/docs/api-reference/audio/createSpeech)."""


class Voice(Protocol):
    """Turns text into speech."""

    async def spoken(self, text: str) -> tuple[bytes, str]:
        """The sound, and its file's ending. Raises `agent_core.model.speech.terms.SpeechFailed`."""
        ...


class Speak:
    """Puts a sound into the outbox."""

    def __init__(self, voice: Callable[[], Voice], spool: Path, seconds: float) -> None:
        """`voice` is made when it is first used; `seconds`: the most that it takes."""
        self._voice = voice
        self._spool = spool
        self._seconds = seconds

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=SPEAK,
            description="Say something aloud: the person gets it as a voice message. Use it only if they want to hear you.",
            parameters={
                "type": "object",
                "properties": {
                    "text": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MOST_CHARS,
                        "description": "Without markup.",
                    }
                },
                "required": ["text"],
                "additionalProperties": False,
            },
            effect=EffectClass.KEYED,
            deadline_seconds=self._seconds + 10,
        )

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        place = self._spool / hashlib.blake2b(context.key.encode(), digest_size=12).hexdigest()
        sent = next(place.glob(f"{VOICE_STEM}.*"), None) if context.again else None
        if sent is None:
            try:
                with paid_by(context.purse):
                    data, ending = await self._voice().spoken(str(arguments["text"]))
            except SpeechFailed as error:
                words = f"It could not be said aloud: {error}. Nothing was sent; write it in its place."
                return ToolOutcome(ToolStatus.FAILED, words)
            sent = place / f"{VOICE_STEM}{ending}"
            async with context.space.hold({QuotaKind.SPOOL: blocks(len(data)) + BLOCK}, place):
                await asyncio.to_thread(write_whole, sent, data)
        text = "It is on its way to the person, as a voice message. If it cannot be delivered, they are told so."
        size = sent.stat().st_size
        return ToolOutcome(ToolStatus.OK, text, facts={"path": sent.name, "bytes": size, "sent_file": str(sent)})
