"""Who was shut out stays so, whatever was read just before: by a key, as a person, with an account that was taken out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.ports import SystemIds
from agent_core.store.people.rows import LinkRow, PersonRow, PersonState, PlaceRow
from agent_core.store.sessions.rows import PlaceChange
from gateway.people import keys
from gateway.people.directory import PeopleDirectory
from gateway.people.keyring import Keyring
from gateway.people.members import Members
from gateway.sharing.portion import KEYS, PEOPLE, Portion
from tests.store.support import FakeClock

ANN = PersonRow("telegram/1", "7", PersonState.APPROVED, at=1)
HOME, AWAY = SessionKey("telegram", "1", "7").text(), SessionKey("discord", "2", "8").text()


class Slow:
    """A table; what is read of it comes when it is let, as it was when it was asked."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows, self.asked = [*rows], 0
        self.may_come = asyncio.Event()

    async def all(self) -> list[Any]:
        found, self.asked = [*self.rows], self.asked + 1
        if self.asked == 1:
            await self.may_come.wait()
        return found

    async def put(self, row: Any) -> None:
        self.rows = [row]


async def begun(table: Slow, reading: Any) -> asyncio.Task[None]:
    task = asyncio.create_task(reading)
    async with asyncio.timeout(5):
        while not table.asked:
            await asyncio.sleep(0)
    return task


async def nobody_cut(_: object) -> None: ...


async def test_who_is_shut_out_while_people_are_read_is_not_let_in_by_that() -> None:
    table = Slow([ANN])
    clock = FakeClock()
    store = cast("Any", SimpleNamespace(people=table))
    members = Members(store, clock, SystemIds(clock), nobody_cut)
    reading = await begun(table, members.open())
    await members.put(replace(ANN, state=PersonState.REVOKED, at=2))
    table.may_come.set()
    await reading
    assert [one.state for one in members.people()] == [PersonState.REVOKED]


def directory_of(**tables: Any) -> PeopleDirectory:
    clock = FakeClock()
    store = cast("Any", SimpleNamespace(people=SimpleNamespace(**tables)))
    return PeopleDirectory(store, clock, SystemIds(clock), lambda _: True, lambda: None, allowed=True)


async def none() -> list[Any]:
    return []


async def test_what_goes_on_in_a_chat_since_it_was_read_goes_on_there() -> None:
    table = Slow([PlaceRow(HOME, "telegram/1", "7", at=1)])
    directory = directory_of(places=table.all, links=none)
    directory._places = {row.place: row for row in table.rows}
    reading = await begun(table, directory.open())
    table.rows = [replace(table.rows[0], continues=AWAY)]
    directory.pointed(PlaceChange(HOME, AWAY))
    table.may_come.set()
    await reading
    assert directory._places[HOME].continues == AWAY


async def test_an_account_that_is_taken_out_while_links_are_read_is_out() -> None:
    table = Slow([LinkRow("telegram/1", "7", "h1", "Ann", "")])

    async def unlink(*_: object) -> None:
        table.rows = []

    directory = directory_of(places=none, links=table.all, unlink=unlink)
    reading = await begun(table, directory.refresh())
    await directory.unlink("telegram/1", "7")
    table.may_come.set()
    await reading
    assert directory._links == []


@pytest.mark.parametrize("late", [True, False])
async def test_a_key_that_is_revoked_while_keys_are_read_opens_nothing(late: bool) -> None:
    clock = FakeClock()
    good = keys.made("ci", keys.new_key(b"k" * 37), keys.terms_from({}, keys.Nameable()), "operator", 1)
    table = Slow([good])
    ring = Keyring(cast("Any", SimpleNamespace(apikeys=table)), clock, SystemIds(clock))
    reading = await begun(table, ring.open())
    await table.put(keys.revoked(good, 2))
    again = asyncio.create_task(ring.open())
    for _ in range(10 if late else 0):
        await asyncio.sleep(0)
    table.may_come.set()
    await asyncio.gather(reading, again)
    assert not ring.opens_anything()


# ---------------------------------------------------------------------- and the other gateways hear of it


class Noted:
    """Tables that note what is stored; `tell` notes what the others are told."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.rows: dict[str, Any] = {}

    def tell(self, word: str = PEOPLE, *, soon: bool = True) -> None:
        assert soon
        self.log.append(word)

    async def all(self) -> list[Any]:
        return [*self.rows.values()]

    async def add(self, row: Any, _: object) -> bool:
        self.log.append("stored")
        self.rows[row.name] = row
        return True

    async def change(self, name: str, made: Callable[[Any], Any], _: object) -> None:
        await self.add(made(self.rows[name]), _)

    async def put(self, *_: object) -> None:
        self.log.append("stored")

    unlink = put_place = put

    async def links(self) -> list[Any]:
        return []


async def test_what_becomes_of_a_key_is_told_to_the_others_as_soon_as_it_is_stored() -> None:
    noted, clock, portion = Noted(), FakeClock(), Portion(whole=False)
    portion.tell = noted.tell
    ring = Keyring(cast("Any", SimpleNamespace(apikeys=noted)), clock, SystemIds(clock), portion=portion)
    for act in (
        lambda: ring.add("ci", {}, keys.Nameable()),
        lambda: ring.change("ci", {"owner": "ann"}, keys.Nameable()),
        lambda: ring.rotate("ci", 0),
        lambda: ring.revoke("ci"),
    ):
        noted.log.clear()
        await act()
        assert noted.log == ["stored", KEYS]


async def test_who_is_let_in_or_shut_out_is_told_to_the_others_as_soon_as_it_is_stored() -> None:
    noted, clock = Noted(), FakeClock()
    store = cast("Any", SimpleNamespace(people=noted))
    members = Members(store, clock, SystemIds(clock), nobody_cut, link=True, changed=noted.tell)
    await members.put(ANN)
    assert noted.log == ["stored", PEOPLE]
    noted.log.clear()
    chat = ChatOrigin(ChatAddress("telegram", "1", "7"), ChatKind.PRIVATE, ChatPerson("7", "Ann"))
    await members.directory.meet(SessionKey("telegram", "1", "7"), chat)
    assert noted.log == ["stored", PEOPLE], "whose a chat is"
    noted.log.clear()
    members.directory.pointed(PlaceChange(HOME, AWAY))
    assert noted.log == [PEOPLE], "what goes on there, which was stored with a command's answer"
    noted.log.clear()
    await members.directory.unlink("telegram/1", "7")
    assert noted.log == ["stored", PEOPLE]
