"""What each named transaction promises, on both engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from agent_core.remembered import MEMORY, MemorySource, Remembered
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import Conflict, Fenced, Rejected, Store
from agent_core.store.turns.ops import Close
from agent_core.store.turns.rows import CallState, IntendedCall, TurnState
from agent_core.tools.base import MemoryStore
from tests.store.support import IDS, FakeClock, message, opened, row, session_of, started, turn_of

WEEK_MS = 7 * 24 * 3600 * 1000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(where: str, clock: FakeClock) -> AsyncGenerator[Store]:
    async with opened(where, clock) as store:
        yield store


async def test_an_accepted_message_waits_in_its_session_and_its_cursor_is_stored(store: Store) -> None:
    new = message("m1", cursor=("room", "41"))
    accepted = await store.inbox.accept(new)
    assert (accepted.duplicate, accepted.state, accepted.turn) == (False, InboxState.NEW, None)
    assert accepted.session == new.new_session_id
    (pending,) = await store.inbox.pending(accepted.session)
    assert (pending.id, pending.body, pending.lane, pending.received_at) == (accepted.inbox_id, new.body, "chat", 10)
    assert await store.inbox.cursor("bot", "room") == "41"
    assert await store.inbox.by_key("bot", "m1") == pending
    assert await store.inbox.one(accepted.inbox_id) == pending
    assert await store.inbox.sessions_with_pending() == [accepted.session]
    session = await store.sessions.by_key("chat")
    assert session is not None
    assert session == await store.sessions.one(accepted.session)
    assert (session.owner, session.epoch, session.created_at) == (store.node, 1, 10)  # a new one is its maker's


async def test_a_message_offered_again_changes_nothing_and_tells_its_turn(store: Store) -> None:
    first = await store.inbox.accept(message("m1", cursor=("room", "41")))
    epoch = await store.sessions.claim(first.session)
    _, _, turn = await started(store, first, epoch)
    again = await store.inbox.accept(message("m1", body=b'"other"', cursor=("room", "7")))
    assert again.duplicate
    assert (again.inbox_id, again.session, again.state, again.turn) == (
        first.inbox_id,
        first.session,
        InboxState.TAKEN,
        turn,
    )
    assert await store.inbox.cursor("bot", "room") == "41"
    (kept,) = await store.inbox.inputs(turn)
    assert kept.body == b'"hello"'


async def test_messages_of_one_key_share_a_session_and_keep_their_order(store: Store) -> None:
    offered = [store.inbox.accept(message(f"m{number}")) for number in range(20)]
    accepted = await asyncio.gather(*offered)
    assert len({one.session for one in accepted}) == 1
    arrivals = [one.arrival for one in accepted]
    assert arrivals == sorted(set(arrivals))
    assert [one.platform_key for one in await store.inbox.pending(accepted[0].session)] == [f"m{n}" for n in range(20)]


async def test_a_cursor_can_move_without_a_message(store: Store) -> None:
    assert await store.inbox.cursor("bot", "room") is None
    await store.inbox.move_cursor("bot", "room", "5")
    await store.inbox.move_cursor("bot", "room", "6")
    assert await store.inbox.cursor("bot", "room") == "6"


async def test_a_started_turn_owns_its_messages_and_has_row_0(store: Store) -> None:
    first, second = await store.inbox.accept(message("m1")), await store.inbox.accept(message("m2"))
    epoch = await store.sessions.claim(first.session)
    opening = row(0, b'{"nul":"\\u0000","raw":"\x00"}', "TurnOpened")
    await store.turns.start(first.session, epoch, "t_1", [first.inbox_id, second.inbox_id], opening, 100, 200)
    assert await store.turns.journal("t_1") == [opening]
    assert await store.inbox.pending(first.session) == []
    assert [one.platform_key for one in await store.inbox.inputs("t_1")] == ["m1", "m2"]
    found = await store.turns.one("t_1")
    assert found is not None
    assert (found.state, found.number, found.opened_at, found.deadline) == (TurnState.OPEN, 1, 100, 200)
    assert (await store.turns.count_open(), await store.turns.oldest_open()) == (1, ("t_1", 100))


async def test_a_session_has_at_most_one_open_turn(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    other = await store.inbox.accept(message("m2"))
    with pytest.raises(Conflict, match=turn):
        await store.turns.start(session, epoch, "t_2", [other.inbox_id], row(0), 1, 2)
    assert [one.platform_key for one in await store.inbox.pending(session)] == ["m2"]
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 3)
    await store.turns.start(session, epoch, "t_2", [other.inbox_id], row(0), 1, 2)


async def test_a_message_belongs_to_one_turn_of_its_own_session(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    (taken,) = await store.inbox.inputs(turn)
    await store.turns.close(session, epoch, turn, [], "answered", 3)
    elsewhere = await store.inbox.accept(message("x", "another chat"))
    for wrong in (taken.id, elsewhere.inbox_id, 999_999):
        with pytest.raises(Conflict, match=str(wrong)):
            await store.turns.start(session, epoch, "t_2", [wrong], row(0), 1, 2)
    assert await store.turns.one("t_2") is None


async def test_rows_are_read_back_in_order_and_from_a_position(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    rows = [row(seq, f"{seq}".encode(), at=seq) for seq in range(1, 6)]
    await store.turns.append(session, epoch, turn, rows[:2])
    await store.turns.append(session, epoch, turn, rows[2:])
    assert await store.turns.journal(turn, after=0) == rows
    assert await store.turns.journal(turn, after=3) == rows[3:]


async def test_a_journal_has_no_holes(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    for wrong in ([row(2)], [row(1), row(3)]):
        with pytest.raises(Conflict, match="hole"):
            await store.turns.append(session, epoch, turn, wrong)
    assert await store.turns.journal(turn, after=0) == []


async def test_the_same_rows_again_are_a_success_and_other_rows_are_fenced(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    await store.turns.append(session, epoch, turn, [row(1), row(2)])
    await store.turns.append(session, epoch, turn, [row(1), row(2), row(3)])
    with pytest.raises(Fenced, match="Row 2"):
        await store.turns.append(session, epoch, turn, [row(2, b'"another"'), row(3)])
    assert await store.turns.journal(turn, after=0) == [row(1), row(2), row(3)]


async def test_a_call_is_intended_once_and_as_one_tool(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    call = IntendedCall("c1", "shell", "effect", f"{turn}:c1")
    await store.turns.intend(session, epoch, turn, [row(1)], [call])
    await store.turns.intend(session, epoch, turn, [row(1)], [call])
    assert [(one.call, one.state) for one in await store.turns.calls(turn)] == [("c1", CallState.INTENDED)]
    with pytest.raises(Fenced, match="shell"):
        await store.turns.intend(session, epoch, turn, [row(2)], [IntendedCall("c1", "other", "effect", f"{turn}:c1")])
    assert len(await store.turns.journal(turn)) == 2


async def test_closing_ends_the_turn_its_messages_and_wants_its_deliveries_together(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    wanted = [
        DeliveryRow("telegram:1", turn, "answer", part, part + 1, b"text", f"h{part}", f"{turn}/{part}")
        for part in range(2)
    ]
    await store.turns.close(session, epoch, turn, [row(1, kind="TurnEnded")], "answered", 300, wanted)
    await store.turns.close(session, epoch, turn, [row(1, kind="TurnEnded")], "answered", 300, wanted)
    found = await store.turns.one(turn)
    assert found is not None
    assert (found.state, found.exit, found.closed_at) == (TurnState.CLOSED, "answered", 300)
    assert [one.state for one in await store.inbox.inputs(turn)] == [InboxState.DONE]
    assert await store.turns.count_open() == 0
    states = await store.writer.alone(
        lambda conn: [tuple(one) for one in conn.exec_driver_sql("SELECT state, part FROM deliveries ORDER BY id")]
    )
    assert states == [("wanted", 0), ("wanted", 1)]


async def test_a_closed_turn_stays_as_it_is(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300)
    with pytest.raises(Fenced, match="answered"):
        await store.turns.close(session, epoch, turn, [row(1)], "stopped", 300)
    with pytest.raises(Conflict, match="closed"):
        await store.turns.append(session, epoch, turn, [row(2)])
    with pytest.raises(Conflict, match="closed"):
        await store.turns.intend(session, epoch, turn, [], [IntendedCall("c", "x", "pure", "k")])
    assert len(await store.turns.journal(turn)) == 2


async def test_a_closing_that_the_database_refuses_leaves_nothing_behind(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    bad = DeliveryRow("s", turn, "answer", 2**70, 1, b"", "h", "k")
    with pytest.raises(Rejected, match=Close.__name__):
        await store.turns.close(session, epoch, turn, [row(1)], "answered", 300, [bad])
    assert len(await store.turns.journal(turn)) == 1
    assert await store.turns.count_open() == 1


async def test_the_turns_of_a_session_come_newest_last_and_by_the_page(store: Store) -> None:
    session, epoch = await session_of(store)
    for number in range(12):  # more than ten, all in the same millisecond: ids and times do not give the order
        one = await store.inbox.accept(message(f"n{number}"))
        await store.turns.start(session, epoch, f"t_{number}", [one.inbox_id], row(0), 100, 200)
        await store.turns.close(session, epoch, f"t_{number}", [], "answered", 100)
    assert [one.turn for one in await store.turns.latest(session, 3)] == ["t_9", "t_10", "t_11"]
    assert [one.turn for one in await store.turns.latest(session, 3, before="t_9")] == ["t_6", "t_7", "t_8"]


async def test_a_dropped_message_is_never_part_of_a_turn(store: Store) -> None:
    accepted = await store.inbox.accept(message("m1"))
    epoch = await store.sessions.claim(accepted.session)
    await store.inbox.drop(accepted.inbox_id, "too old")
    await store.inbox.drop(accepted.inbox_id, "too old")
    with pytest.raises(Conflict, match="dropped"):
        await store.turns.start(accepted.session, epoch, "t", [accepted.inbox_id], row(0), 1, 2)
    kept = await store.inbox.one(accepted.inbox_id)
    assert kept is not None
    assert (kept.state, kept.reason) == (InboxState.DROPPED, "too old")
    assert await store.inbox.sessions_with_pending() == []


@pytest.mark.parametrize("what", ["new", "dropped before", "taken", "somebody else's"])
async def test_that_a_message_is_not_run_is_stored_with_what_its_chat_is_told_or_neither_is(
    store: Store, what: str
) -> None:
    accepted = await store.inbox.accept(message("m1"))
    epoch = await store.sessions.claim(accepted.session)
    told = DeliveryRow("bot/c", "inbox:1", "aside0", 0, 1, b"{}", "h", "k")
    drop = store.inbox.drop(accepted.inbox_id, "too old", accepted.session, epoch, [told])
    match what:
        case "dropped before":
            await store.inbox.drop(accepted.inbox_id, "its person wants it so")
            await drop
        case "taken":
            await started(store, accepted, epoch)
            with pytest.raises(Conflict):
                await drop
        case "somebody else's":
            drop.close()
            with pytest.raises(Fenced):
                await store.inbox.drop(accepted.inbox_id, "too old", accepted.session, epoch + 1, [told])
        case _:
            await drop
    kept = await store.inbox.one(accepted.inbox_id)
    assert kept is not None
    reasons = {"new": "too old", "dropped before": "its person wants it so"}
    assert kept.reason == reasons.get(what)
    assert [one.row for one in await store.deliveries.of("inbox:1")] == ([told] if what in reasons else [])


async def test_what_a_turn_has_taken_cannot_be_dropped(store: Store) -> None:
    _, _, turn = await turn_of(store)
    (taken,) = await store.inbox.inputs(turn)
    with pytest.raises(Conflict, match="taken"):
        await store.inbox.drop(taken.id, "too old")


async def test_memory_keeps_the_latest_value_and_any_text(store: Store) -> None:
    memory: MemoryStore = store.memory
    await memory.put("me", "fact", "b", "old", at_ms=1)
    await memory.put("me", "fact", "a", "nul \x00 and ü", at_ms=2)
    await memory.put("me", "fact", "b", "new", at_ms=3)
    await memory.put("you", "fact", "c", "not mine", at_ms=3)
    assert await memory.entries("me", "fact") == [("a", "nul \x00 and ü", 2), ("b", "new", 3)]
    assert await memory.delete("me", "fact", "a")
    assert not await memory.delete("me", "fact", "a")
    assert await memory.entries("me", "fact") == [("b", "new", 3)]


async def test_an_entry_comes_back_with_where_it_came_from_and_from_the_asked_scopes_alone(store: Store) -> None:
    source = MemorySource("t-1", "telegram/99/7", "Ada", foreign=True)
    await store.memory.put("mine", MEMORY, "dog", "Rex", at_ms=5, source=source)
    await store.memory.put("chat", MEMORY, "dogs", "all dogs", at_ms=6)
    await store.memory.put("yours", MEMORY, "dog", "secret", at_ms=7)
    found, in_all = await store.memory.remembered(("mine", "chat"), "dog")
    assert {one.name for one in found} == {"dog", "dogs"}
    assert in_all == 2
    assert Remembered("mine", "dog", "Rex", 5, source) in found
    newest, _ = await store.memory.remembered(("mine", "chat"))
    assert [one.name for one in newest] == ["dogs", "dog"]
    assert await store.memory.remembered(("mine",), "%' OR 1=1") == ([], 1)


async def test_pruning_takes_only_old_ended_messages_and_an_id_never_comes_again(
    store: Store, clock: FakeClock
) -> None:
    old = clock.now - WEEK_MS - 1
    session, epoch = await session_of(store)
    done, waiting, young = [
        await store.inbox.accept(message(key, at=at))
        for key, at in (("done", old), ("waiting", old), ("young", clock.now))
    ]
    await store.turns.start(session, epoch, "t", [done.inbox_id], row(0), old, old)
    await store.turns.close(session, epoch, "t", [], "answered", old)
    dropped = await store.inbox.accept(message("dropped", at=old))
    await store.inbox.drop(dropped.inbox_id, "too old")
    last = await store.inbox.accept(message("last", at=old))
    await store.inbox.drop(last.inbox_id, "too old")
    await store.inbox.drop(young.inbox_id, "no reason")
    pruned = await store.keeping.prune(clock.now)
    gone = [key for key in ("done", "waiting", "young", "dropped") if await store.inbox.by_key("bot", key) is None]
    assert gone == ["done", "dropped"]
    assert pruned.messages == 3  # with the one that made the session, received in 1970
    assert len(await store.inbox.pending(session)) == 1
    assert waiting.inbox_id != done.inbox_id
    after = await store.inbox.accept(message("after"))
    assert after.inbox_id > last.inbox_id


async def test_the_readiness_check_really_writes(store: Store) -> None:
    before = store.figures.operations
    await store.check()
    assert store.figures.operations == before + 1


async def test_a_last_activity_is_kept_to_the_minute(store: Store) -> None:
    session, epoch = await session_of(store)
    for number, at in enumerate((30_000, 60_010, 100_000)):
        one = await store.inbox.accept(message(f"n{number}"))
        await store.turns.start(session, epoch, f"t{number}", [one.inbox_id], row(0), at, at)
        await store.turns.close(session, epoch, f"t{number}", [], "answered", at)
    found = await store.sessions.one(session)
    assert found is not None
    assert found.last_at == 60_010


async def test_ids_made_in_parallel_sessions_do_not_mix(store: Store) -> None:
    made = await asyncio.gather(*(turn_of(store, f"chat{number}") for number in range(30)))
    await asyncio.gather(*(store.turns.append(s, e, t, [row(1, t.encode())]) for s, e, t in made))
    for _, _, turn in made:
        assert (await store.turns.journal(turn))[1].body == turn.encode()
    assert len({IDS.new("x") for _ in range(100)}) == 100
