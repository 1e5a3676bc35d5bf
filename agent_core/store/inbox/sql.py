"""Messages of a batch, read and written.

What became of a message that a turn has taken stands with the turn: whoever reads the one looks at the other. So the end of a turn does not
write its messages again. (Those of earlier versions have it written; that means the same.)
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Connection, and_, bindparam, case, cast, func, select, text, update

from agent_core.records import changed
from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts, InboxFact, Needs
from agent_core.store.database import direct
from agent_core.store.database.keys import among, padded
from agent_core.store.database.mapping import Fact, inserting
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.turns.rows import TurnState

_over = and_(t.inbox.c.state == InboxState.TAKEN.value, t.turns.c.state == TurnState.CLOSED.value)
_state = case((_over, InboxState.DONE.value), else_=t.inbox.c.state)
MESSAGES = select(
    *(_state.label("state") if name == "state" else t.inbox.c[name] for name in t.MESSAGE.names)
).select_from(t.inbox.outerjoin(t.turns, t.turns.c.turn == t.inbox.c.turn))
"""All messages."""
OF_TURN = and_(
    t.inbox.c.session == t.turns.c.session,
    t.inbox.c.id >= t.turns.c.first_message,
    t.inbox.c.id <= t.turns.c.last_message,
    t.inbox.c.turn == t.turns.c.turn,
)
"""A message and the turn that began with it."""
BY_ID = (
    MESSAGES.where(t.inbox.c.id.in_(bindparam("keys", expanding=True)))
    .order_by(t.inbox.c.id)
    .with_for_update(key_share=True, of=t.inbox)
)
BY_KEY = MESSAGES.where(among((t.inbox.c.account, t.inbox.c.platform_key), bindparam("keys", expanding=True)))
HIGHEST_ID = select(func.coalesce(func.max(t.inbox.c.id), 0))
NEXT_IDS = text(
    "SELECT nextval(CAST(pg_get_serial_sequence('inbox', 'id') AS regclass)) FROM generate_series(1, :count)"
)
"""On PostgreSQL. In its own words: those of SQLAlchemy's would load its dialect for everybody."""


def load(conn: Connection, wanted: Needs, facts: Facts) -> None:
    """Messages by their numbers and by their platforms' keys, and numbers for those that are new."""
    by_id = ((BY_ID, list(keys)) for keys in padded(sorted(wanted.inbox)))
    named = wanted.rewordings if wanted.trusting else wanted.messages | wanted.rewordings
    by_key = ((BY_KEY, list(keys)) for keys in padded(named))
    for statement, keys in (*by_id, *by_key):
        for row in direct.found(conn, statement, keys):
            found = t.MESSAGE.make(row)
            fact = facts.inbox.get(found.id) or Fact(found, found)
            facts.inbox[found.id] = facts.messages[found.account, found.platform_key] = fact
    for fact in facts.inbox.values():
        if fact.row.turn is not None:
            facts.taken.setdefault(fact.row.turn, []).append(fact)
    facts.free_ids = _free_ids(conn, sum(key not in facts.messages for key in wanted.messages), facts.highest_message)


def _free_ids(conn: Connection, count: int, highest: int | None) -> list[int]:
    """`count` unused numbers, the lowest last. On SQLite the one writer counts on; PostgreSQL's sequence serves all nodes."""
    if count == 0:
        return []
    if conn.dialect.name == "sqlite":
        highest = int(direct.found(conn, HIGHEST_ID)[0][0]) if highest is None else highest
        return list(range(highest + count, highest, -1))
    other = direct.elsewhere(conn)
    found = other.numbers(count) if other is not None else conn.execute(NEXT_IDS, {"count": count}).scalars()
    return sorted(found, reverse=True)


def store(conn: Connection, facts: Facts) -> None:
    """Messages that are new or other."""
    if facts.inbox:
        facts.new_message = max((number for number, fact in facts.inbox.items() if fact.new), default=None)
        written = [InboxFact(_stored(fact.row), fact.stored and _stored(fact.stored)) for fact in facts.inbox.values()]
        t.MESSAGE.add_new(conn, written)
        t.MESSAGE.store_changed(conn, written)


def _stored(row: InboxRow) -> InboxRow:
    """A message without what its turn tells."""
    told_by_turn = row.state is InboxState.DONE and row.turn is not None
    return changed(row, state=InboxState.TAKEN) if told_by_turn else row


_DATABASE_MS = select(cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger))


def reserve(account: str, channel: str, every_ms: int, now: int, conn: Connection) -> int:
    """0: it is ours, and nobody else's for `every_ms`; else for how many ms it is somebody's still. By the clock of the database, where several ask;
    `now` is ours."""
    mine = (t.cursors.c.account == account) & (t.cursors.c.channel == channel)
    dialect = conn.dialect.name
    first = inserting(t.cursors, dialect).values(account=account, channel=channel, last_seen="0")
    conn.execute(first.on_conflict_do_nothing(index_elements=["account", "channel"]))
    stored = int(conn.execute(select(t.cursors.c.last_seen).where(mine).with_for_update()).scalar_one())
    if dialect == "postgresql":
        now = conn.execute(_DATABASE_MS).scalar_one()
    if now < stored <= now + every_ms:  # what is later, an hour put back has left
        return stored - now
    conn.execute(update(t.cursors).where(mine).values(last_seen=str(now + every_ms)))
    return 0
