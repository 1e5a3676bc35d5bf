"""What a family of models is, as far as its calls in text are concerned, and where its grammar puts what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TypeAlias

from agent_core.model.families.grammar.steps import Grammar
from agent_core.model.families.grammar.values import Offered, object_text
from agent_core.model.families.pieces import BrokenReason, Piece, TextCall, TextCallBroken, TextCallOpened
from agent_core.records import dataclass

A_NAME = ""
"""In `follows`: the name of a tool comes."""


@dataclass(frozen=True, slots=True)
class Ends:
    """How a thought ends."""

    closes: tuple[str, ...]
    opens: tuple[str, ...] = ()
    """What begins another one inside it."""
    folded: bool = False
    """Upper and lower case are the same."""
    must_end: bool = False
    """Without its end it was no thought, but text."""


@dataclass(slots=True)
class Calls:
    """What a grammar has found since its opening mark."""

    offered: Offered
    index: int
    """Of the call that is read now."""
    ends_well: bool = True
    """If the text ended: the model ended it, nobody cut it."""
    found: list[Piece] = field(default_factory=list[Piece])
    name: str = ""
    chars: int = 0
    """How much has been read since the opening mark."""
    any: bool = False
    """Something was found."""
    committed: bool = False
    """It is no text for certain, and never shown."""
    thinks: Ends | None = None
    """What follows is a thought."""
    said: str = ""
    """The words that began that thought, if it may turn out to be text."""
    ends_reply: bool = False
    """The model's turn is over here, whatever a server lets it say behind that."""

    def open(self, name: str) -> None:
        """The name of the next call is known."""
        self.name = name
        self.committed = True
        self.found.append(TextCallOpened(self.index, name))

    def arguments(self, text: str) -> None:
        """The arguments of the call that was opened, as JSON; it is broken if they are none."""
        try:
            whole = object_text(text)
        except ValueError:
            self.broken(BrokenReason.UNREADABLE, text)
        else:
            self.found.append(TextCall(self.index, self.name, whole))
            self._next()

    def broken(self, reason: BrokenReason, raw: str = "") -> None:
        """There is no call."""
        self.committed = True
        self.found.append(TextCallBroken(self.index, self.name or None, self.chars, reason, raw))
        self._next()

    def _next(self) -> None:
        self.index += 1
        self.any = True
        self.name = ""


Read: TypeAlias = Callable[[Calls, str], Grammar]
"""The grammar after an opening mark, which is given, and white space."""


@dataclass(frozen=True, slots=True)
class Example:
    """A reply in the family's form, and what is in it."""

    text: str
    calls: tuple[tuple[str, str], ...]
    """Name and arguments (JSON) of each call."""
    shown: str = ""
    thought: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The form in which some models write calls into their text."""

    name: str
    models: str
    form: str
    """What it looks like, for the documentation."""
    source: str
    """Where the form is described or read by others."""
    openers: tuple[str, ...]
    """The marks that begin a call."""
    follows: tuple[str, ...]
    """What must come after such a mark and white space, else it is only text."""
    read: Read
    words: tuple[str, ...] = ()
    """Those of them that are tags of people's own as well: at the end of a reply, with nothing behind them, they are text."""
    wrappers: tuple[str, ...] = ()
    """Marks around calls: they vanish if a call or another wrapper follows, else they are text."""
    closers: tuple[str, ...] = ()
    """Marks that vanish right behind a call, and are text elsewhere."""
    noise: tuple[str, ...] = ()
    """Marks that mean nothing to anybody, and vanish everywhere."""
    examples: tuple[Example, ...] = ()
