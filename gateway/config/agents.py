"""The sections of agents, ``[agents.NAME]``, and what in them does not fit to the rest of the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator, model_validator

from adapters.contract.settings import FromOutside, Section, Texts, complaint
from agent_core.limits.budgets import NANOS, Amount
from agent_core.text.nearest import nearest
from agent_core.tools.skills.format import READ_SKILL
from gateway.config.limits import Money, Tokens
from gateway.config.types import NamedTables, named_tables
from gateway.limits.agents import PLAIN, Agent, AgentMemory

ADMINS = "admins"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class AgentEntry(Section):
    """An agent: what it is told first, whom it asks, what it may use. What is not set is as for the gateway's own."""

    name: str
    """By what it is chosen; in [agents.NAME] the name there."""
    prompt: Annotated[str, FromOutside("prompt_file", secret=False)] = Field(
        default="", examples=["You are a careful programmer."]
    )
    """What the model is told first. Empty: as in [model]."""
    prompt_file: Path | None = Field(default=None, examples=["coder.md"])
    """File with that."""
    models: Texts = Field(default=(), examples=[["gpt-5", "gpt-5-mini"]])
    """Models of [model] that it asks, in the order in which they are tried. Empty: all of them."""
    tools: Texts | None = Field(default=None, examples=[["read_file", "list_files"]])
    """Tools that it is offered; an empty list: none. Not set: all."""
    memory: AgentMemory = AgentMemory.ON
    """What it remembers of people: on is what all agents remember, own is what it was told itself, off is nothing."""
    day_tokens: Tokens = 0
    """Tokens that everybody together may use of it in a day; 0: as agent_tokens in [budgets]."""
    day_money: Money = 0
    """Money that everybody together may cost with it in a day, in units of the currency; 0: as agent_money in [budgets]."""
    chats: Texts = Field(default=(), examples=[["telegram/12345678"]])
    """Chats, as PLATFORM/CHAT or PLATFORM/CHAT/THREAD, in which it answers if nobody there chose another by /agent."""

    skills: Texts | None = Field(default=None, examples=[["release-notes"]])
    """Skills of [tools] skills that it may read; an empty list: none. Not set: all."""
    people: Texts = Field(default=(), examples=[["admins", "telegram/12345678"]])
    """Whom alone it answers in chats, and does where nobody chose another: admins (named in the platform's section), or PLATFORM/PERSON. Empty: anybody. It
    answers them in private chats, and where each person has a conversation of their own; a key of the API has to name it."""

    @field_validator("name")
    @classmethod
    def _can_be_chosen(cls, value: str) -> str:
        if not _NAME.fullmatch(value) or value == PLAIN:
            words = f"an agent's name has 1 to 40 letters, digits, dots, - or _, and is not {PLAIN}"
            raise complaint("each", words, "Choose another name.")
        return value


class Agents(NamedTables):
    """Agents that can be chosen beside the gateway's own: by model in a request, by /agent in a chat. Each is a table [agents.NAME]."""

    tables = "each"

    each: Annotated[tuple[AgentEntry, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        examples=[[{"name": "coder", "prompt": "You are a careful programmer.", "tools": ["read_file"]}]],
    )
    """The agents, each best in a table of its own, [agents.NAME], with prompt or prompt_file, models, tools, skills, memory,
    day_tokens, day_money, chats, people. From the environment: JSON."""

    @model_validator(mode="after")
    def _people_can_be_told(self) -> Agents:
        for agent in self.each:
            for who in agent.people:
                if who != ADMINS and not all(who.partition("/")[::2]):
                    words = f"{agent.name} is to answer {who}, and nobody is called so"
                    raise complaint("each", words, "Name people as PLATFORM/PERSON, or admins.")
        return self

    @model_validator(mode="after")
    def _one_in_a_chat(self) -> Agents:
        taken: dict[str, str] = {}
        for agent in self.each:
            for chat in agent.chats:
                if (other := taken.setdefault(chat, agent.name)) != agent.name:
                    words = f"{agent.name} and {other} are both to answer in one chat"
                    raise complaint("each", words, "Take it out of one.")
        return self


def agents_of(agents: Agents, admins: Sequence[str] = ()) -> Mapping[str, Agent]:
    """The agents as the gateway takes them; `admins` are those of all platforms, as PLATFORM/PERSON."""
    return {
        one.name: Agent(
            one.name,
            one.prompt,
            one.models,
            one.tools,
            one.memory,
            Amount(one.day_tokens, round(one.day_money * NANOS)),
            one.chats,
            one.skills,
            tuple(who.lower() for name in one.people for who in (admins if name == ADMINS else (name,)))
            or (("",) if one.people else ()),
        )
        for one in agents.each
    }


def misfits(
    agents: Agents, models: Sequence[str], tools: Sequence[str], skills: Sequence[str] = (), *, priced: bool
) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """What agents name and is not there, as (place in the list, what is wrong, what to do). `models` are the configured ones; of `tools`
    none stands for those that nobody knows yet, `skills` are the folders of [tools] skills."""
    known: Sequence[str] = models if all(models) else ()
    for place, agent in enumerate(agents.each):
        name = agent.name
        if name in models:
            yield (
                (place,),
                f"[agents.{name}] has the name of a model, so a request could not say which it means.",
                "Choose another name.",
            )
        for one in agent.skills or ():
            if one not in skills:
                fix = _hint(one, skills, "skills") if skills else "Set [tools] skills to the directory that holds it."
                yield (place, "skills"), f"[agents.{name}] skills: there is no skill called {one}.", fix
        if agent.skills and agent.tools is not None and READ_SKILL not in agent.tools:
            yield (
                (place, "skills"),
                f"[agents.{name}] has skills, and its tools do not name {READ_SKILL}, by which it would read them.",
                f"Add {READ_SKILL} to its tools, or take the skills out.",
            )
        for key, named, there in (("models", agent.models, known), ("tools", agent.tools or (), tools)):
            for one in named:
                if there and one not in there:
                    yield (
                        (place, key),
                        f"[agents.{name}] {key}: there is no {key[:-1]} called {one}.",
                        _hint(one, there, key),
                    )
        if agent.day_money and not priced:
            yield (
                (place, "day_money"),
                f"[agents.{name}] day_money is set, and no price, so nothing would ever count for it.",
                "Set prices in [budgets].",
            )


def _hint(name: str, there: Sequence[str], key: str) -> str:
    near = nearest(name, there)
    where = " Further models are named in [model] fallbacks." if key == "models" else ""
    return f"Did you mean {near[0]}?" if near else f"There is: {', '.join(there)}.{where}"
