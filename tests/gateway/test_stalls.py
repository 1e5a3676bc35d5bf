"""Stalls that come back, with everything real beneath the hub: a provider that stalls on every large tool call."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.contract.base import Ended, once
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.messages import Message
from agent_core.store.troubles.rows import IncidentState
from agent_core.tools.base import EffectClass
from agent_core.turn.view import BubbleKind
from tests.gateway.rig import QUICK, CountingTool, Rig, call_chunk, chunk, gateway

Messages = list[dict[str, Any]]
PAGE = "<p>page</p>" * 2_000
PIECES = 4
FAST = replace(QUICK, stall_seconds=0.25, first_content_seconds=0.5)


def advised(messages: Messages) -> bool:
    return any("[outspoken]" in str(m["content"]) and "smaller pieces" in str(m["content"]) for m in messages)


def pieces_done(messages: Messages) -> int:
    """How many pieces of the latest request are written."""
    last = max(
        index for index, m in enumerate(messages) if m["role"] == "user" and not m["content"].startswith("[outspoken]")
    )
    return sum(m["role"] == "tool" for m in messages[last:])


class Provider:
    """Large tool calls stall on their way; a model that was advised sends pieces, and says when it is done."""

    def __init__(self, *, pieces_help: bool = True, good: str = "") -> None:
        self.pieces_help = pieces_help
        self.good = good
        self.stalled = 0
        self.mended = False
        self.says = ""
        """If set, it only says this."""
        self.small = False
        """It has little to write."""
        self.stalls_without_the_tool = False
        self.mends_after = 1_000_000
        """So many stalls, and then a call comes whole."""

    async def reply(self, messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        body = await request.json()
        if self.says:
            await response.write(chunk({"content": self.says}) + chunk({}, "stop"))
        elif not any(tool["function"]["name"] == "write" for tool in body.get("tools", [])):
            if self.stalls_without_the_tool:
                await response.write(call_chunk("write", json.dumps({"text": PAGE})[:9_000], None))
                await asyncio.sleep(20)
            await response.write(chunk({"content": "Here is the page as text."}) + chunk({}, "stop"))
        elif self.small and not pieces_done(messages):
            await response.write(call_chunk("write", json.dumps({"text": "milk"})))
        elif self.small or self.mended or body["model"] == self.good or self.stalled >= self.mends_after:
            await self._whole(messages, response)
        elif advised(messages) and self.pieces_help:
            await self._piece(messages, response)
        else:
            self.stalled += 1
            await response.write(call_chunk("write", json.dumps({"text": PAGE})[:9_000], None))
            await asyncio.sleep(20)

    async def _whole(self, messages: Messages, response: web.StreamResponse) -> None:
        if pieces_done(messages):
            await response.write(chunk({"content": "The page is written at once."}) + chunk({}, "stop"))
        else:
            await response.write(call_chunk("write", json.dumps({"text": PAGE})))

    async def _piece(self, messages: Messages, response: web.StreamResponse) -> None:
        done = pieces_done(messages)
        if done >= PIECES:
            await response.write(chunk({"content": "The page is written in pieces."}) + chunk({}, "stop"))
        else:
            await response.write(call_chunk("write", json.dumps({"text": PAGE[:3_000]}), call=f"call_{done}"))


def writer(folder: Path) -> CountingTool:
    return CountingTool("write", EffectClass.KEYED, folder / "writes")


async def test_a_second_request_of_the_kind_does_not_stall_at_all(tmp_path: Path) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        first = await rig.say("write me the page")
        assert (first.exit.code, first.view.text) == (ExitCode.ANSWERED, "The page is written in pieces.")
        stalled = provider.stalled
        assert stalled == 2
        second = await rig.say("write me another page")
        assert second.exit.code is ExitCode.ANSWERED
        assert provider.stalled == stalled


async def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await rig.say("write me the page")
    stalled = provider.stalled
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await rig.say("write me another page")
        assert provider.stalled == stalled


async def as_person(rig: Rig, name: str, session: str = "") -> Ended:
    return await rig.say("write me the page", session=session or name, memory_scope=f"api/{name}")


async def test_while_an_incident_is_open_another_persons_turn_does_not_stall_at_all(tmp_path: Path) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await as_person(rig, "ann")
        await as_person(rig, "bob")
        stalled = provider.stalled
        assert stalled == 4
        third = await as_person(rig, "cleo")
        assert third.exit.code is ExitCode.ANSWERED
        assert provider.stalled == stalled
        (incident,) = rig.hub.learning.open_incidents
        assert (incident.state, incident.tool, incident.conversations) == (IncidentState.OPEN, "write", 2)
        assert incident.remedy == "advise_smaller"


async def test_a_person_with_ten_conversations_opens_no_incident_and_neither_does_who_is_nobody(tmp_path: Path) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for number in range(10):
            await as_person(rig, "ann", f"s{number}")
        await rig.hub.learning.look()
        assert rig.hub.learning.open_incidents == ()
    async with gateway(tmp_path / "other", provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for number in range(3):
            await rig.say("write me the page", session=f"s{number}", memory_scope="api")
        await rig.hub.learning.look()
        assert rig.hub.learning.open_incidents == ()


async def test_while_an_incident_is_open_everybody_is_recovered_also_if_its_remedy_helps_no_more(
    tmp_path: Path,
) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for name in ("ann", "bob", "cleo", "dan"):
            assert (await as_person(rig, name)).exit.code is ExitCode.ANSWERED
        provider.pieces_help = False
        provider.mends_after = provider.stalled + 2
        for name in ("eve", "fay", "gus"):
            assert (await as_person(rig, name)).exit.code is ExitCode.ANSWERED
            provider.mends_after = provider.stalled + 2
        await rig.hub.learning.look()
        (incident,) = rig.hub.learning.open_incidents
        assert incident.remedy in ("retry", "as_usual")
        before = len(rig.model.requests)
        await as_person(rig, "hal")
        assert not advised(rig.model.requests[before]["messages"])


async def test_an_incident_ends_with_the_model_that_it_is_about(tmp_path: Path) -> None:
    provider = Provider()
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for name in ("ann", "bob"):
            await as_person(rig, name)
        await rig.hub.learning.look()
        assert len(rig.hub.learning.open_incidents) == 1
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST, models=("m2",)) as rig:
        await rig.hub.learning.look()
        assert rig.hub.learning.open_incidents == ()
        assert [one.state for one in await rig.store.troubles.incidents(open_only=False)] == [IncidentState.CLOSED]


async def test_what_nothing_helps_against_is_given_as_text_the_third_time_after_all_that_there_is(
    tmp_path: Path,
) -> None:
    provider = Provider(pieces_help=False)
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        ends = [await rig.say("write me the page"), await rig.say("continue")]
        assert [end.exit.code for end in ends] == [ExitCode.BROKEN_IN_TOOL_CALL] * 2
        assert provider.stalled == 3 + 4
        third = await rig.say("continue")
        assert provider.stalled == 3 + 4 + 4
        assert (third.exit.code, third.view.text) == (ExitCode.ANSWERED, "Here is the page as text.")


async def test_what_is_not_given_as_text_either_is_told_with_all_that_was_tried(tmp_path: Path) -> None:
    provider = Provider(pieces_help=False)
    provider.stalls_without_the_tool = True
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for words in ("write me the page", "continue"):
            await rig.say(words)
        third = await rig.say("continue")
        assert isinstance(third.exit, exits.SameStallAgain)
        assert third.exit.count == 3
        notice = next(bubble.text for bubble in third.view.bubbles if bubble.kind is BubbleKind.NOTICE)
        for words in ("write", "the same call again", "smaller pieces", "asking for text instead"):
            assert words in notice


async def test_a_small_call_of_the_tool_works_however_often_large_ones_have_broken_off(tmp_path: Path) -> None:
    provider = Provider(pieces_help=False)
    tool = writer(tmp_path)
    async with gateway(tmp_path, provider.reply, tools=[tool], settings=FAST) as rig:
        for words in ("write me the page", "continue", "continue", "continue"):
            await rig.say(words)
        assert tool.runs() == []
        provider.small = True
        assert (await rig.say("note: milk")).exit.code is ExitCode.ANSWERED
        assert len(tool.runs()) == 1


async def test_from_the_second_time_on_it_begins_at_the_next_model(tmp_path: Path) -> None:
    provider = Provider(pieces_help=False)
    models = ("m1", "m2", "m3")
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST, models=models) as rig:
        for words in ("write me the page", "continue"):
            await rig.say(words)
        provider.good = "m1"
        before = len(rig.model.requests)
        third = await rig.say("continue")
        assert third.exit.code is ExitCode.ANSWERED
        # All had stalled: none is passed over
        assert {request["model"] for request in rig.model.requests[before:]} == {"m1"}


async def test_a_call_that_comes_whole_clears_what_was_known(tmp_path: Path) -> None:
    provider = Provider(pieces_help=False)
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await rig.say("write me the page")
        provider.mended = True
        assert (await rig.say("continue")).exit.code is ExitCode.ANSWERED
        assert advised(rig.model.requests[-1]["messages"])
        await rig.say("write me another page")
        assert not advised(rig.model.requests[-1]["messages"])


async def test_a_stub_of_text_clears_nothing(tmp_path: Path) -> None:
    provider = Provider(pieces_help=False)
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await rig.say("write me the page")
        provider.says = "Yes?"
        await rig.say("are you there?")
        provider.says = ""
        await rig.say("go on")
        assert advised(rig.model.requests[-1]["messages"])


async def test_a_stateless_client_is_known_by_who_asks_and_how_the_conversation_begins(tmp_path: Path) -> None:
    provider = Provider()

    async def ask(rig: Rig, who: str, history: tuple[Message, ...], words: str, number: int) -> None:
        await rig.say(words, session=f"once-{number}", own_history=history, memory_scope=who)

    history: tuple[Message, ...] = (
        {"role": "user", "content": "write me the page"},
        {"role": "assistant", "content": "Done."},
    )
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        await ask(rig, "api/ann", (), "write me the page", 1)
        stalled = provider.stalled
        await ask(rig, "api/ann", history, "and another", 2)
        assert provider.stalled == stalled
        await ask(rig, "api/ann", (), "something else", 3)
        assert provider.stalled == stalled + 2


async def test_two_who_do_not_say_who_they_are_share_nothing_however_alike_they_begin(tmp_path: Path) -> None:
    provider = Provider()
    history: tuple[Message, ...] = ({"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"})
    async with gateway(tmp_path, provider.reply, tools=[writer(tmp_path)], settings=FAST) as rig:
        for number in range(2):
            stalled = provider.stalled
            inbound = replace(
                rig.inbound("write me the page", session=""),
                session=once(f"x{number}"),
                own_history=history,
                memory_scope="api",
            )
            await rig.end(await rig.hub.accept(inbound))
            assert provider.stalled == stalled + 2
            assert not advised(rig.model.requests[0]["messages"])


async def test_ten_sessions_with_one_fault_are_one_incident(tmp_path: Path) -> None:
    async def down(messages: Messages, response: web.StreamResponse, request: web.Request) -> None:
        await asyncio.sleep(20)

    quick = replace(FAST, first_content_seconds=0.1)
    async with gateway(tmp_path, down, settings=quick) as rig:
        ends = await asyncio.gather(*(rig.say("hello", session=f"s{n}", memory_scope=f"api/p{n}") for n in range(10)))
        assert {end.exit.code for end in ends} == {ExitCode.BROKEN_BEFORE_TEXT}
        assert all(any(b.kind is BubbleKind.NOTICE for b in end.view.bubbles) for end in ends)
        for _ in range(100):
            await rig.hub.learning.look()
            if any(one.conversations == 10 for one in rig.hub.learning.open_incidents):
                break
            await asyncio.sleep(0.05)
        assert [one.conversations for one in rig.hub.learning.open_incidents] == [10]
