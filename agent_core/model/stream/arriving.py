"""What is read of a reply, as events in the order in which it came. Pure.

Text and thoughts are gathered, so that what one socket read brings is one event; anything else ends what is gathered before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from agent_core.model.toolnames import meant
from agent_core.text.wellformed import label
from agent_core.turn.events import Event, ReasoningArrived, TextArrived, ToolArgumentsArrived

MAX_CALLS = 1_024
"""A reply that asks for more than this is cut, like one that is too long: what is kept of a stream must have an end."""
TEXT_CALL_INDEX = 10_000
"""Calls in the text form are numbered from here, behind native ones."""
ID_CHARS = 128
"""A longer id of a call is not taken; the call gets one of ours."""


class Arriving:
    """Gathers events until they are taken."""

    __slots__ = ("_events", "_text", "_thoughts", "at", "chars")

    def __init__(self) -> None:
        self.at = 0
        """When what is read now has come, ms."""
        self.chars = 0
        """How much has come in all; whoever reads counts."""
        self._events: list[Event] = []
        self._text: list[str] = []
        self._thoughts: list[str] = []

    def say(self, text: str) -> None:
        """A person may see this."""
        if self._thoughts:
            self._flush()
        self._text.append(text)

    def think(self, text: str) -> None:
        """The model thinks this."""
        if self._text:
            self._flush()
        self._thoughts.append(text)

    def arguments(self, index: int, text: str) -> None:
        """More of a call's arguments."""
        last = self._events[-1] if self._events else None
        if isinstance(last, ToolArgumentsArrived) and last.index == index and not self._text:
            self._events[-1] = ToolArgumentsArrived(at=self.at, index=index, text=last.text + text)
        else:
            self.add(ToolArgumentsArrived(at=self.at, index=index, text=text))

    def add(self, event: Event) -> None:
        """Anything else."""
        self._flush()
        self._events.append(event)

    def take(self) -> list[Event]:
        """All that has come since it was taken last."""
        self._flush()
        events, self._events = self._events, []
        return events

    def _flush(self) -> None:
        if self._thoughts:
            self._events.append(ReasoningArrived(at=self.at, text="".join(self._thoughts)))
            self._thoughts.clear()
        if self._text:
            self._events.append(TextArrived(at=self.at, text="".join(self._text)))
            self._text.clear()


class CallNames:
    """What the calls of one reply are called, in whatever form they come, and how many are taken."""

    __slots__ = ("_number", "_taken", "count", "full", "offered")

    def __init__(self, number: int, taken: Iterable[str], offered: Collection[str]) -> None:
        self._number = number
        self._taken = frozenset(taken)
        self.offered = offered
        self.count = 0
        self.full = False
        """It asks for more calls than are taken; those beyond were left out."""

    def one_more(self) -> bool:
        """Whether another call is taken; then it counts."""
        self.full = self.full or self.count >= MAX_CALLS
        self.count += not self.full
        return not self.full

    def tool(self, name: str) -> str:
        """The tool that a name means, in characters that can be stored."""
        return meant(label(name), self.offered)

    def call_id(self, index: int, provider_id: str = "") -> str:
        """What a call is known by: its provider's id if it can be stored and sent back as it is, else one of ours."""
        usable = 0 < len(provider_id) <= ID_CHARS and provider_id.isascii() and provider_id.isprintable()
        call = own = provider_id if usable and provider_id not in self._taken else f"call_{self._number}_{index}"
        more = len(self._taken)
        while call in self._taken:
            call, more = f"{own}_{more}", more + 1
        self._taken |= {call}
        return call
