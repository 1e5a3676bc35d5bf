"""What dead processes have left, and taking it up: what the keeper asks of the store, and its one transaction.

Laws: how often something was taken up after a death (its *suspicion*) is stored in the commit by which it is taken up, so before
anything is done with it; that of a message that waits for its turn, before that is opened. Nothing of a session whose owner lives is taken, and
what is not taken is under no more suspicion than before. The transaction is repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    select,
    text,
    tuple_,
    update,
)

from agent_core.records import changed, dataclass
from agent_core.store import tables as t
from agent_core.store.budgets import sql as budgets
from agent_core.store.database import direct
from agent_core.store.database.asks import Always, Rows, StoreReading, around
from agent_core.store.database.keys import padded
from agent_core.store.database.node import Writing
from agent_core.store.database.ownership import Who
from agent_core.store.errors import Damaged
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.sessions.upkeep import MakeRow
from agent_core.store.slices.rows import ANYBODY
from agent_core.store.slices.sql import rights, slice_in
from agent_core.store.turns.rows import OpenTurn, TurnState

MOST = 2_000
"""What one look finds of each kind; what is more is found when that is taken up. Of parts, one look goes on behind another."""
FIRST_PART = ("", 0)
"""Behind nothing."""
PROGRESS = ("ToolReturned",)
"""Rows of a journal that show real progress. A reply is none: it may ask again for the very tool that ends the process."""
TAKEN_OVER = "TakenOver"


@dataclass(frozen=True, slots=True)
class LeftTurn:
    """An open turn."""

    turn: str
    session: str
    key: str
    owner: int | None
    at: int
    suspicion: int
    """As stored, or 0 if it has made progress since it was taken up last."""


@dataclass(frozen=True, slots=True)
class LeftMessage:
    """A message that no turn has taken, or a command that was not carried out."""

    inbox_id: int
    session: str
    key: str
    owner: int | None
    lane: str
    at: int
    suspicion: int
    row: InboxRow | None = None
    """As it is stored, where that was asked for."""


@dataclass(frozen=True, slots=True)
class LeftPart:
    """A part of a chat that is not as it should be."""

    surface: str
    origin: str
    bubble: str
    part: int
    session: str
    key: str
    owner: int | None
    at: int
    suspicion: int
    place: int = 0
    """In the order of all parts of its chat."""
    earlier: bool = False
    """It was stored before its conversation came to be its owner's."""

    @property
    def name(self) -> tuple[str, str, int]:
        """As its surface names it."""
        return self.origin, self.bubble, self.part


PartKey = tuple[str, str, str, int]
"""(surface, origin, bubble, part)"""


@dataclass(frozen=True, slots=True)
class LeftThere:
    """Everything that is left, whoever works on it."""

    turns: Sequence[LeftTurn]
    """The oldest first."""
    messages: Sequence[LeftMessage]
    """In the order of arrival."""
    parts: Sequence[LeftPart]
    """Chat by chat in their order."""


@dataclass(frozen=True, slots=True)
class Charges:
    """The suspicion with which things are taken up."""

    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    messages: Mapping[int, int] = field(default_factory=dict[int, int])
    parts: Mapping[PartKey, int] = field(default_factory=dict[PartKey, int])


def _together(every: Iterable[Charges]) -> Charges:
    """Pure."""
    turns: dict[str, int] = {}
    messages: dict[int, int] = {}
    parts: dict[PartKey, int] = {}
    for one in every:
        turns |= one.turns
        messages |= one.messages
        parts |= one.parts
    return Charges(turns, messages, parts)


@dataclass(frozen=True, slots=True)
class TakeUp:
    """What was taken up."""

    epochs: Mapping[str, int]
    """The sessions that are this node's, with the epoch of each; one that is missing has an owner that lives."""
    turns: Sequence[OpenTurn]


_before = t.journal.alias("before")
_taken_at = (
    select(func.coalesce(func.max(_before.c.seq), -1))
    .where(t.rows_of_turn(_before), _before.c.kind == TAKEN_OVER)
    .correlate(t.turns)
    .scalar_subquery()
)
_progressed = (
    select(t.journal.c.seq)
    .where(t.rows_of_turn(), t.journal.c.kind.in_(PROGRESS), t.journal.c.seq > _taken_at)
    .correlate(t.turns)
    .exists()
)
_suspicion = case((t.turns.c.suspicion == 0, 0), (_progressed, 0), else_=t.turns.c.suspicion)
_session = (t.sessions.c.session, t.sessions.c.key, t.sessions.c.owner)
_TURNS = (
    select(t.turns.c.turn, *_session, t.turns.c.opened_at, _suspicion)
    .join(t.sessions, t.sessions.c.session == t.turns.c.session)
    .where(t.turns.c.state == TurnState.OPEN.value, t.sessions.c.quarantined.is_(None))
)
_MESSAGES = (
    select(t.inbox.c.id, *_session, t.inbox.c.lane, t.inbox.c.received_at, t.inbox.c.suspicion)
    .join(t.sessions, t.sessions.c.session == t.inbox.c.session)
    .where(t.inbox.c.state == InboxState.NEW.value, t.sessions.c.quarantined.is_(None))
)
_d = t.deliveries.c
_PARTS = (
    select(
        _d.surface,
        _d.origin,
        _d.bubble,
        _d.part,
        *_session,
        _d.at,
        _d.suspicion,
        _d.place,
        _d.epoch < t.sessions.c.epoch,
    )
    .join(t.sessions, t.sessions.c.session == _d.session)
    .where(t.OPEN_PARTS)
    .order_by(_d.surface, _d.place)
)
_LOOK = (
    _TURNS.order_by(t.turns.c.opened_at).limit(MOST),
    _MESSAGES.order_by(t.inbox.c.arrival).limit(MOST),
    _PARTS.where(
        tuple_(_d.surface, _d.place) >= tuple_(bindparam("chat", "", Text), bindparam("place", 0, BigInteger))
    ).limit(MOST),
)
_m = t.inbox.c
_NEW_ROWS = (
    select(
        t.sessions.c.key,
        t.sessions.c.owner,
        *(
            case((_m.id > bindparam("above", 0, BigInteger), _m.body), else_=b"") if name == "body" else _m[name]
            for name in t.MESSAGE.names
        ),
    )
    .join(t.sessions, t.sessions.c.session == _m.session)
    .where(_m.state == InboxState.NEW.value, t.sessions.c.quarantined.is_(None))
    .order_by(_m.arrival)
    .limit(MOST)
)
# What an index knows by itself, of what may not be readable. The conditions in so many words: the indexes are partial.
_TURN_KEYS = select(t.turns.c.turn, t.turns.c.session).where(text("turns.state = 'open'")).limit(MOST)
_MESSAGE_KEYS = select(t.inbox.c.id, t.inbox.c.session).where(text("inbox.state = 'new'")).limit(MOST)
_PART_KEYS = select(_d.id, _d.surface).where(t.OPEN_PARTS).limit(MOST)

_n = t.nodes.c
_EARLIER = _n.node < bindparam("node", 0, BigInteger)
_BEFORE = select(_n.ended_at).where(_EARLIER).order_by(_n.node.desc()).limit(1)
_DIED = select(func.max(_n.node)).where(_EARLIER, _n.ended_at.is_(None)).scalar_subquery()
_AFTER_DEATH = select(_n.started_at).where(_n.node > _DIED).order_by(_n.node).limit(1)
_ENDED = (
    update(t.nodes)
    .where(_n.node == bindparam("which", type_=BigInteger))
    .values(ended_at=bindparam("at", type_=BigInteger))
)


class LeftBehind(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read.

    What cannot be read hides nothing else: it is left out, and, of sessions, named in `lost_sessions` as of the last look.
    `slices`, where they are given, are those of which all is told; of the others nothing is.
    """

    @property
    def lost_sessions(self) -> frozenset[str]:
        """Sessions with an open turn or a message that cannot be read."""
        return self._asks.lost_keys.get("turns", frozenset()) | self._asks.lost_keys.get("messages", frozenset())

    async def everything(self, slices: Collection[str] | None, parts: tuple[str, int] | None) -> LeftThere:
        """Open turns, what nobody has done, and, if asked for, parts that are not as they should be, from this place of a chat on.

        That is asked every few seconds for as long as a process lives, so by one question; where something cannot be read, by one each.
        """
        named: dict[str, object] = dict(zip(("chat", "place"), parts or (), strict=False))
        try:
            queries = [
                Always(
                    query if slices is None else _in_given(query),
                    sorted(slices or ()),
                    named if query is _LOOK[2] else None,
                )
                for query in _LOOK[: 2 + bool(named)]
            ]
            turns, messages, *more = await self._asks.each(*queries) if slices or slices is None else ((), ())
        except Damaged:
            found = await self.turns(slices=slices), await self.messages(slices=slices)
            return LeftThere(*found, await self.parts(slices) if named else ())
        self._asks.lost_keys.clear()
        return LeftThere(_turns(turns), _messages(messages), _parts(more[0]) if more else ())

    async def turns(self, session: str = "", slices: Collection[str] | None = None) -> list[LeftTurn]:
        """All open turns (of one session), the oldest first, whoever runs them."""
        if session:
            query = _TURNS.where(t.turns.c.session == session).order_by(t.turns.c.opened_at)
            return [LeftTurn(*row) for row in await self._asks.all(query)]
        found = await self._each("turns", _of(slices, _TURNS).order_by(t.turns.c.opened_at), _TURN_KEYS, t.turns.c.turn)
        return _turns(found)

    async def messages(self, session: str = "", slices: Collection[str] | None = None) -> list[LeftMessage]:
        """All messages and commands that nobody has done (of one session), in the order of arrival, whoever has them."""
        if session:
            query = _MESSAGES.where(t.inbox.c.session == session).order_by(t.inbox.c.arrival)
            return [LeftMessage(*row) for row in await self._asks.all(query)]
        query = _of(slices, _MESSAGES).order_by(t.inbox.c.arrival)
        found = await self._each("messages", query, _MESSAGE_KEYS, t.inbox.c.id)
        return _messages(found)

    async def brought(self, slices: Collection[str], above: int) -> list[LeftMessage]:
        """All messages and commands of these slices that nobody has done, in the order of arrival: those with a number above that one as they are
        stored. In one question, as it is asked for nearly each message that comes by another gateway."""
        if not slices:
            return []
        try:
            found = await self._asks.always(_in_given(_NEW_ROWS), sorted(slices), above=above)
            with self._asks.sense():
                rows = [t.MESSAGE.make(row[2:]) for row in found]
            bodies = await self._asks.whole([row.body for row in rows])
        except Damaged:
            return await self.messages(slices=slices)
        return [
            LeftMessage(row.id, row.session, key, owner, row.lane, row.received_at, row.suspicion,
                        changed(row, body=body) if row.id > above else None)
            for (key, owner, *_), row, body in zip(found, rows, bodies, strict=True)
        ]  # fmt: skip

    async def parts(self, slices: Collection[str] | None = None) -> list[LeftPart]:
        """All parts that are not as they should be, chat by chat in their order."""
        return _parts(await self._each("parts", _of(slices, _PARTS), _PART_KEYS, _d.id))

    async def _each(
        self, what: str, query: Select[*tuple[Any, ...]], keys: Select[*tuple[Any, ...]], by: ColumnElement[Any]
    ) -> Rows:
        """All rows of `query`; if some cannot be read, those that can. `keys` gives the key of each, and whose it is."""
        try:
            found = await self._asks.all(query.limit(MOST))
        except Damaged:
            named = {row[0]: str(row[1]) for row in await self._asks.all(keys)}
            found, lost = await around([*named], lambda some: self._asks.all(query.where(by.in_(some))))
            self._asks.lost_keys[what] = frozenset(named[key] for key in lost)
        else:
            self._asks.lost_keys.pop(what, None)
        return found

    async def holders(self) -> frozenset[int]:
        """The nodes for whose model calls something is held in budgets."""
        return frozenset(int(row[0]) for row in await self._asks.always(budgets.HOLDERS))

    async def crashed_before(self, node: int) -> bool:
        """Whether the node before this one has not ended in order. On SQLite that is the process before this."""
        found = await self._asks.always(_BEFORE, node=node)
        return bool(found) and found[0][0] is None

    async def last_death(self, node: int) -> int | None:
        """The latest time (ms) at which a node before this one can have ended otherwise than in order: when the next one began."""
        found = await self._asks.always(_AFTER_DEATH, node=node)
        return int(found[0][0]) if found else None

    async def ended(self, nodes: Collection[int]) -> frozenset[int]:
        """Which of these nodes ended in order, or are not known any more."""
        c = t.nodes.c
        died = await self._asks.all(select(c.node).where(c.node.in_(sorted(nodes)), c.ended_at.is_(None)))
        return frozenset(nodes) - {int(row[0]) for row in died}


def _turns(rows: Iterable[Sequence[Any]]) -> list[LeftTurn]:
    return sorted((LeftTurn(*row) for row in rows), key=lambda one: one.at)


def _messages(rows: Iterable[Sequence[Any]]) -> list[LeftMessage]:
    return sorted((LeftMessage(*row) for row in rows), key=lambda one: one.inbox_id)


def _parts(rows: Iterable[Sequence[Any]]) -> list[LeftPart]:
    return [LeftPart(*row[:-1], earlier=bool(row[-1])) for row in rows]


@cache
def _in_given(query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    """Of the slices that are given when it is asked."""
    return query.where(slice_in(t.sessions.c.key, None))


def _of(slices: Collection[str] | None, query: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
    return query if slices is None else query.where(slice_in(t.sessions.c.key, slices))


_SESSIONS = (
    select(t.sessions.c.session, t.sessions.c.owner, t.sessions.c.epoch, t.sessions.c.key)
    .where(t.sessions.c.session.in_(bindparam("keys", expanding=True)))
    .order_by(t.sessions.c.session)
    .with_for_update(key_share=True, skip_locked=True, of=t.sessions)
)
_OWNED = (
    update(t.sessions)
    .where(t.sessions.c.session == bindparam("which"))
    .values(owner=bindparam("new_owner"), epoch=bindparam("new_epoch"))
)
_OPEN_TURNS = (
    select(t.turns.c.turn, t.turns.c.session, t.turns.c.first_message, func.coalesce(func.max(t.journal.c.seq), -1))
    .select_from(t.turns.outerjoin(t.journal, t.rows_of_turn()))
    .where(t.turns.c.turn.in_(bindparam("keys", expanding=True)), t.turns.c.state == TurnState.OPEN.value)
    .group_by(t.turns.c.turn, t.turns.c.session, t.turns.c.first_message)
)
_CHARGE_TURN = update(t.turns).where(t.turns.c.turn == bindparam("which")).values(suspicion=bindparam("new"))
_CHARGE_MESSAGE = update(t.inbox).where(t.inbox.c.id == bindparam("which")).values(suspicion=bindparam("new"))
_CHARGE_PART = (
    update(t.deliveries)
    .where(
        and_(
            _d.surface == bindparam("which_surface"),
            _d.origin == bindparam("which_origin"),
            _d.bubble == bindparam("which_bubble"),
            _d.part == bindparam("which_part"),
        )
    )
    .values(suspicion=bindparam("new"))
)


def take_up(
    make_row: MakeRow, who: Who, sessions: Collection[str], charges: Mapping[str, Charges]
) -> Callable[[Connection], TakeUp]:
    """Make those of `sessions` whose owner is dead this node's, and take up what `charges`, by session, names of them. What cannot be had is
    not charged: nobody works on it, so that the next death is none of its.

    A turn that is taken up gets the row from `make_row` at the end of its journal. What dead nodes held of budgets is settled, as
    `budgets.release` says.
    """
    earlier: list[TakeUp] = []

    def body(conn: Connection) -> TakeUp:
        if earlier and earlier[0].turns and _written(conn, earlier[0].turns[0]):
            return earlier[0]  # the commit of an earlier attempt took place after all
        epochs = _own(conn, who, sessions)
        mine = _together(charges[one] for one in epochs if one in charges)
        turns: list[OpenTurn] = []
        rows: list[dict[str, object]] = []
        for some in padded(mine.turns):
            for turn, session, first, last in conn.execute(_OPEN_TURNS, {"keys": some}).all():
                row, epoch = make_row(turn, last + 1, epochs[session]), epochs[session]
                turns.append(OpenTurn(turn, session, epoch))
                rows.append(t.EVENT.values(row, id=t.row_id(first, row.seq), epoch=epoch))
        t.EVENT.add(conn, rows)
        charge(conn, mine)
        earlier[:] = [TakeUp(epochs, turns)]
        return earlier[0]

    return body


def charge(conn: Connection, charges: Charges) -> None:
    """Store the suspicions."""
    if charges.turns:
        conn.execute(_CHARGE_TURN, [{"which": turn, "new": value} for turn, value in charges.turns.items()])
    if charges.messages:
        conn.execute(_CHARGE_MESSAGE, [{"which": one, "new": value} for one, value in charges.messages.items()])
    if charges.parts:
        names = ("which_surface", "which_origin", "which_bubble", "which_part")
        parts = [dict(zip(names, key, strict=True)) | {"new": value} for key, value in charges.parts.items()]
        conn.execute(_CHARGE_PART, parts)


def _own(conn: Connection, who: Who, sessions: Collection[str]) -> dict[str, int]:
    """Take the sessions whose owner is dead, or that have none, or whose slice is this node's; the epochs of all that are this node's then."""
    found = [row for some in padded(sorted(sessions)) for row in conn.execute(_SESSIONS, {"keys": some}).all()]
    held = budgets.holders(conn)
    others = ({int(owner) for _, owner, _, _ in found if owner is not None} | held) - {who.node}
    dead = who.dead(conn, others) if others else frozenset[int]()
    may = rights(conn, who, [key for _, owner, _, key in found if owner != who.node])
    epochs: dict[str, int] = {}
    changes: dict[str, dict[str, object]] = {}
    for session, owner, epoch, key in found:
        right = may.get(key, ANYBODY)
        if owner == who.node:
            epochs[session] = epoch
        elif right.ours or (right.other is None and (owner is None or owner in dead)):
            epochs[session] = epoch + 1
            changes[session] = {"which": session, "new_owner": who.node, "new_epoch": epoch + 1}
    if changes:
        conn.execute(_OWNED, list(changes.values()))
    if held & dead:
        budgets.release(conn, held & dead, who.node)
    return epochs


def _written(conn: Connection, turn: OpenTurn) -> bool:
    """Whether the last row of a turn's journal is that of its being taken up under this epoch."""
    c = t.journal.c
    rows = select(c.kind, c.epoch).select_from(t.turns.join(t.journal, t.rows_of_turn()))
    last = conn.execute(rows.where(t.turns.c.turn == turn.turn).order_by(c.id.desc()).limit(1)).first()
    return last is not None and (last[0], last[1]) == (TAKEN_OVER, turn.epoch)


def depart(node: int, at: int) -> Callable[[Connection], None]:
    """This node ends in order: what it leaves open, it leaves on purpose."""

    def body(conn: Connection) -> None:
        direct.do(conn, _ENDED, [{"which": node, "at": at}])

    return body


class Left(LeftBehind, Writing):
    """All of it, for the node that writes."""

    async def take_up(self, make_row: MakeRow, sessions: Collection[str], charges: Mapping[str, Charges]) -> TakeUp:
        """Promises: those of `sessions` whose owner is dead are this node's, and it is stored how often what `charges`, by session, names of
        these was taken up; only now may anything be done with it. The journal of each of its turns ends with the row from `make_row`.

        What dead nodes held of budgets counts as used. Raises LeaseLost.
        """
        await self._node.must_live()
        return await self._writer.alone(take_up(make_row, self._node.who, sessions, charges))

    async def charge(self, charges: Charges) -> None:
        """Promises: these suspicions are stored."""
        await self._writer.alone(lambda conn: charge(conn, charges))
