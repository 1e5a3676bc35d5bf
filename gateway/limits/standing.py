"""What the turn of a message may, and who answers it: by the key that it came with, and the agent that was chosen. Pure.

Laws (tests/gateway/test_standing.py): without keys and agents everything is as the gateway is configured; a turn is never offered a tool, nor
asked of a model, that its key or its agent leaves out; an agent's own memory is nobody else's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from adapters.contract.base import FromApi, FromChat, Inbound
from adapters.contract.callers import EVERYTHING, KeyTerms, may_ask
from adapters.contract.chat import ChatKind
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.limits.budgets import Amount
from agent_core.limits.spend import Budget
from agent_core.records import dataclass
from agent_core.remembered import MemoryScopes
from agent_core.settings import Route
from agent_core.store.memory.rows import AGENT_MARK
from agent_core.text.tongue import speak
from agent_core.tools.builtin.notes import OF_MEMORY
from agent_core.tools.skills.format import READ_SKILL
from agent_core.turn.events import AgentBy
from gateway.limits.agents import PLAIN, Agent, AgentMemory

NONE = frozenset[str]()
NOBODYS = ("", AgentBy.NOT_SAID)
NO_LIMITS: Mapping[Budget, Amount] = {}


@dataclass(frozen=True, slots=True)
class TurnStanding:
    """Who answers, and what they may."""

    agent: Agent | None = None
    terms: KeyTerms = EVERYTHING
    key: str = ""
    by: AgentBy = AgentBy.NOT_SAID
    """Why it is that agent."""

    @property
    def name(self) -> str:
        """The agent's; empty: the gateway's own."""
        return self.agent.name if self.agent is not None else ""

    def prompt(self, own: str) -> str:
        """What the model is told first."""
        return (self.agent.prompt if self.agent is not None else "") or own

    def withheld(self, names: Sequence[str]) -> frozenset[str]:
        """Which of the gateway's tools it is not offered."""
        if self.agent is None and self.terms.tools is None:
            return NONE
        lists = [self.terms.tools, self.agent.tools if self.agent is not None else None]
        gone = {name for allowed in lists if allowed is not None for name in names if name not in allowed}
        if self.skills is not None and not self.skills:
            gone.add(READ_SKILL)
        forgetful = self.agent is not None and self.agent.memory is AgentMemory.OFF
        return frozenset(gone | OF_MEMORY) if forgetful else frozenset(gone)

    @property
    def skills(self) -> frozenset[str] | None:
        """Those that it may read; None: all."""
        named = self.agent.skills if self.agent is not None else None
        return frozenset(named) if named is not None else None

    def scope(self, scope: str) -> str:
        """In whose name it remembers."""
        if self.agent is None or self.agent.memory is not AgentMemory.OWN:
            return scope
        return f"{scope}{AGENT_MARK}{self.agent.name}"

    def memories(self, found: MemoryScopes) -> MemoryScopes:
        """Which memories it uses."""
        if self.agent is None or self.agent.memory is not AgentMemory.OWN:
            return found
        everybody = self.scope(found.everybody) if found.everybody else ""
        return replace(
            found, own=self.scope(found.own), chat=self.scope(found.chat) if found.chat else "", everybody=everybody
        )

    def routes(self, found: tuple[Route, ...], asked: str) -> tuple[Route, ...]:
        """The ways to a model that it may take, in its order; none if there is none of them."""
        allowed = self.agent.models if self.agent is not None else self.terms.models
        if not allowed or (self.agent is None and PLAIN in allowed):
            return found
        order = ([asked] if asked in allowed else []) + [one for one in allowed if one != asked]
        return tuple(sorted((one for one in found if one.model in allowed), key=lambda one: order.index(one.model)))

    @property
    def days(self) -> Mapping[Budget, Amount]:
        """Limits of its own."""
        if self.agent is None and not (self.terms.day_tokens or self.terms.day_nanos):
            return NO_LIMITS
        limits = {
            Budget.KEY: Amount(self.terms.day_tokens, self.terms.day_nanos),
            Budget.AGENT: self.agent.day if self.agent is not None else Amount(),
        }
        return {budget: limit for budget, limit in limits.items() if limit != Amount()}


AS_CONFIGURED = TurnStanding()


def anything(_: str) -> KeyTerms:
    """There are no keys."""
    return EVERYTHING


def answers(agent: Agent, inbound: FromChat) -> bool:
    """Whether it may answer whoever wrote: one that is held to people does where nobody else's words come into the turn."""
    if not agent.people:
        return True
    alone = inbound.chat.kind is ChatKind.PRIVATE or bool(inbound.session.person)
    who = inbound.chat.person
    names = {who.id, f"@{who.username}"} if who.username else {who.id}
    return alone and bool({f"{inbound.chat.address.platform}/{one}".lower() for one in names} & {*agent.people})


@dataclass(frozen=True, slots=True)
class Standings:
    """Who answers what. `terms` are those of a key, by its name."""

    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    terms: Callable[[str], KeyTerms] = anything

    def of(self, inbound: Inbound, chosen: str = "") -> TurnStanding:
        """How the turn of a message stands; `chosen` is what its conversation chose."""
        if not self.agents and not (isinstance(inbound, FromApi) and inbound.key):
            return AS_CONFIGURED
        agent, by = self._agent_of(inbound, chosen)
        return replace(self.named(inbound, agent), by=by)

    def named(self, inbound: Inbound, agent: str) -> TurnStanding:
        """The same under the agent that answers it, or began to."""
        if not agent and not (isinstance(inbound, FromApi) and inbound.key):
            return AS_CONFIGURED
        key = inbound.key if isinstance(inbound, FromApi) else ""
        return TurnStanding(self.agents.get(agent), self.terms(key) if key else EVERYTHING, key)

    def _agent_of(self, inbound: Inbound, chosen: str) -> tuple[str, AgentBy]:
        if isinstance(inbound, FromApi):
            return (inbound.model, AgentBy.REQUEST) if inbound.model in self.agents else NOBODYS
        return self._chats(inbound, chosen)

    def in_chat(self, inbound: FromChat, chosen: str) -> str:
        """Which agent answers in a chat; empty: the gateway's own."""
        return self._chats(inbound, chosen)[0]

    def _chats(self, inbound: FromChat, chosen: str) -> tuple[str, AgentBy]:
        theirs = [one for one in self.agents.values() if answers(one, inbound)]
        if chosen == PLAIN or chosen in [one.name for one in theirs]:
            return NOBODYS if chosen == PLAIN else (chosen, AgentBy.CHOICE)
        address = inbound.chat.address
        places = {f"{address.platform}/{address.chat}", f"{address.platform}/{address.chat}/{address.thread}"}
        here = next((one.name for one in theirs if places & {*one.chats}), "")
        if here:
            return here, AgentBy.CHAT
        mine = next((one.name for one in theirs if one.people and not one.chats), "")
        return (mine, AgentBy.PERSON) if mine else NOBODYS

    def choices(self, inbound: FromChat) -> list[str]:
        """The agents that whoever wrote may choose."""
        return [one.name for one in self.agents.values() if answers(one, inbound)]

    @property
    def held(self) -> frozenset[str]:
        """Agents that a key has to name to be answered by them."""
        return frozenset(one.name for one in self.agents.values() if one.people)

    def asking(self, inbound: Inbound, models: Sequence[str]) -> Inbound:
        """The message with the model or agent that it asks for, by its key's list. Raises `NotAccepted`."""
        if not isinstance(inbound, FromApi):
            return inbound
        terms = self.terms(inbound.key) if inbound.key else EVERYTHING
        wished = inbound.model
        mine = [one for one in self.agents if may_ask(one, inbound.key, terms, self.held)]
        if terms.models and wished in ("", PLAIN) and PLAIN not in terms.models:
            wished = terms.models[0]
        if wished and not terms.may_ask_for(wished) and wished not in ("", PLAIN):
            words = speak(
                "The key {key} may not ask for {model}. It may ask for: {models}.",
                key=inbound.key,
                model=repr(wished),
                models=", ".join(terms.models),
            )
            raise NotAccepted(words, NotAcceptedCode.UNKNOWN_MODEL)
        if wished and wished not in models and wished not in mine:
            known = ", ".join(name for name in (*models, *mine) if terms.may_ask_for(name))
            raise NotAccepted(
                speak("There is no model called {model} here. There is: {models}.", model=repr(wished), models=known),
                NotAcceptedCode.UNKNOWN_MODEL,
            )
        return inbound if wished == inbound.model else replace(inbound, model=wished)
