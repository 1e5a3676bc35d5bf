"""Several agents that answer here, each under its name, as the configuration has them."""

from __future__ import annotations

from enum import StrEnum

from agent_core.limits.budgets import Amount
from agent_core.records import dataclass

PLAIN = "outspoken"
"""What is asked for where nobody names a model or an agent; a chat that was given an agent can choose it again."""


class AgentMemory(StrEnum):
    """What an agent remembers."""

    ON = "on"
    """What every agent of the same person remembers."""
    OWN = "own"
    """What it was told itself."""
    OFF = "off"
    """Nothing: it has no tools for that."""


@dataclass(frozen=True, slots=True)
class Agent:
    """One of several that answer here."""

    name: str
    prompt: str = ""
    """Empty: as the gateway's."""
    models: tuple[str, ...] = ()
    """In the order in which they are tried; empty: all that there are."""
    tools: tuple[str, ...] | None = None
    """None: all."""
    memory: AgentMemory = AgentMemory.ON
    day: Amount = Amount()
    """What everybody together may use of it in a day."""
    chats: tuple[str, ...] = ()
    """``platform/chat``: where it answers if nobody chose another."""
    skills: tuple[str, ...] | None = None
    """Those that it may read; None: all."""
    people: tuple[str, ...] = ()
    """Whom alone it answers, as ``platform/person`` in small letters; empty: anybody."""
