"""What happens to a message of a chat platform, from its arrival to its place in a session's queue.

Order of things: what it means (`routing`), whether its person may talk (`access`), then it is stored, and only then is the
platform told so. What is refused is stored, too, with the reason. Commands go a way of their own (`chatcommands`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import structlog

from adapters.contract.base import Inbound, SessionKey, Ticket
from adapters.contract.chat import (
    AttachmentKind,
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
    Content,
    ContentKind,
    Raw,
)
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.text.styled import Styled
from agent_core.messages import InputMessage
from agent_core.ports import Clock, Ids
from agent_core.store.errors import NoRoomToday
from agent_core.store.inbox.rows import Accepted, InboxRow, InboxState
from agent_core.store.people.rows import LinkRow, PersonRow, PersonState
from agent_core.store.schedules.rows import Claimed
from agent_core.store.sessions.rows import PlaceChange
from agent_core.store.store import StorageUnavailable, Store
from gateway.chats import access
from gateway.chats.access import AccessRules, Recent, Standing, refuse, standing
from gateway.chats.outage import Outage
from gateway.chats.peoplebook import PeopleBook
from gateway.chats.routing import Command, GroupRules, Ignore, Said, meaning, session_of, spoken
from gateway.chats.storable import storable
from gateway.chats.unread import Unread
from gateway.commands.carrying import ChatCommands, Request
from gateway.commands.people import PeopleCommands
from gateway.commands.registry import BY_NAME, TYPED, CommandSpec, help_words, line_words, menu, queued_words
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner, queue_origin
from gateway.limits.quotas import carried_bytes, without_files
from gateway.sessions import inbox
from gateway.sessions.hub import Hub
from gateway.sessions.inbox import COMMAND_LANE, REFUSED_LANE
from gateway.sessions.queues import Queues
from gateway.storage.storewatch import not_stored

log = structlog.get_logger("chat")

KNOWN_RECENT = 10_000
"""Most people whose speed is remembered."""
OTHER_WORDS = "I cannot take a {what}; I can read text, files of text or code, and pictures."


@dataclass(frozen=True, slots=True)
class AccountRules:
    """What the configuration says about one account of a platform."""

    access: AccessRules
    groups: GroupRules = field(default_factory=GroupRules)
    chats: Mapping[str, GroupRules] = field(default_factory=dict[str, GroupRules])
    """By chat id, instead of `groups`."""
    per_minute: int = 20
    """Messages that a person may send in a minute; 0 is no limit."""

    def of(self, chat: str) -> GroupRules:
        return self.chats.get(chat, self.groups)


class Arrivals:
    """Implements `adapters.contract.chat.ChatIntake`."""

    def __init__(self, hub: Hub, store: Store, outbox: Outbox, clock: Clock, ids: Ids, *, link: bool = False) -> None:
        """`link`: people may join their accounts."""
        self._hub = hub
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._ids = ids
        self._rules: dict[str, AccountRules] = {}
        self._people: dict[tuple[str, str], PersonRow] = {}
        self._recent: dict[tuple[str, str], Recent] = {}
        self._outage = Outage(outbox, clock)
        self.unread = Unread(store, clock)
        self._book = PeopleBook(store, clock, ids, self._counts, allowed=link)
        self._people_commands = PeopleCommands(self._book, hub, store, outbox, clock, self)
        self.commands_of = ChatCommands(hub, store, outbox, clock, self)
        self.commands_of.add(self._people_commands.handlers())

    async def open(self) -> None:
        """Learn who is known."""
        for row in await self._store.people.all():
            self._people[row.account, row.person] = row
        await self._book.open()

    def add_account(self, account: str, rules: AccountRules) -> None:
        """Messages of this account (``platform/bot``) are taken from now on."""
        self._rules[account] = rules

    def commands(self) -> tuple[CommandSpec, ...]:
        return menu(people=self._book.allowed)

    def help_words(self, *, admin: bool, rehearsal: str) -> str:
        """What can be done here."""
        return help_words(admin=admin, rehearsal=rehearsal, people=self._book.allowed)

    async def cursor(self, account: str, channel: str) -> str | None:
        with _stored():
            return await self._store.inbox.cursor(account, channel)

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        with _stored():
            return await self._store.inbox.cursors(account)

    async def known(self, account: str, key: str) -> bool:
        with _stored():
            return await self._store.inbox.by_key(account, key) is not None

    async def keep(self, account: str, raw: Raw, words: str, cursor: tuple[str, str] | None) -> None:
        person = ChatPerson(raw.person, "")
        known = self._people.get((account, raw.person))
        told = raw.for_us and standing(person, self._rules[account].access, known) is not Standing.STRANGER
        with _stored():
            await self.unread.keep(account, raw, words, cursor, tell=told)

    async def allowed(self, account: str) -> list[str]:
        return access.listed(self.people(), self._rules[account].access, account)

    async def removed(self, account: str, key: str) -> None:
        with _stored():
            await self._removed(account, key)

    async def _removed(self, account: str, key: str) -> None:
        row = await self._store.inbox.by_key(account, key)
        if row is None or row.state is not InboxState.NEW:
            return
        ticket = Ticket(row.id, row.session, duplicate=True)
        outcome = await self._hub.stopping.withdraw(ticket)
        log.info("chat.withdrawn", account=account, inbox=row.id, done=outcome)
        chat = inbox.decode(row.body).chat
        if outcome and chat is not None:
            self._outbox.words.take_back(chat.address, queue_origin(row.id))

    async def skip(self, account: str, cursor: tuple[str, str]) -> None:
        with _stored():
            await self._store.inbox.move_cursor(account, *cursor)

    # ------------------------------------------------------------------ people

    def people(self) -> tuple[PersonRow, ...]:
        """Everybody who is known, the newest first."""
        return tuple(sorted(self._people.values(), key=lambda row: -row.at))

    def rules_of(self, account: str) -> AccountRules:
        return self._rules[account]

    def standing_of(self, origin: ChatOrigin) -> Standing:
        """What the person of a message may do."""
        account = account_of(origin.address)
        known = self._people.get((account, origin.person.id))
        return standing(origin.person, self._rules[account].access, known)

    def _counts(self, link: LinkRow) -> bool:
        """Whether a joined account may talk: one that may not joins nothing."""
        rules = self._rules.get(link.account)
        person, known = ChatPerson(link.person, link.name, link.username), self._people.get((link.account, link.person))
        return rules is not None and standing(person, rules.access, known) is not Standing.STRANGER

    def pointed(self, change: PlaceChange) -> None:
        self._book.pointed(change)

    async def put_person(self, row: PersonRow) -> None:
        """Store what is known of a person."""
        await self._store.people.put(row)
        self._people[row.account, row.person] = row

    async def approve(self, code_or_id: str, by: str) -> PersonRow | None:
        """Let in who was shown this code, or has this id. None if there is nobody."""
        now = self._clock.now_ms()
        found = access.by_code(self.people(), code_or_id, now)
        found = found or next((row for row in self.people() if row.person == code_or_id.strip()), None)
        if found is None:
            return None
        row = access.approved(found, by, now)
        await self.put_person(row)
        log.info("access.approved", account=row.account, person=row.person, by=by)
        return row

    async def revoke(self, person: str, by: str) -> PersonRow | None:
        """Shut out who has this id. None if nobody is known by it."""
        found = next((row for row in self.people() if row.person == person.strip()), None)
        if found is None:
            return None
        row = access.revoked(found, by, self._clock.now_ms())
        await self.put_person(row)
        log.info("access.revoked", account=row.account, person=row.person, by=by)
        await self._people_commands.cut(await self._book.refresh())
        return row

    # ------------------------------------------------------------------ arrival

    async def receive(self, message: ChatMessage, cursor: tuple[str, str] | None) -> None:
        """See `adapters.contract.chat.ChatIntake`."""
        with _stored():
            await self._receive(storable(message), cursor)
        self._outage.over()

    def waits(self, message: ChatMessage, refused: NotAccepted) -> None:
        """See `adapters.contract.chat.ChatIntake`. Needs nothing of the storage, so that only a running queue tells whether a thread is one of ours."""
        message = storable(message)
        origin = message.origin
        rules = self._rules[account_of(origin.address)].of(origin.address.chat)
        takes_part = (
            bool(origin.address.thread) and self._hub.queues.known(session_of(origin, rules).text()) is not None
        )
        meant = meaning(message, rules, TYPED, takes_part=takes_part)
        if not isinstance(meant, Ignore) and self.standing_of(origin) is not Standing.STRANGER:
            self._outage.tell(origin, refused)

    async def _receive(self, message: ChatMessage, cursor: tuple[str, str] | None) -> None:
        origin = message.origin
        account = account_of(origin.address)
        rules = self._rules[account].of(origin.address.chat)
        own = session_of(origin, rules)
        takes_part = await self._store.sessions.by_key(own.text()) is not None if origin.address.thread else False
        said = meaning(message, rules, TYPED, takes_part=takes_part)
        if isinstance(said, Ignore):
            log.debug("chat.ignored", account=account, why=said.why)
            if cursor is not None:
                await self.skip(account, cursor)
            return
        try:
            await self._take(message, cursor, said, own)
        except (NotAccepted, StorageUnavailable) as error:
            if self.standing_of(origin) is not Standing.STRANGER:
                self._outage.tell(origin, error)
            raise

    async def _take(
        self, message: ChatMessage, cursor: tuple[str, str] | None, said: Command | Said, own: SessionKey
    ) -> None:
        """Store what concerns us."""
        origin = message.origin
        account = account_of(origin.address)
        rules = self._rules[account].of(origin.address.chat)
        text = said.words if isinstance(said, Command) else said.text
        await self._book.settle(own)
        known = await self._store.inbox.by_key(account, message.key)
        key = self._session(own, origin, known)
        inbound = Inbound(
            account=account,
            platform_key=message.key,
            session=key,
            input=(InputMessage(spoken(origin, text, rules) if isinstance(said, Said) else text),),
            surface=origin.address.platform,
            memory_scope=key.text(),
            can_approve=True,
            chat=origin,
        )
        refused = self._refusal(inbound, origin, known) or _unusable(origin, text)
        if refused is not None:
            await self._refuse(inbound, cursor, *refused)
            return
        await self._book.meet(own, origin)
        if message.edited:
            await self._edited(inbound, cursor, known)
        elif isinstance(said, Command):
            await self._command(inbound, said, cursor)
        else:
            await self._said(inbound, cursor)

    def _session(self, own: SessionKey, origin: ChatOrigin, stored: InboxRow | None) -> SessionKey:
        """The session of a message; a redelivery or an edit stays where the message was when it came first."""
        if stored is not None and origin.kind is ChatKind.PRIVATE:
            try:
                return inbox.decode(stored.body).session
            except inbox.UnreadableMessage:
                return own
        return self._book.session_of(own, origin)

    def _refusal(
        self, inbound: Inbound, origin: ChatOrigin, stored: InboxRow | None
    ) -> tuple[str, str, PersonRow | None] | None:
        """(reason, what is told, what is noted of the person), if the message is not taken."""
        account, person = inbound.account, origin.person
        now = self._clock.now_ms()
        if self.standing_of(origin) is Standing.STRANGER:
            known = self._people.get((account, person.id))
            pending = sum(p.state is PersonState.PENDING and p.code_until > now for p in self.people())
            rules = self._rules[account].access
            told = refuse(person, account, origin.kind, rules, known, pending, now, self._ids.seed())
            return "not allowed to talk", told.words, told.row
        if stored is not None:
            return None  # a redelivery, or an edit: it was counted when it came first
        steady = round(self._clock.monotonic() * 1000)
        recent, early = self._recent.get((account, person.id), Recent()).with_one(
            steady, self._rules[account].per_minute
        )
        while len(self._recent) >= KNOWN_RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[account, person.id] = recent
        if early:
            seconds = -(-early // 1000)
            return "too many messages", f"That was too fast for me. Please send it again in {seconds} s.", None
        return None

    async def _refuse(
        self, inbound: Inbound, cursor: tuple[str, str] | None, reason: str, words: str, row: PersonRow | None
    ) -> None:
        """Record a message that is not taken, and say so where that was not said before."""
        message = self._hub.accepting.new_message(inbound, REFUSED_LANE, self._clock.now_ms(), cursor, refused=reason)
        accepted = await self._hub.accepting.put(message)
        if cursor is not None and accepted.duplicate:
            await self.skip(inbound.account, cursor)
        if accepted.duplicate:
            return
        log.info("chat.refused", account=inbound.account, reason=reason, inbox=accepted.inbox_id)
        if row is not None:
            await self.put_person(row)
        if words:
            await self.say(inbound, accepted, words)

    async def say(self, inbound: Inbound, accepted: Accepted, words: str) -> None:
        """Say something about a stored message, where it came from."""
        assert inbound.chat is not None
        queue = await self._hub.accepting.owned(inbound.session.text(), accepted.session, accepted.epoch)
        content = Content(ContentKind.ASIDE, Styled(words), reply_to=inbound.chat.reply_to)
        owner = Owner(accepted.session, queue.epoch)
        await self._outbox.words.say(inbound.chat.address, owner, f"inbox:{accepted.inbox_id}", content)
        self._hub.queues.release(queue)

    async def _said(self, inbound: Inbound, cursor: tuple[str, str] | None) -> None:
        try:
            ticket = await self._hub.accepting.accept(inbound, cursor=cursor)
        except NotAccepted as refused:
            if refused.code.passes or refused.code is NotAcceptedCode.OTHER_CONTENT:
                raise
            if refused.code is NotAcceptedCode.QUOTA and carried_bytes(inbound):
                await self._said(without_files(inbound, str(refused)), cursor)
                return
            await self._refuse(inbound, cursor, refused.code.value, str(refused), None)
            return
        if ticket.duplicate and cursor is not None:
            await self.skip(inbound.account, cursor)
        if not ticket.duplicate:
            await self.announce(inbound, ticket.inbox_id, ticket.session)

    async def announce(self, inbound: Inbound, inbox_id: int, session: str) -> None:
        """Tell what is to be told of a message that was taken: its place in the queue, what of it cannot be used."""
        queue = self._hub.queues.known(inbound.session.text())
        if queue is None or inbound.chat is None:
            return
        position = queue.position(inbox_id)
        address, to = inbound.chat.address, inbound.chat.reply_to
        line = self._hub.places.long_wait(queue) if position == 1 and queue.running is None else 0
        if position is not None and (line or queue.running is not None):
            told = line_words(line) if line else queued_words(position)
            queued = Content(ContentKind.ASIDE, Styled(told), reply_to=to, silent=True)
            await self._outbox.words.say(address, Owner(session, queue.epoch), queue_origin(inbox_id), queued)
        words = [OTHER_WORDS.format(what=a.name) for a in inbound.chat.attachments if a.kind is AttachmentKind.OTHER]
        if words:
            contents = [Content(ContentKind.ASIDE, Styled(w), reply_to=to, silent=True) for w in words]
            await self._outbox.words.say(address, Owner(session, queue.epoch), f"inbox:{inbox_id}", *contents)

    async def _edited(self, inbound: Inbound, cursor: tuple[str, str] | None, stored: InboxRow | None) -> None:
        """A message that still waits gets its new words and files; one that is answered already keeps the old ones."""
        quotas, now = self._hub.quotas, self._clock.now_ms()
        charges = await quotas.for_files(inbound, now) if quotas is not None else ()
        account, name = inbound.account, inbound.platform_key
        try:
            changed = await self._store.inbox.reword(account, name, inbox.encode(inbound), charges, now)
        except NoRoomToday as error:
            assert quotas is not None
            words = str(quotas.refusal(inbound, error, now))
            before = None
            with suppress(inbox.UnreadableMessage):
                before = inbox.decode(stored.body) if stored is not None else None
            inbound = without_files(inbound, words, before)
            changed = await self._store.inbox.reword(account, name, inbox.encode(inbound))
        if changed:
            queue = self._hub.queues.known(inbound.session.text())
            if queue is not None:
                queue.reword(inbound)
        if cursor is not None:
            await self.skip(inbound.account, cursor)
        log.info("chat.edited", account=inbound.account, taken=changed)

    async def _command(self, inbound: Inbound, command: Command, cursor: tuple[str, str] | None) -> None:
        accepted, _ = await self.take_command(inbound, command, cursor)
        if accepted.duplicate and cursor is not None:
            await self.skip(inbound.account, cursor)

    async def take_command(
        self, inbound: Inbound, command: Command, cursor: tuple[str, str] | None = None, claim: Claimed | None = None
    ) -> tuple[Accepted, asyncio.Task[None] | None]:
        """Store a command (with the occurrence that it stands for) and begin to carry it out, unless it was known.

        Raises `StorageUnavailable`; `Conflict` if the occurrence was claimed before.
        """
        stored = replace(inbound, input=(InputMessage(f"/{command.name} {command.words}".strip()),))
        now = self._clock.now_ms()
        message = replace(self._hub.accepting.new_message(stored, COMMAND_LANE, now, cursor), claim=claim)
        accepted = await self._hub.accepting.put(message)
        if accepted.duplicate:
            return accepted, None
        queue = await self._hub.accepting.owned(inbound.session.text(), accepted.session, accepted.epoch)
        return accepted, self._begin(stored, accepted.inbox_id, Owner(accepted.session, queue.epoch), now)

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts (``platform/bot``) that are there."""
        return tuple(self._rules)

    def _begin(self, inbound: Inbound, inbox_id: int, owner: Owner, received_at: int) -> asyncio.Task[None]:
        assert inbound.chat is not None
        written = str(inbound.input[0].content).removeprefix("/")
        name, _, words = written.partition(" ")
        admin = self.standing_of(inbound.chat) is Standing.ADMIN
        own = session_of(inbound.chat, self._rules[inbound.account].of(inbound.chat.address.chat))
        request = Request(BY_NAME[name], words, inbound, inbound.chat, inbox_id, owner, admin, own, received_at)
        task = self.commands_of.begin(request)
        if request.command.name == "resume" or (request.command.name == "new" and request.visiting):
            self._book.switching(own, task)
        return task

    # what the keeper takes up (gateway.recovery.keeper.Commands)

    def carries_out(self, inbox_id: int) -> bool:
        return inbox_id in self.commands_of.under_way

    def can_carry_out(self, inbound: Inbound) -> bool:
        return inbound.account in self._rules and inbound.chat is not None

    def carry_out(self, row: InboxRow, inbound: Inbound, owner: Owner) -> None:
        self._begin(inbound, row.id, owner, row.received_at)

    async def submit(self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None) -> int:
        """Take in words that a command or a button stands for; the number of the message."""
        assert inbound.chat is not None
        rules = self._rules[inbound.account].of(inbound.chat.address.chat)
        said = replace(inbound, platform_key=key, input=(InputMessage(spoken(inbound.chat, text, rules)),))
        ticket = await self._hub.accepting.accept(said, busy=busy)
        if not ticket.duplicate:
            await self.announce(said, ticket.inbox_id, ticket.session)
        return ticket.inbox_id

    async def moved(self, platform: str, account: str, old_chat: str, new_chat: str) -> None:
        """See `adapters.contract.chat.ChatIntake`."""
        await move_chat(self._store, self._hub.queues, self._outbox, ChatAddress(platform, account, old_chat), new_chat)


async def move_chat(store: Store, queues: Queues, outbox: Outbox, old: ChatAddress, new_chat: str) -> None:
    """A chat has another id: what is stored, what is queued and what is shown go on under it."""
    platform, account, old_chat = old.platform, old.account, old.chat
    if old_chat == new_chat:
        return  # a platform that says so says nothing
    log.info("chat.moved", account=f"{platform}/{account}", old=old_chat, new=new_chat)
    with _stored():
        await store.sessions.move_chat(f"{platform}/{account}/", old_chat, new_chat)
    queues.move(platform, account, old_chat, new_chat)
    outbox.surfaces.move(platform, account, old_chat, new_chat)


@contextmanager
def _stored() -> Generator[None]:
    """What cannot be stored just now is not accepted."""
    try:
        yield
    except StorageUnavailable as error:
        raise not_stored(error) from error


def _unusable(origin: ChatOrigin, text: str) -> tuple[str, str, None] | None:
    """A message of nothing but what nobody here can take, such as a voice message."""
    others = [one for one in origin.attachments if one.kind is AttachmentKind.OTHER]
    if text.strip() or not others or len(others) < len(origin.attachments):
        return None
    return "nothing in it can be taken", OTHER_WORDS.format(what=others[0].name), None


def account_of(address: ChatAddress) -> str:
    """The account's name in the store."""
    return f"{address.platform}/{address.account}"
