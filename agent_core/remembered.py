"""What is remembered beyond a turn: an entry with where it came from, and the memories that a turn may use."""

from __future__ import annotations

from agent_core.records import dataclass

EVERYBODY = "everybody"
"""The scope of what everybody's agent knows."""
ALL = "all"
"""What no entry is called: whoever says so means everything."""
MEMORY = "memory"
"""The kind of what is remembered, as it is stored; the to-do lists are another."""


@dataclass(frozen=True, slots=True)
class MemorySource:
    """Where an entry came from."""

    turn: str = ""
    """In which it was kept; empty: an older version kept it, which did not say. `explain` knows more of it."""
    author: str = ""
    """Who asked that turn, as ACCOUNT/PERSON; empty if nobody knows."""
    writer: str = ""
    """Their name, as the chat showed it."""
    foreign: bool = False
    """The model had read words of others when it kept this: they may be theirs."""


UNKNOWN_SOURCE = MemorySource()


@dataclass(frozen=True, slots=True)
class Remembered:
    """One entry."""

    scope: str
    name: str
    text: str
    at: int
    """When it was kept, ms."""
    source: MemorySource = UNKNOWN_SOURCE


@dataclass(frozen=True, slots=True)
class MemoryScopes:
    """The memories of a turn."""

    own: str
    """That of the person; in a group, that of the conversation."""
    chat: str = ""
    """That of the whole group; empty: there is none."""
    everybody: str = ""
    """That of all; empty: the operator has named nobody who may write it."""
    edits: bool = False
    """Whoever asks may write that of all."""

    def readable(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys(scope for scope in (self.own, self.chat, self.everybody) if scope))

    def strange(self, entry: Remembered, reader: str) -> bool:
        """Whether an entry's text may be that of a page or of somebody else, for whom `reader` (ACCOUNT/PERSON) asks.

        A person's own memory is theirs by whichever account they come, and everybody's was written by people whom the operator named.
        """
        source = entry.source
        theirs = entry.scope == self.everybody or (entry.scope == self.own and not self.chat) or source.author == reader
        return source.foreign or not source.turn or not theirs
