"""LangChain's ChatOpenAI: its default way, /v1/responses, and a fallback."""

from __future__ import annotations

from functools import partial

from cases import MODEL, run, seen, weather
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return weather(city)


def chat(**more: object) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, **more)


def text(message: object) -> object:
    return getattr(message, "text", None)


def tools(**more: object) -> object:
    bound = chat(**more).bind_tools([get_weather])
    messages: list = [HumanMessage("what is the weather?")]
    first = bound.invoke(messages)
    messages.append(first)
    messages += [ToolMessage(get_weather.invoke(one["args"]), tool_call_id=one["id"]) for one in first.tool_calls]
    return text(bound.invoke(messages))


def structured(**more: object) -> object:
    found = chat(**more).with_structured_output(Person).invoke("who?")
    assert isinstance(found, Person)
    return found.model_dump()


def falls_back() -> object:
    """A wrong key at the first: the second is to be asked."""
    second = RunnableLambda(lambda _: "from the second")
    return str(chat(max_retries=0).with_fallbacks([second]).invoke("fail 401"))


def _seen(message: object) -> dict:
    facts = message.response_metadata
    if message.invalid_tool_calls:
        return seen(text(message), "invalid_tool_calls")
    return seen(
        text(message), facts.get("finish_reason") or facts.get("status"), None, message.additional_kwargs.get("refusal")
    )


def _whole(words: str, **more: object) -> dict:
    return _seen(chat(**more).invoke(words))


def _streamed(words: str, **more: object) -> dict:
    whole = None
    for piece in chat(**more).stream(words):
        whole = piece if whole is None else whole + piece
    return _seen(whole)


def _tools(words: str, **more: object) -> dict:
    bound = chat(**more).bind_tools([get_weather])
    messages: list = [HumanMessage(words)]
    while True:
        made = bound.invoke(messages)
        if not made.tool_calls:
            return _seen(made)
        messages.append(made)
        messages += [ToolMessage(get_weather.invoke(one["args"]), tool_call_id=one["id"]) for one in made.tool_calls]


def _fallback(words: str, **more: object) -> dict:
    second = RunnableLambda(lambda _: AIMessage("from the second"))
    return _seen(chat(**more).with_fallbacks([second]).invoke(words))


def _data(words: str, **more: object) -> dict:
    found = chat(**more).with_structured_output(Person).invoke(words)
    return seen(None, None, found and found.model_dump())


WAYS = {
    f"{way} {what}".strip(): partial(ask, **more)
    for way, more in {"chat": {}, "responses": {"use_responses_api": True}}.items()
    for what, ask in {"": _whole, "stream": _streamed, "tools": _tools, "data": _data, "fallback": _fallback}.items()
}


run(
    WAYS,
    plain=lambda: text(chat().invoke("say hello")),
    streamed=lambda: "".join(str(text(piece)) for piece in chat().stream("say hello")),
    tools=tools,
    structured=structured,
    plain_responses=lambda: text(chat(use_responses_api=True).invoke("say hello")),
    streamed_responses=lambda: "".join(str(text(p)) for p in chat(use_responses_api=True).stream("say hello")),
    tools_responses=lambda: tools(use_responses_api=True),
    structured_responses=lambda: structured(use_responses_api=True),
    falls_back=falls_back,
)
