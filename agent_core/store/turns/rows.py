"""Turns, their journals and their tool calls, as they are handed in and read back.

The store knows no event types: a journal row is a number, a kind, UTF-8 JSON as bytes, and a time in milliseconds.
"""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass, later
from agent_core.text.tongue import sentence


class TurnState(StrEnum):
    """Open until its exit is stored."""

    OPEN = "open"
    CLOSED = "closed"


class CallState(StrEnum):
    """How far a tool call got. How it came out, the journal says."""

    INTENDED = "intended"
    """It may run from here on, and may have run."""


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One event of a turn, as it is stored."""

    seq: int
    """Position in the turn's journal, from 0, without holes."""
    kind: str
    body: bytes
    """UTF-8 JSON. NUL and anything else survives: the store does not look inside."""
    at: int
    """Milliseconds since the Unix epoch."""


def untimed(body: bytes, at: int) -> bytes:
    """The body of a row of that time as it is stored: the time, with which nearly every body begins, is in a column of its own."""
    beginning = b'{"at":%d' % at
    size = len(beginning)
    return body[size:] if body[:size] == beginning and body[size : size + 1] in REST else body


def timed(stored: bytes, at: int) -> bytes:
    """The body that is stored of a row of that time, as it was handed in."""
    return b'{"at":%d%s' % (at, stored) if stored[:1] in REST else stored


REST = (b",", b"}")
"""How a body begins that is stored without its time, and no JSON does."""


ROWS_A_TURN = 2**20
"""So many rows a journal can have."""
TAKEN_BACK = 1
"""A person took the turn back."""
ON_ANOTHER_BRANCH = 2
"""The conversation shows another version of the turn, or of one before it."""
FORGOTTEN = sentence("no longer kept: somebody asked in it who wanted to be forgotten")
"""Why the journal of such a turn is not there any more."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A stored turn."""

    turn: str
    session: str
    number: int
    """Counts the turns of the session, from 1."""
    state: TurnState
    exit: str | None
    opened_at: int
    closed_at: int | None
    deadline: int
    undone: int = later(0)
    """`TAKEN_BACK` or `ON_ANOTHER_BRANCH`: it is not put before the model; 0: it is."""
    input_tokens: int = later(0)
    output_tokens: int = later(0)
    suspicion: int = later(0)
    """How often it was taken up after a death, without progress since."""
    people: str = later("")
    """Who asked it, as JSON."""
    removed: str = later("")
    """Why its journal is not there any more, in words; empty if it is."""
    first_message: int = later(0)
    """The number of the first message that it answers, and of no other turn: its journal is found by it. Below zero for turns of older
    versions whose messages were not kept any more."""
    last_message: int = later(0)
    """The number of the last message that it began with."""
    model: str = later("")
    """Which answered last; empty while it is open, and of turns of older versions."""
    key: str = later("")
    """The name of the key of the API by which it was asked, likewise."""
    follows: int = later(-1)
    """The number of the turn that it follows, 0 at the beginning of the conversation; -1: the one before it."""


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """Where a turn stands in its conversation, which may have branches."""

    turn: str
    number: int
    follows: int
    undone: int
    removed: str

    @property
    def parent(self) -> int:
        """The number of the turn that it follows; 0: none."""
        return self.number - 1 if self.follows < 0 else self.follows


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that `take_over` found open, and under which epoch it is now ours."""

    turn: str
    session: str
    epoch: int


@dataclass(frozen=True, slots=True)
class OpeningTurn:
    """A turn that is to be open from now on, and how its journal begins."""

    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    opened_at: int
    deadline: int


@dataclass(frozen=True, slots=True)
class IntendedCall:
    """A tool call that is about to run."""

    call: str
    tool: str
    effect: str
    """`pure`, `keyed` or `effect`: how safe it is to run it again."""
    key: str


@dataclass(frozen=True, slots=True)
class ToolCallRow:
    """A stored tool call."""

    turn: str
    call: str
    tool: str
    effect: str
    state: CallState
    key: str
    result_ref: str | None


@dataclass(frozen=True, slots=True)
class Usage:
    """What turns used."""

    turns: int
    input_tokens: int
    output_tokens: int
