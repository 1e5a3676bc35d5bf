"""The hub: what the gateway offers to its adapters (`adapters.contract.base.Gateway`), put together from store, core and queues.

It puts together and owns the tasks, and decides nothing: messages are taken in by `accepting`, their turns opened by `opening` and run by
`runner`, seen through `followers` and stopped by `stopping`. Whoever needs one of them gets that, not the hub. When it is closed, all its
tasks are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from adapters.contract.base import About, Inbound, KeptResponse, SessionKey, StopOutcome, Ticket, TurnSight
from adapters.contract.callers import Caller
from adapters.contract.notaccepted import NotAccepted
from agent_core.beside import kept_up
from agent_core.driver.closing import Closer, Herald, NoHerald
from agent_core.driver.work import World
from agent_core.messages import Message
from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Endpoint
from agent_core.ports import Clock, Ids
from agent_core.rules.consents import Lasting
from agent_core.signals import LawBroken, Tell, nobody
from agent_core.store.slices.rows import HOUSE
from agent_core.store.store import Store
from agent_core.tools.registry import ToolRegistry
from agent_core.turn.events import Verdict
from gateway.delivery.chatside import ChatSide, NoChats
from gateway.limits.alerts import Announce
from gateway.limits.budgets import BudgetBook
from gateway.limits.quotas import Quotas
from gateway.limits.rates import Doors
from gateway.limits.whose import Offers, Rooms, workspace_of
from gateway.people.instructions import OwnInstructions
from gateway.people.keys import Nameable
from gateway.queues.queue import Running
from gateway.queues.queues import Queues
from gateway.queues.watchdog import Watchdog
from gateway.retention import upkeep
from gateway.retention.forgetting import Forgetting, Quiet
from gateway.sessions.accepting import Accepting, always_room
from gateway.sessions.atonce import AtOnce
from gateway.sessions.chain import ModelChain
from gateway.sessions.consents import ConsentBook
from gateway.sessions.followers import MessageFollower, Watching, WholeSessionFollower
from gateway.sessions.learning import Learning
from gateway.sessions.leaving import ClientsGone
from gateway.sessions.opening import Budgeting, HubSettings, TurnOpener
from gateway.sessions.recall import PastRecall
from gateway.sessions.responses import KeptByGateway
from gateway.sessions.runner import Runner
from gateway.sessions.stopping import TurnStopping
from gateway.setaside.setaside import PutAside
from gateway.setaside.unclaimed import Unclaimed
from gateway.sharing.portion import FORGET, Portion
from gateway.storage.damage import DamageMet

AJAR = Doors()
"""There are no keys and no agents."""


def no_trace(_turn: str, _trace: str) -> None:
    """Nobody traces."""


class Hub:
    """What adapters may ask of the gateway, in one place: implements `adapters.contract.base.Gateway`. Use it as an async context manager."""

    def __init__(
        self,
        settings: HubSettings,
        store: Store,
        client: ModelClient,
        endpoints: tuple[Endpoint, ...],
        tools: ToolRegistry,
        clock: Clock,
        ids: Ids,
        tell: Tell = nobody,
        *,
        queues: Queues | None = None,
        chats: ChatSide | None = None,
        budgets: BudgetBook | None = None,
        quotas: Quotas | None = None,
        no_room: Callable[[], NotAccepted | None] = always_room,
        continues: Callable[[str, str], None] = no_trace,
        damage: DamageMet | None = None,
        announce: Announce | None = None,
        herald: Herald | None = None,
        doors: Doors = AJAR,
        portion: Portion | None = None,
    ) -> None:
        """`budgets` pay for model calls and `quotas` count all that is kept; None: nobody counts. `no_room` says why nothing new is taken.

        `continues` is told a turn and its caller's trace, in every process that works on it; `announce` tells the operators, `herald` other programs.
        """
        self._settings, self._store, self._clock = settings, store, clock
        self._group, self._tasks = asyncio.TaskGroup(), set[asyncio.Task[None]]()
        self.tell, self.budgets, self.quotas, self._tools, self.doors = tell, budgets, quotas, tools, doors
        self.chats, self.portion = chats if chats is not None else NoChats(), portion or Portion()
        self.laws_broken = 0
        """How often a turn was found to break a law of the machine: a bug, each time."""
        self.chain = ModelChain(client, endpoints, clock)
        told, herald = announce if settings.operators_chat else None, herald or NoHerald()
        self.learning = Learning(settings.incidents, self.chain.asked, told, store, clock, ids, herald, self.portion)
        self.closer = Closer(store, tell, self.learning.troubled, herald)
        self.queues = queues if queues is not None else Queues()
        self.aside = PutAside(
            self.queues, self.chats, self.closer, damage or DamageMet(clock), announce, store, clock, ids)  # fmt: skip
        """Sets aside what cannot be read."""
        self.left = Unclaimed(store, self.aside, clock)
        """What earlier processes left open."""
        recall, rooms = PastRecall(store, settings.history_turns), Rooms(settings.workspaces, store)
        world = World(
            store, tools, clock, ids, self.chain.set_aside, self._broken, self.closer, tell, self.portion.afar)  # fmt: skip
        self.opener = TurnOpener(
            settings, store, world, client, self.chain, Offers(tools, settings.memory_writers), recall,
            self.learning, self.left, self.aside, self.chats, Budgeting(budgets, quotas), continues, doors.standings,
            ConsentBook(store.memory, clock, self.portion), OwnInstructions(store.memory, clock, self.portion),
        )  # fmt: skip
        runner = Runner(
            self.queues, self.opener.open, rooms.left, self.aside, self.learning.refused, settings.bounds, clock, tell,
            self._group,
        )  # fmt: skip
        self.runner, self.slots = runner, runner.slots
        self.at_once = AtOnce(self.queues, self.runner, self.opener, self.left, store, clock)
        self.accepting = Accepting(
            store, self.queues, self.runner, self.at_once, self.chain, self.left, self.aside, budgets, quotas, no_room,
            settings.queue_limit, settings.policy, doors, clock, ids, tell, self._group, self.portion,
        )  # fmt: skip
        who, given = settings.tools_policy.approvers, self.opener.consents
        self.stopping = TurnStopping(store, self.queues, self.runner, self.chats, clock, given, self.portion, who)
        self._responses = KeptByGateway(store, self.queues, self.stopping, settings.history_turns)
        self.watching = Watching(store, self.queues, self.runner, clock, self.portion, self.left)
        self._gone = ClientsGone(self.stopping, self.watching.following, self._group, self._tasks)
        self._watchdog = Watchdog(self.queues.running, self.closer, clock, ids, *settings.watch)
        self.forgetting = self._forgets(ids)
        self.upkeep = self._housekeeping(rooms)

    def _forgets(self, ids: Ids) -> Forgetting:
        quiet = Quiet(self.queues, self.stopping.forget, self.queues.pasts.clear)
        places = self._settings.workspaces, self._settings.spool, self._settings.printed
        made = Forgetting(self._store, self._clock, ids, *places, quiet)
        made.underway = self.opener.forgotten
        made.elsewhere, self.portion.words[FORGET] = lambda: self.portion.tell(FORGET), made.wake
        return made

    def _housekeeping(self, rooms: Rooms) -> upkeep.Upkeep:
        settings, forget = self._settings, self.queues.forget_memories
        places, turns = upkeep.FilePlaces(settings.workspaces, settings.spool), settings.history_turns
        return upkeep.Upkeep(self._store, self._clock, settings.keep, places, turns, self._folders, rooms.sweep, forget)

    async def __aenter__(self) -> Hub:
        await self._group.__aenter__()
        await self.learning.__aenter__()
        await self.aside.load()
        await self.at_once.load()
        for name, work in (("upkeep", self.upkeep), ("forgetting", self.forgetting)):
            self.keep(partial(self.portion.while_had, HOUSE, work.run), name)
        self.keep(self.forgetting.keep_quiet, "quiet")
        self.keep(self._watchdog.run, "watchdog")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.runner.cancel()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)
        await self.learning.__aexit__(None, None, None)

    def keep(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        """From now on it goes on beside the turns, until the hub closes."""
        self._tasks.add(self._group.create_task(kept_up(work, name), name=name))

    async def drain(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """See `Runner.drain`."""
        await self.runner.drain(seconds, hurry, self.watching.others_are_over)

    def running(self) -> list[Running]:
        """The turns that run in this process."""
        return self.queues.running()

    def _folders(self) -> list[Path]:
        """The workspaces of running turns."""
        return [
            workspace_of(one.messages[0].inbound, self._settings.workspaces) for one in self.running() if one.messages
        ]

    @property
    def workspaces(self) -> Path:
        """Where the folders of conversations lie."""
        return self._settings.workspaces

    def _broken(self) -> None:
        self.laws_broken += 1
        self.tell(LawBroken())

    # ------------------------------------------------------------------ adapters.contract.base.Gateway

    def about(self) -> About:
        models = (*self.chain.names, *self.doors.standings.agents)
        return About(self._settings.version, models, self._settings.rehearsal, self.doors.standings.held)

    def nameable(self) -> Nameable:
        """What the lists of a key may name."""
        models = self.chain.configured
        return Nameable((*models, *self.doors.standings.agents) if models else (), self._tools.names)

    async def accept(self, inbound: Inbound, *, to_end: bool = False) -> Ticket:
        return await self.accepting.accept(inbound, to_end=to_end)

    def follow(self, ticket: Ticket, *, end_alone: bool = False, stored_alone: bool = False) -> MessageFollower:
        return self.watching.follow(ticket, end_alone=end_alone, stored_alone=stored_alone)

    def follow_session(self, key: SessionKey) -> WholeSessionFollower:
        return self.watching.follow_session(key)

    async def earlier(self, key: SessionKey, turn: str) -> tuple[TurnSight, ...]:
        return await self.watching.earlier(key, turn)

    async def stop(self, key: SessionKey) -> StopOutcome:
        return await self.stopping.stop(key)

    async def stop_message(self, ticket: Ticket) -> StopOutcome:
        return await self.stopping.stop_message(ticket)

    def client_left(self, ticket: Ticket, grace_seconds: float) -> None:
        self._gone.left(ticket, grace_seconds)

    async def approve(
        self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting = Lasting.ONCE
    ) -> str:
        return await self.stopping.approve_for_asker(key, turn, call, verdict, by, lasts)

    async def answer(self, key: SessionKey, turn: str, call: str, words: str, by: str) -> str | None:
        return await self.stopping.answer(key, turn, call, words, by)

    async def response(self, session: str, inbox_id: int) -> KeptResponse | None:
        return await self._responses.find(session, inbox_id)

    async def request(self, session: str, inbox_id: int) -> KeptResponse | None:
        return await self._responses.request(session, inbox_id)

    async def unanswered(self, prefix: str) -> Sequence[str]:
        return await self._responses.unanswered(prefix, self._clock.now_ms())

    async def told_after(self, kept: KeptResponse) -> tuple[Message, ...] | None:
        return await self._responses.told_after(kept)

    async def delete_response(self, kept: KeptResponse) -> None:
        await self._responses.delete(kept)

    async def why(self, turn: str, caller: Caller, browser: str) -> tuple[str, ...]:
        from gateway.explain.telling import told_to  # few ask for it

        return await told_to(caller, browser, self._store, turn, self._clock.now_ms)
