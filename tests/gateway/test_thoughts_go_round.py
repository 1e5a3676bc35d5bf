"""Through a whole gateway: models that want their thoughts back get them, in the turn and in later ones, also after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aiohttp import web

from agent_core.failures.exits import ExitCode
from agent_core.tools.base import EffectClass
from tests.gateway.rig import CountingTool, Reply, chunk, gateway

SIGNATURE = "EqoBCkgIARABGAIiQL2UoU0b1OHYi+/="
CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def asks_for_a_tool(messages: list[dict[str, Any]]) -> bool:
    return messages[-1]["role"] != "tool" and "look" in str(messages[-1]["content"])


def strict(thought: dict[str, Any], call: dict[str, Any], complaint: Any) -> Reply:
    """A model that thinks before each call, and refuses a conversation in which a call lacks what belongs to it."""

    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        words = complaint(messages)
        if words:
            await response.write(b"data: " + json.dumps({"error": {"message": words, "code": 400}}).encode() + b"\n\n")
        elif asks_for_a_tool(messages):
            await response.write(chunk(thought) + chunk({"tool_calls": [call]}, "tool_calls") + b"data: [DONE]\n\n")
        else:
            await response.write(chunk({"content": "All is well."}, "stop") + b"data: [DONE]\n\n")

    return reply


def calls_of(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in messages if message.get("tool_calls")]


def without_content(messages: list[dict[str, Any]]) -> str:
    at = [
        n
        for n, message in enumerate(messages)
        if message.get("tool_calls") and message.get("reasoning_content") != "I have to look."
    ]
    return f"Missing the thoughts field in the assistant message at message index {at[0]}." if at else ""


def without_blocks(messages: list[dict[str, Any]]) -> str:
    wanted = [{"type": "thinking", "thinking": "I have to look.", "signature": SIGNATURE}]
    return (
        "Expected signed blocks"
        if any(message.get("thinking_blocks") != wanted for message in calls_of(messages))
        else ""
    )


def without_signature(messages: list[dict[str, Any]]) -> str:
    signed = {"google": {"thought_signature": SIGNATURE}}
    return (
        "A call lacks its signature"
        if any(m["tool_calls"][0].get("extra_content") != signed for m in calls_of(messages))
        else ""
    )


SHAPES: dict[str, Reply] = {
    "reasoning_content": strict({"reasoning_content": "I have to look."}, CALL, without_content),
    "thinking_blocks": strict(
        {"reasoning_content": "I have to look.", "thinking_blocks": [{"type": "thinking", "thinking": "I have to look.", "signature": SIGNATURE}]},
        CALL,
        without_blocks,
    ),
    "thought_signature": strict({"content": ""}, {**CALL, "extra_content": {"google": {"thought_signature": SIGNATURE}}}, without_signature),
}  # fmt: skip


async def test_thoughts_go_back_within_a_turn_in_later_ones_and_after_a_restart(tmp_path: Path) -> None:
    for name, reply in SHAPES.items():
        folder = tmp_path / name
        folder.mkdir()
        look = CountingTool("look", EffectClass.PURE, folder / "ran")
        async with gateway(folder, reply, tools=[look]) as rig:
            for words in ("Please look", "And now?", "Please look again"):
                assert (await rig.say(words)).exit.code is ExitCode.ANSWERED, name
            asked = len(rig.model.requests)
            assert asked == 5, "no request was refused"
            assert "_thoughts" not in json.dumps(rig.model.requests)
        async with gateway(folder, reply, tools=[look]) as rig:
            assert (await rig.say("Is it still well?")).exit.code is ExitCode.ANSWERED, name
            assert len(rig.model.requests) == 1
            assert len(calls_of(rig.model.requests[0]["messages"])) == 2


async def test_another_model_gets_no_thoughts_of_the_first(tmp_path: Path) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, request: web.Request) -> None:
        body = await request.json()
        if body["model"] == "m1" and messages[-1]["role"] == "tool":
            await response.write(b'data: {"error": {"message": "no more of this", "code": 401}}\n\n')
        elif messages[-1]["role"] == "tool":
            await response.write(chunk({"content": "All is well."}, "stop") + b"data: [DONE]\n\n")
        else:
            thought = {
                "reasoning_content": "secret",
                "thinking_blocks": [{"type": "thinking", "thinking": "secret", "signature": SIGNATURE}],
            }
            signed = {**CALL, "extra_content": {"google": {"thought_signature": SIGNATURE}}}
            await response.write(chunk(thought) + chunk({"tool_calls": [signed]}, "tool_calls") + b"data: [DONE]\n\n")

    look = CountingTool("look", EffectClass.PURE, tmp_path / "ran")
    async with gateway(tmp_path, reply, tools=[look], models=("m1", "m2")) as rig:
        ended = await rig.say("Please look")
        to_second = [json.dumps(body) for body in rig.model.requests if body["model"] == "m2"]
        to_first = [json.dumps(body) for body in rig.model.requests if body["model"] == "m1"]
    assert ended.exit.code is ExitCode.ANSWERED or not to_second
    assert SIGNATURE in to_first[-1]
    assert all(SIGNATURE not in body and "secret" not in body for body in to_second)
