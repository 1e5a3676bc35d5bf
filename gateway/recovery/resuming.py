"""Going on with what an earlier process left: an open turn from its journal, the messages that waited; or setting it aside.

What is taken up, and when, is decided in `gateway.setaside.takeup`; that it may be, `gateway.recovery.keeper` has stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import structlog

from agent_core.driver.closing import TurnIdentity, closing_of, unread
from agent_core.failures.errors import UnreadableJournal
from agent_core.failures.exits import Exit
from agent_core.failures.notices import NotStarted
from agent_core.journal.rows import decode, fold, row_of
from agent_core.journal.salvage import unreadable_end
from agent_core.ports import Clock, Ids
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.sessions.asides import Fresh
from agent_core.store.store import Conflict, Store
from agent_core.store.turns.rows import JournalRow, OpenTurn
from agent_core.turn.events import DriverFailed, TakenOver
from gateway.delivery.chatside import dropping
from gateway.delivery.owners import Owner
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE
from gateway.queues.queue import Running, steered_into, waiting_of
from gateway.sessions.hub import Hub
from gateway.setaside.setaside import outlet_of
from gateway.setaside.takeup import SET_ASIDE

log = structlog.get_logger("gateway")

AT_ONCE = 10
"""After so many turns others have their turn: folding one takes some 0.5 ms."""
Rows = Sequence[tuple[str, bytes]]


class Resuming:
    """Puts what was taken up back into the hub's queues."""

    def __init__(self, hub: Hub, store: Store, clock: Clock, ids: Ids) -> None:
        self._queues = hub.queues
        self._runner = hub.runner
        self._accepting = hub.accepting
        self._opener = hub.opener
        self._chats = hub.chats
        self._aside = hub.aside
        self._closer = hub.closer
        self._store = store
        self._clock = clock
        self._ids = ids

    def taken_over_row(self, turn: str, seq: int, epoch: int) -> JournalRow:
        """The row that says that a turn was taken over."""
        log.info("turn.taken_over", turn=turn, epoch=epoch)
        return row_of(TakenOver(at=self._clock.now_ms(), epoch=epoch), seq)

    # ------------------------------------------------------------------ turns

    async def turns(self, found: Sequence[OpenTurn], keys: Mapping[str, str]) -> None:
        """Go on with open turns that were taken over. `keys` are those of their sessions."""
        names = [one.turn for one in found]
        journals = await self._store.turns.journals(names)
        messages: dict[str, list[InboxRow]] = {}
        for row in await self._store.inbox.inputs(*names):
            messages.setdefault(row.turn or "", []).append(row)
        await self._chats.load(found, [row.id for rows in messages.values() for row in rows])
        for number, one in enumerate(found, start=1):
            await self._go_on(one, keys[one.session], journals.get(one.turn, []), messages.get(one.turn, []))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _go_on(self, found: OpenTurn, key: str, rows: Rows, asked: Sequence[InboxRow]) -> None:
        """Go on with an open turn, or, if its journal cannot be read, end it visibly."""
        try:
            turn = fold(rows[:-1])
            taken_over = decode(*rows[-1])
            told_at = decode(*rows[-2]).at if len(rows) > 1 else 0
            messages = tuple(waiting_of(row) for row in asked)
        except (UnreadableJournal, inbox.UnreadableMessage) as error:
            reference = self._ids.new("err")
            log.exception("turn.unreadable", turn=found.turn, reference=reference, error=str(error))
            await self._end(found, asked, len(rows), unreadable_end(rows, reference))
            await self._unblock(found, key)
            return
        assert isinstance(taken_over, TakenOver)
        queue = await self._accepting.owned(key, found.session, found.epoch)
        if queue.running is not None and _is_of(queue.running.driver.identity, found):
            return  # it goes on since an earlier try, which failed with one of its neighbours: nobody waits for its end
        queue.blocked = True
        await self._runner.settled(queue)
        if queue.running is not None or self._runner.closing:
            return  # it goes on already, or in the next process
        if turn.opened is not None and turn.opened.own_history is None:
            await self._opener.load_memory(queue)
        agent = turn.opened.agent if turn.opened is not None else ""
        wishes = await self._opener.instructions.told(messages[0].inbound)
        driver = self._opener.driver(found.turn, found.session, found.epoch, messages, queue, agent, wishes)
        driver.resume(turn, len(rows), taken_over, told_at)
        queue.running = Running(driver, messages)
        if isinstance(driver.outlet, TurnOutlet):
            driver.outlet.attach(driver)
        self._runner.start(queue)  # what waits comes after it, once `messages` has put the earlier ones in front

    async def _unblock(self, found: OpenTurn, key: str) -> None:
        queue = await self._accepting.owned(key, found.session, found.epoch)
        self._runner.unblock(queue)

    # ------------------------------------------------------------------ messages

    async def messages(self, session: str, key: str, epoch: int) -> None:
        """Put the messages that waited in a session back into its queue, before those that have come since."""
        rows = await self._store.inbox.pending(session)
        if rows:  # before a turn begins, and takes them back
            await self._chats.load_words(Owner(session, epoch), [row.id for row in rows])
        # Last: one that is held over an await may be forgotten
        queue = await self._accepting.owned(key, session, epoch)
        for row in rows:
            if row.lane == COMMAND_LANE or queue.knows(row.id):
                continue
            try:
                message = waiting_of(row)
            except inbox.UnreadableMessage:
                await self._aside.lose(row.id, Fresh(session, key, epoch))
                continue
            if queue.running is not None and row.id in steered_into(queue.running.driver.turn):
                queue.steers.append(message)
            else:
                queue.waiting.append(message)
        queue.waiting.sort(key=lambda message: message.arrival)
        self._runner.unblock(queue)

    # ------------------------------------------------------------------ setting aside

    async def set_aside_turn(self, found: OpenTurn, seq: int, why: str) -> str:
        """End a turn that cannot be taken up, or has ended the process each time that it was, without looking into it; the reference."""
        reference = self._ids.new("err")
        ending, failed = unread(reference, why, self._clock.now_ms())
        asked = await self._store.inbox.inputs(found.turn)
        await self._chats.load([found], [row.id for row in asked])  # what it has shown is not on its way any more
        await self._end(found, asked, seq, ending, failed)
        return reference

    async def set_aside_message(self, row: InboxRow, key: str, epoch: int, *, killed: bool) -> None:
        """A message, or a command, that has `killed` the process each time, or that a mistake of ours keeps from being worked on, is not tried
        again; its chat is told."""
        queue = await self._accepting.owned(key, row.session, epoch)
        queue.blocked = True  # until what waited behind it is known
        queue.withdraw(row.id)
        owner = Owner(row.session, epoch)
        drop = dropping(self._store, row.id, SET_ASIDE if killed else inbox.NOT_OPENED, owner)
        with suppress(Conflict):
            try:
                said = inbox.decode(row.body)
            except inbox.UnreadableMessage:
                await drop(())
            else:
                told = NotStarted.QUARANTINED if killed else NotStarted.NOT_OPENED
                await self._chats.not_run(said, row.id, owner, told, drop)

    async def _end(
        self, found: OpenTurn, asked: Sequence[InboxRow], seq: int, ending: Exit, *events: DriverFailed
    ) -> None:
        whose = TurnIdentity(found.turn, found.session, found.epoch)
        end = closing_of(whose, ending, self._clock.now_ms(), seq, events)
        await self._closer.close(end, await outlet_of(self._chats, self._store, found, asked))


def _is_of(identity: TurnIdentity, found: OpenTurn) -> bool:
    """Whether a driver's turn is this one, as it was taken over."""
    return (identity.turn, identity.epoch) == (found.turn, found.epoch)
