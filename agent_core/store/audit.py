"""What somebody who runs the gateway did by hand."""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What somebody who runs the gateway did by hand."""

    audit: str
    """Its id: the same is noted once."""
    at: int
    """ms."""
    who: str
    """How they came in: on this machine, or with the key."""
    act: str
    object: str
    """What it was done to."""
    words: str
    """What was done, in a sentence."""
    before: str = ""
    after: str = ""
    """JSON; no word of a person is in it."""
