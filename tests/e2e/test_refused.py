"""What a provider refuses does not poison a conversation: the part is found and left out, people are told, and what comes next works at once."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent_core.turn.transcript import problems
from tests.listening import listening
from tests.serving import served

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
Messages = list[dict[str, Any]]
Refusal = tuple[int, Any]
Rule = Callable[[Messages], Refusal | None]


def shows_picture(messages: Messages) -> bool:
    return '"image_url"' in json.dumps(messages)


def says(words: str, messages: Messages) -> bool:
    return words in json.dumps(messages)


def place_of(what: str, messages: Messages) -> int:
    return next(place for place, message in enumerate(messages) if what in json.dumps(message))


@dataclass
class Strict:
    """A provider with one rule. What it takes it answers, and says what it was asked last."""

    rule: Rule
    url: str = ""
    asked: list[Messages] = field(default_factory=list[Messages])
    refused: int = 0
    models: list[str] = field(default_factory=list[str])

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        messages: Messages = body["messages"]
        assert problems(messages) == []
        self.asked.append(messages)
        self.models.append(body["model"])
        refusal = self.rule(messages)
        if refusal is not None:
            self.refused += 1
            status, said = refusal
            return web.Response(status=status, text=json.dumps(said), content_type="application/json")
        words = "I have seen that."
        end = {"choices": [{"index": 0, "delta": {"content": words}, "finish_reason": "stop"}]}
        return web.Response(text=f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")


@asynccontextmanager
async def strict(rule: Rule) -> AsyncGenerator[Strict]:
    made = Strict(rule)
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", made.complete)
    async with listening(app) as url:
        made.url = f"{url}/v1"
        yield made


@dataclass
class Talk:
    """A conversation with a gateway before that provider."""

    http: aiohttp.ClientSession
    url: str
    session: str = "k1"

    async def say(self, words: str, *parts: Any) -> tuple[str, str]:
        """(what is shown, how it ended)."""
        content = [{"type": "text", "text": words}, *parts] if parts else words
        body = {"model": "outspoken", "messages": [{"role": "user", "content": content}]}
        headers = {"X-Outspoken-Session": self.session}
        async with self.http.post(f"{self.url}/v1/chat/completions", json=body, headers=headers) as response:
            reply = await response.json()
        return reply["choices"][0]["message"]["content"], reply["outspoken"]["exit"]


@asynccontextmanager
async def talking(home: Path, model: Strict, name: str = "m") -> AsyncGenerator[Talk]:
    env = {
        "OUTSPOKEN_MODEL__BASE_URL": model.url,
        "OUTSPOKEN_MODEL__NAME": name,
        "OUTSPOKEN_MODEL__API_KEY": "sk-1234567890",
    }
    async with served(home, env) as up, aiohttp.ClientSession() as http:
        yield Talk(http, up.url)


def error(words: str, **more: Any) -> Any:
    return {"error": {"message": words, "type": "invalid_request_error", **more}}


BLIND: dict[str, Callable[[Messages], Refusal]] = {
    "openai": lambda m: (400, error("Invalid content type. image_url is only supported by certain models.")),
    "openrouter": lambda m: (404, {"error": {"message": "No endpoints found that support image input", "code": 404}}),
    "deepseek": lambda m: (
        400,
        error(f"messages[{place_of('image_url', m)}]: unknown variant `image_url`, expected `text` at line 1"),
    ),
    "llama.cpp": lambda m: (500, {"error": {"code": 500, "message": "image input is not supported by this server"}}),
    # vllm-project/vllm#23402; mlx_lm/server.py of ml-explore/mlx-lm; LM Studio as users quote it; ggml-org/llama.cpp#13566 behind LiteLLM
    "vllm": lambda m: (400, {"object": "error", "message": "Qwen/Qwen3-8B is not a multimodal model", "code": 400}),
    "mlx-lm": lambda m: (404, {"error": "Only 'text' content type is supported."}),
    "lm studio": lambda m: (400, {"error": "Model does not support images. Please use a model that does."}),
    "litellm before llama.cpp": lambda m: (
        500,
        error("litellm.InternalServerError: OpenAIException - image input is not supported by this server"),
    ),
    "in a 200": lambda m: (200, {"error": {"code": 400, "message": "this model does not support image input"}}),
    "without a word": lambda m: (400, error("Bad request")),
}


@pytest.mark.parametrize("name", BLIND)
async def test_a_picture_for_a_model_without_eyes_is_left_out_and_the_next_message_works_at_once(
    tmp_path: Path, name: str
):
    def rule(messages: Messages) -> Refusal | None:
        return BLIND[name](messages) if shows_picture(messages) else None

    async with strict(rule) as model, talking(tmp_path, model) as talk:
        said, ended = await talk.say("What is on this picture?", PICTURE)
        assert ended == "answered"
        assert "left" in said
        assert "picture" in said
        assert "[outspoken]" in said
        assert "a picture was here" in json.dumps(model.asked[-1])
        assert model.refused == 1
        said, ended = await talk.say("Never mind, how are you?")
        assert (said, ended) == ("I have seen that.", "answered")
        assert model.refused == 1
        assert says("What is on this picture?", model.asked[-1])


async def test_another_picture_is_left_out_from_the_start_and_people_are_told_again(tmp_path: Path):
    def rule(messages: Messages) -> Refusal | None:
        return BLIND["openai"](messages) if shows_picture(messages) else None

    async with strict(rule) as model, talking(tmp_path, model) as talk:
        await talk.say("What is this?", PICTURE)
        said, ended = await talk.say(
            "And this?", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        )
        assert ended == "answered"
        assert model.refused == 1
        assert "can't take pictures" in said


async def test_with_another_model_it_is_tried_again(tmp_path: Path):
    def rule(messages: Messages) -> Refusal | None:
        return BLIND["openai"](messages) if shows_picture(messages) and model.models[-1] == "blind" else None

    async with strict(rule) as model:
        async with talking(tmp_path, model, "blind") as talk:
            await talk.say("What is this?", PICTURE)
            assert model.refused == 1
        async with talking(tmp_path, model, "seeing") as talk:
            said, ended = await talk.say("And now?")
            assert (said, ended) == ("I have seen that.", "answered")
            assert shows_picture(model.asked[-1])


async def test_a_filter_that_reads_the_history_does_not_end_the_conversation(tmp_path: Path):
    def rule(messages: Messages) -> Refusal | None:
        words = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
        return (400, error(words, code="content_filter")) if says("gruesome", messages) else None

    async with strict(rule) as model, talking(tmp_path, model) as talk:
        assert (await talk.say("My name is Ann."))[1] == "answered"
        said, ended = await talk.say("Something gruesome")
        assert ended == "refused"
        said, ended = await talk.say("Then tell me my name.")
        assert ended == "answered"
        assert "I left it out" in said
        assert says("My name is Ann.", model.asked[-1])
        before = model.refused
        said, ended = await talk.say("Good.")
        assert (said, ended, model.refused) == ("I have seen that.", "answered", before)


@pytest.mark.parametrize("named", ["messages[{}]: this is not acceptable", "Invalid request."])
async def test_a_message_that_is_refused_is_found_by_its_number_or_without_one(tmp_path: Path, named: str):
    def rule(messages: Messages) -> Refusal | None:
        if not says("poison", messages):
            return None
        return 400, error(named.format(place_of("poison", messages)))

    async with strict(rule) as model, talking(tmp_path, model) as talk:
        for number in range(4):
            await talk.say(f"Fact {number}.")
        assert (await talk.say("Here is poison."))[1] == "bad_request"
        _, ended = await talk.say("What were the facts?")
        assert ended == "answered"
        assert all(says(f"Fact {number}.", model.asked[-1]) for number in range(4))
        assert not says("poison", model.asked[-1])
        before = model.refused
        assert (await talk.say("Thanks."))[1] == "answered"
        assert model.refused == before


async def test_what_cannot_be_mended_is_told_after_one_call(tmp_path: Path):
    async with (
        strict(lambda _: (400, error("Unknown parameter: 'foo'.", param="foo"))) as model,
        talking(tmp_path, model) as talk,
    ):
        for _ in range(3):
            assert (await talk.say("Hello"))[1] == "bad_request"
        assert len(model.asked) == 3


async def test_a_request_that_is_always_refused_is_given_up_after_a_few_calls(tmp_path: Path):
    async with strict(lambda _: (400, error("No."))) as model, talking(tmp_path, model) as talk:
        for _ in range(6):
            assert (await talk.say("Hello"))[1] == "bad_request"
        assert len(model.asked) <= 6 * 7


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 90000 tokens."),
        (413, "Request too large"),
        (429, "Request too large for m on tokens per min (TPM): Limit 8000, Requested 90000."),
    ],
)
async def test_a_message_that_is_too_long_does_not_end_the_conversation(tmp_path: Path, status: int, words: str):
    def rule(messages: Messages) -> Refusal | None:
        return (status, error(words)) if len(json.dumps(messages)) > 60_000 else None

    async with strict(rule) as model, talking(tmp_path, model) as talk:
        assert (await talk.say("My name is Ann."))[1] == "answered"
        _, ended = await talk.say("Read this: " + "blah " * 20_000)
        assert ended in ("context_overflow", "request_too_large")
        calls = len(model.asked)
        said, ended = await talk.say("Then not. What is my name?")
        assert (said, ended) == ("I have seen that.", "answered")
        assert len(model.asked) == calls + 1
        assert says("My name is Ann.", model.asked[-1])


async def test_a_client_that_brings_its_conversation_is_served_too(tmp_path: Path):
    def rule(messages: Messages) -> Refusal | None:
        return BLIND["deepseek"](messages) if shows_picture(messages) else None

    past: Sequence[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "See this"}, PICTURE]},
        {"role": "assistant", "content": "A cat."},
        {"role": "user", "content": "Which colour?"},
    ]
    async with strict(rule) as model, talking(tmp_path, model) as talk:
        async with talk.http.post(f"{talk.url}/v1/chat/completions", json={"model": "m", "messages": past}) as response:
            reply = await response.json()
        assert reply["outspoken"]["exit"] == "answered"
        assert "I left the earlier ones out" in reply["choices"][0]["message"]["content"]
        assert says("A cat.", model.asked[-1])


def knows_neither_systems_nor_tools(messages: Messages) -> Refusal | None:
    """Gemma's template on llama.cpp."""
    if any(message["role"] == "system" for message in messages):
        return 500, {"error": {"code": 500, "message": "Jinja Exception: System role not supported"}}
    turns = [("user", "assistant")[at % 2] for at in range(len(messages))]
    if [message["role"] for message in messages] != turns:
        return 500, {
            "error": {"code": 500, "message": "Jinja Exception: Conversation roles must alternate user/assistant"}
        }
    return None


async def test_what_a_template_wants_is_learnt_once_and_all_that_comes_later_is_put_so(tmp_path: Path):
    async with strict(knows_neither_systems_nor_tools) as model, talking(tmp_path, model) as talk:
        for number in range(3):
            assert await talk.say(f"Fact {number}.") == ("I have seen that.", "answered")
        assert model.refused == 1
        assert all(says(f"Fact {number}.", model.asked[-1]) for number in range(3))
        past: Messages = [
            {"role": "user", "content": "Read it."},
            {"role": "user", "content": "Please."},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "It says so."},
        ]  # fmt: skip
        async with talk.http.post(f"{talk.url}/v1/chat/completions", json={"model": "m", "messages": past}) as response:
            assert (await response.json())["outspoken"]["exit"] == "answered"
        assert model.refused <= 2
        assert says("It says so.", model.asked[-1])
