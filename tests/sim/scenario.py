"""One scenario: some people, a model, tools, and a gateway that is killed and started again until everybody has their answer."""

from __future__ import annotations

import asyncio
import hashlib
import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import OperationalError

from agent_core.driver.spending import Spender
from agent_core.limits.budgets import Amount, BudgetRules
from agent_core.limits.spend import Budget
from agent_core.settings import RULES, TurnSettings
from agent_core.store.errors import CannotOpenNow
from agent_core.store.store import open_store
from agent_core.tools.registry import ToolRegistry
from gateway.config.types import SessionPolicy
from gateway.limits.budgets import BudgetBook
from gateway.recovery.keeper import recovered
from gateway.sessions.hub import Hub
from gateway.sessions.opening import HubSettings
from tests.sim import world
from tests.sim.loop import SimLoop, SimTask
from tests.sim.model import ENDPOINTS, Script, SimClient
from tests.sim.people import Person, Said, stopper
from tests.sim.tools import FACTS, Runs, tools

TURN = TurnSettings(
    routes=(),
    tools=FACTS,
    first_content_seconds=5,
    stall_seconds=3,
    turn_seconds=90,
    max_steps=6,
    retry_min_seconds=0.2,
    retry_max_seconds=4,
    retry_after_max_seconds=20,
    approval_seconds=12,
    rules=RULES,
)
BUDGETS = BudgetRules(limits={Budget.TURN: Amount(3_000), Budget.PERSON: Amount(50_000)}, assumed_output_tokens=200)
"""Seldom used up, so that turns also meet a budget without room."""
LAST_SECOND = 4_000.0
"""No scenario may need more virtual time than this."""

GRAVE: list[object] = []
"""Loops of killed incarnations: their tasks must never be collected, or their `finally` blocks would run."""


ODD_SEEDS = range(10_000_000, 20_000_000)
"""Scenarios whose upstream sends what no provider documents."""


@dataclass
class Plan:
    """What is drawn before a scenario begins."""

    seed: int
    said: list[Said]
    stops: list[tuple[str, float]]
    kills: list[tuple[str, float]]
    """(where: at the n-th commit ``before`` or ``after`` it, at a time, or an orderly ``drain``; how much)."""
    trouble: float
    interrupts: bool
    storage: list[tuple[float, float, bool]]
    """(from, to, the commit happens and only its answer is lost)."""
    trusts: bool
    """Messages are stored with their turns at once after a death as well, so that deaths meet that too."""


def plan(seed: int) -> Plan:
    """The scenario of a seed."""
    draw = random.Random(seed)
    said: list[Said] = []
    for session in range(draw.choice((1, 2, 3, 5))):
        at = 0.0
        for number in range(draw.choice((1, 3, 6))):
            at += draw.choice((0.0, 0.05, 2.0, 20.0))
            words = draw.choice(("hello", "do it", "continue", "x" * 300))
            said.append(Said(f"k{session}.{number}", f"s{session}", words, at, withdraws=draw.random() < 0.07))
    kills: list[tuple[str, float]] = []
    for number in range(draw.choice((0, 0, 1, 1, 2, 5))):
        where = draw.choice(("before", "after", "before", "after", "time", "drain"))
        last = 40 if number == 0 else 12  # a second death is most dangerous soon after the start
        kills.append((where, draw.randint(1, last) if where in ("before", "after") else draw.uniform(0.0, 30.0)))
    storage: list[tuple[float, float, bool]] = []
    if draw.random() < 0.2:
        begin = draw.choice((0.0, draw.uniform(0, 20)))
        storage.append((begin, begin + draw.choice((0.1, 2.0, 15.0, 50.0)), draw.random() < 0.6))
    return Plan(
        seed=seed,
        said=said,
        stops=[(f"s{draw.randint(0, 2)}", draw.uniform(0, 30)) for _ in range(draw.choice((0, 0, 1, 3)))],
        kills=kills,
        trouble=draw.choice((0.0, 0.1, 0.3, 0.7, 1.0)),
        interrupts=draw.random() < 0.2,
        storage=storage,
        trusts=draw.random() < 0.5,
    )


@dataclass
class Result:
    """A scenario that is over."""

    plan: Plan
    path: Path
    runs: Runs
    violations: list[str]
    asked: int = 0
    incarnations: int = 0
    steps: int = 0
    seconds: float = 0.0
    """Virtual time that it took."""
    logged: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    orderly_ends: list[float] = field(default_factory=list[float])

    @property
    def storage(self) -> list[tuple[float, float, bool]]:
        return self.plan.storage


def disk_error() -> OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_IOERR, "SQLITE_IOERR"
    return OperationalError("sim", None, error)


class Incarnation:
    """One process of the gateway, from its start to its end or death."""

    def __init__(self, scenario: Scenario, number: int, start: float) -> None:
        self.scenario = scenario
        self.loop = SimLoop(scenario.plan.seed * 31 + number, start)
        self.loop.set_exception_handler(self._unhandled)
        self._kill = scenario.plan.kills[number] if number < len(scenario.plan.kills) else None
        self._commits = 0
        self.loop.before_work = self._before
        self.loop.after_work = self._after
        self.number = number

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.loop.killed:
            error = context.get("exception")
            self.scenario.result.violations.append(f"unhandled in the loop: {context['message']}: {error!r}")

    def _in_trouble(self) -> bool | None:
        """Whether the storage is away now; if so, whether commits happen all the same."""
        for begin, end, happens in self.scenario.plan.storage:
            if begin <= self.loop.now < end:
                return happens
        return None

    def _before(self) -> None:
        self._commits += 1
        if self._kill == ("before", self._commits):
            self.loop.kill()
        elif self._in_trouble() is False:
            raise disk_error()

    def _after(self) -> None:
        if self._kill == ("after", self._commits):
            self.loop.kill()
        elif self._in_trouble() is True:
            raise disk_error()

    def run(self) -> bool:
        """True if everybody has their end; False if the process died or was stopped before."""
        timer = None
        if self._kill is not None and self._kill[0] == "time":
            timer = self.loop.call_later(self._kill[1], self.loop.kill)
        asyncio.set_event_loop(self.loop)
        try:
            done = self.loop.run_until_complete(self._live())
        # The storage was away at the start or at the end: the process says so, and ends
        except (
            CannotOpenNow,
            OperationalError,
        ):
            self.loop.kill()
            done = False
        except RuntimeError:
            if not self.loop.killed:
                raise
            done = False
        if timer is not None:
            timer.cancel()
        if self.loop.killed:
            world.die(self.scenario.path)
            GRAVE.append(self.loop)
            asyncio.events._set_running_loop(None)
            return False
        self._look_around()
        self.loop.close()
        return done

    def _look_around(self) -> None:
        """An orderly end leaves nothing behind."""
        left = [repr(task)[:200] for task in asyncio.all_tasks(self.loop)]
        self.loop.run_until_complete(asyncio.sleep(0.1))
        left += self.loop.open_timers()
        self.scenario.result.violations += [f"left behind at the end: {what}" for what in left]
        # A question that nobody waits for may have opened one: the next scenario's file is another
        world.die(self.scenario.path)

    async def _live(self) -> bool:
        scenario = self.scenario
        draw = random.Random(scenario.plan.seed * 17 + self.number)
        clock = world.SimClock(self.loop)
        async with open_store(scenario.path, clock=clock, ids=scenario.ids, version="sim") as store:
            script = Script(draw, scenario.plan.trouble, is_odd=scenario.plan.seed in ODD_SEEDS)
            client = SimClient(self.loop, clock, script, scenario.result.violations)
            registry = ToolRegistry(tools(draw, scenario.result.runs), result_chars=10_000)
            async with (
                Spender(store, BUDGETS, clock) as spender,
                Hub(
                    scenario.settings, store, client, ENDPOINTS, registry, clock, scenario.ids,
                    budgets=BudgetBook(spender, store, clock),
                ) as hub,
            ):  # fmt: skip
                if scenario.plan.trusts:
                    hub.at_once.wary_until = 0.0
                await recovered(hub, store, clock, scenario.ids)
                people = [Person(said, hub, self.loop, draw).live() for said in scenario.plan.said]
                stops = [
                    stopper(hub, session, at, self.loop) for session, at in scenario.plan.stops if at >= self.loop.now
                ]
                done = await self._everybody(hub, [*people, *stops])
            scenario.result.asked += client.asked
        return done

    async def _everybody(self, hub: Hub, people: list[Any]) -> bool:
        """All people in tasks; at an orderly restart they are left where they are."""
        tasks = [asyncio.ensure_future(person) for person in people]
        until = self._kill[1] if self._kill is not None and self._kill[0] == "drain" else LAST_SECOND
        done, late = await asyncio.wait(tasks, timeout=until)
        if late and until == LAST_SECOND:
            self.scenario.result.violations.append(f"{len(late)} people had no end after {LAST_SECOND} s")
        if late:
            await hub.drain(5.0)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task in done:
            task.result()
        return not late or until == LAST_SECOND


class Scenario:
    """Runs a plan in `folder`, whose ``template.db`` is an empty database."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.plan = plan(seed)
        self.path = folder / "sim.db"
        for old in folder.glob("sim.db*"):
            old.unlink()
        shutil.copyfile(folder / "template.db", self.path)
        self.ids = world.SimIds()
        self.result = Result(self.plan, self.path, Runs(), [])
        self.settings = HubSettings(
            turn=replace(TURN),
            system_prompt="You are kind.",
            connect_seconds=5,
            queue_limit=20,
            policy=SessionPolicy.INTERRUPT if self.plan.interrupts else SessionPolicy.QUEUE,
            workspaces=folder,
            history_turns=20,
            rehearsal=False,
            version="sim",
        )

    def run(self) -> Result:
        """Start incarnations until everybody has their end."""
        world.LOGGED.clear()
        SimTask.number = 0
        now = 0.0
        for number in range(len(self.plan.kills) + 80):
            for said in self.plan.said:
                said.incarnation = number if said.ended is None else said.incarnation
            incarnation = Incarnation(self, number, now)
            self.result.incarnations += 1
            over = incarnation.run()
            now = incarnation.loop.now + 1.0
            if over:
                break
        self.result.seconds = now
        self.result.logged = list(world.LOGGED)
        return self.result


def digest(result: Result) -> str:
    """A fingerprint of everything that happened, for comparing two runs of one seed."""
    hashed = hashlib.sha256()
    with closing(sqlite3.connect(f"file:{result.path}?mode=ro", uri=True)) as database:
        for table in ("inbox", "turns", "journal", "tool_calls"):
            for row in database.execute(f"SELECT * FROM {table}"):
                hashed.update(repr(row).encode())
    for event in result.logged:
        told = repr(sorted((key, repr(value)) for key, value in event.items() if key != "exception"))
        hashed.update(told.replace(str(result.path), "the database").encode())
    hashed.update(repr([(s.key, s.ended_at, s.ended) for s in result.plan.said]).encode())
    hashed.update(repr(result.runs.begun).encode())
    return hashed.hexdigest()
