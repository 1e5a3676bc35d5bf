"""What there is to see of stored conversations: of each its figures, what it does just now, and its turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from adapters.contract.base import Ended, SessionKey, Showing
from adapters.contract.sessions import SessionSight, SessionState, SessionTurn
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import fold, opened_of
from agent_core.judging.compaction import told_turn
from agent_core.machine.turn import Turn
from agent_core.messages import Message
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.sessions.rows import SessionFigures, SessionRow
from agent_core.store.store import Store
from agent_core.store.turns.rows import TurnRow
from agent_core.turn.events import TurnOpened
from agent_core.turn.state import PersonItem
from agent_core.turn.view import BubbleKind, view
from gateway.people.directory import first_words
from gateway.queues.prefs import Prefs
from gateway.queues.queue import SessionQueue, summary_of
from gateway.queues.queues import Queues
from gateway.sessions.recents import ended_unseen

log = structlog.get_logger("gateway")

NO_FIGURES = SessionFigures(0, 0, 0, "", "", "")


@dataclass(frozen=True, slots=True)
class SessionSights:
    """Looks at them. Every method raises `StorageUnavailable`."""

    store: Store
    queues: Queues
    clock: Clock

    async def of(self, rows: Sequence[SessionRow]) -> list[SessionSight]:
        """What there is to see of these."""
        if not rows:
            return []
        figures = await self.store.sessions.figures([row.session for row in rows])
        ends = {turn for one in figures.values() for turn in (one.first, one.last) if turn}
        found = await self.store.turns.openings(sorted(ends)) if ends else {}
        opened = {turn: opened_of(*row) for turn, row in found.items()}
        return [self._sight(row, figures.get(row.session, NO_FIGURES), opened) for row in rows]

    def _sight(self, row: SessionRow, figures: SessionFigures, opened: dict[str, TurnOpened | None]) -> SessionSight:
        queue, latest = self.queues.of(row.session), opened.get(figures.last)
        return SessionSight(
            session=row.session,
            key=SessionKey.of(row.key),
            created_at=row.created_at,
            last_at=row.last_at,
            state=_state(queue, figures),
            waiting=len(queue.waiting) if queue is not None else 0,
            turns=figures.turns,
            input_tokens=figures.input_tokens,
            output_tokens=figures.output_tokens,
            title=first_words(opened.get(figures.first)) if figures.first else "",
            model=latest.settings.routes[0].model if latest is not None and latest.settings.routes else "",
            agent=latest.agent if latest is not None else "",
            metadata=Prefs.decode(row.policy).metadata,
        )

    async def turns(self, session: str, number: int, limit: int, *, newest_first: bool) -> list[SessionTurn]:
        """The next turns behind that number, in this order."""
        return await self._told(
            session, await self.store.turns.behind(session, number, limit, newest_first=newest_first)
        )

    async def these(self, session: str, turns: Sequence[str]) -> list[SessionTurn]:
        """These turns of it, in the order of their numbers."""
        return await self._told(session, await self.store.turns.some(turns))

    async def _told(self, session: str, rows: Sequence[TurnRow]) -> list[SessionTurn]:
        row = await self.store.sessions.one(session)
        journals = await self.store.turns.journals([one.turn for one in rows])
        told: list[SessionTurn] = []
        for one in rows:
            told.append(self._turn(one, journals.get(one.turn), row.since if row is not None else 0))
            await asyncio.sleep(0)  # each takes half a millisecond
        return told

    def _turn(self, row: TurnRow, journal: Sequence[tuple[str, bytes]] | None, since: int) -> SessionTurn:
        turn, running = _folded(row.turn, journal), self._running(row)
        turn = running or turn
        opened = turn.opened if turn is not None else None
        told = row.number > since and not row.undone and not row.removed
        if turn is None or opened is None:
            unreadable = row.closed_at is not None
            seen = ended_unseen(row) if unreadable else None
            return SessionTurn(row.turn, row.number, row.opened_at, row.closed_at, told, row.removed, seen=seen)
        return SessionTurn(
            turn=row.turn,
            number=row.number,
            opened_at=row.opened_at,
            closed_at=row.closed_at,
            told=told,
            history=opened.own_history or (),
            asked=(*opened.input, *(item.input for item in turn.items if isinstance(item, PersonItem))),
            messages=_messages(turn),
            seen=_seen(row.turn, turn, self.clock.now_ms()),
            model=turn.route.model if opened.settings.routes else "",
            agent=opened.agent,
        )

    def _running(self, row: TurnRow) -> Turn | None:
        """The turn as it stands here, where it runs."""
        queue = self.queues.of(row.session)
        running = queue.running if queue is not None else None
        found = running is not None and running.driver.identity.turn == row.turn and row.closed_at is None
        return running.driver.turn if running is not None and found else None


def _messages(turn: Turn) -> tuple[Message, ...]:
    if turn.exit is None:
        return ()
    return tuple({k: v for k, v in one.items() if not k.startswith("_")} for one in told_turn(turn).group)


def _state(queue: SessionQueue | None, figures: SessionFigures) -> SessionState:
    if queue is not None and queue.running is not None and not queue.running.driver.over:
        asks = any(b.kind is BubbleKind.APPROVAL for b in queue.running.driver.seen.current_view().bubbles)
        return SessionState.WAITING_FOR_APPROVAL if asks else SessionState.RUNNING
    if figures.open_turn:
        return SessionState.RUNNING
    return SessionState.QUEUED if queue is not None and queue.waiting else SessionState.IDLE


def _folded(turn: str, journal: Sequence[tuple[str, bytes]] | None) -> Turn | None:
    if not journal:
        return None
    try:
        return fold(journal)
    except UnreadableJournal as error:
        log.warning("turn.unreadable", turn=turn, error=str(error))
        return None


def _seen(name: str, turn: Turn, now: int) -> Ended | Showing:
    if turn.exit is None:
        return Showing(name, view(turn, now), turn.thoughts)
    shown = view(turn, turn.phase_since)
    return Ended(
        name, shown, turn.exit, turn.handed_calls, summary_of(turn), turn.made, turn.thoughts, turn.reply_thoughts
    )
