"""What a message counts for by the day: in the commit that stores it, on both engines, however many come at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agent_core.store.budgets.rows import DAILY, BroughtFile, Charge
from agent_core.store.inbox.rows import Accepted, NewMessage
from agent_core.store.sessions.rows import OwnersChange, SessionChange
from agent_core.store.store import NoRoomToday, Store
from tests.store.support import opened, row, turn_of

DAY = Charge(f"{DAILY}incoming:ada", 1_000, 2_000, 10, 100)


def message(key: str, *charges: Charge, session: str = "s") -> NewMessage:
    return NewMessage("a", key, session, "normal", b"{}", 1_500, None, f"s_{key}", charges=charges)


async def spent(store: Store, charge: Charge = DAY) -> int:
    level = (await store.budgets.levels([charge.key])).get(charge.key)
    return level.spent.tokens if level is not None else 0


async def test_the_day_is_never_overrun_by_those_who_come_at_once(where: str) -> None:
    async with opened(where) as store:
        answers = await asyncio.gather(
            *(store.inbox.accept(message(f"k{n}", DAY, session=f"s{n}")) for n in range(25)), return_exceptions=True
        )
        assert sum(isinstance(answer, Accepted) for answer in answers) == 10
        refused = [answer for answer in answers if isinstance(answer, NoRoomToday)]
        assert len(refused) == 15
        assert {(error.scope, error.used, error.limit, error.adding) for error in refused} == {
            (DAY.scope, 100, 100, 10)
        }
        assert await spent(store) == 100
        kept = [await store.inbox.by_key("a", f"k{n}") for n in range(25)]
        assert sum(row is not None for row in kept) == 10


async def test_two_nodes_share_one_day(postgres: str) -> None:
    async with opened(postgres) as one, opened(postgres) as other:
        offers = [
            store.inbox.accept(message(f"{name}{n}", DAY, session=f"{name}{n}"))
            for n in range(15)
            for name, store in (("x", one), ("y", other))
        ]
        answers = await asyncio.gather(*offers, return_exceptions=True)
        assert sum(isinstance(answer, Accepted) for answer in answers) == 10
        assert sum(isinstance(answer, NoRoomToday) for answer in answers) == 20
        assert await spent(other) == 100


async def test_a_redelivery_counts_once_and_is_answered_when_the_day_is_full(where: str) -> None:
    async with opened(where) as store:
        first = await store.inbox.accept(message("k", replace(DAY, amount=100)))
        again = await store.inbox.accept(message("k", replace(DAY, amount=100)))
        assert again.duplicate
        assert again.inbox_id == first.inbox_id
        assert await spent(store) == 100


async def test_what_begins_no_conversation_counts_for_none(where: str) -> None:
    begins = Charge(f"{DAILY}sessions:ada", 1_000, 2_000, 1, 1, new_session=True)
    async with opened(where) as store:
        await store.inbox.accept(message("k1", begins, session="one"))
        await store.inbox.accept(message("k2", begins, session="one"))
        assert await spent(store, begins) == 1
        with pytest.raises(NoRoomToday):
            await store.inbox.accept(message("k3", begins, session="two"))
        assert await store.sessions.by_key("two") is None


async def test_no_room_for_one_count_counts_for_none(where: str) -> None:
    other = Charge(f"{DAILY}whole:ada", 1_000, 2_000, 10, 50, already=45)
    async with opened(where) as store:
        with pytest.raises(NoRoomToday):
            await store.inbox.accept(message("k", DAY, other))
        assert await spent(store) == 0


async def test_what_has_no_room_today_changes_nothing_of_its_conversation_either(where: str) -> None:
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
        again = replace(
            message("k", DAY, session="chat"),
            change=OwnersChange(session, epoch, SessionChange(undo=turn, forget=True)),
        )
        with pytest.raises(NoRoomToday):
            await store.inbox.accept(replace(again, charges=(replace(DAY, amount=101),)))
        kept, found = await store.turns.one(turn), await store.sessions.one(session)
        assert kept is not None
        assert found is not None
        assert (kept.undone, found.since, found.tip) == (0, 0, -1)
        await store.inbox.accept(again)
        kept = await store.turns.one(turn)
        assert kept is not None
        assert kept.undone == 1


WEEK_MS = 7 * 24 * 3600 * 1000


def bringing(*files: tuple[str, int], limit: int = 100, amount: int = 0) -> Charge:
    known = tuple(BroughtFile(f"{DAILY}file:{name}:ada", size) for name, size in files)
    return replace(DAY, files=known, amount=amount, limit=limit)


async def test_a_file_counts_when_it_is_new_and_not_when_it_is_brought_again(where: str) -> None:
    async with opened(where) as store:
        await store.inbox.accept(message("k1", bringing(("one", 60))))
        for number in range(5):
            await store.inbox.accept(message(f"again{number}", bringing(("one", 60))))
        await store.inbox.accept(message("k2", bringing(("one", 60), ("two", 30))))
        assert await spent(store) == 90
        with pytest.raises(NoRoomToday) as refused:
            await store.inbox.accept(message("k3", bringing(("one", 60), ("three", 11), ("two", 30))))
        assert (refused.value.used, refused.value.adding) == (90, 11)
        with pytest.raises(NoRoomToday):  # what was refused is as new as before
            await store.inbox.accept(message("k4", bringing(("three", 11))))
        await store.inbox.accept(message("k5", bringing(("two", 30), limit=1)))
        later = replace(bringing(("one", 60)), window=2_000 + WEEK_MS)
        await store.inbox.accept(replace(message("k6", later), received_at=1_501 + WEEK_MS))
        assert await spent(store, later) == 60


async def test_of_equal_files_that_come_at_once_one_counts(where: str) -> None:
    async with opened(where) as store:
        await asyncio.gather(
            *(store.inbox.accept(message(f"k{n}", bringing(("one", 60)), session=f"s{n}")) for n in range(9))
        )
        assert await spent(store) == 60


async def test_what_is_compared_with_the_whole_is_only_what_is_new(where: str) -> None:
    async with opened(where) as store:
        whole = replace(bringing(("one", 60), limit=70), scope=f"{DAILY}whole:ada", already=20, counts=False)
        with pytest.raises(NoRoomToday):
            await store.inbox.accept(message("k0", whole, bringing(("one", 60))))
        await store.inbox.accept(message("k1", bringing(("one", 60))))
        await store.inbox.accept(message("k2", whole, bringing(("one", 60))))
        assert await spent(store, whole) == 0


async def test_what_an_edit_adds_to_a_waiting_message_counts_for_the_day(where: str) -> None:
    async with opened(where) as store:
        await store.inbox.accept(message("k1", bringing(("one", 60))))
        for _ in range(2):
            assert await store.inbox.reword("a", "k1", b"[1]", (bringing(("one", 60), ("two", 30)),), 1_600)
        assert await spent(store) == 90
        with pytest.raises(NoRoomToday):
            await store.inbox.reword("a", "k1", b"[2]", (bringing(("one", 60), ("three", 11)),), 1_600)
        kept = await store.inbox.by_key("a", "k1")
        assert kept is not None
        assert kept.body == b"[1]"
        assert not await store.inbox.reword("a", "unknown", b"[3]", (bringing(("four", 5)),), 1_600)
        assert await spent(store) == 90


async def test_what_is_remembered_is_counted_by_scope(where: str) -> None:
    async with opened(where) as store:
        await store.memory.put("ada", "memory", "ä", "zwölf", at_ms=1)
        await store.memory.put("ada", "memory", "b", "two", at_ms=1)
        await store.memory.put("ada/folder", "todo", "list", "[]", at_ms=1)
        found = await store.overview.memories()
        assert sorted(found) == [("ada", "memory", 11, 2), ("ada/folder", "todo", 6, 1)]
