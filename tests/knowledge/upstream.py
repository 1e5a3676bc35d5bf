"""A provider as a script: what each request leads to, as a function of the request and of how many there were. Played against real turns.

The model has one task, to write something long with a tool; it sends it whole, or in pieces if the request advises that, or as text if the tool
is not offered. What a `Fault` concerns goes wrong as its `Kind` says. The scripts know no malice: whether a request fails depends on what is in
it (which model, advised or not, the tool offered or not, before or after tools, how large the call is) and on how many requests of that kind
there were, of which only the first few can fail. A model that has begun in pieces goes on in pieces.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from agent_core.causes import BreakCause
from agent_core.messages import Message, text_of
from agent_core.turn.effects import CallModel
from agent_core.turn.events import (
    CallBroke,
    Event,
    ReasoningArrived,
    ReplyFinished,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
)

WRITE = "write"
WHOLE, PIECE, PIECES = 12_000, 1_500, 3
LONG_SECONDS, HURRIED_SECONDS = 120.0, 60.0


class Kind(StrEnum):
    """How a reply goes wrong."""

    SILENT = "silent"
    STALL_IN_CALL = "stall in call"
    DROP_IN_CALL = "drop in call"
    HALF_CALL = "half a call"
    LENGTH_IN_CALL = "length in call"
    DROP_IN_TEXT = "drop in text"
    STALL_IN_TEXT = "stall in text"
    LENGTH_IN_TEXT = "length in text"
    EMPTY = "empty"
    THINKING = "thinking"
    PROMISE = "promise"
    SERVER_ERROR = "500"
    RATE_LIMIT = "429"
    REFUSED = "refused"
    BAD_REQUEST = "400"
    NOT_FOUND = "404"
    UNAUTHORISED = "401"
    OVERFLOW = "overflow"


IN_CALL = (Kind.STALL_IN_CALL, Kind.DROP_IN_CALL, Kind.HALF_CALL, Kind.LENGTH_IN_CALL)
SLOW = (Kind.SILENT, Kind.STALL_IN_CALL, Kind.STALL_IN_TEXT)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request, as far as it matters."""

    model: str
    advised: bool
    offered: bool
    after_tools: bool
    chars: int
    """Of the call that the model would send; 0 for text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Which requests go wrong, and how. None means: whatever it is."""

    kind: Kind
    model: str | None = None
    advised: bool | None = None
    offered: bool | None = None
    after_tools: bool | None = None
    over: int = -1
    """Only replies with a call of more characters; -1: all."""
    first: int = 1_000
    """Only the first so many of them."""

    def concerns(self, seen: Seen) -> bool:
        if self.kind in IN_CALL and not seen.chars:
            return False
        return (
            self.model in (None, seen.model)
            and self.advised in (None, seen.advised)
            and self.offered in (None, seen.offered)
            and self.after_tools in (None, seen.after_tools)
            and seen.chars > self.over
        )


@dataclass
class Upstream:
    """Plays a script for one turn."""

    faults: Sequence[Fault]
    met: Counter[int] = field(default_factory=Counter[int])
    """How many requests each fault concerned."""
    calls: int = 0
    failed: int = 0
    stalled_seconds: float = 0
    """How long it was silent in all."""
    obeys: bool = True
    """The model sends pieces if it is advised to."""
    pieces: int | None = None
    """It sends pieces by itself, and so many of the first arrive whatever is ill. None: it does not."""

    def reply(
        self, call: CallModel, messages: Sequence[Message], *, offered: bool, hurried: bool, now: int
    ) -> list[Event]:
        """What comes of a request."""
        self.calls += 1
        seen = self._seen(call, messages, offered)
        fault = self._fault(seen) if self.calls > (self.pieces or 0) else None
        if fault is None:
            return self._well(call, seen, messages, now)
        self.failed += 1
        seconds = (HURRIED_SECONDS if hurried else LONG_SECONDS) if fault.kind in SLOW else 0.0
        self.stalled_seconds += seconds
        return self._ill(fault.kind, call, seen, now + round(seconds * 1000), seconds)

    def _seen(self, call: CallModel, messages: Sequence[Message], offered: bool) -> Seen:
        advised = self.obeys and any(
            "smaller pieces" in text_of(m.get("content")) for m in messages if m["role"] != "system"
        )
        done = sum(int(text_of(m.get("content")).split()[0]) for m in messages if m["role"] == "tool")
        offered = offered and call.offer_tools
        in_pieces = advised or done or self.pieces is not None  # it goes on as it began
        chars = 0 if done >= WHOLE or not offered else PIECE if in_pieces else WHOLE
        return Seen(call.route.model, advised, offered, any(m["role"] == "tool" for m in messages), chars)

    def _fault(self, seen: Seen) -> Fault | None:
        for number, fault in enumerate(self.faults):
            if fault.concerns(seen):
                self.met[number] += 1
                return fault if self.met[number] <= fault.first else None
        return None

    def _well(self, call: CallModel, seen: Seen, messages: Sequence[Message], now: int) -> list[Event]:
        if not seen.chars:
            return [TextArrived(at=now, text="Here it is."), ReplyFinished(at=now, reason="stop")]
        return [*_call(call, seen.chars, now), ReplyFinished(at=now, reason="tool_calls")]

    def _ill(self, kind: Kind, call: CallModel, seen: Seen, now: int, seconds: float) -> list[Event]:
        text = TextArrived(at=now, text="Well. " if not call.partial else "So. ")
        match kind:
            case Kind.SILENT:
                return [CallBroke(at=now, cause=BreakCause.NO_CONTENT, waited_seconds=seconds)]
            case Kind.STALL_IN_CALL:
                return [
                    *_call(call, seen.chars, now, 0.6),
                    CallBroke(at=now, cause=BreakCause.STALLED, waited_seconds=seconds),
                ]
            case Kind.DROP_IN_CALL:
                return [*_call(call, seen.chars, now, 0.6), CallBroke(at=now, cause=BreakCause.DROPPED)]
            case Kind.HALF_CALL:
                return [*_call(call, seen.chars, now, 0.6), ReplyFinished(at=now, reason="stop")]
            case Kind.LENGTH_IN_CALL:
                return [*_call(call, seen.chars, now, 0.6), ReplyFinished(at=now, reason="length")]
            case Kind.DROP_IN_TEXT:
                return [text, CallBroke(at=now, cause=BreakCause.DROPPED)]
            case Kind.STALL_IN_TEXT:
                return [text, CallBroke(at=now, cause=BreakCause.STALLED, waited_seconds=seconds)]
            case Kind.LENGTH_IN_TEXT:
                return [text, ReplyFinished(at=now, reason="length")]
            case Kind.EMPTY:
                return [ReplyFinished(at=now, reason="stop")]
            case Kind.THINKING:
                return [ReasoningArrived(at=now, text="Let me see."), ReplyFinished(at=now, reason="stop")]
            case Kind.PROMISE:
                return [TextArrived(at=now, text="Now dispatching task 5:"), ReplyFinished(at=now, reason="stop")]
            case Kind.REFUSED:
                return [ReplyFinished(at=now, reason="content_filter")]
            case _:
                cause, status = _HTTP[kind]
                return [CallBroke(at=now, cause=cause, status=status)]


_HTTP = {
    Kind.SERVER_ERROR: (BreakCause.SERVER_ERROR, 500),
    Kind.RATE_LIMIT: (BreakCause.RATE_LIMITED, 429),
    Kind.BAD_REQUEST: (BreakCause.BAD_REQUEST, 400),
    Kind.NOT_FOUND: (BreakCause.NOT_FOUND, 404),
    Kind.UNAUTHORISED: (BreakCause.UNAUTHORISED, 401),
    Kind.OVERFLOW: (BreakCause.CONTEXT_OVERFLOW, 400),
}


def _call(call: CallModel, chars: int, now: int, share: float = 1.0) -> list[Event]:
    arguments = json.dumps({"text": "x" * chars})
    return [
        ToolCallNamed(at=now, index=0, call=f"k{call.number}", name=WRITE),
        ToolArgumentsArrived(at=now, index=0, text=arguments[: round(len(arguments) * share)]),
    ]


def written(arguments: str) -> int:
    """How much of the task a call does: pieces are shorter than what they are pieces of, so that there are few."""
    return len(arguments) * (1 if len(arguments) >= WHOLE else PIECES)


def illnesses(draw: random.Random, models: Sequence[str]) -> tuple[Fault, ...]:
    """Of all models, or of one, several at once."""
    return tuple(_fault(draw, draw.choice((None, *models))) for _ in range(draw.randint(1, 4)))


def _fault(draw: random.Random, model: str | None) -> Fault:
    maybe = (None, None, True, False)
    return Fault(
        draw.choice(list(Kind)),
        model=model,
        advised=draw.choice(maybe),
        offered=draw.choice((None, None, None, True)),
        after_tools=draw.choice(maybe),
        over=draw.choice((-1, -1, 0, 1_000, 5_000)),
        first=draw.choice((1, 1, 2, 3, 4, 1_000)),
    )
