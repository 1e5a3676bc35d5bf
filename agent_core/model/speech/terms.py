"""Who turns speech into text or text into speech, and for how long they are waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from agent_core.records import dataclass
from agent_core.settings import CONNECT_SECONDS


@dataclass(frozen=True, slots=True)
class SpeechTerms:
    """An endpoint, or a program in its place. Times in seconds."""

    command: tuple[str, ...] = ()
    """The program with its arguments; empty: the endpoint is asked."""
    url: str = ""
    """Address of the API, with its ``/v1``."""
    model: str = ""
    key: str = field(default="", repr=False)
    """Empty: none is sent."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    language: str = ""
    """In which people speak; empty: whoever listens finds out."""
    voice: str = ""
    connect_seconds: float = CONNECT_SECONDS
    stall_seconds: float = 45.0
    """How long one try may be silent."""
    seconds: float = 150.0
    """How long it may take in all, with every try and every pause."""


class SpeechFailed(Exception):
    """There is no result; the words say why, for a person, and go on from "that failed: "."""

    def __init__(self, words: str, *, lasts: bool = True) -> None:
        super().__init__(words)
        self.lasts = lasts
        """Another sound would meet the same, and take as long."""
