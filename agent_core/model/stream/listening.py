"""What of a stream is passed on, and when it is no stream any more but a loop. Pure; stands between the reader and the turn.

Only what is new counts as life: blanks, characters that take no room, and what repeats itself are none, however much of it comes. Such
pieces wait here. If something new follows, they are passed on before it, in their order: an honest repetition is only shown a little
later. If nothing new comes they go the way of a silence. `repeats` says when a repetition is so long that nothing else is to be hoped for.

So people see of a loop what came before it repeated itself, and no more of it than a line.
"""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.model.stream.repeats import Repeats
from agent_core.text.shown import seam, something_to_see
from agent_core.turn.events import Event, ReasoningArrived, TextArrived, ToolArgumentsArrived, ToolCallNamed


class Listening:
    """Feed it the events of one model call; what it gives may be passed on."""

    __slots__ = ("_calls", "_held", "_reasoning", "_text")

    def __init__(self) -> None:
        self._text = Repeats()
        self._reasoning = Repeats()
        self._calls = Repeats()
        """Names and arguments of all calls, so that a call that comes again and again is a loop as well."""
        self._held: list[Event] = []

    @property
    def looping(self) -> bool:
        return self._text.looping or self._reasoning.looping or self._calls.looping

    @property
    def repeating(self) -> bool:
        """What came last was said before, and waits for how it goes on."""
        channels = (self._text, self._reasoning, self._calls)
        return bool(self._held) and any(each.period > 0 for each in channels)

    def ended_in_loop(self) -> bool:
        """An output limit has cut the reply, and what it cut was a repetition."""
        return any(each.ended_in_loop() for each in (self._text, self._reasoning, self._calls))

    def take(self, events: Sequence[Event]) -> tuple[list[Event], bool]:
        """Events have come: those that are passed on now, and whether any of them says something new."""
        passed: list[Event] = []
        alive = False
        for event in events:
            match event:
                case TextArrived():
                    fresh, waits = self._heard(self._text, event.text)
                case ReasoningArrived():
                    fresh, waits = self._heard(self._reasoning, event.text)
                case ToolArgumentsArrived():
                    fresh, waits = self._heard(self._calls, event.text)
                case ToolCallNamed():
                    fresh, waits = self._heard(self._calls, f"\n{event.name} ")
                case _:
                    fresh, waits = False, False
            alive = alive or fresh
            if waits:
                self._held.append(event)
            else:
                if self._held:
                    passed += self.released()
                passed.append(event)
        return passed, alive

    @staticmethod
    def _heard(channel: Repeats, text: str) -> tuple[bool, bool]:
        """(it says something new, it waits)."""
        fresh = channel.feed(text)
        return fresh, not fresh and (channel.period > 0 or not something_to_see(text))

    def released(self) -> list[Event]:
        """What waited, because it was no loop."""
        held, self._held = self._held, []
        return held

    def gap(self) -> TextArrived | None:
        """The blank behind the last word, if one came: whoever goes on may begin with a word."""
        first = self._held[0] if self._held else None
        blank = isinstance(first, TextArrived) and not first.text.strip()
        return TextArrived(at=first.at, text=seam(first.text)) if isinstance(first, TextArrived) and blank else None

    @property
    def holding(self) -> bool:
        """Something waits."""
        return bool(self._held)

    def dropped(self) -> None:
        """What waited was a loop, or a silence."""
        self._held = []
