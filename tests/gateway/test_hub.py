"""The hub with everything real beneath it: order, durability, stopping, watching."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.contract.base import Ended, LeftOpen, MessageState, Queued, SessionKey, Showing
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.failures.exits import ExitCode
from agent_core.ports import SystemClock
from agent_core.tools.base import EffectClass
from agent_core.turn.events import Verdict
from agent_core.turn.view import BubbleKind, View
from gateway.config.types import SessionPolicy
from gateway.explain.story import why
from tests.gateway.rig import QUICK, CountingTool, call_chunk, chunk, gateway

Messages = list[dict[str, Any]]


async def echo(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
    await response.write(chunk({"content": f"You said: {messages[-1]['content']}"}))
    await response.write(chunk({}, "stop"))


async def slow(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
    for number in range(400):
        await response.write(chunk({"content": f"{number} "}))
        await asyncio.sleep(0.01)
    await response.write(chunk({}, "stop"))


async def test_a_message_is_answered_and_remembered_in_the_next_turn(tmp_path: Path):
    async with gateway(tmp_path, echo) as rig:
        first = await rig.say("hello")
        assert (first.exit.code, first.view.text) == (ExitCode.ANSWERED, "You said: hello")
        await rig.say("again")
        roles = [m["role"] for m in rig.model.requests[1]["messages"]]
        assert roles == ["system", "user", "assistant", "user"]


async def test_a_redelivered_message_is_answered_once_and_told_again(tmp_path: Path):
    async with gateway(tmp_path, echo) as rig:
        first = await rig.say("hello", key="K1")
        again = await rig.say("hello", key="K1")
        assert again.turn == first.turn
        assert again.view == first.view
        assert len(rig.model.requests) == 1


async def test_the_same_key_with_other_content_is_told_as_a_mistake(tmp_path: Path):
    async with gateway(tmp_path, echo) as rig:
        await rig.say("hello", key="K1", digest="a")
        with pytest.raises(NotAccepted) as refused:
            await rig.hub.accept(rig.inbound("other", key="K1", digest="b"))
        assert refused.value.code is NotAcceptedCode.OTHER_CONTENT


async def test_messages_of_one_session_run_in_order_and_are_told_their_place(tmp_path: Path):
    async with gateway(tmp_path, echo) as rig:
        tickets = [await rig.hub.accept(rig.inbound(f"m{n}")) for n in range(5)]
        async with rig.hub.follow(tickets[-1]) as follower:
            first = await follower.next(5)
            assert isinstance(first, Queued)
        ends = [await rig.end(ticket) for ticket in tickets]
        assert [end.view.text for end in ends] == [f"You said: m{n}" for n in range(5)]
        asked = [request["messages"][-1]["content"] for request in rig.model.requests]
        assert asked == [f"m{n}" for n in range(5)]


async def test_who_wants_the_end_alone_is_told_nothing_else(tmp_path: Path):
    async with gateway(tmp_path, slow) as rig:
        asked = [await rig.hub.accept(rig.inbound(words)) for words in ("one", "two")]
        async with asyncio.timeout(60), rig.hub.follow(asked[0], end_alone=True) as follower:
            await rig.until_text(asked[0], "0 1 2")
            assert isinstance(await follower.next(50), Ended)
        async with asyncio.timeout(60), rig.hub.follow(asked[1], end_alone=True) as follower:
            assert isinstance(await follower.next(0.2), Queued | Showing | None)  # nothing has ended: the time was over
            assert isinstance(await follower.next(50), Ended)


async def test_sessions_do_not_wait_for_each_other(tmp_path: Path):
    async with gateway(tmp_path, slow) as rig:
        await rig.hub.accept(rig.inbound("one", session="a"))
        other = await rig.hub.accept(rig.inbound("two", session="b"))
        await rig.until_text(other, "0 1 2")


async def test_a_full_queue_is_told_and_nothing_of_the_message_is_kept(tmp_path: Path):
    async with gateway(tmp_path, slow, queue_limit=2) as rig:
        running = await rig.hub.accept(rig.inbound("0"))
        await rig.until_text(running, "0 ")
        for n in (1, 2):
            await rig.hub.accept(rig.inbound(str(n)))
        with pytest.raises(NotAccepted, match="2 messages are already waiting"):
            await rig.hub.accept(rig.inbound("3"))


async def test_stop_returns_when_the_turn_has_ended_and_the_model_was_hung_up_on(tmp_path: Path):
    hung_up = asyncio.Event()

    async def endless(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        try:
            await slow(messages, response, request)
        except (ConnectionError, asyncio.CancelledError):
            hung_up.set()
            raise

    async with gateway(tmp_path, endless) as rig:
        ticket = await rig.hub.accept(rig.inbound("go"))
        await rig.until_text(ticket, "0 1")
        outcome = await rig.hub.stop(SessionKey("test", "a", "s"))
        assert outcome.stopped
        assert "Stopped, as you asked" in outcome.words
        await asyncio.wait_for(hung_up.wait(), 60)
        end = await rig.end(ticket)
        assert end.exit.code is ExitCode.STOPPED
        assert end.view.bubbles[0].text.startswith("0 1")


async def test_a_waiting_message_can_be_withdrawn(tmp_path: Path):
    async with gateway(tmp_path, slow) as rig:
        running = await rig.hub.accept(rig.inbound("0"))
        waiting = await rig.hub.accept(rig.inbound("1"))
        await rig.until_text(running, "0 ")
        assert (await rig.hub.stop_message(waiting)).stopped
        end = await rig.end(waiting)
        assert end.exit.code is ExitCode.NOT_STARTED


async def test_interrupting_ends_the_running_turn_and_runs_the_new_message(tmp_path: Path):
    async with gateway(tmp_path, slow, policy=SessionPolicy.INTERRUPT) as rig:
        first = await rig.hub.accept(rig.inbound("0"))
        await rig.until_text(first, "0 ")
        second = await rig.hub.accept(rig.inbound("1"))
        assert (await rig.end(first)).exit.code is ExitCode.SUPERSEDED
        await rig.until_text(second, "0 1")


async def test_a_tool_runs_and_its_result_reaches_the_model(tmp_path: Path):
    async def with_tool(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await response.write(chunk({"content": messages[-1]["content"]}, "stop"))
        else:
            await response.write(chunk({"content": "Working."}))
            await response.write(call_chunk("count", '{"a": 1}'))

    tool = CountingTool("count", EffectClass.EFFECT, tmp_path / "runs")
    async with gateway(tmp_path, with_tool, tools=[tool]) as rig:
        end = await rig.say("go")
        assert [b.kind for b in end.view.bubbles] == [BubbleKind.INTERIM, BubbleKind.ACTIVITY, BubbleKind.ANSWER]
        assert end.summary.tool_calls == 1
        assert len(tool.runs()) == 1
        assert rig.model.requests[0]["tools"][0]["function"]["name"] == "count"


async def asks(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
    if messages[-1]["role"] == "tool":
        await response.write(chunk({"content": "Done."}, "stop"))
    else:
        await response.write(call_chunk("danger", "{}"))


async def test_a_turn_that_waits_for_an_approval_holds_up_no_end_and_can_be_approved_after_it(tmp_path: Path):
    tool = CountingTool("danger", EffectClass.EFFECT, tmp_path / "runs")
    key = SessionKey("test", "a", "s")
    async with gateway(tmp_path, asks, tools=[tool]) as rig:
        ticket = await rig.hub.accept(rig.inbound("go"))
        async with rig.hub.follow(ticket) as follower:
            while not isinstance(sight := await follower.next(10), Showing) or not any(
                one.kind is BubbleKind.APPROVAL for one in sight.view.bubbles
            ):
                pass
        call = next(one.call for one in sight.view.bubbles if one.kind is BubbleKind.APPROVAL)
        async with asyncio.timeout(30):
            await rig.hub.drain(600)
    async with gateway(tmp_path, asks, tools=[tool]) as rig:
        async with asyncio.timeout(30):
            while await rig.hub.approve(key, sight.turn, call, Verdict.GIVEN, "me"):
                await asyncio.sleep(0.05)  # it is being taken up
        assert (await rig.end(ticket)).exit.code is ExitCode.ANSWERED
        assert len(tool.runs()) == 1


async def test_a_tool_that_needs_approval_waits_for_it(tmp_path: Path):
    tool = CountingTool("danger", EffectClass.EFFECT, tmp_path / "runs")
    async with gateway(tmp_path, asks, tools=[tool]) as rig:
        ticket = await rig.hub.accept(rig.inbound("go"))
        async with rig.hub.follow(ticket) as follower:
            while True:
                sight = await follower.next(10)
                assert not isinstance(sight, Ended)
                if not isinstance(sight, Showing):
                    continue
                approval = next((b for b in sight.view.bubbles if b.kind is BubbleKind.APPROVAL), None)
                if approval is not None:
                    break
            assert tool.runs() == []
            key = SessionKey("test", "a", "s")
            assert not await rig.hub.approve(key, sight.turn, approval.call, Verdict.GIVEN, "me")
        assert (await rig.end(ticket)).exit.code is ExitCode.ANSWERED
        assert len(tool.runs()) == 1


async def test_a_provider_error_is_told_without_its_secrets(tmp_path: Path):
    async def refuses(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await response.write(b'data: {"error": {"message": "bad key sk-test-secret", "code": 401}}\n\n')

    async with gateway(tmp_path, refuses) as rig:
        end = await rig.say("go")
        assert end.exit.code is ExitCode.NOT_AUTHORISED
        assert "sk-test-secret" not in end.view.text


async def test_one_refused_turn_does_not_poison_the_next(tmp_path: Path):
    first = True

    async def once(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        nonlocal first
        if first:
            first = False
            await response.write(b'data: {"error": {"message": "no", "code": 401}}\n\n')
        else:
            await echo(messages, response, request)

    async with gateway(tmp_path, once) as rig:
        assert (await rig.say("a")).exit.code is ExitCode.NOT_AUTHORISED
        assert (await rig.say("b")).exit.code is ExitCode.ANSWERED


async def test_watching_a_session_shows_everything_once_and_then_what_changes(tmp_path: Path):
    async with gateway(tmp_path, echo) as rig:
        await rig.say("before")
        async with rig.hub.follow_session(SessionKey("test", "a", "s")) as follower:
            there = await follower.next(5)
            assert there is not None
            assert [(s.person, s.state) for s in there] == [("before", MessageState.CLOSED)]
            await rig.hub.accept(rig.inbound("now"))
            states: list[MessageState] = []
            async with asyncio.timeout(60):
                while MessageState.CLOSED not in states:
                    states += [s.state for s in await follower.next(5) or () if s.person == "now"]


async def test_a_session_that_does_not_exist_yet_can_be_watched(tmp_path: Path):
    async with (
        gateway(tmp_path, echo) as rig,
        rig.hub.follow_session(SessionKey("test", "a", "new")) as follower,
    ):
        assert await follower.next(5) == ()
        await rig.hub.accept(rig.inbound("hi", session="new"))
        async with asyncio.timeout(60):
            while not any(s.state is MessageState.CLOSED for s in await follower.next(5) or ()):
                pass


async def test_why_tells_the_story(tmp_path: Path):
    async def stalls(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await response.write(chunk({"content": "Half"}))
        await asyncio.sleep(5)

    async with gateway(tmp_path, stalls, settings=replace(QUICK, stall_seconds=0.2)) as rig:
        end = await rig.say("go")
        assert end.exit.code is ExitCode.BROKEN_IN_TEXT
        story = "\n".join(await why(rig.store, end.turn, SystemClock().now_ms))
        assert "went quiet" in story
        assert "asked the model to go on" in story


async def test_draining_waits_for_turns_and_keeps_what_has_not_begun(tmp_path: Path):
    async with gateway(tmp_path, slow) as rig:
        running = await rig.hub.accept(rig.inbound("0"))
        await rig.hub.accept(rig.inbound("1", key="waits"))
        await rig.until_text(running, "0 ")
        await rig.hub.drain(0.2)
        async with rig.hub.follow(running) as follower:
            assert await follower.next(5) == LeftOpen("", View((), open=True))
        with pytest.raises(NotAccepted):
            await rig.hub.accept(rig.inbound("2"))
    async with gateway(tmp_path, echo) as rig:
        end = await rig.say("1", key="waits")
        assert end.view.text == "You said: 1"
