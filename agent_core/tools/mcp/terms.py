"""What the operator says of a server: how it is reached, how long it may take, and which of its tools are offered as what. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from agent_core.records import dataclass
from agent_core.retry import Retry
from agent_core.tools.base import EffectClass, Reach
from agent_core.tools.mcp.listed import ServerTool

EVERY = "*"
"""In a list: all tools of the server."""
CONNECT = Retry(1.0, 60.0, factor=3.0, least=0.5)
"""A server that could not be reached. Whoever calls it meanwhile is told at once, and is the reason to try again."""
REPEAT = Retry(0.2, 2.0, attempts=2)
"""A call that only reads, or changes nothing more when it is repeated, and whose server went away under it."""


@dataclass(frozen=True, slots=True)
class ServerTerms:
    """One server."""

    name: str
    prefix: str
    """Of the names of its tools, as models read them."""
    command: tuple[str, ...] = ()
    """The program and its arguments; empty: it is reached at `url`."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables beside the few that every program needs. May hold secrets."""
    folder: Path | None = None
    """Where the program runs."""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """May hold secrets."""
    logins: Path | None = None
    """Where its login is kept, if it wants one by OAuth."""
    client_id: str = ""
    """Who we are at its login, if that is agreed; else we register."""
    client_secret: str = field(default="", repr=False)
    scope: str = ""
    allow: tuple[str, ...] = (EVERY,)
    deny: tuple[str, ...] = ()
    pure: tuple[str, ...] = ()
    keyed: tuple[str, ...] = ()
    effect: tuple[str, ...] = ()
    approval: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    """Its tools whose words and results count as the operator's own."""
    start_seconds: float = 60.0
    """It may take so long until it says what it can do."""
    silence_seconds: float = 60.0
    """A call may be without a result or a word of progress for so long."""
    limit_seconds: float = 600.0
    """And may take so long in all."""
    message_bytes: int = 16 * 1024 * 1024
    """Of one message from it at most."""

    def offers(self, tool: str) -> bool:
        """Whether one of its tools is offered. What is denied is not, whatever else is said of it."""
        return _in(tool, self.allow) and not _in(tool, self.deny)

    def asks(self, tool: str) -> bool:
        """Whether a person has to agree to each call."""
        return _in(tool, self.approval)

    def trusts(self, tool: str) -> bool:
        """Whether what it says of itself and gives back may make the model do anything."""
        return _in(tool, self.trusted)


def _in(tool: str, names: tuple[str, ...]) -> bool:
    return tool in names or EVERY in names


def class_of(terms: ServerTerms, tool: ServerTool) -> EffectClass:
    """How safe it is to run a tool again: as the operator says, by its name before all others'; else as its server says.

    A server that contradicts itself, or says nothing, is taken at its worst.
    """
    lists = ((EffectClass.EFFECT, terms.effect), (EffectClass.KEYED, terms.keyed), (EffectClass.PURE, terms.pure))
    for wanted in (tool.name, EVERY):
        for effect, names in lists:
            if wanted in names:
                return effect
    if tool.read_only:
        return EffectClass.EFFECT if tool.destructive else EffectClass.PURE
    return EffectClass.KEYED if tool.idempotent else EffectClass.EFFECT


def reach_of(terms: ServerTerms, tool: ServerTool) -> Reach:
    """Who sees anything of a call: what has an effect has it elsewhere; what reads may be made to ask whoever an address names."""
    return Reach.ADDRESS if class_of(terms, tool) is EffectClass.PURE else Reach.OUTSIDE
