"""Slices: who may claim a conversation, how they change hands, and that the database counts them as we do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import create_async_engine

from agent_core.store import tables as t
from agent_core.store.batch.facts import GivenRow
from agent_core.store.database.lines import PostgresLine
from agent_core.store.database.ownership import Serves
from agent_core.store.database.place import PostgresPlace, parse_place
from agent_core.store.errors import AlreadyRunning, Fenced, OwnedElsewhere
from agent_core.store.inbox.rows import CursorRow, UnreadRow
from agent_core.store.sessions.takeups import Charges
from agent_core.store.slices.calls import LOOK_SECONDS, NodeCalls
from agent_core.store.slices.rows import (
    CHAT_SLICES,
    TENURE,
    Division,
    Tenure,
    account_slice,
    chat_slices,
    slice_of,
    under,
)
from agent_core.store.slices.sql import put_cursors, slice_in
from agent_core.store.store import Store, open_store
from tests.store.support import IDS, FakeClock, message, taken_over


@asynccontextmanager
async def nodes(url: str, count: int) -> AsyncGenerator[list[Store]]:
    async with AsyncExitStack() as stack:
        found: list[Store] = []
        for number in range(count):
            opened = open_store(url, clock=FakeClock(), ids=IDS, version="1", serves=Serves.SHARED)
            found.append(await stack.enter_async_context(opened))
            await found[-1].slices.take_part(f"http://{number}", ["telegram/1"])
        yield found


def all_to(owner: int) -> Mapping[str, int]:
    return dict.fromkeys(chat_slices(), owner)


async def test_who_has_the_slice_may_take_the_conversation_and_nobody_else(postgres: str) -> None:
    async with nodes(postgres, 2) as (first, second):
        await first.slices.divide(chat_slices(), lambda _: all_to(first.node))
        accepted = await second.inbox.accept(message("m1", "telegram/1/2//"), claims=False)
        assert accepted.epoch == 0, "it is stored, and not run where it came"
        with pytest.raises(OwnedElsewhere):
            await second.sessions.claim(accepted.session)
        epoch = await first.sessions.claim(accepted.session)
        seen = await first.slices.divide(chat_slices(), lambda _: all_to(second.node))
        assert seen.held_by(second.node) == set(chat_slices())
        assert (await second.sessions.claim(accepted.session)) == epoch + 1, "it was given, though its owner lives"
        with pytest.raises(OwnedElsewhere):
            await first.sessions.claim(accepted.session)
        with pytest.raises(Fenced):
            await first.deliveries.put(accepted.session, epoch, ())


async def test_what_is_left_is_told_by_slices_and_taken_up_by_who_has_them(postgres: str) -> None:
    async with nodes(postgres, 2) as (first, second):
        await first.slices.divide(chat_slices(), lambda _: all_to(first.node))
        stored = [await first.inbox.accept(message(f"m{n}", f"telegram/1/{n}//")) for n in range(20)]
        some = frozenset(chat_slices()[: CHAT_SLICES // 2])
        others = frozenset(chat_slices()) - some
        found = [await second.left.messages(slices=names) for names in (some, others)]
        assert sorted(one.inbox_id for half in found for one in half) == [one.inbox_id for one in stored]
        assert all(slice_of(one.key) in some for one in found[0])
        assert await second.left.messages(slices=()) == []
        await first.slices.divide((), lambda _: dict.fromkeys(some, second.node))
        names = [one.session for half in found for one in half]
        taken = await second.left.take_up(taken_over, names, {})
        assert set(taken.epochs) == {one.session for one in found[0]}


async def test_what_cannot_be_taken_up_is_under_no_more_suspicion(postgres: str) -> None:
    """Whoever died may have a row locked for some seconds: each look in that time would charge what nobody works on, until it is set aside."""
    async with nodes(postgres, 2) as (first, second):
        await first.slices.divide(chat_slices(), lambda _: all_to(second.node))
        stored = await first.inbox.accept(message("m", "telegram/1/1//"))

        async def take() -> tuple[set[str], int]:
            (left,) = await second.left.messages(stored.session)
            charges = {stored.session: Charges(messages={left.inbox_id: left.suspicion + 1})}
            taken = await second.left.take_up(taken_over, [stored.session], charges)
            (after,) = await second.left.messages(stored.session)
            return set(taken.epochs), after.suspicion

        engine = create_async_engine(postgres.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.begin() as somebody:
            await somebody.execute(select(1).select_from(t.sessions).with_for_update())
            assert await take() == (set(), 0)
        await engine.dispose()
        assert await take() == ({stored.session}, 1)


async def test_slices_change_hands_one_after_the_other(postgres: str) -> None:
    async with nodes(postgres, 3) as stores:

        def take(me: int, there: Division) -> dict[str, int]:
            free = [name for name, owner in there.owners.items() if owner is None]
            return dict.fromkeys(free[:30], me)

        await asyncio.gather(
            *(one.slices.divide(chat_slices(), lambda there, one=one: take(one.node, there)) for one in stores)
        )
        seen = await stores[0].slices.division()
        assert sorted(len(seen.held_by(one.node)) for one in stores) == [4, 30, 30]
        assert {one.node for one in seen.taking_part} == {one.node for one in stores}
        await stores[0].slices.take_part("", ["telegram/1"])
        seen = await stores[1].slices.division()
        assert stores[0].node in seen.living - {one.node for one in seen.taking_part}


async def test_what_a_living_node_has_it_gives_away_itself(postgres: str) -> None:
    slot = account_slice("telegram/1")
    async with nodes(postgres, 3) as (first, second, third):
        await first.slices.divide([slot], lambda _: {slot: first.node})
        for wanted in (second.node, third.node):
            seen = await second.slices.divide([], lambda _, wanted=wanted: {slot: wanted})
            assert (seen.owners[slot], seen.epochs[slot]) == (first.node, 1)
        seen = await first.slices.divide([], lambda _: {slot: third.node})
        assert (seen.owners[slot], seen.epochs[slot]) == (third.node, 2)


async def test_who_has_lost_the_connection_of_an_account_moves_nothing_back(postgres: str) -> None:
    slot = account_slice("telegram/1")
    async with nodes(postgres, 2) as (first, second):
        await first.slices.divide([slot], lambda _: {slot: first.node})
        await first.inbox.move_cursor("telegram/1", "updates", "10")
        await first.slices.divide([], lambda _: {slot: second.node})
        await second.inbox.move_cursor("telegram/1", "updates", "20")
        await first.inbox.move_cursor("telegram/1", "updates", "11")
        late = replace(message("m1", "telegram/1/2//", cursor=("updates", "12")), account="telegram/1")
        assert not (await first.inbox.accept(late, claims=False)).duplicate, "the message is kept all the same"
        assert await first.inbox.cursor("telegram/1", "updates") == "20"
        await first.inbox.move_cursor("slack/1", "updates", "1")
        await first.inbox.move_cursor("slack/1", "updates", "2")
        assert await first.inbox.cursor("slack/1", "updates") == "2"
        await first.unread.keep(UnreadRow("telegram/1", "odd", b"{}", "odd", "1", 1), ("updates", "13"))
        assert await first.inbox.cursor("telegram/1", "updates") == "20", "nor does what cannot be read"
    async with open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=Serves.ALONE) as alone:
        await alone.inbox.move_cursor("telegram/1", "updates", "30")
        assert await alone.inbox.cursor("telegram/1", "updates") == "30", "what several had stands in nobody's way"


@contextmanager
def tenure(epochs: Mapping[str, int]) -> Generator[Tenure]:
    """The block is done under these slices."""
    token = TENURE.set(found := Tenure(epochs))
    try:
        yield found
    finally:
        TENURE.reset(token)


async def test_a_position_is_written_under_the_epoch_of_its_slot(postgres: str) -> None:
    slot = account_slice("telegram/1")
    async with nodes(postgres, 2) as (first, second):
        stale = dict((await first.slices.divide([slot], lambda _: {slot: first.node})).epochs)
        with tenure(stale):
            await first.inbox.move_cursor("telegram/1", "updates", "10")
        await first.slices.divide([], lambda _: {slot: second.node})
        now = await second.slices.division()
        with tenure(now.epochs):
            await second.inbox.move_cursor("telegram/1", "updates", "20")
        back = await second.slices.divide([], lambda _: {slot: first.node})
        with tenure(stale):  # a poll of ours from before, though the slot is ours again
            await first.inbox.move_cursor("telegram/1", "updates", "11")
            await first.inbox.move_cursor("telegram/1", "another", "11")
            late = replace(message("m1", "telegram/1/2//", cursor=("updates", "12")), account="telegram/1")
            assert not (await first.inbox.accept(late, claims=False)).duplicate, "the message is kept all the same"
            await first.unread.keep(UnreadRow("telegram/1", "odd", b"{}", "odd", "1", 1), ("updates", "13"))
        assert await first.inbox.cursors("telegram/1") == [("updates", "20")]
        with tenure(back.epochs) as held:
            await first.inbox.move_cursor("telegram/1", "updates", "21")
            held.end()
            await first.inbox.move_cursor("telegram/1", "updates", "9")
        assert await first.inbox.cursor("telegram/1", "updates") == "21"


async def test_a_position_goes_in_the_ways_of_its_message(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each message of a chat brings must not have its batch begun twice."""

    async def refused(*_: object) -> None:
        raise AssertionError("it went the usual way")

    slot = account_slice("telegram/1")
    async with nodes(postgres, 1) as (one,):
        seen = await one.slices.divide([slot], lambda _: {slot: one.node})
        with monkeypatch.context() as patch:
            patch.setattr(PostgresLine, "transact", refused)
            for number, held in enumerate(
                (None, {slot: seen.epochs[slot]}, {slot: seen.epochs[slot], "another": 1}), 1
            ):
                with nullcontext() if held is None else tenure(held):
                    said = message(f"m{number}", "telegram/1/2//", cursor=("updates", str(number)))
                    await one.inbox.accept(replace(said, account="telegram/1"))
                assert await one.inbox.cursor("telegram/1", "updates") == str(number)


async def test_a_slot_changes_hands_before_a_position_is_written_under_it_or_after(postgres: str) -> None:
    """A writer that hangs in the middle of a write holds its slot; then what it wrote is what the next one overwrites."""
    slot = account_slice("telegram/1")
    async with nodes(postgres, 2) as (first, second):
        seen = await first.slices.divide([slot], lambda _: {slot: first.node})
        await first.inbox.move_cursor("telegram/1", "updates", "10")
        engine = create_async_engine(postgres.replace("postgresql:", "postgresql+asyncpg:"))
        held = (under(slot, seen.epochs[slot]),)
        try:
            async with engine.begin() as conn:
                row = GivenRow(CursorRow("telegram/1", "updates", "11"), {"under": held})
                await conn.run_sync(put_cursors, [row], first.node)
                giving = asyncio.create_task(first.slices.divide([], lambda _: {slot: second.node}))
                await asyncio.sleep(0.3)
                assert not giving.done()
            await giving
        finally:
            await engine.dispose()
        await second.inbox.move_cursor("telegram/1", "updates", "20")
        assert await first.inbox.cursor("telegram/1", "updates") == "20"


async def test_one_that_ends_lives_no_more(postgres: str) -> None:
    async with nodes(postgres, 1) as (first,):
        async with nodes(postgres, 1) as (second,):
            assert (await first.slices.division()).living == {first.node, second.node}
        assert (await first.slices.division()).living == {first.node}


@pytest.mark.parametrize("shared", [True, False])
async def test_one_that_shares_and_one_that_does_not_refuse_each_other(
    postgres: str, *, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_core.store.database.ownership.LEASE_SECONDS", 3.0)
    kinds = [Serves.SHARED, Serves.ALONE] if shared else [Serves.ALONE, Serves.SHARED]
    async with open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=kinds[0]):
        with pytest.raises(AlreadyRunning, match="several = true"):
            async with open_store(postgres, clock=FakeClock(), ids=IDS, version="1", serves=kinds[1]):
                pass


async def test_the_database_counts_slices_as_we_do(postgres: str) -> None:
    keys = ["telegram/1/2//", "api/key/ä€😀//me", "discord/9/8/7/6", "slack/T1/C%2F1/1.2/", "web/page/x//"]
    keys += [f"telegram/1/{number}//" for number in range(100)]
    async with nodes(postgres, 1) as (store,):
        for number, key in enumerate(keys):
            await store.inbox.accept(message(f"m{number}", key))
        for name in chat_slices():
            found = await store.asks.all(select(t.sessions.c.key).where(slice_in(t.sessions.c.key, [name])))
            assert {row[0] for row in found} == {key for key in keys if slice_of(key) == name}


async def test_words_reach_the_others(postgres: str) -> None:
    place = parse_place(postgres)
    assert isinstance(place, PostgresPlace)
    heard: list[str] = []
    mine: list[str] = []
    missed: list[str] = []
    here = NodeCalls(place, mine.append, lambda: missed.append("here"))
    there = NodeCalls(place, heard.append, lambda: missed.append("there"))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run()) for one in (here, there)]
        while not heard:
            here.call("probe")
            await asyncio.sleep(0.05)
        for number in range(5):
            here.call(f"word {number}")
            here.call(f"word {number}")
        while "word 4" not in heard:
            await asyncio.sleep(0.01)
        assert sorted(missed) == ["here", "there"], "before it listened, something may have been said"
        engine = create_async_engine(postgres.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.connect() as conn:
            ends = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'outspoken calls' AND datname = current_database()"
            assert len((await conn.execute(text(ends))).all()) == 2
        await engine.dispose()
        while sorted(missed) != ["here", "here", "there", "there"]:  # nor was it heard while the connection was gone
            await asyncio.sleep(0.05)
            here.call("probe")
            there.call("probe")
        for task in tasks:
            task.cancel()
    assert [word for word in heard if word != "probe"] == [f"word {number}" for number in range(5)]
    assert not set(mine) - {"probe"}


async def test_a_word_that_is_said_again_while_it_is_on_its_way_is_heard_again(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = "SELECT pg_notify($1, word), pg_sleep(0.3) FROM unnest($2::TEXT[]) AS word"
    monkeypatch.setattr("agent_core.store.slices.calls._SEND", slow)
    place = parse_place(postgres)
    assert isinstance(place, PostgresPlace)
    heard: list[str] = []
    mine: list[str] = []
    here, there = (NodeCalls(place, words.append, lambda: None) for words in (mine, heard))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one.run()) for one in (here, there)]
        while not heard:
            here.call("probe")
            await asyncio.sleep(0.5)
        here.call("there is more")
        await asyncio.sleep(0.1)
        here.call("there is more")
        await asyncio.sleep(LOOK_SECONDS / 2)  # what was not said by then would not be said at all
        for task in tasks:
            task.cancel()
    assert heard.count("there is more") == 2
