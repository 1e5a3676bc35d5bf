"""Helpers for tests of the turn machine: a small rig that plays the driver with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from agent_core.causes import BreakCause
from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.known import Known
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.settings import RULES, Route, ToolFacts, TurnSettings
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.effects import (
    AskApproval,
    AskDone,
    CallModel,
    Compact,
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
    Wait,
)
from agent_core.turn.events import (
    CallBroke,
    Compacted,
    Event,
    ReplyFinished,
    TextArrived,
    ToolArgumentsArrived,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnOpened,
    WaitEnded,
)
from agent_core.turn.view import View, view

T = TypeVar("T")
TOOLS = (
    ToolFacts("read", EffectClass.PURE),
    ToolFacts("write", EffectClass.KEYED),
    ToolFacts("send", EffectClass.EFFECT),
    ToolFacts("todo", EffectClass.KEYED, housekeeping=True),
    ToolFacts("danger", EffectClass.EFFECT, needs_approval=True),
)
ROUTE = Route("m1", "host", "k1")
SETTINGS = TurnSettings(routes=(ROUTE,), tools=TOOLS, can_approve=True, rules=RULES)


def gives(what: T) -> Callable[..., T]:
    """What gives this, whatever it is called with."""

    def given(*_: object) -> T:
        return what

    return given


def opened(settings: TurnSettings = SETTINGS, at: int = 1_000) -> TurnOpened:
    return TurnOpened(at=at, input=(InputMessage("hello"),), settings=settings, seed=7)


@dataclass
class Rig:
    """A turn, the effects that it wants now, and everything it was fed."""

    settings: TurnSettings = SETTINGS
    known: Known = field(default_factory=Known)
    turn: Turn = field(default_factory=Turn)
    now: int = 1_000
    wanted: list[Effect] = field(default_factory=list[Effect])
    fed: list[Event] = field(default_factory=list[Event])
    calls: list[CallModel] = field(default_factory=list[CallModel])
    tools_run: list[RunTool] = field(default_factory=list[RunTool])

    def __post_init__(self) -> None:
        self.feed(replace(opened(self.settings, self.now), known=self.known))

    def feed(self, *events: Event) -> list[Effect]:
        """Feed events; plays the driver for retries' pauses. Returns what is wanted now, without records."""
        for event in events:
            self.fed.append(event)
            effects = self.turn.feed(event)
            self._note(effects)
        if len(self.wanted) == 1 and isinstance(self.wanted[0], Wait):
            self.now += round(self.wanted[0].seconds * 1000)
            return self.feed(WaitEnded(at=self.now))
        return self.wanted

    def _note(self, effects: list[Effect]) -> None:
        lasting: list[Effect] = []
        for effect in effects:
            match effect:
                case Record():
                    self.fed.append(effect.event)
                case SetAside():
                    pass
                case CallModel():
                    self.calls.append(effect)
                    lasting.append(effect)
                case RunTool():
                    self.tools_run.append(effect)
                    lasting.append(effect)
                case Wait() | AskApproval() | Compact() | AskDone() | EndTurn():
                    lasting.append(effect)
        if lasting:
            self.wanted = lasting

    def tick(self, milliseconds: int = 10) -> int:
        self.now += milliseconds
        return self.now

    # what a model does

    def text(self, text: str) -> list[Effect]:
        return self.feed(TextArrived(at=self.tick(), text=text))

    def finish(self, reason: str = "stop") -> list[Effect]:
        return self.feed(ReplyFinished(at=self.tick(), reason=reason))

    def says(self, text: str, reason: str = "stop") -> list[Effect]:
        self.text(text)
        return self.finish(reason)

    def breaks(
        self, cause: BreakCause = BreakCause.STALLED, *, status: int = 0, retry_after: float = 0
    ) -> list[Effect]:
        return self.feed(
            CallBroke(at=self.tick(), cause=cause, status=status, retry_after_seconds=retry_after, waited_seconds=3)
        )

    def begins_call(self, name: str, arguments: str = "", index: int = 0) -> list[Effect]:
        call = f"c{self.turn.calls_made}_{index}"
        self.feed(ToolCallNamed(at=self.tick(), index=index, call=call, name=name))
        if arguments:
            self.feed(ToolArgumentsArrived(at=self.tick(), index=index, text=arguments))
        return self.wanted

    def calls_tool(self, name: str, arguments: str = "{}", text: str = "") -> list[Effect]:
        if text:
            self.text(text)
        self.begins_call(name, arguments)
        return self.finish("tool_calls")

    # what tools do

    def returns(self, text: str = "done", *, status: ToolStatus = ToolStatus.OK, refusal: str = "") -> list[Effect]:
        """Every tool that is wanted now starts and returns."""
        for effect in list(self.wanted):
            if isinstance(effect, RunTool):
                if not refusal:
                    self.feed(ToolStarted(at=self.tick(), call=effect.call))
                returned = ToolReturned(at=self.tick(), call=effect.call, status=status, text=text)
                if refusal:
                    returned = replace(returned, refusal=type(returned.refusal)(refusal))
                self.feed(returned)
        return self.wanted

    def compacts(self, *, helped: bool = True) -> list[Effect]:
        return self.feed(Compacted(at=self.tick(), summary="short" if helped else "", helped=helped))

    # what there is to see

    @property
    def exit(self) -> Exit:
        assert self.turn.exit is not None, f"not ended; wanted: {self.wanted}"
        return self.turn.exit

    @property
    def code(self) -> ExitCode:
        return self.exit.code

    @property
    def last_call(self) -> CallModel:
        effect = self.wanted[-1]
        assert isinstance(effect, CallModel), self.wanted
        return effect

    def view(self) -> View:
        return view(self.turn, self.now)
