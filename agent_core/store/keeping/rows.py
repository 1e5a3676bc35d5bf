"""What is large in bodies, and who is to be forgotten, as they are stored."""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.store.keeping.packing import PieceForm


@dataclass(frozen=True, slots=True)
class PieceRow:
    """What is large in the bodies of messages and journals, once; see `packing`."""

    digest: bytes
    form: PieceForm
    stored: bytes
    how: str
    size: int
    refs: int
    """How many gaps it fills."""
    at: int


@dataclass(frozen=True, slots=True)
class ForgetRow:
    """People who are to be forgotten, and how far that is."""

    forget: str
    who: str
    stage: str
    after: str
    """Behind what the stage goes on."""
    told: str
    """What was counted, as JSON."""
    at: int
    done_at: int | None = None
