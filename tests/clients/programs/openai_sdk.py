"""The `openai` package with its defaults."""

from __future__ import annotations

import json

from cases import MODEL, WEATHER, run, weather
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


run(
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
