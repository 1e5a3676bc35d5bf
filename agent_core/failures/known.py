"""What a turn is told at its beginning of earlier failures: those of its own conversation, and the open incidents.

It travels in the turn's first event, so a replay decides as the turn did. How it is gathered: `agent_core.learning.stalls`; what follows from it:
`agent_core.learning.prevention`.
"""

from __future__ import annotations

from agent_core.failures.exits import ExitCode
from agent_core.failures.remedies import Remedy
from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class KnownStall:
    """Calls of a tool that broke off on their way in earlier turns of this conversation, and were not cleared since."""

    tool: str
    chars: int
    """The most that had arrived of such a call's arguments when it broke off."""
    ended: int = 0
    """How many turns ended by it; 0 if the remedies helped each time."""
    tried: tuple[Remedy, ...] = ()
    withheld: bool = False
    """Only in turns of older versions: the tool was not offered for a while."""
    size: str = ""
    """How much had arrived, roughly; calls that broke off earlier or later on their way are another stall. Empty: any."""
    models: tuple[tuple[str, str], ...] = ()
    """(endpoint, model) of those whose calls broke off so; empty: any."""
    remedy: Remedy | None = None
    """What has helped most in this conversation; None if nothing has."""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """A failure that several people have met lately."""

    code: ExitCode
    """The exit that it leads to if nothing helps."""
    endpoint: str
    model: str
    tool: str
    remedy: Remedy | None = None
    """What has helped most, be it only to ask again; None if nothing has."""
    size: str = ""
    """Of the calls that break off; empty: any."""


@dataclass(frozen=True, slots=True)
class Known:
    """All of it."""

    stalls: tuple[KnownStall, ...] = ()
    incidents: tuple[KnownIncident, ...] = ()
    conversation: str = ""
    """Under which name the turn's own failures are remembered; empty: its session's."""
