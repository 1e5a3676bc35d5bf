"""Runs the queues: one turn each time a queue has its place, so that no conversation holds up the others.

A queue's task takes the next message (or the pieces of one), has its turn opened, and drives it to its end.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from agent_core.driver.closing import heard_in
from agent_core.driver.driver import Overtaken, TurnDriver, TurnLeftOpen
from agent_core.driver.work import CANCEL_SECONDS
from agent_core.learning.refused import RefusedContents
from agent_core.ports import Clock
from agent_core.records import NONE
from agent_core.retry import NOT_OPENED
from agent_core.signals import Tell
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.text.tongue import begin_speaking
from agent_core.turn.events import StopRequested
from gateway.limits.admission import Bounds
from gateway.queues.draining import Draining
from gateway.queues.merging import Merged, merged
from gateway.queues.queue import RECENT_TURNS, Running, SessionQueue, Waiting, piece_of, sight_of
from gateway.queues.queues import Queues
from gateway.queues.slots import TurnSlots
from gateway.setaside.setaside import PutAside

log = structlog.get_logger("turn")

OVERTAKEN_MOST = 5
"""So often a turn is found to be another's, and comes back here, before it counts as one that nobody can go on with."""
Opener = Callable[[SessionQueue, tuple[Waiting, ...]], Awaitable[TurnDriver | None]]
"""A driver whose turn is open in the store; None: the messages will not run, or another time."""


def _arrival(message: Waiting) -> int:
    return message.arrival


class Runner:
    """The tasks are in `group`."""

    def __init__(
        self,
        queues: Queues,
        open_turn: Opener,
        left: Callable[[str], Awaitable[None]],
        aside: PutAside,
        refused: RefusedContents,
        bounds: Bounds,
        clock: Clock,
        tell: Tell,
        group: asyncio.TaskGroup,
    ) -> None:
        """`left` is told the key of a queue that came to its end; `refused` learns what models refused of what clients bring along."""
        self._queues = queues
        self._open_turn = open_turn
        self._left = left
        self._aside = aside
        self._refused = refused
        self._clock = clock
        self._group = group
        self._overtaken = Counter[str]()
        """How often each turn that is not over here was found to be another's."""
        self.slots = TurnSlots(bounds, queues, self._begin, clock, tell)
        self.closing = False
        """No turn begins any more."""
        self.leaving = False
        """The drain is over: what is open stays so, and goes on in the next process."""

    def cancel(self) -> None:
        """Run nothing any more."""
        self.closing = True
        self.slots.close()
        for queue in self._queues:
            if queue.task is not None:
                queue.task.cancel()
                if queue.running is not None and queue.running.driving is not None:
                    queue.running.driving.cancel()  # which the queue's own task does, if it has begun

    async def drain(
        self, seconds: float, hurry: asyncio.Event | None = None, awaited: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Begin no more turns; give the running ones, and those of others that are `awaited` here, `seconds` to end, then leave them open.
        `hurry` leaves them at once."""
        hurry = hurry or asyncio.Event()
        until = asyncio.get_running_loop().time() + seconds
        self.closing = True
        self.slots.close()
        for queue in self._queues:
            queue.wake()
        tasks = {queue.task for queue in self._queues if queue.task is not None and not queue.task.done()}
        await Draining(tasks, self._queues.running, hurry).run(seconds)
        if awaited is not None:
            ends = {asyncio.ensure_future(awaited()), asyncio.ensure_future(hurry.wait())}
            left = max(0.0, until - asyncio.get_running_loop().time())
            await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for one in ends:
                one.cancel()
        self.leaving = True
        for queue in self._queues:
            if queue.running is not None:
                queue.running.driver.abandon()  # it was taken up, and had no place yet
        self._queues.ring_all()

    # ------------------------------------------------------------------ queues

    def hand_over(self, queue: SessionQueue) -> None:
        """From now on the queue is run elsewhere, with what waits in it: nothing of it runs here."""
        self.slots.leave(queue)
        queue.waiting = []
        self._queues.disown(queue)
        queue.wake()

    def add(self, queue: SessionQueue, message: Waiting) -> None:
        """A message waits in the queue from now on: behind those that were stored before it, whenever they come here from another gateway."""
        insort(queue.waiting, message, key=_arrival)
        if not queue.blocked:
            self.start(queue)
        queue.wake()

    def run_opened(self, queue: SessionQueue, running: Running) -> None:
        """Its turn is open already, and it has a slot. Its driver begins first: behind it come those who watch, and their answers' heads."""
        queue.running = running
        if self.closing:  # the next process does that
            running.driver.abandon()
        else:
            running.drive()
        self._begin(queue)
        queue.wake()

    def start(self, queue: SessionQueue) -> None:
        """The queue has something to run; it begins when it has a place."""
        self.slots.ask(queue)

    def unblock(self, queue: SessionQueue) -> None:
        """What an earlier process left in the session was taken up: its queue goes on."""
        queue.blocked = False
        queue.wake()
        if queue.waiting or queue.running is not None:
            self.start(queue)
        self._queues.release(queue)

    async def settled(self, queue: SessionQueue) -> None:
        """Return when the queue's task is over; of one that is blocked it is so soon."""
        if queue.task is not None:
            await asyncio.wait({queue.task})

    def take_out(self, queue: SessionQueue, inbox_id: int) -> Waiting | None:
        """Take a waiting message out of its queue, and a queue without any out of the line. None if it does not wait there."""
        found = queue.withdraw(inbox_id)
        if found and queue.running is None and not queue.waiting and queue.task is None:
            self.slots.leave(queue)
            self._queues.release(queue)
        return found

    def _begin(self, queue: SessionQueue) -> None:
        """The queue has a place: run one turn of it."""
        if not self.closing:
            queue.task = self._group.create_task(self._run(queue), name=f"queue {queue.key}")

    async def _run(self, queue: SessionQueue) -> None:
        begin_speaking("")  # whoever's message began it: each turn has its own language
        try:
            running = queue.running or await self._taken_up(queue)
            self.slots.begun(queue)
            if running is not None:
                await self._run_one(queue, running)
            await self._left(queue.key)
        except Exception:
            log.exception("lane.failed", session=queue.session)
        finally:
            queue.task = None
            self.slots.leave(queue)
            if queue.waiting and not self.closing and not queue.blocked:
                self.start(queue)
            queue.wake()
            self._queues.release(queue)

    # ------------------------------------------------------------------ one turn

    async def _taken_up(self, queue: SessionQueue) -> Running | None:
        """The next turn of the queue, opened; None: there is none, or not now."""
        if self.closing or queue.blocked or not (messages := await self._next_messages(queue)):
            return None
        driver = await self._opened(queue, messages)
        if driver is None:
            return None
        withdrawn = not any(message in queue.waiting for message in messages)
        queue.waiting = [message for message in queue.waiting if message not in messages]
        if withdrawn:  # while the turn was being opened: it was too late for that, but not for a stop
            forgotten = any(message.inbox_id in queue.forgotten for message in messages)
            driver.tell(StopRequested(at=driver.opened_at, forgotten=forgotten))
        queue.forgotten = NONE
        return Running(driver, messages)

    async def _next_messages(self, queue: SessionQueue) -> tuple[Waiting, ...]:
        """What the next turn answers: one message, or the pieces of one. None if what waited was withdrawn meanwhile."""
        if not queue.waiting:
            return ()
        while (found := self._merged(queue)).wait_ms:
            self.slots.begun(queue)
            await asyncio.sleep(found.wait_ms / 1000)
            if not queue.waiting:
                return ()
        return tuple(queue.waiting[: found.count])

    def _merged(self, queue: SessionQueue) -> Merged:
        steady = self._clock.monotonic()
        return merged([piece_of(message, steady) for message in queue.waiting])

    async def _opened(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver | None:
        """A driver for the messages. None: they will not run (and have left the queue), or the storage is away just now."""
        try:
            driver = await self._open_turn(queue, messages)
        except StorageUnavailable as error:
            log.warning("turn.not_opened", session=queue.session, inbox=messages[0].inbox_id, error=str(error))
            self.slots.begun(queue)  # others have their turn meanwhile
            queue.woken = asyncio.Event()
            queue.failures += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(NOT_OPENED.seconds(queue.failures)):
                    await queue.woken.wait()
            return None
        queue.failures = 0
        return driver

    async def _run_one(self, queue: SessionQueue, running: Running) -> None:
        queue.running = running
        for message in running.messages:
            queue.begun.add(message.inbox_id)
        queue.wake()
        try:
            await self._drive(running)
        except Overtaken:
            await self._met_overtaken(queue, running.driver.identity.turn)
        except Damaged as error:  # nothing of the running turn can be stored any more
            await self._aside.put(queue.session, error)
        except TurnLeftOpen:
            pass  # it goes on in the next process, which tells its end
        else:
            self._remember(queue, running)
            self._overtaken.pop(running.driver.identity.turn, None)
        finally:
            heard = heard_in(running.driver.turn)
            for inbox_id in heard:
                queue.begun.add(inbox_id)
            queue.waiting[:0] = [message for message in queue.steers if message.inbox_id not in heard]
            queue.steers = []
            queue.running = None
            queue.wake()

    async def _met_overtaken(self, queue: SessionQueue, turn: str) -> None:
        """Somebody else goes on with it. Where it comes back again and again nobody does: what is stored of it takes nothing more, and its conversation
        is set aside. If there is somebody, they have it, and that is refused."""
        log.warning("turn.overtaken", turn=turn, session=queue.session)
        self._overtaken[turn] += 1
        if self._overtaken[turn] >= OVERTAKEN_MOST:
            del self._overtaken[turn]
            await self._aside.put(queue.session, Damaged(f"Nothing can be added to turn {turn}."))

    async def _drive(self, running: Running) -> None:
        """Until the driver is over, or the watchdog has ended the turn in its place. Raises `Overtaken`."""
        task = running.drive()
        try:
            await running.over
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if not running.given_up:
            await task
        elif not task.done():
            log.error("turn.driver_ignores_cancellation", turn=running.driver.identity.turn)

    def _remember(self, queue: SessionQueue, running: Running) -> None:
        turn = running.driver.turn
        if turn.opened is not None and turn.opened.own_history is None:
            queue.memory.add(turn)
        elif turn.opened is not None and turn.kept_out:
            said = [message.to_message() for message in turn.opened.input]
            self._refused.note(turn.kept_out, [*(turn.opened.own_history or ()), *said])
        if queue.recent_loaded:  # else whoever looks first reads it from what is stored
            for waiting in running.messages:
                queue.recent.append(sight_of(running.driver.identity.turn, turn, waiting, turn.phase_since))
            del queue.recent[:-RECENT_TURNS]
