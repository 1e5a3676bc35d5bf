"""Who owns what is written for a chat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Owner:
    """Under which ownership the parts of a turn (or of a command's answer) are written."""

    session: str
    epoch: int
