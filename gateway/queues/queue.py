"""A queue: one session's messages in order, one turn at a time.

A queue exists while its session has something to do or somebody watching (`gateway.queues.queues`); its turns are run by
`gateway.sessions.runner`. What it knows beside the database is only a cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import field, replace
from typing import Literal

import structlog
from typing_extensions import override

from adapters.contract.base import FromApi, FromChat, Inbound, MessageState, Summary, TaskTerms, Ticket, TurnSight
from agent_core.bell import Bell
from agent_core.driver.driver import TurnDriver
from agent_core.failures.exits import Exit
from agent_core.judging.compaction import SessionMemory
from agent_core.machine.turn import Turn
from agent_core.messages import files_of, words_of
from agent_core.records import NONE, dataclass
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.turns.rows import TurnRow
from agent_core.text.tongue import begin_speaking, known_sentence, speak
from agent_core.turn.state import PersonItem
from agent_core.turn.view import Bubble, BubbleKind, View, view
from gateway.queues import inbox
from gateway.queues.branches import Branches
from gateway.queues.merging import MessagePiece
from gateway.queues.prefs import Prefs

log = structlog.get_logger("turn")

MOST_NUMBER = 1 << 40
"""More turns than a session has: what is put before all messages has an order below 0."""
RECENT_TURNS = 50
"""How many closed turns somebody who watches a session is shown."""
MOST_BEGUN = 1_000
"""So many messages are known to have begun: the turns of ten seconds of a busy process, and no question to the database takes so long."""


class Begun:
    """The messages whose turns began last."""

    def __init__(self) -> None:
        self._known: dict[int, None] = {}

    def __contains__(self, inbox_id: int) -> bool:
        return inbox_id in self._known

    def add(self, inbox_id: int) -> None:
        self._known[inbox_id] = None
        if len(self._known) > MOST_BEGUN:
            del self._known[next(iter(self._known))]


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
    given_up: bool = False
    """Somebody else has ended the turn in the driver's place."""
    over: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Nothing more is waited for: the driver is over, or was given up."""
    driving: asyncio.Task[Exit] | None = None
    """Runs the driver."""

    def drive(self) -> asyncio.Task[Exit]:
        """Let the driver run, if it does not yet. It speaks the language of its turn, and not of whose message it is that began it."""
        if self.driving is None:
            context = copy_context()
            context.run(begin_speaking, "")
            name = f"driver {self.driver.identity.turn}"
            self.driving = self.over.get_loop().create_task(self.driver.run(), name=name, context=context)
            self.driving.add_done_callback(self.come_to_end)
        return self.driving

    def give_up(self, turn: Turn) -> None:
        """The turn has ended like this, in the driver's place."""
        self.driver.give_up(turn)
        self.leave()

    def leave(self) -> None:
        """Somebody else has ended the turn."""
        self.given_up = True
        self.come_to_end()

    def come_to_end(self, _driver: object = None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    @property
    def task(self) -> TaskTerms | None:
        """That it is a background task."""
        first = self.messages[0].inbound if self.messages else None
        return first.task if isinstance(first, FromApi) else None

    def same_chat(self, inbound: Inbound) -> bool:
        """What follows from `inbound` is shown where this turn is: one conversation may go on in several chats."""
        first = self.messages[0].inbound if self.messages else None
        if not isinstance(first, FromChat) or not isinstance(inbound, FromChat):
            return True
        return first.chat.address == inbound.chat.address

    def takes(self, inbound: Inbound) -> bool:
        """Whether a message may be put into this turn: what is attached is fetched and read at the beginning of one, and lost in the middle."""
        return self.same_chat(inbound) and not brings_files(inbound)


def brings_files(inbound: Inbound) -> bool:
    """There is more in it than words."""
    if isinstance(inbound, FromChat):
        return bool(inbound.chat.attachments)
    parts = [part for one in inbound.input if isinstance(one.content, list) for part in one.content]
    return any(isinstance(part, dict) and part.get("type") != "text" for part in parts)


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
        cached_tokens=turn.cached_tokens,
        reasoning_tokens=turn.reasoning_tokens,
        unsent=turn.unsent,
    )


def piece_of(message: Waiting, steady: float) -> MessagePiece:
    """What merging looks at, at this time of the monotonic clock."""
    origin = message.inbound.chat if isinstance(message.inbound, FromChat) else None
    if message.came is None:
        return MessagePiece(origin, message.received_at)
    return MessagePiece(origin, message.received_at, round((steady - message.came) * 1000))


def person_words(inbound: Inbound) -> str:
    """What the person said, as text."""
    return "\n\n".join(words_of(message.content) for message in inbound.input if message.role == "user")


def files_brought(inbound: Inbound) -> list[tuple[str, str]]:
    """The files that came with a message, as it is stored: of each its name and its data."""
    return [file for message in inbound.input if message.role == "user" for file in files_of(message.content)]


def naming_files(inbound: Inbound, inbox_id: int) -> Inbound:
    """A message as its turn's journal has it, from which its files can be found. Pure."""
    names = names_brought(inbound)
    if not names:
        return inbound
    first, *rest = inbound.input
    return replace(inbound, input=(replace(first, brought=names, came=inbox_id), *rest))


def files_named(turn: Turn) -> list[tuple[int, int, str]]:
    """The files that came with a turn, as its journal has them: of each the number of its message in the inbox, its place there, and its name."""
    began = turn.opened.input if turn.opened is not None else ()
    return [(message.came, place, name) for message in began for place, name in enumerate(message.brought)]


def names_brought(inbound: Inbound) -> tuple[str, ...]:
    """The names of the files that came with a message, as long as its words are kept."""
    return inbound.brought if isinstance(inbound, FromApi) else ()


class Entrance(asyncio.Lock):
    """Lets in one at a time. Between two of them a lock is free for a moment: whoever waits for it is to find the queue that it waits at."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted = 0
        """How many are in, or wait."""

    @override
    async def acquire(self) -> Literal[True]:
        self.wanted += 1
        try:
            return await super().acquire()
        except BaseException:
            self.wanted -= 1
            raise

    @override
    def release(self) -> None:
        super().release()
        self.wanted -= 1


@dataclass(eq=False, slots=True)
class SessionQueue:
    """One session's queue and its running turn."""

    key: str
    """The session's key."""
    session: str = ""
    """The session's id, once it exists in the store."""
    epoch: int = 0
    """Under which this process owns the session; 0 as long as it does not."""
    memory: SessionMemory = field(default_factory=SessionMemory)
    memory_loaded: bool = False
    waiting: list[Waiting] = field(default_factory=list[Waiting])
    running: Running | None = None
    watchers: list[Bell] = field(default_factory=list[Bell])
    begun: Begun = field(default_factory=Begun)
    """The messages whose turns began last in this process, of whichever queue: one that is offered again must not be queued again, nor one that
    was read as new before its turn began, though the queue was forgotten meanwhile."""
    recent: list[TurnSight] = field(default_factory=list[TurnSight])
    """Closed turns, at most `RECENT_TURNS`, the oldest first."""
    recent_loaded: bool = False
    branches: Branches = field(default_factory=Branches)
    """As they were when the closed turns were loaded."""
    ended: int = 0
    """How often a session of it was deleted."""
    accepting: Entrance = field(default_factory=Entrance)
    """Held while a message is stored and queued."""
    steers: list[Waiting] = field(default_factory=list[Waiting])
    """Messages that were put into the running turn; what it does not hear waits for a turn of its own."""
    prefs: Prefs = field(default_factory=Prefs)
    prefs_loaded: bool = False
    blocked: bool = False
    """An earlier process left something here that comes first and is still to be taken up: no turn begins before."""
    failures: int = 0
    """How often in a row no turn could be opened because the storage is away."""
    woken: asyncio.Event | None = None
    """Set by whatever wakes the queue, while somebody waits for that."""
    forgotten: frozenset[int] = NONE
    """Messages whose person is being forgotten, and whose turn may be opening just now."""
    task: asyncio.Task[None] | None = None
    """Runs its turn, or opens it."""

    def wake(self) -> None:
        """Tell watchers that the queue or the running turn is another."""
        if self.woken is not None:
            self.woken.set()
        for watcher in self.watchers:
            watcher.ring()

    def begin_anew(self, session: str, epoch: int) -> None:
        """It is another session's, and what was known of the old one is forgotten."""
        self.session, self.epoch, self.waiting, self.steers, self.blocked = session, epoch, [], [], False
        self.memory, self.memory_loaded, self.recent_loaded, self.failures = SessionMemory(), False, True, 0
        self.branches = Branches()
        self.wake()

    @property
    def idle(self) -> bool:
        busy = self.waiting or self.running is not None or self.blocked or self.task is not None
        return not busy and not self.watchers and not self.accepting.wanted

    @property
    def quiet(self) -> bool:
        """No turn is open or about to begin."""
        return self.running is None and self.task is None and not self.waiting and not self.blocked

    def position(self, inbox_id: int) -> int | None:
        """The place of a waiting message, 1 being the next to run; None if it does not wait."""
        return next((i + 1 for i, waiting in enumerate(self.waiting) if waiting.inbox_id == inbox_id), None)

    def knows(self, inbox_id: int) -> bool:
        """The message waits here, or its turn has begun not long ago."""
        return inbox_id in self.begun or any(m.inbox_id == inbox_id for m in (*self.waiting, *self.steers))

    def ticket_of(self, message: Waiting) -> Ticket:
        return Ticket(message.inbox_id, self.session, duplicate=False)

    def reword(self, inbound: Inbound) -> None:
        """A waiting message was edited."""
        for message in self.waiting:
            if message.inbound.platform_key == inbound.platform_key:
                message.inbound = inbound

    def move(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """A chat has another id: what came from it came from there."""
        for message in (*(self.running.messages if self.running is not None else ()), *self.waiting, *self.steers):
            if isinstance(inbound := message.inbound, FromChat):
                message.inbound = _moved(inbound, f"{platform}/{account}/", old_chat, new_chat)

    def withdraw(self, inbox_id: int) -> Waiting | None:
        """Take a waiting message out of the queue."""
        found = next((waiting for waiting in self.waiting if waiting.inbox_id == inbox_id), None)
        if found is not None:
            self.waiting.remove(found)
            self.wake()
        return found


def _moved(inbound: FromChat, account: str, old_chat: str, new_chat: str) -> FromChat:
    """A message of a chat with another id: where it is answered, and what its conversation, its files and its memory are called."""
    where, session, scope, before = inbound.chat.address, inbound.session, inbound.memory_scope, f"{account}{old_chat}/"
    if where.text().startswith(before):
        # There the same number is another message.
        inbound = replace(inbound, chat=replace(inbound.chat, address=replace(where, chat=new_chat), message=""))
    if session.text().startswith(before):
        inbound = replace(inbound, session=replace(session, chat=new_chat))
    if scope.startswith(before):
        inbound = replace(inbound, memory_scope=f"{account}{new_chat}/{scope.removeprefix(before)}")
    return inbound


def waiting_of(row: InboxRow) -> Waiting:
    """A stored message as queues have it. Raises `UnreadableMessage`."""
    return Waiting(row.id, row.arrival, inbox.decode(row.body), row.received_at)


def readable(rows: Iterable[InboxRow]) -> list[tuple[InboxRow, Waiting]]:
    """Those of these that can be read, to be shown: one that cannot hides none of the others."""
    found: list[tuple[InboxRow, Waiting]] = []
    for row in rows:
        with suppress(inbox.UnreadableMessage):
            found.append((row, waiting_of(row)))
    return found


def steered_into(turn: Turn) -> frozenset[int]:
    """The accepted messages that were put into a turn, heard or not."""
    return frozenset(item.inbox for item in (*turn.items, *turn.steers) if isinstance(item, PersonItem) and item.inbox)


KEPT_THOUGHT_CHARS = 20_000
"""So much of what a model thought is held of a turn that is over."""


def sight_of(turn_id: str, turn: Turn, waiting: Waiting, now: int) -> TurnSight:
    """A message and its turn, as a watcher of the session sees it."""
    closed = turn.exit is not None
    thought = turn.thoughts.beginning(KEPT_THOUGHT_CHARS)
    return TurnSight(
        key=waiting.inbound.platform_key,
        order=waiting.arrival,
        state=MessageState.CLOSED if closed else MessageState.OPEN,
        person=person_words(waiting.inbound),
        brought=names_brought(waiting.inbound),
        turn=turn_id,
        view=view(turn, now),
        at=waiting.received_at,
        summary=summary_of(turn) if closed else None,
        thought=thought,
        thought_chars=thought.chars,
    )


def queued_sight(waiting: Waiting, position: int) -> TurnSight:
    """A message that waits, as a watcher of the session sees it."""
    return TurnSight(
        key=waiting.inbound.platform_key,
        order=waiting.arrival,
        state=MessageState.QUEUED,
        person=person_words(waiting.inbound),
        brought=names_brought(waiting.inbound),
        position=position,
        at=waiting.received_at,
    )


def said_in(turn: Turn) -> str:
    """What a person said in a turn, as its journal has it: where it began, and while it ran."""
    began = turn.opened.input if turn.opened is not None else ()
    later = [item.input for item in turn.items if isinstance(item, PersonItem)]
    return "\n\n".join(words_of(message.content) for message in (*began, *later) if message.role == "user")


def told_sight(row: TurnRow, turn: Turn, before: int, *, files: bool) -> TurnSight:
    """A turn from its journal alone: the messages as they came are not kept as long. `before` is the order of what came before it; `files`:
    those that came with it can be had."""
    closed = turn.exit is not None
    return TurnSight(
        key=row.turn,
        order=max(before, row.number - MOST_NUMBER),
        state=MessageState.CLOSED if closed else MessageState.OPEN,
        person=said_in(turn),
        brought=tuple(name for _, _, name in files_named(turn)) if files else (),
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
    words = speak("Older messages are {removed}.", removed=known_sentence(last.removed))
    bubble = Bubble("removed", BubbleKind.NOTICE, words, final=True)
    order, at = last.number - MOST_NUMBER, last.closed_at or last.opened_at
    return [TurnSight(last.turn, order, MessageState.CLOSED, "", last.turn, view=View((bubble,), open=False), at=at)]
