"""Approvals, as programs give and deny them: what waits, and what became of an answer.

An answer goes the way of a button in a chat (`TurnStopping.approve`), and is told when it stands in the journal. So it can be asked for again:
the same answer gets the same, also after the turn is over, and another one is told what was decided.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from adapters.contract.base import FromApi, FromChat, SessionKey
from adapters.contract.sessions import Decision, DecisionFate, OpenApproval, SessionSight, SessionState
from adapters.delivery.parts import call_mark
from agent_core.failures.errors import UnreadableJournal
from agent_core.journal.rows import decode
from agent_core.machine.turn import Turn
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.store.store import Store
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.tools.asked import question, whole
from agent_core.turn.events import ApprovalAnswered, ApprovalAsked, Verdict
from agent_core.turn.state import Activity, ActivityState
from gateway.conversations.sights import SessionSights
from gateway.limits.whose import asker_words
from gateway.queues.inbox import UnreadableMessage
from gateway.queues.queue import Running, Waiting, waiting_of
from gateway.sessions.consents import approvers_words
from gateway.sessions.recents import open_turn
from gateway.sessions.stopping import TurnStopping

STORED_SECONDS = 10.0
"""So long it is waited for an answer to be in the journal."""
LOOK_SECONDS = 0.02
API = "api"


@dataclass(frozen=True, slots=True)
class AskedHere:
    """A call that waits for somebody's word, here or at another gateway."""

    session: str
    turn: str
    activity: Activity
    messages: tuple[Waiting, ...]
    """What the turn answers: whoever asked it may decide."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """Every method raises `StorageUnavailable`."""

    store: Store
    stopping: TurnStopping
    sights: SessionSights

    async def open(self, realm: str) -> list[OpenApproval]:
        """See `adapters.contract.sessions.SessionAccess.approvals`."""
        return [found for _, found in await self._open([one for one in await self._asked() if _is_of(one, realm)])]

    async def everybodys(self) -> list[tuple[AskedHere, OpenApproval]]:
        """All that wait, at whichever gateway, for whoever runs it."""
        return await self._open(await self._asked())

    async def answers(self, turn: str) -> tuple[Waiting, ...] | None:
        """What a turn answers, wherever it runs: whoever asked it may decide what it waits for. None: it is over, or there is none."""
        here = next((one for one in self.stopping.queues.running() if one.driver.identity.turn == turn), None)
        if here is not None:
            return tuple(here.messages)
        row = await self.store.turns.one(turn)
        return await self._stored_with(turn) if row is not None and row.state is TurnState.OPEN else None

    async def _stored_with(self, turn: str) -> tuple[Waiting, ...]:
        try:
            return tuple(waiting_of(one) for one in await self.store.inbox.inputs(turn))
        except UnreadableMessage:
            return ()

    async def _asked(self) -> list[AskedHere]:
        """What waits here; and what waits elsewhere, as far as it is stored: that it waits is, before anybody is asked."""
        here = self.stopping.queues.running()
        found = [one for running in here if (one := _asked_here(running)) is not None]
        if self.stopping.portion.whole:
            return found
        ours = {running.driver.identity.turn for running in here}
        there = [await self._asked_there(row) for row in await self.store.turns.asking() if row.turn not in ours]
        return [*found, *(one for one in there if one is not None)]

    async def _asked_there(self, row: TurnRow) -> AskedHere | None:
        turn = open_turn(await self.store.turns.journal(row.turn))
        activity = _waits(turn) if turn is not None else None
        if activity is None:
            return None
        return AskedHere(row.session, row.turn, activity, await self._stored_with(row.turn))

    async def _open(self, askings: Sequence[AskedHere]) -> list[tuple[AskedHere, OpenApproval]]:
        found: list[tuple[AskedHere, OpenApproval]] = []
        for one in askings:
            row = await self.store.sessions.one(one.session)
            if row is not None:
                sight = (await self.sights.of([row]))[0]
                found.append((one, _open(replace(sight, state=SessionState.WAITING_FOR_APPROVAL), one)))
        return sorted(found, key=lambda one: (one[1].asked_at, one[1].turn))

    async def decide(self, realm: str, turn: str, mark: str, verdict: Verdict, by: str, lasts: Lasting) -> Decision:
        """See `adapters.contract.sessions.SessionAccess.decide`."""
        row = await self.store.turns.one(turn)
        session = await self.store.sessions.one(row.session) if row is not None else None
        key = SessionKey.of(session.key) if session is not None and session.key.count("/") == 4 else None
        if key is None or key.platform != API or key.person != realm:
            return Decision(DecisionFate.UNKNOWN)
        refused = "" if self.stopping.askers_decide else approvers_words(self.stopping.approvers, ())
        return await self._decide(key, turn, mark, verdict, by, lasts, refused)

    async def decide_as_operator(
        self, turn: str, mark: str, verdict: Verdict, by: str, lasts: Lasting, refused: str
    ) -> Decision:
        """Whoever runs the gateway decides, wherever it is asked; or `refused`: who may, if they may not."""
        row = await self.store.turns.one(turn)
        session = await self.store.sessions.one(row.session) if row is not None else None
        if session is None or session.key.count("/") != 4:
            return Decision(DecisionFate.UNKNOWN)
        return await self._decide(SessionKey.of(session.key), turn, mark, verdict, by, lasts, refused)

    async def _decide(
        self, key: SessionKey, turn: str, mark: str, verdict: Verdict, by: str, lasts: Lasting, refused: str
    ) -> Decision:
        call, decided = await self._in_journal(turn, mark)
        if not call:
            return Decision(DecisionFate.UNKNOWN)
        if decided is None:
            if refused:
                return Decision(DecisionFate.FORBIDDEN, by=refused)
            told = await self.stopping.approve(key, turn, call, verdict, by, lasts)
            decided = await self._stored(turn, mark) if told else (await self._in_journal(turn, mark))[1]
        if decided is not None:
            return _decision(decided, verdict)
        row = await self.store.turns.one(turn)
        is_open = row is not None and row.state is TurnState.OPEN
        return Decision(DecisionFate.ELSEWHERE if is_open else DecisionFate.OVER)

    async def _stored(self, turn: str, mark: str) -> ApprovalAnswered | None:
        """The answer as the journal has it, as soon as it has one."""
        clock = self.stopping.clock
        until = clock.monotonic() + STORED_SECONDS
        while True:
            decided = (await self._in_journal(turn, mark))[1]
            row = None if decided is not None else await self.store.turns.one(turn)
            if decided is not None or row is None or row.state is TurnState.CLOSED or clock.monotonic() > until:
                return decided
            await asyncio.sleep(LOOK_SECONDS)

    async def _in_journal(self, turn: str, mark: str) -> tuple[str, ApprovalAnswered | None]:
        """The call with this mark for which somebody was asked (empty if there is none), and what was answered."""
        call, decided = "", None
        for row in await self.store.turns.journal(turn):
            if row.kind not in (ApprovalAsked.kind(), ApprovalAnswered.kind()):
                continue
            try:
                event = decode(row.kind, row.body)
            except UnreadableJournal:
                continue
            if isinstance(event, ApprovalAsked | ApprovalAnswered) and call_mark(event.call) == mark:
                call = event.call
                decided = event if isinstance(event, ApprovalAnswered) else decided
        return call, decided


def _decision(decided: ApprovalAnswered, verdict: Verdict) -> Decision:
    fate = DecisionFate.DECIDED if decided.verdict is verdict else DecisionFate.OTHERWISE
    if decided.verdict is Verdict.EXPIRED:
        fate = DecisionFate.OVER
    return Decision(fate, decided.verdict, decided.by, decided.at, decided.lasts)


def _is_of(asked: AskedHere, realm: str) -> bool:
    first = asked.messages[0].inbound if asked.messages else None
    return isinstance(first, FromApi) and first.session.platform == API and first.session.person == realm


def _place(asked: AskedHere) -> str:
    first = asked.messages[0].inbound if asked.messages else None
    if isinstance(first, FromChat):
        return first.chat.address.text().rstrip("/")
    if first is not None and first.task is not None:
        where = first.task.chat.address.text().rstrip("/") if first.task.chat is not None else first.task.parent
        return f"{where}, task {first.task.number} ({first.task.title})"
    return f"{first.surface}/{first.session.chat}" if first is not None else ""


def _asked_here(running: Running) -> AskedHere | None:
    """The call that waits for somebody, if it is stored that it does."""
    driver = running.driver
    if driver.over or driver.seen.committing or (activity := _waits(driver.turn)) is None:
        return None
    return AskedHere(driver.identity.session, driver.identity.turn, activity, tuple(running.messages))


def _waits(turn: Turn) -> Activity | None:
    calls = [one for one in turn.timeline if isinstance(one, Activity)]
    return next((one for one in calls if one.state is ActivityState.APPROVAL), None)


def _open(sight: SessionSight, asked: AskedHere) -> OpenApproval:
    activity = asked.activity
    return OpenApproval(
        session=sight,
        turn=asked.turn,
        call=activity.call,
        tool=activity.name,
        question=whole(activity.name, activity.arguments) or question(activity.name, activity.arguments),
        arguments=activity.arguments,
        asked_at=activity.since,
        until=activity.approval_deadline,
        offers=activity.offers,
        diff=activity.change.diff if activity.change is not None else "",
        place=_place(asked),
        asker=" and ".join(dict.fromkeys(asker_words(one.inbound) for one in asked.messages)),
    )
