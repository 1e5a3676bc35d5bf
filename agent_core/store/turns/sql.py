"""Turns, their journals and their calls of a batch, read and written."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, func, select

from agent_core.records import changed
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, Needs, TurnFact
from agent_core.store.database import direct
from agent_core.store.database.keys import among, padded
from agent_core.store.database.mapping import Fact
from agent_core.store.inbox.sql import OF_TURN
from agent_core.store.turns.rows import timed

_last_row = select(t.journal.c.seq).where(t.rows_of_turn()).order_by(t.journal.c.id.desc()).limit(1)
_last_seq = func.coalesce(_last_row.correlate(t.turns).scalar_subquery(), -1)
TURNS = t.TURN.query.add_columns(_last_seq).where(t.turns.c.turn.in_(bindparam("keys", expanding=True)))
_CALLS = t.CALL.query.where(among((t.tool_calls.c.turn, t.tool_calls.c.call), bindparam("keys", expanding=True)))
_JOURNAL = t.EVENT.query.add_columns(t.journal.c.id).where(t.journal.c.id.in_(bindparam("keys", expanding=True)))
_INPUTS = (
    select(t.turns.c.turn, t.inbox.c.id)
    .select_from(t.turns.join(t.inbox, OF_TURN))
    .where(t.turns.c.turn.in_(bindparam("keys", expanding=True)))
)


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Turns and calls; of journals and inputs only what is stored and is brought again: only that needs its content compared."""
    for keys in padded(wanted.turns):
        for row in direct.found(conn, TURNS, keys):
            found = t.TURN.make(row)
            facts.turns[found.turn] = TurnFact(found, found, row[-1])
    for keys in padded(wanted.calls):
        for row in direct.found(conn, _CALLS, keys):
            call = t.CALL.make(row)
            facts.calls[call.turn, call.call] = Fact(call, call)
    again = {
        t.row_id(facts.turns[turn].row.first_message, seq): turn
        for turn, seq in wanted.rows
        if turn in facts.turns and seq <= facts.turns[turn].last_seq
    }
    if again:
        _load_again(conn, again, facts)
    if wanted.starts:
        _load_inputs(conn, wanted.starts & facts.turns.keys(), facts)


def _load_again(conn: Connection, again: Mapping[int, str], facts: Facts) -> None:
    for keys in padded(again):
        for row in direct.found(conn, _JOURNAL, keys):
            event = t.EVENT.make(row)
            facts.journal[again[row[-1]], event.seq] = changed(event, body=timed(event.body, event.at))


def _load_inputs(conn: Connection, started: set[str], facts: Facts) -> None:
    inputs: dict[str, set[int]] = {turn: set() for turn in started}
    for keys in padded(started):
        for row in direct.found(conn, _INPUTS, keys):
            inputs[row[0]].add(row[1])
    facts.inputs.update((turn, frozenset(ids)) for turn, ids in inputs.items())


def store(conn: Connection, facts: Facts) -> None:
    """What is new or other; a turn is closed before the next one opens."""
    if facts.turns:
        t.TURN.store_changed(conn, facts.turns.values())
        t.TURN.add_new(conn, facts.turns.values())
    if facts.calls:
        t.CALL.add_new(conn, facts.calls.values())
        t.CALL.store_changed(conn, facts.calls.values())
