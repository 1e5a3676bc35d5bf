"""How commands come to their ends. Pure."""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass


class EndCause(StrEnum):
    """Why a command is over."""

    EXITED = "exited"
    TIME = "time"
    MEMORY = "memory"
    PROCESSES = "processes"
    DISK = "disk"
    OUTPUT = "output"
    STOPPED = "stopped"
    """By `stop_command`, or by the person."""
    GATEWAY = "gateway"
    """The gateway was stopped."""
    ORPHANED = "orphaned"
    """The gateway died, and none came back in time."""
    GONE = "gone"
    """Its folder is not there any more."""
    SANDBOX = "sandbox"
    """It was not begun: the sandbox could not be made."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command came to its end."""

    cause: EndCause
    status: int | None = None
    """Its exit status, if it came to an end by itself; 128 and the signal's number if a signal ended it."""
    seconds: float = 0.0
    words: str = ""
    """What the sandbox said, if it could not be made."""
