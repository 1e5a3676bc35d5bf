"""What a rehearsed reply is made of: steps that the server performs one after the other."""

from __future__ import annotations

from typing import TypeAlias

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Say:
    text: str
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Show:
    """A picture."""

    url: str


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A tool call; `cut` sends only so many characters of the arguments."""

    name: str
    arguments: str
    cut: int = -1


@dataclass(frozen=True, slots=True)
class Stall:
    """Keeps the connection open and sends nothing but pings, until the client goes away."""


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Breaks the connection without a word."""


@dataclass(frozen=True, slots=True)
class RawBytes:
    data: bytes


@dataclass(frozen=True, slots=True)
class EndReply:
    reason: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """An HTTP error instead of a stream."""

    status: int
    message: str
    code: str = ""
    retry_after: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A body that is no chat completion."""

    body: bytes
    kind: str = "text/html"


Step: TypeAlias = Say | Think | Show | PlayedCall | Stall | BreakOff | RawBytes | EndReply | Refuse | Page
Script: TypeAlias = tuple[Step, ...]
