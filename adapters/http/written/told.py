"""What an open page has been told, so that it is told only what is new: of a message what changed, of a text how it grew.

Law (tests/adapters/test_written.py): whoever follows has, after each event, what `adapters.http.web.wire` says of the latest, with each text of the
model as nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import orjson

from adapters.contract.base import TurnSight
from adapters.http.written.patches import patch
from adapters.http.written.texts import Growing, whole
from agent_core.jsonvalue import Json
from agent_core.turn.view import TEXTS, Bubble, BubbleKind

if TYPE_CHECKING:
    from adapters.http.openapi.shapes import PageBubble, PageMessage

AT_ONCE_CHARS = 2_000
"""More text than this is read beside the loop."""


SHOWN_CHARS = 4_000
"""So much of a call's arguments and result is shown on the page; an export has all of it."""


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]} … (+{len(text) - SHOWN_CHARS})"


class _Text:
    """A text as the page has it."""

    def __init__(self) -> None:
        self._growing = Growing()
        self._nodes: list[Json] = []
        self.final = False

    def open_chars(self, bubble: Bubble) -> int:
        if self.final:
            return 0
        return len(bubble.text) if bubble.final else self._growing.open_chars(bubble.text)

    def change(self, bubble: Bubble) -> list[Json]:
        now = whole(bubble.text) if bubble.final else self._growing.nodes(bubble.text)
        change = patch(self._nodes, now)
        self._nodes, self.final = [] if bubble.final else now, bubble.final
        return change


class _Message:
    """A message as the page has it."""

    def __init__(self) -> None:
        self.person: str | None = None
        self.bubbles: dict[str, dict[str, object]] = {}
        self.texts: dict[str, _Text] = {}
        self.thought_chars = 0


class PageTold:
    """What one open page has been told."""

    def __init__(self, wire: Callable[[TurnSight], PageMessage], *, thinking: bool) -> None:
        """`thinking`: the page is told what the model thinks, too."""
        self._wire = wire
        self._thinking = thinking
        self._messages: dict[str, _Message] = {}

    def heavy(self, sights: Sequence[TurnSight]) -> bool:
        """Whether it takes so long to say what is new that others should not wait for it."""
        chars = 0
        for sight in sights:
            told = self._messages.get(sight.key) or _Message()
            texts = (one for one in sight.view.bubbles if one.kind in TEXTS)
            chars += sum((told.texts.get(one.key) or _Text()).open_chars(one) for one in texts)
        return chars > AT_ONCE_CHARS

    def news(self, sights: Sequence[TurnSight]) -> bytes:
        """What the page has not been told of these messages, as JSON."""
        return orjson.dumps([self._news_of(sight) for sight in sights])

    def _news_of(self, sight: TurnSight) -> dict[str, object]:
        before, now = self._messages.get(sight.key) or _Message(), _Message()
        self._messages[sight.key] = now
        shown = self._wire(sight)
        bubbles = [
            self._bubble(one, said, before, now) for one, said in zip(sight.view.bubbles, shown["bubbles"], strict=True)
        ]
        now.person = sight.person
        message: dict[str, object] = {**shown, "bubbles": bubbles}
        if before.person == now.person:
            del message["person"]
        now.thought_chars = max(before.thought_chars, sight.thought_chars)
        if self._thinking and now.thought_chars > before.thought_chars:
            message["thought"] = sight.thought.placed(before.thought_chars)
        return message

    @staticmethod
    def _bubble(bubble: Bubble, shown: PageBubble, before: _Message, now: _Message) -> dict[str, object]:
        said: dict[str, object] = {**shown}
        is_text = bubble.kind in TEXTS
        if is_text and not bubble.final:
            said = {**said, "text": ""}
        if bubble.kind is BubbleKind.ACTIVITY:
            said = {**said, "arguments": _shortened(bubble.arguments), "result": _shortened(bubble.result)}
        now.bubbles[bubble.key] = said
        new: dict[str, object] = {"key": bubble.key} if before.bubbles.get(bubble.key) == said else {**said}
        if is_text:
            text = now.texts[bubble.key] = before.texts.get(bubble.key) or _Text()
            if not text.final:
                new["patch"] = text.change(bubble)
        return new
