"""The queue of updates: kept until they are confirmed, and disordered on request. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tests.fakes.common import JsonObject

KEPT_SECONDS = 24 * 3600
"""How long the server keeps updates (https://core.telegram.org/bots/api#getting-updates)."""
MAX_BATCH = 100

KINDS = frozenset(
    {
        "message",
        "edited_message",
        "callback_query",
        "my_chat_member",
        "chat_member",
        "message_reaction",
    }
)
"""The kinds that the fake makes."""
ON_REQUEST = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds that come only if a bot names them in `allowed_updates`."""


@dataclass(frozen=True, slots=True)
class Update:
    """One update; `body` is what stands under the key that is its kind."""

    id: int
    kind: str
    body: JsonObject
    lane: int
    """The chat; a webhook gets those of one chat one after another."""
    at: float
    """Monotonic seconds."""

    def to_json(self) -> JsonObject:
        """The Update object."""
        return {"update_id": self.id, self.kind: self.body}


class UpdateQueue:
    """Updates in the order in which they are offered."""

    def __init__(self, first_id: int) -> None:
        self._next_id = first_id
        self._pending: list[Update] = []
        self._again: list[Update] = []
        """Offered once more whatever the offset says."""
        self._held: list[Update] | None = None
        self.passes_far_offsets = False
        """As Telegram's own server: an offset that is far from the ids there are counts as none."""
        self.allowed: frozenset[str] = frozenset()
        """What the bot asked for; empty means the default."""
        self.confirmed: list[Update] = []
        """Everything that the bot has confirmed, in order."""

    @property
    def pending(self) -> Sequence[Update]:
        """What is not confirmed, held updates left out."""
        return [*self._again, *self._pending]

    def wants(self, kind: str) -> bool:
        """Whether updates of a kind are made at all."""
        return kind in self.allowed if self.allowed else kind not in ON_REQUEST

    def put(self, kind: str, body: JsonObject, lane: int, at: float) -> Update | None:
        """Something has happened. None if the bot does not want to hear of such things."""
        assert kind in KINDS, kind
        if not self.wants(kind):
            return None
        update = Update(self._next_id, kind, body, lane, at)
        self._next_id += 1
        (self._pending if self._held is None else self._held).append(update)
        return update

    def begin_anew(self, first_id: int) -> None:
        """The next update gets this id, as after a week without any, or on another server."""
        self._next_id = first_id

    def expire(self, now: float) -> None:
        """Forget what is too old."""
        self._pending = [update for update in self._pending if now - update.at < KEPT_SECONDS]

    def fetch(self, offset: int, limit: int) -> list[Update]:
        """What a poll gets; everything below the offset is confirmed by it. A negative offset counts from the end, as on the server."""
        if self.passes_far_offsets and offset > self._next_id + 10:
            offset = 0
        if offset < 0:
            kept = self._pending[offset:]
            self.drop(self._pending[: len(self._pending) - len(kept)])
        elif offset > 0:
            self.confirm([update.id for update in self._pending if update.id < offset])
        again, self._again = self._again[:limit], self._again[limit:]
        return [*again, *self._pending[: limit - len(again)]]

    def confirm(self, ids: Iterable[int]) -> None:
        """The bot has these."""
        gone = set(ids)
        self.confirmed.extend(update for update in self._pending if update.id in gone)
        self._pending = [update for update in self._pending if update.id not in gone]
        self._again = [update for update in self._again if update.id not in gone]

    def drop(self, updates: Iterable[Update]) -> None:
        """Forget these; the bot never gets them."""
        gone = {update.id for update in updates}
        self._pending = [update for update in self._pending if update.id not in gone]

    # --- disorder ---

    def hold(self) -> None:
        """Keep new updates back until `release`."""
        assert self._held is None, "updates are held already"
        self._held = []

    @property
    def held(self) -> int:
        """How many updates are held."""
        return len(self._held or [])

    def release(self, order: Sequence[int] | None, *, renumber: bool) -> list[Update]:
        """Offer what was held, in an order given by positions (0 is the one that happened first; None: as it happened).

        With `renumber` the ids rise in the new order; without, each keeps the id of its own time, so that they come out of order.
        """
        held, self._held = self._held or [], None
        places = range(len(held)) if order is None else order
        assert sorted(places) == list(range(len(held))), f"{len(held)} updates are held, not {order}"
        ids = [update.id for update in held]
        new = [held[place] for place in places]
        if renumber:
            new = [replace(update, id=number) for number, update in zip(ids, new, strict=True)]
        self._pending.extend(new)
        return new

    def repeat(self, update: Update) -> Update:
        """The same event once more under a new id, as after a fault of the server."""
        copy = replace(update, id=self._next_id)
        self._next_id += 1
        self._pending.append(copy)
        return copy

    def redeliver(self, updates: Iterable[Update]) -> None:
        """Offer these once more under their old ids, although they were confirmed."""
        self._again.extend(updates)
