"""What is written of turns: they are started, their journals grow, and they are closed.

Law: a turn's journal has no holes, and nothing is added to it once the turn is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.batch.facts import (
    CallFact,
    Facts,
    GivenRow,
    InboxFact,
    Needs,
    Op,
    Pieces,
    SessionFact,
    TurnFact,
    bytes_of,
    parts_bytes,
)
from agent_core.store.database.mapping import Fact
from agent_core.store.deliveries.ops import deliver
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict, Fenced
from agent_core.store.inbox.rows import InboxState
from agent_core.store.troubles.rows import TroubleRow
from agent_core.store.turns.rows import (
    ROWS_A_TURN,
    CallState,
    IntendedCall,
    JournalRow,
    OpeningTurn,
    ToolCallRow,
    TurnRow,
    TurnState,
    untimed,
)
from agent_core.store.webhooks.ops import hooks_bytes, tell
from agent_core.store.webhooks.rows import HookRow

LAST_AT_STEP_MS = 60_000
"""`last_at` is kept to the minute, so that most commits need not write the session's page."""


@dataclass(frozen=True, slots=True)
class Start(Op[None]):
    opening: OpeningTurn
    inbox_ids: tuple[int, ...]
    pieces: Pieces = ()

    def need(self, wanted: Needs) -> None:
        wanted.of_turn(self.opening.session, self.opening.turn, self.opening.rows)
        wanted.starts.add(self.opening.turn)
        wanted.inbox.update(self.inbox_ids)

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        session = facts.owned(self.opening.session, self.opening.epoch)
        known = facts.turns.get(self.opening.turn)
        if known is not None:
            same = known.row.session == self.opening.session and facts.inputs.get(self.opening.turn) == frozenset(
                self.inbox_ids
            )
            if same and all(facts.journal.get((self.opening.turn, row.seq)) == row for row in self.opening.rows):
                return
            raise Fenced(
                f"Turn {self.opening.turn} is stored already, and with other content. Start a turn under a new id."
            )
        if session.open_turn is not None:
            raise Conflict(
                f"Session {self.opening.session} still has turn {session.open_turn} open; close it before {self.opening.turn} starts."
            )
        if [row.seq for row in self.opening.rows] != list(range(len(self.opening.rows))):
            raise Conflict(
                f"The journal of turn {self.opening.turn} must begin with row 0, not {self.opening.rows[0].seq}."
            )
        if not self.inbox_ids:
            raise Conflict(f"Turn {self.opening.turn} answers no message. Store one, and begin the turn with it.")
        if len(set(self.inbox_ids)) != len(self.inbox_ids):
            raise Conflict(f"Turn {self.opening.turn} names a message twice: {self.inbox_ids}.")
        messages = [self._startable(facts, inbox_id) for inbox_id in self.inbox_ids]
        for message in messages:
            message.change(state=InboxState.TAKEN, turn=self.opening.turn)
            facts.taken.setdefault(self.opening.turn, []).append(message)
        session.open_turn = self.opening.turn
        follows = -1 if session.row.tip in (-1, session.last_number) else session.row.tip
        session.last_number += 1
        if session.row.tip >= 0:
            session.change(tip=-1)
        _seen(session, self.opening.opened_at)
        made = TurnRow(
            turn=self.opening.turn,
            session=self.opening.session,
            number=session.last_number,
            state=TurnState.OPEN,
            exit=None,
            opened_at=self.opening.opened_at,
            closed_at=None,
            deadline=self.opening.deadline,
            people=askers("", messages),
            first_message=min(self.inbox_ids),
            last_message=max(self.inbox_ids),
            follows=follows,
        )
        facts.turns[self.opening.turn] = TurnFact(made)
        facts.inputs[self.opening.turn] = frozenset(self.inbox_ids)
        _add_rows(facts, facts.turns[self.opening.turn], self.opening.epoch, self.opening.rows)

    def _startable(self, facts: Facts, inbox_id: int) -> InboxFact:
        message = facts.inbox.get(inbox_id)
        if message is None:
            raise Conflict(f"There is no message {inbox_id} for turn {self.opening.turn} to start with.")
        if message.row.session != self.opening.session:
            raise Conflict(f"Message {inbox_id} is of session {message.row.session}, not of {self.opening.session}.")
        if message.row.state is not InboxState.NEW:
            raise Conflict(
                f"Message {inbox_id} is {message.row.state} (turn {message.row.turn}); turn {self.opening.turn} cannot take it."
            )
        return message

    def weight(self) -> int:
        return bytes_of(self.opening.rows)

    def cut_out(self) -> Pieces:
        return self.pieces


@dataclass(frozen=True, slots=True)
class Append(Op[None]):
    """Also `intend`: rows, and the calls that they begin, in one commit."""

    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    intended: tuple[IntendedCall, ...] = ()
    pieces: Pieces = ()
    hooks: tuple[HookRow, ...] = ()

    def need(self, wanted: Needs) -> None:
        wanted.of_turn(self.session, self.turn, self.rows)
        wanted.calls.update([(self.turn, call.call) for call in self.intended])

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        facts.owned(self.session, self.epoch)
        turn = _turn(facts, self.turn, self.session)
        fresh = _fresh_rows(facts, turn, self.rows)
        opened = _opened(facts, self.turn, self.intended)
        if opened and turn.row.state is TurnState.CLOSED:
            raise Conflict(f"Turn {self.turn} is closed ({turn.row.exit}); it can run no tool any more.")
        _add_rows(facts, turn, self.epoch, fresh)
        for made in opened:
            facts.calls[made.row.turn, made.row.call] = made
        if self.hooks:
            tell(facts, self.hooks)

    def weight(self) -> int:
        return bytes_of(self.rows) + hooks_bytes(self.hooks)

    def cut_out(self) -> Pieces:
        return self.pieces


@dataclass(frozen=True, slots=True)
class Close(Op[None]):
    session: str
    epoch: int
    turn: str
    rows: tuple[JournalRow, ...]
    exit: str
    closed_at: int
    deliveries: tuple[DeliveryRow, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    heard: tuple[int, ...] = ()
    """Messages that were put into the running turn, beside those that it began with."""
    troubles: tuple[TroubleRow, ...] = ()
    pieces: Pieces = ()
    hooks: tuple[HookRow, ...] = ()
    model: str = ""
    key: str = ""
    intended: tuple[IntendedCall, ...] = ()
    """Calls whose start is among the rows."""

    def need(self, wanted: Needs) -> None:
        wanted.of_turn(self.session, self.turn, self.rows)
        wanted.inbox.update(self.heard)
        wanted.calls.update([(self.turn, call.call) for call in self.intended])

    def decide(self, facts: Facts, previous: object) -> None:  # noqa: ARG002 - repeating it says the same
        session = facts.owned(self.session, self.epoch)
        turn = _turn(facts, self.turn, self.session)
        if turn.row.state is TurnState.CLOSED and turn.row.exit != self.exit:
            raise Fenced(
                f"Turn {self.turn} ended already, with {turn.row.exit}; it cannot end with {self.exit} as well."
            )
        fresh = _fresh_rows(facts, turn, self.rows)
        opened = _opened(facts, self.turn, self.intended)
        if turn.row.state is TurnState.CLOSED:
            return
        _add_rows(facts, turn, self.epoch, fresh)
        for made in opened:
            facts.calls[made.row.turn, made.row.call] = made
        turn.change(
            state=TurnState.CLOSED,
            exit=self.exit,
            closed_at=self.closed_at,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            model=self.model,
            key=self.key,
        )
        session.open_turn = None
        _seen(session, self.closed_at)
        for message in facts.taken.get(self.turn, ()):
            message.change(state=InboxState.DONE)
        for inbox_id in self.heard:
            heard = facts.inbox.get(inbox_id)
            if heard is not None and heard.row.state is InboxState.NEW:
                heard.change(state=InboxState.DONE)
                turn.change(people=askers(turn.row.people, [heard]))
        for row in self.troubles:
            named = replace(row, conversation=row.conversation or self.session)
            facts.add(t.TROUBLE, named, turn=self.turn, session=self.session)
        if self.deliveries:
            deliver(facts, self.session, self.epoch, self.deliveries)
        if self.hooks:
            tell(facts, self.hooks)

    def weight(self) -> int:
        return bytes_of(self.rows) + parts_bytes(self.deliveries) + hooks_bytes(self.hooks)

    def cut_out(self) -> Pieces:
        return self.pieces


def _opened(facts: Facts, turn: str, calls: Sequence[IntendedCall]) -> list[CallFact]:
    """Records for the calls of a turn that are new. Raises Fenced if one is stored as another."""
    opened: list[CallFact] = []
    for call in calls:
        known = facts.calls.get((turn, call.call))
        if known is None:
            row = ToolCallRow(turn, call.call, call.tool, call.effect, CallState.INTENDED, call.key, None)
            opened.append(Fact(row))
        elif (known.row.tool, known.row.effect, known.row.key) != (call.tool, call.effect, call.key):
            raise Fenced(
                f"Call {call.call} of turn {turn} is stored already, for tool {known.row.tool}. It must not run again."
            )
    return opened


def askers(known: str, messages: Sequence[InboxFact]) -> str:
    """Who asked a turn, as it is stored, with those who wrote `messages`."""
    people = [tuple(one) for one in orjson.loads(known or "[]")]
    people += [(message.row.account, message.row.person) for message in messages if message.row.person]
    return orjson.dumps(list(dict.fromkeys(people))).decode() if people else ""


def _turn(facts: Facts, turn: str, session: str) -> TurnFact:
    found = facts.turns.get(turn)
    if found is None:
        raise Conflict(f"There is no turn {turn}; start it first.")
    if found.row.session != session:
        raise Conflict(f"Turn {turn} is of session {found.row.session}, not of {session}.")
    return found


def _fresh_rows(facts: Facts, turn: TurnFact, rows: Sequence[JournalRow]) -> list[JournalRow]:
    """The rows that are not stored yet. Raises Fenced if a stored one differs, Conflict at a hole or after the end."""
    if _go_on(turn, rows):
        return [*rows]
    fresh: list[JournalRow] = []
    for row in rows:
        if row.seq > turn.last_seq:
            expected = turn.last_seq + 1 + len(fresh)
            if row.seq != expected:
                raise Conflict(f"Row {row.seq} of turn {turn.row.turn} would leave a hole; the next row is {expected}.")
            if row.seq >= ROWS_A_TURN:
                raise Conflict(f"The journal of turn {turn.row.turn} is full: it has {ROWS_A_TURN} rows.")
            fresh.append(row)
        elif facts.journal.get((turn.row.turn, row.seq)) != row:
            raise Fenced(
                f"Row {row.seq} of turn {turn.row.turn} is stored already, with other content: someone else wrote it."
            )
    if fresh and turn.row.state is TurnState.CLOSED:
        raise Conflict(f"Turn {turn.row.turn} is closed ({turn.row.exit}); nothing can be added to its journal.")
    return fresh


def _go_on(turn: TurnFact, rows: Sequence[JournalRow]) -> bool:
    """They are the next ones of an open turn, as nearly always."""
    last = turn.last_seq
    for row in rows:
        last += 1
        if row.seq != last:
            return False
    return last < ROWS_A_TURN and turn.row.state is TurnState.OPEN


def _add_rows(facts: Facts, turn: TurnFact, epoch: int, rows: Sequence[JournalRow]) -> None:
    name, first = turn.row.turn, t.row_id(turn.row.first_message, 0)
    facts.add_all(
        t.EVENT,
        [GivenRow(row, {"id": first + row.seq, "epoch": epoch, "body": untimed(row.body, row.at)}) for row in rows],
    )
    for row in rows:
        facts.journal[name, row.seq] = row
        turn.last_seq = row.seq


def _seen(session: SessionFact, at: int) -> None:
    if at - session.row.last_at >= LAST_AT_STEP_MS:
        session.change(last_at=at)
