"""Decides each write of a batch on the facts that were read for it. Pure: no I/O, no clock, no ids of its own.

Laws.
1. Who writes for a session must own it under the epoch that it names; otherwise `Fenced`, and nothing is changed.
2. What is brought again with the same keys and the same content changes nothing and succeeds; with other content it is
   `Fenced`. So a batch whose answer was lost can be repeated.
3. A turn's journal has no holes, and nothing is added to it once the turn is closed.
4. An operation that raises has changed no record: every function checks all, then changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

import orjson

from agent_core.limits.budgets import Amount, BudgetRefused, Granted, Level, Pot, Reached, Settled, refusal, warning
from agent_core.store.budgets.rows import BroughtFile, Charge
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.errors import Conflict, Fenced, NoRoomToday, OwnedElsewhere
from agent_core.store.facts import (
    AddedDelivery,
    AddedRow,
    AddedTrouble,
    CallFact,
    Fact,
    Facts,
    InboxFact,
    LevelFact,
    ReservationFact,
    SessionFact,
    TurnFact,
)
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState, NewMessage
from agent_core.store.ops import (
    Accept,
    Act,
    Append,
    Claim,
    Close,
    DeleteMemory,
    Drop,
    MoveCursor,
    Op,
    PutDeliveries,
    PutGate,
    PutIncident,
    PutMemory,
    PutPerson,
    PutPlace,
    PutSchedule,
    Reserve,
    Respond,
    Reword,
    Settle,
    Start,
    Touch,
    Unlink,
)
from agent_core.store.people.rows import PersonState
from agent_core.store.schedules.rows import Claimed, ScheduleRow, ScheduleState
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.troubles.rows import IncidentState
from agent_core.store.turns.rows import CallState, IntendedCall, JournalRow, ToolCallRow, TurnRow, TurnState

Result: TypeAlias = Accepted | Granted | BudgetRefused | Settled | int | bool | None
"""What an operation answers: `Accept` an `Accepted`, `Claim` the epoch, `DeleteMemory` whether it was there."""

COUNTED_ONCE_MS = 7 * 24 * 3600 * 1000
"""So long a file that is brought again does not count. Not for ever: what was removed meanwhile takes room again."""
LAST_AT_STEP_MS = 60_000
"""`last_at` is kept to the minute, so that most commits need not write the session's page."""


def decide(facts: Facts, op: Op, previous: Result = None) -> Result:
    """Change the records as `op` asks, and return its answer.

    `previous` is what an earlier attempt of the very same operation had answered when its commit's outcome was lost.
    Raises Fenced, Conflict, OwnedElsewhere, NoRoomToday.
    """
    match op:
        case Accept():
            return _accept(facts, op, previous)
        case Claim():
            return _claim(facts, op)
        case Start():
            return _start(facts, op)
        case Append():
            return _append(facts, op)
        case Close():
            return _close(facts, op)
        case Drop():
            return _drop(facts, op)
        case MoveCursor():
            facts.cursors[op.account, op.channel] = op.last_seen
            return None
        case Respond():
            return _respond(facts, op)
        case Reword():
            return _reword(facts, op)
        case PutDeliveries():
            _owned(facts, op.session, op.epoch)
            return _deliver(facts, op.session, op.epoch, op.deliveries)
        case Act():
            if op.session:
                _owned(facts, op.session, op.epoch)
                _deliver(facts, op.session, op.epoch, op.deliveries)
            facts.audits.append(op.audit)
            return None
        case PutGate(gate):
            facts.gates[gate.account, gate.bucket] = gate
            return None
        case PutPerson(person):
            facts.people[person.account, person.person] = person
            if person.state is PersonState.REVOKED:
                facts.unlinked.add((person.account, person.person))
            return None
        case PutPlace(place):
            facts.places.append(place)
            return None
        case Unlink(account, person):
            facts.unlinked.add((account, person))
            return None
        case PutIncident():
            return _put_incident(facts, op, previous)
        case PutSchedule(schedule):
            return _schedule(facts, [schedule])
        case PutMemory():
            entry = (op.scope, op.kind, op.name)
            facts.memory.add(entry)
            facts.memory_put[entry] = (op.value, op.at)
            return None
        case DeleteMemory():
            return _delete_memory(facts, op, previous)
        case Reserve():
            return _reserve(facts, op, previous)
        case Settle():
            return _settle(facts, op, previous)
        case Touch():
            facts.touched = True
            return None
        case _:
            assert_never(op)


def _accept(facts: Facts, op: Accept, previous: Result) -> Accepted:
    message = op.message
    name = (message.account, message.platform_key)
    found = facts.messages.get(name)
    if found is not None:
        if isinstance(previous, Accepted) and previous.inbox_id == found.row.id:
            if not previous.duplicate:
                _move_cursor(
                    facts, message
                )  # it was this very offer that stored it, and a batch is repeated as a whole
            return previous
        return Accepted(found.row.id, found.row.session, found.row.arrival, True, found.row.state, found.row.turn)
    if message.claim is not None:
        _check_claim(facts, message.claim)
    session = facts.sessions_by_key.get(message.session_key)
    charges = [charge for charge in message.charges if session is None or not charge.new_session]
    _charge(facts, charges, message.received_at)
    if session is None:
        at = message.received_at
        owner, epoch = (facts.node, 1) if op.claims else (None, 0)
        session = SessionFact(
            SessionRow(message.new_session_id, message.session_key, owner, epoch, created_at=at, last_at=at)
        )
        facts.sessions_by_key[session.row.key] = session
        facts.sessions[session.row.session] = session
    number = facts.free_ids.pop()
    row = InboxRow(
        id=number,
        account=message.account,
        platform_key=message.platform_key,
        session=session.row.session,
        arrival=number,  # ids only grow, so they give the order inside the session as well
        lane=message.lane,
        body=message.body,
        state=InboxState.DROPPED if message.refused else InboxState.NEW,
        reason=message.refused or None,
        received_at=message.received_at,
        person=message.person,
    )
    facts.messages[name] = facts.inbox[number] = Fact(row)
    _move_cursor(facts, message)
    if message.claim is not None:
        _put_schedule(facts, message.claim.schedule)
        facts.occurrences.append(replace(message.claim.occurrence, inbox=number))
    epoch = session.row.epoch if op.claims and session.row.owner == facts.node else 0
    return Accepted(number, session.row.session, number, False, row.state, None, epoch)


def _move_cursor(facts: Facts, message: NewMessage) -> None:
    if message.cursor is not None:
        channel, last_seen = message.cursor
        facts.cursors[message.account, channel] = last_seen


def _claim(facts: Facts, op: Claim) -> int:
    session = _session(facts, op.session)
    if session.row.owner == facts.node:
        return session.row.epoch
    if session.row.owner is not None and session.row.owner not in facts.dead:
        raise OwnedElsewhere(session.row.session, session.row.owner)
    session.change(owner=facts.node, epoch=session.row.epoch + 1)
    return session.row.epoch


def _start(facts: Facts, op: Start) -> None:
    session = _owned(facts, op.session, op.epoch)
    known = facts.turns.get(op.turn)
    if known is not None:
        inputs = facts.inputs.get(op.turn)
        same = known.row.session == op.session and inputs == frozenset(op.inbox_ids)
        if same and all(facts.journal.get((op.turn, row.seq)) == row for row in op.rows):
            return
        raise Fenced(f"Turn {op.turn} is stored already, and with other content. Start a turn under a new id.")
    if session.open_turn is not None:
        raise Conflict(
            f"Session {op.session} still has turn {session.open_turn} open; close it before {op.turn} starts."
        )
    if [row.seq for row in op.rows] != list(range(len(op.rows))):
        raise Conflict(f"The journal of turn {op.turn} must begin with row 0, not {op.rows[0].seq}.")
    if len(set(op.inbox_ids)) != len(op.inbox_ids):
        raise Conflict(f"Turn {op.turn} names a message twice: {op.inbox_ids}.")
    messages = [_startable(facts, inbox_id, op) for inbox_id in op.inbox_ids]
    for message in messages:
        message.change(state=InboxState.TAKEN, turn=op.turn)
        facts.taken.setdefault(op.turn, []).append(message)
        facts.added_inputs.append((message.row.id, op.turn))
    session.open_turn = op.turn
    session.last_number += 1
    _seen(session, op.opened_at)
    made = TurnRow(
        turn=op.turn,
        session=op.session,
        number=session.last_number,
        state=TurnState.OPEN,
        exit=None,
        opened_at=op.opened_at,
        closed_at=None,
        deadline=op.deadline,
        people=askers("", messages),
    )
    turn = TurnFact(made)
    facts.turns[op.turn] = turn
    facts.inputs[op.turn] = frozenset(op.inbox_ids)
    _add_rows(facts, turn, op.epoch, op.rows)


def askers(known: str, messages: Sequence[InboxFact]) -> str:
    """Who asked a turn, as it is stored, with those who wrote `messages`."""
    people = [tuple(one) for one in orjson.loads(known or "[]")]
    people += [(message.row.account, message.row.person) for message in messages if message.row.person]
    return orjson.dumps(list(dict.fromkeys(people))).decode() if people else ""


def _startable(facts: Facts, inbox_id: int, op: Start) -> InboxFact:
    message = facts.inbox.get(inbox_id)
    if message is None:
        raise Conflict(f"There is no message {inbox_id} for turn {op.turn} to start with.")
    if message.row.session != op.session:
        raise Conflict(f"Message {inbox_id} is of session {message.row.session}, not of {op.session}.")
    if message.row.state is not InboxState.NEW:
        raise Conflict(
            f"Message {inbox_id} is {message.row.state} (turn {message.row.turn}); turn {op.turn} cannot take it."
        )
    return message


def _append(facts: Facts, op: Append) -> None:
    _owned(facts, op.session, op.epoch)
    turn = _turn(facts, op.turn, op.session)
    fresh = _fresh_rows(facts, turn, op.rows)
    opened = [made for call in op.intended if (made := _intended(facts, op.turn, call)) is not None]
    moved = [
        (call, done.state, done.result_ref)
        for done in op.finished
        if (call := _unfinished(facts, op, done.call, done.state)) is not None
    ]
    if opened and turn.row.state is TurnState.CLOSED:
        raise Conflict(f"Turn {op.turn} is closed ({turn.row.exit}); it can run no tool any more.")
    _add_rows(facts, turn, op.epoch, fresh)
    for made in opened:
        facts.calls[made.row.turn, made.row.call] = made
    for call, state, result_ref in moved:
        call.change(state=state, result_ref=result_ref)


def _intended(facts: Facts, turn: str, call: IntendedCall) -> CallFact | None:
    """A record for a call that is new; None if this very call is stored already."""
    known = facts.calls.get((turn, call.call))
    if known is None:
        return Fact(ToolCallRow(turn, call.call, call.tool, call.effect, CallState.INTENDED, call.key, None))
    if (known.row.tool, known.row.effect, known.row.key) != (call.tool, call.effect, call.key):
        raise Fenced(
            f"Call {call.call} of turn {turn} is stored already, for tool {known.row.tool}. It must not run again."
        )
    return None


def _unfinished(facts: Facts, op: Append, name: str, state: CallState) -> CallFact | None:
    """The record of a call that gets its outcome now; None if it has this very outcome already."""
    if state is CallState.INTENDED:
        raise Conflict(f"Call {name} of turn {op.turn} cannot go back to 'intended'.")
    known = facts.calls.get((op.turn, name))
    if known is None:
        raise Conflict(f"Call {name} of turn {op.turn} was never intended, so it cannot be {state}.")
    if known.row.state is state:
        return None
    if known.row.state is not CallState.INTENDED:
        raise Fenced(f"Call {name} of turn {op.turn} is {known.row.state} already and cannot become {state}.")
    return known


def _close(facts: Facts, op: Close) -> None:
    session = _owned(facts, op.session, op.epoch)
    turn = _turn(facts, op.turn, op.session)
    if turn.row.state is TurnState.CLOSED and turn.row.exit != op.exit:
        raise Fenced(f"Turn {op.turn} ended already, with {turn.row.exit}; it cannot end with {op.exit} as well.")
    fresh = _fresh_rows(facts, turn, op.rows)
    if turn.row.state is TurnState.CLOSED:
        return
    _add_rows(facts, turn, op.epoch, fresh)
    turn.change(
        state=TurnState.CLOSED,
        exit=op.exit,
        closed_at=op.closed_at,
        input_tokens=op.input_tokens,
        output_tokens=op.output_tokens,
    )
    session.open_turn = None
    _seen(session, op.closed_at)
    facts.closed_turns.append(op.turn)
    for message in facts.taken.get(op.turn, ()):
        message.change(state=InboxState.DONE)
    for inbox_id in op.heard:
        heard = facts.inbox.get(inbox_id)
        if heard is not None and heard.row.state is InboxState.NEW:
            heard.change(state=InboxState.DONE)
            turn.change(people=askers(turn.row.people, [heard]))
    for row in op.troubles:
        named = replace(row, conversation=row.conversation or op.session)
        facts.added_troubles.append(AddedTrouble(op.turn, op.session, named))
    _deliver(facts, op.session, op.epoch, op.deliveries)


def _put_incident(facts: Facts, op: PutIncident, previous: Result) -> bool:
    incident = op.incident
    opened = facts.open_incidents.get(incident.fingerprint)
    mine = opened == incident.incident
    if incident.state is IncidentState.CLOSED and not mine:
        return previous is True  # somebody closed it before
    if incident.state is IncidentState.OPEN and opened is not None and not mine:
        return False
    facts.incidents[incident.incident] = incident
    changes = not mine or incident.state is IncidentState.CLOSED
    if incident.state is IncidentState.CLOSED:
        del facts.open_incidents[incident.fingerprint]
    else:
        facts.open_incidents[incident.fingerprint] = incident.incident
    return changes or previous is True


def _deliver(facts: Facts, session: str, epoch: int, rows: Sequence[DeliveryRow]) -> None:
    for row in rows:
        facts.deliveries[row.surface, row.origin, row.bubble, row.part] = AddedDelivery(session, epoch, row)


def _respond(facts: Facts, op: Respond) -> None:
    session = _owned(facts, op.session, op.epoch)
    message = facts.inbox.get(op.inbox_id)
    if op.inbox_id and (message is None or message.row.session != op.session):
        raise Conflict(f"There is no message {op.inbox_id} in session {op.session} to respond to.")
    if message is not None and message.row.state is InboxState.DONE:
        return
    if message is not None and message.row.state is not InboxState.NEW:
        raise Conflict(f"Message {op.inbox_id} is {message.row.state}; it cannot be responded to.")
    _schedule(facts, op.schedules)
    undone = facts.turns.get(op.change.undo) if op.change.undo is not None else None
    if undone is not None:
        undone.change(undone=True)
    if op.change.forget:
        session.change(since=session.last_number)
    if op.change.policy is not None:
        session.change(policy=op.change.policy)
    if op.change.place is not None:
        facts.pointed[op.change.place.place] = op.change.place.continues
    if message is not None:
        message.change(state=InboxState.DONE)
    _deliver(facts, op.session, op.epoch, op.deliveries)


def _schedule(facts: Facts, rows: Sequence[ScheduleRow]) -> None:
    """Make or change schedules. Raises Conflict, before anything is changed, if one is not as it was seen."""
    for row in rows:
        known = facts.schedules.get(row.schedule)
        if known != row and row.rev != (known.rev if known is not None else 0) + 1:
            raise Conflict(f"Schedule {row.schedule} was changed meanwhile, by somebody else or by an occurrence.")
    for row in rows:
        _put_schedule(facts, row)


def _put_schedule(facts: Facts, row: ScheduleRow) -> None:
    if facts.schedules.get(row.schedule) != row:
        facts.schedules[row.schedule] = row
        facts.schedules_put.add(row.schedule)


def _check_claim(facts: Facts, claim: Claimed) -> None:
    """An occurrence is claimed once: only of a schedule that is as it was seen, and only after all that were claimed."""
    name, due = claim.schedule.schedule, claim.occurrence.due_at
    known = facts.schedules.get(name)
    if known is None or known.state is not ScheduleState.ACTIVE or claim.schedule.rev != known.rev + 1:
        raise Conflict(f"Schedule {name} was changed meanwhile, or its occurrence of {due} is claimed already.")
    if due <= known.done_to or claim.schedule.done_to < claim.occurrence.last_at:
        raise Conflict(f"The occurrence of {due} of schedule {name} is claimed already.")


def _reword(facts: Facts, op: Reword) -> bool:
    message = facts.messages.get((op.account, op.platform_key))
    if message is None or message.row.state is not InboxState.NEW:
        return False
    _charge(facts, op.charges, op.at)
    message.change(body=op.body)
    return True


def _drop(facts: Facts, op: Drop) -> None:
    message = facts.inbox.get(op.inbox_id)
    if message is None:
        raise Conflict(f"There is no message {op.inbox_id} to drop.")
    if message.row.state is InboxState.DROPPED:
        return
    if message.row.state is not InboxState.NEW:
        raise Conflict(
            f"Message {op.inbox_id} is {message.row.state} (turn {message.row.turn}); only a new one can be dropped."
        )
    message.change(state=InboxState.DROPPED, reason=op.reason)


def _delete_memory(facts: Facts, op: DeleteMemory, previous: Result) -> bool:
    entry = (op.scope, op.kind, op.name)
    there = entry in facts.memory
    facts.memory.discard(entry)
    facts.memory_put.pop(entry, None)
    if there:
        facts.memory_gone.add(entry)
    return previous if isinstance(previous, bool) else there


def _reserve(facts: Facts, op: Reserve, previous: Result) -> Granted | BudgetRefused:
    _owned(facts, op.session, op.epoch)
    known = facts.reservations.get(op.call)
    if known is not None:
        if (known.session, known.held, known.pots) != (op.session, op.amount, _keys(op.pots)):
            raise Fenced(f"Something else is held for call {op.call} already. Reserve under a new id.")
        return Granted()
    if isinstance(previous, BudgetRefused):
        return previous
    refused = refusal([(pot, _level(facts, pot)) for pot in op.pots])
    if refused is not None:
        return refused
    for pot in op.pots:
        _put_level(facts, pot, _level(facts, pot).reserved(op.amount), op.at)
    facts.reservations[op.call] = ReservationFact(
        op.call, op.session, facts.node, _keys(op.pots), op.amount, None, estimated=False, at=op.at, new=True
    )
    return Granted()


def _settle(facts: Facts, op: Settle, previous: Result) -> Settled:
    _owned(facts, op.session, op.epoch)
    known = facts.reservations.get(op.call)
    if known is None or known.pots != _keys(op.pots):
        raise Conflict(f"Nothing is held for call {op.call} in these budgets.")
    if known.used is not None:
        if (known.used, known.estimated) != (op.used, op.estimated):
            raise Fenced(f"Call {op.call} is settled already, with another amount.")
        return previous if isinstance(previous, Settled) else Settled()
    warnings: list[Reached] = []
    for pot in op.pots:
        level = _level(facts, pot).settled(known.held, op.used, estimated=op.estimated)
        reached = warning(pot, level)
        if reached is not None:
            warnings.append(reached)
            level = replace(level, warned=True)
        _put_level(facts, pot, level, op.at)
    known.used, known.estimated, known.at, known.dirty = op.used, op.estimated, op.at, True
    return Settled(tuple(warnings))


def _charge(facts: Facts, charges: Sequence[Charge], at: int) -> None:
    """Count what is new in a message for its day. Raises `NoRoomToday`, and has counted nothing then.

    What adds nothing always has room. A file is new if it did not count for this person before, or not for long.
    """
    owed = [(charge, charge.amount + sum(file.size for file in _new_files(facts, charge, at))) for charge in charges]
    for charge, amount in owed:
        used = charge.already + _level(facts, charge).spent.tokens
        if charge.limit and amount and used + amount > charge.limit:
            raise NoRoomToday(charge.scope, used, charge.limit, amount)
    for charge, amount in owed:
        if amount and charge.counts:
            level = _level(facts, charge)
            level = replace(level, spent=level.spent + Amount(amount), calls=level.calls + 1)
            _put_level(facts, charge, level, at)
            for file in _new_files(facts, charge, at):
                known = facts.levels.get(file.key)
                if known is None:
                    facts.levels[file.key] = LevelFact(*file.key, 0, Level(Amount(file.size)), at, new=True)
                else:
                    known.at, known.dirty = at, True


def _new_files(facts: Facts, charge: Charge, at: int) -> list[BroughtFile]:
    known = {file.key: facts.levels.get(file.key) for file in charge.files}
    return [f for f in charge.files if (fact := known[f.key]) is None or at - fact.at > COUNTED_ONCE_MS]


def _keys(pots: Sequence[Pot]) -> tuple[tuple[str, int], ...]:
    return tuple(pot.key for pot in pots)


def _level(facts: Facts, pot: Pot | Charge) -> Level:
    known = facts.levels.get(pot.key)
    return known.level if known is not None else Level()


def _put_level(facts: Facts, pot: Pot | Charge, level: Level, at: int) -> None:
    known = facts.levels.get(pot.key)
    if known is None:
        facts.levels[pot.key] = LevelFact(pot.scope, pot.window, pot.until, level, at, new=True)
    else:
        known.level, known.at, known.dirty = level, at, True


def _session(facts: Facts, session: str) -> SessionFact:
    found = facts.sessions.get(session)
    if found is None:
        raise Conflict(f"There is no session {session}.")
    return found


def _owned(facts: Facts, session: str, epoch: int) -> SessionFact:
    found = _session(facts, session)
    if found.row.owner != facts.node or found.row.epoch != epoch:
        raise Fenced(
            f"Session {session} is owned by node {found.row.owner} under epoch {found.row.epoch}; "
            f"node {facts.node} with epoch {epoch} may not write for it any more."
        )
    return found


def _turn(facts: Facts, turn: str, session: str) -> TurnFact:
    found = facts.turns.get(turn)
    if found is None:
        raise Conflict(f"There is no turn {turn}; start it first.")
    if found.row.session != session:
        raise Conflict(f"Turn {turn} is of session {found.row.session}, not of {session}.")
    return found


def _fresh_rows(facts: Facts, turn: TurnFact, rows: Sequence[JournalRow]) -> list[JournalRow]:
    """The rows that are not stored yet. Raises Fenced if a stored one differs, Conflict at a hole or after the end."""
    fresh: list[JournalRow] = []
    for row in rows:
        if row.seq > turn.last_seq:
            expected = turn.last_seq + 1 + len(fresh)
            if row.seq != expected:
                raise Conflict(f"Row {row.seq} of turn {turn.row.turn} would leave a hole; the next row is {expected}.")
            fresh.append(row)
        elif facts.journal.get((turn.row.turn, row.seq)) != row:
            raise Fenced(
                f"Row {row.seq} of turn {turn.row.turn} is stored already, with other content: someone else wrote it."
            )
    if fresh and turn.row.state is TurnState.CLOSED:
        raise Conflict(f"Turn {turn.row.turn} is closed ({turn.row.exit}); nothing can be added to its journal.")
    return fresh


def _add_rows(facts: Facts, turn: TurnFact, epoch: int, rows: Sequence[JournalRow]) -> None:
    for row in rows:
        facts.added_rows.append(AddedRow(turn.row.turn, epoch, row))
        facts.journal[turn.row.turn, row.seq] = row
        turn.last_seq = row.seq


def _seen(session: SessionFact, at: int) -> None:
    if at - session.row.last_at >= LAST_AT_STEP_MS:
        session.change(last_at=at)
