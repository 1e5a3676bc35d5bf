"""Slots for turns: lets queues begin in the order that `gateway.limits.admission` decides, and counts what waits in all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import structlog

from adapters.contract.base import FromChat, Inbound
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.pacing import worth_saying
from agent_core.failures.notices import NotStarted
from agent_core.ports import Clock
from agent_core.signals import Tell, TurnedAway
from agent_core.text.tongue import sentence, speak
from gateway.limits.admission import Admission, Bounds, SlotClaim
from gateway.queues.queue import SessionQueue

log = structlog.get_logger("gateway")

FULL_WORDS = sentence(
    "Too many people are waiting for an answer just now, so your message was not taken. Send it again in a few minutes."
)
FULL_SECONDS = 60
"""When it may be tried again."""
SOON = 100
"""So many turns begin in about a second."""
RECOUNT_SECONDS = 0.1
"""While it is full it is not counted more often than this."""
COUNT_SECONDS = 1.0
"""Else as often as this: what an earlier process left, and what others have stored for us, comes in by other ways."""


def person_of(inbound: Inbound) -> str:
    """In whose share a message counts; empty if nobody knows. Pure."""
    if isinstance(inbound, FromChat):
        return f"{inbound.account}/{inbound.chat.person.id}"
    return inbound.memory_scope if inbound.memory_scope.startswith("api/") else ""


def full_here(queue: SessionQueue | None, line: int = 0) -> NotAccepted:
    """Why one more message of this queue is not taken. `line`: how many wait for room in it."""
    waiting = line + (len(queue.waiting) if queue is not None else 0)
    return NotAccepted(NotStarted.QUEUE_FULL.said(waiting), NotAcceptedCode.QUEUE_FULL)


class TurnSlots:
    """Who has a slot, and who waits for one."""

    def __init__(
        self,
        bounds: Bounds,
        queues: Iterable[SessionQueue],
        begin: Callable[[SessionQueue], None],
        clock: Clock,
        tell: Tell,
    ) -> None:
        """`begin` starts a queue that has got a slot; the queue `leave`s it at its end."""
        self._admission: Admission[SessionQueue] = Admission(bounds)
        self._queues = queues
        self._begin = begin
        self._clock = clock
        self._tell = tell
        self._at_most = 0
        """Not more messages than this waited when they were counted, and have come here since."""
        self._counted_at = float("-inf")
        self._later: asyncio.TimerHandle | None = None
        """When what was left may go on."""
        self._coming = 0
        """Messages that are being taken in."""
        self.turned_away = 0
        """Messages that were refused because too many waited."""

    # ------------------------------------------------------------------ queues

    def ask(self, queue: SessionQueue) -> None:
        """The queue has something to run."""
        if queue.running is not None:
            messages, taken_up = queue.running.messages, True
        else:
            messages, taken_up = tuple(queue.waiting[:1]), False
        first = messages[0] if messages else None
        person, since = (person_of(first.inbound), first.received_at) if first is not None else ("", 0)
        self._admission.ask(queue, SlotClaim(person, since, taken_up))
        self._give()

    def begun(self, queue: SessionQueue) -> None:
        """Its turn is open, or it waits for something: another may begin meanwhile."""
        self._admission.begun(queue)
        self._give()

    def leave(self, queue: SessionQueue) -> None:
        """It runs no more, or has nothing to run any more."""
        self._admission.leave(queue)
        self._give()

    def at_once(self, queue: SessionQueue, inbound: Inbound, since: int) -> bool:
        """A slot for a message that is only coming, if it would not have to wait for one. The queue `leave`s it, or is run by the caller."""
        return self._admission.at_once(queue, SlotClaim(person_of(inbound), since))

    def hurry(self, queue: SessionQueue) -> None:
        """A turn that was taken up is to be ended: that needs no slot."""
        if self._admission.waits(queue):
            self._admission.leave(queue)
            self._begin(queue)

    def _give(self) -> None:
        while (queue := self._admission.next(now := self._clock.monotonic())) is not None:
            self._begin(queue)
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if seconds := self._admission.held_up_seconds(now):
            self._later = asyncio.get_running_loop().call_later(seconds, self._give)

    def close(self) -> None:
        """Nobody gets a slot for the sake of time alone."""
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def position(self, queue: SessionQueue) -> int | None:
        """The position in the line of everybody, 1 being the first; None if it does not wait there."""
        return self._admission.position(queue)

    def long_wait(self, queue: SessionQueue) -> int:
        """The position in the line, if the wait is worth telling in a chat; 0 if it does not wait, or only for a moment."""
        line = self._admission.position(queue) or 0
        return line if line > SOON or not self._admission.only_beginning else 0

    @property
    def in_line(self) -> int:
        """Conversations that wait for a slot."""
        return self._admission.waiting

    @property
    def open(self) -> int:
        return self._admission.open

    @property
    def bounds(self) -> Bounds:
        return self._admission.bounds

    def oldest_seconds(self) -> float:
        """How long the one who waits longest has waited; 0 if nobody waits."""
        since = self._admission.oldest_since()
        return max(0.0, (self._clock.now_ms() - since) / 1000) if since is not None else 0.0

    # ------------------------------------------------------------------ what waits in all

    @property
    def messages(self) -> int:
        """Messages that wait for their turn."""
        return sum(len(queue.waiting) for queue in self._queues)

    def refusal(self, queue: SessionQueue | None, queue_limit: int) -> NotAccepted | None:
        """Why a message of this queue cannot be taken; None if it can."""
        if queue is not None and len(queue.waiting) >= queue_limit:
            return full_here(queue)
        return NotAccepted(speak(FULL_WORDS), NotAcceptedCode.GATEWAY_FULL, FULL_SECONDS) if self.full() else None

    def full(self) -> bool:
        """Whether no more message can be taken."""
        now, full = self._clock.monotonic(), self._at_most >= self.bounds.waiting
        if now - self._counted_at >= (RECOUNT_SECONDS if full else COUNT_SECONDS):
            self._counted_at = now
            self._at_most = self.messages + self._coming
        return self._at_most >= self.bounds.waiting

    def coming(self) -> None:
        """A message is being taken in."""
        self._coming += 1
        self._at_most += 1

    def came(self) -> None:
        self._coming -= 1

    def turn_away(self, account: str) -> None:
        """A message was refused: counted, and said now and then."""
        self.turned_away += 1
        self._tell(TurnedAway(account=account))
        if worth_saying(self.turned_away):
            log.warning(
                "message.turned_away", account=account, waiting=self._at_most, open=self.open, times=self.turned_away
            )
