"""What is stored of turns that are over, for whoever watches: a session's latest, a message's end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from adapters.contract.base import Ended, FromApi, MessageState, Queued, Showing, Summary, TurnSight
from agent_core.failures.errors import UnreadableJournal
from agent_core.failures.exits import InternalError, NeverStarted
from agent_core.failures.notices import DAMAGED, RESTORED, UNREADABLE, NotStarted
from agent_core.failures.shortage import SHORTAGES
from agent_core.journal.rows import fold
from agent_core.machine.turn import Turn
from agent_core.ports import Clock
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.keeping.forgetting import DROPPED, DROPPING
from agent_core.store.store import Damaged, Store
from agent_core.store.turns.rows import JournalRow, TurnRow, TurnState
from agent_core.turn.view import BubbleKind, View, exit_view, view
from gateway.delivery.turnoutlet import asked_alone
from gateway.queues.branches import Branches, branches_of
from gateway.queues.inbox import (
    BY_CLIENT,
    BY_PERSON,
    COMMAND_LANE,
    NO_MODEL,
    NORMAL_LANE,
    NOT_OPENED,
    NOT_READ,
    UnreadableMessage,
)
from gateway.queues.languages import PAGE
from gateway.queues.queue import (
    MOST_NUMBER,
    RECENT_TURNS,
    SessionQueue,
    Waiting,
    files_named,
    names_brought,
    person_words,
    queued_sight,
    readable,
    removed_sights,
    said_in,
    sight_of,
    summary_of,
    told_sight,
    waiting_of,
)
from gateway.schedule.schedules import TASK
from gateway.sessions.recall import closed_turn
from gateway.setaside.takeup import SET_ASIDE

if TYPE_CHECKING:
    from gateway.sharing.afar import FarTurn
    from gateway.sharing.portion import FarWatchers

log = structlog.get_logger("gateway")

MessagesOf = Callable[..., Awaitable[dict[str, list[Waiting]]]]


LATEST_COMMANDS = 5
"""So many may have been carried out between two looks."""

NOT_STARTED = {
    SET_ASIDE: NotStarted.QUARANTINED,
    DAMAGED: NotStarted.DAMAGED,
    DROPPED: NotStarted.FORGOTTEN,
    DROPPING: NotStarted.FORGOTTEN,
    RESTORED: NotStarted.RESTORED,
    BY_CLIENT: NotStarted.WITHDRAWN,
    BY_PERSON: NotStarted.WITHDRAWN,
    NOT_OPENED: NotStarted.NOT_OPENED,
    NO_MODEL: NotStarted.NO_MODEL,
    NOT_READ: NotStarted.QUARANTINED,
    **dict.fromkeys(SHORTAGES, NotStarted.SHORT),
}
"""By the reason for which a message was dropped."""
KNOWN = frozenset({NotStarted.WITHDRAWN, NotStarted.FORGOTTEN})
"""Whoever wrote it wanted it so, and is not told again."""


def not_started(why: str) -> Ended:
    """The last sight of a message that was accepted and could not be run."""
    reason = NOT_STARTED.get(why, NotStarted.SHUTTING_DOWN)
    ending = NeverStarted(reason=reason, detail=why)
    return Ended("", exit_view(ending), ending, (), Summary(0, 0, 0, 0, 0, 0, ""))


async def load_recent(store: Store, queue: SessionQueue, messages_of: MessagesOf) -> None:
    """Load them into the queue. What cannot be read is not shown; what is new is."""
    try:
        branches, sights = await recent_sights(store, queue.key, queue.session, messages_of)
    except Damaged as error:
        log.warning("history.unreadable", session=queue.session, error=str(error))
        return
    known = {sight.turn or sight.key for sight in queue.recent}  # also of turns that ended meanwhile
    sights = [*queue.recent, *(sight for sight in sights if (sight.turn or sight.key) not in known)]
    there = [one for one in sights if one.turn not in branches.hidden]
    queue.branches = branches
    queue.recent = sorted(there, key=lambda sight: sight.order)[-RECENT_TURNS:]


async def earlier_sights(store: Store, session: str, turn: str, messages_of: MessagesOf) -> tuple[TurnSight, ...]:
    """The latest messages before that turn, of the branch that is shown."""
    places = await store.turns.places(session)
    branches, upto = branches_of(places), next((one.number for one in places if one.turn == turn), 0)
    before = [one.turn for one in places if one.number < upto and one.turn not in branches.hidden]
    try:
        sights = await _sights(store, before[-RECENT_TURNS:], messages_of)
    except Damaged as error:
        log.warning("history.unreadable", session=session, error=str(error))
        return ()
    return tuple(branches.seen(one) for one in sights)


async def recent_sights(
    store: Store, key: str, session: str, messages_of: MessagesOf
) -> tuple[Branches, Sequence[TurnSight]]:
    """A session's branches, and its latest turns that are over, of the one that is shown; on the page what commands have said as well. Raises `Damaged`."""
    places = await store.turns.places(session)
    branches = branches_of(places)
    shown = [one.turn for one in places if one.turn not in branches.hidden]
    sights = await _sights(store, shown[-RECENT_TURNS:], messages_of)
    if not key.startswith(f"{PAGE}/"):
        return branches, sights
    from gateway.queues.pageanswers import stored_answers  # of the page alone

    rows = await store.inbox.beside_turns(session, COMMAND_LANE, RECENT_TURNS)
    dropped = [
        row for row in rows if row.state is InboxState.DROPPED and NOT_STARTED.get(row.reason or "") not in KNOWN
    ]
    unrun = [_unrun(row, row.reason or "") for row in dropped]
    return branches, [*sights, *await stored_answers(store, rows), *unrun]


def _unrun(row: InboxRow, why: str) -> TurnSight:
    try:
        return unrun_sight(waiting_of(row), why)
    except UnreadableMessage:
        from gateway.queues.pageanswers import answer_sight

        words = [bubble.text for bubble in not_started(why).view.bubbles]
        return answer_sight(row.platform_key, row.arrival, "", words, row.received_at)


def unrun_sight(message: Waiting, why: str) -> TurnSight:
    """A message of the page that will not be run, and why, as whoever watches sees it. Pure."""
    from gateway.queues.pageanswers import answer_sight

    words = [bubble.text for bubble in not_started(why).view.bubbles]
    said = answer_sight(
        message.inbound.platform_key, message.arrival, person_words(message.inbound), words, message.received_at
    )
    return replace(said, brought=names_brought(message.inbound))


async def _sights(store: Store, turns: Sequence[str], messages_of: MessagesOf) -> Sequence[TurnSight]:
    rows = await store.turns.some(turns)
    journals = await store.turns.journals([row.turn for row in rows])
    messages = await messages_of(*journals)
    sights: list[TurnSight] = []
    sights += removed_sights(rows)
    for row in rows:
        turn = closed_turn(row.turn, journals[row.turn]) if row.turn in journals else None
        if turn is None:
            continue
        asked = [sight_of(row.turn, turn, message, turn.phase_since) for message in messages.get(row.turn, ())]
        before = max((sight.order for sight in sights), default=-MOST_NUMBER)
        sights += asked or [told_sight(row, turn, before, files=await _has_files(store, turn))]
        await asyncio.sleep(0)  # each takes half a millisecond
    return sights


async def _has_files(store: Store, turn: Turn) -> bool:
    """Whether all files are kept that came with it: with the message as it came, in this conversation or in the one that it was branched from."""
    return all([await store.inbox.one(came) is not None for came in {came for came, _, _ in files_named(turn)}])


async def said_of(store: Store, turn: str) -> str:
    """What a person said in a turn that is over, from its journal."""
    try:
        found = await _closed(store, turn)
    except Damaged:
        return ""
    return said_in(found) if found is not None else ""


async def stored_end(store: Store, inbox_id: int, row: InboxRow | None = None) -> Ended | None:
    """How a message (its `row`, if that was just read) ended, from the journal; None if it has not."""
    try:
        return await _stored_end(store, row or await store.inbox.one(inbox_id))
    except Damaged:
        return not_started(DAMAGED)


async def _stored_end(store: Store, row: InboxRow | None) -> Ended | None:
    if row is None:
        return None
    if row.state is InboxState.DROPPED:
        return not_started(row.reason or "")
    if row.turn is None:
        return None
    turn = await _closed(store, row.turn) or await _closed_meanwhile(store, row.turn)
    return turn if turn is None or isinstance(turn, Ended) else _ended(row.turn, turn)


def _ended(name: str, turn: Turn) -> Ended | None:
    """The last sight of a turn; None while it goes on."""
    if turn.exit is None:
        return None
    return Ended(
        name,
        view(turn, turn.phase_since),
        turn.exit,
        turn.handed_calls,
        summary_of(turn),
        turn.made,
        turn.thoughts,
        turn.reply_thoughts,
    )


class FarMessage:
    """A message whose turn another gateway runs, as far as that is stored. Asked again and again."""

    def __init__(self, store: Store, inbox_id: int, afar: FarWatchers) -> None:
        self._store, self._message, self._afar = store, inbox_id, afar
        self._turn: FarTurn | None = None
        self._seen: object = None
        """How far its turn was when we looked last."""

    async def look(self, now: int) -> Ended | Showing | Queued | None:
        """How it stands; None: nothing is known of it yet. Raises `StorageUnavailable`."""
        if self._turn is not None:
            await self._turn.look()
            before, self._seen = self._seen, self._turn.mark
            if before != self._seen and (found := self._found(now)) is not None:
                return found
        row = await self._store.inbox.one(self._message)
        if row is None or row.turn is None:
            waits = row is not None and row.state is InboxState.NEW
            return (
                await self._queued(row) if row is not None and waits else await stored_end(self._store, self._message)
            )
        if self._turn is None or self._turn.name != row.turn:
            self._turn = self._afar.turn(self._store, row.turn)
            await self._turn.look()
            self._seen = self._turn.mark
        found = self._found(now)
        if isinstance(found, Showing) and row.state is not InboxState.TAKEN:
            found = None  # its turn is over, as it was not read any more
        return found or await stored_end(self._store, self._message)

    def _found(self, now: int) -> Showing | Ended | None:
        """What its journal says, as far as it was read; that it is over needs no other question."""
        far = self._turn
        if far is None or far.turn is None:
            return None
        shown = far.shown(now)
        return Showing(far.name, shown, far.turn.thoughts) if shown is not None else _ended(far.name, far.turn)

    async def _queued(self, row: InboxRow) -> Queued | None:
        """Its place, if something comes before it."""
        waiting = [one.id for one in await self._store.inbox.pending(row.session) if one.lane == NORMAL_LANE]
        place = waiting.index(row.id) + 1 if row.id in waiting else 1
        latest = await self._store.turns.latest(row.session, 1)
        busy = any(one.state is TurnState.OPEN for one in latest)
        return Queued(place) if busy or place > 1 else None


def task_sight(turn: str, message: Waiting, shown: View) -> TurnSight | None:
    """What a background task asks, as the page of its conversation shows it; None if it asks nothing. Pure."""
    task = message.inbound.task if isinstance(message.inbound, FromApi) else None
    asked = asked_alone(shown, task.number, task.title) if task is not None else None
    if asked is None or not asked.bubbles:
        return None
    key = f"task:{message.inbound.platform_key}"
    return TurnSight(key, message.arrival, MessageState.CLOSED, "", turn=turn, view=asked, at=message.received_at)


def decided_alone(shown: View) -> View:
    """What stays of what a task asked when it is over."""
    return replace(shown, bubbles=tuple(one for one in shown.bubbles if one.kind is BubbleKind.DECIDED), open=False)


def open_turn(rows: Sequence[JournalRow]) -> Turn | None:
    """A turn that is not over, from its journal."""
    try:
        turn = fold([(row.kind, row.body) for row in rows])
    except UnreadableJournal:
        return None
    return turn if turn.exit is None else None


async def _closed_meanwhile(store: Store, turn: str) -> Turn | Ended | None:
    """The turn, if it is closed by now; if it is, and cannot be told any more, that. None while it is open."""
    row = await store.turns.one(turn)
    if row is None or row.state is TurnState.OPEN:
        return None
    return await _closed(store, turn) or ended_unseen(row)


def ended_unseen(row: TurnRow) -> Ended:
    """The last sight of a turn that is over, and of which no more is known than that."""
    why = f"is {row.removed}" if row.removed else UNREADABLE
    ending = InternalError(reason=NotStarted.GONE, detail=why)
    return Ended(row.turn, exit_view(ending), ending, (), Summary(0, 0, 0, 0, 0, 0, ""))


async def _closed(store: Store, turn: str) -> Turn | None:
    return closed_turn(turn, [(row.kind, row.body) for row in await store.turns.journal(turn)])


class FarSights:
    """A conversation that another gateway runs, as it is to be seen here: from the store alone. Asked again and again; what is over is read once.

    What is on its way to the store is not seen before it is there (`gateway.sharing.afar`).
    """

    def __init__(self, store: Store, key: str, messages_of: MessagesOf, clock: Clock, afar: FarWatchers) -> None:
        self._store, self._key, self._messages_of, self._clock, self._afar = store, key, messages_of, clock, afar
        self._mark: object = None
        self._over: Sequence[TurnSight] = ()
        self._open: list[tuple[FarTurn, Sequence[Waiting]]] = []
        """The turns that run, with their messages."""
        self._waiting: Sequence[TurnSight] = ()
        self._begun_tasks: dict[str, tuple[FarTurn, Waiting]] = {}
        """Their turns and messages, until they are over."""
        self._tasks: dict[str, TurnSight] = {}
        """What its background tasks ask, by their turns."""
        self.session = ""
        self.gone = False
        """What was seen of it is not there any more: it was deleted, and perhaps begun anew."""
        self.branches = branches_of(())

    async def look(self, *, woken: bool) -> list[TurnSight]:
        """All there is to see. `woken`: somebody has said that there is more; as nearly always it is text of what runs. Raises `StorageUnavailable`."""
        if woken and self._open and all([await self._goes_on(one) for one, _ in self._open]):
            return self._sights()
        found = await self._store.sessions.by_key(self._key)
        before, self.session = self.session, found.session if found is not None else ""
        self.gone = self.gone or before not in ("", self.session)
        if found is None:
            return []
        rows = await self._store.turns.latest(found.session, RECENT_TURNS)
        mark = [(row.turn, row.undone, row.removed) for row in rows if row.state is TurnState.CLOSED]
        done = await self._commands(found.session)
        if (mark, done) != self._mark:
            self.branches, self._over = await recent_sights(self._store, self._key, found.session, self._messages_of)
            self._mark = (mark, done)
        known = {one.name: (one, messages) for one, messages in self._open}
        running = [row.turn for row in rows if row.state is TurnState.OPEN]
        self._open = [known.get(turn) or await self._begun(turn) for turn in running]
        for one, _ in self._open:
            await one.look()
        pending = await self._store.inbox.pending(found.session)
        waiting = [message for row, message in readable(pending) if row.lane == NORMAL_LANE]
        self._waiting = [queued_sight(message, place) for place, message in enumerate(waiting, start=1)]
        await self._ask_tasks()
        return self._sights()

    async def _ask_tasks(self) -> None:
        """See what tasks ask that were begun here. In a chat they ask there."""
        if not self._key.startswith(f"{PAGE}/"):
            return
        names = [row.schedule for row in await self._store.schedules.of(self._key, TASK)]
        for row, message in readable(await self._store.inbox.by_keys(PAGE, names)) if names else ():
            if row.turn is not None and row.turn not in self._begun_tasks:
                self._begun_tasks[row.turn] = self._afar.turn(self._store, row.turn), message
        for name, (far, message) in [*self._begun_tasks.items()]:
            await far.look()
            over = far.turn is None or far.turn.exit is not None
            shown = view(far.turn, self._clock.now_ms()) if far.turn is not None else None
            if shown is not None and (sight := task_sight(name, message, shown)) is not None:
                self._tasks[name] = replace(sight, view=decided_alone(sight.view)) if over else sight
            if over and message.inbound.platform_key not in names:
                del self._begun_tasks[name]

    async def _commands(self, session: str) -> list[int]:
        """The latest that are done, and messages that were not run: on the page, what was said of them is seen."""
        if not self._key.startswith(f"{PAGE}/"):
            return []
        return [row.id for row in await self._store.inbox.beside_turns(session, COMMAND_LANE, LATEST_COMMANDS)]

    async def _begun(self, turn: str) -> tuple[FarTurn, Sequence[Waiting]]:
        return self._afar.turn(self._store, turn), (await self._messages_of(turn)).get(turn, [])

    async def _goes_on(self, one: FarTurn) -> bool:
        await one.look()
        return one.turn is not None and one.turn.exit is None

    def _sights(self) -> list[TurnSight]:
        now = self._clock.now_ms()
        running = [
            replace(sight_of(one.name, one.turn, message, now), view=shown)
            for one, messages in self._open
            if one.turn is not None and (shown := one.shown(now)) is not None
            for message in messages
        ]
        return [*self._over, *self._tasks.values(), *running, *self._waiting]
