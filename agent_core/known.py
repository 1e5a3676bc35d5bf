"""What a turn is told at its beginning of earlier failures: those of its own conversation, and the open incidents.

It travels in the turn's first event, so a replay decides as the turn did. How it is gathered: `agent_core.stalls`.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.exits import ExitCode
from agent_core.recovery import Rung


@dataclass(frozen=True, slots=True)
class KnownStall:
    """Calls of a tool that broke off on their way in earlier turns of this conversation, and were not cleared since."""

    tool: str
    chars: int
    """The most that had arrived of such a call's arguments when it broke off."""
    ended: int = 0
    """How many turns ended by it; 0 if the remedies helped each time."""
    tried: tuple[Rung, ...] = ()
    withheld: bool = False
    """It came back so often that the tool is not offered for a while."""


@dataclass(frozen=True, slots=True)
class KnownIncident:
    """A failure that several sessions have met lately."""

    code: ExitCode
    """The exit that it leads to if nothing helps."""
    endpoint: str
    model: str
    tool: str
    remedy: Rung | None = None
    """What has helped most; None if that is not known."""


@dataclass(frozen=True, slots=True)
class Known:
    """All of it."""

    stalls: tuple[KnownStall, ...] = ()
    incidents: tuple[KnownIncident, ...] = ()
    conversation: str = ""
    """Under which name the turn's own failures are remembered; empty: its session's."""

    def remedy(self, code: ExitCode, endpoint: str, model: str, tool: str) -> Rung | None:
        """What has helped most lately, in all sessions, against this failure of this model."""
        fitting = (
            incident.remedy
            for incident in self.incidents
            if (incident.code, incident.endpoint, incident.model) == (code, endpoint, model)
            and incident.tool in ("", tool)
        )
        return next((remedy for remedy in fitting if remedy is not None), None)
