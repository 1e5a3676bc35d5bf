"""What the model makes beside text, and what it thinks, reaches clients in the schema's fields, and comes back where its provider wants it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.e2e.talking import person, talking
from tests.gateway.rig import Reply, call_chunk, chunk

PICTURE = b"\x89PNG a picture"
PIXEL = "data:image/png;base64," + b64encode(PICTURE).decode()
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}},
}
SIGNED = {"google": {"thought_signature": "c2lnbmVk"}}
DETAILS = [{"type": "reasoning.encrypted", "data": "b3BhcXVl", "id": "r1", "index": 0}]


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _saying(*pieces: bytes) -> Reply:
    async def reply(_: list[dict[str, Any]], response: web.StreamResponse, __: web.Request) -> None:
        for piece in pieces:
            await response.write(piece)

    return reply


async def _streamed(talk: Any, *messages: Any, **more: Any) -> dict[str, Any]:
    """All deltas of a stream as one, and what its chunks have beside."""
    found: dict[str, Any] = {"content": "", "reasoning_content": "", "refusal": ""}
    async for part in await talk.ask(*messages, stream=True, **more):
        for choice in part.choices:
            said = choice.delta.model_dump(exclude_none=True)
            for name, value in said.items():
                found[name] = found[name] + value if isinstance(found.get(name), str) and name != "role" else value
            found["logprobs"] = choice.logprobs or found.get("logprobs")
            found["finish"] = choice.finish_reason or found.get("finish")
    return found


async def test_a_picture_reaches_the_client_and_is_kept_as_a_file(tmp_path: Path) -> None:
    drawn = chunk({"images": [{"type": "image_url", "index": 0, "image_url": {"url": PIXEL}}]})
    async with talking(tmp_path, _saying(drawn, chunk({}, "stop"))) as talk:
        whole = await talk.ask(person("draw"), extra_headers={"Idempotency-Key": "k"})
        again = await talk.ask(person("draw"), extra_headers={"Idempotency-Key": "k"})
        streamed = await _streamed(talk, person("draw"))
    for message in (whole.choices[0].message.model_dump(), again.choices[0].message.model_dump(), streamed):
        assert message["images"][0]["image_url"]["url"] == PIXEL
    assert whole.model_extra["outspoken"]["exit"] == "answered"
    assert {file.read_bytes() for file in (tmp_path / "outbox").rglob("*.png")} == {PICTURE}
    assert len(talk.model.requests) == 2, "a picture alone passed for nothing"


async def test_sound_reaches_the_client_and_its_words_are_read(tmp_path: Path) -> None:
    pieces = [
        {"id": "a1"},
        {"data": b64encode(b"on").decode()},
        {"transcript": "Good day."},
        {"data": b64encode(b"e!").decode()},
    ]
    spoken = [chunk({"audio": piece}) for piece in pieces]
    async with talking(tmp_path, _saying(*spoken, chunk({}, "stop"))) as talk:
        whole = await talk.ask(person("speak"), modalities=["text", "audio"], audio={"voice": "a", "format": "pcm16"})
        streamed = await _streamed(talk, person("speak"))
    sound = whole.choices[0].message.audio
    assert (sound.id, sound.transcript, b64decode(sound.data)) == ("a1", "Good day.", b"one!")
    assert streamed["audio"]["data"] == sound.data
    assert whole.choices[0].message.content == "Good day."


async def test_a_refusal_sources_and_probabilities_stand_in_their_fields(tmp_path: Path) -> None:
    token: dict[str, Any] = {"token": "No", "logprob": -0.25, "bytes": None, "top_logprobs": []}
    async with talking(tmp_path, _saying(chunk({"refusal": "I won't."}), chunk({}, "stop"))) as talk:
        program = {"extra_headers": {"X-Outspoken-Errors": "status"}}
        whole, streamed = await talk.ask(person("x"), **program), await _streamed(talk, person("x"), **program)
        assert (whole.choices[0].message.content, whole.choices[0].message.refusal) == ("I won't.", "I won't.")
        assert (streamed["content"], streamed["refusal"]) == ("I won't.", "I won't."), "many look at the text alone"
        people = await talk.ask(person("x"))
        assert people.choices[0].message.content == "I won't.", "front ends do not show what stands in that field"

    async def probable(_: Any, response: web.StreamResponse, __: web.Request) -> None:
        body: dict[str, Any] = {
            "index": 0,
            "delta": {"content": "No", "annotations": [{"type": "url_citation"}]},
            "logprobs": {"content": [token]},
        }
        await response.write(_event({"choices": [body]}))
        await response.write(chunk({}, "stop"))

    async with talking(tmp_path / "b", probable) as talk:
        whole, streamed = await talk.ask(person("x"), logprobs=True), await _streamed(talk, person("x"), logprobs=True)
        assert whole.choices[0].logprobs.content[0].logprob == streamed["logprobs"].content[0].logprob == -0.25
        assert [one.type for one in whole.choices[0].message.annotations] == ["url_citation"]
        assert talk.sent["logprobs"] is True


async def test_what_was_used_is_told_with_what_was_thought_and_cached(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip
    told = _event({"choices": [], "usage": usage})
    async with talking(tmp_path, _saying(chunk({"content": "hi"}, "stop"), told)) as talk:
        used = (await talk.ask(person("x"))).usage
    assert used.prompt_tokens_details.cached_tokens == 4
    assert used.completion_tokens_details.reasoning_tokens == 3


async def test_what_a_provider_does_not_take_is_left_out_and_named(tmp_path: Path) -> None:
    model: Any = None

    async def picky(_: Any, response: web.StreamResponse, request: web.Request) -> None:
        if "thinking" in model.sent:
            body = {"error": {"message": "Unsupported parameter: 'thinking' is not supported with this model."}}
            await response.write(_event(body))
        else:
            await response.write(chunk({"content": "hi"}, "stop"))

    async with talking(tmp_path, picky) as talk:
        model = talk
        found = await talk.ask(person("x"), extra_body={"thinking": {"type": "enabled"}})
        assert found.choices[0].message.content == "hi"
        assert found.model_extra["outspoken"]["left_out"] == ["thinking"]


async def _thinks(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
    if messages[-1]["role"] == "tool":
        await response.write(chunk({"content": "Rain."}, "stop"))
        return
    await response.write(chunk({"reasoning": "I must ", "reasoning_details": DETAILS}))
    await response.write(chunk({"reasoning": "look."}))
    function = {"name": "weather", "arguments": "{}"}
    call = {"index": 0, "id": "call_c", "type": "function", "function": function, "extra_content": SIGNED}
    await response.write(chunk({"tool_calls": [call]}, "tool_calls"))


@pytest.mark.parametrize("stream", [False, True])
async def test_thoughts_go_round_with_a_client_that_runs_its_own_tools(tmp_path: Path, stream: bool) -> None:
    async with talking(tmp_path, _thinks) as talk:
        if stream:
            said = await _streamed(talk, person("x"), tools=[WEATHER])
            said = {name: value for name, value in said.items() if name not in ("logprobs", "finish", "refusal")}
            said["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in said["tool_calls"]]
        else:
            said = (await talk.ask(person("x"), tools=[WEATHER])).choices[0].message.model_dump(exclude_none=True)
        assert said["reasoning_content"] == "I must look."
        assert said["reasoning_details"] == DETAILS
        assert said["tool_calls"][0]["extra_content"] == SIGNED
        rain = {"role": "tool", "tool_call_id": "call_c", "content": "rain"}
        await talk.ask(person("x"), said, rain, tools=[WEATHER])
        back = talk.sent["messages"][-2]
        assert back["reasoning_details"] == DETAILS
        assert back["tool_calls"][0]["extra_content"] == SIGNED
        assert "_thoughts" not in back


async def test_thoughts_are_hidden_where_the_operator_wants_it(tmp_path: Path) -> None:
    async with talking(tmp_path, _thinks, {"OUTSPOKEN_SERVER__THINKING": "false"}) as talk:
        said = (await talk.ask(person("x"), tools=[WEATHER])).choices[0].message.model_dump(exclude_none=True)
        assert not {"reasoning_content", "reasoning_details"} & set(said)
        streamed = await _streamed(talk, person("x"), tools=[WEATHER])
        assert streamed["reasoning_content"] == ""


async def test_within_a_turn_of_the_gateways_tools_thoughts_and_signatures_go_back(tmp_path: Path) -> None:
    async def reply(messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await response.write(chunk({"content": "done"}, "stop"))
            return
        await response.write(chunk({"reasoning_content": "Let me see."}))
        await response.write(call_chunk("list_files", "{}"))

    async with talking(tmp_path, reply) as talk:
        await talk.ask(person("x"))
        assert talk.sent["messages"][-2]["reasoning_content"] == "Let me see."
