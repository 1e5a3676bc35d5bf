"""A session that begins with turns of another one: their journals are copied, so that each can be deleted without the other.

What such turns used is counted where they ran. Their messages are not copied: the journal has what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Connection, bindparam, func, insert, literal, select

from agent_core.records import changed, dataclass
from agent_core.store import tables as t
from agent_core.store.database.keys import padded
from agent_core.store.keeping import pieces
from agent_core.store.sessions import upkeep
from agent_core.store.turns.rows import ROWS_A_TURN, TurnRow, TurnState

_turn = t.TURN.query.where(t.turns.c.turn.in_(bindparam("keys", expanding=True)))
_j, _epoch = t.journal.c, 1


@dataclass(frozen=True, slots=True)
class SessionCopy:
    """What is to be there."""

    session: str
    key: str
    policy: str
    turns: Sequence[tuple[str, str]]
    """Each turn, in their order, and the id of its copy. One that is open, or whose journal is gone, is left out."""


def copy(wanted: SessionCopy, at: int, node: int) -> Callable[[Connection], bool]:
    """False if there is a session with its key."""

    def body(conn: Connection) -> bool:
        if conn.execute(select(t.sessions.c.session).where(t.sessions.c.session == wanted.session)).first() is not None:
            return True  # the commit of an earlier attempt took place after all
        if not upkeep.make(wanted.session, wanted.key, wanted.policy, at, node)(conn):
            return False
        rows: dict[str, TurnRow] = {}
        for keys in padded([turn for turn, _ in wanted.turns]):
            rows.update({one.turn: one for one in map(t.TURN.make, conn.execute(_turn, {"keys": keys}))})
        kept = [(rows[turn], fresh) for turn, fresh in wanted.turns if turn in rows and _whole(rows[turn])]
        first = min(int(conn.execute(select(func.min(t.turns.c.first_message)).where(t.NO_MESSAGE)).scalar() or 0), 0)
        for number, (row, fresh) in enumerate(kept, start=1):
            _copy(conn, row, wanted.session, fresh, number, first - number, at)
        return True

    return body


def _whole(row: TurnRow) -> bool:
    return row.state is TurnState.CLOSED and not row.removed


def _copy(conn: Connection, row: TurnRow, session: str, fresh: str, number: int, first: int, at: int) -> None:
    made = changed(
        row, turn=fresh, session=session, number=number, first_message=first, last_message=first, undone=0, follows=-1,
        input_tokens=0, output_tokens=0, suspicion=0, model="", key="",
    )  # fmt: skip
    t.TURN.add(conn, [t.TURN.values(made)])
    base = row.first_message * ROWS_A_TURN
    mine = (_j.id >= base, _j.id < base + ROWS_A_TURN)
    names = [column.name for column in t.journal.c]
    moved = {"id": _j.id + (first * ROWS_A_TURN - base), "epoch": literal(_epoch)}
    conn.execute(
        insert(t.journal).from_select(names, select(*[moved.get(name, _j[name]) for name in names]).where(*mine))
    )
    pieces.add(conn, {}, [bytes(body) for (body,) in conn.execute(select(_j.body).where(*mine))], at)
