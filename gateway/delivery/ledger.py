"""What a surface should show, whose it is, and what of it is stored.

Law: what a surface decides about a part is stored with the decision. Most of it is, before or after a call, or as its turn closes.
The rest (a status that was over before it was sent, what could not be stored while the storage was away) is owed: it is stored when
the surface comes to rest, at the latest before a part is forgotten. States on the way of a turn that runs are not owed: after a
restart the turn shows them anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from adapters.contract.chat import Traits
from adapters.contract.contents import decode
from adapters.delivery.aftermath import within
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import Name, Part, begun, joined, loaded, moved, plan
from agent_core.ports import Clock, steady_ms
from agent_core.store.deliveries.rows import MOST_PLACE, Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Damaged, StorageUnavailable, Store
from agent_core.store.webhooks.rows import HookRow
from gateway.delivery.owners import Owner, is_word, stands
from gateway.storage.damage import DamageMet

OLDEST_MS = 7 * 24 * 3_600_000
"""No part is taken to wait for longer."""
_HAPPENED = (DeliveryState.SENDING, DeliveryState.UNKNOWN, DeliveryState.SENT, DeliveryState.FAILED)
_ORDINARY = Traits(drafts=False)


PartHooks = Callable[[str, Sequence[DeliveryRow]], Sequence[HookRow]]
"""What other programs are told of a session's parts that are stored like this."""


def no_part_hooks(_session: str, _rows: Sequence[DeliveryRow]) -> Sequence[HookRow]:
    """Nobody is told."""
    return ()


def nothing_comes(_chat: str) -> bool:
    """There is nobody else."""
    return False


class Records:
    """What is stored of all surfaces: their rows, and the places that put them in order."""

    def __init__(
        self,
        store: Store,
        damage: DamageMet,
        hooks: PartHooks = no_part_hooks,
        comes_first: Callable[[str], bool] = nothing_comes,
    ) -> None:
        """`comes_first`: whether something may be still to come into a chat that comes before what is new there."""
        self._store = store
        self._hooks = hooks
        self._comes_first = comes_first
        self.damage = damage
        self._changed = asyncio.Event()
        self.next_place = 1

    async def count_on(self) -> None:
        """Places go on behind those that anybody has given: at a start, and when chats come from another gateway, which counted for itself."""
        self.placed(await self._store.deliveries.last_place())

    def placed(self, place: int) -> None:
        """This place is taken."""
        if place < MOST_PLACE:
            self.next_place = max(self.next_place, place + 1)

    def may_send(self) -> bool:
        """What is stored here is surely still ours to write."""
        return self._store.ownership.lease_ok()

    def may_show(self, chat: str) -> bool:
        """The same, and what is new in a chat comes before nothing that was there before."""
        return self.may_send() and not self._comes_first(chat)

    async def put(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        await self._store.deliveries.put(owner.session, owner.epoch, rows, self._hooks(owner.session, rows))
        self._changed.set()

    async def change(self, seconds: float | None = None) -> None:
        """Return when the state of some part was stored, or when the time is over."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()


class Book:
    """Of one surface."""

    def __init__(self) -> None:
        self._rows: dict[Name, DeliveryRow] = {}
        self._offered: dict[str, list[DeliveryRow]] = {}

    def found(self, row: DeliveryRow) -> None:
        """It was read, and is stored like this unless it was written since."""
        self._rows.setdefault(_name(row), row)

    def stored(self, rows: Iterable[DeliveryRow]) -> None:
        """It was written."""
        self._rows.update((_name(row), row) for row in rows)

    def offer(self, origin: str, rows: Iterable[DeliveryRow]) -> None:
        """Somebody else is about to write these."""
        self._offered[origin] = list(rows)

    def answered(self, origin: str, *, stored: bool) -> None:
        """What was offered is stored, or is not."""
        offered = self._offered.pop(origin, [])
        if stored:
            self.stored(offered)

    def unlike(self, part: Part) -> bool:
        """It is stored otherwise than it is. What was never stored, and never happened, need not be."""
        known = self._rows.get(part.name)
        if known is None:
            return part.row.state in _HAPPENED or part.row.platform_id is not None
        return known != part.row

    def owed(self, parts: Iterable[Part], running: Collection[str]) -> list[Part]:
        """What is to be stored. Of turns that are `running`, only what is not on its way any more."""
        return [part for part in parts if self.unlike(part) and (part.name[0] not in running or self._over(part))]

    def _over(self, part: Part) -> bool:
        """It is stored as being sent, and that is over."""
        known = self._rows.get(part.name)
        return (
            known is not None and known.state is DeliveryState.SENDING and part.row.state is not DeliveryState.SENDING
        )

    def keep_only(self, names: Mapping[Name, object]) -> None:
        """Forget the rest."""
        self._rows = {name: row for name, row in self._rows.items() if name in names}

    def forget_all(self) -> None:
        self._rows.clear()
        self._offered.clear()

    def hand_over(self, other: Book, surface: str) -> None:
        """The parts belong to another surface now, and the store knows it."""
        for row in self._rows.values():
            other.found(replace(row, surface=surface))
        for origin, rows in self._offered.items():
            other.offer(origin, [replace(row, surface=surface) for row in rows])


class Ledger:
    """The parts of one surface. `ring` wakes the task that makes the chat show them."""

    def __init__(self, surface: str, records: Records, clock: Clock, ring: Callable[[], None]) -> None:
        self.surface = surface
        self.records = records
        self.parts: dict[Name, Part] = {}
        self.owners: dict[str, Owner] = {}
        """By origin."""
        self.held: set[str] = set()
        """Origins whose parts are not stored yet as they are here: nothing new of them goes out."""
        self.awaited: set[str] = set()
        """Turns of an earlier process that go on, and are not shown here yet."""
        self._damaged: dict[str, int] = {}
        """Origins whose parts met damage when they were to be stored, and how often all had been found sound by then."""
        self._wanted_at: dict[Name, int] = {}
        """Since when the parts that are to stay are to be as they are not yet, ms of the monotonic clock."""
        self._book = Book()
        self._clock = clock
        self._ring = ring

    # ------------------------------------------------------------------ what is wanted

    def plan(
        self, origin: str, wanted: Sequence[WantedPart], traits: Traits = _ORDINARY, untouched: Sequence[str] = ()
    ) -> list[Part]:
        """What of `origin` has to be other than it is; `take` it to have it so."""
        now = self._clock.now_ms()
        planned = plan(self.parts, wanted, self.surface, origin, self.records.next_place, untouched, traits)
        return [_waits_since(part, now) for part in planned]

    def said(self, origin: str) -> list[WantedPart]:
        """What of `origin` people have read, or are to read, as the last that is wanted of it; without what says that something goes on, or is asked."""
        return [
            WantedPart(part.row.bubble, part.row.part, part.content, final=True)
            for part in self._of(origin).values()
            if (part.stands or (part.row.final and part.open)) and not part.row.gone and not part.passing
        ]

    def take(self, planned: Iterable[Part]) -> None:
        """Have these parts as they are here."""
        for part in planned:
            self.parts[part.name] = part
            if part.row.final and part.open:
                self._wanted_at.setdefault(part.name, steady_ms(self._clock))
            self.records.placed(part.row.place)

    def current(self, part: Part) -> Part:
        """The part as it is now: it may have changed since a call began."""
        return self.parts.get(part.name, part)

    def restore(
        self, found: Sequence[Delivery], owner: Owner, going_on: Collection[str] = (), *, over: bool = True
    ) -> None:
        """Parts that an earlier process left open, and all parts of turns that are going on.

        Unless it is `over`, what is on its way may still be changed. What is known of an origin counts more than what was read, unless it was
        somebody else's meanwhile, who may have sent any of it.
        """
        for origin in {one.row.origin for one in found}:
            if self.owners.get(origin, owner) != owner:
                self._forget(origin)
        self.awaited.update(one.row.origin for one in found if one.row.origin in going_on)
        for one in found:
            ended = over and one.row.origin not in going_on
            part = loaded(Part(one.row, decode(one.row.want)), over=ended)
            self._book.found(one.row)
            self.records.placed(one.row.place)
            self.parts.setdefault(part.name, part)
            if part.open:
                now = self._clock.now_ms()
                age = within(now, part.row.at or now, OLDEST_MS)
                self._wanted_at.setdefault(part.name, steady_ms(self._clock) - age)
            self.owners[one.row.origin] = owner
        self._ring()

    def _forget(self, origin: str) -> None:
        for name in self._of(origin):
            del self.parts[name]
            self._wanted_at.pop(name, None)
        self._book.keep_only(self.parts)

    def propose(self, origin: str, owner: Owner, wanted: Sequence[WantedPart]) -> list[DeliveryRow]:
        """Take parts in that are about to be stored by the caller; `release` the origin when they are."""
        self.owners[origin] = owner
        self.held.add(origin)
        self.take(self.plan(origin, wanted))
        rows = [part.row for part in self.parts.values() if part.row.origin == origin and part.open]
        self._book.offer(origin, rows)
        return rows

    def close(
        self, turn: str, owner: Owner, wanted: Sequence[WantedPart], traits: Traits
    ) -> tuple[list[Part], list[DeliveryRow]]:
        """Take the parts in of a turn that ends, or is left open; `release` it when they are stored.

        Those that this has changed, and what is to be stored: everything that is not as it is stored, or not as it should be yet.
        """
        self.held.add(turn)
        self.awaited.discard(turn)
        self.owners[turn] = owner
        before = self._of(turn)
        self.take(self.plan(turn, wanted, traits))
        mine = self._of(turn)
        rows = [part.row for part in mine.values() if part.open or self._book.unlike(part)]
        rows += self._untrue_words(owner)
        self._book.offer(turn, rows)
        return [part for name, part in mine.items() if before.get(name) != part], rows

    def _untrue_words(self, owner: Owner) -> list[DeliveryRow]:
        """Words beside the turns of this session that are to go and are stored as if they stood: its next process would let them stand."""
        return [
            part.row
            for part in self.parts.values()
            if part.row.gone and is_word(part) and self.owners[part.row.origin] == owner and self._book.unlike(part)
        ]

    def _of(self, origin: str) -> dict[Name, Part]:
        return {name: part for name, part in self.parts.items() if name[0] == origin}

    def release(self, origin: str, *, stored: bool = True) -> None:
        """The parts of `origin` are stored, or cannot be."""
        self.held.discard(origin)
        self._book.answered(origin, stored=stored)
        self._ring()

    def take_back(self, origin: str) -> None:
        """Nothing of `origin` should be seen any more."""
        self.take(self.plan(origin, ()))
        self._ring()

    # ------------------------------------------------------------------ what is open

    @property
    def waiting(self) -> list[Part]:
        """Parts that are not as they should be."""
        return [part for part in self.parts.values() if part.open]

    def ready(self) -> list[Part]:
        """Those of them of which something may go out now."""
        held = self.held | self.stopped
        return [
            part
            for part in self.waiting
            if part.row.origin not in held and (part.row.final or part.row.origin not in self.awaited)
        ]

    @property
    def stopped(self) -> set[str]:
        """Origins of which nothing is stored or sent before the storage is found sound: their parts met damage."""
        if not self._damaged:
            return set()
        return {origin for origin, sounds in self._damaged.items() if sounds == self.records.damage.sounds}

    def oldest_wanted_at(self) -> int | None:
        """Since when the oldest part waits that is to stay, ms of the monotonic clock; None if none does."""
        return min((self._wanted_at[p.name] for p in self.waiting if p.name in self._wanted_at), default=None)

    def refused_since(self) -> tuple[int, str] | None:
        """Since when the oldest part waits that is to stay and that a call has failed for, as above; and what was said last."""
        found = (
            (self._wanted_at[p.name], p.row.trouble)
            for p in self.waiting
            if p.row.trouble and p.name in self._wanted_at
        )
        return min(found, default=None)

    def waited(self, name: Name) -> int:
        """How long a part has waited that waits no more, ms."""
        now = steady_ms(self._clock)
        return now - self._wanted_at.pop(name, now)

    @property
    def standing(self) -> bool:
        """A word beside turns is to be seen that is true until it is taken back."""
        return any(map(stands, self.parts.values()))

    # ------------------------------------------------------------------ what is stored

    async def keep(self, part: Part, *others: Part) -> None:
        """Store a part as it is now, and what has come in its place."""
        rows = [part.row, *(other.row for other in others)]
        self.take([part, *others])
        await self._store(self.owners[part.row.origin], rows)

    async def _store(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        try:
            await self.records.put(owner, rows)
        except Damaged:
            self._damaged.update((row.origin, self.records.damage.sounds) for row in rows)
            raise
        self._book.stored(rows)

    async def keep_begun(self, before: Part, *, repeated: bool) -> Part:
        """Store that a part is about to be created. If that cannot be done, nothing was begun."""
        part = begun(before, self._clock.now_ms(), repeated=repeated)
        try:
            await self.keep(part)
        except StorageUnavailable:
            self.not_begun(before)
            raise
        return part

    def not_begun(self, before: Part) -> None:
        """Nothing was sent of a part that was about to be created."""
        row, current = before.row, self.current(before)
        back = replace(
            current.row, state=row.state, attempt=row.attempt, sending_at=row.sending_at, labelled=row.labelled
        )
        self.parts[before.name] = replace(current, row=back)

    async def pay(self, running: Collection[str]) -> bool:
        """Store what is not stored as it is, and will not come to be so by itself. Whether there was any."""
        owed = self._book.owed(self.parts.values(), {*running, *self.awaited, *self.held})
        if stopped := self.stopped:
            owed = [part for part in owed if part.row.origin not in stopped]
        for owner in {self.owners[part.row.origin] for part in owed}:
            rows = [part.row for part in owed if self.owners[part.row.origin] == owner]
            await self._store(owner, rows)
        return bool(owed)

    def sweep(self) -> None:
        """Nothing runs: parts that are settled need not be remembered, but for those of turns that are awaited."""
        running = self.awaited
        self.parts = {
            name: part for name, part in self.parts.items() if part.open or name[0] in running or stands(part)
        }
        self._book.keep_only(self.parts)
        self._wanted_at = {name: at for name, at in self._wanted_at.items() if name in self.parts}
        self._damaged.clear()  # what met damage, and was found sound since, is stored by now
        origins = {name[0] for name in self.parts} | running
        self.owners = {origin: owner for origin, owner in self.owners.items() if origin in origins}

    def forget_all(self) -> None:
        """Everything here belongs to somebody else now."""
        for one in (self.parts, self._wanted_at, self.owners, self.held, self.awaited, self._damaged):
            one.clear()
        self._book.forget_all()

    def hand_over(self, other: Ledger) -> None:
        """The chat has another id: `other` has everything from now on."""
        for part in self.parts.values():
            there = other.parts.get(part.name)
            other.parts[part.name] = moved(part, other.surface) if there is None else joined(there, part)
        other._wanted_at = {**self._wanted_at, **other._wanted_at}
        self._book.hand_over(other._book, other.surface)
        other.owners.update(self.owners)
        other.held.update(self.held)
        other.awaited.update(self.awaited)
        self.forget_all()


def _waits_since(part: Part, now: int) -> Part:
    """What is wanted anew waits from now on, and not since it was last shown, or since 1970."""
    return replace(part, row=replace(part.row, at=now)) if part.row.state is DeliveryState.WANTED else part


def _name(row: DeliveryRow) -> Name:
    return row.origin, row.bubble, row.part
