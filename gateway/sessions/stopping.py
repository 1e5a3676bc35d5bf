"""What people want of a message that was taken: stop its turn, take it out of the queue, answer what it asks. What came of it is said truthfully."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

from adapters.contract.base import SessionKey, StopOutcome, Ticket
from agent_core.bell import Bell
from agent_core.driver.driver import TurnDriver
from agent_core.driver.watcher import Watcher
from agent_core.failures.exits import ExitCode
from agent_core.failures.notices import NotStarted
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting, kind_of
from agent_core.store.keeping.forgetting import DROPPING
from agent_core.store.store import Conflict, Store
from agent_core.text.tongue import speak, speaking
from agent_core.turn.events import ApprovalAnswered, StopRequested, Verdict
from agent_core.turn.state import ActivityState
from agent_core.turn.view import LEFT_WORDS
from gateway.delivery.chatside import ChatSide, dropping
from gateway.delivery.owners import Owner
from gateway.queues.inbox import BY_CLIENT, BY_PERSON
from gateway.queues.queue import SessionQueue, Waiting
from gateway.queues.queues import Queues
from gateway.sessions.consents import ADMINS, ANYONE, ASKER, ConsentBook, only_words, shared_asker
from gateway.sessions.runner import Runner
from gateway.sharing.portion import Far, Portion

STOP_SECONDS = 15.0
"""How long a stop may take until it is answered."""
TAKEN_UP_SECONDS = 10.0
"""How long somebody waits until what an earlier process left in a conversation is taken up: then it is known what runs there."""


async def stop_turn(driver: TurnDriver, now_ms: int, *, forgotten: bool = False) -> StopOutcome:
    """Ask a turn to stop, and wait for its end; it may have ended by itself meanwhile, or not have ended yet."""
    driver.tell(StopRequested(at=now_ms, forgotten=forgotten))
    with Watcher(driver.seen) as watcher:
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while not driver.over:
                    await watcher.next(STOP_SECONDS)
        except TimeoutError:
            return StopOutcome(stopped=False, words=speak("The stop was taken, but the turn has not ended yet."))
    ending = driver.turn.exit
    # A process that ends has left it to the next, or another has it
    if ending is None or (driver.overtaken and not driver.closed):
        return StopOutcome(stopped=False, words=speak(LEFT_WORDS))
    notice = ending.notice()
    return StopOutcome(
        stopped=ending.code is ExitCode.STOPPED,
        words=notice.text if notice is not None else speak("It had just been answered."),
    )


@dataclass(frozen=True, slots=True)
class TurnStopping:
    """Stops what runs, and withdraws what waits."""

    store: Store
    queues: Queues
    runner: Runner
    chats: ChatSide
    clock: Clock
    consents: ConsentBook
    portion: Portion
    approvers: tuple[str, ...] = (ASKER, ADMINS)
    """Who may decide about calls, as the configuration says."""

    @property
    def askers_decide(self) -> bool:
        """Whoever asked may decide."""
        return bool({ASKER, ANYONE} & set(self.approvers))

    async def taken_up(self, key: str) -> None:
        """Return when all that an earlier process left in a conversation of ours is in its queue, or when that takes too long."""
        queue = self.queues.known(key)
        if queue is None or not queue.blocked:
            return
        bell, loop = Bell(), asyncio.get_running_loop()
        until = loop.time() + TAKEN_UP_SECONDS
        queue.watchers.append(bell)
        try:
            while queue.blocked and (left := until - loop.time()) > 0:
                await bell.wait(left)
        finally:
            queue.watchers.remove(bell)
            bell.close()
            self.queues.release(queue)

    async def stop(self, key: SessionKey) -> StopOutcome:
        """See `adapters.contract.base.Gateway.stop`."""
        if (far := self._far(key.text())) is not None:
            return await far.stop(key.text())
        await self.taken_up(key.text())
        queue = self.queues.known(key.text())
        if queue is None or (queue.running is None and not queue.waiting):
            return StopOutcome(stopped=False, words=speak("Nothing is running here."))
        if queue.running is None:
            return await self.stop_message(queue.ticket_of(queue.waiting[0]))
        self.runner.slots.hurry(queue)
        return await stop_turn(queue.running.driver, self.clock.now_ms())

    async def stop_message(self, ticket: Ticket) -> StopOutcome:
        """See `adapters.contract.base.Gateway.stop_message`."""
        queue = self.queues.of(ticket.session)
        if queue is None and (key := await self._far_key(ticket)) and (far := self._far(key)) is not None:
            return await far.stop_message(key, ticket)
        if queue is not None:
            await self.taken_up(queue.key)
            queue = self.queues.of(ticket.session)
        if queue is None:
            return StopOutcome(stopped=False, words=speak("Nothing is running for this message."))
        running = queue.running
        if running is not None and any(message.inbox_id == ticket.inbox_id for message in running.messages):
            self.runner.slots.hurry(queue)
            return await stop_turn(running.driver, self.clock.now_ms())
        if (message := self.runner.take_out(queue, ticket.inbox_id)) is None:
            return StopOutcome(stopped=False, words=speak("Nothing is running for this message."))
        begun = not await self._drop(message, BY_CLIENT)
        words = (
            speak("Its turn had just begun, and is stopped.")
            if begun
            else speak("The message was taken out of the queue.")
        )
        return StopOutcome(stopped=True, words=words)

    def _far(self, key: str) -> Far | None:
        """Who passes on what is wanted of a conversation that another gateway runs; None: it is run here."""
        return None if self.portion.mine(key) else self.portion.far

    async def _far_key(self, ticket: Ticket) -> str:
        """The key of a message's conversation, if it may be run elsewhere."""
        row = None if self.portion.whole else await self.store.sessions.one(ticket.session)
        return row.key if row is not None else ""

    async def _drop(self, message: Waiting, why: str) -> bool:
        """What was taken out of its queue is not run, and nothing says any more that it waits. False if its turn had just begun."""
        dropped = False
        with suppress(Conflict):
            await self.store.inbox.drop(message.inbox_id, why)
            dropped = True
        self.chats.begun(message.inbound, message.inbox_id)
        return dropped

    async def forget(self, queue: SessionQueue, message: Waiting) -> None:
        """Its person is being forgotten: it is not answered, or its turn is stopped; and they are told why."""
        running = queue.running
        if running is not None and message in running.messages:
            self.runner.slots.hurry(queue)
            await stop_turn(running.driver, self.clock.now_ms(), forgotten=True)
        elif self.runner.take_out(queue, message.inbox_id):
            queue.forgotten |= {message.inbox_id}  # if its turn is just being opened, that is stopped
            owner = Owner(queue.session, queue.epoch)
            drop = dropping(self.store, message.inbox_id, DROPPING, owner)
            with suppress(Conflict):
                await self.chats.not_run(message.inbound, message.inbox_id, owner, NotStarted.FORGOTTEN, drop)

    async def withdraw(self, ticket: Ticket) -> bool:
        """Take a waiting message out of its queue. False if its turn has begun."""
        queue = self.queues.of(ticket.session)
        if queue is None and (key := await self._far_key(ticket)) and (far := self._far(key)) is not None:
            return await far.withdraw(key, ticket)
        message = self.runner.take_out(queue, ticket.inbox_id) if queue is not None else None
        if message is not None:
            await self._drop(message, BY_PERSON)
        return message is not None

    async def approve(
        self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting = Lasting.ONCE
    ) -> bool:
        """See `adapters.contract.base.Gateway.approve`."""
        if (far := self._far(key.text())) is not None:
            return await far.approve(key.text(), turn, call, verdict, by, lasts)
        await self.taken_up(key.text())
        running = self.queues.turn_in(key.text(), turn) if turn else None
        if running is None:
            return False
        activity = running.driver.turn.round.activity(call)
        if activity is None or activity.state is not ActivityState.APPROVAL:
            return False
        given = verdict is Verdict.GIVEN and lasts in activity.offers
        lasts = lasts if given else Lasting.ONCE
        first = running.messages[0].inbound if running.messages else None
        kind = kind_of(activity.name, activity.arguments) if lasts is Lasting.ALWAYS else None
        if kind is not None and first is not None:  # kept first: it is their word, whatever becomes of this call
            await self.consents.keep(first, replace(kind, asker=shared_asker(first)), by, turn)
            if activity.state is not ActivityState.APPROVAL:
                return False  # somebody else has decided while that was stored
        answered = ApprovalAnswered(at=self.clock.now_ms(), call=call, verdict=verdict, by=by, lasts=lasts)
        return running.driver.tell(answered)

    async def approve_for_asker(
        self, key: SessionKey, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting
    ) -> str:
        """The same of whoever asked, where that is all that is known of who decides. Why it does not count, in words; empty: it does."""
        running = self.queues.turn_in(key.text(), turn)
        with speaking(running.driver.turn.language if running is not None else ""):
            if not self.askers_decide:
                return only_words(self.approvers)
            if await self.approve(key, turn, call, verdict, by, lasts):
                return ""
            asked = running.driver.turn.round.activity(call) if running is not None else None
            if asked is not None and asked.decided is not None:
                return speak("That was decided already.")
            return speak("That is over; nothing waits for a decision any more.")

    async def answer(self, key: SessionKey, turn: str, call: str, words: str, by: str) -> str | None:
        """See `adapters.contract.base.Gateway.answer`."""
        if (far := self._far(key.text())) is not None:
            return await far.answer(key.text(), turn, call, words, by)
        await self.taken_up(key.text())
        running = self.queues.turn_in(key.text(), turn)
        return await running.driver.answer(call, words, by) if running is not None else None
