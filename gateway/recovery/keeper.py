"""The keeper: one task that finds what is open and worked on by nobody alive, and takes it up: at the start, and then always.

It decides nothing: what is taken up, set aside or tried again is decided in `gateway.setaside.takeup`. What it costs: three small indexed
queries at each look, every ten seconds while nothing is unclaimed, every second while something is; none per turn.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from agent_core.driver.driver import TurnDriver
from agent_core.ports import Clock, Ids
from agent_core.store.deliveries.rows import Delivery
from agent_core.store.sessions.takeups import FIRST_PART, MOST, Charges, LeftMessage, LeftPart, LeftTurn, TakeUp
from agent_core.store.slices.rows import single
from agent_core.store.store import Conflict, Damaged, Fenced, LeaseLost, StorageUnavailable, Store
from agent_core.store.turns.rows import OpenTurn
from gateway.delivery.owners import Owner
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.recovery.resuming import Resuming
from gateway.sessions.hub import Hub
from gateway.setaside import takeup
from gateway.setaside.takeup import NOT_TAKEN, SET_ASIDE, KnownItem, LeftItem, LeftKind
from gateway.setaside.unclaimed import Left

log = structlog.get_logger("keeper")

LOOK_SECONDS, IDLE_SECONDS = 1.0, 10.0
EARLY_SECONDS = 15.0
"""So long after the start it looks often: what belongs to a process that has just died may seem to be alive for some seconds."""
TICK_SECONDS = 0.05
TROUBLE_SECONDS = 2.0
START_SECONDS = 60.0
NAMED = 20
"""So many suspects are named in a line."""

Announce = Callable[[LeftKind, str], Awaitable[None]]
"""(kind, what it is by its id) was set aside."""


class StoredParts(Protocol):
    """What the keeper needs of the outbox."""

    def reaches(self, surface: str) -> bool:
        """Its account is configured."""
        ...

    def works_on(self, surface: str, name: tuple[str, str, int]) -> bool:
        """A part is known to its surface."""
        ...

    def unsettled(self, surface: str, name: tuple[str, str, int]) -> bool:
        """Its surface still has it to bring to its end."""
        ...

    def take_up(self, found: Sequence[Delivery], epochs: Mapping[str, int], going_on: Collection[str] = ()) -> None:
        """Show these parts from now on, and all of those turns."""
        ...

    async def set_aside(self, found: Delivery, owner: Owner, words: str) -> None:
        """The part failed for good, for the reason in `words`."""
        ...


class Commands(Protocol):
    """What the keeper needs of the arrivals."""

    def carries_out(self, inbox_id: int) -> bool: ...

    async def carry_out(self, inbox_id: int, owner: Owner) -> bool: ...


class Keeper:
    """Takes up what is unclaimed. The hub owns its task."""

    def __init__(
        self,
        hub: Hub,
        store: Store,
        clock: Clock,
        ids: Ids,
        parts: StoredParts | None = None,
        commands: Commands | None = None,
        on_set_aside: Announce | None = None,
    ) -> None:
        self._portion = hub.portion
        self._queues = hub.queues
        self._runner = hub.runner
        self._store = store
        self._clock = clock
        self._open = hub.left
        self.aside = hub.aside
        """Sets aside what cannot be read."""
        self._resuming = Resuming(hub, store, clock, ids)
        self._before: dict[str, tuple[TurnDriver, int]] = {}
        """By session: what its turn had done when it was taken up."""
        self._look_at = 0.0
        self._looked: Mapping[str, int] = {}
        """The slices that the last look went through, with their epochs."""
        self._held_of: Mapping[str, int] | None = None
        """The slices that were ours when it was looked last what dead nodes hold of budgets."""
        self._began = clock.monotonic()
        self._parts_from = FIRST_PART
        """Where the next look begins with parts: a chat, and the place in it."""
        self._unusable: set[int] = set()
        """Commands that nobody here can carry out."""
        self.set_aside: Counter[LeftKind] = Counter()
        """How many of each kind were set aside."""
        self.taken: Counter[LeftKind] = Counter()
        """How many of each kind were taken up."""
        self._parts = parts
        self.commands = commands
        self.elsewhere: Callable[[Sequence[LeftTurn]], Awaitable[None]] | None = None
        """Says of turns of another node that their files are not here, where that is so."""
        self._on_set_aside = on_set_aside

    # ------------------------------------------------------------------ for others

    def look_at_once(self) -> None:
        """There may be something that was not seen by the last look."""
        self._look_at = 0.0
        self._open.bell.ring()

    def late(self) -> Mapping[LeftKind, int]:
        """How many of each kind are unclaimed for too long."""
        return takeup.late(self._open.known, self._clock.monotonic())

    def late_words(self) -> str:
        """What is unclaimed for too long, in words; empty if nothing is."""
        return takeup.late_words(self.late())

    def unclaimed(self) -> Mapping[LeftKind, int]:
        """How many of each kind are known to be unclaimed."""
        counts = dict.fromkeys(LeftKind, 0)
        for one in self._open.known.values():
            counts[one.item.kind] += one.taken_at is None
        return counts

    # ------------------------------------------------------------------ the task

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._open.bell.wait(await self._round_safely())
        finally:
            self._open.bell.close()

    async def first(self) -> int:
        """Take up all that can be taken up now; how many turns were open. For those who cannot do anything before."""
        async with asyncio.timeout(START_SECONDS):
            await self._look()
            turns = sum(isinstance(left, LeftTurn) for left in self._open.left.values())
            while any(one.taken_at is None and not one.suspect and not one.tries for one in self._open.known.values()):
                await self._open.bell.wait(await self._round())
        return turns

    async def count_open(self) -> int:
        """Look, and say how many open turns are to be taken up."""
        await self._look()
        return sum(isinstance(left, LeftTurn) for left in self._open.left.values())

    async def _round_safely(self) -> float:
        try:
            return await self._round()
        except (StorageUnavailable, LeaseLost) as error:
            log.warning("keeper.storage_unavailable", error=str(error))
        except Exception:
            log.exception("keeper.failed")
        return TROUBLE_SECONDS

    async def _round(self) -> float:
        """Look, if it is time; take up and set aside what is due; the seconds until the next round."""
        if self._runner.closing:
            return IDLE_SECONDS
        if self.aside.damage.everybodys:  # nothing is taken up: whoever waits for that is told, and nobody else would
            for queue in self._queues.blocked():
                self.aside.tell_waiting(queue.session)
            return LOOK_SECONDS
        if self._clock.monotonic() >= self._look_at:
            await self._look()
        await self._settle()
        now = self._clock.monotonic()
        due = takeup.due(self._open.known, now, frozenset(self._open.wanted))
        if due.take:
            self._open.taking = {item.name for item in due.take if item.kind is LeftKind.SESSION}
            try:
                async with self._portion.changing_hands:
                    await self._take(self._ours(due.take), alone=due.alone)
            finally:
                self._open.taking = set()
        for item in due.aside:
            self._open.taking = {self._open.left[item.key].session}
            try:
                await self._guarded(item, self._put_aside(item))
                await self._look()  # what waited behind it comes next, and before what is new
            finally:
                self._open.taking = set()
        self._portion.looked, self._portion.left = self._looked, self._open.to_come()
        now = self._clock.monotonic()
        busy = any(one.taken_at is not None or one.not_before <= now for one in self._open.known.values())
        return TICK_SECONDS if busy and not self._only_ours(now) else max(TICK_SECONDS, self._look_at - now)

    def _only_ours(self, now: float) -> bool:
        return all(one.item.ours and now - one.since < takeup.OURS_SECONDS for one in self._open.known.values())

    # ------------------------------------------------------------------ looking

    async def _look(self) -> None:
        """Find what nobody alive works on."""
        began = self._clock.monotonic()
        self._look_at = began + LOOK_SECONDS
        left, slices = self._store.left, self._portion.slices
        epochs = {name: self._portion.epochs[name] for name in slices or () if name in self._portion.epochs}
        there = await left.everything(slices, self._parts_from if self._parts is not None else None)
        every = (*there.turns, *there.messages, *there.parts)
        for session in left.lost_sessions - self.aside.known.keys():
            await self.aside.put(session, Damaged("What is open in it cannot be read."))
        owners = {one.owner for one in every if one.owner is not None} - {self._store.node}
        holders = await left.holders() - {self._store.node} if epochs != self._held_of else frozenset[int]()
        dead = await self._store.dead_among(owners | holders) if owners or holders else frozenset[int]()
        if holders & dead:  # of those that left nothing else
            async with self._portion.changing_hands:
                await left.take_up(self._resuming.taken_over_row, (), {})
        self._held_of = epochs
        ended = await left.ended(dead) if dead else frozenset[int]()
        found: dict[tuple[LeftKind, str], Left] = {}
        items: list[LeftItem] = []
        for one in every:
            lives = one.owner is not None and one.owner != self._store.node and one.owner not in dead
            if (lives and not self._given_up(one)) or self._worked_on(one):
                continue
            item = self._open.item(one, ended | owners if lives else ended)
            if item.key not in found:  # of a session, its turn comes first, then its oldest message
                found[item.key] = one
                items.append(item)
        self._open.known = takeup.found(self._open.known, items, self._clock.monotonic())
        self._open.left = {key: found.get(key) or self._open.left[key] for key in self._open.known}
        self._open.wanted &= {name for _, name in self._open.known}
        for queue in self._queues.blocked():
            if (LeftKind.SESSION, queue.session) not in self._open.known:
                self._runner.unblock(queue)
        self._portion.left = self._open.to_come()
        self._looked = epochs
        goes_on = self._pass_parts(there.parts, items)
        early = began - self._began < EARLY_SECONDS
        nothing = not any(one.taken_at is None for one in self._open.known.values())
        if self._look_at and nothing and not early and not goes_on:  # else something has come while it was looked
            self._look_at = began + IDLE_SECONDS

    def _pass_parts(self, parts: Sequence[LeftPart], items: Sequence[LeftItem]) -> bool:
        """The next look goes on behind these if nobody has to take any of them up: they may wait for a platform that is away, and hide what is behind
        them. Whether there is more behind them."""
        if any(item.kind is LeftKind.PART for item in items):
            return False
        more = len(parts) >= MOST
        self._parts_from = (parts[-1].surface, parts[-1].place) if more else FIRST_PART
        return more

    def _ours(self, items: Sequence[LeftItem]) -> Sequence[LeftItem]:
        """Those whose slices we still have; the others are not known of any more."""
        for item in items:
            if not self._portion.mine(self._open.left[item.key].key):
                self._open.known.pop(item.key)
        return [item for item in items if item.key in self._open.known]

    def _given_up(self, one: Left) -> bool:
        """Its owner lives, and has given its slice to us."""
        return not self._portion.whole and not single(one.key)

    def _worked_on(self, one: Left) -> bool:
        """It is in this process's hands, or in nobody's reach."""
        match one:
            case LeftPart():
                parts = self._parts
                assert parts is not None
                return not parts.reaches(one.surface) or parts.works_on(one.surface, one.name)
            case LeftTurn():
                queue = self._queues.of(one.session)
                running = queue.running if queue is not None else None
                return running is not None and running.driver.identity.turn == one.turn
            case LeftMessage(lane=name):
                if name == COMMAND_LANE:
                    commands, number = self.commands, one.inbox_id
                    return commands is None or number in self._unusable or commands.carries_out(number)
                queue = self._queues.of(one.session)
                return name != NORMAL_LANE or (queue is not None and not queue.blocked and queue.knows(one.inbox_id))

    # ------------------------------------------------------------------ what became of it

    async def _settle(self) -> None:
        """What was taken up and has made progress, or has lived, is ours like everything else."""
        now = self._clock.monotonic()
        spared: list[KnownItem] = []
        for key, known in list(self._open.known.items()):
            if known.taken_at is None:
                continue
            if self._waits(known.item):
                self._open.known[key] = replace(known, taken_at=now)  # its turn has not begun to do anything
                continue
            progress = self._progressed(known.item)
            if progress or not known.young(now):
                if known.suspect and not progress:
                    spared.append(known)
                del self._open.known[key]
                self._before.pop(known.item.name, None)
                self._open.opening_now.discard(known.item.name)
        if spared:
            await self._store.left.charge(self._open.charges([(one.item, one.item.spared) for one in spared]))
        self._open.left = {key: left for key, left in self._open.left.items() if key in self._open.known}

    def _waits(self, item: LeftItem) -> bool:
        """The conversation waits for the gateway to have room, or for what else its message may say."""
        queue = self._queues.of(item.name) if item.kind is LeftKind.SESSION else None
        if queue is None:
            return False
        unopened = (
            self._open.only_waits(item) and item.name not in self._open.opening_now and not self._progressed(item)
        )
        return unopened or self._runner.slots.position(queue) is not None

    def _progressed(self, item: LeftItem) -> bool:
        left = self._open.left[item.kind, item.name]
        match left:
            case LeftPart():
                return self._parts is None or not self._parts.unsettled(left.surface, left.name)
            case LeftTurn():
                queue = self._queues.of(left.session)
                running = queue.running if queue is not None else None
                before = self._before.get(item.name)
                if running is None or before is None or running.driver is not before[0]:
                    return True
                turn = running.driver.turn
                return len(turn.round.tools_done) > before[1]
            case LeftMessage():
                if left.lane == COMMAND_LANE:
                    return self.commands is None or not self.commands.carries_out(left.inbox_id)
                queue = self._queues.of(left.session)
                return queue is None or queue.position(left.inbox_id) is None

    # ------------------------------------------------------------------ taking up

    async def _take(self, items: Sequence[LeftItem], *, alone: bool) -> None:
        """Store that they are taken up, and how often that came to nothing; then take them up.

        A message that waits for its turn is charged when that is opened (`opening`): until then nothing is begun with it.
        """
        sessions = {self._open.left[item.key].session for item in items}
        begun: dict[str, list[tuple[LeftItem, int]]] = {}
        for item in items:
            if not self._open.only_waits(item):
                begun.setdefault(self._open.left[item.key].session, []).append((item, item.charged(alone=alone)))
        charges = {session: self._open.charges(those) for session, those in begun.items()}
        try:
            taken = await self._store.left.take_up(self._resuming.taken_over_row, sessions, charges)
        except Exception as error:
            if _in_the_way(error):
                raise
            await self._take_by_halves(items, error, alone=alone)
            return
        now = self._clock.monotonic()
        mine = [item for item in items if self._open.left[item.key].session in taken.epochs]
        for item in items:
            known = self._open.known[item.key]
            lost = item not in mine  # its owner lives after all
            self._open.known[item.key] = (
                takeup.again(known, now) if lost else replace(known, item=item, not_before=0, taken_at=now, alone=alone)
            )
        self.taken.update(item.kind for item in mine)
        if any(item.suspect for item in mine):
            names = [f"{item.kind.value} {item.name}" for item in mine[:NAMED]]
            log.warning("keeper.suspect", what=names, count=len(mine))
        # Before anything else: an answer that was left comes before those to what is said next.
        await self._take_parts([item for item in mine if item.kind is LeftKind.PART], taken)
        sessions_taken = [item for item in mine if item.kind is LeftKind.SESSION]
        if sessions_taken:
            await self._take_sessions(sessions_taken, taken)
        commands = [item for item in mine if item.kind is LeftKind.COMMAND]
        for item in commands:
            await self._guarded(item, self._take_command(item, taken))
        now = self._clock.monotonic()
        for item in mine:
            if (known := self._open.known.get(item.key)) is not None and known.taken_at is not None:
                self._open.known[item.key] = replace(known, taken_at=now)  # from here on it does something

    async def _take_by_halves(self, items: Sequence[LeftItem], error: Exception, *, alone: bool) -> None:
        """One of these conversations cannot be taken up: it is found, and holds up nobody else."""
        sessions = sorted({self._open.left[item.key].session for item in items})
        if len(sessions) == 1:
            for item in items:
                await self._failed(item, error)
            return
        first = {*sessions[: len(sessions) // 2]}
        for mine in (True, False):
            half = [item for item in items if (self._open.left[item.key].session in first) is mine]
            await self._take(half, alone=alone)

    async def _take_sessions(self, items: Sequence[LeftItem], taken: TakeUp) -> None:
        by_session = {one.session: one for one in taken.turns}
        lefts = [self._open.left[item.key] for item in items]
        keys = {left.session: left.key for left in lefts if not isinstance(left, LeftPart)}
        turns = [by_session[item.name] for item in items if item.name in by_session]
        try:
            if self.elsewhere is not None:
                await self.elsewhere([one for one in lefts if isinstance(one, LeftTurn)])
            await self._resuming.turns(turns, keys)
        except Exception as error:  # noqa: BLE001 - `_failed` says what it is
            if len(items) > 1 and not _in_the_way(error):  # found by halves, so that it holds up nobody else
                half = len(items) // 2
                await self._take_sessions(items[:half], taken)
                await self._take_sessions(items[half:], taken)
                return
            for item in items:
                await self._failed(item, error)
            return
        for item in items:
            queue = self._queues.of(item.name)
            if queue is not None and queue.running is not None:
                turn = queue.running.driver.turn
                self._before[item.name] = (queue.running.driver, len(turn.round.tools_done))
            key = keys[item.name]
            await self._guarded(item, self._resuming.messages(item.name, key, taken.epochs[item.name]))

    async def _take_command(self, item: LeftItem, taken: TakeUp) -> None:
        left = self._open.left[item.key]
        assert isinstance(left, LeftMessage)
        assert self.commands is not None
        if not await self.commands.carry_out(left.inbox_id, Owner(left.session, taken.epochs[left.session])):
            self._unusable.add(left.inbox_id)

    async def _take_parts(self, items: Sequence[LeftItem], taken: TakeUp) -> None:
        """Have surfaces show parts; they are read chat by chat."""
        lefts = [left for item in items if isinstance(left := self._open.left[item.key], LeftPart)]
        if not lefts or self._parts is None:
            return
        wanted = {(left.surface, *left.name) for left in lefts}
        rows = await self._store.deliveries.of_all(sorted({left.origin for left in lefts}))
        found = [one for one in rows if (one.row.surface, one.row.origin, one.row.bubble, one.row.part) in wanted]
        self._parts.take_up(found, taken.epochs, self._turns_to_come() | {one.turn for one in taken.turns})

    def _turns_to_come(self) -> set[str]:
        """Open turns that are still to be taken up: what of them is on its way goes on changing."""
        lefts = [self._open.left[key] for key, known in self._open.known.items() if known.taken_at is None]
        return {left.turn for left in lefts if isinstance(left, LeftTurn)}

    async def _guarded(self, item: LeftItem, work: Awaitable[None]) -> None:
        """One that cannot be taken up is tried again, and holds up no other."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - `_failed` says what it is
            await self._failed(item, error)

    async def _failed(self, item: LeftItem, error: Exception) -> None:
        known, session = self._open.known.get(item.key), item.kind is LeftKind.SESSION
        match error:
            case Damaged() | inbox.UnreadableMessage() if session:
                await self._unreadable(item, error)
            case Damaged() | inbox.UnreadableMessage():
                self._not_taken(item, error)
            case _ if _in_the_way(error):
                self._not_taken(item, error)
            case _:
                log.error("keeper.failed", exc_info=error)
                # That it is set aside cannot be stored in it either
                if session and known is not None and known.hopeless:
                    await self._unreadable(item, error)
                else:
                    self._not_taken(item, error, mistake=True)

    async def _unreadable(self, item: LeftItem, error: Exception) -> None:
        """What cannot be read is set aside, or, if that cannot be stored, tried again later and later."""
        if await self.aside.put(item.name, error):
            self._open.known.pop(item.key, None)
        else:
            self._not_taken(item, error)

    def _not_taken(self, item: LeftItem, error: Exception, *, mistake: bool = False) -> None:
        now = self._clock.monotonic()
        log.warning("keeper.not_taken", kind=item.kind.value, name=item.name, error=f"{type(error).__name__}: {error}")
        if item.key in self._open.known:
            self._open.known[item.key] = takeup.again(self._open.known[item.key], now, mistake=mistake)

    # ------------------------------------------------------------------ setting aside

    async def _put_aside(self, item: LeftItem) -> None:
        """It is not tried once more, and whoever it concerns is told."""
        left = self._open.left[item.key]
        why = NOT_TAKEN if self._open.known[item.key].mistakes else SET_ASIDE
        charges = {left.session: Charges({left.turn: item.suspicion})} if isinstance(left, LeftTurn) else {}
        taken = await self._store.left.take_up(self._resuming.taken_over_row, {left.session}, charges)
        epoch = taken.epochs.get(left.session)
        if epoch is None:
            self._open.known[item.key] = takeup.again(self._open.known[item.key], self._clock.monotonic())
            return
        reference = ""
        match left:
            case LeftTurn():
                name = f"turn {left.turn}"
                last = len(await self._store.turns.journal(left.turn))
                reference = await self._resuming.set_aside_turn(OpenTurn(left.turn, left.session, epoch), last, why)
            case LeftMessage():
                name = f"message {left.inbox_id}"
                row = await self._store.inbox.one(left.inbox_id)
                if row is not None:
                    await self._resuming.set_aside_message(row, left.key, epoch, killed=why == SET_ASIDE)
            case LeftPart():
                name = f"delivery {left.origin}/{left.bubble}/{left.part}"
                part = await self._store.deliveries.one(left.surface, *left.name)
                if part is not None and self._parts is not None:
                    await self._parts.set_aside(part, Owner(left.session, epoch), why)
        self._open.known.pop(item.key, None)
        self.set_aside[item.kind] += 1
        log.error(
            "keeper.set_aside", kind=item.kind.value, name=name, session=left.session, reference=reference or None
        )
        if self._on_set_aside is not None:
            await self._on_set_aside(item.kind, name)


def _in_the_way(error: Exception) -> bool:
    """It is none of what was to be taken up: the storage is away, or somebody else's writing counts."""
    return isinstance(error, StorageUnavailable | LeaseLost | Fenced | Conflict) and not isinstance(error, Damaged)


async def recovered(hub: Hub, store: Store, clock: Clock, ids: Ids) -> int:
    """Give the hub a keeper, and take up at once what can be; how many turns were open. For hubs without a port."""
    keeper = Keeper(hub, store, clock, ids)
    turns = await keeper.first()
    hub.keep(keeper.run, "keeper")
    return turns
