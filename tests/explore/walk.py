"""A walk, breadth first, over the states of `Turn` that any order of events can reach, within small bounds.

Time is frozen (every event has the same `at`), texts are one letter, and a reply has at most two pieces and one tool call: what is
left is the shape of the machine. States that are equal in all that decides and all that shows are visited once.

Laws, checked at each step: those of `agent_core.turn.invariants`; a turn that is over changes no more; an event that does not fit
changes nothing that is wanted; every conversation that goes to the model is valid; a deadline, a stop, a drain and a defect
end every open state at once. And for the whole: no path of events comes back to where it was, so every path comes to an end.
"""

from __future__ import annotations

import functools
import pickle
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, cast

from agent_core.causes import BreakCause
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.settings import RULES, LadderCounts, Route, ToolFacts, TurnSettings
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.effects import CallModel, Effect, EndTurn
from agent_core.turn.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    DrainEnded,
    DriverFailed,
    Event,
    ReasoningArrived,
    Refusal,
    ReplyFinished,
    SpendRefused,
    Steered,
    StopRequested,
    Superseded,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnOpened,
    Verdict,
    WaitEnded,
)
from agent_core.turn.invariants import broken_laws
from agent_core.turn.state import ActivityState, Phase
from agent_core.turn.transcript import problems, request_messages

AT = 1_000
SETTINGS = TurnSettings(
    routes=(Route("m1", "h", "k1"), Route("m2", "h2", "k2")),
    tools=(
        ToolFacts("look", EffectClass.PURE),
        ToolFacts("send", EffectClass.EFFECT),
        ToolFacts("danger", EffectClass.EFFECT, needs_approval=True),
    ),
    max_steps=2,
    can_approve=True,
    rules=RULES,
    restarts_a_step=1,
    ladder=LadderCounts(
        retry=1,
        continue_text=1,
        empty_nudge=1,
        continue_thinking=1,
        continue_length=1,
        tool_call_length_advice=1,
        unknown_tool=1,
        unreadable_arguments=1,
    ),
)
OPENED = TurnOpened(at=AT, input=(InputMessage("hello"),), settings=SETTINGS, seed=7)
FINAL: tuple[Event, ...] = (
    StopRequested(at=AT),
    Superseded(at=AT),
    DeadlinePassed(at=AT),
    DrainEnded(at=AT),
    DriverFailed(at=AT, reference="err_1"),
)
ALWAYS: tuple[Event, ...] = (
    TakenOver(at=AT, epoch=2),
    WaitEnded(at=AT),
    SpendRefused(at=AT, spend=Spend(budget=Budget.DAY, measure=Measure.TOKENS, limit=100, used=120)),
    Compacted(at=AT, summary="s", helped=True),
    Compacted(at=AT, summary="", helped=False),
    *(DoneSaid(at=AT, finished=finished) for finished in (True, False, None)),
    ToolStarted(at=AT, call="nobody"),
    ToolReturned(at=AT, call="nobody", status=ToolStatus.OK, text="r"),
    ApprovalAnswered(at=AT, call="nobody", verdict=Verdict.GIVEN),
    *FINAL,
)
LATE = (*ALWAYS, TextArrived(at=AT, text="late"), ReplyFinished(at=AT, reason="stop"))
REASONS = ("stop", "tool_calls", "length", "content_filter", "error", "strange")


@dataclass
class Found:
    """What a walk came to."""

    states: int = 0
    transitions: int = 0
    deepest: int = 0
    complete: bool = False
    """Every state within the bounds was visited."""
    ends: Counter[str] = field(default_factory=Counter[str])
    events: Counter[str] = field(default_factory=Counter[str])
    """Transitions by kind of event."""
    broken: list[str] = field(default_factory=list[str])
    edges: dict[int, set[int]] = field(default_factory=dict[int, set[int]])


def alphabet(turn: Turn) -> Iterator[Event]:
    """The events that may come next, those that do not fit included; pieces of a reply only while they are few."""
    yield from ALWAYS
    if not turn.steers and turn.step == 1:
        yield Steered(at=AT, input=InputMessage("more"))
    if turn.phase is Phase.CALLING:
        yield from _stream(turn)
    for activity in turn.round.unfinished if turn.phase is Phase.ACTING else ():
        yield from _tool(activity.call, activity.state, started=activity.started)


def _stream(turn: Turn) -> Iterator[Event]:
    draft = turn.draft
    if len(draft.text_pieces) < 1:
        yield TextArrived(at=AT, text="a")
        yield TextArrived(at=AT, text="Let me check the file now:")
        yield TextArrived(at=AT, text="The rest of it…")
    if len(draft.reasoning) < 1:
        yield ReasoningArrived(at=AT, text="r")
        yield TextTakenBack(at=AT)
    if not draft.in_tool_call:
        for name in ("look", "send", "danger", "nosuch"):
            yield ToolCallNamed(at=AT, index=0, call="c", name=name)
        yield ToolCallCut(at=AT, name="look")
    elif draft.calls and not any(call.pieces for call in draft.calls.values()):
        yield ToolArgumentsArrived(at=AT, index=0, text="{}")
        yield ToolArgumentsArrived(at=AT, index=0, text='{"a')
    for reason in REASONS:
        yield ReplyFinished(at=AT, reason=reason)
    for cause in BreakCause:
        yield CallBroke(at=AT, cause=cause)
    yield CallBroke(at=AT, cause=BreakCause.RATE_LIMITED, retry_after_seconds=600)


def _tool(call: str, state: ActivityState, *, started: bool) -> Iterator[Event]:
    if state is ActivityState.APPROVAL:
        for verdict in Verdict:
            yield ApprovalAnswered(at=AT, call=call, verdict=verdict)
    if state is not ActivityState.RUNNING:
        return
    if not started:
        yield ToolStarted(at=AT, call=call)
        for refusal in (Refusal.UNKNOWN_TOOL, Refusal.UNREADABLE_ARGUMENTS):
            yield ToolReturned(at=AT, call=call, status=ToolStatus.REFUSED, text="no", refusal=refusal)
        return
    for status in (ToolStatus.OK, ToolStatus.FAILED, ToolStatus.TIMED_OUT):
        yield ToolReturned(at=AT, call=call, status=status, text="r")


def key_of(value: Any) -> object:
    """A value that is equal for equal states, and can be looked up."""
    kind = cast("Any", type(value))
    if kind in PLAIN or isinstance(value, Enum):
        return value
    if kind in (list, tuple, deque):
        return tuple(map(key_of, value))
    if kind in (set, frozenset):
        return frozenset(map(key_of, value))
    if issubclass(kind, dict):
        return frozenset((key_of(k), key_of(value[k])) for k in value)
    return (kind.__name__, *[key_of(getattr(value, name)) for name in _names(kind)])


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    slots: list[str] = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    return tuple(name for name in slots if name not in IGNORED)


PLAIN = frozenset({type(None), str, int, float, bool})
IGNORED = frozenset({"opened", "_settings", "calls_made"})
"""The same in all states, or a count that decides nothing."""


@dataclass(frozen=True, slots=True)
class Node:
    """A state, and which calls of tools with effects were begun on the way to it."""

    number: int
    turn: bytes
    begun: frozenset[str]
    depth: int


class Walk:
    """One walk; `run` it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[object, int] = {}
        self._open: deque[Node] = deque()
        self.found = Found()

    def run(self) -> Found:
        """Walk until `limit` transitions were made, or all states are known."""
        turn = Turn()
        turn.feed(OPENED)
        self._visit(turn, frozenset(), 0)
        while self._open and self.found.transitions < self._limit and len(self.found.broken) < 20:
            self._expand(self._open.popleft())
        self.found.complete = not self._open
        self.found.states = len(self._known)
        self.found.broken += _circles(self.found.edges)
        return self.found

    def _visit(self, turn: Turn, begun: frozenset[str], depth: int) -> int:
        key = (key_of(turn), begun)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self._known)
            self.found.deepest = max(self.found.deepest, depth)
            if turn.exit is None:
                self._open.append(Node(number, pickle.dumps(turn), begun, depth))
            else:
                self.found.ends[turn.exit.code.value] += 1
                self._check_over(turn, key[0])
        return number

    def _expand(self, node: Node) -> None:
        edges = self.found.edges.setdefault(node.number, set())
        events = list(alphabet(pickle.loads(node.turn)))
        for event in events:
            turn: Turn = pickle.loads(node.turn)
            effects = turn.feed(event)
            self.found.transitions += 1
            self.found.events[type(event).__name__] += 1
            self._check(turn, event, effects, node)
            begun = (
                node.begun | {event.call} if isinstance(event, ToolStarted) and event.call != "nobody" else node.begun
            )
            number = self._visit(turn, begun, node.depth + 1)
            if number != node.number:
                edges.add(number)

    def _check(self, turn: Turn, event: Event, effects: list[Effect], node: Node) -> None:
        found = broken_laws(turn, effects, node.begun)
        if isinstance(event, FINAL_KINDS) and turn.exit is None:
            found.append("an event that ends every turn did not end it")
        if turn.exit is not None and not any(isinstance(effect, EndTurn) for effect in effects):
            found.append("the turn is over, and nobody was told")
        for effect in effects:
            if isinstance(effect, CallModel):
                found += [f"invalid conversation: {p}" for p in problems(request_messages("", [], turn, effect))]
        self.found.broken += [f"after {event!r} at depth {node.depth}: {what}" for what in found]

    def _check_over(self, turn: Turn, key: object) -> None:
        """Whatever comes late, nothing is wanted and nothing changes."""
        wanted = [event for event in LATE if turn.feed(event)]
        if wanted or key_of(turn) != key:
            self.found.broken.append(f"a turn that was over ({turn.exit}) was changed by something late: {wanted}")


FINAL_KINDS = (StopRequested, Superseded, DeadlinePassed, DrainEnded, DriverFailed)


def _circles(edges: dict[int, set[int]]) -> list[str]:
    """States from which a path leads back to them: there, a turn could go on for ever."""
    waiting = {node: len(targets) for node, targets in edges.items()}
    sources: dict[int, list[int]] = {}
    for node, targets in edges.items():
        for target in targets:
            sources.setdefault(target, []).append(node)
    done = deque(number for number in sources if number not in edges)
    done.extend(number for number, left in waiting.items() if left == 0)
    while done:
        for source in sources.get(done.popleft(), ()):
            waiting[source] -= 1
            if waiting[source] == 0:
                done.append(source)
    left = [node for node, count in waiting.items() if count > 0]
    return [f"{len(left)} states lie on paths that lead back to themselves"] if left else []
