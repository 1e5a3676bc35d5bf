"""The slices as transactions see them. Only PostgreSQL has any: a SQLite file has one node, which works on everything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Insert,
    Integer,
    Select,
    Text,
    bindparam,
    cast,
    column,
    exists,
    extract,
    func,
    literal,
    literal_column,
    select,
    table,
    text,
    union_all,
    update,
)

from agent_core.store import tables as t
from agent_core.store.batch.facts import GivenRow
from agent_core.store.database import direct
from agent_core.store.database.mapping import inserting
from agent_core.store.database.ownership import LIVES, LOCK_SPACE, Who
from agent_core.store.inbox.rows import CursorRow
from agent_core.store.slices.rows import ACCOUNT, ANYBODY, CHAT_SLICES, PeerNode, Right, single, slice_of


def divided(conn: Connection) -> bool:
    """Whether there are slices at all."""
    return conn.dialect.name == "postgresql"


def slice_in(key: Column[str], names: Iterable[str] | None) -> ColumnElement[bool]:
    """A condition on a key: its conversation is in one of these slices (see `slice_of`), or (None) of those that are the question's keys. On PostgreSQL
    alone."""
    chat = func.concat_ws("/", *(func.split_part(key, "/", place) for place in (1, 2, 3)))
    first = func.get_byte(func.decode(func.md5(func.convert_to(chat, "UTF8")), "hex"), 0)
    number = func.lpad(cast(func.mod(first, CHAT_SLICES), Text), 2, "0")
    name = literal("chats/", Text).concat(number)
    return name.in_(bindparam(direct.KEYS, expanding=True)) if names is None else name.in_(sorted(names))


PEERS = (
    select(t.nodes.c.node, t.nodes.c.address, t.nodes.c.version, t.nodes.c.started_at, t.nodes.c.serves)
    .where(t.nodes.c.ended_at.is_(None), LIVES)
    .order_by(t.nodes.c.node)
)
"""The nodes that live."""
_locks = table("pg_locks", column("objid"), column("pid"))
_beats = table("pg_stat_activity", column("pid"), column("state_change"))
_HELD = text(
    "pg_locks.locktype = 'advisory' AND pg_locks.granted AND pg_locks.objsubid = 1 AND pg_locks.classid = :class "
    "AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
).bindparams(bindparam("class", LOCK_SPACE >> 32, type_=BigInteger))
_RUNNING = (
    select(func.count())
    .select_from(t.turns.join(t.sessions, t.sessions.c.session == t.turns.c.session))
    .where(text("turns.state = 'open'"), t.sessions.c.owner == t.nodes.c.node)
    .correlate(t.nodes)
    .scalar_subquery()
)
NODES = (
    select(
        t.nodes.c.node,
        t.nodes.c.address,
        t.nodes.c.version,
        t.nodes.c.started_at,
        t.nodes.c.told,
        extract("epoch", func.clock_timestamp() - _beats.c.state_change),
        _RUNNING,
    )
    .select_from(
        t.nodes.join(_locks, cast(_locks.c.objid, BigInteger) == t.nodes.c.node).outerjoin(
            _beats, _beats.c.pid == _locks.c.pid
        )
    )
    .where(t.nodes.c.ended_at.is_(None), t.nodes.c.taken_by.is_(None), _HELD)
    .order_by(t.nodes.c.node)
)
"""The same, with what they tell, and how they do: a pulse's connection is asked something each second."""
OWNERS = select(t.slices.c.slice, t.slices.c.owner, t.slices.c.epoch).order_by(t.slices.c.slice)


def both(peers: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Who is there, and who works on what, in one question, as it is asked twice a second: the last column tells rows of `peers` (1) from those of slices."""
    there, one = peers.subquery().c, t.slices.c
    nodes: Select[*tuple[Any, ...]] = select(*there, literal_column("1", Integer).label("there"))
    told: list[Any] = [
        one.owner,
        one.slice,
        literal("", Text),
        one.epoch,
        literal("", Text),
        literal_column("0", Integer),
    ]
    owned: Select[*tuple[Any, ...]] = select(*told)
    return select(union_all(nodes, owned).subquery())


DIVISION = both(PEERS)


def put_cursors(conn: Connection, rows: Sequence[GivenRow[CursorRow]], node: int) -> None:
    """Store how far channels are read, each `under` the slices of who has read it: if none of them is this node's any more under that epoch, nothing is
    moved, because whoever is late would move it back. What is read under no slice (a platform calls any gateway) moves nothing of an account whose
    connection another node has.

    On PostgreSQL the slice is held while that is decided: it changes hands before or after.
    """
    if not divided(conn):
        t.CURSOR.put(conn, [t.CURSOR.values(one.row) for one in rows])
        return
    for tenured in (True, False):
        wanted = [one for one in rows if (one.more.get("under") is not None) is tenured]
        if wanted:
            values = [
                {
                    **t.CURSOR.values(one.row),
                    "by_node": node,
                    **({"held": _listed(one.more["under"])} if tenured else {}),
                }
                for one in wanted
            ]
            direct.do(conn, _cursors(tenured), values)


def _listed(under: object) -> str:
    """Slices in one word: a list of the database's own cannot be given to a batch that goes there in one way."""
    return orjson.dumps(under).decode()


@cache
def _cursors(tenured: bool) -> Insert:
    said = {name: bindparam(name, type_=Text) for name in ("account", "channel", "last_seen")}
    one = select(literal(1)).select_from(t.slices)
    if tenured:
        name = t.slices.c.slice.concat("@").concat(cast(t.slices.c.epoch, Text))
        held = select(func.json_array_elements_text(cast(bindparam("held", type_=Text), JSON)))
        mine = one.where(t.slices.c.owner == bindparam("by_node"), name.in_(held))
        may = exists(mine.with_for_update(read=True, of=t.slices))
    else:
        base = literal(ACCOUNT, Text).concat(said["account"])
        may = ~exists(one.where(t.slices.c.slice == base, t.slices.c.owner != bindparam("by_node")))
    made = inserting(t.cursors, "postgresql").from_select([*said], select(*said.values()).where(may))
    return made.on_conflict_do_update(
        index_elements=["account", "channel"], set_={"last_seen": made.excluded.last_seen}
    )


def nobody_shares(conn: Connection) -> None:
    """The one gateway of a database has everything: what several had is nobody's any more."""
    conn.execute(update(t.slices).where(t.slices.c.owner.is_not(None)).values(owner=None))


def peer(row: tuple[int, str, str, int, str]) -> PeerNode:
    """A row of `PEERS`. One that makes no sense of what it serves says nothing of it, and keeps nobody from sharing with the others."""
    try:
        serves = frozenset(str(one) for one in orjson.loads(row[4])) if row[4] else None
    except (ValueError, TypeError):
        serves = None
    return PeerNode(int(row[0]), str(row[1]), str(row[2]), int(row[3]), serves)


def rights(conn: Connection, who: Who, keys: Iterable[str]) -> Mapping[str, Right]:
    """Who may take the conversations with these keys, as of this transaction."""
    wanted = {key: slice_of(key) for key in keys if not single(key)}
    if not wanted or not divided(conn):
        return {}
    found = conn.execute(OWNERS.where(t.slices.c.slice.in_(sorted(set(wanted.values())))))
    owners = {str(name): owner for name, owner, _ in found.all() if owner is not None}
    others = {owner for owner in owners.values() if owner != who.node}
    dead = who.dead(conn, others) if others else frozenset[int]()
    return {key: _right(owners.get(name), who.node, dead) for key, name in wanted.items()}


def _right(owner: int | None, node: int, dead: frozenset[int]) -> Right:
    if owner == node:
        return Right(ours=True)
    return ANYBODY if owner is None or owner in dead else Right(other=owner)
