"""The hub: what the gateway offers to its adapters (`adapters.contract.base.Gateway`), put together from store, core and queues.

Nothing is acknowledged before it is stored: `accept` returns after the commit. The hub owns every queue's task; when it is
closed, all of them are over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import structlog

from adapters.contract.base import About, Ended, Inbound, SessionKey, StopOutcome, Ticket
from adapters.contract.chat import ChatOrigin
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.bell import Bell
from agent_core.driver.closing import Closer, TurnIdentity
from agent_core.driver.driver import TurnDriver, World
from agent_core.driver.modelcalls import ModelCaller, own_tools
from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Endpoint
from agent_core.ports import Clock, Ids
from agent_core.signals import LawBroken, Tell, nobody
from agent_core.store.inbox.rows import Accepted, InboxState, NewMessage
from agent_core.store.keeping.forgetting import DROPPED, DROPPING
from agent_core.store.store import Conflict, Damaged, NoRoomToday, StorageUnavailable, Store
from agent_core.tools.base import UNLIMITED, ToolContext
from agent_core.tools.registry import ToolRegistry
from agent_core.turn.events import (
    ApprovalAnswered,
    Steered,
    Superseded,
    Verdict,
)
from gateway.config.types import SessionPolicy
from gateway.delivery.owners import Restoring
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.limits.budgets import Budgets
from gateway.limits.places import Places
from gateway.limits.quotas import Quotas
from gateway.observe.loglines import log_accepted, log_started
from gateway.operate.explain import why
from gateway.recovery.draining import Draining
from gateway.recovery.keeping import Keeping, SettingAside
from gateway.recovery.watchdog import Watchdog
from gateway.retention import upkeep
from gateway.retention.forgetting import Forgetting, Quiet
from gateway.sessions import inbox
from gateway.sessions.chain import ModelChain
from gateway.sessions.followers import MessageFollower, WholeSessionFollower
from gateway.sessions.learning import Learning
from gateway.sessions.opening import HubSettings, brought, opened_event, system_prompt_of
from gateway.sessions.prefs import Prefs
from gateway.sessions.queue import Running, SessionQueue, Waiting
from gateway.sessions.recall import Recall
from gateway.sessions.recents import load_recent, stored_end
from gateway.sessions.stopping import BY_CLIENT, BY_PERSON, NOT_OPENED, stop_turn
from gateway.sessions.whose import Offers, Rooms, author_of, memory_of, workspace_of
from gateway.storage.storewatch import not_stored

log = structlog.get_logger("gateway")

NORMAL_LANE = "normal"
COMMAND_LANE = "command"
"""Commands wait for no turn."""
Outlets = Callable[[ChatOrigin, str, str, int], TurnOutlet | None]
"""(origin, turn, session, epoch)"""
Attacher = Callable[[Inbound, Path], Awaitable[Inbound]]
"""Fetches what came with a message into a workspace, and puts it into the message."""

KEEPERS = ("upkeep", "forgetting", "watchdog", "keeper")
"""Tasks of the hub that run as long as it does."""

Say: TypeAlias = Callable[[Inbound, int, str, int], Awaitable[None]]
"""Told of a message that will not be run: (message, its number, session, epoch)."""


class Hub:
    """Implements `adapters.contract.base.Gateway`. Use it as an async context manager."""

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
    ) -> None:
        self._settings = settings
        self.tell = tell
        self._store = store
        self._client = client
        self.chain = ModelChain(client, endpoints, clock)
        self._tools = tools
        self._clock = clock
        self._ids = ids
        self._queues: dict[str, SessionQueue] = {}
        """By session key."""
        self._by_session: dict[str, SessionQueue] = {}
        self._recall = Recall(store, settings.history_turns)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group = asyncio.TaskGroup()
        self.learning = Learning(settings.incidents, self.chain.asked, store, clock, ids)
        self.closer = Closer(store, tell, self.learning.troubled)
        watch = (settings.watch_look_seconds, settings.watch_grace_seconds)
        self._watchdog = Watchdog(self.running, self.closer, clock, ids, *watch)
        quiet = Quiet(self._queues.values, self.forget_message, self._recall.forget)
        self.forgetting = Forgetting(store, clock, ids, settings.workspaces, settings.spool, quiet)
        self._closing = False
        self.places = Places(settings.bounds, self._queues.values, self._begin, clock, tell)
        self._offers = Offers(own_tools(tools.names, tools.openai_tools()))
        self._rooms = Rooms(settings.workspaces, store)
        places = upkeep.Places(settings.workspaces, settings.spool)
        self.upkeep = upkeep.Upkeep(
            store, clock, settings.keep, places, settings.history_turns, self._folders, self._rooms.sweep
        )
        self.laws_broken = 0
        """How often a turn was found to break a law of the machine: a bug, each time."""
        self.outlets: Outlets | None = None
        """Where turns that answer chat messages are shown."""
        self.restore: Restoring | None = None
        """Takes up what is shown of these open turns, before they go on."""
        self.keeper: Keeping | None = None
        """Takes up what earlier processes left."""
        self.leaving = False
        """The drain is over: what is open stays so, and goes on in the next process."""
        self._expecting: dict[Bell, str] = {}
        """Who waits for a session that this process does not have (yet)."""
        self.on_begun: Callable[[Inbound, int], None] | None = None
        """Told of each message whose turn has begun."""
        self.continues: Callable[[str, str], None] | None = None
        """Told a turn and its caller's trace, in every process that works on it."""
        self.on_given_up: Say | None = None
        self.on_set_aside: Say | None = None
        """Working on it has ended the whole process."""
        self.on_forgotten: Say | None = None
        self.no_room: Callable[[], NotAccepted | None] | None = None
        """Why nothing new is taken although it might be stored."""
        self.aside: SettingAside | None = None
        """Sets aside conversations that cannot be read."""
        self.store_message: Callable[[NewMessage], Awaitable[Accepted]] = store.inbox.accept
        self.attachments: Attacher | None = None
        self.budgets: Budgets | None = None
        """What pays for model calls; None if nobody counts."""
        self.quotas: Quotas | None = None
        """What counts all that is kept; None if nobody does."""
        self._world = World(store, tools, clock, ids, self.chain.set_aside, self._broken, self.closer, tell)

    # ------------------------------------------------------------------ beginning and ending

    async def __aenter__(self) -> Hub:
        await self._group.__aenter__()
        await self.learning.__aenter__()
        self._tasks["upkeep"] = self._group.create_task(self.upkeep.run(), name="upkeep")
        self._tasks["forgetting"] = self._group.create_task(self.forgetting.run(), name="forgetting")
        self._tasks["watchdog"] = self._group.create_task(self._watchdog.run(), name="watchdog")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._closing = True
        for task in self._tasks.values():
            task.cancel()
        await self._group.__aexit__(None, None, None)
        await self.learning.__aexit__(None, None, None)

    async def messages_of(self, turn: str) -> tuple[Waiting, ...]:
        """The messages that a turn answered."""
        return tuple((await self._messages_of(turn)).get(turn, ()))

    async def _messages_of(self, *turns: str) -> dict[str, list[Waiting]]:
        found: dict[str, list[Waiting]] = {}
        for row in await self._store.inbox.inputs(*turns):
            message = Waiting(row.id, row.arrival, inbox.decode(row.body), row.received_at)
            found.setdefault(row.turn or "", []).append(message)
        return found

    @property
    def closing(self) -> bool:
        """No turn begins any more."""
        return self._closing

    async def drain(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """Begin no more turns; give the running ones `seconds` to end, then leave them open. `hurry` leaves them at once."""
        self._closing = True
        for queue in self._queues.values():
            queue.held = True
            queue.wake()
        tasks = {task for name, task in self._tasks.items() if name not in KEEPERS and not task.done()}
        await Draining(tasks, self.running, hurry or asyncio.Event()).run(seconds)
        self.leaving = True
        for queue in self._queues.values():
            if queue.running is not None:
                queue.running.driver.abandon()  # it was taken up, and had no place yet
        for bell in [bell for queue in self._queues.values() for bell in queue.watchers] + [*self._expecting]:
            bell.ring()

    def keep(self) -> None:
        """From now on the keeper looks by itself."""
        assert self.keeper is not None
        self._tasks["keeper"] = self._group.create_task(self.keeper.run(), name="keeper")

    def running(self) -> list[Running]:
        """The turns that run in this process; those that were taken up and wait for a place do not yet."""
        return [
            queue.running for queue in self._queues.values() if queue.running is not None and queue.key in self._tasks
        ]

    def _folders(self) -> list[Path]:
        """The workspaces of running turns."""
        return [
            workspace_of(one.messages[0].inbound, self._settings.workspaces) for one in self.running() if one.messages
        ]

    # ------------------------------------------------------------------ models

    def about(self) -> About:
        return About(self._settings.version, self.chain.names, self._settings.rehearsal)

    async def learn_model_names(self) -> None:
        """See `adapters.contract.base.Gateway.learn_model_names`."""
        await self.chain.learn_names()

    def _broken(self) -> None:
        self.laws_broken += 1
        self.tell(LawBroken())

    # ------------------------------------------------------------------ accepting

    async def accept(
        self, inbound: Inbound, *, cursor: tuple[str, str] | None = None, busy: SessionPolicy | None = None
    ) -> Ticket:
        """See `adapters.contract.base.Gateway.accept`. `cursor` is stored with it; `busy` says what it does to a running turn."""
        if self._closing:
            raise NotAccepted("The gateway is shutting down. Send it again in a minute.", NotAcceptedCode.SHUTTING_DOWN)
        if self.no_room is not None and (refusal := self.no_room()) is not None:
            raise refusal
        if inbound.model and inbound.model not in self.about().models:
            known = ", ".join(self.about().models)
            words = f"There is no model called {inbound.model!r} here. There is: {known}."
            raise NotAccepted(words, NotAcceptedCode.UNKNOWN_MODEL)
        if self.budgets is not None:
            await self.budgets.admit(inbound)
        await self._check_room(inbound)
        now = self._clock.now_ms()
        charges = await self.quotas.admit(inbound, now) if self.quotas is not None else ()
        message = replace(self.new_message(inbound, NORMAL_LANE, now, cursor), charges=charges)
        # In a task of the hub's own: whoever asked may leave, and a message that is stored must be run all the same.
        self.places.coming()
        outcome = await asyncio.shield(self._group.create_task(self._try_to_take_in(inbound, message, busy)))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def new_message(
        self, inbound: Inbound, lane: str, now: int, cursor: tuple[str, str] | None, refused: str = ""
    ) -> NewMessage:
        """A message as the store takes it."""
        return NewMessage(
            account=inbound.account,
            platform_key=inbound.platform_key,
            session_key=inbound.session.text(),
            lane=lane,
            body=inbox.encode(inbound),
            received_at=now,
            cursor=cursor,
            new_session_id=self._ids.new("s"),
            refused=refused,
            person=author_of(inbound),
        )

    async def _try_to_take_in(
        self, inbound: Inbound, message: NewMessage, busy: SessionPolicy | None
    ) -> Ticket | Exception:
        """What went wrong is the caller's to hear; raised here, it would end the hub and everybody's turns."""
        try:
            return await self._take_in(inbound, message, busy)
        except Exception as error:  # noqa: BLE001
            return error
        finally:
            self.places.came()

    async def _take_in(self, inbound: Inbound, message: NewMessage, busy: SessionPolicy | None) -> Ticket:
        """Store the message and queue it. One at a time in a session, so that the queue has the order of arrival."""
        queue = self._queue_of(message.session_key)
        async with queue.accepting:
            try:
                accepted = await self.store_message(message)
            except StorageUnavailable as error:
                raise not_stored(error) from error
            except NoRoomToday as error:
                assert self.quotas is not None
                raise self.quotas.refusal(inbound, error, message.received_at) from error
            if self.quotas is not None:
                self.quotas.taken(inbound)
            log_accepted(message, accepted, self.tell)
            ticket = Ticket(accepted.inbox_id, accepted.session, accepted.duplicate)
            if accepted.duplicate:
                await self._check_same(inbound)
                if self.keeper is not None:
                    self.keeper.holds(accepted.session)  # somebody waits for it, so it is taken up next
            # A repeated one that is still new may be known to nobody: the answer to its first offer was lost on the way.
            if accepted.state is InboxState.NEW:
                key = await self._key_of(accepted.session) if accepted.duplicate else message.session_key
                before = 0 if accepted.duplicate else accepted.inbox_id
                queue = await self._own(key, accepted.session, accepted.epoch, before)
                taken_care = accepted.duplicate and await self._taken_care_of(queue, accepted.inbox_id)
                if not taken_care and not queue.knows(accepted.inbox_id):
                    policy = busy or await self.policy_of(queue)
                    came = self._clock.monotonic()
                    self._put(
                        queue, Waiting(accepted.inbox_id, accepted.arrival, inbound, message.received_at, came), policy
                    )
        self.release(queue)
        return ticket

    async def _taken_care_of(self, queue: SessionQueue, inbox_id: int) -> bool:
        """A repeated message is the keeper's to take up, or was set aside while it was being looked at."""
        row = await self._store.inbox.one(inbox_id)
        return queue.blocked or row is None or row.state is not InboxState.NEW

    async def _key_of(self, session: str) -> str:
        """The key under which a session is stored: a redelivery may come when other things go on in its chat."""
        found = await self._store.sessions.one(session)
        assert found is not None
        return found.key

    def _put(self, queue: SessionQueue, message: Waiting, policy: SessionPolicy) -> None:
        """Queue a new message, or put it into the running turn, or let it end that."""
        running = queue.running
        steers = policy is SessionPolicy.STEER and message.inbound.own_history is None and not queue.waiting
        if running is not None and steers and running.same_chat(message.inbound):
            heard = [
                running.driver.tell(Steered(at=message.received_at, input=words, inbox=message.inbox_id))
                for words in message.inbound.input
            ]
            if all(heard):
                queue.steers.append(message)
                return
        self._enqueue(queue, message)
        if running is not None and policy is SessionPolicy.INTERRUPT:
            running.driver.tell(Superseded(at=message.received_at))

    async def prefs_of(self, queue: SessionQueue) -> Prefs:
        """What the conversation has set for itself."""
        if not queue.prefs_loaded and queue.session:
            found = await self._store.sessions.one(queue.session)
            queue.prefs = Prefs.decode(found.policy if found is not None else None)
            queue.prefs_loaded = True
        return queue.prefs

    async def policy_of(self, queue: SessionQueue) -> SessionPolicy:
        """What a new message does to the queue's running turn."""
        if queue.running is None:
            return self._settings.policy
        return (await self.prefs_of(queue)).policy or self._settings.policy

    async def owned_queue(self, key: str, session: str, epoch: int = 0) -> SessionQueue:
        """The queue of a session that exists, owned by this process."""
        return await self._own(key, session, epoch)

    def forget_memory(self, key: str) -> None:
        """What is put before the model has changed in the store: read it anew for the next turn."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.memory_loaded = False

    def move_queues(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """A chat has another id: its sessions go on under new keys, as the store has them already."""
        for queue in list(self._queues.values()):
            parts = queue.key.split("/")
            if parts[:3] == [platform, account, old_chat]:
                task = self._tasks.pop(queue.key, None)
                del self._queues[queue.key]
                queue.key = "/".join([platform, account, new_chat, *parts[3:]])
                self._queues[queue.key] = queue
                if task is not None:
                    self._tasks[queue.key] = task

    def known_queue(self, key: str) -> SessionQueue | None:
        """The queue of a session that is busy or watched just now."""
        return self._queues.get(key)

    async def _check_room(self, inbound: Inbound) -> None:
        """Raises `NotAccepted` if too much waits, in the conversation or in all. What was taken before is not turned away."""
        refusal = self.places.refusal(self._queues.get(inbound.session.text()), self._settings.queue_limit)
        if refusal is None or await self._store.inbox.by_key(inbound.account, inbound.platform_key) is not None:
            return
        if refusal.code is NotAcceptedCode.GATEWAY_FULL:
            self.places.turn_away(inbound.account)
        raise refusal

    async def _check_same(self, inbound: Inbound) -> None:
        """A redelivery says the same as before; anything else under the same key is a mistake of the sender."""
        row = await self._store.inbox.by_key(inbound.account, inbound.platform_key)
        if row is not None and inbox.decode(row.body).digest != inbound.digest:
            words = "This request id was used before with other content. Use a new id for a new request."
            raise NotAccepted(words, NotAcceptedCode.OTHER_CONTENT)

    def _queue_of(self, key: str) -> SessionQueue:
        """The queue of a session key; the session itself may not exist yet."""
        if key not in self._queues:
            queue = SessionQueue(
                key,
                self._open_turn,
                self._clock.monotonic,
                self.places.begun,
                tell=self.tell,
                refused=self.learning.refused,
            )
            queue.on_damage = self._damaged
            self._queues[key] = queue
        return self._queues[key]

    async def _own(self, key: str, session: str, epoch: int = 0, before: int = 0) -> SessionQueue:
        """The queue of a session that exists; owned by this process from here on, by `epoch` if it is so already.

        `before` is a message that has just been stored, and waits for nothing but those before it.
        """
        queue = self._queue_of(key)
        if not queue.epoch:
            blocked = self.keeper is not None and (
                self.keeper.holds(session) if epoch else await self.keeper.find(session, before)
            )
            epoch = epoch or await self._store.sessions.claim(session)
            if queue.epoch:
                return queue  # it came to be ours meanwhile
            queue.session, queue.epoch, queue.blocked = session, epoch, queue.blocked or blocked
            self._by_session[session] = queue
            self._queues[key] = queue  # it may have been forgotten as idle meanwhile
            for bell in [bell for bell, expected in self._expecting.items() if expected == session]:
                bell.ring()
        return queue

    async def _damaged(self, queue: SessionQueue, error: Damaged) -> None:
        if self.aside is not None:
            await self.aside.put(queue.session, error)

    def point(self, queue: SessionQueue, session: str, epoch: int) -> None:
        """From now on the queue is another session's."""
        self._by_session.pop(queue.session, None)
        queue.begin_anew(session, epoch)
        self._by_session[session] = queue
        self.release(queue)

    def _enqueue(self, queue: SessionQueue, message: Waiting) -> None:
        queue.waiting.append(message)
        if not queue.blocked:
            self.start(queue)
        queue.wake()

    def _begin(self, queue: SessionQueue) -> None:
        """The queue has a place: run one turn of it."""
        if not self._closing:
            self._tasks[queue.key] = self._group.create_task(self._run_queue(queue), name=f"queue {queue.key}")

    def start(self, queue: SessionQueue) -> None:
        """The queue has something to run; it begins when it has a place."""
        self.places.ask(queue)

    def unblock(self, queue: SessionQueue) -> None:
        """What an earlier process left in the session was taken up: its queue goes on."""
        queue.blocked = False
        queue.wake()
        if queue.waiting or queue.running is not None:
            self.start(queue)
        self.release(queue)

    async def settled(self, queue: SessionQueue) -> None:
        """Return when the queue's task is over; of one that is blocked it is so soon."""
        task = self._tasks.get(queue.key)
        if task is not None:
            await asyncio.wait({task})

    def blocked(self) -> list[SessionQueue]:
        """The queues whose queue waits for what an earlier process left."""
        return [queue for queue in self._queues.values() if queue.blocked]

    async def _run_queue(self, queue: SessionQueue) -> None:
        try:
            await queue.run()
            await self._rooms.left(queue.key)
        except Exception:
            log.exception("lane.failed", session=queue.session)
        finally:
            self._tasks.pop(queue.key, None)
            self.places.leave(queue)
            if queue.waiting and not self._closing and not queue.blocked:
                self.start(queue)
            queue.wake()
            self.release(queue)

    async def _give_up(self, queue: SessionQueue, messages: Sequence[Waiting]) -> None:
        """Messages whose turn cannot be opened must not stop the ones behind them, nor vanish without a word."""
        for message in messages:
            if message in queue.waiting:
                queue.waiting.remove(message)
            with suppress(Conflict):  # it was dropped before: that is why no turn could be opened for it
                await self._store.inbox.drop(message.inbox_id, NOT_OPENED)
                if self.on_given_up is not None:
                    await self.on_given_up(message.inbound, message.inbox_id, queue.session, queue.epoch)
        queue.wake()

    # ------------------------------------------------------------------ turns

    async def _open_turn(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver | None:
        """A driver whose turn is open in the store. None if that is not possible, and the message has been given up."""
        try:
            return await self._try_to_open(queue, messages)
        except StorageUnavailable as error:
            if isinstance(error, Damaged) and self.aside is not None and await self.aside.put(queue.session, error):
                return None
            raise
        except Exception as error:
            if isinstance(error, Conflict) and await self._store.left.turns(queue.session):
                queue.blocked = True  # what an earlier process left open comes first, then this is tried again
                if self.keeper is not None:
                    await self.keeper.find(queue.session)
                return None
            if isinstance(error, Conflict) and await self._dropped_meanwhile(queue, messages):
                return None
            withdrawn = [message for message in messages if message not in queue.waiting]
            if not withdrawn:
                log.exception("turn.not_opened", session=queue.session, error=type(error).__name__)
            await self._give_up(queue, withdrawn or messages)
            return None

    async def _dropped_meanwhile(self, queue: SessionQueue, messages: Sequence[Waiting]) -> bool:
        """Whether some were dropped on purpose while their turn was being opened; those wait no more, and the others go on waiting."""
        found = [(message, await self._store.inbox.one(message.inbox_id)) for message in messages]
        gone = [(message, row.reason) for message, row in found if row is not None and row.state is InboxState.DROPPED]
        for message, reason in gone:
            if message not in queue.waiting:
                continue  # whoever withdrew it has said so
            queue.waiting.remove(message)
            if reason in (DROPPED, DROPPING) and self.on_forgotten is not None:
                await self.on_forgotten(message.inbound, message.inbox_id, queue.session, queue.epoch)
        queue.wake()
        return bool(gone)

    async def _try_to_open(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver:
        first = messages[0].inbound
        if self.keeper is not None:
            await self.keeper.opening(queue.session)
        if first.own_history is None:
            await self.load_memory(queue)
        turn = self._ids.new("t")
        driver = self.driver(turn, queue.session, queue.epoch, messages, queue)
        routes = await self.chain.routes(first.model or (await self.prefs_of(queue)).model)
        inbounds = [await self._with_attachments(message.inbound) for message in messages]
        known = await self.learning.known(first, queue.session)
        now, seed = self._clock.now_ms(), self._ids.seed()
        left_out = queue.memory.left_out if first.own_history is None else self.learning.refused.of(brought(inbounds))
        opened = opened_event(inbounds, self._settings, routes, known, at=now, seed=seed, left_out=left_out)
        await driver.begin(opened)
        if isinstance(driver.outlet, TurnOutlet):
            driver.outlet.attach(driver)
        if self.on_begun is not None:
            for message in messages:
                self.on_begun(message.inbound, message.inbox_id)
        log_started(driver, messages, routes[0].model, routes[0].endpoint, self.tell)
        return driver

    async def _with_attachments(self, inbound: Inbound) -> Inbound:
        """The message with what came with it, fetched into its workspace."""
        if self.attachments is None or inbound.chat is None or not inbound.chat.attachments:
            return inbound
        return await self.attachments(inbound, workspace_of(inbound, self._settings.workspaces))

    def driver(
        self, turn: str, session: str, epoch: int, messages: tuple[Waiting, ...], queue: SessionQueue
    ) -> TurnDriver:
        first = messages[0].inbound
        workspace = workspace_of(first, self._settings.workspaces)
        upkeep.used(workspace)
        date = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC).date().isoformat()
        if first.trace and self.continues is not None:
            self.continues(turn, first.trace)
        identity = TurnIdentity(turn, session, epoch, first.surface, tuple(m.inbox_id for m in messages))
        caller = ModelCaller(
            client=self._client,
            clock=self._clock,
            system_prompt=system_prompt_of(self._settings, date),
            memory=queue.memory,
            offer=self._offers.to(first),
            connect_seconds=self._settings.connect_seconds,
            spending=self.budgets.spending(first, identity) if self.budgets is not None else None,
            turn=turn,
            session=session,
            tell=self.tell,
        )

        def context(call: str, heartbeat: Callable[[str], None]) -> ToolContext:
            return ToolContext(
                turn=turn,
                call=call,
                key=f"{turn}:{call}",
                workspace=workspace,
                memory_scope=memory_of(first),
                clock=self._clock,
                heartbeat=heartbeat,
                space=UNLIMITED if self.quotas is None else self.quotas.space(first, workspace),
            )

        outlet = None
        if self.outlets is not None and first.chat is not None:
            outlet = self.outlets(first.chat, turn, session, epoch)
        return TurnDriver(self._world, identity, caller, context, outlet)

    async def load_memory(self, queue: SessionQueue) -> None:
        """The session's earlier turns, once a queue."""
        if not queue.memory_loaded:
            queue.memory = await self._recall.memory(queue.session)
            queue.memory_loaded = True

    # ------------------------------------------------------------------ watching

    def queue(self, session: str) -> SessionQueue | None:
        return self._by_session.get(session)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def place(self, queue: SessionQueue) -> int | None:
        return self.places.place(queue)

    def expect(self, session: str, bell: Bell) -> None:
        """Ring the bell when this process comes to have the session, or will not any more."""
        self._expecting[bell] = session

    def expect_no_more(self, bell: Bell) -> None:
        self._expecting.pop(bell, None)

    def follow(self, ticket: Ticket) -> MessageFollower:
        return MessageFollower(self, ticket)

    def follow_session(self, key: SessionKey) -> WholeSessionFollower:
        return WholeSessionFollower(self, self._queue_of(key.text()))

    def release(self, queue: SessionQueue) -> None:
        """Forget a queue that has nothing to do and nobody watching."""
        if queue.idle and queue.key not in self._tasks and self._queues.get(queue.key) is queue:
            del self._queues[queue.key]
            self._by_session.pop(queue.session, None)

    async def stored_end(self, inbox_id: int) -> Ended | None:
        """How a message ended, from the journal; None if it has not."""
        return await stored_end(self._store, inbox_id)

    async def recent(self, queue: SessionQueue) -> None:
        """Load the session's latest closed turns into the queue, once."""
        if queue.recent_loaded:
            return
        queue.recent_loaded = True
        if not queue.session:
            known = await self._store.sessions.by_key(queue.key)
            if known is None:
                return
            queue.session = known.session
        await load_recent(self._store, queue, self._messages_of)

    # ------------------------------------------------------------------ what people want

    async def stop(self, key: SessionKey) -> StopOutcome:
        """See `adapters.contract.base.Gateway.stop`."""
        queue = self._queues.get(key.text())
        if queue is None or (queue.running is None and not queue.waiting):
            return StopOutcome(stopped=False, words="Nothing is running here.")
        if queue.running is None:
            return await self.stop_message(queue.ticket_of(queue.waiting[0]))
        self.places.hurry(queue)
        return await stop_turn(queue.running.driver, self._clock.now_ms())

    async def stop_message(self, ticket: Ticket) -> StopOutcome:
        """See `adapters.contract.base.Gateway.stop_message`."""
        queue = self._by_session.get(ticket.session)
        if queue is None:
            return StopOutcome(stopped=False, words="Nothing is running for this message.")
        running = queue.running
        if running is not None and any(message.inbox_id == ticket.inbox_id for message in running.messages):
            self.places.hurry(queue)
            return await stop_turn(running.driver, self._clock.now_ms())
        if self._withdrawn(queue, ticket.inbox_id):
            try:
                await self._store.inbox.drop(ticket.inbox_id, BY_CLIENT)
            except Conflict:
                return StopOutcome(stopped=True, words="Its turn had just begun, and is stopped.")
            return StopOutcome(stopped=True, words="The message was taken out of the queue.")
        return StopOutcome(stopped=False, words="Nothing is running for this message.")

    async def forget_message(self, queue: SessionQueue, message: Waiting) -> None:
        """Its person is being forgotten: it is not answered, or its turn is stopped; and they are told why."""
        running = queue.running
        if running is not None and message in running.messages:
            self.places.hurry(queue)
            await stop_turn(running.driver, self._clock.now_ms(), forgotten=True)
        elif self._withdrawn(queue, message.inbox_id):
            queue.forgotten.add(message.inbox_id)  # if its turn is just being opened, that is stopped
            try:
                await self._store.inbox.drop(message.inbox_id, DROPPING)
            except Conflict:
                return
            if self.on_forgotten is not None:
                await self.on_forgotten(message.inbound, message.inbox_id, queue.session, queue.epoch)

    async def withdraw(self, ticket: Ticket) -> bool:
        """Take a waiting message out of its queue. False if its turn has begun."""
        queue = self._by_session.get(ticket.session)
        if queue is None or not self._withdrawn(queue, ticket.inbox_id):
            return False
        with suppress(Conflict):
            await self._store.inbox.drop(ticket.inbox_id, BY_PERSON)
        return True

    def _withdrawn(self, queue: SessionQueue, inbox_id: int) -> bool:
        """Take a waiting message out of its queue, and a queue without any out of the line."""
        found = queue.withdraw(inbox_id)
        if found and queue.running is None and not queue.waiting and queue.key not in self._tasks:
            self.places.leave(queue)
            self.release(queue)
        return found is not None

    async def approve(self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str) -> bool:
        """See `adapters.contract.base.Gateway.approve`."""
        queue = self._queues.get(key.text())
        if queue is None or queue.running is None or queue.running.driver.identity.turn != turn:
            return False
        answered = ApprovalAnswered(at=self._clock.now_ms(), call=call, verdict=verdict, by=by)
        return queue.running.driver.tell(answered)

    async def why(self, turn: str) -> tuple[str, ...]:
        """See `adapters.contract.base.Gateway.why`."""
        return await why(self._store, turn, self._clock.now_ms)
