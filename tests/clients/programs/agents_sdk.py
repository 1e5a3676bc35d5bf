"""openai-agents with its defaults: it speaks to /v1/responses."""

from __future__ import annotations

import agents
from agents import Agent, Runner, function_tool
from cases import MODEL, run, weather
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


run(
    plain=lambda: ask("say hello"),
    streamed=streamed,
    tools=lambda: ask("what is the weather?", tools=[get_weather]),
    structured=structured,
    wrong_key=lambda: ask("fail 401"),
    broken=lambda: ask("fail 500"),
)
