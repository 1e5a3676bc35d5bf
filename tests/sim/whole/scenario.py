"""One scenario: people in chats of a faulty service, and the whole daemon, killed and started again until everything has come to rest."""

from __future__ import annotations

import asyncio
import functools
import importlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gateway.daemon as daemon
import gateway.storage.soundness as soundness
from adapters.contract.chat import Ability
from agent_core.model.endpoints import Endpoint
from agent_core.store.keeping.checking import Soundness
from agent_core.tools.registry import ToolRegistry
from gateway.config.paths import Paths, find_paths
from gateway.config.reading import load
from gateway.config.sections import Config
from gateway.observe.metrics import Metrics
from tests.sim import world
from tests.sim.loop import SimLoop, SimTask
from tests.sim.model import ENDPOINTS, Script, SimClient
from tests.sim.scenario import Incarnation
from tests.sim.tools import Runs, tools
from tests.sim.whole.platform import NAME, PLATFORM, WORLD, World
from tests.sim.whole.service import Faults, Service, Shown

LAST_SECOND = 4_000.0
REST_SECONDS = 5.0
"""How often it is looked whether everything has come to rest."""
CALM_SECONDS = 60.0
"""So long after the last word of a person the service is faulty."""
WORDS = ("hello", "do it", "continue", "tell me a long story", "x" * 300)
COMMANDS = ("stop", "new", "status", "retry", "continue")


@dataclass(frozen=True)
class Line:
    """What a person writes into a chat, and when (seconds of virtual time)."""

    chat: str
    person: str
    text: str
    at: float
    command: str = ""

    def __str__(self) -> str:
        return f"{self.person} in {self.chat} at {self.at:.1f} s: {'/' + self.command if self.command else self.text[:40]!r}"


@dataclass(frozen=True)
class Plan:
    """What is drawn before a scenario begins."""

    seed: int
    said: tuple[Line, ...]
    kills: tuple[tuple[str, float], ...]
    """As in `tests.sim.scenario.Plan`."""
    trouble: float
    """Of the model's calls."""
    faults: Faults
    ability: Ability
    storage: tuple[tuple[float, float, bool], ...]


def plan(seed: int) -> Plan:
    """The scenario of a seed."""
    draw = random.Random(seed)
    said: list[Line] = []
    for number in range(draw.choice((1, 2, 3))):
        chat = draw.choice((f"p-{number}", f"g{number}"))
        at = 0.0
        for _ in range(draw.choice((1, 2, 4))):
            at += draw.choice((0.0, 0.3, 4.0, 25.0))
            person = f"u{number}" if chat.startswith("p") else draw.choice(("anna", "ben"))
            command = draw.choice(COMMANDS) if draw.random() < 0.15 else ""
            said.append(Line(chat, person, "" if command else draw.choice(WORDS), at, command))
    kills: list[tuple[str, float]] = []
    for number in range(draw.choice((0, 0, 1, 1, 2, 4))):
        where = draw.choice(("before", "after", "before", "after", "time", "drain"))
        last = 60 if number == 0 else 20
        kills.append((where, draw.randint(1, last) if where in ("before", "after") else draw.uniform(0.0, 40.0)))
    storage: list[tuple[float, float, bool]] = []
    if draw.random() < 0.15:
        begin = draw.uniform(0, 20)
        storage.append((begin, begin + draw.choice((0.1, 2.0, 15.0)), draw.random() < 0.6))
    return Plan(
        seed=seed,
        said=tuple(sorted(said, key=lambda line: line.at)),
        kills=tuple(kills),
        trouble=draw.choice((0.0, 0.1, 0.3, 0.7)),
        faults=Faults(draw.choice((0.0, 0.05, 0.2, 0.5)), draw.choice((0.0, 0.1)), draw.choice((0.0, 0.02))),
        ability=draw.choice((Ability.KEYED, Ability.LOOK_UP, Ability.NONE)),
        storage=tuple(storage),
    )


@dataclass
class Result:
    """A scenario that is over."""

    plan: Plan
    path: Path
    runs: Runs
    service: Service
    violations: list[str] = field(default_factory=list[str])
    met: Counter[str] = field(default_factory=Counter[str])
    """Rare situations that were reached."""
    asked: int = 0
    incarnations: int = 0
    seconds: float = 0.0
    logged: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    story: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """(virtual time, what happened), for people."""

    @property
    def storage(self) -> tuple[tuple[float, float, bool], ...]:
        return self.plan.storage


@dataclass
class _Now:
    """What the daemon of this incarnation is given instead of the world."""

    scenario: Scenario
    loop: SimLoop
    clock: world.SimClock
    draw: random.Random


NOW: list[_Now] = []


async def _endpoints(*_: object) -> tuple[Endpoint, ...]:
    return ENDPOINTS


def _client(*_: object) -> SimClient:
    now = NOW[-1]
    script = Script(now.draw, now.scenario.plan.trouble)
    now.scenario.client = SimClient(now.loop, now.clock, script, now.scenario.result.violations)
    return now.scenario.client


async def _toolset(*_: object) -> ToolRegistry:
    now = NOW[-1]
    return ToolRegistry(tools(now.draw, now.scenario.result.runs), result_chars=10_000)


def _ids(*_: object) -> world.SimIds:
    return NOW[-1].scenario.ids


async def _no_doors(*_: object) -> str:
    return "sim://"


async def _no_task(*_: object) -> None:
    """What is made beside the loop so that the first turn is cheap."""


async def _sound(*_: object) -> Soundness:
    return Soundness()


def install() -> None:
    """Once a process, after `world.install`: what the daemon's composition takes from outside is simulated."""
    place: Any = daemon
    place.open_doors, place._endpoints, place._client = _no_doors, _endpoints, _client
    place.toolset, place.warmed = _toolset, _no_task
    place.SystemIds = _ids
    Metrics.watching_loop = lambda *_: nullcontext()  # type: ignore[assignment,method-assign]
    inside: Any = soundness
    inside.check = _sound
    listed: Any = importlib.import_module("adapters.platforms")
    listed.found.cache_clear()
    listed._ours = lambda: iter([(NAME, lambda: PLATFORM)])
    listed._of_others = lambda: iter(())


@functools.cache
def configured(folder: Path) -> tuple[Config, Paths]:
    env = {
        "OUTSPOKEN_HOME": str(folder),
        "OPENAI_BASE_URL": "http://first/v1",
        "OPENAI_API_KEY": "sk-sim-0000000000",
        "OUTSPOKEN_MODEL__NAME": "m1",
        "OUTSPOKEN_MODEL__STALL_SECONDS": "3",
        "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "5",
        "OUTSPOKEN_MODEL__TURN_SECONDS": "90",
        "OUTSPOKEN_MODEL__MAX_STEPS": "6",
        "OUTSPOKEN_TOOLS__APPROVAL_SECONDS": "12",
        "OUTSPOKEN_SIM__OPEN": "true",
        "OUTSPOKEN_SIM__PER_MINUTE": "0",
    }
    paths = find_paths(env, folder)
    config = load(paths.config_file, env).config
    # A tool of the simulation's, which no file may name
    asks = config.tools.model_copy(update={"approval": ("danger",)})
    return config.model_copy(update={"tools": asks}), paths


class WholeIncarnation(Incarnation):
    """One process of the daemon."""

    scenario: Any

    async def _live(self) -> bool:
        scenario: Scenario = self.scenario
        now = _Now(scenario, self.loop, world.SimClock(self.loop), random.Random(scenario.plan.seed * 17 + self.number))
        NOW[:] = [now]
        WORLD[:] = [World(scenario.service, now.draw)]
        scenario.service.begin(functools.partial(self._sees, now.draw))
        config, paths = configured(scenario.path.parent)
        stopping = daemon.Stopping()
        scenario.tell(self.loop.now, f"the gateway starts (incarnation {self.number})")
        async with daemon.serving(config, paths, stopping, now.clock):
            talk = asyncio.ensure_future(self._people())
            until = self._kill[1] if self._kill is not None and self._kill[0] == "drain" else LAST_SECOND
            over = await self._rest(until)
            talk.cancel()
            await asyncio.gather(talk, return_exceptions=True)
            if not over and until == LAST_SECOND:
                scenario.result.violations.append(f"not at rest after {LAST_SECOND} s: {unrest(scenario, whole=True)}")
            scenario.tell(self.loop.now, "the gateway is told to stop")
        for timer in scenario.timers:
            timer.cancel()
        scenario.result.asked += scenario.client.asked
        return over or until == LAST_SECOND

    async def _people(self) -> None:
        """They write what they have not written yet."""
        scenario: Scenario = self.scenario
        while scenario.said < len(scenario.plan.said):
            line = scenario.plan.said[scenario.said]
            await asyncio.sleep(max(0.0, line.at - self.loop.now))
            scenario.said += 1
            scenario.service.says(line.chat, line.person, line.text, command=line.command)
            scenario.tell(self.loop.now, str(line))

    async def _rest(self, seconds: float) -> bool:
        """Whether everything has come to rest within so many seconds."""
        end = self.loop.now + seconds
        while self.loop.now < end:
            await asyncio.sleep(min(REST_SECONDS, end - self.loop.now))
            if self._all_is_said() and not unrest(self.scenario):
                return True
        return False

    def _all_is_said(self) -> bool:
        """Nobody is about to write, or to press a button."""
        scenario: Scenario = self.scenario
        to_press = any(timer.when() >= self.loop.now and not timer.cancelled() for timer in scenario.timers)
        return scenario.said == len(scenario.plan.said) and not to_press

    def _sees(self, draw: random.Random, chat: str, shown: Shown) -> None:
        """A button is pressed, most of the time, and a moment later."""
        scenario: Scenario = self.scenario
        buttons = shown.content.buttons
        if not buttons or shown.id in scenario.pressed or draw.random() < 0.5:
            return
        scenario.pressed.add(shown.id)
        button = draw.choice(buttons)
        person = next(line.person for line in scenario.plan.said if line.chat == chat)

        def press() -> None:
            scenario.service.says(chat, person, "", pressed=button.data)
            scenario.tell(self.loop.now, f"{person} presses {button.label!r} in {chat}")

        scenario.timers.append(self.loop.call_later(draw.choice((0.2, 2.0)), press))


class Scenario:
    """Runs a plan in `folder`, whose ``template.db`` is an empty database."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.path = folder / "outspoken.db"
        for old in folder.glob("outspoken.db*"):
            old.unlink()
        shutil.copyfile(folder / "template.db", self.path)
        self.ids = world.SimIds()
        self.said = 0
        self.pressed: set[str] = set()
        self.timers: list[asyncio.TimerHandle] = []
        met = Counter[str]()
        self.service = Service(plan.ability, plan.faults, met)
        last = plan.said[-1].at if plan.said else 0.0
        self.service.trouble_until = last + CALM_SECONDS
        self.result = Result(plan, self.path, Runs(), self.service, met=met)
        self.client: Any = None

    def tell(self, at: float, words: str) -> None:
        self.result.story.append((at, words))

    def run(self) -> Result:
        """Start incarnations until everything is at rest."""
        world.LOGGED.clear()
        SimTask.number = 0
        now = 0.0
        for number in range(len(self.plan.kills) + 40):
            incarnation = WholeIncarnation(self, number, now)  # type: ignore[arg-type]
            self.result.incarnations += 1
            over = incarnation.run()
            if incarnation.loop.killed:
                self.tell(incarnation.loop.now, "the gateway is killed")
                self.result.met["killed"] += 1
                self.result.met["killed while a call was under way"] += self.service.under_way > 0
                self.result.met["a message waited through a death"] += "messages wait" in unrest(self, whole=True)
            now = incarnation.loop.now + 1.0
            if over:
                break
        self.result.seconds = now
        self.result.logged = list(world.LOGGED)
        return self.result


OPEN_WORK: Sequence[tuple[str, str]] = (
    ("messages wait", "SELECT count(*) FROM inbox WHERE state = 'new'"),
    ("turns are open", "SELECT count(*) FROM turns WHERE state = 'open'"),
    ("parts wait", "SELECT count(*) FROM deliveries WHERE state IN ('wanted', 'sending', 'unknown')"),
)


def unrest(scenario: Scenario, *, whole: bool = False) -> str:
    """What is still to come, in words; empty at rest. The database is asked where nothing else tells, or all is wanted to be known."""
    untold = len(scenario.service.events) - len(scenario.service.confirmed)
    if untold and not whole:
        return f"{untold} events wait"
    found = [f"{untold} events wait"] if untold else []
    with closing(sqlite3.connect(f"file:{scenario.path}?mode=ro", uri=True)) as database:
        for what, query in OPEN_WORK:
            (many,) = database.execute(query).fetchone()
            if many:
                found.append(f"{many} {what}")
    return ", ".join(found)
