"""openai-agents with its defaults: it speaks to /v1/responses."""

from __future__ import annotations

import agents
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from cases import MODEL, run, seen, weather
from openai import AsyncOpenAI
from pydantic import BaseModel

agents.set_tracing_disabled(True)


class Person(BaseModel):
    name: str
    age: int


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return weather(city)


async def ask(words: str, **more: object) -> object:
    made = await Runner.run(Agent(name="a", model=MODEL, **more), words)
    return made.final_output


async def streamed() -> object:
    made = Runner.run_streamed(Agent(name="a", model=MODEL), "say hello")
    async for _ in made.stream_events():
        pass
    return made.final_output


async def structured() -> object:
    found = await ask("who?", output_type=Person)
    assert isinstance(found, Person)
    return found.model_dump()


def _agent(way: str, **more: object) -> Agent:
    model = MODEL if way == "responses" else OpenAIChatCompletionsModel(MODEL, AsyncOpenAI())
    return Agent(name="a", model=model, **more)


def _final(made: object, data: bool) -> dict:
    return seen(None, None, made.final_output.model_dump()) if data else seen(made.final_output)


def _way(way: str, *, data: bool = False, streamed: bool = False, **more: object) -> object:
    async def ask(words: str) -> dict:
        agent = _agent(way, **more)
        if not streamed:
            return _final(await Runner.run(agent, words), data)
        made = Runner.run_streamed(agent, words)
        async for _ in made.stream_events():
            pass
        return _final(made, data)

    return ask


WAYS = {
    f"{way} {what}".strip(): _way(way, **how)
    for way in ("chat", "responses")
    for what, how in {
        "": {},
        "stream": {"streamed": True},
        "tools": {"tools": [get_weather]},
        "data": {"output_type": Person, "data": True},
    }.items()
}


run(
    WAYS,
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=lambda: ask("what is the weather?", tools=[get_weather]),
    structured=structured,
    wrong_key=lambda: ask("fail 401"),
    broken=lambda: ask("fail 500"),
)
