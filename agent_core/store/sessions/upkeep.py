"""The transactions that stand alone: a node's arrival, taking over what a dead node left, a chat that moves.

Each returns a body for `Writer.alone`, and each body is repeatable: if its commit's answer was lost, running it again finds its
own work and gives the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import (
    Connection,
    Text,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from agent_core.store import tables as t
from agent_core.store.budgets import writes as sqlbudgets
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.inbox.rows import InboxState
from agent_core.store.sql import Who
from agent_core.store.turns.rows import JournalRow, OpenTurn, TurnState

MakeRow: TypeAlias = Callable[[str, int, int], JournalRow]
"""(turn, seq, epoch) -> the row that says that the turn was taken over; its `seq` must be the one given."""

_pending = exists().where(t.inbox.c.session == t.sessions.c.session, t.inbox.c.state == InboxState.NEW.value)
_last_seq = (
    select(func.coalesce(func.max(t.journal.c.seq), -1)).where(t.journal.c.turn == t.turns.c.turn).scalar_subquery()
)
_open = and_(t.turns.c.session == t.sessions.c.session, t.turns.c.state == TurnState.OPEN.value)
_LEFT_BEHIND = (
    select(t.sessions.c.session, t.sessions.c.epoch, t.turns.c.turn, _last_seq, _pending)
    .select_from(t.sessions.outerjoin(t.turns, _open))
    .where(
        or_(
            t.sessions.c.owner.in_(bindparam("dead", expanding=True)),
            and_(t.sessions.c.owner.is_(None), t.turns.c.turn.is_not(None)),
        )
    )
    .order_by(t.sessions.c.session)
    .with_for_update(key_share=True, skip_locked=True, of=t.sessions)
)
_TAKEN = (
    update(t.sessions)
    .where(t.sessions.c.session == bindparam("which"))
    .values(owner=bindparam("new_owner"), epoch=bindparam("new_epoch"))
)
_OWNERS = select(t.sessions.c.owner).where(t.sessions.c.owner.is_not(None)).distinct()


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
    known = select(t.nodes.c.node).where(t.nodes.c.name == arrival.name)
    found = conn.execute(known).scalar_one_or_none()
    if found is None:
        values = {
            "name": arrival.name,
            "started_at": arrival.started_at,
            "version": arrival.version,
            "boot_id": boot_id(),
        }
        conn.execute(insert(t.nodes), values)
        found = conn.execute(known).scalar_one()
    return int(found)


def take_over(make_row: MakeRow, who: Who) -> Callable[[Connection], list[OpenTurn]]:
    """Take the sessions of all dead nodes: a new epoch for each, and a row at the end of each open turn's journal.

    What they held of budgets is settled, as `sqlbudgets.release` says.

    A session with an open turn or a waiting message becomes this node's; the idle ones become nobody's, so that whoever gets
    their next message claims them. Returns the open turns taken, in the order of their sessions.
    """
    earlier: list[OpenTurn] = []

    def body(conn: Connection) -> list[OpenTurn]:
        if earlier and _stands(conn, earlier[0], who.node):
            return list(earlier)
        held = sqlbudgets.holders(conn)
        owners = ({int(owner) for owner in conn.execute(_OWNERS).scalars()} | held) - {who.node}
        dead = who.dead(conn, owners) if owners else frozenset[int]()
        taken: list[OpenTurn] = []
        changes: list[dict[str, object]] = []
        rows: list[dict[str, object]] = []
        for session, epoch, turn, last_seq, pending in conn.execute(_LEFT_BEHIND, {"dead": sorted(dead) or [-1]}).all():
            busy = turn is not None or pending
            changes.append({"which": session, "new_owner": who.node if busy else None, "new_epoch": epoch + 1})
            if turn is not None:
                taken.append(OpenTurn(turn, session, epoch + 1))
                rows.append(_row_values(turn, epoch + 1, make_row(turn, last_seq + 1, epoch + 1), last_seq + 1))
        if changes:
            conn.execute(_TAKEN, changes)
        if rows:
            conn.execute(insert(t.journal), rows)
        if held & dead:
            sqlbudgets.release(conn, held & dead, who.node)
        earlier[:] = taken
        return taken

    return body


def _stands(conn: Connection, turn: OpenTurn, node: int) -> bool:
    """Whether an earlier attempt of the same take-over was committed after all."""
    query = select(t.sessions.c.owner, t.sessions.c.epoch).where(t.sessions.c.session == turn.session)
    found = conn.execute(query).one()
    return (found[0], found[1]) == (node, turn.epoch)


def _row_values(turn: str, epoch: int, row: JournalRow, seq: int) -> dict[str, object]:
    assert row.seq == seq, f"the row for turn {turn} must have number {seq}, not {row.seq}"
    return {"turn": turn, "seq": seq, "epoch": epoch, "kind": row.kind, "body": row.body, "at": row.at}


def note_adapter(row: AdapterStateRow) -> Callable[[Connection], None]:
    """An adapter is doing otherwise from a time on."""

    def body(conn: Connection) -> None:
        c = t.adapter_states.c
        if conn.execute(select(c.at).where(c.account == row.account, c.at == row.at)).first() is None:
            conn.execute(insert(t.adapter_states), asdict(row))

    return body


def move_chat(account: str, old: str, new: str) -> Callable[[Connection], None]:
    """A platform gave a chat another id: what is stored under the old one goes on under the new one."""

    def body(conn: Connection) -> None:
        for table, column in (
            (t.sessions, t.sessions.c.key),
            (t.deliveries, t.deliveries.c.surface),
            (t.schedules, t.schedules.c.session_key),
            (t.schedules, t.schedules.c.surface),
        ):
            before = f"{account}{old}/"
            matches = column.startswith(before, autoescape=True)
            renamed = literal(f"{account}{new}/", Text).concat(func.substr(column, len(before) + 1))
            taken = select(column).where(column.startswith(f"{account}{new}/", autoescape=True))
            known = {str(value) for value in conn.execute(taken).scalars()}
            if table is t.sessions and known:
                continue  # somebody has spoken in the new chat already; that conversation goes on
            values: dict[str, Any] = {column.name: renamed}
            if table is t.schedules:  # whoever saw it under the old name must look again
                values["rev"] = t.schedules.c.rev + 1
            conn.execute(update(table).where(matches).values(values))

    return body
