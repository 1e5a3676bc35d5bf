"""Takes messages in: checked, stored, and then in their session's queue; only then is whoever brought them told so.

Known to be weak: a message that is offered twice at the same time is told apart by the store alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TypeAlias

from adapters.contract.base import Inbound, Ticket
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.ports import Clock, Ids
from agent_core.records import changed, dataclass
from agent_core.signals import Tell
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState, NewMessage
from agent_core.store.sessions.rows import OwnersChange
from agent_core.store.store import Damaged, LeaseLost, NoRoomToday, OwnedElsewhere, StorageUnavailable, Store
from agent_core.store.turns.rows import OpeningTurn
from agent_core.text.tongue import speak
from agent_core.turn.events import Steered, Superseded
from gateway.config.types import SessionPolicy
from gateway.limits.budgets import BudgetBook
from gateway.limits.quotas import Quotas
from gateway.limits.rates import Doors
from gateway.limits.whose import author_of
from gateway.queues import inbox
from gateway.queues.inbox import NORMAL_LANE
from gateway.queues.loglines import log_accepted
from gateway.queues.prefs import prefs_of
from gateway.queues.queue import SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions.atonce import AtOnce
from gateway.sessions.chain import ModelChain
from gateway.sessions.runner import Runner
from gateway.setaside.setaside import PutAside
from gateway.setaside.unclaimed import Unclaimed
from gateway.sharing.portion import Portion
from gateway.storage.storewatch import not_stored

Changing: TypeAlias = Callable[[], Awaitable[OwnersChange | None]]
"""Says what changes in a session with a message, at the moment at which it is stored."""


def always_room() -> NotAccepted | None:
    """Nobody watches the room that there is."""
    return None


@dataclass(frozen=True, slots=True)
class Accepting:
    """`group` has the tasks in which messages are stored: whoever brought one may leave, and it must be run all the same."""

    store: Store
    queues: Queues
    runner: Runner
    at_once: AtOnce
    chain: ModelChain
    left: Unclaimed
    aside: PutAside
    budgets: BudgetBook | None
    quotas: Quotas | None
    no_room: Callable[[], NotAccepted | None]
    """Why nothing new is taken although it might be stored."""
    queue_limit: int
    policy: SessionPolicy
    doors: Doors
    clock: Clock
    ids: Ids
    tell: Tell
    group: asyncio.TaskGroup
    portion: Portion
    """Which conversations are run here."""
    under_way: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """Commands, by account and key, that are just being stored, and then begun here; with the keys of their conversations."""

    def coming(self, account: str, platform_key: str) -> bool:
        """Whether a message that is stored is begun by whoever has just stored it."""
        return (account, platform_key) in self.under_way

    async def accept(
        self,
        inbound: Inbound,
        *,
        cursor: tuple[str, str] | None = None,
        busy: SessionPolicy | None = None,
        changing: Changing | None = None,
        to_end: bool = False,
        only_new: bool = False,
    ) -> Ticket:
        """See `adapters.contract.base.Gateway.accept`. `cursor` is stored with it, and what `changing` says when no turn of the session can begin; `busy` says what it does to a running turn.
        `only_new`: of one that is stored already nothing more is done; whoever brought it looks what it is."""
        if self.runner.closing:
            raise NotAccepted("The gateway is shutting down. Send it again in a minute.", NotAcceptedCode.SHUTTING_DOWN)
        if (refusal := self.no_room()) is not None:
            raise refusal
        inbound = self.doors.standings.asking(inbound, self.chain.names)
        await self._check_rate(inbound)
        if self.budgets is not None:
            await self.budgets.admit(inbound, self.doors.standings.of(inbound))
        await self._check_room(inbound)
        now = self.clock.now_ms()
        charges = await self.quotas.incoming.admit(inbound, now) if self.quotas is not None else ()
        message = changed(self.new_message(inbound, NORMAL_LANE, now, cursor), charges=charges)
        self.runner.slots.coming()
        storing = self.group.create_task(self._try_to_take_in(inbound, message, busy, changing, only_new=only_new))
        try:
            outcome = await asyncio.shield(storing)
        except asyncio.CancelledError:
            if not to_end:
                raise
            await asyncio.wait({storing})  # who is cancelled again waits for nobody: the server ends
            outcome = storing.result()
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
            new_session_id=self.ids.new("s"),
            refused=refused,
            person=author_of(inbound),
        )

    async def put(self, message: NewMessage, opening: OpeningTurn | None = None) -> Accepted:
        """Store a message, perhaps with the turn that it begins, and tell of it. Raises `StorageUnavailable`."""
        self.aside.check()
        mine = self.portion.mine(message.session_key)
        try:
            accepted = await self.store.inbox.accept(message, opening, claims=mine)
        except Damaged as error:
            if message.claim is not None:  # it may be the schedule's: whoever claims it finds out
                raise
            accepted = await self.aside.accept_anew(message, error)
        log_accepted(message, accepted, self.tell)
        if not mine and accepted.state is InboxState.NEW:
            self.portion.new_in(message.session_key)
        return accepted

    async def owned(self, key: str, session: str, epoch: int = 0, before: int = 0) -> SessionQueue:
        """The queue of a session that exists; owned by this process from here on, by `epoch` if it is so already.

        `before` is a message that has just been stored, and waits for nothing but those before it.
        """
        queue = self.queues.at(key)
        if not queue.epoch:
            blocked = await (self.left.still_holds(session, before) if epoch else self.left.find(session, before))
            epoch = epoch or await self.store.sessions.claim(session)
            if not queue.epoch:  # else it came to be ours meanwhile
                queue.blocked = queue.blocked or blocked
                self.queues.own(queue, session, epoch)
        return queue

    async def owned_stored(self, key: str, accepted: Accepted, before: int = 0) -> SessionQueue | None:
        """As `owned`, of a message that is stored. None: another node has its conversation, this one may have nothing any more, or the storage is away
        by now; it is accepted all the same, and whoever has the conversation next runs it."""
        try:
            return await self.owned(key, accepted.session, accepted.epoch, before)
        except Damaged:
            raise
        except (OwnedElsewhere, LeaseLost, StorageUnavailable):
            return None

    # ------------------------------------------------------------------ storing and queueing

    async def _try_to_take_in(
        self,
        inbound: Inbound,
        message: NewMessage,
        busy: SessionPolicy | None,
        changing: Changing | None,
        *,
        only_new: bool,
    ) -> Ticket | Exception:
        """What went wrong is the caller's to hear; raised here, it would end the hub and everybody's turns."""
        try:
            return await self._take_in(inbound, message, busy, changing, only_new=only_new)
        except Exception as error:  # noqa: BLE001
            return error
        finally:
            self.runner.slots.came()

    async def _take_in(
        self,
        inbound: Inbound,
        message: NewMessage,
        busy: SessionPolicy | None,
        changing: Changing | None,
        *,
        only_new: bool = False,
    ) -> Ticket:
        """Store the message and queue it. One at a time in a session, so that the queue has the order of arrival."""
        first = queue = self.queues.at(message.session_key)
        try:
            async with queue.accepting:
                if changing is not None:
                    message = changed(message, change=await changing())
                accepted = await self._stored(queue, inbound, message)
                if changing is not None:  # before anybody looks
                    self.queues.forget_memory(message.session_key)
                    self.queues.rebranch(message.session_key)
                ticket = Ticket(accepted.inbox_id, accepted.session, accepted.duplicate, accepted.received_at)
                if accepted.duplicate and only_new:
                    return ticket
                if self.quotas is not None:
                    self.quotas.incoming.taken(inbound)
                if accepted.duplicate:
                    await self._check_same(inbound)
                    self.left.holds(accepted.session)  # somebody waits for it, so it is taken up next
                # A repeated one that is still new may be known to nobody: the answer to its first offer was lost on the way.
                mine = accepted.state is InboxState.NEW and self.portion.mine(message.session_key)
                if mine and self._overtakes(queue, accepted):
                    self.portion.stored.ring()  # which brings both, in their order
                elif mine and (there := await self._queue_for(message, accepted)) is not None:
                    queue = there
                    taken_care = accepted.duplicate and await self._taken_care_of(queue, accepted.inbox_id)
                    policy = busy or await self._policy_of(queue)
                    # Behind the last await: the keeper may put it in
                    if not taken_care and not queue.knows(accepted.inbox_id):
                        came = self.clock.monotonic()
                        waiting = Waiting(accepted.inbox_id, accepted.arrival, inbound, message.received_at, came)
                        self._put(queue, waiting, policy)
            return ticket
        finally:  # also of what is not taken: each of those may have a conversation of its own
            self.queues.release(first)
            self.queues.release(queue)

    def _overtakes(self, queue: SessionQueue, accepted: Accepted) -> bool:
        """Another gateway has stored something for the conversation before, that has not come here yet."""
        return not self.portion.whole and bool(accepted.after) and not queue.knows(accepted.after)

    async def _queue_for(self, message: NewMessage, accepted: Accepted) -> SessionQueue | None:
        """The queue in which it waits; None if it waits elsewhere."""
        if accepted.duplicate:
            return await self.owned_stored(await self._key_of(accepted.session), accepted)
        return await self.owned_stored(message.session_key, accepted, accepted.inbox_id)

    async def _stored(self, queue: SessionQueue, inbound: Inbound, message: NewMessage) -> Accepted:
        """Store the message, with its turn if that can begin at once."""
        mine = self.portion.mine(message.session_key)
        at_once = mine and message.change is None  # else its turn is of what the session is then
        begins = await self.at_once.beginning(queue, inbound, message) if at_once else None
        accepted: Accepted | None = None
        try:
            accepted = await self.put(message, begins.turn.opening if begins is not None else None)
            return accepted
        except StorageUnavailable as error:
            raise not_stored(error) from error
        except NoRoomToday as error:
            assert self.quotas is not None
            raise self.quotas.incoming.refusal(inbound, error, message.received_at) from error
        finally:
            if begins is not None:
                self.at_once.stored(queue, begins, accepted)

    def _put(self, queue: SessionQueue, message: Waiting, policy: SessionPolicy) -> None:
        """Queue a new message, or put it into the running turn, or let it end that."""
        running = queue.running
        steers = policy is SessionPolicy.STEER and not queue.waiting
        if running is not None and steers and running.takes(message.inbound):
            heard = [
                running.driver.tell(Steered(at=message.received_at, input=words, inbox=message.inbox_id))
                for words in message.inbound.input
            ]
            if all(heard):
                queue.steers.append(message)
                return
        self.runner.add(queue, message)
        if running is not None and policy is SessionPolicy.INTERRUPT:
            running.driver.tell(Superseded(at=message.received_at))

    async def collect(self, row: InboxRow, inbound: Inbound, key: str, is_next: Callable[[], bool]) -> bool:
        """Queue a message that another gateway has stored, unless it is known by now. Whether it was queued.

        While it `is_next`, and the session is ours as far as is known, nothing is asked: what has changed elsewhere is found when its turn is opened,
        as that of any message that has waited.
        """
        queue = self.queues.at(key)
        try:
            async with queue.accepting:
                new = is_next() and self._supposed_ours(queue, row.session)
                if not new:
                    queue = await self.owned(key, row.session, 0, row.id)
                    now = await self.store.inbox.one(row.id)
                    new = now is not None and now.state is InboxState.NEW
                policy = await self._policy_of(queue)
                # Behind the last await: the keeper may put it in
                new = new and not queue.knows(row.id) and not queue.blocked
                if new:
                    waiting = Waiting(row.id, row.arrival, inbound, row.received_at, self.clock.monotonic())
                    self._put(queue, waiting, policy)
            return new
        finally:
            self.queues.release(queue)

    def _supposed_ours(self, queue: SessionQueue, session: str) -> bool:
        """It is, or was when its last turn ended; then it is ours from here on, unless something of it is to be taken up first."""
        past = self.queues.pasts.whose(queue.key) if not queue.epoch else None
        if past is not None and past[0] == session and past[1] and not self.left.holds(session):
            self.queues.own(queue, *past)
        return bool(queue.epoch) and queue.session == session

    async def _policy_of(self, queue: SessionQueue) -> SessionPolicy:
        """What a new message does to the queue's running turn."""
        if queue.running is None:
            return self.policy
        return (await prefs_of(self.store, queue)).policy or self.policy

    async def _taken_care_of(self, queue: SessionQueue, inbox_id: int) -> bool:
        """A repeated message is the keeper's to take up, or was set aside while it was being looked at."""
        row = await self.store.inbox.one(inbox_id)
        return queue.blocked or row is None or row.state is not InboxState.NEW

    async def _key_of(self, session: str) -> str:
        """The key under which a session is stored: a redelivery may come when other things go on in its chat."""
        found = await self.store.sessions.one(session)
        assert found is not None
        return found.key

    async def _check_room(self, inbound: Inbound) -> None:
        """Raises `NotAccepted` if too much waits, in the conversation or in all. What was taken before is not turned away."""
        refusal = self.crowded(inbound.session.text())
        if refusal is None or await self.store.inbox.by_key(inbound.account, inbound.platform_key) is not None:
            return
        if refusal.code is NotAcceptedCode.GATEWAY_FULL:
            self.runner.slots.turn_away(inbound.account)
        raise refusal

    def crowded(self, key: str) -> NotAccepted | None:
        """Why there is no room for one more message of the conversation just now; None if there is."""
        return self.runner.slots.refusal(self.queues.known(key), self.queue_limit)

    async def _check_rate(self, inbound: Inbound) -> None:
        """Raises `NotAccepted` if the key asks too often. What was taken before has its answer."""
        early = self.doors.early(inbound, round(self.clock.monotonic() * 1000))
        if early and await self.store.inbox.by_key(inbound.account, inbound.platform_key) is None:
            seconds = -(-early // 1000)
            words = speak(
                "This key has made as many requests in a minute as it may. Ask again in {seconds} s.", seconds=seconds
            )
            raise NotAccepted(words, NotAcceptedCode.TOO_MANY, seconds)

    async def _check_same(self, inbound: Inbound) -> None:
        """A redelivery says the same as before; anything else under the same key is a mistake of the sender."""
        row = await self.store.inbox.by_key(inbound.account, inbound.platform_key)
        if row is not None and inbox.decode(row.body).digest != inbound.digest:
            words = "This id (the Idempotency-Key, in the API) was used before with other content. Use a new one for something new."
            raise NotAccepted(words, NotAcceptedCode.OTHER_CONTENT)
