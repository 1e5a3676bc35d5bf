"""What happens to a message of a chat platform, from its arrival until it is taken, refused or ignored.

Order of things: what it means (`routing`), whether its person may talk (`members`), then it is stored, and only then is the
platform told so: words for the model go by `messages`, commands by `commandintake`.

What people wrote is made storable first: halves of surrogate pairs and NUL, which no database and no JSON takes, become a mark.

That messages cannot be stored just now is told (`Outage`) by the only words that are sent without being stored, once for each chat and outage, as far as this process knows; what is sent so is never repeated, edited or counted as an answer.
The message itself is not confirmed, so that its platform brings it again. That one cannot be stored holds up those behind it; their
chats are told as well (`adapters.contract.intake.WayIn.waiting` looks ahead). What is not sent for the moment, because many are told at once or
the platform wants a pause, counts as not said: whoever looks at the message again says it then.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace

import structlog

from adapters.contract.base import FromChat, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatMessage, ChatOrigin, ChatPerson, Content, ContentKind, Raw
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.text.styled import Styled
from agent_core.failures.shortage import NO_DISK
from agent_core.messages import InputMessage
from agent_core.ports import Clock
from agent_core.store.inbox.rows import InboxRow
from agent_core.store.store import Damaged, StorageFull, StorageUnavailable, Store
from agent_core.text.tongue import sentence, speak, speaking
from gateway.chats.commandintake import CommandIntake
from gateway.chats.unread import UnreadBox
from gateway.commands.messages import Cursor, Messages, unusable
from gateway.commands.registry import TYPED, CommandSpec, menu
from gateway.delivery.outbox import Outbox
from gateway.people.access import PersonStanding
from gateway.people.members import MemberRefused, Members, account_of
from gateway.people.routing import Command, Ignore, WordsForAgent, meaning, session_of, spoken, written
from gateway.queues import inbox
from gateway.queues.held import HeldMessage, held_words
from gateway.queues.languages import Languages
from gateway.queues.queues import Queues
from gateway.storage.storewatch import not_stored

log = structlog.get_logger("chat")


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
MARK = "�"


def storable_text(text: str) -> str:
    """The text with a mark for each character that cannot be stored."""
    return text if text.isascii() and "\x00" not in text else _UNSTORABLE.sub(MARK, text)


def storable(message: ChatMessage) -> ChatMessage:
    """The message with nothing in it that cannot be stored."""
    origin = message.origin
    return replace(
        message,
        origin=_origin(origin),
        key=storable_text(message.key),
        text=storable_text(message.text),
        command=storable_text(message.command),
        typed=storable_text(message.typed),
    )


def _origin(origin: ChatOrigin) -> ChatOrigin:
    address, person = origin.address, origin.person
    return replace(
        origin,
        address=replace(address, chat=storable_text(address.chat), thread=storable_text(address.thread)),
        person=replace(
            person,
            id=storable_text(person.id),
            name=storable_text(person.name),
            username=storable_text(person.username),
        ),
        message=storable_text(origin.message),
        attachments=tuple(
            replace(one, ref=storable_text(one.ref), name=storable_text(one.name), mime=storable_text(one.mime))
            for one in origin.attachments
        ),
        group=storable_text(origin.group),
        root=storable_text(origin.root),
    )


OURS_SECONDS, LOOK_SECONDS = 10.0, 0.1
"""So long it may stay unknown whether a connection is still ours, and so often that is looked at."""
WHY_FULL = NO_DISK
WHY_DAMAGED = sentence("the storage of the gateway is damaged")
WHY_AWAY = sentence("the storage of the gateway does not answer")
AGAIN_SECONDS = 600.0
"""A chat is not told twice within this time, whatever comes and goes."""
KNOWN_MOST = 10_000


def words_of(error: NotAccepted | StorageUnavailable) -> str:
    """What a chat is told; empty if it is not about the storage. Pure."""
    if isinstance(error, StorageFull) or (
        isinstance(error, NotAccepted) and error.code is NotAcceptedCode.STORAGE_FULL
    ):
        why = WHY_FULL
    elif isinstance(error, Damaged) or (
        isinstance(error, NotAccepted) and error.code is NotAcceptedCode.STORAGE_DAMAGED
    ):
        why = WHY_DAMAGED
    elif isinstance(error, StorageUnavailable) or error.code is NotAcceptedCode.STORAGE_AWAY:
        why = WHY_AWAY
    else:
        return ""
    return speak(
        "⚠️ I cannot keep your message just now: {why}. It is not taken yet; I look for it again as soon as that is mended, and answer then.",
        why=speak(why),
    )


class Outage:
    """Of all accounts."""

    def __init__(self, outbox: Outbox, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock
        self._told: dict[str, float] = {}
        """By chat: when, by the monotonic clock; what is over is marked by not being in `_now`."""
        self._now: set[str] = set()

    def tell(self, origin: ChatOrigin, error: NotAccepted | StorageUnavailable) -> None:
        """Say so in the chat of a message, unless it was said."""
        words, chat = words_of(error), origin.address.text()
        now = self._clock.monotonic()
        if not words or chat in self._now or now - self._told.get(chat, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        said = Content(ContentKind.ASIDE, Styled(words), reply_to=origin.reply_to)
        if not self._outbox.unstored.say(origin.address, said, lambda: self._unsaid(chat)):
            return
        while len(self._told) >= KNOWN_MOST:
            self._now.discard(gone := next(iter(self._told)))
            del self._told[gone]
        self._told[chat] = now
        self._now.add(chat)

    def _unsaid(self, chat: str) -> None:
        """It certainly did not get there, and may be said again."""
        self._told.pop(chat, None)
        self._now.discard(chat)

    def over(self) -> None:
        """Something was stored."""
        self._now.clear()


EDITED_MS = 24 * 3_600_000
"""An edit that adds the bot's name makes a message of what was not meant for it; not of one that is older: that one may have been answered and forgotten."""
ALBUMS = 100
"""Of so many it is remembered that they are for us."""


class Arrivals:
    """Implements `adapters.contract.chat.ChatIntake`."""

    def __init__(
        self,
        members: Members,
        messages: Messages,
        commands: CommandIntake,
        unread: UnreadBox,
        queues: Queues,
        outbox: Outbox,
        store: Store,
        clock: Clock,
        *,
        agents: bool = False,
        several: bool = False,
        languages: Languages,
    ) -> None:
        """`agents`: there are several that can be chosen; `several`: of gateways, see `ChatIntake`."""
        self.several = several
        self._languages = languages
        self._members = members
        self._agents = agents
        self._messages = messages
        self._commands = commands
        self._unread = unread
        self._queues = queues
        self._outbox = outbox
        self._store = store
        self._clock = clock
        self._outage = Outage(outbox, clock)
        self._albums: dict[tuple[str, str, str], None] = {}
        """Albums of which a piece was for us; the others say so no more."""

    def commands(self) -> tuple[CommandSpec, ...]:
        return menu(people=self._members.directory.allowed, agents=self._agents)

    async def cursor(self, account: str, channel: str) -> str | None:
        with _stored():
            return await self._store.inbox.cursor(account, channel)

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        with _stored():
            return await self._store.inbox.cursors(account)

    async def reserve(self, account: str, channel: str, every_ms: int) -> int:
        with _stored():
            return await self._store.inbox.reserve(account, channel, every_ms)

    async def known(self, account: str, key: str) -> bool:
        with _stored():
            return await self._store.inbox.by_key(account, key) is not None

    async def keep(self, account: str, raw: Raw, words: str, cursor: Cursor) -> None:
        told = raw.for_us and self._members.standing(account, ChatPerson(raw.person, "")) is not PersonStanding.STRANGER
        with _stored():
            await self._unread.keep(account, raw, words, cursor, tell=told)

    async def allowed(self, account: str) -> list[str]:
        return self._members.allowed(account)

    async def removed(self, account: str, key: str) -> None:
        with _stored():
            await self._messages.remove(account, key)

    async def ours(self) -> bool:
        """See `adapters.contract.chat.ChatIntake`."""
        for _ in range(round(OURS_SECONDS / LOOK_SECONDS)):
            if not self.several or self._store.ownership.lease_ok():
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False

    async def skip(self, account: str, cursor: tuple[str, str]) -> None:
        with _stored():
            await self._store.inbox.move_cursor(account, *cursor)

    async def moved(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """See `adapters.contract.chat.ChatIntake`."""
        await self._outbox.moved(ChatAddress(platform, account, old_chat), new_chat)

    def waits(self, message: ChatMessage, refused: NotAccepted) -> None:
        """See `adapters.contract.chat.ChatIntake`. Needs nothing of the storage, so that only a running queue tells whether a thread is one of ours."""
        message = storable(message)
        origin = message.origin
        rules = self._members.rules_of(origin.address)
        takes_part = bool(origin.address.thread) and self._queues.known(session_of(origin, rules).text()) is not None
        meant = meaning(message, rules, TYPED, takes_part=takes_part)
        if not isinstance(meant, Ignore):
            self._tell_outage(origin, refused)

    def _tell_outage(self, origin: ChatOrigin, why: NotAccepted | StorageUnavailable) -> None:
        if self._members.standing_of(origin) is not PersonStanding.STRANGER:
            with speaking(self._languages.in_chat(origin)):
                self._outage.tell(origin, why)

    # ------------------------------------------------------------------ a message

    async def receive(self, message: ChatMessage, cursor: Cursor) -> None:
        """See `adapters.contract.chat.ChatIntake`."""
        with _stored():
            await self._receive(storable(message), cursor)
        self._outage.over()

    async def _receive(self, message: ChatMessage, cursor: Cursor) -> None:
        origin = message.origin
        album = (origin.address.text(), origin.person.id, origin.group)
        message = replace(message, for_us=message.for_us or album in self._albums)
        account, rules = account_of(origin.address), self._members.rules_of(origin.address)
        own = session_of(origin, rules)
        said = meaning(message, rules, TYPED, takes_part=False)
        if isinstance(said, Ignore) and origin.address.thread and await self._takes_part(own.text()):
            said = meaning(message, rules, TYPED, takes_part=True)
        if isinstance(said, Ignore):
            log.debug("chat.ignored", account=account, why=said.why)
            await self._pass(account, cursor)
            return
        if origin.group and origin.kind is ChatKind.GROUP:
            self._albums[album] = None
            if len(self._albums) > ALBUMS:
                del self._albums[next(iter(self._albums))]
        try:
            await self._take(message, cursor, said, own)
        except (NotAccepted, StorageUnavailable) as error:
            self._tell_outage(origin, error)
            raise

    async def _takes_part(self, key: str) -> bool:
        """A thread is one in which the bot has been talking."""
        here = self._queues.known(key)
        if (here is not None and here.epoch) or self._queues.pasts.whose(key) is not None:
            return True
        return await self._store.sessions.by_key(key) is not None

    async def _take(self, message: ChatMessage, cursor: Cursor, said: Command | WordsForAgent, own: SessionKey) -> None:
        """Store what concerns us. Nearly every message is new, and the storage says so where it stores it: only what is changed or refused, or is there
        already, is looked up, which would be a way to the database more for each."""
        origin, members = message.origin, self._members
        await members.directory.settle(own)
        comes_again = message.edited or members.has_counted(origin, message.key)
        if comes_again or not await self._take_new(message, cursor, said, own):
            known = await self._store.inbox.by_key(account_of(origin.address), message.key)
            if known is not None and not comes_again:
                members.not_counted(origin, message.key)
            await self._take_known(message, cursor, said, own, known)

    async def _take_new(
        self, message: ChatMessage, cursor: Cursor, said: Command | WordsForAgent, own: SessionKey
    ) -> bool:
        """Store a message that is taken for new. False: it is to be looked up, and nothing was done."""
        inbound, text = self._inbound(message, said, self._members.directory.session_of(own, message.origin))
        with speaking(self._languages.at_once(inbound)):
            if self._refusal(message, inbound, said, text, known=None) is not None:
                return False
            await self._members.directory.meet(own, message.origin)
            return await self._take_in(inbound, said, text, cursor, only_new=True)

    async def _take_known(
        self,
        message: ChatMessage,
        cursor: Cursor,
        said: Command | WordsForAgent,
        own: SessionKey,
        known: InboxRow | None,
    ) -> None:
        """The same of one that was looked up; None: it is new all the same."""
        origin, members = message.origin, self._members
        inbound, text = self._inbound(message, said, self._session(own, origin, known))
        # What a person chose counts where nothing of theirs runs, too
        with speaking(await self._languages.of(inbound)):
            refused = self._refusal(message, inbound, said, text, known=known)
            if refused is not None and refused.later_ms and isinstance(said, WordsForAgent):
                held = HeldMessage(self._clock.now_ms() + refused.later_ms, text)
                if not await self._messages.hold(inbound, held, cursor, held_words(-(-refused.later_ms // 1000))):
                    await self._pass(inbound.account, cursor)
                return
            if refused is not None:
                await self._messages.refuse(inbound, cursor, refused)
                return
            await members.directory.meet(own, origin)
            new = known is None and self._clock.now_ms() - message.said_at < EDITED_MS
            if message.edited and not new:
                # It was taken as what it said first: a command that stands there now is not carried out, and is part of the words.
                reworded, _ = self._inbound(message, WordsForAgent(written(message)), inbound.session)
                await self._messages.edit(reworded, known)
                await self._pass(inbound.account, cursor)
                return
            held_already = known is not None and self._messages.held_command(known) is not None
            if held_already or not await self._take_in(inbound, said, text, cursor):
                await self._pass(inbound.account, cursor)

    async def _take_in(
        self, inbound: FromChat, said: Command | WordsForAgent, text: str, cursor: Cursor, *, only_new: bool = False
    ) -> bool:
        """Store what is taken. False if it is stored already."""
        if isinstance(said, Command):
            accepted, _ = await self._commands.take(inbound, said, cursor)
            return not accepted.duplicate
        return await self._messages.take(inbound, text, cursor, only_new=only_new)

    def _inbound(self, message: ChatMessage, said: Command | WordsForAgent, key: SessionKey) -> tuple[FromChat, str]:
        """The message as it is stored, and what its person wrote."""
        origin = message.origin
        text = said.words if isinstance(said, Command) else said.text
        words = (
            spoken(origin, text, self._members.rules_of(origin.address)) if isinstance(said, WordsForAgent) else text
        )
        inbound = FromChat(
            account=account_of(origin.address),
            platform_key=message.key,
            session=key,
            input=(InputMessage(words, foreign=origin.foreign),),
            surface=origin.address.platform,
            memory_scope=key.text(),
            can_approve=True,
            chat=origin,
        )
        return inbound, text

    def _refusal(
        self,
        message: ChatMessage,
        inbound: FromChat,
        said: Command | WordsForAgent,
        text: str,
        *,
        known: InboxRow | None,
    ) -> MemberRefused | None:
        stops = isinstance(said, Command) and said.name == "stop"  # nobody is too fast for that
        free = known is not None or stops
        return self._members.refusal(inbound, free=free, said_at=message.said_at) or unusable(inbound.chat, text)

    async def _pass(self, account: str, cursor: Cursor) -> None:
        """The platform need not bring it again."""
        if cursor is not None:
            await self.skip(account, cursor)

    def _session(self, own: SessionKey, origin: ChatOrigin, stored: InboxRow | None) -> SessionKey:
        """The session of a message; a redelivery or an edit stays where the message was when it came first."""
        if stored is not None and origin.kind is ChatKind.PRIVATE:
            try:
                return inbox.decode(stored.body).session
            except inbox.UnreadableMessage:
                return own
        return self._members.directory.session_of(own, origin)


MoveFiles = Callable[[str, str], None]
"""Has the files of a session found under another key than before."""


async def move_chat(
    store: Store, queues: Queues, outbox: Outbox, files: MoveFiles, old: ChatAddress, new_chat: str
) -> None:
    """A chat has another id: what is stored, what is queued, what is shown and the files go on under it."""
    platform, account, old_chat = old.platform, old.account, old.chat
    if old_chat == new_chat:
        return  # a platform that says so says nothing
    log.info("chat.moved", account=f"{platform}/{account}", old=old_chat, new=new_chat)
    with _stored():
        keys = await store.sessions.move_chat(f"{platform}/{account}/", old_chat, new_chat)
    queues.move(platform, account, old_chat, new_chat)
    outbox.surfaces.move(platform, account, old_chat, new_chat)
    # What was being stored under the old id came behind: it would be sent once more by the next process.
    with _stored():
        await store.sessions.move_chat(f"{platform}/{account}/", old_chat, new_chat)
    for key in keys:
        was = key.replace(f"{platform}/{account}/{new_chat}/", f"{platform}/{account}/{old_chat}/", 1)
        queue = queues.known(key)
        if queue is not None and queue.running is not None:  # its tools are at work there
            queue.running.over.add_done_callback(lambda _, was=was, key=key: files(was, key))
        else:
            await asyncio.to_thread(files, was, key)


@contextmanager
def _stored() -> Generator[None]:
    """What cannot be stored just now is not accepted."""
    try:
        yield
    except StorageUnavailable as error:
        raise not_stored(error) from error
