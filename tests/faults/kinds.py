"""Thirty-six ways in which a tool goes wrong, and the kinds of tools that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Whose tool it is."""

    BUILTIN = "built in"
    PYTHON = "Python"
    STDIO = "MCP stdio"
    HTTP = "MCP HTTP"
    SHELL = "shell"
    WEB = "web"
    CLIENT = "client's"


class Fault(StrEnum):
    """What a tool does."""

    HANGS = "hangs"
    DIES_AT_START = "dies at its start"
    DIES = "dies in mid-call"
    KILLED = "is killed in mid-call"
    IDLE_EXIT = "ends while idle"
    FLOODS = "floods"
    ENDLESS = "a message without an end"
    LIES = "lies about idempotence"
    CHANGES = "changes its schema in mid-turn"
    WITHDRAWN = "is withdrawn in mid-turn"
    TWICE = "answers twice"
    LATE = "answers late"
    ANOTHER = "answers another call"
    WRONG_TYPES = "answers with wrong types"
    BINARY = "answers with bytes"
    NOT_UTF8 = "is no UTF-8"
    HALF_CHARACTER = "holds half a character"
    HUGE = "is huge"
    EMPTY = "is empty"
    NO_WORDS = "fails without a word"
    ODD_RAISE = "raises what nobody expects"
    PROGRESS = "tells of progress for ever"
    NO_CANCEL = "refuses to be cancelled"
    BLOCKS = "takes the processor"
    DESCRIPTORS = "leaks file descriptors"
    DEPTH = "calls itself for ever"
    NESTED = "is nested for ever"
    NUMBERS = "holds a number without an end"
    MEMORY = "takes all memory"
    FORKS = "leaves children behind"
    PRINTS = "prints beside its answer"
    SECRET = "holds a secret"
    MARKUP = "is a bomb of markup"
    CONTROLS = "holds control characters"
    IMPERSONATES = "speaks as the gateway"
    ODD_ARGUMENTS = "is called with what it cannot take"


@dataclass(frozen=True)
class Cell:
    """One fault of one kind of tool: how it is brought about, and what must come of it."""

    fault: Fault
    kind: Kind
    steps: Sequence[Sequence[Any]]
    """The calls that the model makes, as (tool, arguments)."""
    told: Sequence[str]
    """What the model reads of each call, in part; `|` stands between what is as true, where a busy machine decides."""
    doubt: str = ""
    """What the person reads of a call whose outcome nobody knows, in part; empty: there is no such call."""
    effects: int = 0
    """So often the effect happened at most."""
    absent: Sequence[str] = ()
    """What nobody may read anywhere."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What lies in the workspace before."""

    @property
    def name(self) -> str:
        return f"{self.kind}: {self.fault}"
