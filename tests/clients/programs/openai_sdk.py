"""The `openai` package with its defaults."""

from __future__ import annotations

import json

from cases import MODEL, WEATHER, run, seen, weather
from openai import OpenAI
from pydantic import BaseModel

client = OpenAI()


class Person(BaseModel):
    name: str
    age: int


def ask(words: str) -> str | None:
    return (
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": words}])
        .choices[0]
        .message.content
    )


def streamed() -> str:
    chunks = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "say hello"}], stream=True
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def tools() -> str | None:
    messages: list = [{"role": "user", "content": "what is the weather?"}]
    first = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER]).choices[0]
    assert first.finish_reason == "tool_calls"
    messages.append(first.message)
    for call in first.message.tool_calls or []:
        found = weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    return client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER]).choices[0].message.content


def structured() -> dict:
    made = client.chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": "who?"}], response_format=Person
    )
    found = made.choices[0].message.parsed
    assert found is not None
    return found.model_dump()


def responses() -> str:
    return client.responses.create(model=MODEL, input="say hello").output_text


def responses_streamed() -> str:
    with client.responses.stream(model=MODEL, input="say hello") as stream:
        return stream.get_final_response().output_text


def in_a_namespace() -> list:
    close = {"type": "function", "name": "close", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "namespace", "name": "crew", "description": "", "tools": [close]}, {"type": "web_search"}]
    found = client.responses.create(model=MODEL, input="call crew__close {}", tools=tools)
    return [[item.namespace, item.name] for item in found.output if item.type == "function_call"]


def _asked(words: str) -> dict:
    return {"model": MODEL, "messages": [{"role": "user", "content": words}]}


def _choice(made: object) -> dict:
    """The whole answer of a chat completion."""
    if not made.choices:
        return seen()
    choice = made.choices[0]
    message = choice.message
    return seen(
        message.content,
        choice.finish_reason,
        getattr(message, "parsed", None) and message.parsed.model_dump(),
        message.refusal,
    )


def chat_stream(words: str) -> dict:
    text, refusal, finish = "", "", None
    for chunk in client.chat.completions.create(**_asked(words), stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            refusal += choice.delta.refusal or ""
            finish = choice.finish_reason or finish
    return seen(text, finish, None, refusal)


def chat_tools(words: str) -> dict:
    asked = _asked(words)
    while True:
        choice = client.chat.completions.create(**asked, tools=[WEATHER]).choices[0]
        asked["messages"].append(choice.message)
        for call in choice.message.tool_calls or []:
            found = weather(**json.loads(call.function.arguments))
            asked["messages"].append({"role": "tool", "tool_call_id": call.id, "content": found})
        if not choice.message.tool_calls:
            return seen(choice.message.content, choice.finish_reason, None, choice.message.refusal)


def _response(made: object) -> dict:
    parsed = getattr(made, "output_parsed", None)
    refusals = [p.refusal for i in made.output if i.type == "message" for p in i.content if p.type == "refusal"]
    error = made.error.code if made.error else None
    return seen(made.output_text, error or made.status, parsed and parsed.model_dump(), "".join(refusals))


def responses_stream(words: str) -> dict:
    """As the documentation has it: events are looked at by their type."""
    text, finish, refusal = "", None, ""
    for event in client.responses.create(model=MODEL, input=words, stream=True):
        match event.type:
            case "response.output_text.delta":
                text += event.delta
            case "response.refusal.delta":
                refusal += event.delta
            case "response.completed" | "response.failed" | "response.incomplete":
                finish = event.response.error.code if event.response.error else event.response.status
            case "error":
                finish = event.code
    return seen(text, finish, None, refusal)


def responses_helper(words: str) -> dict:
    with client.responses.stream(model=MODEL, input=words) as stream:
        return _response(stream.get_final_response())


def responses_tools(words: str) -> dict:
    asked: list = [{"role": "user", "content": words}]
    tool = {"type": "function", **WEATHER["function"]}
    while True:
        made = client.responses.create(model=MODEL, input=asked, tools=[tool])
        calls = [item for item in made.output if item.type == "function_call"]
        if not calls:
            return _response(made)
        asked += made.output
        for call in calls:
            found = weather(**json.loads(call.arguments))
            asked.append({"type": "function_call_output", "call_id": call.call_id, "output": found})


WAYS = {
    "chat": lambda words: _choice(client.chat.completions.create(**_asked(words))),
    "chat stream": chat_stream,
    "chat tools": chat_tools,
    "chat data": lambda words: _choice(client.chat.completions.parse(**_asked(words), response_format=Person)),
    "responses": lambda words: _response(client.responses.create(model=MODEL, input=words)),
    "responses stream": responses_stream,
    "responses helper": responses_helper,
    "responses tools": responses_tools,
    "responses data": lambda words: _response(client.responses.parse(model=MODEL, input=words, text_format=Person)),
}


run(
    WAYS,
    in_a_namespace=in_a_namespace,
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=tools,
    structured=structured,
    responses=responses,
    responses_streamed=responses_streamed,
    wrong_key=lambda: ask("fail 401"),
    too_fast=lambda: ask("fail 429"),
    broken=lambda: ask("fail 500"),
    cut=lambda: ask("cut"),
)
