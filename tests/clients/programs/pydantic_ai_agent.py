"""pydantic-ai: its default way (/v1/responses), and chat completions."""

from __future__ import annotations

from cases import MODEL, run, seen, weather
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.test import TestModel


class Person(BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """The weather of a city."""
    return weather(city)


async def ask(words: str, way: str = "openai", **more: object) -> object:
    return (await Agent(f"{way}:{MODEL}", **more).run(words)).output


async def streamed(way: str = "openai") -> object:
    async with Agent(f"{way}:{MODEL}").run_stream("say hello") as made:
        return await made.get_output()


async def structured(way: str = "openai") -> object:
    found = await ask("who?", way, output_type=Person)
    assert isinstance(found, Person)
    return found.model_dump()


def _finish(made: object) -> object:
    return getattr(made, "finish_reason", None)


def _way(way: str, *, streamed: bool = False, falls_back: bool = False, **more: object) -> object:
    name = "openai-chat" if way == "chat" else "openai"

    async def ask(words: str) -> dict:
        model = (
            FallbackModel(f"{name}:{MODEL}", TestModel(custom_output_text="from the second", call_tools=[]))
            if falls_back
            else f"{name}:{MODEL}"
        )
        agent = Agent(model, **more)
        if streamed:
            async with agent.run_stream(words) as made:
                found = await made.get_output()
                return seen(found, _finish(made.response))
        made = await agent.run(words)
        if isinstance(made.output, Person):
            return seen(None, None, made.output.model_dump())
        return seen(made.output, _finish(made.response))

    return ask


WAYS = {
    f"{way} {what}".strip(): _way(way, **how)
    for way in ("chat", "responses")
    for what, how in {
        "": {},
        "stream": {"streamed": True},
        "tools": {"tools": [get_weather]},
        "data": {"output_type": Person},
        "fallback": {"falls_back": True},
    }.items()
}


run(
    WAYS,
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=lambda: ask("what is the weather?", tools=[get_weather]),
    structured=structured,
    plain_chat=lambda: ask("say hello", "openai-chat"),
    streamed_chat=lambda: streamed("openai-chat"),
    tools_chat=lambda: ask("what is the weather?", "openai-chat", tools=[get_weather]),
    structured_chat=lambda: structured("openai-chat"),
    wrong_key=lambda: ask("fail 401", "openai-chat"),
    broken=lambda: ask("fail 500", "openai-chat"),
)
