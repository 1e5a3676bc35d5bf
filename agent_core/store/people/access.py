"""What can be asked of people, and what can be written."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import func, select

from agent_core.store import tables as t
from agent_core.store.database.asks import Rows, StoreReading
from agent_core.store.database.keys import among
from agent_core.store.database.node import Writing
from agent_core.store.keeping.forgetting import NOBODY_KNOWS, people_of
from agent_core.store.people import links
from agent_core.store.people.ops import PutPerson, PutPlace, Unlink
from agent_core.store.people.rows import LinkCode, LinkRow, PersonRow, PersonState, PlaceRow, Redeemed

UNSAID = "unreadable"
"""Who decided about a person of whom what is stored makes no sense."""


class PeopleReads(StoreReading):
    """Every method raises `StorageUnavailable` if the database cannot be read."""

    async def all(self, account: str = "") -> list[PersonRow]:
        """Everybody who is known, the newest first; of one account, if it is named."""
        p = t.people.c
        query = t.PERSON.query.order_by(p.at.desc())
        if account:
            query = query.where(p.account == account)
        found = await self._asks.made(query, _person)
        odd = next((f"Nobody can say what {one.account}/{one.person} may do." for one in found if one.by == UNSAID), "")
        self._asks.note_left_out("people", odd)
        return found

    async def these(self, who: Collection[tuple[str, str]]) -> list[PersonRow]:
        """Those of them that are known, by account and person."""
        named = among((t.people.c.account, t.people.c.person), sorted(who))
        return await self._asks.made(t.PERSON.query.where(named), _person) if who else []

    async def spoke(self) -> list[PersonRow]:
        """Whoever asked a turn that is known, who spoke last first."""
        u = t.turns.c
        query = select(u.people, func.max(u.opened_at)).where(u.people != "").group_by(u.people)
        return await asyncio.to_thread(_spoke, await self._asks.all(query))

    async def places(self) -> list[PlaceRow]:
        """All private chats that are known."""
        return await self._asks.made(t.PLACE.query, t.PLACE.make)

    async def links(self) -> list[LinkRow]:
        """All joined accounts, in the order in which they were joined."""
        c = t.links.c
        return await self._asks.made(t.LINK.query.order_by(c.at, c.account, c.person), t.LINK.make)


def _person(row: Sequence[Any]) -> PersonRow:
    """Of whom nobody knows what they may do, they may do nothing."""
    values = list(row)
    if values[_STATE] not in _STATES:
        values[_STATE], values[_BY] = PersonState.REVOKED, UNSAID
    return t.PERSON.make(values)


_STATES = frozenset(PersonState)
_STATE, _BY = t.PERSON.names.index("state"), t.PERSON.names.index("by")


def _spoke(rows: Rows) -> list[PersonRow]:
    last: dict[tuple[str, str], int] = {}
    for people, at in rows:
        for account, person in people_of(people) - {NOBODY_KNOWS}:
            last[account, person] = max(last.get((account, person), 0), at)
    found = [PersonRow(*who, PersonState.SPOKE, at=at) for who, at in last.items()]
    return sorted(found, key=lambda row: (-row.at, row.account, row.person))


class People(PeopleReads, Writing):
    """All of it, for the node that writes."""

    async def put(self, person: PersonRow) -> None:
        """Promises: what is known of a person, and what they may do, is stored. Who is revoked is unlinked as well."""
        await self._writer.submit(PutPerson(person))

    async def put_place(self, place: PlaceRow) -> None:
        """Promises: the private chat is known. If it was before, nothing changes."""
        await self._writer.submit(PutPlace(place))

    async def put_code(self, code: LinkCode) -> None:
        """Promises: whoever types this code in another account joins it with the code's; an older code does nothing any more."""
        await self._writer.alone(links.put_code(code))

    async def redeem(self, code: str, by: LinkRow, message: str, most: int) -> Redeemed:
        """Promises: if the answer is `JOINED`, the code's account and `by` are one person's, and the code joins nobody else.

        `by.who` is used if neither account has joined any other. The same `message` gets the same answer again.
        """
        return await self._writer.alone(links.redeem(code, by, message, self._node.clock.now_ms(), most))

    async def unlink(self, account: str, person: str) -> None:
        """Promises: the account is joined with no other, its code is void, and nothing goes on across its border."""
        await self._writer.submit(Unlink(account, person))
