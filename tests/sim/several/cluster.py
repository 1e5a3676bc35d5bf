"""One scenario of several gateways: people at any of them, and gateways that are killed, stopped, cut off and told to end until everybody has their answer."""

from __future__ import annotations

import asyncio
import importlib
import random
import shutil
import sqlite3
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from adapters.contract.base import Inbound
from agent_core.driver.spending import Spender
from agent_core.model.client import ModelRequest
from agent_core.model.endpoints import Endpoint
from agent_core.model.reach import AskedByOthers
from agent_core.ports import Clock
from agent_core.signals import Signals
from agent_core.store.errors import CannotOpenNow, StoreError
from agent_core.store.inbox.rows import InboxRow, InboxState
from agent_core.store.sessions.rows import SessionChange
from agent_core.store.slices.rows import HOUSE, account_slice
from agent_core.store.store import LeaseLost, StorageUnavailable, Store
from agent_core.tools.base import ToolContext, ToolOutcome
from agent_core.tools.registry import ToolRegistry
from gateway.config.types import SessionPolicy
from gateway.delivery.owners import Owner
from gateway.limits.budgets import BudgetBook
from gateway.queues import inbox
from gateway.recovery.keeper import Keeper
from gateway.sessions.hub import Hub
from gateway.sessions.opening import HubSettings
from gateway.several.together import together
from gateway.sharing.inhand import InHand
from gateway.sharing.portion import Portion
from tests.sim import world
from tests.sim.loop import MAX_STEPS, SimLoop, SimTask, TooManySteps
from tests.sim.model import ENDPOINTS, Script, SimClient
from tests.sim.people import Person, Said, stopper
from tests.sim.scenario import BUDGETS, GRAVE, TURN, Plan, Result, disk_error
from tests.sim.several.laws import HEARD_MS, LATE_MS
from tests.sim.several.server import LOST_WORDS, SERVER, Server, shared_store
from tests.sim.tools import EFFECTS, Runs, SimTool

LAST_SECOND = 300.0
CALM_SECOND = 45.0
"""From then on nothing happens to gateways any more."""
PATIENCE_SECONDS = 6.0
"""So long somebody looks at a gateway that says nothing."""
AWAY_SECONDS = 2.0
"""So long a question waits for a server that cannot be reached."""
REST_SECONDS = 6.0
CALM_SEEDS = range(25_000_000, 30_000_000)
"""Scenarios in which nothing happens to gateways and no word is lost, and in which whatever looks does so each minute: so that who was not woken by
a word is late by tens of seconds."""
BEHIND_SEEDS = range(22_000_000, 25_000_000)
"""Scenarios in which a gateway stands still just when it has stored that it begins a call: when it goes on, that may be another one's."""
BEFORE_SECONDS = 4.0
"""Until then it is settled whose a conversation is."""
SELDOM_SECONDS = 60.0
LOOKS = (
    ("gateway.several.collecting", "LOOK_SECONDS"),
    ("gateway.setaside.takeup", "OURS_SECONDS"),
    ("gateway.sharing.portion", "ELSEWHERE_SECONDS"),
    ("gateway.sessions.followers", "ELSEWHERE_SECONDS"),
)
USUAL = tuple(getattr(importlib.import_module(module), name) for module, name in LOOKS)
"""What looks, and how often: the nets below the words."""
ACCOUNT, CHANNEL = "sim/bot", "events"
WATCHED = """
CREATE TABLE wrong (words TEXT);
CREATE TRIGGER no_way_back AFTER UPDATE ON cursors WHEN CAST(NEW.last_seen AS INTEGER) < CAST(OLD.last_seen AS INTEGER)
BEGIN INSERT INTO wrong VALUES ('what is read was moved back from ' || OLD.last_seen || ' to ' || NEW.last_seen); END;
CREATE TRIGGER sessions_epochs AFTER UPDATE ON sessions WHEN NEW.owner IS NOT OLD.owner AND NEW.epoch <= OLD.epoch
BEGIN INSERT INTO wrong VALUES (NEW.session || ' changed hands under one epoch'); END;
CREATE TRIGGER slices_epochs AFTER UPDATE ON slices WHEN NEW.owner IS NOT OLD.owner AND NEW.epoch <= OLD.epoch
BEGIN INSERT INTO wrong VALUES (NEW.slice || ' changed hands under one epoch'); END;
"""
"""Writes down what no write may do, whoever it comes from."""


@dataclass(frozen=True)
class Blow:
    """What happens to a gateway."""

    at: float
    which: int
    kind: str
    """``kill``, ``stop`` (for a while), ``behind`` (the same, behind its next call), ``part`` (nothing reaches it), ``drain``."""
    seconds: float


def calm_plan(seed: int) -> tuple[Plan, list[Blow], list[float]]:
    """People who begin when all gateways are there, and nothing happens to those."""
    draw = random.Random(seed)
    said: list[Said] = []
    for session in range(draw.choice((5, 8))):
        at = BEFORE_SECONDS + draw.uniform(0.0, 20.0)
        for number in range(draw.choice((1, 2, 3))):
            said.append(Said(f"k{session}.{number}", f"s{session}", draw.choice(("hello", "do it")), at))
            at += draw.choice((0.0, 0.05, 2.0, 12.0))
    return Plan(seed, said, [], [], 0.0, False, [], False), [], [0.0] * draw.choice((2, 3))


def plan(seed: int) -> tuple[Plan, list[Blow], list[float]]:
    """What people say, what happens to gateways, and how far the clock of each is off."""
    if seed in CALM_SEEDS:
        return calm_plan(seed)
    draw = random.Random(seed)
    said: list[Said] = []
    for session in range(draw.choice((2, 3, 5))):
        at = 2.0
        for number in range(draw.choice((1, 3))):
            at += draw.choice((0.0, 0.05, 2.0, 12.0))
            said.append(Said(f"k{session}.{number}", f"s{session}", draw.choice(("hello", "do it")), at))
    gateways = draw.choice((2, 2, 3))
    blows = [
        Blow(draw.uniform(2.5, 30.0), draw.randrange(gateways), draw.choice(("kill", "stop", "stop", "part", "drain")),
             draw.choice((0.5, 3.5, 6.0, 9.0)))
        for _ in range(draw.choice((0, 1, 2, 4)))
    ]  # fmt: skip
    if seed in BEHIND_SEEDS:
        blows = [Blow(draw.uniform(2.0, 12.0), which, "behind", draw.choice((6.0, 9.0))) for which in range(gateways)]
    clocks = [draw.choice((0.0, 0.0, 2.0, -130.0, 240.0)) if blows else 0.0 for _ in range(gateways)]
    stops = [(f"s{draw.randint(0, 2)}", draw.uniform(3, 25)) for _ in range(draw.choice((0, 0, 1)))]
    of = Plan(seed, said, stops, [], draw.choice((0.0, 0.1, 0.3)), False, [], False)
    return of, sorted(blows, key=lambda blow: blow.at), clocks


class SkewedClock(world.SimClock):
    """A wall clock that is off."""

    def __init__(self, loop: SimLoop, seconds: float) -> None:
        super().__init__(loop)
        self._off = round(seconds * 1000)

    def now_ms(self) -> int:
        return super().now_ms() + self._off


class WatchedClient(SimClient):
    """No gateway that may count as dead asks the model."""

    def __init__(self, process: Process, clock: Clock, script: Script) -> None:
        super().__init__(process.loop, clock, script, process.cluster.result.violations)
        self._process = process

    def open_stream(self, endpoint: Endpoint, request: ModelRequest) -> Any:
        if not self._process.certain():  # the last look of the real one, in the step in which its bytes go out
            raise AskedByOthers
        self._process.must_live("asked the model")
        self._process.cluster.result.asked += 1
        return super().open_stream(endpoint, request)


class WatchedTool(SimTool):
    """No gateway that may count as dead runs a tool."""

    def __init__(self, process: Process, name: str, draw: random.Random) -> None:
        super().__init__(name, draw, process.cluster.result.runs)
        self._process = process

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutcome:
        self._process.must_live(f"ran {self.spec.name}")
        return await super().run(arguments, context)


class Commands:
    """What other gateways pass on is carried out, as `gateway.commands.carrying` does; chats have no others here."""

    def __init__(self, process: Process, hub: Hub, store: Store) -> None:
        self._process, self._hub, self._store = process, hub, store
        self.in_hand = InHand[int, str]()

    def busy(self) -> list[str]:
        return [*self.in_hand]

    def carries_out(self, inbox_id: int) -> bool:
        return inbox_id in self.in_hand

    async def carry_out(self, inbox_id: int, owner: Owner) -> bool:
        with self.in_hand.reading() as ours:
            row = await self._store.inbox.one(inbox_id)
        if row is not None and row.state is InboxState.NEW and inbox_id not in ours:
            inbound = inbox.decode(row.body)
            self.in_hand.take(row.id, inbound.session.text())
            self._process.begin(self._do(row, inbound, owner))
        return True

    async def _do(self, row: InboxRow, inbound: Inbound, owner: Owner) -> None:
        words = str(inbound.input[0].content).partition(" ")[2]
        asked = self._hub.portion.asked
        assert asked is not None
        try:
            await asked(inbound.session, row.id, words)
            await self._store.sessions.respond(owner.session, owner.epoch, row.id, SessionChange(), [], ())
        except StoreError:
            pass  # whoever has it next does it
        finally:
            self.in_hand.leave(row.id)


class Visitor(Person):
    """Looks at one gateway, until the end or until somebody else looks for them."""

    goes_elsewhere = True

    async def live(self) -> None:
        ticket = await self._send()
        await self._look(ticket, leaves=self.draw.random() < 0.2)


@dataclass(eq=False)
class Process:
    """One gateway, from its start to its death; it may be several nodes one after the other."""

    cluster: Cluster
    which: int
    number: int
    loop: SimLoop
    frozen_until: float = 0.0
    frozen_behind: float = 0.0
    """For so long it stands still behind its next call."""
    parted_until: float = 0.0
    killed: bool = False
    ending: bool = False
    over: bool = False
    hub: Hub | None = None
    """There while people can be served."""
    store: Store | None = None
    leads: bool = False
    tasks: set[asyncio.Task[Any]] = field(default_factory=set[Any])
    main: asyncio.Task[None] | None = None

    def begin(self, work: Any) -> asyncio.Task[Any]:
        task = self.loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    @property
    def steps(self) -> bool:
        return not self.killed and not self.over and self.frozen_until <= self.cluster.now

    def must_live(self, did: str) -> None:
        """Called by what cannot be taken back."""
        assert self.store is not None
        if not self.cluster.server.lives(self.store.node):
            self.cluster.says(f"node {self.store.node} (process {self.number}) {did} when it counted as dead")

    def certain(self) -> bool:
        return not self.killed and self.store is not None and self.store.ownership.lease_ok()

    async def run(self) -> None:
        while not self.ending:
            try:
                await self._life()
            except* (CannotOpenNow, StorageUnavailable, LeaseLost, OSError, TimeoutError):
                pass
            self.hub = self.store = None
            await asyncio.sleep(0.5)
        self.over = True

    async def _life(self) -> None:
        cluster, loop = self.cluster, self.loop
        draw = random.Random(cluster.plan.seed * 17 + self.number)
        clock = SkewedClock(loop, cluster.clocks[self.which])
        async with AsyncExitStack() as stack:
            store = await stack.enter_async_context(shared_store(cluster.path, loop, clock, cluster.ids))
            self.store = store
            self._stand_still_behind_calls(store)
            client = WatchedClient(self, clock, Script(draw, cluster.plan.trouble))
            tools = ToolRegistry([WatchedTool(self, name, draw) for name in EFFECTS], result_chars=10_000)
            spender, signals = await stack.enter_async_context(Spender(store, BUDGETS, clock)), Signals()
            hub = await stack.enter_async_context(Hub(
                cluster.settings, store, client, ENDPOINTS, tools, clock, cluster.ids, signals.tell,
                budgets=BudgetBook(spender, store, clock), portion=Portion(whole=False),
            ))  # fmt: skip
            commands = Commands(self, hub, store)
            keeper = Keeper(hub, store, clock, cluster.ids, None, commands)
            team = await stack.enter_async_context(
                together(
                    hub.portion,
                    _NONE,
                    f"sim://{self.number}",
                    store,
                    hub,
                    _chats(commands),
                    keeper,
                    _NONE,
                    signals,
                    cluster.ids,
                )
            )
            hub.keep(keeper.run, "keeper")
            for name, work in ((HOUSE, self._leads), (account_slice(ACCOUNT), self._polls)):
                self.begin(hub.portion.while_had(name, work))
            self.hub = hub
            hurry = asyncio.Event()
            while not self.ending and not store.ownership.lost.is_set():
                await asyncio.sleep(0.1)
            if not self.ending:
                hurry.set()
            await team.drain(5.0, hurry)
            self.hub = None
            for task in [*self.tasks]:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)

    def _stand_still_behind_calls(self, store: Store) -> None:
        intend = store.turns.intend

        async def intended(*given: Any) -> None:
            await intend(*given)
            if self.frozen_behind:
                self.frozen_until, self.frozen_behind = self.cluster.now + self.frozen_behind, 0.0

        cast("Any", store.turns).intend = intended

    async def _leads(self) -> None:
        """What is done once for all."""
        self.leads = True
        try:
            await asyncio.Event().wait()
        finally:
            self.leads = False

    async def _polls(self) -> None:
        """A platform is read, as far as it is stored that it was."""
        assert self.store is not None
        store, draw = self.store, self.loop.random
        at = 0
        while True:
            try:
                if not at:
                    at = int(await store.inbox.cursor(ACCOUNT, CHANNEL) or 0)
                await asyncio.sleep(draw.choice((0.05, 0.3, 1.0)))
                at += 1
                await store.inbox.move_cursor(ACCOUNT, CHANNEL, str(at))
            except StorageUnavailable:
                at = 0


_NONE = cast("Any", SimpleNamespace(look=lambda: None))


async def _nothing(*_: object) -> None:
    """Nobody is let in or shut out, and nothing is said in chats."""


def _chats(commands: Commands) -> Any:
    supervisor = SimpleNamespace(
        adapter=SimpleNamespace(name=ACCOUNT), slices=(account_slice(ACCOUNT),), failing_seconds=0.0
    )
    surfaces = SimpleNamespace(busy=lambda: ())
    return SimpleNamespace(
        commands=commands, messages=SimpleNamespace(announce=_nothing), supervisors=[supervisor], outbox=SimpleNamespace(surfaces=surfaces, records=SimpleNamespace(count_on=_nothing)),
        members=SimpleNamespace(learn=_nothing, met=_nothing),
    )  # fmt: skip


class Cluster:
    """Runs the plan of a seed in `folder`, whose ``template.db`` is an empty database."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.plan, self.blows, self.clocks = plan(seed)
        self.path = folder / "sim.db"
        for old in folder.glob("sim.db*"):
            old.unlink()
        shutil.copyfile(folder / "template.db", self.path)
        database = sqlite3.connect(self.path)
        database.executescript(WATCHED)
        database.close()
        self.calm = seed in CALM_SEEDS
        for (module, name), usual in zip(LOOKS, USUAL, strict=True):
            setattr(importlib.import_module(module), name, SELDOM_SECONDS if self.calm else usual)
        self.soon_ms = None if self.blows else HEARD_MS if self.calm else LATE_MS
        """How soon what is wanted has to be done; None where something happens to gateways."""
        self.now = 0.0
        self.draw = random.Random(seed * 31)
        self.ids = world.SimIds()
        self.server = Server(self.path, seed * 13, 0.0 if self.calm else LOST_WORDS)
        SERVER[:] = [self.server]
        self.result = Result(self.plan, self.path, Runs(), [])
        self.settings = HubSettings(
            turn=replace(TURN), system_prompt="You are kind.", connect_seconds=5, queue_limit=20,
            policy=SessionPolicy.QUEUE, workspaces=folder, history_turns=20, rehearsal=False, version="sim",
        )  # fmt: skip
        self.processes: list[Process] = []
        self.visits: dict[str, tuple[Process, asyncio.Task[Any], float]] = {}
        """Who looks where, and since when, by the keys of messages."""
        self.again: list[tuple[float, int]] = []
        """When a process that ended is begun anew."""
        self.stops = [*self.plan.stops]

    def says(self, words: str) -> None:
        self.result.violations.append(f"{words}, at {self.now:.2f} s")

    def run(self) -> Result:
        world.LOGGED.clear()
        SimTask.number = 0
        for which in range(len(self.clocks)):
            self._begin(which)
        while any(said.ended is None for said in self.plan.said) and self.now < LAST_SECOND:
            self._step()
        # What was going on when the last of them had their answer comes to its end.
        until = self.now + REST_SECONDS
        while self.now < until:
            self._step()
        world.die(self.path)
        GRAVE.extend(process.loop for process in self.processes)
        self.result.seconds, self.result.incarnations = self.now, len(self.processes)
        self.result.logged = list(world.LOGGED)
        return self.result

    # ------------------------------------------------------------------ time

    def _step(self) -> None:
        """One callback of one process; or, where nobody has anything to do, the next moment at which somebody has."""
        ready = [one for one in self.processes if one.steps and one.loop._ready]
        if not ready:
            self._advance()
            return
        process = ready[0] if len(ready) == 1 else self.draw.choice(ready)
        self.result.steps += 1
        if self.result.steps > 3 * MAX_STEPS:
            raise TooManySteps(f"{self.result.steps} steps, at {self.now:.1f} s")
        asyncio._set_running_loop(process.loop)
        try:
            process.loop._run_once()
        finally:
            asyncio._set_running_loop(None)
        main = process.main
        if main is not None and main.done() and not process.over:
            process.over = True
            self.says(f"process {process.number} ended: {main.exception()!r}")

    def _advance(self) -> None:
        """The next moment at which somebody has something to do: that may be this one, for what waits for no time at all."""
        if self._make_due():
            return
        moments = [at for one in self.processes if one.steps and (at := one.loop.next_at()) is not None]
        moments += [at for one in self.processes if not one.killed for at in (one.frozen_until, one.parted_until)]
        moments += [*self.server.silent_at(), *(blow.at for blow in self.blows), *(at for at, _ in self.again)]
        moments += [said.at for said in self.plan.said] + [self.now + 1.0]
        self.now = min(at for at in moments if at > self.now)
        for process in self.processes:
            process.loop.now = self.now
            if self.server.cut_off and process.parted_until <= self.now:
                self.server.cut_off.discard(process.loop)
        self.server.watch(self.now)
        self._strike()
        self._make_due()
        self._look()
        self._visit()

    def _make_due(self) -> bool:
        """What is due by now is ready; whether there is any."""
        steps = [one.loop for one in self.processes if one.steps]
        for loop in steps:
            loop.make_due()
        return any(loop._ready for loop in steps)

    def _strike(self) -> None:
        while self.blows and self.blows[0].at <= self.now:
            self._hit(self.blows.pop(0))
        while self.stops and self.stops[0][1] <= self.now:
            session, at = self.stops.pop(0)
            if up := self._up():
                process = self.draw.choice(up)
                assert process.hub is not None
                process.begin(stopper(process.hub, session, at, process.loop))
        for at, which in [one for one in self.again if one[0] <= self.now]:
            self.again.remove((at, which))
            self._begin(which)
        for process in self.processes:
            if process.over and process.ending:
                process.ending, process.killed = False, True
                self.again.append((self.now + 1.0, process.which))

    def _hit(self, blow: Blow) -> None:
        process = next((one for one in reversed(self.processes) if one.which == blow.which and one.steps), None)
        if process is None:
            return
        match blow.kind:
            case "kill":
                process.killed = True
                for link in [one for one in self.server.links if one.pulse.loop is process.loop]:
                    self.server.end(link)
                self.server.listening = [one for one in self.server.listening if one._loop is not process.loop]
                self.again.append((self.now + blow.seconds, blow.which))
            case "stop":
                process.frozen_until = self.now + blow.seconds
            case "behind":
                process.frozen_behind = blow.seconds
            case "part":
                process.parted_until = self.now + blow.seconds
                self.server.cut_off.add(process.loop)
            case _:
                process.ending = True

    def _begin(self, which: int) -> None:
        loop = SimLoop(self.plan.seed * 31 + len(self.processes), self.now)
        process = Process(self, which, len(self.processes), loop)
        loop.set_exception_handler(lambda _, context: self.says(f"unhandled in the loop: {context}"))
        loop.before_work = lambda: self._reached(process)
        loop.waits_for_work = lambda: AWAY_SECONDS if loop in self.server.cut_off else 0.0
        self.processes.append(process)
        process.main = loop.create_task(process.run())

    def _reached(self, process: Process) -> None:
        if process.loop in self.server.cut_off:
            raise disk_error()

    # ------------------------------------------------------------------ people, and what must hold at each moment

    def _up(self) -> list[Process]:
        return [one for one in self.processes if one.hub is not None and not one.killed and not one.over]

    def _visit(self) -> None:
        up = self._up()
        for said in self.plan.said:
            if said.ended is not None or said.at > self.now:
                continue
            process, task, since = self.visits.get(said.key, (None, None, 0.0))
            if process is not None and task is not None and not task.done():
                hangs = not process.steps or process.loop in self.server.cut_off
                if not process.killed and not (hangs and self.now - since > PATIENCE_SECONDS):
                    self.visits[said.key] = (process, task, since if hangs else self.now)
                    continue
                task.cancel()
            if up:
                process = self.draw.choice(up)
                assert process.hub is not None
                said.incarnation += 1
                visitor = Visitor(said, process.hub, process.loop, self.draw)
                self.visits[said.key] = (process, process.begin(visitor.live()), self.now)

    def _look(self) -> None:
        """Nobody does what another one does."""
        sure = [one for one in self.processes if one.certain() and one.hub is not None]
        leading = [one.number for one in sure if one.leads]
        if len(leading) > 1:
            self.says(f"processes {leading} all lead")
        held: dict[str, int] = {}
        for process in sure:
            assert process.hub is not None
            for name in process.hub.portion.held:
                if held.setdefault(name, process.number) != process.number:
                    self.says(f"processes {held[name]} and {process.number} both have {name}")
