"""litellm as a client, and its router with a fallback."""

from __future__ import annotations

import json

import litellm
from cases import KEY, MODEL, URL, WEATHER, run, seen, weather
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


def _asked(words: str) -> dict:
    return {**OPTIONS, "messages": [{"role": "user", "content": words}]}


def _seen(made: object) -> dict:
    choice = made.choices[0]
    return seen(
        choice.message.content,
        choice.finish_reason,
        None,
        (choice.message.provider_specific_fields or {}).get("refusal"),
    )


def _streamed(words: str) -> dict:
    text, finish = "", None
    for chunk in litellm.completion(**_asked(words), stream=True):
        text += chunk.choices[0].delta.content or ""
        finish = chunk.choices[0].finish_reason or finish
    return seen(text, finish)


def _tools(words: str) -> dict:
    asked = _asked(words)
    while True:
        made = litellm.completion(**asked, tools=[WEATHER])
        message = made.choices[0].message
        if not message.tool_calls:
            return _seen(made)
        asked["messages"].append(message)
        for call in message.tool_calls:
            found = weather(**json.loads(call.function.arguments))
            asked["messages"].append({"role": "tool", "tool_call_id": call.id, "content": found})


def _response(made: object) -> dict:
    text = "".join(p.text for i in made.output if i.type == "message" for p in i.content if p.type == "output_text")
    return seen(text, made.status)


def _response_streamed(words: str) -> dict:
    text, finish = "", None
    for event in litellm.responses(**OPTIONS, input=words, stream=True):
        kind = str(getattr(event.type, "value", event.type))
        if kind == "response.output_text.delta":
            text += event.delta
        if kind in ("response.completed", "response.failed", "response.incomplete"):
            finish = event.response.status
        if kind == "error":
            finish = "error"
    return seen(text, finish)


def _fallback(words: str) -> dict:
    second = {"model_name": "second", "litellm_params": {"model": "openai/x", "mock_response": "from the second"}}
    first = {"model_name": "first", "litellm_params": OPTIONS}
    router = Router(model_list=[first, second], fallbacks=[{"first": ["second"]}])
    return _seen(router.completion("first", messages=[{"role": "user", "content": words}]))


WAYS = {
    "chat": lambda words: _seen(litellm.completion(**_asked(words))),
    "chat stream": _streamed,
    "chat tools": _tools,
    "chat fallback": _fallback,
    "responses": lambda words: _response(litellm.responses(**OPTIONS, input=words)),
    "responses stream": _response_streamed,
}


run(
    WAYS,
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=tools,
    responses=responses,
    wrong_key=lambda: ask("fail 401"),
    falls_back=falls_back,
)
