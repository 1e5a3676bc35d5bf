"""A conversation that makes its model fail, in whatever way, goes on with the next message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage, Message
from tests.gateway.rig import chunk, gateway

Fails = Callable[[web.StreamResponse, web.Request], Awaitable[None]]
PICTURE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


async def server_error(response: web.StreamResponse, _: web.Request) -> None:
    """Ollama's own words, when it cannot read what it is sent."""
    await response.write(
        b'data: {"error": {"message": "Value looks like object, but can\'t find closing \'}\' symbol", "code": 500}}\n\n'
    )


async def empty(response: web.StreamResponse, _: web.Request) -> None:
    await response.write(chunk({"content": ""}, "stop") + b"data: [DONE]\n\n")


async def blank(response: web.StreamResponse, _: web.Request) -> None:
    await response.write(chunk({"content": "\u200b"}, "stop") + b"data: [DONE]\n\n")


async def thought(response: web.StreamResponse, _: web.Request) -> None:
    await response.write(chunk({"reasoning_content": "hm"}, "stop") + b"data: [DONE]\n\n")


async def garbage(response: web.StreamResponse, _: web.Request) -> None:
    await response.write(b"<html><body>ok</body></html>")


async def reset(_: web.StreamResponse, request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


async def silence(_: web.StreamResponse, __: web.Request) -> None:
    await asyncio.sleep(3)


def poisoned(fails: Fails, word: str, calls: list[bool]) -> Callable[..., Awaitable[None]]:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        calls.append(word in str(messages))
        if calls[-1]:
            await fails(response, request)
        else:
            await response.write(chunk({"content": "It is well."}, "stop") + b"data: [DONE]\n\n")

    return reply


@pytest.mark.parametrize("fails", [server_error, empty, blank, thought, garbage, reset, silence])
async def test_a_message_that_makes_the_model_fail_is_left_out_of_the_next_turn(tmp_path: Path, fails: Fails):
    calls: list[bool] = []
    async with gateway(tmp_path, poisoned(fails, "poison", calls)) as rig:
        assert (await rig.say("My name is Ann.")).exit.code is ExitCode.ANSWERED
        assert (await rig.say("here is some poison")).exit.code is not ExitCode.ANSWERED
        first = await rig.say("and now something else")
        assert first.exit.code is ExitCode.ANSWERED
        assert "m1 replied only without an earlier message; I left it out" in first.view.text
        assert "Ann" in str(rig.model.requests[-1]["messages"]), "what was answered stays"
        before = len(calls)
        assert (await rig.say("and more")).exit.code is ExitCode.ANSWERED
        assert calls[before:] == [False], "what was found is remembered"


async def test_a_picture_of_the_message_itself_that_makes_the_model_fail_is_left_out(tmp_path: Path):
    calls: list[bool] = []
    async with gateway(tmp_path, poisoned(server_error, "base64", calls)) as rig:
        ended = await rig.say("", input=(InputMessage([{"type": "text", "text": "What is it?"}, PICTURE]),))
        assert ended.exit.code is ExitCode.ANSWERED
        assert "a picture of yours" in ended.view.text


async def test_where_nothing_can_be_meant_no_further_call_is_made(tmp_path: Path):
    calls: list[bool] = []
    async with gateway(tmp_path, poisoned(server_error, "poison", calls)) as rig:
        await rig.say("hello")
        await rig.say("poison")
        assert calls == [False, True, True, True, True]


async def test_a_client_that_brings_its_conversation_along_is_helped_too(tmp_path: Path):
    calls: list[bool] = []
    history: tuple[Message, ...] = (
        {"role": "user", "content": "poison"},
        {"role": "assistant", "content": "[outspoken] The model is not available."},
    )
    async with gateway(tmp_path, poisoned(server_error, "poison", calls)) as rig:
        ended = await rig.say("", input=(InputMessage("And now?"),), own_history=history)
        assert ended.exit.code is ExitCode.ANSWERED


async def test_if_it_does_not_help_the_notice_says_what_was_tried_and_what_can_help(tmp_path: Path):
    calls: list[bool] = []
    async with gateway(tmp_path, poisoned(server_error, "user", calls)) as rig:
        first = await rig.say("one")
        second = await rig.say("two")
        assert "earlier messages" not in first.view.text
        assert "Asked without the earlier messages, it did not reply either." in second.view.text
        assert len(calls) == 4 + 5


async def too_long(response: web.StreamResponse, _: web.Request) -> None:
    await response.write(
        b'data: {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum", "code": 400}}\n\n'
    )


async def test_a_message_that_is_too_long_by_itself_is_not_said_to_be_the_conversation(tmp_path: Path):
    async with gateway(tmp_path, poisoned(too_long, "very long", [])) as rig:
        for _ in range(2):
            alone = await rig.say("very long")
            assert alone.exit.code is ExitCode.CONTEXT_OVERFLOW
            assert "/new" not in alone.view.text
            assert "in parts" in alone.view.text
            await rig.say("hello")


async def test_a_model_that_sees_nothing_to_go_on_from_has_not_finished_the_text(tmp_path: Path):
    calls = 0

    async def forgetful(_: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            words = "I'm sorry, I don't see anything to continue."
            await response.write(
                chunk({"content": words[:9]}) + chunk({"content": words[9:]}, "stop") + b"data: [DONE]\n\n"
            )
            return
        await response.write(chunk({"content": "The harbour opens at nine and the ferry lea"}))
        assert request.transport is not None
        request.transport.abort()

    async with gateway(tmp_path, forgetful) as rig:
        ended = await rig.say("When?")
        assert ended.exit.code is ExitCode.BROKEN_IN_TEXT
        assert "sorry" not in ended.view.text
