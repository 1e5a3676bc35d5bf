"""One script played twice: by a turn that knows nothing, and by one that knows something. What must hold between the two."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from agent_core.driver.modelcalls import hurried
from agent_core.judging.remedies import Rung
from agent_core.learning.known import Known, KnownIncident, KnownStall
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.effects import CallModel, Compact, Effect, EndTurn, RunTool, Wait
from agent_core.turn.events import Compacted, Event, ToolReturned, ToolStarted, WaitEnded
from agent_core.turn.exits import Exit, ExitCode
from agent_core.turn.machine import Turn
from agent_core.turn.settings import RULES, Route, ToolFacts, TurnSettings
from agent_core.turn.transcript import request_messages
from tests.agent_core.strict import objections
from tests.agent_core.turns import opened
from tests.knowledge.upstream import LONG_SECONDS, WRITE, Fault, Upstream, illnesses

ROUTES = (Route("m1", "h1", "k1", 8_000), Route("m2", "h2", "k2", 100_000), Route("m3", "h3", "k3"))
TOOLS = (ToolFacts(WRITE, EffectClass.KEYED), ToolFacts("read", EffectClass.PURE))


@dataclass(frozen=True)
class Script:
    """What happens, and what the turn that knows something is told."""

    faults: tuple[Fault, ...]
    routes: int
    known: Known
    obeys: bool


@dataclass(frozen=True)
class Played:
    """How a turn went."""

    exit: Exit
    calls: int
    failed: int
    stalled_seconds: float
    objections: tuple[str, ...]
    written: int
    """Characters that the tool was given."""
    rungs: tuple[Rung, ...]

    @property
    def recovered(self) -> bool:
        return self.exit.code is ExitCode.ANSWERED


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
        tried=tuple(draw.sample(list(Rung), draw.randint(0, 3))),
        size=draw.choice(("", "S", "L", "XL")),
        models=tuple((route.endpoint, route.model) for route in draw.sample(ROUTES, draw.randint(0, 2))),
        remedy=draw.choice((None, None, *Rung)),
    )


def _incident(draw: random.Random) -> KnownIncident:
    route = draw.choice((*ROUTES[:1] * 3, *ROUTES))
    return KnownIncident(
        draw.choice(list(ExitCode)),
        route.endpoint,
        route.model,
        draw.choice(("", WRITE)),
        draw.choice((None, *Rung, Rung.NEXT_ROUTE, Rung.ADVISE_SMALLER)),
    )


def play(script: Script, known: Known) -> Played:
    """A turn from its beginning to its end."""
    settings = TurnSettings(routes=ROUTES[: script.routes], tools=TOOLS, rules=RULES)
    upstream = Upstream(script.faults, obeys=script.obeys)
    turn = Turn()
    refused: list[str] = []
    written = 0
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
                    events += upstream.reply(effect, messages, offered=offered, hurried=hurried(turn), now=now)
                case RunTool():
                    written += len(effect.arguments)
                    events.append(ToolStarted(at=now, call=effect.call))
                    events.append(
                        ToolReturned(at=now, call=effect.call, status=ToolStatus.OK, text=_result(effect, now))
                    )
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
        if any(isinstance(effect, EndTurn) for effect in wanted):
            break
    assert turn.exit is not None, "it goes on for ever"
    rungs = tuple(rung for _, rung in turn.rungs)
    return Played(turn.exit, upstream.calls, upstream.failed, upstream.stalled_seconds, tuple(refused), written, rungs)


def _result(effect: RunTool, now: int) -> str:
    """How much was written, and something by which results differ."""
    chars = len(effect.arguments)
    return f"{chars * 3 if chars < 5_000 else chars} characters, {effect.call}"


def hurts(script: Script) -> list[str]:
    """What the knowledge of a script spoils; empty if nothing."""
    without, with_it = play(script, Known()), play(script, script.known)
    found = [f"a strict provider refuses: {one}" for one in (*without.objections, *with_it.objections)]
    if without.recovered and not with_it.recovered:
        found.append(f"it would have been answered without, and ends with {with_it.exit.code}")
    if without.recovered and without.written and not with_it.written:
        found.append("the tool was used without, and not with it")
    most = 1 if without.recovered else 2
    if with_it.failed > without.failed + most:
        found.append(f"{with_it.failed} calls failed, {without.failed} without")
    if with_it.stalled_seconds > without.stalled_seconds + most * LONG_SECONDS:
        found.append(f"silent for {with_it.stalled_seconds} s, {without.stalled_seconds} without")
    return found
