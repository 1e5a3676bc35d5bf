"""The commands of people with several accounts: ``/link``, ``/unlink``, ``/resume``, and ``/new`` in a chat that continues another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatAddress, ChatKind
from agent_core.failures.notices import say
from agent_core.ports import Clock
from agent_core.store.people.rows import LinkOutcome
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Store
from agent_core.text.shown import shortened
from agent_core.text.tongue import sentence, speak
from gateway.commands.carrying import LEAVE, CommandReply, Handler, Request
from gateway.commands.conversation import NEW_WORDS, begun_with, cut_off
from gateway.commands.messages import Messages
from gateway.delivery.outbox import Outbox
from gateway.people.linking import (
    NOT_YOURS,
    OFF,
    ONLY_PRIVATE,
    account_in,
    accounts_words,
    ask_words,
    joined_there_words,
    list_words,
    platform_of,
    redeemed_words,
    resumed_words,
)
from gateway.people.members import Members
from gateway.sessions.accepting import Accepting
from gateway.sessions.stopping import TurnStopping

UNREAD = sentence("What is missing here cannot be read just now, because the storage is damaged.")


class PeopleCommands:
    """Handlers for `gateway.commands.carrying.ChatCommands`."""

    def __init__(
        self,
        members: Members,
        accepting: Accepting,
        stopping: TurnStopping,
        messages: Messages,
        outbox: Outbox,
        store: Store,
        clock: Clock,
    ) -> None:
        self._directory = members.directory
        self._accepting = accepting
        self._queues = accepting.queues
        self._stopping = stopping
        self._messages = messages
        self._outbox = outbox
        self._store = store
        self._clock = clock

    def handlers(self) -> Mapping[str, Handler]:
        return {"link": self._link, "unlink": self._unlink, "resume": self._resume, LEAVE: self.leave}

    def _objection(self, request: Request) -> str:
        """Why nothing of this can be done here; empty if it can."""
        if not self._directory.allowed:
            return OFF
        if request.origin.kind is not ChatKind.PRIVATE:
            return ONLY_PRIVATE
        return "" if self._directory.owns(request.own, request.origin) else NOT_YOURS

    # ------------------------------------------------------------------ accounts

    async def _link(self, request: Request) -> CommandReply:
        if objection := self._objection(request):
            return CommandReply(objection)
        me = account_in(request.origin)
        if not request.words.strip():
            told = accounts_words(self._directory.joined(request.origin), me)
            return CommandReply(f"{told}\n{ask_words(await self._directory.ask(request.origin))}")
        if wait := self._directory.wait_ms(request.origin):
            return CommandReply(speak("Too many wrong codes. Try again in {count} minutes.", count=-(-wait // 60000)))
        found = await self._directory.redeem(request.words, request.origin, request.inbound.platform_key)
        words = redeemed_words(found.outcome, found.code)
        if found.outcome is not LinkOutcome.JOINED or found.code is None:
            return CommandReply(words)
        there = joined_there_words(platform_of(me[0]), request.origin.person.name)
        return CommandReply(words, elsewhere=((ChatAddress.of(found.code.chat), there),))

    async def _unlink(self, request: Request) -> CommandReply:
        if objection := self._objection(request):
            return CommandReply(objection)
        me = account_in(request.origin)
        accounts = self._directory.joined(request.origin)
        wished = request.words.strip().rstrip(".")
        if wished and not (wished.isdecimal() and len(wished) < 4 and 1 <= int(wished) <= len(accounts)):
            return CommandReply(
                f"{accounts_words(accounts, me)}\n"
                + speak("“{number}” is no number of this list.", number=shortened(wished, 20))
            )
        chosen = accounts[int(wished) - 1] if wished else None
        out = (chosen.account, chosen.person) if chosen is not None else me
        await cut_off(self._stopping, self._outbox, await self._directory.unlink(*out))
        left = accounts_words(self._directory.joined(request.origin), me)
        gone = (
            speak("{platform}, {name} is taken out.", platform=platform_of(out[0]), name=chosen.name) + "\n"
            if chosen is not None and out != me
            else ""
        )
        return CommandReply(gone + left)

    # ------------------------------------------------------------------ conversations

    async def _resume(self, request: Request) -> CommandReply:
        if objection := self._objection(request):
            return CommandReply(objection)
        own, now = request.own.text(), self._clock.now_ms()
        wished = request.words.strip().rstrip(".")
        if not wished:
            found = await self._directory.conversations(request.own, request.origin)
            unread = f"\n{UNREAD}" if self._directory.unread else ""
            return CommandReply(f"{list_words(found, own, self._current(request), now)}{unread}")
        number = int(wished) if wished.isdecimal() and len(wished) < 4 else 0
        chosen = await self._directory.chosen(number, request.own, request.origin)
        if chosen is None:
            return CommandReply(
                speak("There is no conversation with this number. {/resume} lists those that can go on here.")
            )
        if chosen.place == self._current(request):
            return CommandReply(speak("That conversation goes on here already."))
        queue = self._queues.known(chosen.place)
        busy = queue is not None and queue.running is not None
        change = PlaceChange(own, chosen.place if chosen.place != own else None)
        return CommandReply(resumed_words(chosen, own, now, busy=busy), SessionChange(place=change))

    def _current(self, request: Request) -> str:
        return self._directory.session_of(request.own, request.origin).text()

    async def leave(self, request: Request) -> CommandReply:
        """The chat goes back to a session of its own, and that begins anew. The other one stays as it is."""
        change = PlaceChange(request.own.text(), None)
        await self._store.sessions.change(request.owner.session, request.owner.epoch, SessionChange(place=change))
        self._directory.pointed(change)
        queue = self._queues.known(request.key)
        if queue is not None and queue.running is not None and queue.running.same_chat(request.inbound):
            await self._stopping.stop(request.inbound.session)
        words, key = request.words.strip(), f"new:{request.inbound.platform_key}"
        if not words or await self._store.inbox.by_key(request.inbound.account, key) is None:
            await self._begin_anew(request.own)
        if not words:
            return CommandReply(
                say(NEW_WORDS, speak("The one that went on here stays where it came from; {/resume} finds it."))
            )
        here = replace(request.inbound, session=request.own, memory_scope=request.own.text())
        return await begun_with(self._messages, here, key, words)

    async def _begin_anew(self, own: SessionKey) -> None:
        await self._stopping.stop(own)
        row = await self._store.sessions.by_key(own.text())
        if row is None:
            return
        queue = await self._accepting.owned(row.key, row.session)
        await self._store.sessions.change(row.session, queue.epoch, SessionChange(forget=True))
        self._queues.forget_memory(row.key)
        self._queues.release(queue)
