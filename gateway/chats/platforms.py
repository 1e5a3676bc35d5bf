"""The chat platforms that are configured: built, supervised, and put together with intake and outbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache, partial

import structlog
from aiohttp import web

from adapters.contract.chat import (
    AdapterSight,
    ChatAddress,
    ChatOrigin,
)
from adapters.contract.platforms import Built, ChatSection
from adapters.contract.supervision import SeveralConnections
from adapters.platforms import found
from agent_core.bell import Bell
from agent_core.beside import kept_up, loaded
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.signals import Signals
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.people.rows import PlaceRow
from agent_core.store.slices.rows import HOUSE
from agent_core.store.store import Store
from gateway.chats.arrival import Arrivals, move_chat
from gateway.chats.commandintake import CommandIntake
from gateway.chats.scheduler import Scheduler, zone_in_force
from gateway.chats.supervisor import AdapterLog, AdapterState, Supervisor
from gateway.chats.unread import TakesAgain, UnreadBox, UnreadTries
from gateway.chats.where import OperatorsChat, Where
from gateway.commands.carrying import ChatCommands, Handler, Request
from gateway.commands.messages import Messages
from gateway.config.sections import Config
from gateway.delivery.accounts import PlatformAccount
from gateway.delivery.forming import Forming
from gateway.delivery.ledger import PartHooks
from gateway.delivery.outbox import Outbox
from gateway.later.followups import FollowUpsHere
from gateway.later.parts import LaterParts
from gateway.later.tasks import Tasks
from gateway.limits.quotas import Quotas
from gateway.people import access
from gateway.people.members import AccountRules, Members
from gateway.people.routing import GroupRules
from gateway.queues import inbox
from gateway.queues.languages import LanguageRules, Languages
from gateway.queues.queues import Queues
from gateway.sessions.hub import Hub
from gateway.sharing.portion import DUE, PEOPLE, AccountConnections, Portion
from gateway.shell.background import BackgroundCommands
from gateway.storage.damage import DamageMet

log = structlog.get_logger("delivery")


@dataclass(frozen=True, slots=True)
class Platforms:
    """All chat platforms of a running gateway."""

    members: Members
    commands: CommandIntake
    unread: UnreadBox
    tries: UnreadTries
    outbox: Outbox
    supervisors: tuple[Supervisor, ...]
    where: Where
    scheduler: Scheduler
    operators: OperatorsChat | None
    states: AdapterLog
    messages: Messages

    def sights(self) -> tuple[AdapterSight, ...]:
        """How they are doing."""
        counts = self.unread.counts
        sights = (supervisor.sight() for supervisor in self.supervisors)
        return tuple(replace(sight, unread=counts.get(sight.name, 0)) for sight in sights)

    def names(self) -> tuple[str, ...]:
        """Which platforms there are, each once."""
        return tuple(dict.fromkeys(one.adapter.name.partition("/")[0] for one in self.supervisors))

    def routes(self) -> list[web.RouteDef]:
        """What platforms call at our server."""
        return [route for supervisor in self.supervisors for route in supervisor.adapter.routes()]


def amiss_words(name: str, section: ChatSection) -> str:
    """Why a bot cannot be tried with its settings; empty if it can."""
    found = section.amiss
    return f"[{name}] {found.what}. {found.fix}" if found is not None else ""


def account_rules(section: ChatSection) -> AccountRules:
    """What a section says about its account."""
    return AccountRules(
        access=access.rules(section.allow, section.admins, open_to_all=section.open, pairing=section.pairing),
        groups=GroupRules(section.groups, section.by_person),
        chats={chat: GroupRules(respond, section.by_person) for chat, respond in section.chats.items()},
        per_minute=section.per_minute,
    )


def language_rules(config: Config) -> LanguageRules:
    """In which language the operator wants people to be spoken to."""
    chats = [(platform.name, section) for platform, section in config.chats()]
    return LanguageRules(
        config.session.language,
        {name: section.language for name, section in chats if section.language},
        {(name, chat): language for name, section in chats for chat, language in section.languages.items()},
    )


def chat_outbox(
    store: Store,
    queues: Queues,
    forming: Forming,
    ids: Ids,
    clock: Clock,
    signals: Signals,
    damage: DamageMet,
    hooks: PartHooks,
    portion: Portion,
    quotas: Quotas,
) -> Outbox:
    """The outbox of all chats. What is learned of a chat's new id goes to store, queues and files."""

    async def moved(address: ChatAddress, new_chat: str) -> None:
        await move_chat(store, queues, outbox, quotas.move, address, new_chat)

    outbox = Outbox(
        store,
        clock,
        ids.seed(),
        signals.tell,
        forming=forming,
        asker_of=partial(asker_of, store),
        moved=moved,
        damage=damage,
        hooks=hooks,
        comes_first=portion.comes_first,
    )
    return outbox


@asynccontextmanager
async def platforms(
    config: Config,
    hub: Hub,
    outbox: Outbox,
    store: Store,
    clock: Clock,
    ids: Ids,
    follow_ups: FollowUpsHere,
    tasks: Tasks,
    background: BackgroundCommands | None = None,
) -> AsyncGenerator[Platforms]:
    """The outbox at work for the block, the intake, and an adapter for each platform that is configured. Nothing is received before `started`."""
    async with AsyncExitStack() as stack:
        members = await _members(config, hub, outbox, store, clock, ids)
        zone, due = zone_in_force(config.schedule), Bell()
        more_due = hub.portion.at_house(DUE, due.ring)
        languages = Languages(language_rules(config), hub.queues, store)
        messages = Messages(hub.accepting, hub.stopping, members, outbox, hub.quotas, store, clock, languages)
        handlers = _handlers(config, hub, members, messages, outbox, store, clock, zone, tasks, background)
        carrying = ChatCommands(
            handlers, store, outbox, clock, members.directory.pointed, more_due, hub.queues.forget_memory,
            partial(_on_page, hub), languages, hub.stopping.taken_up,
        )  # fmt: skip
        commands = CommandIntake(hub.accepting, members, carrying, clock)
        messages.open(commands)
        unread, ways = UnreadBox(store, clock), dict[str, TakesAgain]()
        arrivals = Arrivals(
            members,
            messages,
            commands,
            unread,
            hub.queues,
            outbox,
            store,
            clock,
            agents=bool(hub.doors.standings.agents),
            several=not hub.portion.whole,
            languages=languages,
        )
        for one in found().broken:
            log.error("platform.not_usable", name=one.name, words=one.words)
        built = [(section.build(arrivals, clock), name, section) for name, section in config.chats()]
        for one, _, _ in built:
            await stack.enter_async_context(one.adapter.opened())
        await stack.enter_async_context(outbox)
        supervisors: list[Supervisor] = []
        states = AdapterLog(store)
        for one, name, section in built:
            members.add_account(one.adapter.name, account_rules(section))
            supervisor = _supervisor(one, _noting(states, unread), amiss_words(name.name, section), outbox, clock)
            if isinstance(one.adapter, SeveralConnections):
                one.adapter.held = AccountConnections(hub.portion, supervisor.slices, store.ownership)
            supervisors.append(supervisor)
            ways[one.adapter.name] = TakesAgain(supervisor.is_up, one.adapter.again)
        await stack.enter_async_context(carrying)
        where = Where(members, outbox, config.send.chats)
        scheduler = Scheduler(
            config.schedule, zone, store, hub.accepting, members, commands, due, clock, where.find, follow_ups.offered
        )
        parts = LaterParts(
            hub.accepting, members, outbox, commands.post, commands.post_on_page, commands.alone, hub.follow, hub.stop_message, more_due, where.find_allowed,
        )  # fmt: skip
        follow_ups.later.open(parts)
        operators = OperatorsChat(config.operators.chat, where, commands) if config.operators.chat else None
        tries = UnreadTries(unread, ways, store, clock, commands.post)
        yield Platforms(
            members, commands, unread, tries, outbox, tuple(supervisors), where, scheduler, operators, states, messages
        )


def _supervisor(
    one: Built, note: Callable[[AdapterStateRow], None], amiss: str, outbox: Outbox, clock: Clock
) -> Supervisor:
    """What keeps an account connected."""
    platform, account = one.adapter.name.split("/")
    outbox.open_account(platform, account, PlatformAccount(one.adapter.port, one.account_rate, one.chat_rate))
    made = Supervisor(one.adapter, clock, _outbound(outbox, platform, account), outbox.chance.random, note, amiss)
    outbox.accounts.on_failing(platform, account, missed=made.missed, shut_out=made.shut_out)
    return made


def _handlers(
    config: Config,
    hub: Hub,
    members: Members,
    messages: Messages,
    outbox: Outbox,
    store: Store,
    clock: Clock,
    zone: str,
    tasks: Tasks,
    background: BackgroundCommands | None,
) -> Callable[[], Awaitable[Mapping[str, Handler]]]:
    """What carries out each command; loaded when the first one is given."""

    @cache
    def made() -> Mapping[str, Handler]:
        from gateway.chats.handlers import handlers_of

        return handlers_of(config, hub, members, messages, outbox, store, clock, zone, tasks, background)

    async def handlers() -> Mapping[str, Handler]:
        await loaded("gateway.chats.handlers")
        return made()

    return handlers


def _on_page(hub: Hub, request: Request, words: list[str], undone: str) -> None:
    from gateway.chats.onpage import show_on_page  # few ask for it

    show_on_page(hub.queues, request, words, undone)


async def _members(config: Config, hub: Hub, outbox: Outbox, store: Store, clock: Clock, ids: Ids) -> Members:
    cut, changed = partial(_cut_off, hub, outbox), partial(_have_heard, hub.portion)
    members = Members(store, clock, ids, cut, link=config.people.link, changed=changed)
    await members.open()
    return members


async def _cut_off(hub: Hub, outbox: Outbox, places: Sequence[PlaceRow]) -> None:
    from gateway.commands.conversation import cut_off  # few are shut out

    await cut_off(hub.stopping, outbox, places)


def _have_heard(portion: Portion) -> None:
    """Others read anew who may talk."""
    portion.tell(PEOPLE)


@asynccontextmanager
async def started(running: Platforms, portion: Portion) -> AsyncGenerator[None]:
    """The adapters receive for the block, those whose connections are ours to hold; at its end they receive no more."""
    async with running.states.kept(), running.tries.running():
        tasks = [
            asyncio.create_task(
                portion.while_had(s.slices, s.run if portion.whole else s.run_watched, s.stand),
                name=f"adapter {s.adapter.name}",
            )
            for s in running.supervisors
        ]
        scheduler = kept_up(partial(portion.while_had, HOUSE, running.scheduler.run), "scheduler")
        tasks.append(asyncio.create_task(scheduler, name="scheduler"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _noting(states: AdapterLog, unread: UnreadBox) -> Callable[[AdapterStateRow], None]:
    def note(row: AdapterStateRow) -> None:
        states.note(row)
        if row.state == AdapterState.UP.value:
            unread.bell.ring()  # what waits for this adapter can be tried

    return note


def _outbound(outbox: Outbox, platform: str, account: str) -> Callable[[], float | None]:
    return lambda: outbox.accounts.outbound_age(platform, account)


async def asker_of(store: Store, origin: str) -> ChatOrigin | None:
    """Who asked for what a delivery's origin stands for: a turn, or ``inbox:<number>``."""
    kind, _, number = origin.partition(":")
    if kind == "inbox" and number.isdigit():
        row = await store.inbox.one(int(number))
    else:
        row = next(iter(await store.inbox.inputs(origin)), None)
    return inbox.chat_of(row.body) if row is not None else None
