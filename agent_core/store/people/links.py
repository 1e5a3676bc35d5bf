"""Joining accounts by a code: the transactions that stand alone, and what is read of joined accounts.

Laws: a code joins once, before its time is over, and never an account with itself; whoever repeats the same message is told the
same; an account is one person's at most; an account has one open code at most.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, delete, func, insert, select, update

from agent_core.store import tables as t
from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, Redeemed

LINK_LOCK = 0x6F757473_00000001 - (1 << 63)
"""Advisory lock on PostgreSQL, in a space where no node's number is: accounts are joined one pair at a time."""


def put_code(code: LinkCode) -> Callable[[Connection], None]:
    """Make `code` the account's only open code."""

    def body(conn: Connection) -> None:
        _alone(conn)
        conn.execute(
            delete(t.link_codes).where(
                t.link_codes.c.account == code.account,
                t.link_codes.c.person == code.person,
                t.link_codes.c.redeemed.is_(None),
            )
        )
        conn.execute(insert(t.link_codes), t.LINK_CODE.values(code))

    return body


def redeem(code: str, by: LinkRow, message: str, now: int, most: int) -> Callable[[Connection], Redeemed]:
    """Join the account `by` with the one where `code` was asked for; `by.who` is the person's id if neither has one.

    `message` is the message in which it was typed; a person has at most `most` accounts.
    """

    def body(conn: Connection) -> Redeemed:
        _alone(conn)
        row = conn.execute(
            t.LINK_CODE.query.add_columns(t.link_codes.c.redeemed).where(t.link_codes.c.code == code)
        ).one_or_none()
        if row is None:
            return Redeemed(LinkOutcome.UNKNOWN)
        found, redeemed = t.LINK_CODE.make(row), row[-1]
        if redeemed == message:
            return Redeemed(LinkOutcome.JOINED, found)
        if redeemed is not None or found.until <= now:
            return Redeemed(LinkOutcome.UNKNOWN)
        if (found.account, found.person) == (by.account, by.person):
            return Redeemed(LinkOutcome.OWN, found)
        giver, taker = _who(conn, found.account, found.person), _who(conn, by.account, by.person)
        if giver and taker:
            return Redeemed(LinkOutcome.SAME if giver == taker else LinkOutcome.ELSEWHERE, found)
        who = giver or taker or by.who
        joined = conn.execute(select(func.count()).select_from(t.links).where(t.links.c.who == who)).scalar_one()
        fresh = [
            LinkRow(account, person, who, name, username, now)
            for known, account, person, name, username in (
                (giver, found.account, found.person, found.name, found.username),
                (taker, by.account, by.person, by.name, by.username),
            )
            if not known
        ]
        if joined + len(fresh) > most:
            return Redeemed(LinkOutcome.FULL, found)
        conn.execute(insert(t.links), [t.LINK.values(one) for one in fresh])
        conn.execute(update(t.link_codes).where(t.link_codes.c.code == code).values(redeemed=message))
        return Redeemed(LinkOutcome.JOINED, found)

    return body


def _alone(conn: Connection) -> None:
    """SQLite has one writer; on PostgreSQL several nodes may want to join the same accounts at once."""
    if conn.dialect.name == "postgresql":
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LINK_LOCK})")


def _who(conn: Connection, account: str, person: str) -> str:
    """Whose an account is; empty if it is joined with no other."""
    links = t.links.c
    mine = conn.execute(select(links.who).where(links.account == account, links.person == person)).scalar_one_or_none()
    if mine is None:
        return ""
    others = select(func.count()).select_from(t.links).where(links.who == mine)
    if conn.execute(others).scalar_one() > 1:
        return mine
    conn.execute(delete(t.links).where(links.who == mine))  # the others have left
    return ""
