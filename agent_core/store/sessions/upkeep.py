"""The transactions that stand alone: a node's arrival, taking over what a dead node left, a chat that moves, a session that is made empty.

Each returns a body for `Writer.alone`, and each body is repeatable: if its commit's answer was lost, running it again finds its
own work and gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.database import direct
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.sessions.rows import NodeRow
from agent_core.store.turns.rows import JournalRow

MakeRow: TypeAlias = Callable[[str, int, int], JournalRow]
"""(turn, seq, epoch) -> the row that says that the turn was taken over; its `seq` must be the one given."""

OF_CONVERSATION = "session/"
"""What stands before a conversation's key in the scope of what is kept for it alone: which consents count no more there, for example."""
_NODE = select(t.nodes.c.node).where(t.nodes.c.name.in_(bindparam("keys", expanding=True)))
_a = t.adapter_states.c
_SAME_MOMENT = select(_a.at).where(
    _a.account == bindparam("account", "", _a.account.type), _a.at == bindparam("at", 0, _a.at.type)
)


def boot_id() -> str:
    """The machine's id of this boot, where the system tells one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A node as it registers itself; `name` is unique, so that registering twice makes one row."""

    name: str
    started_at: int
    version: str


def register(conn: Connection, arrival: Arrival) -> int:
    """The number of the node, which is new at every start."""
    known = [arrival.name]
    found = direct.found(conn, _NODE, known)
    if not found:
        values = t.NODE.values(NodeRow(0, arrival.name, arrival.started_at, arrival.version, boot_id()))
        del values["node"]  # the database numbers them
        direct.do(conn, t.NODE.insert, [values])
        found = direct.found(conn, _NODE, known)
    return int(found[0][0])


def note_adapter(row: AdapterStateRow) -> Callable[[Connection], None]:
    """An adapter is doing otherwise from a time on."""

    def body(conn: Connection) -> None:
        if not direct.found(conn, _SAME_MOMENT, named={"account": row.account, "at": row.at}):
            t.ADAPTER_STATE.add(conn, [t.ADAPTER_STATE.values(row)])

    return body


def move_chat(account: str, old: str, new: str) -> Callable[[Connection], list[str]]:
    """A platform gave a chat another id: what is stored under the old one goes on under the new one. The keys of the sessions there."""

    def body(conn: Connection) -> list[str]:
        for table, column, head in (
            (t.sessions, t.sessions.c.key, ""),
            (t.deliveries, t.deliveries.c.surface, ""),
            (t.schedules, t.schedules.c.session_key, ""),
            (t.schedules, t.schedules.c.surface, ""),
            (t.memory, t.memory.c.scope, ""),
            (t.memory, t.memory.c.scope, OF_CONVERSATION),
        ):
            before = f"{head}{account}{old}/"
            matches = column.startswith(before, autoescape=True)
            renamed = literal(f"{head}{account}{new}/", Text).concat(func.substr(column, len(before) + 1))
            taken = select(column).where(column.startswith(f"{head}{account}{new}/", autoescape=True))
            known = {str(value) for value in conn.execute(taken).scalars()}
            if table is t.sessions and known:
                continue  # somebody has spoken in the new chat already; that conversation goes on
            if table is t.deliveries:
                _leave_doubles(conn, matches, renamed)
            if table is t.memory:
                _leave_replaced(conn, matches, renamed)
            values: dict[str, Any] = {column.name: renamed}
            if table is t.schedules:  # whoever saw it under the old name must look again
                values["rev"] = t.schedules.c.rev + 1
            conn.execute(update(table).where(matches).values(values))
        here = t.sessions.c.key.startswith(f"{account}{new}/", autoescape=True)
        return [str(key) for key in conn.execute(select(t.sessions.c.key).where(here)).scalars()]

    return body


def _leave_doubles(conn: Connection, matches: ColumnElement[bool], renamed: ColumnElement[str]) -> None:
    """What stands where the chat is now counts: the same part under the old id was wanted after a restart, and never shown there."""
    here, there = t.deliveries.c, t.deliveries.alias().c
    same = (there.origin == here.origin) & (there.bubble == here.bubble) & (there.part == here.part)
    conn.execute(delete(t.deliveries).where(matches, exists().where(there.surface == renamed, same)))


def _leave_replaced(conn: Connection, matches: ColumnElement[bool], renamed: ColumnElement[str]) -> None:
    """What was kept since under the same name in the chat that is has replaced it."""
    here, there = t.memory.c, t.memory.alias().c
    same = (there.kind == here.kind) & (there.name == here.name)
    conn.execute(delete(t.memory).where(matches, exists().where(there.scope == renamed, same)))


def make(session: str, key: str, policy: str, at: int, node: int) -> Callable[[Connection], bool]:
    """A session that holds nothing; False if there is one with its key."""

    def body(conn: Connection) -> bool:
        c = t.sessions.c
        found = conn.execute(select(c.session).where(t.under(key))).first()
        if found is not None:
            return bool(found[0] == session)  # the commit of an earlier attempt took place after all
        made = {"session": session, "key": key, "owner": node, "epoch": 1, "policy": policy or None}
        conn.execute(insert(t.sessions).values(**made, created_at=at, last_at=at))
        return True

    return body
