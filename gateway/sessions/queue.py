"""A queue: one session's messages in order, one turn at a time.

A queue exists while its session has something to do or somebody watching. It takes the next message, opens a turn for it, runs
the driver to its end, and goes on. What it knows beside the database is only a cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from adapters.contract.base import Inbound, Summary, Ticket, TurnSight, TurnState
from agent_core.bell import Bell
from agent_core.driver.driver import CANCEL_SECONDS, LeftOpen, Overtaken, TurnDriver
from agent_core.judging.compaction import SessionMemory
from agent_core.learning.refused import Refused
from agent_core.messages import text_of
from agent_core.retry import NOT_OPENED
from agent_core.signals import Tell, nobody
from agent_core.store.store import Damaged, StorageUnavailable
from agent_core.store.turns.rows import TurnRow
from agent_core.turn.events import StopRequested
from agent_core.turn.machine import Turn
from agent_core.turn.state import PersonItem
from agent_core.turn.view import Bubble, BubbleKind, View, view
from gateway.chats.merging import Merged, Piece, merged
from gateway.sessions.prefs import Prefs

log = structlog.get_logger("turn")

MOST_NUMBER = 1 << 40
"""More turns than a session has: what is put before all messages has an order below 0."""
RECENT_TURNS = 50
"""How many closed turns somebody who watches a session is shown."""


@dataclass(slots=True)
class Waiting:
    """A message that waits for its turn."""

    inbox_id: int
    arrival: int
    inbound: Inbound
    received_at: int
    came: float | None = None
    """The same by the monotonic clock; None if an earlier process received it."""


@dataclass(slots=True)
class Running:
    """The turn that runs now, and the messages that it answers."""

    driver: TurnDriver
    messages: tuple[Waiting, ...]
    given_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when somebody else has ended the turn in the driver's place."""

    def give_up(self, turn: Turn) -> None:
        """The turn has ended like this, in the driver's place."""
        self.driver.give_up(turn)
        self.given_up.set()

    def same_chat(self, inbound: Inbound) -> bool:
        """What follows from `inbound` is shown where this turn is: one conversation may go on in several chats."""
        chat = self.messages[0].inbound.chat if self.messages else None
        return chat is None or inbound.chat is None or chat.address == inbound.chat.address


def summary_of(turn: Turn) -> Summary:
    """A turn in figures."""
    began = turn.opened.at if turn.opened else 0
    return Summary(
        seconds=max(0, turn.phase_since - began) / 1000,
        steps=turn.steps_done,
        tool_calls=len(turn.round.tools_run),
        input_tokens=turn.input_tokens,
        output_tokens=turn.output_tokens,
        attempts=turn.calls_made,
        model=turn.route.model,
    )


def piece_of(message: Waiting, steady: float) -> Piece:
    """What merging looks at, at this time of the monotonic clock."""
    if message.came is None:
        return Piece(message.inbound.chat, message.received_at)
    return Piece(message.inbound.chat, message.received_at, round((steady - message.came) * 1000))


def person_words(inbound: Inbound) -> str:
    """What the person said, as text."""
    return "\n\n".join(text_of(message.content) for message in inbound.input if message.role == "user")


Opener = Callable[["SessionQueue", tuple[Waiting, ...]], Awaitable[TurnDriver | None]]


@dataclass(eq=False, slots=True)
class SessionQueue:
    """One session's queue and its running turn."""

    key: str
    """The session's key."""
    open_turn: Opener
    steady: Callable[[], float]
    """The monotonic clock."""
    begun_opening: Callable[[SessionQueue], None]
    """Told that its turn is open, or that it waits for something: another may be opened meanwhile."""
    session: str = ""
    """The session's id, once it exists in the store."""
    epoch: int = 0
    """Under which this process owns the session; 0 as long as it does not."""
    memory: SessionMemory = field(default_factory=SessionMemory)
    memory_loaded: bool = False
    refused: Refused = field(default_factory=Refused)
    """What models refused of conversations that clients bring along."""
    waiting: list[Waiting] = field(default_factory=list[Waiting])
    running: Running | None = None
    watchers: dict[Bell, None] = field(default_factory=dict[Bell, None])
    begun: list[int] = field(default_factory=list[int])
    """The messages whose turns began last: one that is offered again meanwhile must not be queued again."""
    recent: list[TurnSight] = field(default_factory=list[TurnSight])
    """Closed turns, at most `RECENT_TURNS`, the oldest first."""
    recent_loaded: bool = False
    accepting: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a message is stored and queued."""
    steers: list[Waiting] = field(default_factory=list[Waiting])
    """Messages that were put into the running turn; what it does not hear waits for a turn of its own."""
    prefs: Prefs = field(default_factory=Prefs)
    prefs_loaded: bool = False
    tell: Tell = nobody
    blocked: bool = False
    """An earlier process left something here that comes first and is still to be taken up: no turn begins before."""
    failures: int = 0
    """How often in a row no turn could be opened because the storage is away."""
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    on_damage: Callable[[SessionQueue, Damaged], Awaitable[None]] | None = None
    """Told that nothing of the running turn can be stored any more."""
    forgotten: set[int] = field(default_factory=set[int])
    """Messages whose person is being forgotten, and whose turn may be opening just now."""
    held: bool = False
    """Set at shutdown: no further turn begins; what waits stays in the inbox."""

    def wake(self) -> None:
        """Tell watchers that the queue or the running turn is another."""
        self.woken.set()
        for watcher in self.watchers:
            watcher.ring()

    def begin_anew(self, session: str, epoch: int) -> None:
        """It is another session's, and what was known of the old one is forgotten."""
        self.session, self.epoch, self.waiting, self.steers, self.blocked = session, epoch, [], [], False
        self.memory, self.memory_loaded, self.recent_loaded, self.failures = SessionMemory(), False, True, 0
        self.wake()

    @property
    def idle(self) -> bool:
        busy = self.waiting or self.running is not None or self.blocked
        return not busy and not self.watchers and not self.accepting.locked()

    def position(self, inbox_id: int) -> int | None:
        """The place of a waiting message, 1 being the next to run; None if it does not wait."""
        return next((i + 1 for i, waiting in enumerate(self.waiting) if waiting.inbox_id == inbox_id), None)

    def knows(self, inbox_id: int) -> bool:
        """The message waits here, or its turn has begun not long ago."""
        return inbox_id in self.begun or any(m.inbox_id == inbox_id for m in (*self.waiting, *self.steers))

    def ticket_of(self, message: Waiting) -> Ticket:
        """The ticket of a message of this queue."""
        return Ticket(message.inbox_id, self.session, duplicate=False)

    def reword(self, inbound: Inbound) -> None:
        """A waiting message was edited."""
        for message in self.waiting:
            if message.inbound.platform_key == inbound.platform_key:
                message.inbound = inbound

    def withdraw(self, inbox_id: int) -> Waiting | None:
        """Take a waiting message out of the queue."""
        found = next((waiting for waiting in self.waiting if waiting.inbox_id == inbox_id), None)
        if found is not None:
            self.waiting.remove(found)
            self.wake()
        return found

    async def run(self) -> None:
        """Run one turn: the one that was taken up, or the next. Then it is others' turn."""
        if self.running is not None:
            self.begun_opening(self)
            await self._run_one(self.running)
        elif not self.held and not self.blocked and (messages := await self._next_messages()):
            driver = await self._opened(messages)
            self.begun_opening(self)
            if driver is None:
                return
            withdrawn = not any(message in self.waiting for message in messages)
            self.waiting = [message for message in self.waiting if message not in messages]
            if withdrawn:  # while the turn was being opened: it was too late for that, but not for a stop
                forgotten = any(message.inbox_id in self.forgotten for message in messages)
                driver.tell(StopRequested(at=driver.opened_at, forgotten=forgotten))
            self.forgotten.clear()
            await self._run_one(Running(driver, messages))

    async def _next_messages(self) -> tuple[Waiting, ...]:
        """What the next turn answers: one message, or the pieces of one. None if what waited was withdrawn meanwhile."""
        if not self.waiting:
            return ()
        while (found := self._merged()).wait_ms:
            self.begun_opening(self)
            await asyncio.sleep(found.wait_ms / 1000)
            if not self.waiting:
                return ()
        return tuple(self.waiting[: found.count])

    def _merged(self) -> Merged:
        steady = self.steady()
        return merged([piece_of(message, steady) for message in self.waiting])

    async def _opened(self, messages: tuple[Waiting, ...]) -> TurnDriver | None:
        """A driver for the messages. None: they will not run (and have left the queue), or the storage is away just now."""
        try:
            driver = await self.open_turn(self, messages)
        except StorageUnavailable as error:
            log.warning("turn.not_opened", session=self.session, inbox=messages[0].inbox_id, error=str(error))
            self.begun_opening(self)  # others have their turn meanwhile
            self.woken.clear()
            self.failures += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(NOT_OPENED.seconds(self.failures)):
                    await self.woken.wait()
            return None
        self.failures = 0
        return driver

    async def _run_one(self, running: Running) -> None:
        self.running = running
        self.begun = [*self.begun, *(message.inbox_id for message in running.messages)][-RECENT_TURNS:]
        self.wake()
        try:
            await self._drive(running)
        except Overtaken:
            log.warning("turn.overtaken", turn=running.driver.identity.turn, session=self.session)
        except Damaged as error:
            if self.on_damage is not None:
                await self.on_damage(self, error)
        except LeftOpen:
            pass  # it goes on in the next process, which tells its end
        else:
            self._remember(running)
        finally:
            heard = running.driver.heard
            self.waiting[:0] = [message for message in self.steers if message.inbox_id not in heard]
            self.steers = []
            self.running = None
            self.wake()

    async def _drive(self, running: Running) -> None:
        """Until the driver is over, or the watchdog has ended the turn in its place. Raises `Overtaken`."""
        task = asyncio.create_task(running.driver.run(), name=f"driver {running.driver.identity.turn}")
        given_up = asyncio.create_task(running.given_up.wait(), name=f"watch {running.driver.identity.turn}")
        try:
            await asyncio.wait({task, given_up}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            given_up.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CANCEL_SECONDS)
        if not running.given_up.is_set():
            await task
        elif not task.done():
            log.error("turn.driver_ignores_cancellation", turn=running.driver.identity.turn)

    def _remember(self, running: Running) -> None:
        turn = running.driver.turn
        if turn.opened is not None and turn.opened.own_history is None:
            self.memory.add(turn)
        elif turn.opened is not None and turn.kept_out:
            said = [message.to_message() for message in turn.opened.input]
            self.refused.note(turn.kept_out, [*(turn.opened.own_history or ()), *said])
        for waiting in running.messages:
            self.recent.append(sight_of(running.driver.identity.turn, turn, waiting, turn.phase_since))
        del self.recent[:-RECENT_TURNS]


def steered_into(turn: Turn) -> frozenset[int]:
    """The accepted messages that were put into a turn, heard or not."""
    return frozenset(item.inbox for item in (*turn.items, *turn.steers) if isinstance(item, PersonItem) and item.inbox)


def sight_of(turn_id: str, turn: Turn, waiting: Waiting, now: int) -> TurnSight:
    """A message and its turn, as a watcher of the session sees it."""
    closed = turn.exit is not None
    return TurnSight(
        key=waiting.inbound.platform_key,
        order=waiting.arrival,
        state=TurnState.CLOSED if closed else TurnState.OPEN,
        person=person_words(waiting.inbound),
        turn=turn_id,
        view=view(turn, now),
        at=waiting.received_at,
        summary=summary_of(turn) if closed else None,
    )


def said_in(turn: Turn) -> str:
    """What a person said in a turn, as its journal has it: where it began, and while it ran."""
    began = turn.opened.input if turn.opened is not None else ()
    later = [item.input for item in turn.items if isinstance(item, PersonItem)]
    return "\n\n".join(text_of(message.content) for message in (*began, *later) if message.role == "user")


def told_sight(row: TurnRow, turn: Turn, before: int) -> TurnSight:
    """A turn from its journal alone: the messages as they came are not kept as long. `before` is the order of what came before it."""
    closed = turn.exit is not None
    return TurnSight(
        key=row.turn,
        order=max(before, row.number - MOST_NUMBER),
        state=TurnState.CLOSED if closed else TurnState.OPEN,
        person=said_in(turn),
        turn=row.turn,
        view=view(turn, turn.phase_since),
        at=row.opened_at,
        summary=summary_of(turn) if closed else None,
    )


def removed_sights(rows: Sequence[TurnRow]) -> list[TurnSight]:
    """What stands for turns whose journal was removed: one word for all of them, before the others."""
    gone = [row for row in rows if row.removed]
    if not gone:
        return []
    last = gone[-1]
    words = f"Older messages are {last.removed}."
    bubble = Bubble("removed", BubbleKind.NOTICE, words, final=True)
    order, at = last.number - MOST_NUMBER, last.closed_at or last.opened_at
    return [TurnSight(last.turn, order, TurnState.CLOSED, "", last.turn, view=View((bubble,), open=False), at=at)]
