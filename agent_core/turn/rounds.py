"""The rounds of a turn that are over, as its model is sent them: each is encoded once, so that a turn's fiftieth request is put together as quickly as
its second.

Law (tests/agent_core/test_rounds.py): with what came behind them they say what the whole would say that is put together anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import orjson

from agent_core.messages import THOUGHTS, Message, tells
from agent_core.turn.effects import CallModel
from agent_core.turn.standing import Standing
from agent_core.turn.state import AssistantItem, Item, ToolItem
from agent_core.turn.transcript import alternating, item_messages, later_messages, repaired


class RoundsOver:
    """Of one turn. Where the turn has other items by now than those that were told, all is told anew."""

    __slots__ = ("_items", "_latest", "_told")

    def __init__(self) -> None:
        self._items: list[Item] = []
        """Those that were told."""
        self._told = b""
        self._latest: tuple[list[Item], list[Message]] = [], []
        """The items behind them at the latest look, and as what they were sent: they are what is over next."""

    def told(self, turn: Standing, before: Callable[[], Sequence[Message]]) -> tuple[bytes, int]:
        """What stands `before` the turn's items, and as many of these as are over: as messages with a comma between them; and how many items that are.
        Nothing, as long as no round is over, and from where on there is more than plain text."""
        items, many = turn.items, len(self._items)
        if items[:many] != self._items:
            self._items, self._told, many = [], b"", 0
        end = over(items, many)
        if end > many:
            latest, said = self._latest
            if not many or latest != items[many:end]:
                new = item_messages(items[many:end], with_advice=True)
                if not many:
                    assert turn.opened is not None
                    new = [*before(), *(message.to_message() for message in turn.opened.input), *new]
                said = alternating(repaired(new))
            if all(isinstance(one.get("content"), str | None) and THOUGHTS not in one for one in said):
                more = orjson.dumps(said)[1:-1]
                self._items, self._told = items[:end], b"%b,%b" % (self._told, more) if many else more
        return self._told, len(self._items)

    def behind(self, turn: Standing, call: CallModel) -> list[Message]:
        """What stands behind what was told, for one call."""
        many = len(self._items)
        said = later_messages(turn, many, call)
        alone = not call.partial.strip() and call.advice is None
        self._latest = (turn.items[many:], said) if alone else ([], [])
        return said


def over(items: Sequence[Item], since: int) -> int:
    """Up to where rounds are over from here on: the next begins with a reply, and every call before it has its result behind it. Nothing that comes
    later is told among them. Pure."""
    end, open_calls = since, set[str]()
    for at, item in enumerate(items[since:], since):
        if isinstance(item, ToolItem):
            open_calls.discard(item.call)
        elif open_calls:
            return end
        elif isinstance(item, AssistantItem):
            open_calls.update(call.call for call in item.calls)
            alone = not at or not isinstance(items[at - 1], AssistantItem)  # else both are told as one
            if alone and (item.calls or tells(item.text)):  # one that says nothing is not told
                end = at
    return end
