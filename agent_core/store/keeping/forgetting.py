"""Forgetting a person, in the database: what is theirs is found, and removed a little at a time. Each step can be repeated.

Theory. A turn is a person's if they asked it (`turns.people`); a conversation is theirs alone if nobody else asked anything in it. Who asked
stays written until the very end, so whoever goes on after a kill finds the same again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Text, and_, cast, delete, func, literal, or_, select, update

from agent_core.records import dataclass
from agent_core.store import tables as t
from agent_core.store.budgets.rows import FILE_SCOPE
from agent_core.store.database.asks import StoreReading
from agent_core.store.database.keys import begins, padded
from agent_core.store.deliveries.sql import behind_in
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping import pieces
from agent_core.store.keeping.retaining import drop_journals
from agent_core.store.keeping.rows import ForgetRow
from agent_core.store.memory.sql import of_scope
from agent_core.store.people.rows import PersonState
from agent_core.store.turns.rows import FORGOTTEN, TurnState, timed

Account = tuple[str, str]
"""(account, the person's id in it)"""
Blank = Callable[[str, str, str], bytes]
"""What is left of a message, by its account, its key and its conversation's."""
NOBODY_KNOWS: Account = ("", "")
"""Who asked a turn of which that cannot be read."""
SUMMARY = "Earlier turns were removed, because somebody wanted to be forgotten."
DROPPED = "its person is forgotten"
"""Why a message was dropped that has no words any more."""
DROPPING = "its person is being forgotten"
"""The same of one that still has."""
FORGOT = "forgot"
"""How origins of parts begin that tell somebody so: they hold no word of theirs, and still have to go out."""
BESIDE = ("inbox", "queue", "reword")
"""How origins of parts begin that answer a message and are no turn's; its number follows."""
_NAMED = rb'"(?:id|user|user_id|from|author|person)"\s*:\s*"?'
"""How platforms, and we, name a person in JSON."""
_u, _s, _j, _i, _d, _h = t.turns.c, t.sessions.c, t.journal.c, t.inbox.c, t.deliveries.c, t.hooks.c


CONVERSATION, CONVERSATION_KEY = "conversation", "conversation-key"
"""What stands in an account's place where it is no person but a conversation: its id, and the key that it had."""


@dataclass(frozen=True, slots=True)
class ForgettingJob:
    """Somebody is to be forgotten, or a conversation."""

    forget: str
    who: tuple[Account, ...]
    at: int
    done_at: int | None

    @property
    def conversation(self) -> tuple[str, str] | None:
        """The conversation's id and the key that it had, if it is one."""
        named = dict(self.who)
        return (named[CONVERSATION], named[CONVERSATION_KEY]) if CONVERSATION in named else None


@dataclass(frozen=True, slots=True)
class TheirTurn:
    """A turn that they asked, alone or with others."""

    turn: str
    session: str
    open: bool


@dataclass(frozen=True, slots=True)
class TheirSession:
    """A conversation in which they asked."""

    session: str
    key: str
    alone: bool
    """Nobody else asked anything in it, as far as is known."""


def named_in(stored: str) -> set[Account]:
    """The accounts of a list as it is stored. Raises ValueError, TypeError, LookupError if it is none."""
    return {(str(one[0]), str(one[1])) for one in orjson.loads(stored or "[]")}


def people_of(stored: str) -> set[Account]:
    """Who asked a turn; if nobody can say, somebody of whom nothing is known, so that no other is held up."""
    try:
        return named_in(stored)
    except (ValueError, TypeError, LookupError):
        return {NOBODY_KNOWS}


def _asked(who: Iterable[Account]) -> list[str]:
    """How each of them stands in `turns.people`."""
    return [orjson.dumps(list(one)).decode() for one in who]


def _job(row: Sequence[Any]) -> ForgettingJob:
    made = t.FORGET.make(row)
    return ForgettingJob(made.forget, tuple(sorted(named_in(made.who))), made.at, made.done_at)


_JOBS = t.FORGET.query.order_by(t.forgets.c.at, t.forgets.c.forget)


class Forgotten(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def jobs(self) -> list[ForgettingJob]:
        """All of which it is known, the oldest first."""
        return self._asks.sensible("forgets", await self._asks.always(_JOBS), _job)

    async def unnamed_messages(self, limit: int, after: int) -> list[tuple[int, str, str, bytes]]:
        """Messages of an older version, whose writer stands in the body only: (number, account, turn, body)."""
        query = select(_i.id, _i.account, func.coalesce(_i.turn, ""), _i.body).where(_i.person == "", _i.id > after)
        rows = await self._asks.all(query.order_by(_i.id).limit(limit))
        bodies = await self._asks.whole([bytes(r[3]) for r in rows])
        return [(int(r[0]), str(r[1]), str(r[2]), body) for r, body in zip(rows, bodies, strict=True)]

    async def turns(self, job: ForgettingJob, limit: int, after: str) -> tuple[list[TheirTurn], str]:
        """Their turns among the next `limit` turns, and the last of these; empty at the end."""
        window = select(_u.turn, _u.session, _u.people, _u.state, _u.opened_at).where(_u.turn > after)
        rows = await self._asks.all(window.order_by(_u.turn).limit(limit))
        mine = set(job.who)
        found = [
            TheirTurn(r[0], r[1], r[3] == TurnState.OPEN.value)
            for r in rows
            if r[4] <= job.at and r[2] and people_of(r[2]) & mine
        ]
        return found, str(rows[-1][0]) if rows else ""

    async def sessions(self, who: Sequence[Account], keys: Collection[str]) -> list[TheirSession]:
        """The conversations in which they asked, and those with these keys."""
        touched = {str(r[0]) for r in await self._asks.all(select(_u.session).where(self._theirs(who)).distinct())}
        wrote = or_(*(and_(_i.account == account, _i.person == person) for account, person in who))
        touched |= {str(r[0]) for r in await self._asks.all(select(_i.session).where(wrote).distinct())}
        found: list[TheirSession] = []
        query = select(_s.session, _s.key).where(
            or_(and_(t.NAMED, _s.key.in_(sorted(keys))), _s.session.in_(sorted(touched)))
        )
        for session, key in await self._asks.all(query):
            mine = set(who)
            asked = await self._asks.all(select(_u.people).where(_u.session == session).distinct())
            heard = select(_i.account, _i.person).where(_i.session == session, _i.person != "").distinct()
            others = {one for row in asked for one in people_of(row[0])} | {
                (str(r[0]), str(r[1])) for r in await self._asks.all(heard)
            }
            unknown = any(not row[0] for row in asked) and key not in keys and not _is_theirs_by_name(key, mine)
            found.append(TheirSession(session, key, not others - mine and not unknown))
        return found

    def _theirs(self, who: Sequence[Account]) -> ColumnElement[bool]:
        return or_(*(_u.people.contains(one, autoescape=True) for one in _asked(who)))

    async def summaries(self, session: str) -> list[int]:
        """Where the journals of a conversation hold summaries, as the keys of their rows."""
        query = select(_j.id).join(t.turns, t.rows_of_turn())
        rows = await self._asks.all(query.where(_u.session == session, _u.removed == "", _j.kind == "Compacted"))
        return [int(row[0]) for row in rows]

    async def messages(self, which: ColumnElement[bool]) -> list[int]:
        """The numbers of these messages, in order."""
        return [int(row[0]) for row in await self._asks.all(select(_i.id).where(which).order_by(_i.id))]

    async def keys_of(self, who: Sequence[Account]) -> set[str]:
        """The private chats that are known to be theirs, by the keys of their sessions."""
        p = t.places.c
        mine = or_(*(and_(p.account == account, p.person == person) for account, person in who))
        return {str(r[0]) for r in await self._asks.all(select(p.place).where(mine))}

    async def joined(self, who: Account) -> set[Account]:
        """The accounts that are joined with this one, itself included."""
        c = t.links.c
        same = select(c.who).where(c.account == who[0], c.person == who[1])
        rows = await self._asks.all(select(c.account, c.person).where(c.who.in_(same)))
        return {who, *((str(r[0]), str(r[1])) for r in rows)}

    async def known(self, who: Sequence[Account]) -> bool:
        """Whether anything of them is there: what they wrote or asked, or their names."""
        for table in (t.inbox, t.people, t.places, t.links):
            mine = or_(*(and_(table.c.account == account, table.c.person == person) for account, person in who))
            if await self._asks.all(select(literal(1)).where(select(table).where(mine).exists())):
                return True
        return bool(await self._asks.all(select(_u.turn).where(self._theirs(who)).limit(1)))

    async def tool_keys(self, turns: Sequence[str]) -> list[str]:
        """The keys under which the tools of these turns have put files on their way."""
        query = select(t.tool_calls.c.key).where(t.tool_calls.c.turn.in_(turns))
        return [str(r[0]) for r in await self._asks.all(query)]


def _is_theirs_by_name(key: str, who: Collection[Account]) -> bool:
    """A key that names them: a chat with them alone has their id on Telegram, and a group may have a conversation for each person."""
    parts = [part.replace("%2F", "/").replace("%25", "%") for part in key.split("/")]
    return any(person in (parts[2], parts[4]) for _, person in who) if len(parts) == 5 else False


def begin(job: ForgettingJob) -> Callable[[Connection], None]:
    """From now on it is to be done, whatever happens to the process."""

    def body(conn: Connection) -> None:
        f = t.forgets.c
        if conn.execute(select(f.forget).where(f.forget == job.forget)).first() is None:
            who = orjson.dumps(sorted(job.who)).decode()
            t.FORGET.add(conn, [t.FORGET.values(ForgetRow(job.forget, who, stage="", after="", told="", at=job.at))])

    return body


def begin_conversation(job: ForgettingJob, gone: str) -> Callable[[Connection], None]:
    """The same of a conversation: from now on it has the key `gone`, so that its name is free, and no settings."""

    def doing(conn: Connection) -> None:
        begin(job)(conn)
        if job.conversation is not None:
            mine = _s.session == job.conversation[0]
            conn.execute(update(t.sessions).where(mine).values(key=gone, policy=None))

    return doing


def blank_askers(turns: Collection[str]) -> Callable[[Connection], int]:
    """Nobody knows any more who asked these turns."""
    return lambda conn: conn.execute(update(t.turns).where(_u.turn.in_(turns)).values(people="")).rowcount


def blank_writers(messages: Collection[int]) -> Callable[[Connection], int]:
    """Nobody knows any more who wrote these messages."""
    return lambda conn: conn.execute(update(t.inbox).where(_i.id.in_(messages)).values(person="")).rowcount


def end(job: ForgettingJob, now: int) -> Callable[[Connection], None]:
    """It is done: nobody's name is kept for it."""
    done = update(t.forgets).where(t.forgets.c.forget == job.forget).values(done_at=now, who="[]")
    return lambda conn: conn.execute(done).close()


def name_writers(found: Sequence[tuple[int, str, str, str]]) -> Callable[[Connection], None]:
    """(number, account, turn, person): who wrote messages that an older version stored."""

    def body(conn: Connection) -> None:
        for number, account, turn, person in found:
            conn.execute(update(t.inbox).where(_i.id == number).values(person=person))
            people = orjson.dumps([[account, person]]).decode()
            conn.execute(update(t.turns).where(_u.turn == turn, _u.people == "").values(people=people))

    return body


def remove_turns(turns: Sequence[str], why: str = FORGOTTEN) -> Callable[[Connection], int]:
    """Everything about these turns but that they were there, when, and what they used."""

    def body(conn: Connection) -> int:
        closed = select(_u.turn).where(_u.turn.in_(turns), _u.state == TurnState.CLOSED.value)
        found = [str(one) for one in conn.execute(closed).scalars()]
        drop_journals(conn, found)
        for keys in padded(found):
            conn.execute(delete(t.troubles).where(t.troubles.c.turn.in_(keys)))
            of_them = select(_u.session).where(_u.turn.in_(keys))
            # What was said beside a turn, or shown elsewhere, has the turn's id before a ``!`` (`deliveries.rows.behind`).
            beside = or_(*(_d.origin.startswith(f"{key}!", autoescape=True) for key in keys))
            conn.execute(delete(t.deliveries).where(or_(_d.origin.in_(keys), and_(_d.session.in_(of_them), beside))))
            conn.execute(delete(t.hooks).where(_h.session.in_(of_them), _h.turn.in_(keys)))
            conn.execute(update(t.turns).where(_u.turn.in_(keys)).values(removed=why, undone=1))
        return len(found)

    return body


def blank_messages(messages: Collection[int], blank: Blank) -> Callable[[Connection], int]:
    """These messages keep their keys, so that they are known again, and lose their words; what waits is dropped."""

    def body(conn: Connection) -> int:
        query = (
            select(_i.id, _i.account, _i.platform_key, _s.key, _i.body, _i.state)
            .join(t.sessions, _s.session == _i.session)
            .where(_i.id.in_(messages), or_(_i.reason.is_(None), _i.reason != DROPPED))
        )
        rows = conn.execute(query.order_by(_i.id)).all()
        pieces.release(conn, [bytes(row[4]) for row in rows])
        for row in rows:
            state = InboxState.DROPPED.value if row[5] == InboxState.NEW.value else row[5]
            values = {"body": blank(row[1], row[2], row[3]), "state": state, "reason": DROPPED}
            conn.execute(update(t.inbox).where(_i.id == row[0]).values(**values))
            names = [f"{kind}:{row[0]}" for kind in ("inbox", "queue")] + [f"queue:{row[2]}"]
            conn.execute(delete(t.deliveries).where(_d.origin.in_(names)))
        return len(rows)

    return body


def written_by(job: ForgettingJob) -> ColumnElement[bool]:
    """What these people had written when it was begun."""
    theirs = [and_(_i.account == account, _i.person == person) for account, person in job.who]
    return and_(_i.received_at <= job.at, or_(*theirs))


def of_session(session: str, at: int) -> ColumnElement[bool]:
    """Messages of a conversation, up to that time."""
    return and_(_i.session == session, _i.received_at <= at)


def remove_session(one: TheirSession, at: int) -> Callable[[Connection], int]:
    """What is left of a conversation of theirs alone from before that time, but numbers: settings, reminders, parts, memory."""

    def body(conn: Connection) -> int:
        mine = and_(_u.session == one.session, _u.opened_at <= at)
        left = select(_u.turn).where(mine, _u.removed == "", _u.state == TurnState.CLOSED.value)
        turns = [str(turn) for turn in conn.execute(left.limit(50)).scalars()]
        if turns:  # of an older version, which did not note who asked
            return remove_turns(turns)(conn)
        _drop_planned(conn, _planned_in(conn, [one.key]), at)
        origin, told = behind_in(_d.origin, conn.dialect.name), _d.origin.startswith(f"{FORGOT}:")
        since = origin.in_(select(_u.turn).where(_u.session == one.session, _u.opened_at > at))
        heard = cast(_i.id, Text)
        said = select(heard).where(_i.session == one.session, _i.received_at > at)
        beside = or_(*(origin.in_(said.with_only_columns(literal(f"{kind}:").concat(heard))) for kind in BESIDE))
        conn.execute(delete(t.deliveries).where(_d.session == one.session, ~since, ~beside, ~told))
        conn.execute(delete(t.hooks).where(_h.session == one.session, _h.at <= at))
        conn.execute(delete(t.troubles).where(t.troubles.c.session == one.session))
        conn.execute(delete(t.budgets).where(_known_files("/".join(one.key.split("/")[:3]), conn.dialect.name)))
        conn.execute(
            delete(t.memory).where(
                or_(*(of_scope(scope, conn.dialect.name) for scope in (one.key, f"session/{one.key}")))
            )
        )
        shown = func.substr(t.audit.c.object, 1, len(one.key)) == literal(one.key)
        conn.execute(
            update(t.audit).where(shown).values(before="", after="", words="A part of somebody who is forgotten.")
        )
        conn.execute(update(t.sessions).where(_s.session == one.session).values(policy=None))
        return 0

    return body


def remove_planned(
    who: Sequence[Account], keys: Collection[str], at: int, blank: Blank
) -> Callable[[Connection], None]:
    """What they have had set for later up to that time, in these conversations or wherever it names them; and what has come due of it since: its words are
    theirs from before. To be done first of all, so that no more comes due."""

    def body(conn: Connection) -> None:
        gone = _drop_planned(conn, [*_planned_in(conn, keys), *_planned_for(conn, who)], at)
        if gone:
            blank_messages(gone, blank)(conn)

    return body


def _planned_in(conn: Connection, keys: Collection[str]) -> list[str]:
    query = select(t.schedules.c.schedule).where(t.schedules.c.session_key.in_(sorted(keys)))
    return [str(one) for one in conn.execute(query).scalars()]


def _planned_for(conn: Connection, who: Sequence[Account]) -> list[str]:
    """What is set in whatever chat, and names one of them."""
    named = [_naming(person) for _, person in who]
    rows = conn.execute(select(t.schedules.c.schedule, t.schedules.c.body)).all()
    return [str(row[0]) for row in rows if any(one.search(bytes(row[1])) for one in named)]


def _drop_planned(conn: Connection, planned: Iterable[str], at: int) -> list[int]:
    """Gone is what of this was asked for up to that time. The messages that have come of it since."""
    came, c, o = list[int](), t.schedules.c, t.occurrences.c
    for keys in padded([one for one in planned if not _asked_later(conn, one, at)]):
        conn.execute(select(c.schedule).where(c.schedule.in_(keys)).with_for_update()).all()  # no more comes due
        query = select(_i.id).join(t.occurrences, o.inbox == _i.id).where(o.schedule.in_(keys), _i.received_at > at)
        came += conn.execute(query).scalars()
        conn.execute(delete(t.occurrences).where(o.schedule.in_(keys)))
        conn.execute(delete(t.schedules).where(c.schedule.in_(keys)))
    return came


def _asked_later(conn: Connection, schedule: str, at: int) -> bool:
    """Its name says by which message it was asked for, or in which turn."""
    by = [*schedule.split(":"), ""][1]
    if by.isdigit():
        asked = conn.execute(select(_i.received_at).where(_i.id == int(by))).scalar()
    else:
        asked = conn.execute(select(_u.opened_at).where(_u.turn == by)).scalar()
    return asked is not None and asked > at


def _naming(person: str) -> re.Pattern[bytes]:
    """Finds a person in what is stored as a platform brought it, or as we keep it."""
    return re.compile(_NAMED + re.escape(person.encode()) + rb'"?(?![A-Za-z0-9])')


def _known_files(holder: str, dialect: str) -> ColumnElement[bool]:
    """By which files of somebody would be known again."""
    scope = t.budgets.c.scope
    return and_(begins(scope, FILE_SCOPE, dialect), scope.endswith(f":{holder}", autoescape=True))


def blank_summaries(rows: Collection[int]) -> Callable[[Connection], int]:
    """A summary in a shared conversation may hold their words: another word stands in its place."""

    def body(conn: Connection) -> int:
        count = 0
        query = select(_j.id, _j.body, _j.at).where(_j.id.in_([*rows]))
        for row, stored, at in conn.execute(query).all():
            old = timed(bytes(stored), at)
            pieces.release(conn, [old])
            event = orjson.loads(old) if old.startswith(b"{") else {"at": 0, "kept_turns": 0}
            made = orjson.dumps(event | {"summary": SUMMARY})
            conn.execute(update(t.journal).where(_j.id == row).values(body=made))
            count += 1
        return count

    return body


def remove_the_rest(who: Sequence[Account]) -> Callable[[Connection], None]:
    """What is kept under the person's own name: memory, joined accounts, chats, codes, names, and what could not be taken in."""

    def body(conn: Connection) -> None:
        for account, person in who:
            # In a group's memory, or everybody's.
            conn.execute(delete(t.memory).where(t.memory.c.author == f"{account}/{person}"))
            door = account if account in ("api", "web") else ""
            if door:
                conn.execute(delete(t.memory).where(of_scope(f"{door}/{person}", conn.dialect.name)))
                conn.execute(delete(t.budgets).where(_known_files(f"{door}/{person}", conn.dialect.name)))
            for table in (t.links, t.link_codes, t.places):
                conn.execute(delete(table).where(table.c.account == account, table.c.person == person))
            mine = and_(t.people.c.account == account, t.people.c.person == person)
            pending = t.people.c.state.not_in(
                [s.value for s in (PersonState.APPROVED, PersonState.ADMIN, PersonState.REVOKED)]
            )
            conn.execute(delete(t.people).where(mine, pending))
            conn.execute(update(t.people).where(mine).values(name="", code=""))
            named, n = _naming(person), t.unread.c
            for row in conn.execute(select(n.account, n.platform_key, n.body)).all():
                if named.search(bytes(row[2])):
                    conn.execute(delete(t.unread).where(n.account == row[0], n.platform_key == row[1]))

    return body
