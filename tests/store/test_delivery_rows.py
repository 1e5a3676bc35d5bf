"""Deliveries, gates, people and what commands change: stored whole, fenced, repeatable."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import select

from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState, GateRow
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping.forgetting import remove_turns
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.store.sessions.rows import SessionChange, settings_with
from agent_core.store.sessions.takeups import Charges
from agent_core.store.store import Conflict, Fenced, Store
from agent_core.store.tables import deliveries
from gateway.queues.prefs import Prefs, goes_by
from tests.store.support import FakeClock, message, opened, row, session_of, taken_over, turn_of


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


def part(origin: str, number: int = 0, **more: Any) -> DeliveryRow:
    base = DeliveryRow("telegram/1/7", origin, "answer", number, number + 1, b"text", "h", f"{origin}/{number}")
    return replace(base, **more)


async def test_a_part_is_stored_as_it_is_given_and_open_until_it_is_settled(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    sending = part(turn, state=DeliveryState.SENDING, attempt=1, sending_at=100)
    await store.deliveries.put(session, epoch, [sending, part(turn, 1)])
    assert [one.row for one in await store.deliveries.open()] == [sending, part(turn, 1)]
    sent = replace(sending, state=DeliveryState.SENT, platform_id="55", rev=2, want=b"new", at=300)
    await store.deliveries.put(session, epoch, [sent])
    assert [one.row for one in await store.deliveries.open()] == [part(turn, 1)]
    assert [one.row for one in await store.deliveries.of(turn)] == [sent, part(turn, 1)]
    assert await store.deliveries.last_place() == 2


async def test_a_part_that_is_stored_in_the_chat_that_is_already_stays_as_it_is_there(store: Store) -> None:
    """After a restart a turn is shown where it was asked, until the platform says that the chat is another."""
    session, epoch, turn = await turn_of(store)
    there = part(turn, surface="telegram/1/-1007/", state=DeliveryState.SENT, platform_id="55")
    left = [part(turn, number, surface="telegram/1/7/") for number in (0, 1)]
    await store.deliveries.put(session, epoch, [there, *left])
    await store.sessions.move_chat("telegram/1/", "7", "-1007")
    found = [one.row for one in await store.deliveries.of(turn)]
    assert found == [there, replace(left[1], surface="telegram/1/-1007/")]


async def test_what_a_chat_remembers_goes_along_when_it_gets_another_id(store: Store) -> None:
    for scope in ("telegram/1/7//", "telegram/1/77//"):
        await store.memory.put(scope, "memory", "tea", "green", at_ms=1)
        await store.memory.put(scope, "memory", "cake", "none", at_ms=1)
    await store.memory.put("telegram/1/-1007//", "memory", "cake", "much", at_ms=2)
    await store.memory.put("session/telegram/1/7//", "ended", "a consent", "{}", at_ms=3)
    await store.sessions.move_chat("telegram/1/", "7", "-1007")
    assert await store.memory.entries("session/telegram/1/-1007//", "ended") == [("a consent", "{}", 3)]
    found = {
        scope: {name: value for name, value, _ in await store.memory.entries(scope, "memory")}
        for scope in ("telegram/1/7//", "telegram/1/77//", "telegram/1/-1007//")
    }
    assert found == {
        "telegram/1/7//": {},
        "telegram/1/77//": {"tea": "green", "cake": "none"},
        "telegram/1/-1007//": {"tea": "green", "cake": "much"},
    }


async def test_who_does_not_own_the_session_stores_no_part(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    with pytest.raises(Fenced):
        await store.deliveries.put(session, epoch + 1, [part(turn)])
    assert await store.deliveries.open() == []


async def test_a_command_is_done_with_what_it_changes_and_says(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    await store.turns.close(session, epoch, turn, [row(1)], "answered", 300, used=(12, 3))
    found = await store.inbox.accept(message("cmd"))
    told = part(f"inbox:{found.inbox_id}")
    change = SessionChange(forget=True, undo=turn, policy='{"model":"m"}')
    for _ in range(2):  # a repeated one changes nothing more
        await store.sessions.respond(session, epoch, found.inbox_id, change, [told])
    known = await store.sessions.one(session)
    assert known is not None
    assert (known.since, known.policy) == (1, '{"model":"m"}')
    assert [one.undone for one in await store.turns.latest(session, 10)] == [True]
    stored = await store.inbox.one(found.inbox_id)
    assert stored is not None
    assert stored.state is InboxState.DONE
    assert [one.row for one in await store.deliveries.open()] == [told]
    usage = await store.turns.usage(session)
    assert (usage.turns, usage.input_tokens, usage.output_tokens) == (1, 12, 3)
    assert [(await store.turns.usage(session, since)).turns for since in (300, 301)] == [1, 0]


async def test_who_sets_one_thing_of_a_conversation_leaves_what_others_set_meanwhile(store: Store) -> None:
    session, epoch = await session_of(store)
    before = Prefs(model="m", metadata={"a": "b"})
    queue: Any = SimpleNamespace(session=session, prefs=before, prefs_loaded=True)
    await store.sessions.change(session, epoch, SessionChange(policy=before.encode()))
    for after in (replace(before, language="de"), replace(before, metadata={"title": "x"}), replace(before, model="")):
        await store.sessions.change(session, epoch, SessionChange(policy=after.since(before)))
        goes_by(queue, before, after)
    known = await store.sessions.one(session)
    assert known is not None
    assert Prefs.decode(known.policy) == queue.prefs == Prefs(language="de", metadata={"title": "x"})


@pytest.mark.parametrize("stored", [None, "", "no json", "[1]", '{"language":"de"}'])
def test_settings_that_cannot_be_read_count_as_none(stored: str | None) -> None:
    assert Prefs.decode(settings_with(stored, '{"model":"m"}')).model == "m"


async def test_only_a_waiting_message_is_reworded(store: Store) -> None:
    session, epoch = await session_of(store)
    waiting = await store.inbox.accept(message("later"))
    assert await store.inbox.reword("bot", "later", b"other")
    found = await store.inbox.one(waiting.inbox_id)
    assert found is not None
    assert found.body == b"other"
    await store.turns.start(session, epoch, "t_9", [waiting.inbox_id], row(0), 1, 2)
    assert not await store.inbox.reword("bot", "later", b"third")
    assert not await store.inbox.reword("bot", "unknown", b"third")


async def test_a_refused_message_is_recorded_and_never_pending(store: Store) -> None:
    refused = await store.inbox.accept(replace(message("no"), refused="not allowed"))
    assert refused.state is InboxState.DROPPED
    found = await store.inbox.one(refused.inbox_id)
    assert found is not None
    assert found.reason == "not allowed"
    assert await store.inbox.pending(refused.session) == []
    with pytest.raises(Conflict):
        await store.sessions.respond(refused.session, refused.epoch, refused.inbox_id, SessionChange(), [])


async def test_gates_and_people_are_remembered(store: Store) -> None:
    await store.deliveries.put_gate(GateRow("a", "chat", 100, "429"))
    await store.deliveries.put_gate(GateRow("a", "chat", 200, "429"))
    assert await store.deliveries.gates() == [GateRow("a", "chat", 200, "429")]
    ada = PersonRow("a", "1", PersonState.PENDING, "Ada", "1234", 500, 1)
    await store.people.put(ada)
    await store.people.put(replace(ada, state=PersonState.APPROVED, by="bob"))
    assert await store.people.all("a") == [replace(ada, state=PersonState.APPROVED, by="bob")]
    assert await store.people.all("b") == []


async def test_of_a_forgotten_turn_no_part_is_stored_any_more(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    asked = part(turn, state=DeliveryState.SENT, platform_id="55", want=b"May delete_file run with a name of theirs?")
    await store.deliveries.put(session, epoch, [asked])
    await store.turns.close(session, epoch, turn, [row(1)], "stopped", 300)
    assert await store.keeping.remove(remove_turns([turn])) == 1
    taken_back = replace(asked, state=DeliveryState.SKIPPED, gone=True, rev=2)
    await store.deliveries.put(session, epoch, [taken_back, part(turn, 1), part("forgot:7")])
    assert await store.deliveries.of(turn) == []
    assert [one.row for one in await store.deliveries.open()] == [part("forgot:7")]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_a_part_that_has_arrived_is_no_suspect_any_more_and_one_on_its_way_is(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    wanted = part(turn)
    await store.deliveries.put(session, epoch, [wanted])
    name = (wanted.surface, wanted.origin, wanted.bubble, wanted.part)
    await store.left.charge(Charges(parts={name: 2}))
    for state, suspicion in ((DeliveryState.UNKNOWN, 2), (DeliveryState.SENT, 0), (DeliveryState.WANTED, 0)):
        await store.deliveries.put(session, epoch, [replace(wanted, state=state)])
        asked = select(deliveries.c.suspicion)
        assert [row[0] for row in await store.asks.all(asked)] == [suspicion]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
async def test_a_slot_that_was_taken_is_kept_for_its_time_and_not_for_an_hour_that_a_clock_was_put_back(
    where: str,
) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        assert await store.inbox.reserve("discord/1", "starts:0", 5_000) == 0
        assert await store.inbox.reserve("discord/1", "starts:0", 5_000) == 5_000
        assert await store.inbox.reserve("discord/1", "starts:1", 5_000) == 0
        clock.now += 4_000
        assert await store.inbox.reserve("discord/1", "starts:0", 5_000) == 1_000
        clock.now -= 3_600_000
        assert await store.inbox.reserve("discord/1", "starts:0", 5_000) == 0


async def test_what_was_shown_of_a_turn_is_listed_in_the_order_in_which_it_stands(store: Store) -> None:
    session, epoch, turn = await turn_of(store)
    for place in (3, 1, 2):
        await store.deliveries.put(session, epoch, [replace(part(turn), part=place, place=place)])
    assert [one.row.place for one in await store.deliveries.of(turn)] == [1, 2, 3]
    assert [one.row.place for one in await store.deliveries.open()] == [1, 2, 3]


async def test_a_turn_a_message_and_a_part_that_are_taken_up_together_are_each_under_their_own_suspicion(
    store: Store,
) -> None:
    session, epoch, turn = await turn_of(store)
    waits = await store.inbox.accept(message("waits"))
    await store.deliveries.put(session, epoch, [wanted := part(turn)])
    name = (wanted.surface, wanted.origin, wanted.bubble, wanted.part)
    await store.left.take_up(taken_over, [session], {session: Charges({turn: 1}, {waits.inbox_id: 2}, {name: 3})})
    left = (await store.left.turns(), await store.left.messages(), await store.left.parts())
    assert [[one.suspicion for one in some] for some in left] == [[1], [2], [3]]
