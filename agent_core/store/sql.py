"""Reads the facts of a batch and writes what became of them: a fixed number of statements, however many operations there are.

The functions take a synchronous SQLAlchemy `Connection` inside a transaction; on SQLite it is the writer's own, on PostgreSQL
asyncpg behind `AsyncConnection.run_sync`. Session rows are locked in the order of their keys, so that two writers on
PostgreSQL do not deadlock; SQLite has one writer and ignores the locking clauses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal_column,
    not_,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from agent_core.store import tables as t
from agent_core.store.budgets import writes as sqlbudgets
from agent_core.store.database.keys import among, padded
from agent_core.store.database.mapping import Mapped
from agent_core.store.database.ownership import Who
from agent_core.store.deliveries.rows import DeliveryState
from agent_core.store.facts import Fact, Facts, Needs, SessionFact, TurnFact
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping import pieces
from agent_core.store.turns.rows import FORGOTTEN, JournalRow

R = TypeVar("R")
_open_turn = (
    select(t.turns.c.turn)
    .where(t.turns.c.session == t.sessions.c.session, t.turns.c.state == literal_column("'open'"))
    .scalar_subquery()
)
_last_number = (
    select(func.coalesce(func.max(t.turns.c.number), 0))
    .where(t.turns.c.session == t.sessions.c.session)
    .scalar_subquery()
)
_last_seq = (
    select(func.coalesce(func.max(t.journal.c.seq), -1)).where(t.journal.c.turn == t.turns.c.turn).scalar_subquery()
)
SESSION = t.SESSION.query.add_columns(_last_number, _open_turn)
TURN = t.TURN.query.add_columns(_last_seq)
INBOX = t.MESSAGE.query.add_columns(t.turn_inputs.c.turn).select_from(
    t.inbox.outerjoin(t.turn_inputs, t.turn_inputs.c.inbox == t.inbox.c.id)
)

_SESSIONS_BY_ID = (
    SESSION.where(t.sessions.c.session.in_(bindparam("keys", expanding=True)))
    .order_by(t.sessions.c.session)
    .with_for_update(key_share=True, of=t.sessions)
)
_SESSIONS_BY_KEY = SESSION.where(t.sessions.c.key.in_(bindparam("keys", expanding=True)))
_TURNS_BY_ID = TURN.where(t.turns.c.turn.in_(bindparam("keys", expanding=True)))
_INBOX_BY_ID = (
    INBOX.where(t.inbox.c.id.in_(bindparam("keys", expanding=True)))
    .order_by(t.inbox.c.id)
    .with_for_update(key_share=True, of=t.inbox)
)
_INBOX_BY_KEY = INBOX.where(among((t.inbox.c.account, t.inbox.c.platform_key), bindparam("keys", expanding=True)))
_CALLS = t.CALL.query.where(among((t.tool_calls.c.turn, t.tool_calls.c.call), bindparam("keys", expanding=True)))
_MEMORY = select(t.memory.c.scope, t.memory.c.kind, t.memory.c.name).where(
    among((t.memory.c.scope, t.memory.c.kind, t.memory.c.name), bindparam("keys", expanding=True))
)
_SCHEDULES = (
    t.SCHEDULE.query.where(t.schedules.c.schedule.in_(bindparam("keys", expanding=True)))
    .order_by(t.schedules.c.schedule)
    .with_for_update()
)
_JOURNAL = select(t.journal.c.turn, t.journal.c.seq, t.journal.c.kind, t.journal.c.body, t.journal.c.at).where(
    among((t.journal.c.turn, t.journal.c.seq), bindparam("keys", expanding=True))
)
_INPUTS = select(t.turn_inputs.c.turn, t.turn_inputs.c.inbox).where(
    t.turn_inputs.c.turn.in_(bindparam("keys", expanding=True))
)
_OPEN_INCIDENTS = select(t.incidents.c.fingerprint, t.incidents.c.incident).where(
    t.incidents.c.state == literal_column("'open'"),
    t.incidents.c.fingerprint.in_(bindparam("keys", expanding=True)),
)
_HIGHEST_ID = select(func.coalesce(func.max(t.inbox.c.id), 0))
_NEXT_IDS = select(func.nextval(cast(func.pg_get_serial_sequence("inbox", "id"), postgresql.REGCLASS))).select_from(
    func.generate_series(1, bindparam("count", type_=BigInteger))
)


def load(conn: Connection, wanted: Needs, who: Who) -> Facts:
    """Read every row that `wanted` names."""
    facts = Facts(who.node)
    _load_sessions(conn, wanted, facts)
    for keys in padded(wanted.turns):
        for row in conn.execute(_TURNS_BY_ID, {"keys": keys}):
            found = t.TURN.make(row)
            turn = TurnFact(found, found, row[-1])
            facts.turns[found.turn] = turn
    _load_inbox(conn, wanted, facts)
    for keys in padded(wanted.calls):
        for row in conn.execute(_CALLS, {"keys": keys}):
            call = t.CALL.make(row)
            facts.calls[call.turn, call.call] = Fact(call, call)
    for keys in padded(wanted.memory):
        facts.memory.update((row[0], row[1], row[2]) for row in conn.execute(_MEMORY, {"keys": keys}))
    for keys in padded(wanted.incidents):
        facts.open_incidents.update((row[0], row[1]) for row in conn.execute(_OPEN_INCIDENTS, {"keys": keys}))
    for keys in padded(sorted(wanted.schedules)):
        facts.schedules.update((row[0], t.SCHEDULE.make(row)) for row in conn.execute(_SCHEDULES, {"keys": keys}))
    _load_repeated(conn, wanted, facts)
    sqlbudgets.load(conn, wanted, facts)
    facts.dead = _dead_owners(conn, wanted, facts, who)
    facts.free_ids = _free_ids(conn, sum(key not in facts.messages for key in wanted.messages))
    return facts


def _load_sessions(conn: Connection, wanted: Needs, facts: Facts) -> None:
    for statement, names in ((_SESSIONS_BY_ID, sorted(wanted.sessions)), (_SESSIONS_BY_KEY, wanted.session_keys)):
        for keys in padded(names):
            for row in conn.execute(statement, {"keys": keys}):
                # A session found both by its id and by its key must be one record.
                found = t.SESSION.make(row)
                fact = facts.sessions.get(found.session) or SessionFact(found, found, row[-2], row[-1])
                facts.sessions[found.session] = facts.sessions_by_key[found.key] = fact


def _load_inbox(conn: Connection, wanted: Needs, facts: Facts) -> None:
    by_id = ((_INBOX_BY_ID, list(keys)) for keys in padded(sorted(wanted.inbox)))
    by_key = ((_INBOX_BY_KEY, list(keys)) for keys in padded(wanted.messages | wanted.rewordings))
    for statement, keys in (*by_id, *by_key):
        for row in conn.execute(statement, {"keys": keys}):
            found = t.MESSAGE.make(row)
            fact = facts.inbox.get(found.id) or Fact(found, found)
            facts.inbox[found.id] = facts.messages[found.account, found.platform_key] = fact
    for fact in facts.inbox.values():
        if fact.row.turn is not None:
            facts.taken.setdefault(fact.row.turn, []).append(fact)


def _load_repeated(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Rows that are stored and are brought again: only these need their content compared."""
    again = {key for key in wanted.rows if key[0] in facts.turns and key[1] <= facts.turns[key[0]].last_seq}
    for keys in padded(again):
        for row in conn.execute(_JOURNAL, {"keys": keys}):
            facts.journal[row[0], row[1]] = JournalRow(row[1], row[2], bytes(row[3]), row[4])
    started = wanted.starts & facts.turns.keys()
    inputs: dict[str, set[int]] = {turn: set() for turn in started}
    for keys in padded(started):
        for row in conn.execute(_INPUTS, {"keys": keys}):
            inputs[row[0]].add(row[1])
    facts.inputs.update((turn, frozenset(ids)) for turn, ids in inputs.items())


def _dead_owners(conn: Connection, wanted: Needs, facts: Facts, who: Who) -> frozenset[int]:
    claimed = (facts.sessions[session] for session in wanted.claims if session in facts.sessions)
    owners = {fact.row.owner for fact in claimed if fact.row.owner is not None and fact.row.owner != who.node}
    return who.dead(conn, owners) if owners else frozenset()


def _free_ids(conn: Connection, count: int) -> list[int]:
    """`count` unused inbox ids, the lowest last. On SQLite the one writer counts on; PostgreSQL's sequence serves all nodes."""
    if count == 0:
        return []
    if conn.dialect.name == "sqlite":
        highest = conn.execute(_HIGHEST_ID).scalar_one()
        return list(range(highest + count, highest, -1))
    return sorted(conn.execute(_NEXT_IDS, {"count": count}).scalars(), reverse=True)


_INBOX_DONE = (
    update(t.inbox)
    .where(t.inbox.c.id.in_(select(t.turn_inputs.c.inbox).where(t.turn_inputs.c.turn == bindparam("which"))))
    .values(state=InboxState.DONE.value)
)
_NEW_INPUT = insert(t.turn_inputs)
_MEMORY_GONE = delete(t.memory).where(
    t.memory.c.scope == bindparam("which_scope"),
    t.memory.c.kind == bindparam("which_kind"),
    t.memory.c.name == bindparam("which_name"),
)
_TOUCH = (
    update(t.nodes)
    .where(t.nodes.c.node == bindparam("which"))
    .values(started_at=t.nodes.c.started_at + 1 - 2 * (t.nodes.c.started_at % 2))
)
"""Flips the last bit of a millisecond: SQLite writes no page whose content stays the same, so such a write would prove nothing."""


_POINTED = (
    update(t.places)
    .where(t.places.c.place == bindparam("which"))
    .values(continues=bindparam("new_continues", type_=Text))
)
_other = t.places.alias("other")


def _is_theirs(table: Any) -> ColumnElement[bool]:
    return and_(table.c.account == bindparam("which_account"), table.c.person == bindparam("which_person"))


_LINK_GONE = delete(t.links).where(_is_theirs(t.links))
_CODES_GONE = delete(t.link_codes).where(_is_theirs(t.link_codes), t.link_codes.c.redeemed.is_(None))
_theirs = select(_other.c.place).where(_is_theirs(_other))
_PLACES_PARTED = (
    update(t.places)
    .where(
        t.places.c.continues.is_not(None),
        or_(
            and_(_is_theirs(t.places), t.places.c.continues.not_in(_theirs)),
            and_(not_(_is_theirs(t.places)), t.places.c.continues.in_(_theirs)),
        ),
    )
    .values(continues=None)
)
"""Nothing goes on across the border between an account and the others."""

_DELIVERY_KEY = ("surface", "origin", "bubble", "part")
_GIVEN = [t.deliveries.c[name] for name in (*t.PART.names, "session", "epoch")]
_PART = select(*(bindparam(column.name, type_=column.type) for column in _GIVEN)).where(
    ~exists().where(
        t.turns.c.turn == bindparam("origin", type_=t.deliveries.c.origin.type), t.turns.c.removed == FORGOTTEN
    )
)
"""A part, but none of a turn that is forgotten: its surface may still take back what it showed, and would store their words again."""


def _upserts(dialect: Any) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """The same upserts for either dialect's module: cursors, memory, schedules, places, deliveries, gates, people."""
    cursor = dialect.insert(t.cursors)
    memory = dialect.insert(t.memory)
    part = dialect.insert(t.deliveries).from_select(_GIVEN, _PART, include_defaults=False)
    gate = dialect.insert(t.gates)
    person = dialect.insert(t.people)
    schedule = dialect.insert(t.schedules)
    fixed = {*_DELIVERY_KEY, "id", "session", "suspicion"}
    whole = {column.name: part.excluded[column.name] for column in t.deliveries.c if column.name not in fixed}
    # What is there is no suspect any more.
    whole["suspicion"] = case((part.excluded.state == DeliveryState.SENT.value, 0), else_=t.deliveries.c.suspicion)
    return (
        cursor.on_conflict_do_update(
            index_elements=["account", "channel"], set_={"last_seen": cursor.excluded.last_seen}
        ),
        memory.on_conflict_do_update(
            index_elements=["scope", "kind", "name"],
            set_={"value": memory.excluded.value, "at": memory.excluded.at},
        ),
        schedule.on_conflict_do_update(
            index_elements=["schedule"],
            set_={c.name: schedule.excluded[c.name] for c in t.schedules.c if c.name != "schedule"},
        ),
        dialect.insert(t.places).on_conflict_do_nothing(index_elements=["place"]),
        part.on_conflict_do_update(index_elements=list(_DELIVERY_KEY), set_=whole),
        gate.on_conflict_do_update(
            index_elements=["account", "bucket"],
            set_={name: gate.excluded[name] for name in ("not_before", "reason", "at")},
        ),
        person.on_conflict_do_update(
            index_elements=["account", "person"],
            set_={c.name: person.excluded[c.name] for c in t.people.c if c.name not in ("account", "person")},
        ),
    )


_UPSERTS = {"sqlite": _upserts(sqlite), "postgresql": _upserts(postgresql)}


def _upsert_incident(dialect: Any) -> Any:
    made = dialect.insert(t.incidents)
    changed = {c.name: made.excluded[c.name] for c in t.incidents.c if c.name != "incident"}
    return made.on_conflict_do_update(index_elements=["incident"], set_=changed)


_UPSERT_INCIDENT = {"sqlite": _upsert_incident(sqlite), "postgresql": _upsert_incident(postgresql)}
_NEW_AUDIT = {
    name: dialect.insert(t.audit).on_conflict_do_nothing(index_elements=["audit"])
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}


def store(conn: Connection, facts: Facts) -> None:
    """Write what is new or dirty. The order satisfies foreign keys, and lets a turn close before the next one opens."""
    upsert_cursor, upsert_memory, *_ = _UPSERTS[conn.dialect.name]
    _store_pieces(conn, facts)
    _store_sessions_and_turns(conn, facts)
    _store_inbox(conn, facts)
    rows = [t.EVENT.values(one.row, turn=one.turn, epoch=one.epoch) for one in facts.added_rows]
    _many(conn, t.EVENT.insert, rows)
    _store_calls(conn, facts)
    _store_delivery(conn, facts)
    _store_troubles(conn, facts)
    _store_schedules(conn, facts)
    _many(conn, upsert_cursor, [{"account": a, "channel": c, "last_seen": s} for (a, c), s in facts.cursors.items()])
    _many(
        conn,
        _MEMORY_GONE,
        [dict(zip(("which_scope", "which_kind", "which_name"), k, strict=True)) for k in facts.memory_gone],
    )
    _many(
        conn,
        upsert_memory,
        [
            {"scope": scope, "kind": kind, "name": name, "value": value, "at": at}
            for (scope, kind, name), (value, at) in facts.memory_put.items()
        ],
    )
    sqlbudgets.store(conn, facts)
    if facts.touched:
        conn.execute(_TOUCH, {"which": facts.node})


def _store_pieces(conn: Connection, facts: Facts) -> None:
    """What the bodies need that this batch adds; what is worded anew gives up what it needed before."""
    reworded = [m for m in facts.inbox.values() if m.stored is not None and m.stored.body != m.row.body]
    if reworded:
        pieces.release(conn, [m.stored.body for m in reworded if m.stored is not None])
    if facts.offered:
        told = [*(m.row for m in facts.inbox.values() if m.new), *(m.row for m in reworded)]
        bodies = [*(added.row.body for added in facts.added_rows), *(m.body for m in told)]
        at = max([*(added.row.at for added in facts.added_rows), *(m.received_at for m in told)], default=0)
        pieces.add(conn, facts.offered, bodies, at)


def _store_sessions_and_turns(conn: Connection, facts: Facts) -> None:
    _new(conn, t.SESSION, facts.sessions.values())
    _changed(conn, t.SESSION, facts.sessions.values())
    _changed(conn, t.TURN, facts.turns.values())  # closed before the next one opens
    _new(conn, t.TURN, facts.turns.values())


def _new(conn: Connection, mapped: Mapped[R], found: Iterable[Fact[R]]) -> None:
    _many(conn, mapped.insert, [mapped.values(fact.row) for fact in found if fact.stored is None])


def _changed(conn: Connection, mapped: Mapped[R], found: Iterable[Fact[R]]) -> None:
    """Writes the columns that differ in any of the rows; what did not change in one of these is written as it was read."""
    pairs = [(fact.stored, fact.row) for fact in found if fact.stored is not None and fact.stored != fact.row]
    names = mapped.differing(pairs)
    if names:
        rows = [mapped.change(row, names) for _, row in pairs]
        conn.execute(mapped.update(names), rows)


def _store_delivery(conn: Connection, facts: Facts) -> None:
    *_, new_place, upsert_part, upsert_gate, upsert_person = _UPSERTS[conn.dialect.name]
    parts = [t.PART.values(one.row, session=one.session, epoch=one.epoch) for one in facts.deliveries.values()]
    _many(conn, upsert_part, parts)
    _many(conn, upsert_gate, [t.GATE.values(gate) for gate in facts.gates.values()])
    _many(conn, upsert_person, [t.PERSON.values(person) for person in facts.people.values()])
    _many(conn, new_place, [t.PLACE.values(place) for place in facts.places])
    _many(conn, _NEW_AUDIT[conn.dialect.name], [t.AUDIT.values(entry) for entry in facts.audits])
    _many(conn, _POINTED, [{"which": place, "new_continues": other} for place, other in facts.pointed.items()])
    parted: list[dict[str, object]] = [
        {"which_account": account, "which_person": person} for account, person in sorted(facts.unlinked)
    ]
    for statement in (_LINK_GONE, _CODES_GONE, _PLACES_PARTED):
        _many(conn, statement, parted)


def _store_troubles(conn: Connection, facts: Facts) -> None:
    troubles = [t.TROUBLE.values(one.row, turn=one.turn, session=one.session) for one in facts.added_troubles]
    _many(conn, t.TROUBLE.insert, troubles)
    upsert = _UPSERT_INCIDENT[conn.dialect.name]
    _many(conn, upsert, [t.INCIDENT.values(one) for one in facts.incidents.values()])


def _store_schedules(conn: Connection, facts: Facts) -> None:
    upsert = _UPSERTS[conn.dialect.name][2]
    put = [facts.schedules[name] for name in sorted(facts.schedules_put)]
    _many(conn, upsert, [t.SCHEDULE.values(row) for row in put])
    _many(conn, t.OCCURRENCE.insert, [t.OCCURRENCE.values(row) for row in facts.occurrences])


def _store_inbox(conn: Connection, facts: Facts) -> None:
    _new(conn, t.MESSAGE, facts.inbox.values())
    _changed(conn, t.MESSAGE, facts.inbox.values())
    _many(conn, _NEW_INPUT, [{"inbox": inbox_id, "turn": turn} for inbox_id, turn in facts.added_inputs])
    _many(conn, _INBOX_DONE, [{"which": turn} for turn in facts.closed_turns])


def _store_calls(conn: Connection, facts: Facts) -> None:
    _new(conn, t.CALL, facts.calls.values())
    _changed(conn, t.CALL, facts.calls.values())


def _many(conn: Connection, statement: Any, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        conn.execute(statement, rows)
