"""Followers: how a surface sees one message, or a whole session, level-triggered.

They hold no state of their own that could be lost: whatever they were last, the next sight is the latest there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace
from types import TracebackType

from adapters.contract.base import (
    Ended,
    LeftOpen,
    MessageState,
    Queued,
    SessionKey,
    Showing,
    Sight,
    TextReader,
    Ticket,
    TurnSight,
)
from agent_core.bell import Bell
from agent_core.driver.closing import SOON_SECONDS
from agent_core.driver.driver import TurnDriver
from agent_core.driver.watcher import TurnSeen, kept_back
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import Damaged, StorageUnavailable, Store
from agent_core.turn.view import BubbleKind, View
from gateway.queues.branches import branches_of
from gateway.queues.queue import (
    Running,
    SessionQueue,
    Waiting,
    names_brought,
    person_words,
    queued_sight,
    readable,
    sight_of,
    summary_of,
)
from gateway.queues.queues import Queues
from gateway.sessions.recents import (
    FarMessage,
    FarSights,
    decided_alone,
    earlier_sights,
    load_recent,
    stored_end,
    task_sight,
)
from gateway.sessions.runner import Runner
from gateway.setaside.unclaimed import Unclaimed
from gateway.sharing.portion import ELSEWHERE_SECONDS, Due, Portion

NOT_SEEN = LeftOpen("", View((), open=True))
LEFT_SECONDS = 5.0
"""So long a first look waits for what an earlier process left there."""


def ended_of(driver: TurnDriver, view: View) -> Ended:
    """The last sight of a driver's turn."""
    turn = driver.turn
    assert turn.exit is not None
    return Ended(
        turn=driver.identity.turn,
        view=view,
        exit=turn.exit,
        handed=turn.handed_calls,
        summary=summary_of(turn),
        made=turn.made,
        thought=turn.thoughts,
        thoughts=turn.reply_thoughts,
    )


class MessageFollower:
    """Follows one message: queued, showing, ended."""

    __slots__ = (
        "_bell",
        "_due",
        "_end_alone",
        "_far",
        "_queue",
        "_reader",
        "_running",
        "_shown",
        "_stored_alone",
        "_storing",
        "_ticket",
        "_told",
        "_watching",
    )

    def __init__(self, watching: Watching, ticket: Ticket, *, end_alone: bool, stored_alone: bool) -> None:
        self._watching = watching
        self._ticket = ticket
        self._end_alone = end_alone
        self._stored_alone = stored_alone
        self._bell = Bell()
        self._running: Running | None = None
        """What runs it, once that is known; it rings the bell, too."""
        self._storing: TurnSeen | None = None
        """What runs it here and is not shown, because only what is stored of it is; its end rings the bell."""
        self._queue: SessionQueue | None = None
        self._reader: TextReader | None = None
        self._told: Queued | None = None
        self._far: FarMessage | None = None
        self._due = Due()
        self._shown: Showing | None = None
        """What was told of it last, where another gateway runs it."""

    async def __aenter__(self) -> MessageFollower:
        self._watching.following[self._ticket.inbox_id] += 1
        self._watching.queues.expect(self._ticket.session, self._bell)
        self._attach()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._detach()
        following, message = self._watching.following, self._ticket.inbox_id
        following[message] -= 1
        if following[message] <= 0:
            del following[message]
            self._watching.left.ring()
        self._watching.queues.expect_no_more(self._bell)
        if self._queue is not None:
            self._queue.watchers.remove(self._bell)
            self._watching.queues.release(self._queue)
        self._bell.close()

    def _attach(self) -> None:
        queue = self._watching.queues.of(self._ticket.session)
        if queue is not None and queue is not self._queue:
            self._queue = queue
            queue.watchers.append(self._bell)
        self._find_driver()

    def _find_driver(self) -> None:
        running = self._queue.running if self._queue is not None else None
        if running is not None and running.driver.over and running.driver.turn.exit is None:
            running = None  # it was overtaken, or left
        if running is not None and self._certain and any(m.inbox_id == self._ticket.inbox_id for m in running.messages):
            seen = running.driver.seen
            if self._stored_alone:
                self._see_stored(seen)
                return
            self._running = running
            if self._end_alone:
                seen.subscribe_to_end(self._bell)
            else:
                seen.subscribe(self._bell)
            if seen.over or not self._end_alone:
                self._bell.ring()

    def _see_stored(self, seen: TurnSeen) -> None:
        """It runs here, and is seen as if it ran elsewhere."""
        if self._storing is not seen:
            self._detach()
            self._storing, self._due.every = seen, SOON_SECONDS
            seen.subscribe_to_end(self._bell)

    @property
    def _certain(self) -> bool:
        """What runs here may be shown. Who stood still runs it for a moment as it was before, and the store has it from whoever took it over: what was
        seen there does not go away."""
        return self._far is None or self._watching.store.ownership.lease_ok()

    def _detach(self) -> None:
        if self._running is not None:
            self._running.driver.seen.unsubscribe(self._bell)
            self._running = None
        if self._storing is not None:
            self._storing.unsubscribe(self._bell)
            self._storing = None

    async def next(self, timeout_seconds: float, reader: TextReader | None = None) -> Sight | None:
        """See `adapters.contract.base.Follower.next`."""
        clock = self._watching.clock
        until = clock.monotonic() + timeout_seconds
        self._reader = reader
        while True:
            if self._running is None:
                self._attach()
            if self._running is None and self._watching.portion.cut_off:
                return LeftOpen(self._shown.turn, self._shown.view) if self._shown is not None else NOT_SEEN
            left = until - clock.monotonic()
            if self._running is not None:
                driver, changed = (
                    self._running.driver,
                    await self._bell.wait(max(0.0, left), self if reader is not None else None),
                )
                if changed and self._end_alone and not driver.seen.over:
                    continue  # it was the queue's
                return self._sight(driver, changed=changed)
            queue = self._queue
            if (found := await self._known(queue)) is not None:
                return found
            if self._watching.runner.leaving:
                return NOT_SEEN
            # Where another process runs it, the journal has to be asked.
            here = queue is not None and (queue.epoch or self._watching.portion.whole) and self._certain
            here = here and self._storing is None
            if left > 0 and await self._bell.wait(left if here else min(left, self._due.seconds or ELSEWHERE_SECONDS)):
                self._due.ring()
            elif here or clock.monotonic() >= until:
                break
        now = self._queued(queue)  # the line moves all the time: it is told when something has to be said anyhow
        told, self._told = self._told, now or self._told
        return now if now != told else None

    def new_text(self) -> bool:
        """There is more text; whether the reader has taken it."""
        if self._running is None or self._reader is None or self._running.driver.seen.over:
            return False
        driver = self._running.driver
        return self._reader.shown(Showing(driver.identity.turn, driver.seen.current_view(), driver.turn.thoughts))

    async def _known(self, queue: SessionQueue | None) -> Sight | None:
        """What is known of it while no driver runs it here, if that is news."""
        queued = self._queued(queue)
        if queued is None and (queue is None or queue.position(self._ticket.inbox_id) is None):
            return await self._stored()
        if queued is not None and (self._told is None or queued.position != self._told.position):
            self._told = queued
            return queued
        return None

    async def _stored(self) -> Sight | None:
        """What is stored of it, if that is news. While the storage is away, nothing is but that, of what was seen to run: the rest is seen when that is
        back."""
        try:
            return await self._looked()
        except Damaged:
            raise
        except StorageUnavailable:
            return self._news(replace(self._shown, view=kept_back(self._shown.view))) if self._shown else None

    async def _looked(self) -> Sight | None:
        store, message, afar = self._watching.store, self._ticket.inbox_id, self._watching.portion.afar
        if self._watching.portion.whole and self._storing is None:
            return await stored_end(store, message)
        if not self._due.now():
            return None
        if self._end_alone:  # the end is told of in any case, and nothing has to be stored sooner for it
            row = await store.inbox.one(message)
            over = row is not None and row.state not in (InboxState.NEW, InboxState.TAKEN)
            return await stored_end(store, message, row) if over else None
        afar.look_at(self._ticket.session)
        if self._storing is not None:
            afar.heard(self._ticket.session)
        self._far = self._far or FarMessage(store, message, afar)
        found = await self._far.look(self._watching.clock.now_ms())
        if isinstance(found, Queued):
            told, self._told = self._told, found
            return found if told is None or told.position != found.position else None
        return self._news(found) if isinstance(found, Showing) else found

    def _news(self, found: Showing) -> Showing | None:
        told, self._shown = self._shown, found
        return found if told is None or (found.view, found.thought.chars) != (told.view, told.thought.chars) else None

    def _queued(self, queue: SessionQueue | None) -> Queued | None:
        """Where the message waits; None if it does not, or is just about to begin."""
        position = queue.position(self._ticket.inbox_id) if queue is not None else None
        if queue is None or position is None:
            return None
        line = self._watching.runner.slots.position(queue) or 0
        return Queued(position, line) if line or queue.running is not None or position != 1 else None

    def _sight(self, driver: TurnDriver, *, changed: bool) -> Sight | None:
        ended, view = driver.seen.over, driver.seen.current_view()
        if not changed:
            told = any(bubble.kind is BubbleKind.STATUS for bubble in view.bubbles)
            return Showing(driver.identity.turn, view) if told else None
        if ended and driver.overtaken and not driver.closed and not self._watching.portion.whole:
            # What was shown may not all be stored, nor the end that it had decided on; and a stream takes nothing back.
            return LeftOpen(driver.identity.turn, view)
        if ended and driver.turn.exit is not None:
            return ended_of(driver, view)
        if ended and driver.left_open:
            return LeftOpen(driver.identity.turn, view)
        # What was shown may not all be stored, and a stream takes nothing back
        if ended and not self._watching.portion.whole:
            return LeftOpen(driver.identity.turn, view)
        if ended:  # another owner has it now
            self._detach()
        return Showing(driver.identity.turn, view, driver.turn.thoughts)


class WholeSessionFollower:
    """Follows a session: everything once, then what changes."""

    def __init__(self, watching: Watching, queue: SessionQueue) -> None:
        self._watching = watching
        self._queue = queue
        self._bell = Bell()
        self._sent: dict[str, TurnSight] = {}
        self._watched: set[TurnDriver] = set()
        self._tasks: dict[str, TurnSight] = {}
        """What background tasks of it ask, by their turns."""
        self._first = True
        self._far: FarSights | None = None
        self._due, self._woken = Due(), False
        self._ended = queue.ended

    async def __aenter__(self) -> WholeSessionFollower:
        self._queue.watchers.append(self._bell)
        await self._watching.recent(self._queue)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch(set())
        self._queue.watchers.remove(self._bell)
        self._watching.queues.expect_no_more(self._bell)
        self._watching.queues.release(self._queue)
        self._bell.close()

    def _watch(self, drivers: set[TurnDriver]) -> None:
        """Be woken by the turns that run, too."""
        for driver in self._watched - drivers:
            driver.seen.unsubscribe(self._bell)
        for driver in drivers - self._watched:
            driver.seen.subscribe(self._bell)
        self._watched = drivers

    @property
    def over(self) -> bool:
        """See `adapters.contract.base.SessionFollower.over`."""
        if self._queue.ended != self._ended or (self._far is not None and self._far.gone):
            return True
        return self._watching.portion.cut_off and all(one.seen.over or one.seen.storage_away for one in self._watched)

    async def next(self, timeout_seconds: float) -> tuple[TurnSight, ...] | None:
        """See `adapters.contract.base.SessionFollower.next`."""
        if not self._watching.portion.mine(self._queue.key):
            return await self._next_from_afar(timeout_seconds)
        if self._far is not None:  # it is run here from now on
            self._far, self._queue.recent, self._queue.recent_loaded = None, [], False
            self._watching.queues.expect_no_more(self._bell)
            await self._watching.recent(self._queue)
            return self._news(self._sights())
        if self._first:
            await self._taken_up()
        elif not await self._bell.wait(timeout_seconds):
            return None
        await self._watching.recent(self._queue)
        return self._news(self._sights())

    async def _taken_up(self) -> None:
        """What an earlier process left here is taken up next, and then told with all else: a message that was accepted is never seen to be gone."""
        until = self._watching.clock.monotonic() + LEFT_SECONDS
        while (left := until - self._watching.clock.monotonic()) > 0 and await self._watching.lacks(self._queue):
            await self._bell.wait(min(left, ELSEWHERE_SECONDS))

    def _news(self, sights: Sequence[TurnSight]) -> tuple[TurnSight, ...] | None:
        changed = tuple(sight for sight in self._branched(sights) if self._sent.get(sight.key) != sight)
        self._sent |= {sight.key: sight for sight in changed}
        first, self._first = self._first, False
        return changed if changed or first else None

    async def _next_from_afar(self, timeout_seconds: float) -> tuple[TurnSight, ...] | None:
        """The same of a conversation that another gateway runs."""
        watching = self._watching
        if self._far is None:
            self._watch(set())
            self._far = FarSights(
                watching.store, self._queue.key, watching.messages, watching.clock, watching.portion.afar
            )
        until = watching.clock.monotonic() + timeout_seconds
        while True:
            if self._woken or self._due.now():
                woken, self._woken = self._woken, False
                try:
                    sights = await self._far.look(woken=woken)
                    self._queue.branches = self._far.branches
                    watching.queues.expect(self._far.session, self._bell)
                    watching.portion.afar.look_at(self._far.session)
                    news = self._news(sights)
                except StorageUnavailable:  # the rest is seen when that is back
                    news = self._kept_back()
                if news is not None:
                    return news
            left = until - watching.clock.monotonic()
            if left <= 0 or self.over or watching.portion.mine(self._queue.key):
                return None
            self._woken = await self._bell.wait(min(left, self._due.seconds))

    def _kept_back(self) -> tuple[TurnSight, ...] | None:
        """Of what was seen to run it is said that the storage is away."""
        away = (replace(one, view=kept_back(one.view)) for one in self._sent.values())
        changed = tuple(one for one in away if one != self._sent[one.key])
        self._sent |= {one.key: one for one in changed}
        return changed or None

    def _sights(self) -> list[TurnSight]:
        queue = self._queue
        sights = list(queue.recent)
        running = queue.running
        tasks = self._watching.queues.tasks_of(queue.key)
        self._watch({one.driver for one in [*([running] if running is not None else []), *tasks]})
        sights += self._asked(tasks)
        if running is not None:
            sights += [self._running_sight(running, message) for message in running.messages]
        sights += [queued_sight(message, index + 1) for index, message in enumerate(queue.waiting)]
        return sights

    def _branched(self, sights: Sequence[TurnSight]) -> list[TurnSight]:
        """As they are on the branch that is shown; of one that was told and is on another now that."""
        branches = self._queue.branches
        if not branches.forked:
            return [*sights]
        gone = [one for one in self._sent.values() if one.turn in branches.hidden]
        return [
            *(replace(one, hidden=True) for one in gone),
            *(branches.seen(one) for one in sights if one.turn not in branches.hidden),
        ]

    def _asked(self, tasks: Sequence[Running]) -> list[TurnSight]:
        """What background tasks ask here, and what they asked: of one that is over nothing waits any more."""
        now = {one.driver.identity.turn: sight for one in tasks if (sight := _task_here(one)) is not None}
        over = {
            turn: replace(one, view=decided_alone(one.view)) for turn, one in self._tasks.items() if turn not in now
        }
        self._tasks = over | now
        return [*self._tasks.values()]

    def _running_sight(self, running: Running, message: Waiting) -> TurnSight:
        driver = running.driver
        if driver.turn.exit is not None and not driver.seen.committing:
            return sight_of(driver.identity.turn, driver.turn, message, self._watching.clock.now_ms())
        return TurnSight(
            key=message.inbound.platform_key,
            order=message.arrival,
            state=MessageState.OPEN,
            person=person_words(message.inbound),
            brought=names_brought(message.inbound),
            turn=driver.identity.turn,
            view=driver.seen.current_view(),
            at=message.received_at,
            thought=driver.turn.thoughts,
            thought_chars=driver.turn.thoughts.chars,
        )


def _task_here(running: Running) -> TurnSight | None:
    message = next(iter(running.messages), None)
    return task_sight(running.driver.identity.turn, message, running.driver.seen.current_view()) if message else None


@dataclass(frozen=True, slots=True)
class Watching:
    """Shows what becomes of messages, from the queues while they are here, else from the store."""

    store: Store
    queues: Queues
    runner: Runner
    clock: Clock
    portion: Portion
    unclaimed: Unclaimed
    following: Counter[int] = field(default_factory=Counter[int])
    """How many follow which message."""
    left: Bell = field(default_factory=Bell)
    """Rung when nobody follows a message any more."""

    def follow(self, ticket: Ticket, *, end_alone: bool = False, stored_alone: bool = False) -> MessageFollower:
        """See `adapters.contract.base.Gateway.follow`."""
        return MessageFollower(self, ticket, end_alone=end_alone, stored_alone=stored_alone)

    async def others_are_over(self) -> None:
        """Come back when nobody here follows a message that another gateway runs."""
        while not self.portion.whole and not all(
            any(queue.knows(message) for queue in self.queues) for message in self.following
        ):
            await self.left.wait(ELSEWHERE_SECONDS)

    def follow_session(self, key: SessionKey) -> WholeSessionFollower:
        """See `adapters.contract.base.Gateway.follow_session`."""
        return WholeSessionFollower(self, self.queues.at(key.text()))

    async def earlier(self, key: SessionKey, turn: str) -> tuple[TurnSight, ...]:
        """See `adapters.contract.base.Gateway.earlier`."""
        known = await self.store.sessions.by_key(key.text())
        return await earlier_sights(self.store, known.session, turn, self.messages) if known is not None else ()

    async def messages_of(self, turn: str) -> tuple[Waiting, ...]:
        return tuple((await self.messages(turn)).get(turn, ()))

    async def messages(self, *turns: str) -> dict[str, list[Waiting]]:
        found: dict[str, list[Waiting]] = {}
        for row, message in readable(await self.store.inbox.inputs(*turns)):
            found.setdefault(row.turn or "", []).append(message)
        return found

    async def lacks(self, queue: SessionQueue) -> bool:
        """An earlier process left something in the session that the queue does not know yet. While the storage is away, nobody knows."""
        if queue.running is not None or queue.waiting or not queue.session or self.runner.closing:
            return False
        if queue.epoch:
            return queue.blocked or self.unclaimed.holds(queue.session)
        try:
            return await self.unclaimed.find(queue.session)
        except StorageUnavailable:
            return False

    async def recent(self, queue: SessionQueue) -> None:
        """Load the session's latest closed turns into the queue, once, and again where there are branches of which it does not know."""
        if not queue.recent_loaded:
            await self._load(queue)
        shown = None
        # Until nothing has begun or ended while it was asked: of what ends last nobody is told again.
        while queue.branches.forked and (now := _shown(queue)) != shown and not now <= queue.branches.known:
            shown = now
            queue.branches = branches_of(await self.store.turns.places(queue.session))

    async def _load(self, queue: SessionQueue) -> None:
        queue.recent_loaded = True
        if not queue.session:
            known = await self.store.sessions.by_key(queue.key)
            if known is None:
                return
            queue.session = known.session
        await load_recent(self.store, queue, self.messages)
        if len(queue.watchers) > 1:  # the others looked while it was on its way
            queue.wake()


def _shown(queue: SessionQueue) -> set[str]:
    """The turns of which there is something to see."""
    running = {queue.running.driver.identity.turn} if queue.running is not None else set[str]()
    return {one.turn for one in queue.recent if one.turn} | running
