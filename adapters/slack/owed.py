"""What Slack told and could not be stored: it is kept, and stored before what is said later in the same channel. What waits for the past of its place is
kept as well, and comes before what is said later in that place alone.

Slack tells it again, but after a minute, or five, and what is said meanwhile would be answered before it. What is kept here is not acknowledged:
if the process dies, Slack and the histories have it (`missed`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

import structlog

from adapters.contract.intake import in_words, until_stored
from adapters.contract.notaccepted import NotAccepted
from adapters.slack.missed import Table, number_of, place_of

log = structlog.get_logger("slack")

MOST_EVENTS = 1000
"""So many are kept; what comes beyond is left to Slack and to the histories."""
_Key: TypeAlias = tuple[int, str]


class Owed:
    """Of one workspace; `clear` it when nobody listens any more: then the histories are read."""

    def __init__(
        self,
        take: Callable[[object], Awaitable[None]],
        refused: Callable[[NotAccepted], None],
        begin: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._take, self._refused, self._begin = take, refused, begin
        self._channels: dict[str, dict[_Key, tuple[object, str]]] = {}

    def before(self, event: Table) -> bool:
        """Whether something that was said earlier is to be stored first. What is told again itself may be stored by now."""
        key = _said(event)
        if key is None or not (kept := self._channels.get(str(event["channel"]))):
            return False
        concerned = ("", place_of(event))
        return any(one < key and place in concerned for one, (_, place) in kept.items())

    def put(self, event: Table, body: object, place: str = "") -> None:
        """Keep it; what is told again is kept once. It comes before what is said later in its channel, or in this `place` of it."""
        key = _said(event)
        if key is None or sum(map(len, self._channels.values())) >= MOST_EVENTS:
            return
        channel = str(event["channel"])
        if channel in self._channels:
            self._channels[channel].setdefault(key, (body, place))
        else:
            self._channels[channel] = kept = {key: (body, place)}
            self._begin(self._store(channel, kept))

    def clear(self) -> None:
        self._channels.clear()

    async def _store(self, channel: str, kept: dict[_Key, tuple[object, str]]) -> None:
        # Else nobody listened for a while, and somebody else stores what is kept now
        while kept and self._channels.get(channel) is kept:
            key = min(kept)
            try:
                await until_stored(partial(self._take, kept[key][0]), self._refused)
            except Exception as error:  # noqa: BLE001 - whatever it is, Slack tells it again
                log.warning("slack.not_stored", words=in_words(error))
            kept.pop(key)
        if self._channels.get(channel) is kept:
            del self._channels[channel]


def _said(event: Table) -> _Key | None:
    """The place of a message among those of its channel; None if it is none."""
    if event.get("type") not in ("message", "app_mention") or not event.get("channel"):
        return None
    try:
        return number_of(str(event["ts"])), str(event["type"])
    except (KeyError, ValueError):
        return None
