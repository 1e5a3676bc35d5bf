"""What the text of a reply is made of: visible text, thoughts, calls."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from itertools import groupby
from typing import TypeAlias

from agent_core.records import dataclass


class BrokenReason(StrEnum):
    """Why there is no call although one was begun."""

    CUT_OFF = "cut_off"
    """The text ended before the call did."""
    UNREADABLE = "unreadable"
    """The marks are there, but what they hold is no call: no JSON, no name, or arguments that are no object."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """Text for people. Never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """What the model thinks. Never empty, never shown."""

    text: str


@dataclass(frozen=True, slots=True)
class TakenBack:
    """All visible text before this was a thought: the mark that ends it came without one that begins it."""


@dataclass(frozen=True, slots=True)
class TextCallOpened:
    """The name of a call is known; its arguments may still be on their way."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class TextCall:
    """A whole call."""

    index: int
    """From 0, in order of appearance; broken calls count."""
    name: str
    arguments: str
    """The text of a JSON object."""


@dataclass(frozen=True, slots=True)
class TextCallBroken:
    """A call was begun, and there is none; that is known."""

    index: int
    name: str | None
    raw_chars: int
    """How many characters of it came; shared by the calls of one mark."""
    reason: BrokenReason
    raw: str = ""
    """What stands where its arguments should be, if they cannot be read."""


Piece: TypeAlias = VisibleText | Thought | TakenBack | TextCallOpened | TextCall | TextCallBroken


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """`pieces` with neighbouring texts of a kind made one: the form in which two readings of a text are compared."""
    result: list[Piece] = []
    for kind, group in groupby(pieces, type):
        if kind is VisibleText:
            result.append(VisibleText("".join(piece.text for piece in group if isinstance(piece, VisibleText))))
        elif kind is Thought:
            result.append(Thought("".join(piece.text for piece in group if isinstance(piece, Thought))))
        else:
            result.extend(group)
    return result
