"""pydantic-ai: its default way (/v1/responses), and chat completions."""

from __future__ import annotations

from cases import MODEL, run, weather
from pydantic import BaseModel
from pydantic_ai import Agent


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


run(
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
