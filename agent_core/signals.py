"""What the gateway tells of itself while it works: facts for whoever counts or traces. It knows no one who listens.

One fact is told in one place, beside the line of the log that says the same to people. A signal carries no word of a person's or
the model's text. Whoever listens is called on the loop and must be quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import structlog

from agent_core.records import dataclass
from agent_core.store.troubles.rows import TroubleRow

log = structlog.get_logger("signal")

CANCELLED = "cancelled"
"""A call's outcome when its turn was ended meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTaken:
    """A message is stored for the first time."""

    account: str
    """Of the surface, such as ``telegram/123`` or ``api``."""
    lane: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRefused:
    """A request of the API was not taken."""

    status: int
    """Of HTTP; 401 and 403 are those of strangers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """A message was not taken, because too many wait."""

    account: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionCut:
    """A connection was not taken, or was ended because its client kept us waiting."""

    why: str
    """One of the words of the gateway's rule of connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBegan:
    """A turn is open."""

    surface: str
    waited_ms: int
    """From the arrival of its first message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSign:
    """A chat was shown something of a turn for the first time: that we type, a status, text."""

    surface: str
    after_ms: int
    """From the turn's beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalled:
    """A request to a model is over."""

    turn: str
    session: str
    name: str
    """Unique in the turn: its number, or ``summary1``."""
    endpoint: str
    model: str
    began_at: int
    """ms, as all times here."""
    ended_at: int
    content_at: int
    """When the first content came; 0 if none came."""
    reason: str = ""
    """The finish reason, if it came to an end."""
    error: str = ""
    """Else why it broke (`exits.BreakCause`), or `CANCELLED`."""
    status: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRan:
    """A tool has run."""

    turn: str
    session: str
    call: str
    tool: str
    status: str
    began_at: int
    ended_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnClosed:
    """A turn is over, and its end is stored."""

    turn: str
    session: str
    surface: str
    exit: str
    clean: bool
    """It was answered, handed to the client, or stopped by a person."""
    began_at: int
    ended_at: int
    content_at: int = 0
    """When the model's first content came to this process; 0 if none came."""
    endpoint: str = ""
    model: str = ""
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    troubles: tuple[TroubleRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSent:
    """A part of a chat stands as it should at last."""

    platform: str
    origin: str
    """The turn it belongs to, or what words beside turns belong to."""
    kind: str
    wanted_at: int
    sent_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFailed:
    """A call to a platform failed."""

    platform: str
    fate: str
    cause: str
    final: bool
    """It is refused for good; else it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TooFast:
    """A platform asked for a pause."""

    platform: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Committed:
    """The store tried to commit a batch."""

    operations: int
    seconds: float
    """Repetitions included."""
    stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """A model call was settled with the budgets."""

    model: str
    tokens: int
    nanos: int
    """Billionths of the currency."""
    estimated: bool
    """The provider did not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendStopped:
    """A model call was not made, because a budget is used up."""

    budget: str
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LawBroken:
    """A turn broke a law of the machine: a bug."""


Signal: TypeAlias = (
    MessageTaken
    | RequestRefused
    | TurnedAway
    | ConnectionCut
    | TurnBegan
    | FirstSign
    | ModelCalled
    | ToolRan
    | TurnClosed
    | PartSent
    | SendFailed
    | TooFast
    | Committed
    | Spent
    | SpendStopped
    | LawBroken
)
Tell: TypeAlias = Callable[[Signal], None]


def nobody(_: Signal) -> None:
    """Where nobody listens."""


class Signals:
    """Hands each signal to all who listen."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Tell, tuple[type, ...]]] = []
        self._of: dict[type, list[Tell]] = {}

    def listen(self, listener: Tell, *kinds: type) -> None:
        """From now on `listener` is called with every signal of these kinds; of every kind, if none is named."""
        self._listeners.append((listener, kinds))
        self._of.clear()

    def _who_hears(self, kind: type) -> list[Tell]:
        found = self._of[kind] = [listener for listener, kinds in self._listeners if not kinds or kind in kinds]
        return found

    def tell(self, signal: Signal) -> None:
        """Hand it on. A listener's mistake is logged, and harms nobody."""
        kind = type(signal)
        hear = self._of.get(kind)
        for listener in hear if hear is not None else self._who_hears(kind):
            try:
                listener(signal)
            except Exception:
                log.exception("signal.failed", signal=type(signal).__name__)
