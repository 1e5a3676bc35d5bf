"""What is old goes, and nothing that is open, however old it is: one store, in which each kind lies beside its like that is still needed."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import literal_column, select, text

from agent_core.limits.budgets import Amount, Level, Pot
from agent_core.limits.retention import DAY_MS, Keep
from agent_core.limits.spend import Budget
from agent_core.store import tables as t
from agent_core.store.audit import AuditRow
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, DeliveryState
from agent_core.store.keeping import pruning
from agent_core.store.keeping.retaining import empty_message, remove_files, remove_journals, remove_sessions
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.webhooks.rows import HookRow, HookState
from tests.storage.harm import own_disk
from tests.store.support import FakeClock, message, opened, row, session_of, started, turn_of
from tests.store.test_pieces import body, said

LATER = 30 * DAY_MS
SETTLED = (DeliveryState.SENT, DeliveryState.SKIPPED, DeliveryState.FAILED)


def part(origin: str, number: int, state: DeliveryState, at: int) -> DeliveryRow:
    return DeliveryRow(
        "chat", origin, "b", number, number + 1, b"{}", "h", f"{origin}/{number}", state, platform_id="1", at=at
    )


async def test_pruning_leaves_what_is_open(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        then = clock.now
        session, epoch = await session_of(store)
        asked = await store.inbox.accept(message("asked", at=then))
        _, _, open_turn = await started(store, asked, epoch)
        waiting = await store.inbox.accept(message("waiting", at=then))
        over, over_epoch, closed = await turn_of(store, "other chat")
        await store.turns.close(over, over_epoch, closed, [row(1)], "answered", then)
        for whose, at_epoch, origin in ((session, epoch, open_turn), (over, over_epoch, closed)):
            parts = [part(origin, number, state, then) for number, state in enumerate(DeliveryState)]
            await store.deliveries.put(whose, at_epoch, parts)
        hooks = [HookRow(f"m{n}", "r", "turn.ended", session, "t", b"{}", then) for n in range(2)]
        await store.hooks.put(hooks)
        await store.hooks.settle([replace(hooks[0], state=HookState.SENT)])
        pots = [Pot(Budget.PERSON, f"person:{name}", 0, 0) for name in ("held", "paid")]
        for call, pot in (("c1", pots[0]), ("c2", pots[1])):
            await store.budgets.reserve(session, epoch, call, Amount(7), (pot,), then)
        await store.budgets.settle(session, epoch, "c2", Amount(5), (pots[1],), then, estimated=False)

        clock.now += LATER
        await store.inbox.accept(message("newest", "third chat", at=clock.now))
        await store.keeping.prune(clock.now)

        kept = [key for key in ("asked", "waiting") if await store.inbox.by_key("bot", key) is not None]
        assert kept == ["asked", "waiting"]
        assert [one.id for one in await store.inbox.inputs(open_turn)] == [asked.inbox_id]
        assert await store.asides.waiting(session) == [waiting.inbox_id]
        assert len(await store.deliveries.of(open_turn)) == len(DeliveryState), "they are shown while it runs"
        left = {one.row.state for one in await store.deliveries.of(closed)}
        assert left == set(DeliveryState) - set(SETTLED), "what is not there yet is still to be sent"
        assert [await store.hooks.one(f"m{n}") is None for n in range(2)] == [True, False]
        assert await store.budgets.levels([pot.key for pot in pots]) == {pots[0].key: Level(held=Amount(7))}
        await store.budgets.settle(session, epoch, "c1", Amount(5), (pots[0],), then, estimated=False)


async def test_a_journal_goes_once_its_turn_is_over_and_all_of_it_was_shown(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        turns = {name: await turn_of(store, name) for name in ("open", "waits", "shown")}
        for name, (session, epoch, turn) in turns.items():
            if name != "open":
                await store.turns.close(session, epoch, turn, [row(1)], "answered", clock.now)
            state = DeliveryState.WANTED if name == "waits" else DeliveryState.SENT
            await store.deliveries.put(session, epoch, [part(turn, 0, state, clock.now)])
        listed = await store.retaining.old_turns(clock.now + 1, (0, ""), 9)
        assert [one.turn for one in listed] == [turns["shown"][2]]
        assert await store.retaining.old_turns(clock.now, (0, ""), 9) == []
        every = [turn for _, _, turn in turns.values()]
        assert (await store.keeping.remove_some(remove_journals(every, "old"))).count == 1
        assert [len(await store.turns.journal(turn)) for turn in every] == [1, 2, 0]
        assert (await store.keeping.remove_some(remove_journals(every, "old"))).count == 0


async def test_what_a_message_says_is_kept_until_it_was_answered(where: str) -> None:
    async with opened(where) as store:
        _, epoch = await session_of(store)
        asked, waits = [await store.inbox.accept(message(key)) for key in ("asked", "waits")]
        await started(store, asked, epoch)
        for one in (asked, waits):
            await store.keeping.remove(empty_message(one.inbox_id, b'""'))
        found = [await store.inbox.one(one.inbox_id) for one in (asked, waits)]
        assert [one.body for one in found if one is not None] == [b'""', b'"hello"']


async def test_a_conversation_goes_when_nothing_of_it_is_left_and_nobody_comes_back(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        over: dict[str, str] = {}
        for name in ("quiet", "planned", "speaks", "writes"):
            session, epoch, turn = await turn_of(store, name)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", clock.now)
            over[name] = session
        await store.schedules.put(ScheduleRow("a", "reminder", "planned", "telegram/1/7/", 1, "x", b"{}", 1_000, at=5))
        names = {session: name for name, session in over.items()}
        old = clock.now + 1
        clock.now += LATER
        await store.inbox.accept(message("newest", "newest", at=clock.now))
        await store.keeping.prune(clock.now)
        turns = [one.turn for one in await store.retaining.old_turns(clock.now, (0, ""), 9)]
        assert await store.retaining.old_sessions(clock.now, 9, "") == [], "their journals are still there"
        await store.keeping.remove_some(remove_journals(turns, "old"))
        listed = [names[one.session] for one in await store.retaining.old_sessions(clock.now, 9, "")]
        assert sorted(listed) == ["quiet", "speaks", "writes"]
        again = await store.inbox.accept(message("again", "speaks", at=clock.now))
        await started(store, again, await store.sessions.claim(over["speaks"]))
        await store.inbox.accept(message("written", "writes", at=clock.now))
        assert (await store.keeping.remove_some(remove_sessions([*names], old))).count == 2
        left = [name for name in over if await store.sessions.by_key(name) is not None]
        assert left == ["speaks", "writes"]


async def test_what_a_chat_has_set_stays_and_the_title_of_a_conversation_goes_with_it(where: str) -> None:
    clock, kept = FakeClock(), ("telegram/1/7//", "web/page/one//ada", "api/key/two//ada")
    async with opened(where, clock) as store:
        for number, key in enumerate(kept):
            assert await store.sessions.make(f"s{number}", key, '{"metadata":{"title":"Roses"}}')
        clock.now += LATER
        assert [one.key for one in await store.retaining.old_sessions(clock.now, 9, "")] == [*kept[1:]]


async def test_a_file_for_whose_copy_the_disk_has_no_room_is_not_written_anew_and_goes_on(tmp_path: Path) -> None:
    with own_disk(tmp_path / "disk", "18m"):
        async with opened(str(tmp_path / "disk" / "db")) as store:
            for number in range(7):
                words = random.Random(number).randbytes(500_000).hex()
                await store.memory.put("chat", "memory", f"{number}", words, at_ms=1)
            free = shutil.disk_usage(tmp_path / "disk").free
            assert await store.keeping.scrub(None) is False
            assert shutil.disk_usage(tmp_path / "disk").free > free, "the log is empty, and nothing else was written"
            assert await store.memory.delete("chat", "memory", "0")
        async with opened(str(tmp_path / "disk" / "db")) as store:
            assert len(await store.memory.entries("chat", "memory")) == 6


async def test_what_is_told_begins_with_the_turn_that_many_before_the_last_that_counts(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        session, epoch = await session_of(store)
        for number in range(1, 6):
            asked = await store.inbox.accept(message(f"m{number}"))
            _, _, turn = await started(store, asked, epoch)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", clock.now)
        for told, first in ((2, 4), (4, 2), (5, 0), (9, 0)):
            found = await store.retaining.conversations_of([session], told, 0, {})
            assert (told, found[session].first_told) == (told, first)


async def test_a_node_is_known_as_long_as_something_is_in_its_name(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        session, _ = await session_of(store)
    clock.now += LATER
    async with opened(where, clock) as store:
        assert (await store.keeping.prune(clock.now)).nodes == 0
        await store.sessions.claim(session)
        assert (await store.keeping.prune(clock.now)).nodes == 1
        assert (await store.keeping.prune(clock.now)).nodes == 0


@pytest.mark.parametrize("most", [1, 2, 5, 6])
async def test_a_walk_comes_by_everything_old_in_as_many_steps_as_it_takes(sqlite: str, most: int) -> None:
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        for number in range(6):
            kept = await store.inbox.accept(message(f"m{number}", f"chat{number}", at=clock.now))
            if number % 2:
                await store.inbox.drop(kept.inbox_id, "over")
        await store.inbox.accept(message("newest", "newest", at=clock.now + LATER))
        (kind, *_) = pruning.kinds(pruning.Old(clock.now + 1, None, None))
        steps, gone, after = 0, 0, None
        while True:
            walked = await store.keeping.remove(pruning.walk(kind, after, most))
            steps, gone, after = steps + 1, gone + walked.count, walked.after
            if after is None:
                break
        assert (gone, steps) == (3, {1: 7, 2: 4, 5: 2, 6: 2}[most])


async def test_what_was_undone_is_none_of_those_that_are_told(sqlite: str) -> None:
    async with opened(sqlite) as store:
        session, epoch = await session_of(store)
        turns: list[str] = []
        for number in range(1, 6):
            asked = await store.inbox.accept(message(f"m{number}"))
            _, _, turn = await started(store, asked, epoch)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", 5)
            turns.append(turn)
        await store.sessions.change(session, epoch, SessionChange(undo=turns[3]))
        assert await store.turns.told(session, 3) == [turns[1], turns[2], turns[4]]
        found = await store.retaining.conversations_of([session], 2, 0, {})
        assert found[session].first_told == 3
        await store.sessions.change(session, epoch, SessionChange(forget=True))
        found = await store.retaining.conversations_of([session], 2, 0, {})
        assert (found[session].since, found[session].first_told) == (5, 0)
        assert await store.turns.told(session, 3) == []
        anew = await turn_of(store)
        assert await store.turns.told(session, 3) == [], "it is not over"
        await store.turns.close(*anew, [row(1)], "answered", 5)
        assert await store.turns.told(session, 3) == [anew[2]]


async def test_a_file_that_was_sent_again_meanwhile_stays(sqlite: str) -> None:
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        await store.inbox.accept(message("m0", body=body(said(10), picture=True), at=clock.now))
        before = clock.now + LATER
        (old,) = await store.retaining.old_files(before, 9, (0, b""))
        clock.now += 2 * LATER
        await store.inbox.accept(message("m1", body=body(said(11), picture=True), at=clock.now))
        assert (await store.keeping.remove_some(remove_files([old.digest], before))).count == 0
        assert (await store.keeping.remove_some(remove_files([old.digest], clock.now + 1))).count == 1
        assert (await store.keeping.remove_some(remove_files([old.digest], clock.now + 1))).count == 0


async def test_no_number_of_a_message_comes_again_whatever_was_removed(where: str) -> None:
    clock, given = FakeClock(), list[int]()
    async with opened(where, clock) as store:
        for number in range(3):
            kept = await store.inbox.accept(message(f"m{number}", at=clock.now))
            await store.inbox.drop(kept.inbox_id, "over")
            given.append(kept.inbox_id)
            clock.now += LATER
            await store.keeping.prune(clock.now)
            assert await store.inbox.one(given[0]) is None or len(given) == 1
    assert given == sorted(set(given))


async def test_a_file_is_in_use_while_a_message_that_brings_it_waits_or_its_turn_is_open(sqlite: str) -> None:
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        _, epoch = await session_of(store)
        kept = await store.inbox.accept(message("m", body=body(said(10), picture=True), at=clock.now))
        clock.now += LATER
        (file,) = await store.retaining.old_files(clock.now, 9, (0, b""))
        assert file.digest in await store.retaining.files_in_use(clock.now, 5)
        session, epoch, turn = await started(store, kept, epoch)
        assert file.digest not in await store.retaining.files_in_use(clock.now, 5), "its turn has its own words"
        await store.turns.append(session, epoch, turn, [row(1, body(said(10), picture=True))])
        assert file.digest in await store.retaining.files_in_use(clock.now, 5)
        await store.turns.close(session, epoch, turn, [row(2)], "answered", clock.now - LATER)
        assert file.digest not in await store.retaining.files_in_use(clock.now, 5)


async def test_with_a_conversation_goes_what_was_held_for_it(sqlite: str) -> None:
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        pot = Pot(Budget.PERSON, "person:ada", 0, 0)
        sessions: list[str] = []
        for key in ("gone", "stays"):
            session, epoch = await session_of(store, key)
            await store.budgets.reserve(session, epoch, f"call {key}", Amount(7), (pot,), clock.now)
            sessions.append(session)
        clock.now += LATER
        await store.inbox.accept(message("newest", "newest", at=clock.now))
        await store.keeping.prune(clock.now)
        assert (await store.keeping.remove_some(remove_sessions(sessions[:1], clock.now))).count == 1
        left = await store.asks.all(select(t.reservations.c.session))
        assert [str(one[0]) for one in left] == sessions[1:]


@pytest.mark.parametrize(("told", "ours", "kept"), [(0, 0, 2), (LATER, 0, 2), (0, LATER, 2), (LATER, LATER, 0)])
async def test_nothing_is_old_by_a_time_that_this_gateways_clock_has_not_come_to(
    told: int, ours: int, kept: int, sqlite: str
) -> None:
    """Nor by one that has passed by that clock alone: it may have been put forward."""
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        then = clock.now
        for state in ("up", "down", "up"):
            await store.deliveries.note_adapter(AdapterStateRow("telegram/1", then, state))
            then += 1
        clock.now += ours
        await store.keeping.prune(then + told, Keep(bodies_days=1, failures_days=1, audit_days=0))
        assert len(await store.deliveries.adapter_states(0, then + LATER)) - 1 == kept


@pytest.mark.parametrize(
    ("days", "left"),
    [((1, 1, 0), (1, 1)), ((0, 0, 1), (0, 3)), ((1, 0, 0), (1, 1)), ((0, 1, 0), (1, 3))],
)
async def test_each_kind_is_kept_for_its_own_time(
    days: tuple[int, int, int], left: tuple[int, int], sqlite: str
) -> None:
    """Messages, failures, and what was done by hand; 0: for ever. The state of an adapter that was in force then stays."""
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        then = clock.now
        await store.deliveries.act(AuditRow("a_old", then, "with the key", "drop", "", ""))
        for at, state in ((then, "up"), (then + 5, "down"), (then + 9, "up")):
            await store.deliveries.note_adapter(AdapterStateRow("telegram/1", at, state))
        clock.now += LATER
        bodies, failures, audit = days
        await store.keeping.prune(clock.now, Keep(bodies_days=bodies, failures_days=failures, audit_days=audit))
        states = await store.deliveries.adapter_states(0, clock.now)
        assert (len(await store.overview.audit(9)), len(states)) == left
        assert states[-1].at == then + 9


async def test_a_file_is_told_as_written_anew_exactly_where_nothing_is_left_between_its_rows(sqlite: str) -> None:
    free = select(literal_column("freelist_count", t.Int)).select_from(text("pragma_freelist_count"))
    async with opened(sqlite) as store:
        await store.memory.put("chat", "memory", "0", "x" * 400_000, at_ms=1)
        await store.memory.delete("chat", "memory", "0")
        size = await store.retaining.database_bytes()
        for most, anew in ((size - 1, False), (size, True), (None, True)):
            assert await store.keeping.scrub(most) is anew
            assert ((await store.asks.all(free))[0][0] == 0) is anew
