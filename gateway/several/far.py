"""What people want of a conversation that another gateway runs: it is stored as a command of it, which its owner carries out and answers.

So it reaches the owner, whoever that is by then. The answer comes as a word from node to node; if that is lost, what was asked is done all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import field
from enum import StrEnum

import orjson
import structlog

from adapters.contract.base import FromApi, SessionKey, StopOutcome, Ticket
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.text.tongue import speak
from agent_core.turn.events import Verdict
from gateway.queues import inbox
from gateway.queues.inbox import COMMAND_LANE
from gateway.sessions.accepting import Accepting
from gateway.sessions.hub import Hub
from gateway.sharing.portion import Changed, FarChange

log = structlog.get_logger("gateway")

CONTROL = "control"
ANSWER_SECONDS = 20.0
LONGEST_WORD = 7_000
"""In bytes: PostgreSQL carries eight thousand in one word."""
MOST_CHARS = 1_000
"""So much is passed on of what somebody is told: a character takes six bytes at most."""


class FarWish(StrEnum):
    """What is wanted."""

    STOP = "stop"
    STOP_MESSAGE = "stop_message"
    WITHDRAW = "withdraw"
    APPROVE = "approve"
    ANSWER = "answer"
    REWORDED = "reworded"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class FarControl:
    """Implements `gateway.sharing.portion.Far`."""

    accepting: Accepting
    clock: Clock
    ids: Ids
    waiting: dict[int, asyncio.Future[Json]]
    storing: set[asyncio.Future[Json]] = field(default_factory=set[asyncio.Future[Json]])
    """What waits for an answer and is not known by its number yet."""
    early: dict[int, Json] = field(default_factory=dict[int, Json])
    """What was answered meanwhile, by the numbers: the owner may be quicker than the news of our own commit."""

    async def stop(self, key: str) -> StopOutcome:
        return _outcome(await self._ask(key, FarWish.STOP))

    async def stop_message(self, key: str, ticket: Ticket) -> StopOutcome:
        return _outcome(await self._ask(key, FarWish.STOP_MESSAGE, ticket.inbox_id, ticket.session))

    async def withdraw(self, key: str, ticket: Ticket) -> bool:
        return await self._ask(key, FarWish.WITHDRAW, ticket.inbox_id, ticket.session) is True

    async def approve(self, key: str, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting) -> bool:
        return await self._ask(key, FarWish.APPROVE, turn, call, verdict.value, by, lasts.value) is True

    async def answer(self, key: str, turn: str, call: str, words: str, by: str) -> str | None:
        found = await self._ask(key, FarWish.ANSWER, turn, call, words, by)
        return found if isinstance(found, str) else None

    async def reworded(self, key: str, inbox_id: int) -> None:
        await self._put(key, FarWish.REWORDED, inbox_id)

    async def change(self, key: str, session: str, change: FarChange, *words: Json) -> Changed | None:
        found = await self._ask(key, FarWish.CHANGE, session, change.value, *words)
        return Changed(found) if isinstance(found, str) else None

    async def _put(self, key: str, wish: FarWish, *words: Json) -> int:
        said = orjson.dumps([wish.value, *words]).decode()
        inbound = FromApi(
            account=CONTROL,
            platform_key=self.ids.new("c"),
            session=SessionKey.of(key),
            input=(InputMessage(f"/{CONTROL} {said}"),),
            surface=CONTROL,
            memory_scope=key,
        )
        accepted = await self.accepting.put(
            self.accepting.new_message(inbound, COMMAND_LANE, self.clock.now_ms(), None)
        )
        return accepted.inbox_id

    async def _ask(self, key: str, wish: FarWish, *words: Json) -> Json:
        """What its owner answers; None if it does not in time."""
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.storing.add(future)
        try:
            number = await self._put(key, wish, *words)
            self.waiting[number] = future
            if number in self.early:
                future.set_result(self.early[number])
        finally:
            self.storing.remove(future)
            if not self.storing:
                self.early.clear()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await future
        except TimeoutError:
            log.warning("slices.not_answered", inbox=number, wish=wish.value)
            return None
        finally:
            del self.waiting[number]

    def heard(self, word: str) -> None:
        """The owner's answer to something, if it was asked here."""
        number, _, said = word.partition(":")
        future = self.waiting.get(int(number))
        if future is None and self.storing:
            self.early[int(number)] = orjson.loads(said)
        elif future is not None and not future.done():
            future.set_result(orjson.loads(said))


async def carry_out(
    hub: Hub,
    tell: Callable[[str], None],
    heard: Callable[[str], None],
    key: SessionKey,
    inbox_id: int,
    words: str,
) -> None:
    """Do what somebody wants at another node, and answer. It may be we who wanted it, and have the conversation by now: nobody hears the own words."""
    wish, *more = orjson.loads(words)
    said = orjson.dumps(await _done(hub, key, inbox_id, FarWish(wish), more)).decode()
    heard(f"{inbox_id}:{said}")
    if len(said.encode()) < LONGEST_WORD:
        tell(f"{CONTROL}:{inbox_id}:{said}")


async def _done(hub: Hub, key: SessionKey, inbox_id: int, wish: FarWish, words: list[str]) -> Json:
    stopping = hub.stopping
    match wish:
        case FarWish.STOP:
            return _told(await stopping.stop(key))
        case FarWish.STOP_MESSAGE:
            return _told(await stopping.stop_message(Ticket(int(words[0]), words[1], duplicate=False)))
        case FarWish.WITHDRAW:
            return await stopping.withdraw(Ticket(int(words[0]), words[1], duplicate=False))
        case FarWish.APPROVE:
            turn, call, verdict, by, lasts = words
            return await stopping.approve(key, turn, call, Verdict(verdict), by, Lasting(lasts))
        case FarWish.ANSWER:
            told = await stopping.answer(key, *words)
            return told if told is None or len(told) <= MOST_CHARS else f"{told[:MOST_CHARS]}…"
        case FarWish.REWORDED:
            return await _reword(hub.accepting, key, int(words[0]))
        case FarWish.CHANGE:
            from gateway.several.changing import changed  # few ask for it

            session, change, *more = words
            return await changed(hub, key, inbox_id, session, FarChange(change), more)


async def _reword(accepting: Accepting, key: SessionKey, inbox_id: int) -> bool:
    row, queue = await accepting.store.inbox.one(inbox_id), accepting.queues.known(key.text())
    if row is None or queue is None:
        return False
    queue.reword(inbox.decode(row.body))
    return True


def _told(outcome: StopOutcome) -> Json:
    return [outcome.stopped, outcome.words]


def _outcome(said: Json) -> StopOutcome:
    if isinstance(said, list) and len(said) == 2:
        return StopOutcome(stopped=said[0] is True, words=str(said[1]))
    return StopOutcome(stopped=False, words=speak("The stop was taken, but the turn has not ended yet."))
