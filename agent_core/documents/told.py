"""What is found in a file, or why nothing is."""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """The text of a file."""

    text: str
    about: str
    """What it is, in a few words: "PDF, 12 pages"."""
    plain: bool = False
    """The file itself is this text."""


class NoTextThere(Exception):
    """There is no text to be had; the words go on from "it was not read, because …"."""
