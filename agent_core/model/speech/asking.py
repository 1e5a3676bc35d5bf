"""One request to an endpoint for sound, and another if it failed in a way that passes.

Whatever an endpoint does, this ends within `SpeechTerms.seconds`, and each try when nothing has come for `stall_seconds`: as with a model, a
connection that is open says nothing. What is said of the last failure is for a person; what the server said goes to the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import random

import structlog

from agent_core.causes import BreakCause, cause_words
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import size_words
from agent_core.model.failures import rejection
from agent_core.model.pauses import asked_pause
from agent_core.model.reach import Theirs, TransportBroke, reason
from agent_core.model.speech.terms import SpeechFailed, SpeechTerms
from agent_core.model.transport import ModelLine, RequestNotTaken
from agent_core.patience import Limit
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import SPEECH

log = structlog.get_logger("speech")

_PASSES = frozenset(
    {
        BreakCause.NO_CONTENT,
        BreakCause.STALLED,
        BreakCause.SERVER_ERROR,
        BreakCause.RATE_LIMITED,
        BreakCause.DROPPED,
        BreakCause.NOT_CONNECTED,
        BreakCause.CONNECTION_REFUSED,
        BreakCause.UNREACHABLE,
        BreakCause.GARBAGE,
    }
)
"""What may be otherwise in a moment."""


class SpeechBroke(Exception):
    """A try that came to nothing."""

    def __init__(self, cause: BreakCause, *, pause: float = 0.0, detail: str = "", **facts: float) -> None:
        super().__init__(cause.value)
        self.cause = cause
        seconds, came = facts.get("seconds", 0), int(facts.get("came", 0))
        shown = size_words(came) if came else ""
        self.words = cause_words(cause, seconds=seconds, status=int(facts.get("status", 0)), detail=shown)
        self.passes = cause in _PASSES
        self.pause = pause
        """Seconds that it asks to wait."""
        self.detail = detail
        """For the log."""


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """What an endpoint for sound is asked."""

    path: str
    body: bytes
    kind: str
    """The body's type."""
    most_bytes: int
    """That are taken of an answer."""


async def asked(terms: SpeechTerms, request: SpeechRequest, clock: Clock) -> tuple[bytes, str]:
    """What the endpoint answers, and of what type it says that it is. Raises `SpeechFailed`, within `terms.seconds`."""
    until = clock.monotonic() + terms.seconds
    for attempt in range(1, SPEECH.attempts + 1):
        try:
            return await _tried(terms, request, until - clock.monotonic(), clock)
        except SpeechBroke as broke:
            pause = max(broke.pause, SPEECH.seconds(attempt, random()))  # noqa: S311 - nothing secret
            log.warning("speech.failed", path=request.path, attempt=attempt, words=broke.words, error=broke.detail)
            if not broke.passes or SPEECH.over(attempt) or clock.monotonic() + pause + 1 > until:
                tries = f" (tried {attempt} times)" if attempt > 1 else ""
                raise SpeechFailed(f"{broke.words}{tries}", cause=broke.cause) from broke
        await asyncio.sleep(pause)
    raise AssertionError


async def _tried(terms: SpeechTerms, request: SpeechRequest, left: float, clock: Clock) -> tuple[bytes, str]:
    """One try, of `left` seconds at most. Raises `SpeechBroke`."""
    headers = {"User-Agent": "outspoken", **({"Authorization": f"Bearer {terms.key}"} if terms.key else {})}
    headers |= {**terms.headers, "Content-Type": request.kind, "Accept-Encoding": "identity"}
    stall = min(terms.stall_seconds, left)
    try:
        with Theirs():
            line = ModelLine(f"{terms.url}{request.path}", headers)
    except TransportBroke as error:
        raise _lost(error) from error
    found, over = bytearray(), asyncio.get_running_loop().time() + left
    try:
        async with Limit(stall) as limit, line.asked(request.body, terms.connect_seconds) as answer:
            while (piece := await answer.next()) is not None:
                stall = min(terms.stall_seconds, over - asyncio.get_running_loop().time())
                limit.move(stall)
                found += piece
                if len(found) > request.most_bytes:
                    raise SpeechBroke(BreakCause.TOO_LONG)
            return bytes(found), answer.headers.get("content-type", "")
    except TimeoutError as error:
        if not found:
            raise SpeechBroke(BreakCause.NO_CONTENT, seconds=stall) from error
        if stall < terms.stall_seconds:  # not quiet, and not at its end either
            raise SpeechBroke(BreakCause.TOO_SLOW, seconds=left, came=len(found)) from error
        raise SpeechBroke(BreakCause.STALLED, seconds=stall) from error
    except RequestNotTaken as error:
        raise _refused(error.status, error.body, error.headers, clock.now_ms()) from error
    except TransportBroke as error:
        raise _lost(error) from error
    finally:
        await line.aclose()


def _lost(error: TransportBroke) -> SpeechBroke:
    cause, detail = reason(error.__cause__ or error)
    return SpeechBroke(cause, detail=detail)


def _refused(status: int, body: Json, headers: Mapping[str, str], now_ms: int) -> SpeechBroke:
    said = rejection(status, body)
    pause = asked_pause({name.lower(): value for name, value in headers.items()}, body, now_ms)
    return SpeechBroke(said.cause, pause=pause, detail=said.detail, status=status)
