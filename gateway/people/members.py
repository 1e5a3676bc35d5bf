"""Who may talk to us, in which account: what the configuration says of accounts, and what is stored of people.

Everybody who is known is in memory, as they are stored. Decisions are in `gateway.people.access`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field

import structlog

from adapters.contract.base import FromChat
from adapters.contract.chat import ChatAddress, ChatOrigin, ChatPerson
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.store.people.rows import LinkRow, PersonRow, PersonState, PlaceRow
from agent_core.store.store import Store
from agent_core.text.tongue import speak
from gateway.people import access
from gateway.people.access import AccessRules, PersonStanding, Recent, refuse, standing
from gateway.people.directory import PeopleDirectory, read_now
from gateway.people.routing import GroupRules

log = structlog.get_logger("chat")

KNOWN_RECENT = 10_000
"""Most people whose speed is remembered."""


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


HELD_MOST = 5
"""So many messages of a person that came too fast are kept, and so many of a conversation for which there is no room."""


@dataclass(frozen=True, slots=True)
class MemberRefused:
    """A message is not taken."""

    reason: str
    words: str
    """What is told; empty: nothing."""
    person: PersonRow | None = None
    """What is noted of the person."""
    known: PersonRow | None = None
    """As what they were known then."""
    later_ms: int = 0
    """It is kept, and run in so many milliseconds; 0: it is not."""


class Members:
    """`changed` is told that something is stored otherwise. `cut` stops and tells what was asked in these places of conversations that they do not reach any more. `link`: people may join their
    accounts."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        cut: Callable[[Sequence[PlaceRow]], Awaitable[None]],
        *,
        link: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._cut = cut
        self._rules: dict[str, AccountRules] = {}
        self._people: dict[tuple[str, str], PersonRow] = {}
        self._pending: dict[tuple[str, str], int] = {}
        """Until when the codes count that strangers were shown. Of all people, who may be many, nobody looks through them for that."""
        self._recent: dict[tuple[str, str], Recent] = {}
        self._changed, self._puts = changed, 0
        self.told: Callable[[str, str, str], None] = lambda _account, _person, _key: None
        """Has other gateways count a message as well: its account, its person, and its key."""
        self.directory = PeopleDirectory(store, clock, ids, self._counts, changed, allowed=link)

    async def open(self) -> None:
        """Learn who is known."""
        await self._read()
        await self.directory.open()

    async def _read(self) -> None:
        for row in await read_now(self._store.people.all, lambda: self._puts):
            self._know(row)

    def _know(self, row: PersonRow) -> None:
        who = row.account, row.person
        self._people[who] = row
        self._pending.pop(who, None)
        if row.state is PersonState.PENDING:
            self._pending[who] = row.code_until

    async def learn(self) -> None:
        """The same again, where others may have changed it. Whoever may not talk any more is cut off here as well."""
        await self._read()
        parted = await self.directory.refresh()  # while it is known what went on where: in the store it does no more
        await self.directory.open()
        await self._cut(parted)

    # ------------------------------------------------------------------ accounts

    def add_account(self, account: str, rules: AccountRules) -> None:
        """Messages of this account (``platform/bot``) are taken from now on."""
        self._rules[account] = rules

    @property
    def accounts(self) -> tuple[str, ...]:
        """The accounts (``platform/bot``) that are there."""
        return tuple(self._rules)

    def rules_of(self, address: ChatAddress) -> GroupRules:
        """What counts in a chat."""
        return self._rules[account_of(address)].of(address.chat)

    def allowed(self, account: str) -> list[str]:
        """Ids of those who may talk, as far as they are known."""
        return access.listed(self.people(), self._rules[account].access, account)

    # ------------------------------------------------------------------ people

    def people(self) -> tuple[PersonRow, ...]:
        """Everybody who is known, the newest first."""
        return tuple(sorted(self._people.values(), key=lambda row: -row.at))

    async def everybody(self) -> list[PersonRow]:
        """Everybody whom an operator can name. Raises `StorageUnavailable`."""
        return await everybody_of(self._store, self.people())

    def standing(self, account: str, person: ChatPerson) -> PersonStanding:
        """What a person may do."""
        return standing(person, self._rules[account].access, self._people.get((account, person.id)))

    def standing_of(self, origin: ChatOrigin) -> PersonStanding:
        """The same, of the person of a message."""
        return self.standing(account_of(origin.address), origin.person)

    def _counts(self, link: LinkRow) -> bool:
        """Whether a joined account may talk: one that may not joins nothing."""
        person = ChatPerson(link.person, link.name, link.username)
        return link.account in self._rules and self.standing(link.account, person) is not PersonStanding.STRANGER

    def refusal(self, inbound: FromChat, *, free: bool, said_at: int = 0) -> MemberRefused | None:
        """Why a message is not taken. One that is `free` may come as fast as it likes: a redelivery or an edit, which was counted when it came first, and `/stop`.
        One that could not be stored is brought again, and not counted again; the pieces of an album are one. It counts when it was said: what was
        said over hours comes at once after an outage."""
        account, origin, person = inbound.account, inbound.chat, inbound.chat.person
        now = self._clock.now_ms()
        if self.standing_of(origin) is PersonStanding.STRANGER:
            known = self._people.get((account, person.id))
            self._pending = {who: until for who, until in self._pending.items() if until > now}
            rules, pending = self._rules[account].access, sum(where == account for where, _ in self._pending)
            told = refuse(person, account, origin.kind, rules, known, pending, now, self._ids.seed())
            return MemberRefused("not allowed to talk", told.words, told.row, known)
        if free:
            return None
        steady = round(self._clock.monotonic() * 1000)
        at = steady - max(0, now - said_at) if said_at else steady
        limit, known = self._rules[account].per_minute, self._recent.get((account, person.id), Recent())
        key = _counted_as(origin, inbound.platform_key)
        recent, early = known.with_one(at, limit, key, steady)
        later = 0
        if early:
            recent, later = known.with_one_later(at, limit, HELD_MOST, key, steady)
        self._remember(account, person.id, recent)
        if later or not early:
            self.told(account, person.id, key)
        if early:
            seconds = -(-early // 1000)
            return MemberRefused(
                "too many messages",
                speak("That was too fast for me. Please send it again in {seconds} s.", seconds=seconds),
                later_ms=later,
            )
        return None

    def has_counted(self, origin: ChatOrigin, key: str) -> bool:
        """A message came here before, within a minute."""
        recent = self._recent.get((account_of(origin.address), origin.person.id), Recent())
        return recent.has(_counted_as(origin, key))

    def not_counted(self, origin: ChatOrigin, key: str) -> None:
        """A message that was counted proved to be a redelivery: it was counted when it came first."""
        account, person = account_of(origin.address), origin.person.id
        recent = self._recent.get((account, person), Recent())
        self._remember(account, person, recent.without(_counted_as(origin, key)))

    def met(self, account: str, person: str, key: str) -> None:
        """Another gateway has taken a message of theirs."""
        if (rules := self._rules.get(account)) is not None:
            known, now = self._recent.get((account, person), Recent()), round(self._clock.monotonic() * 1000)
            self._remember(account, person, known.with_one(now, rules.per_minute, key)[0])

    def _remember(self, account: str, person: str, recent: Recent) -> None:
        while len(self._recent) >= KNOWN_RECENT:
            del self._recent[next(iter(self._recent))]
        self._recent[account, person] = recent

    async def noted(self, origin: ChatOrigin, refused: MemberRefused) -> str:
        """Store what is noted of whose message was refused; what they are told. Whoever was decided about meanwhile stays so."""
        row = refused.person
        if row is None:
            return refused.words
        if self._people.get((row.account, row.person)) == refused.known:
            await self.put(row)
            return refused.words
        if self.standing_of(origin) is PersonStanding.STRANGER:
            return ""
        return speak("You were let in just as this came, so it was not taken. Please send it again.")

    async def put(self, row: PersonRow) -> None:
        """Store what is known of a person."""
        await self._store.people.put(row)
        self._know(row)
        self._puts += 1
        self._changed()

    async def approve(self, code_or_id: str, by: str) -> PersonRow | None:
        """Let in who was shown this code, or has this id. None if there is nobody."""
        now = self._clock.now_ms()
        found = access.to_approve(self.people(), code_or_id, now)
        if found is None:
            return None
        row = access.approved(found, by, now)
        await self.put(row)
        log.info("access.approved", account=row.account, person=row.person, by=by)
        return row

    async def revoke(self, person: str, by: str) -> PersonRow | None:
        """Shut out who has this id. None if nobody is known by it. Raises `LetInElsewhere`."""
        found = access.to_revoke(await self.everybody(), person)
        if found is None:
            return None
        row = access.revoked(found, by, self._clock.now_ms())
        await self.put(row)
        log.info("access.revoked", account=row.account, person=row.person, by=by)
        await self._cut(await self.directory.refresh())
        return row


async def everybody_of(store: Store, decided: Sequence[PersonRow]) -> list[PersonRow]:
    """Everybody whom an operator can name, with those who asked something: by a key, a proxy, a configured list, or because all may."""
    from gateway.people.keyring import readable

    owners = {known.terms.owner for row in await store.apikeys.all() if (known := readable(row)) is not None}
    return await asyncio.to_thread(access.everybody, decided, await store.people.spoke(), owners)


def _counted_as(origin: ChatOrigin, key: str) -> str:
    """The pieces of an album are one message."""
    return f"{origin.address.chat}:{origin.group}" if origin.group else key


def account_of(address: ChatAddress) -> str:
    """The account's name in the store."""
    return f"{address.platform}/{address.account}"
