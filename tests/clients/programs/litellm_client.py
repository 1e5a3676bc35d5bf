"""litellm as a client, and its router with a fallback."""

from __future__ import annotations

import json

import litellm
from cases import KEY, MODEL, URL, WEATHER, run, weather
from litellm import Router

litellm.telemetry = False
OPTIONS = {"model": f"openai/{MODEL}", "api_base": URL, "api_key": KEY}


def ask(words: str) -> str | None:
    return litellm.completion(**OPTIONS, messages=[{"role": "user", "content": words}]).choices[0].message.content


def streamed() -> str:
    made = litellm.completion(**OPTIONS, messages=[{"role": "user", "content": "say hello"}], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in made)


def tools() -> str | None:
    messages: list = [{"role": "user", "content": "what is the weather?"}]
    first = litellm.completion(**OPTIONS, messages=messages, tools=[WEATHER]).choices[0].message
    messages.append(first)
    for call in first.tool_calls:
        found = weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
    return litellm.completion(**OPTIONS, messages=messages, tools=[WEATHER]).choices[0].message.content


def responses() -> str:
    made = litellm.responses(**OPTIONS, input="say hello")
    return "".join(part.text for item in made.output if item.type == "message" for part in item.content)


def falls_back() -> str | None:
    """A wrong key at the first: the router asks the second."""
    second = {"model_name": "second", "litellm_params": {"model": "openai/x", "mock_response": "from the second"}}
    first = {"model_name": "first", "litellm_params": OPTIONS}
    router = Router(model_list=[first, second], fallbacks=[{"first": ["second"]}], num_retries=0)
    return router.completion("first", messages=[{"role": "user", "content": "fail 401"}]).choices[0].message.content


run(
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=tools,
    responses=responses,
    wrong_key=lambda: ask("fail 401"),
    falls_back=falls_back,
)
