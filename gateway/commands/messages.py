"""Messages of chats on their way to a session's queue, and what their chat is told of that: their place, what of them cannot be used, or why
they are not taken. What is refused is stored, too, with the reason.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import structlog

from adapters.contract.base import FromApi, FromChat, Inbound, Ticket
from adapters.contract.chat import AttachmentKind, ChatOrigin, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.text.styled import Styled
from agent_core.messages import InputMessage
from agent_core.ports import Clock
from agent_core.store.errors import NoRoomToday
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState
from agent_core.store.store import Conflict, Store
from agent_core.text.tongue import sentence, speak, speaking
from gateway.commands.posts import Post, encode_post, post_inbound
from gateway.commands.registry import line_words, queued_words
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner, queue_origin
from gateway.limits.incoming import carried_bytes, without_files
from gateway.limits.quotas import Quotas
from gateway.people.members import MemberRefused, Members
from gateway.people.routing import Command, spoken
from gateway.queues import inbox
from gateway.queues.held import HOLD, HeldHere, HeldMessage, edited, no_room_words
from gateway.queues.inbox import BY_PERSON, COMMAND_LANE, REFUSED_LANE
from gateway.queues.languages import Languages
from gateway.queues.slots import full_here
from gateway.sessions.accepting import Accepting
from gateway.sessions.stopping import TurnStopping

log = structlog.get_logger("chat")

OTHER_WORDS = sentence("I cannot take this: {what}. I can read text, and take files, pictures and sound.")
Cursor = tuple[str, str] | None
"""(channel, position) of the platform, stored with what it brought."""


class TakesCommands(Protocol):
    """Stores a command and begins to carry it out, unless it was known."""

    async def take(
        self, inbound: Inbound, command: Command, cursor: Cursor = None
    ) -> tuple[Accepted, asyncio.Task[None] | None]: ...


def unusable(origin: ChatOrigin, text: str) -> MemberRefused | None:
    """A message of nothing but what nobody here can take, such as a file that lies on another site."""
    others = [one for one in origin.attachments if one.kind is AttachmentKind.OTHER]
    if text.strip() or not others or len(others) < len(origin.attachments):
        return None
    return MemberRefused("nothing in it can be taken", speak(OTHER_WORDS, what=others[0].name))


class Messages:
    """Takes in, changes and withdraws them."""

    def __init__(
        self,
        accepting: Accepting,
        stopping: TurnStopping,
        members: Members,
        outbox: Outbox,
        quotas: Quotas | None,
        store: Store,
        clock: Clock,
        languages: Languages,
    ) -> None:
        self._accepting = accepting
        self._stopping = stopping
        self._queues = accepting.queues
        self._slots = accepting.runner.slots
        self._members = members
        self._outbox = outbox
        self._quotas = quotas
        self._store = store
        self._clock = clock
        self._languages = languages
        self.held = HeldHere()
        """What cannot go into its queue yet."""
        self._commands: TakesCommands | None = None

    def open(self, commands: TakesCommands) -> None:
        """Messages that are held are commands, which are taken in by way of these messages."""
        self._commands = commands

    def crowded(self, key: str) -> NotAccepted | None:
        """Why there is no room for one more message of the conversation just now; None if there is."""
        return self._accepting.crowded(key)

    async def take(self, inbound: FromChat, text: str, cursor: Cursor, *, only_new: bool = False) -> bool:
        """Take it in, hold it until there is room, or refuse it in words; `text` is what its person wrote. False if it was known. Where it is taken
        `only_new`, nothing is done then, nor where words would have to be said of it: whoever looks it up learns their language, too."""
        try:
            ticket = await self._in_line(inbound, cursor, None, only_new=only_new)
        except NotAccepted as refused:
            if refused.code.passes or refused.code is NotAcceptedCode.OTHER_CONTENT:
                raise
            if only_new:
                return False
            if self._may_wait(inbound, refused):
                return await self._hold_for_room(inbound, text, cursor, refused.code)
            await self.refuse(inbound, cursor, MemberRefused(refused.code.value, str(refused)))
            return True
        if ticket.duplicate and only_new:
            return False
        await self._met(inbound, ticket, cursor)
        return True

    async def _in_line(
        self, inbound: FromChat, cursor: Cursor, busy: SessionPolicy | None, *, only_new: bool = False
    ) -> Ticket:
        """Into its queue, but not before what waits for room there."""
        key = inbound.session.text()
        if (line := self.held.lined_up(key)) and await self._unknown(inbound):
            crowded = self.crowded(key)
            if crowded is not None and crowded.code is NotAcceptedCode.GATEWAY_FULL:
                raise crowded
            raise full_here(self._queues.known(key), line)
        return await self._accept(inbound, cursor, busy, only_new=only_new)

    async def _accept(
        self, inbound: FromChat, cursor: Cursor, busy: SessionPolicy | None, *, only_new: bool = False
    ) -> Ticket:
        """Into its queue; without its files, where the day has no room for them: their person reads why, and is answered what they said."""
        try:
            return await self._accepting.accept(inbound, cursor=cursor, busy=busy, only_new=only_new)
        except NotAccepted as refused:
            if only_new or refused.code is not NotAcceptedCode.QUOTA or not carried_bytes(inbound):
                raise
            inbound = without_files(inbound, str(refused))
            return await self._accepting.accept(inbound, cursor=cursor, busy=busy)

    async def _unknown(self, inbound: FromChat) -> bool:
        return await self._store.inbox.by_key(inbound.account, inbound.platform_key) is None

    def _may_wait(self, inbound: FromChat, refused: NotAccepted) -> bool:
        return refused.code.lacks_room and self.held.takes(inbound.session.text())

    async def _hold_for_room(self, inbound: FromChat, text: str, cursor: Cursor, why: NotAcceptedCode) -> bool:
        return await self.hold(inbound, HeldMessage.for_room(text), cursor, no_room_words(why))

    async def hold(self, inbound: FromChat, held: HeldMessage, cursor: Cursor, words: str) -> bool:
        """It cannot be run yet, and is when its time comes. False if it was known."""
        assert self._commands is not None
        accepted, _ = await self._commands.take(inbound, held.command(), cursor)
        if not accepted.duplicate:
            await self._say(inbound, accepted, words, "held")
        return not accepted.duplicate

    async def submit(
        self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None, *, foreign: str = ""
    ) -> bool:
        """Take in words that a command or a button stands for; `foreign` says whose they may be, if they are not the person's.

        False if they were taken in before, under the same key.
        """
        if isinstance(inbound, FromApi):  # the page shows by itself what became of it
            asked = replace(inbound, platform_key=key, input=(InputMessage(text, foreign=foreign),), digest="")
            return not (await self._accepting.accept(asked, busy=busy)).duplicate
        said = self._saying(inbound, key, text, foreign)
        ticket = await self._accept(said, None, busy)
        await self._met(said, ticket, None)
        return not ticket.duplicate

    async def submit_or_hold(self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None) -> bool:
        """The same with a person's words, which are held as any message of a chat where there is no room for them."""
        if isinstance(inbound, FromApi):
            return await self.submit(inbound, key, text, busy)
        said = self._saying(inbound, key, text, "")
        stored = await self._store.inbox.by_key(said.account, key)
        if stored is not None and self.held_command(stored) is not None:
            return False
        try:
            ticket = await self._in_line(said, None, busy)
        except NotAccepted as refused:
            if not self._may_wait(said, refused):
                raise
            return await self._hold_for_room(said, text, None, refused.code)
        await self._met(said, ticket, None)
        return not ticket.duplicate

    def _saying(self, inbound: FromChat, key: str, text: str, foreign: str) -> FromChat:
        words = spoken(inbound.chat, text, self._members.rules_of(inbound.chat.address))
        return replace(inbound, platform_key=key, input=(InputMessage(words, foreign=foreign),))

    async def _met(self, inbound: FromChat, ticket: Ticket, cursor: Cursor) -> None:
        if not ticket.duplicate:
            await self.announce(inbound, ticket.inbox_id, ticket.session)
        elif cursor is not None:
            await self._store.inbox.move_cursor(inbound.account, *cursor)

    async def announce(self, inbound: Inbound, inbox_id: int, session: str) -> None:
        """Tell what is to be told of a message that was taken: its place in the queue. What of it cannot be used is told when it is read."""
        if not isinstance(inbound, FromChat):
            return
        queue = self._queues.known(inbound.session.text())
        if queue is None:
            return
        position = queue.position(inbox_id)
        address, to = inbound.chat.address, inbound.chat.reply_to
        line = self._slots.long_wait(queue) if position == 1 and queue.running is None else 0
        if position is not None and (line or queue.running is not None):
            with speaking(await self._languages.as_known(inbound, session)):
                told = line_words(line) if line else queued_words(position)
                queued = Content(ContentKind.ASIDE, Styled(told), reply_to=to, silent=True)
            await self._outbox.words.say(address, Owner(session, queue.epoch), queue_origin(inbox_id), queued)

    async def refuse(self, inbound: FromChat, cursor: Cursor, why: MemberRefused) -> None:
        """Record a message that is not taken, and say so where that was not said before."""
        message = self._accepting.new_message(inbound, REFUSED_LANE, self._clock.now_ms(), cursor, refused=why.reason)
        accepted = await self._accepting.put(message)
        if cursor is not None and accepted.duplicate:
            await self._store.inbox.move_cursor(inbound.account, *cursor)
        if accepted.duplicate:
            return
        log.info("chat.refused", account=inbound.account, reason=why.reason, inbox=accepted.inbox_id)
        if words := await self._members.noted(inbound.chat, why):
            await self._say(inbound, accepted, words)

    async def _say(self, inbound: FromChat, accepted: Accepted, words: str, what: str = "inbox") -> None:
        """Say something about a stored message, where it came from."""
        key = inbound.session.text()
        queue = await self._accepting.owned_stored(key, accepted) if self._accepting.portion.mine(key) else None
        if queue is None:
            await self._have_said(inbound, accepted, words, what)
            return
        content = Content(ContentKind.ASIDE, Styled(words), reply_to=inbound.chat.reply_to)
        owner = Owner(accepted.session, queue.epoch)
        await self._outbox.words.say(inbound.chat.address, owner, f"{what}:{accepted.inbox_id}", content)
        self._queues.release(queue)

    async def _have_said(self, inbound: FromChat, accepted: Accepted, words: str, what: str) -> None:
        """The same where another gateway writes: it finds the words as a command of its chat."""
        said = post_inbound(inbound.chat.address, f"{what}:{accepted.inbox_id}", "")
        command = f"/post {encode_post(Post(words))}"
        stored = replace(said, session=inbound.session, input=(InputMessage(command),))
        await self._accepting.put(self._accepting.new_message(stored, COMMAND_LANE, self._clock.now_ms(), None))

    async def edit(self, inbound: FromChat, stored: InboxRow | None) -> None:
        """A message that still waits gets its new words and files; one that is answered already keeps the old ones."""
        if stored is not None and stored.lane == COMMAND_LANE:
            await self._reword_held(inbound, stored)
            return
        quotas, now = self._quotas, self._clock.now_ms()
        charges = await quotas.incoming.for_files(inbound, now) if quotas is not None else ()
        account, name = inbound.account, inbound.platform_key
        try:
            changed = await self._store.inbox.reword(account, name, inbox.encode(inbound), charges, now)
        except NoRoomToday as error:
            assert quotas is not None
            words = str(quotas.incoming.refusal(inbound, error, now))
            before = None
            with suppress(inbox.UnreadableMessage):
                before = inbox.chat_of(stored.body) if stored is not None else None
            inbound = without_files(inbound, words, before.attachments if before is not None else ())
            changed = await self._store.inbox.reword(account, name, inbox.encode(inbound))
        await self._reword(inbound, stored, taken=changed)
        log.info("chat.edited", account=inbound.account, taken=changed)

    async def _reword(self, inbound: FromChat, stored: InboxRow | None, *, taken: bool) -> None:
        """Whoever has it in a queue hears of it."""
        key, portion = inbound.session.text(), self._accepting.portion
        if taken and (queue := self._queues.known(key)) is not None:
            queue.reword(inbound)
        if taken and stored is not None and portion.far is not None and not portion.mine(key):
            await portion.far.reworded(key, stored.id)

    async def _reword_held(self, inbound: FromChat, stored: InboxRow) -> None:
        """Of what waits for its time the new words are run, also where it was taken in meanwhile; a command stays what it was."""
        before = self.held_command(stored)
        after = edited(inbound, before) if before is not None else None
        taken = after is not None and await self._store.inbox.reword(
            inbound.account, inbound.platform_key, inbox.encode(after)
        )
        if after is not None and not taken:
            waits = replace(inbound, platform_key=f"{HOLD}:{inbound.platform_key}")
            await self.edit(waits, await self._store.inbox.by_key(waits.account, waits.platform_key))
            return
        log.info("chat.edited", account=inbound.account, taken=taken)

    @staticmethod
    def held_command(row: InboxRow) -> FromChat | None:
        """The command that stands for a message which waits for its time; None if it is another."""
        try:
            found = inbox.decode(row.body)
        except inbox.UnreadableMessage:
            return None
        return found if isinstance(found, FromChat) and HeldMessage.of(found) is not None else None

    async def stop(self, account: str, key: str) -> None:
        """A message that was taken in is not answered, however far that is."""
        row = await self._store.inbox.by_key(account, key)
        if row is not None and row.state in (InboxState.NEW, InboxState.TAKEN):
            await self._stopping.stop_message(Ticket(row.id, row.session, duplicate=True))

    async def remove(self, account: str, key: str) -> None:
        """A message was deleted where it was written: it is not answered, if its turn has not begun."""
        row = await self._store.inbox.by_key(account, key)
        if row is not None and row.lane == COMMAND_LANE and self.held_command(row) is not None:
            with suppress(Conflict):  # it is taken in by now
                await self._store.inbox.drop(row.id, BY_PERSON)
                log.info("chat.withdrawn", account=account, inbox=row.id, done=True)
                return
            row = await self._store.inbox.by_key(account, f"{HOLD}:{key}")
        if row is None or row.state is not InboxState.NEW:
            return
        outcome = row.lane != COMMAND_LANE and await self._stopping.withdraw(
            Ticket(row.id, row.session, duplicate=True)
        )
        log.info("chat.withdrawn", account=account, inbox=row.id, done=outcome)
