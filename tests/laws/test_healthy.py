"""The auditor is silent where nothing is wrong, whatever was done in order to what a gateway has left: each is done to a copy of it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.limits.retention import Keep
from agent_core.ports import SystemClock, SystemIds
from agent_core.store.keeping.backup import back_up
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.store import Store, open_store
from agent_core.store.webhooks.rows import HookRow, ReceiverRow
from gateway.laws.law import Law
from gateway.operate.database import restore
from gateway.retention.forgetting import Forgetting
from gateway.retention.upkeep import FilePlaces, Upkeep
from gateway.version import program_version
from gateway.webhooks.deciding import Attempt, settled
from tests.laws.look import breaches
from tests.laws.world import Left, copied, sqlite_left
from tests.store.support import FakeClock

DAY_MS = 24 * 3_600_000
ACCOUNT = "telegram/7000000001"
CLOCK = SystemClock()

Done = Callable[[Store, FakeClock, Path], Awaitable[object]]


def all_of(path: str, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(query).fetchall()


async def busiest(store: Store) -> tuple[str, str, int]:
    """The conversation that speaks most: its id, its key and its epoch, under which it is ours from here on."""
    (key,) = max(all_of(store.shown, "select key from sessions"))[:1]
    found = await store.sessions.by_key(str(key))
    assert found is not None
    return found.session, found.key, await store.sessions.claim(found.session)


async def a_chat_gets_another_id(store: Store, clock: FakeClock, folder: Path) -> None:
    _, key, _ = await busiest(store)
    await store.sessions.move_chat(f"{ACCOUNT}/", key.split("/")[2], "-1004711")


async def a_chat_gets_the_id_of_one_in_which_somebody_has_spoken(store: Store, clock: FakeClock, folder: Path) -> None:
    keys = [str(one[0]) for one in all_of(str(folder / "copy.db"), "select key from sessions order by key")]
    first, second, *_ = (key.split("/")[2] for key in keys)
    await store.sessions.move_chat(f"{ACCOUNT}/", first, second)


async def a_person_is_forgotten(store: Store, clock: FakeClock, folder: Path) -> None:
    async def nobody_runs(_: object) -> None: ...

    forgetting = Forgetting(store, clock, SystemIds(clock), folder, None, None, quiet=nobody_runs, alone=True)
    (person,) = all_of(str(folder / "copy.db"), "select person from inbox where person <> '' order by person limit 1")
    await forgetting.begin((ACCOUNT, str(person[0])), "a test")
    await forgetting.finish_all()


async def what_is_old_goes(store: Store, clock: FakeClock, folder: Path) -> None:
    clock.now += 400 * DAY_MS
    await Upkeep(store, clock, Keep(journals_days=5), FilePlaces(folder), told=2).look()


async def a_turn_is_taken_back(store: Store, clock: FakeClock, folder: Path) -> None:
    session, _, epoch = await busiest(store)
    (last,) = await store.turns.latest(session, 1)
    await store.sessions.change(session, epoch, SessionChange(undo=last.turn))


async def a_conversation_is_set_aside(store: Store, clock: FakeClock, folder: Path) -> None:
    session, _, _ = await busiest(store)
    await store.asides.set_aside(session, "damaged", SystemIds(clock).new("s"))


async def webhooks_and_channels_of_platforms_are_kept(store: Store, clock: FakeClock, folder: Path) -> None:
    rows = [
        HookRow(f"msg_{n}", name, "alert", "", "", b"{}", clock.now) for n, name in enumerate(("on", "away", "gone"))
    ]
    await store.hooks.put(rows)
    for row, attempt in zip(rows, (Attempt(200), Attempt(503, retry_after="86400"), Attempt(410)), strict=True):
        done, receiver = settled(row, ReceiverRow(row.receiver, "https://x"), attempt, clock.now, 0.5)
        await store.hooks.settle([done], [receiver])
    await store.hooks.put([replace(rows[2], message="msg_9")])  # told by a gateway that did not know yet
    await store.inbox.move_cursor("slack/T1", "C1", f"{clock.now / 1000 + 60:.6f}")
    await store.inbox.move_cursor("discord/1", "23", str(clock.now - 1_420_070_400_000 << 22))
    await store.inbox.reserve("discord/1", "starts:0", 60_000)


async def another_gateway_begins_and_ends(store: Store, clock: FakeClock, folder: Path) -> None: ...


def left_by(story: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Left:
    base = tmp_path_factory.getbasetemp()
    return copied(sqlite_left(story, base / "laws"), tmp_path)


@pytest.fixture
def left(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Nothing is to come in it: later, while no gateway runs, that would be due."""
    found = left_by("rest", tmp_path, tmp_path_factory)
    with closing(sqlite3.connect(found.where)) as db, db:
        db.execute("UPDATE schedules SET state = 'cancelled', next_at = NULL WHERE state = 'active'")
    return found


@pytest.fixture
def left_open(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Left:
    return left_by("middle", tmp_path, tmp_path_factory)


ALL: tuple[Done, ...] = (
    a_chat_gets_another_id,
    a_chat_gets_the_id_of_one_in_which_somebody_has_spoken,
    a_person_is_forgotten,
    what_is_old_goes,
    a_turn_is_taken_back,
    a_conversation_is_set_aside,
    webhooks_and_channels_of_platforms_are_kept,
    another_gateway_begins_and_ends,
)


@pytest.mark.parametrize("do", [pytest.param(one, id=one.__name__) for one in ALL])
async def test_what_was_done_in_order_breaks_no_law(do: Done, left: Left, tmp_path: Path) -> None:
    clock = FakeClock(left.at)
    ids = SystemIds(clock)
    async with open_store(left.where, clock=clock, ids=ids, version=program_version()) as store:
        await do(store, clock, tmp_path)
    for later in (0, 3_600_000):
        assert await breaches(left.where, now=clock.now + later) == []


@pytest.mark.parametrize("resume", [False, True])
async def test_a_backup_that_was_put_back_breaks_no_law(left: Left, tmp_path: Path, *, resume: bool) -> None:
    backup = tmp_path / "backup.db"
    await asyncio.to_thread(back_up, Path(left.where), backup)
    await restore(backup, Path(left.where), left.at + DAY_MS, resume=resume)
    assert await breaches(left.where, now=left.at + DAY_MS) == []


async def test_what_was_open_in_a_backup_that_was_put_back_breaks_no_law(left_open: Left, tmp_path: Path) -> None:
    backup, where = tmp_path / "backup.db", Path(left_open.where)
    await asyncio.to_thread(back_up, where, backup)
    await restore(backup, where, left_open.at + 60_000, resume=False)
    found = await breaches(left_open.where, now=left_open.at + DAY_MS)
    assert [one for one in found if one.law is not Law.HELD] == [], "what was held is let go by the next start"


@pytest.mark.parametrize("days", [-30, -1, 1, 30])
async def test_a_clock_that_is_set_breaks_no_law(left: Left, days: int) -> None:
    assert await breaches(left.where, now=left.at + days * DAY_MS) == []
