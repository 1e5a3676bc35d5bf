"""Messages that are stored together with the turn that they begin: which are, and what becomes of those that cannot be."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromChat, Inbound, SessionKey
from adapters.contract.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage
from agent_core.model.transport import HttpAnswer, ModelLine
from agent_core.store.inbox.rows import InboxState
from agent_core.store.store import StorageUnavailable
from agent_core.store.turns.rows import TurnState
from gateway.limits.admission import Bounds
from gateway.sessions import atonce
from gateway.sessions.atonce import WARY_MS, may_begin, wary_seconds
from tests.gateway.rig import Rig, chunk, gateway

ORIGIN = ChatOrigin(ChatAddress("toy", "1", "5"), ChatKind.PRIVATE, ChatPerson("7", name="Eve"), message="1")
PICTURE = Attachment(AttachmentKind.IMAGE, "ref", "a.png", "image/png", 10)


async def echo(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": f"You said: {messages[-1]['content']}"}))
    await response.write(chunk({}, "stop"))


def from_chat(rig: Rig, words: str, **more: Any) -> FromChat:
    return FromChat(
        account="toy/1", platform_key=rig.ids.new("k"), session=SessionKey("toy", "1", "5"),
        input=(InputMessage(words),), surface="toy", memory_scope="toy", chat=replace(ORIGIN, **more),
    )  # fmt: skip


async def idle(rig: Rig) -> None:
    async with asyncio.timeout(30):
        while any(queue.task is not None for queue in rig.hub.queues):
            await asyncio.sleep(0.01)


async def first(rig: Rig) -> None:
    """From here on the conversation is known."""
    await rig.say("first")
    await idle(rig)


async def batches(rig: Rig, inbound: Inbound) -> int:
    """How many commits a message takes until its turn has ended."""
    await idle(rig)
    before = rig.store.figures.batches
    assert (await rig.end(await rig.hub.accept(inbound))).exit.code is ExitCode.ANSWERED
    return rig.store.figures.batches - before


async def test_a_plain_turn_takes_two_commits_whether_it_brings_its_past_or_has_it_here(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        assert await batches(rig, rig.inbound("again")) == 2
        assert await batches(rig, rig.inbound("again", own_history=(), session="once")) == 2
        await batches(rig, from_chat(rig, "hello"))
        assert await batches(rig, from_chat(rig, "hello")) == 2


async def test_a_chats_message_with_a_file_or_with_more_to_come_is_stored_first(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await batches(rig, from_chat(rig, "hello"))
        assert may_begin(from_chat(rig, "hello"), 1)
        for more in ({"attachments": (PICTURE,)}, {"group": "album"}, {"unfinished": True}):
            assert not may_begin(from_chat(rig, "hello", **more), 1)
            assert await batches(rig, from_chat(rig, "hello", **more)) == 3


async def test_after_a_death_messages_are_stored_before_anything_is_done_with_them(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        assert await batches(rig, rig.inbound("again")) == 2
    with closing(sqlite3.connect(tmp_path / "db")) as made, made:
        made.execute("UPDATE nodes SET ended_at = NULL")
    for _ in range(2):  # an end in order behind it makes no difference
        async with gateway(tmp_path, echo) as rig:
            await first(rig)
            assert await batches(rig, rig.inbound("again")) == 3


@given(st.none() | st.integers(0, 2 * WARY_MS), st.integers(0, 4 * WARY_MS))
def test_it_is_a_day_after_the_last_death_and_no_longer_whatever_the_clock_says(died: int | None, now: int) -> None:
    seconds = wary_seconds(died, now)
    assert 0 <= seconds <= WARY_MS / 1000
    if died is None or died + WARY_MS <= now:
        assert seconds == 0
    elif died <= now:
        assert now + seconds * 1000 == pytest.approx(died + WARY_MS)


async def test_what_raises_while_a_turn_is_prepared_leaves_a_stored_message_that_is_given_up_with_a_word(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        plain = rig.hub.opener.learning.known

        async def known(inbound: Inbound, *more: Any) -> Any:
            if any("bad" in str(one.content) for one in inbound.input):
                raise KeyError("a bug")
            return await plain(inbound, *more)

        rig.hub.opener.learning.known = known  # type: ignore[method-assign]
        ticket = await rig.hub.accept(rig.inbound("bad"))
        assert (await rig.end(ticket)).exit.code is ExitCode.NOT_STARTED
        row = await rig.store.inbox.one(ticket.inbox_id)
        assert row is not None
        assert (row.state, row.reason) == (InboxState.DROPPED, "its turn could not be opened")
        assert await batches(rig, rig.inbound("good")) == 2
        await idle(rig)
        assert rig.hub.slots.open == 0


async def test_what_takes_long_to_prepare_is_acknowledged_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atonce, "PREPARE_SECONDS", 0.1)
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        plain, going_on = rig.hub.opener.learning.known, asyncio.Event()

        async def known(inbound: Inbound, *more: Any) -> Any:
            await going_on.wait()
            return await plain(inbound, *more)

        rig.hub.opener.learning.known = known  # type: ignore[method-assign]
        ticket = await rig.hub.accept(rig.inbound("slow"))
        row = await rig.store.inbox.one(ticket.inbox_id)
        assert row is not None
        assert row.state is InboxState.NEW
        going_on.set()
        assert (await rig.end(ticket)).exit.code is ExitCode.ANSWERED
        await idle(rig)
        assert rig.hub.slots.open == 0


async def test_a_message_that_cannot_be_stored_gives_its_slot_back_and_is_taken_when_it_comes_again(
    tmp_path: Path,
) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        plain = rig.store.inbox.accept

        async def away(*_: Any) -> Any:
            raise StorageUnavailable("away")

        rig.store.inbox.accept = away  # type: ignore[method-assign]
        again = rig.inbound("again")
        with pytest.raises(Exception, match="stor"):
            await rig.hub.accept(again)
        await idle(rig)
        assert rig.hub.slots.open == 0
        rig.store.inbox.accept = plain
        assert await batches(rig, again) >= 2


async def test_a_session_that_is_somebody_elses_by_now_only_takes_the_message(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        key = rig.inbound("").session.text()
        known = rig.hub.queues.pasts.whose(key)
        assert known is not None
        memory = rig.hub.queues.pasts.take(key, *known)
        assert memory is not None
        rig.hub.queues.pasts.keep(key, known[0], known[1] + 7, memory)
        await rig.say("second")
        rows = await rig.store.turns.latest(known[0], 5)
        assert [row.state for row in rows] == [TurnState.CLOSED] * 2
        assert "You said: first" in str(rig.model.requests[-1]["messages"])


async def test_many_that_come_at_once_are_all_answered_in_their_order(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo, bounds=Bounds(open=3)) as rig:
        asked = [rig.hub.accept(rig.inbound(f"{n}", session=f"s{n % 4}")) for n in range(40)]
        tickets = await asyncio.gather(*asked)
        ended = await asyncio.gather(*(rig.end(ticket) for ticket in tickets))
        assert {one.exit.code for one in ended} == {ExitCode.ANSWERED}
        for session in {ticket.session for ticket in tickets}:
            turns = [row.turn for row in await rig.store.turns.latest(session, 50)]
            inputs = [(await rig.store.inbox.inputs(turn))[0].id for turn in turns]
            assert inputs == sorted(inputs)
        await idle(rig)
        assert rig.hub.slots.open == 0


async def test_a_stop_while_a_turn_is_being_stored_leaves_it_to_the_next_process(tmp_path: Path) -> None:
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        plain: Callable[..., Any] = rig.store.inbox.accept

        async def accept(*given: Any, **more: Any) -> Any:
            accepted = await plain(*given, **more)
            rig.hub.runner.closing = True
            return accepted

        rig.store.inbox.accept = accept
        ticket = await rig.hub.accept(rig.inbound("again", key="K"))
        await rig.hub.drain(1)
        (row,) = await rig.store.turns.latest(ticket.session, 1)
        assert row.state is TurnState.OPEN
    async with gateway(tmp_path, echo) as rig:
        assert (await rig.say("again", key="K")).exit.code is ExitCode.ANSWERED


async def test_what_waits_in_a_conversation_that_another_gateway_has_taken_is_left_to_that(tmp_path: Path) -> None:
    goes_on = asyncio.Event()

    async def held(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        await goes_on.wait()
        await echo(messages, response, request)

    async with gateway(tmp_path, held) as rig:
        first_ticket = await rig.hub.accept(rig.inbound("one"))
        waiting = await rig.hub.accept(rig.inbound("two"))
        taken = "UPDATE sessions SET epoch = epoch + 1 WHERE session = ?"
        await rig.store.writer.alone(lambda conn: conn.exec_driver_sql(taken, (first_ticket.session,)))
        goes_on.set()
        await idle(rig)
        row = await rig.store.inbox.one(waiting.inbox_id)
        assert row is not None
        assert (row.state, row.reason) == (InboxState.NEW, None)
        assert not any(queue.waiting for queue in rig.hub.queues)


async def test_the_model_is_asked_before_whoever_waits_hears_that_the_message_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Who waits has much to do then: an answer's head, what is to be seen. A crowd's first words would all wait for that."""
    order: list[str] = []
    sent = ModelLine.sent

    async def noted(line: ModelLine, body: bytes, connect_seconds: float) -> HttpAnswer:
        order.append("model asked")
        return await sent(line, body, connect_seconds)

    monkeypatch.setattr(ModelLine, "sent", noted)
    async with gateway(tmp_path, echo) as rig:
        await first(rig)
        order.clear()
        ticket = await rig.hub.accept(rig.inbound("second"))
        order.append("told")
        await rig.end(ticket)
    assert order == ["model asked", "told"]
