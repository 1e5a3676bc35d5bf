"""People and private chats of a batch, written."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, and_, bindparam, delete, not_, or_, select, update

from agent_core.store import tables as t
from agent_core.store.batch.facts import Facts

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


def store(conn: Connection, facts: Facts) -> None:
    """What goes on in people's chats."""
    if facts.pointed:
        conn.execute(_POINTED, [{"which": place, "new_continues": other} for place, other in facts.pointed.items()])
    if facts.unlinked:
        parted = [{"which_account": account, "which_person": person} for account, person in sorted(facts.unlinked)]
        for statement in (_LINK_GONE, _CODES_GONE, _PLACES_PARTED):
            conn.execute(statement, parted)
