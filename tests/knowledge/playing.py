"""One script played twice: by a turn that knows nothing, and by one that knows something. What must hold between the two."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_core.failures.exits import Exit, ExitCode
from agent_core.failures.known import Known, KnownIncident, KnownStall
from agent_core.failures.remedies import Failure, Remedy
from agent_core.machine.turn import Turn
from agent_core.settings import RULES, Route, ToolFacts, TurnSettings
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.effects import CallModel, Compact, Effect, EndTurn, RunTool, Wait
from agent_core.turn.events import Compacted, Event, ToolReturned, ToolStarted, WaitEnded
from agent_core.turn.transcript import request_messages
from tests.agent_core.strict import objections
from tests.agent_core.turns import opened
from tests.knowledge.upstream import LONG_SECONDS, PIECES, WRITE, Fault, Upstream, illnesses, written

ROUTES = (Route("m1", "h1", "k1", 8_000), Route("m2", "h2", "k2", 100_000), Route("m3", "h3", "k3"))
TOOLS = (ToolFacts(WRITE, EffectClass.KEYED), ToolFacts("read", EffectClass.PURE))


@dataclass(frozen=True)
class Script:
    """What happens, and what the turn that knows something is told."""

    faults: tuple[Fault, ...]
    routes: int
    known: Known
    obeys: bool
    pieces: int | None = None
    """See `Upstream`."""


@dataclass(frozen=True)
class Taken:
    """How much of the task was done, and what that had taken."""

    written: int
    failed: int
    stalled_seconds: float


@dataclass(frozen=True)
class Played:
    """How a turn went."""

    exit: Exit
    calls: int
    taken: Taken
    """In all."""
    objections: tuple[str, ...]
    remedies: tuple[Remedy, ...]
    steps: tuple[Taken, ...]
    """At each thing that was written."""
    without_tool: Taken | None
    """When it was asked for text instead of a call, which few turns are."""

    @property
    def recovered(self) -> bool:
        return self.exit.code is ExitCode.ANSWERED

    @property
    def written(self) -> int:
        return self.taken.written

    def beyond(self, written: int) -> Taken:
        """What it had taken until more than so much was written, or the tool was given up, or in all."""
        further = (step for step in self.steps if step.written > written)
        return next(further, self.without_tool or self.taken)


def script(seed: int) -> Script:
    """The script of a number."""
    draw = random.Random(seed)
    routes = draw.randint(1, 3)
    models = [route.model for route in ROUTES[:routes]]
    return Script(illnesses(draw, models), routes, known(draw), draw.random() < 0.8)


def known(draw: random.Random) -> Known:
    """Any knowledge, true or not."""
    return Known(
        stalls=tuple(_stall(draw) for _ in range(draw.randint(0, 2))),
        incidents=tuple(_incident(draw) for _ in range(draw.randint(0, 3))),
    )


def _stall(draw: random.Random) -> KnownStall:
    return KnownStall(
        draw.choice((WRITE, WRITE, "read", "gone")),
        draw.choice((0, 300, 1_500, 20_000)),
        ended=draw.randint(0, 4),
        tried=tuple(draw.sample(list(Remedy), draw.randint(0, 3))),
        size=draw.choice(("", "S", "L", "XL")),
        models=tuple((route.endpoint, route.model) for route in draw.sample(ROUTES, draw.randint(0, 2))),
        remedy=draw.choice((None, None, *Remedy)),
    )


def _incident(draw: random.Random) -> KnownIncident:
    route = draw.choice((*ROUTES[:1] * 3, *ROUTES))
    return KnownIncident(
        draw.choice(list(ExitCode)),
        route.endpoint,
        route.model,
        draw.choice(("", WRITE)),
        draw.choice((None, *Remedy, Remedy.NEXT_ROUTE, Remedy.ADVISE_SMALLER)),
    )


def play(script: Script, known: Known) -> Played:
    """A turn from its beginning to its end."""
    settings = TurnSettings(routes=ROUTES[: script.routes], tools=TOOLS, rules=RULES)
    upstream = Upstream(script.faults, obeys=script.obeys, pieces=script.pieces)
    turn = Turn()
    refused: list[str] = []
    steps: list[Taken] = []
    without_tool: Taken | None = None

    def taken(more: int = 0) -> Taken:
        return Taken((steps[-1].written if steps else 0) + more, upstream.failed, upstream.stalled_seconds)

    now = 1_000
    wanted: list[Effect] = turn.feed(replace(opened(settings, now), known=known))
    for _ in range(400):
        events: list[Event] = []
        for effect in wanted:
            match effect:
                case CallModel():
                    messages = request_messages("sys", [], turn, effect)
                    refused += objections(messages)
                    offered = WRITE not in turn.withheld
                    events += upstream.reply(effect, messages, offered=offered, hurried=turn.hurried, now=now)
                case RunTool():
                    chars = written(effect.arguments)
                    steps.append(taken(chars))
                    events.append(ToolStarted(at=now, call=effect.call))
                    result = f"{chars} characters, {effect.call}"
                    events.append(ToolReturned(at=now, call=effect.call, status=ToolStatus.OK, text=result))
                case Wait():
                    now += round(effect.seconds * 1000)
                    events.append(WaitEnded(at=now))
                case Compact():
                    events.append(Compacted(at=now, summary="short", helped=True))
                case _:
                    pass
        wanted = []
        for event in events:
            now = max(now, event.at)
            wanted += turn.feed(event)
        if without_tool is None and (Failure.IN_TOOL_CALL, Remedy.WITHOUT_TOOL) in turn.remedies:
            without_tool = taken()
        if any(isinstance(effect, EndTurn) for effect in wanted):
            break
    assert turn.exit is not None, "it goes on for ever"
    remedies = tuple(remedy for _, remedy in turn.remedies)
    return Played(turn.exit, upstream.calls, taken(), tuple(refused), remedies, tuple(steps), without_tool)


def worse(without: Played, with_it: Played) -> list[str]:
    """What of the second is worse than the first by more than the one call that knowledge may cost.

    Where the first came to no answer, what counts is how far it had come: who gets further, or has a remedy more, may meet what is ill there.
    """
    found: list[str] = []
    if without.recovered and not with_it.recovered:
        found.append(f"it would have been answered without, and ends with {with_it.exit.code}")
    if without.recovered and without.written and not with_it.written:
        found.append("the tool was used without, and not with it")
    most = 1 if without.recovered else 2
    taken = with_it.taken if without.recovered else with_it.beyond(without.written)
    if taken.failed > without.taken.failed + most:
        found.append(f"{taken.failed} calls failed, {without.taken.failed} without")
    if taken.stalled_seconds > without.taken.stalled_seconds + most * LONG_SECONDS:
        found.append(f"silent for {taken.stalled_seconds} s, {without.taken.stalled_seconds} without")
    return found


def hurts(script: Script) -> list[str]:
    """What the knowledge of a script spoils; empty if nothing."""
    without, with_it = play(script, Known()), play(script, script.known)
    found = [f"a strict provider refuses: {one}" for one in (*without.objections, *with_it.objections)]
    spoilt = worse(without, with_it)
    return found if not spoilt or lucky(script, with_it) else found + spoilt


def lucky(script: Script, with_it: Played) -> bool:
    """In a relative of the script the turn that knows nothing does no better than the one that knows something: here it has good luck.

    An illness can take a turn away from a model on which it would have failed later. A try uses up some illnesses, avoids others, and leaves
    a part of the work done.
    """
    return any(not worse(play(one, Known()), with_it) for one in relatives(script))


def relatives(script: Script) -> Iterator[Script]:
    """The script with some of its illnesses over sooner; with the work done in pieces from the first, of which some arrive."""
    counts = [range(fault.first, -1, -1) if fault.first < 10 else (fault.first, 0) for fault in script.faults]
    for pieces in (None, *range(PIECES + 1)):
        for firsts in itertools.product(*counts):
            faults = tuple(replace(fault, first=first) for fault, first in zip(script.faults, firsts, strict=True))
            yield replace(script, faults=faults, pieces=pieces)
