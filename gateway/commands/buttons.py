"""What the buttons beneath an answer do.

A platform hands on what a person's program says was pressed, and a modified program says what it likes. So a button counts only where
something of its turn is shown: what waits in a conversation is decided there, and told there.
Law (tests/chats/test_forged.py): with whatever turn and call a press names, nothing of another chat's turn changes or is told.
"""

from __future__ import annotations

import structlog

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatKind
from adapters.delivery.parts import APPROVE, call_mark
from agent_core.rules.consents import Lasting
from agent_core.store.store import Store
from agent_core.text.tongue import sentence, speak
from agent_core.turn.events import Verdict
from gateway.commands.carrying import CommandReply, Request
from gateway.commands.conversation import ConversationCommands
from gateway.commands.deciders import answering_refused, askers_of, deciding_refused
from gateway.commands.messages import Messages
from gateway.commands.telling import TellingCommands
from gateway.queues.queue import SessionQueue, readable
from gateway.sessions.consents import ASKER, only_words
from gateway.sessions.stopping import TurnStopping

log = structlog.get_logger("chat")

ELSEWHERE_WORDS = sentence(
    "This button belongs to another conversation than the one that goes on here now. {/resume} leads back to it."
)
FOREIGN_WORDS = sentence(
    "This button belongs to another chat, or to something that is not kept any more. It does nothing here."
)
AGREEING = {name: lasts for lasts, (name, *_) in APPROVE.items()} | {"allow": Lasting.ONCE}
"""For how long a button agrees; buttons of older versions may still stand in chats."""


class Buttons:
    """`press` is a command's handler."""

    def __init__(
        self,
        conversation: ConversationCommands,
        telling: TellingCommands,
        messages: Messages,
        stopping: TurnStopping,
        store: Store,
    ) -> None:
        self._conversation = conversation
        self._telling = telling
        self._messages = messages
        self._stopping = stopping
        self._queues = stopping.queues
        self._store = store

    async def press(self, request: Request) -> CommandReply:
        kind, _, rest = request.words.partition(":")
        turn, _, mark = rest.partition(":")
        if not await self._store.deliveries.shown(request.origin.address.text(), turn):
            return CommandReply(speak(FOREIGN_WORDS))
        row = await self._store.turns.one(turn) if kind in ("continue", "retry") else None
        if (
            row is not None
            and row.session != request.owner.session
            and (refusal := await self._not_theirs(request, turn))
        ):
            return CommandReply(refusal)
        match kind:
            case "continue":
                # By the turn, not by the press: pressed twice, or by two people, it is one wish.
                new = await self._messages.submit_or_hold(request.inbound, f"continue:{turn}", "continue", None)
                return CommandReply("" if new else speak("That was decided already."))
            case "retry":
                if row is not None and row.undone:
                    return CommandReply(speak("That was decided already."))
                return await self._conversation.retry(request, row)
            case "why":
                return await self._telling.story(turn, request)
            case "feedback":
                log.info(
                    "feedback.given", turn=turn, judged=mark, session=request.owner.session, by=request.origin.person.id
                )
                return CommandReply(speak("Thank you, that is noted."))
            case "deny":
                return await self._decide(request, turn, mark, Verdict.DENIED, Lasting.ONCE)
            case _ if (lasts := AGREEING.get(kind)) is not None:
                return await self._decide(request, turn, mark, Verdict.GIVEN, lasts)
            case "answer":
                return await self._answer(request, turn, mark)
            case _:
                return CommandReply(speak("This button is from another version of me and does nothing any more."))

    async def _not_theirs(self, request: Request, turn: str) -> str:
        """Why nothing can be done here about a turn of another conversation, in words; empty where its button is only older than the one of all."""
        if request.origin.kind is ChatKind.PRIVATE:
            return speak(ELSEWHERE_WORDS)
        if not request.own.person:
            return ""
        asked = [waiting for _, waiting in readable(await self._store.inbox.inputs(turn))]
        return only_words((ASKER,), [*askers_of(asked).values()])

    async def _decide(self, request: Request, turn: str, mark: str, verdict: Verdict, lasts: Lasting) -> CommandReply:
        queue = await self._queue_of_button(request, turn)
        driver = queue.running.driver if queue is not None and queue.running is not None else None
        if queue is None or queue.running is None or driver is None or driver.identity.turn != turn:
            return CommandReply(speak("That is over; nothing waits for a decision any more."))
        if refusal := deciding_refused(request, queue.running, self._stopping.approvers):
            return CommandReply(refusal)
        call = next((b.call for b in driver.seen.current_view().bubbles if b.call and call_mark(b.call) == mark), "")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        done = await self._stopping.approve(SessionKey.of(queue.key), turn, call, verdict, by, lasts)
        return CommandReply("" if done else speak("That was decided already."))

    async def _answer(self, request: Request, turn: str, mark: str) -> CommandReply:
        """A pressed answer: its place among the options stands behind the question's mark."""
        queue = await self._queue_of_button(request, turn)
        running = queue.running if queue is not None else None
        driver = running.driver if running is not None else None
        bubbles = driver.seen.current_view().bubbles if driver is not None else ()
        asked = next((one for one in bubbles if mark.startswith(call_mark(f"{one.call}/{one.key}"))), None)
        place = mark[len(call_mark("")) :]
        if running is None or driver is None or asked is None or not _is_place(place, len(asked.options)):
            return CommandReply(speak("That is over; nothing waits for a decision any more."))
        if refusal := answering_refused(request, running, self._stopping.approvers):
            return CommandReply(refusal)
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        told = await driver.answer(asked.call, asked.options[int(place)], by)
        return CommandReply(speak("That is over; nothing waits for a decision any more.") if told is None else told)

    async def _queue_of_button(self, request: Request, turn: str) -> SessionQueue | None:
        """Where the turn of a button runs: here, or in a conversation that went on here when it was asked."""
        row = await self._store.turns.one(turn)
        queue = self._queues.of(row.session) if row is not None else None
        if queue is None or queue.key == request.key or queue.running is None:
            return queue
        return queue if queue.running.same_chat(request.inbound) else None


def _is_place(words: str, count: int) -> bool:
    """Whether it says which of so many options."""
    return words.isdecimal() and len(words) < 4 and int(words) < count
