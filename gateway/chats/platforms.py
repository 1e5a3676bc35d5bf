"""The chat platforms that are configured: built, supervised, and put together with intake and outbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog
from aiohttp import web

from adapters.contract.chat import (
    AdapterSight,
    ChatAddress,
    ChatOrigin,
)
from adapters.contract.platforms import ChatSection
from adapters.platforms import found
from agent_core.ports import Clock, Ids
from agent_core.signals import Tell
from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import Store
from gateway.chats import access
from gateway.chats.adapterlog import AdapterLog
from gateway.chats.arrival import AccountRules, Arrivals, move_chat
from gateway.chats.operators import OperatorsChat
from gateway.chats.routing import Command, GroupRules
from gateway.chats.supervisor import State, Supervisor
from gateway.chats.where import Where
from gateway.cli.context import CannotServe
from gateway.commands.files import files_command
from gateway.commands.timed import Post, TimedCommands, encode_post, post_inbound
from gateway.config.sections import Config
from gateway.delivery.accounts import Account
from gateway.delivery.forming import Forming
from gateway.delivery.outbox import Outbox
from gateway.schedule.scheduler import Scheduler, zone_in_force
from gateway.sessions import inbox
from gateway.sessions.hub import Hub
from gateway.sessions.queues import Queues

log = structlog.get_logger("delivery")


@dataclass(frozen=True, slots=True)
class Platforms:
    """All chat platforms of a running gateway."""

    arrivals: Arrivals
    outbox: Outbox
    supervisors: tuple[Supervisor, ...]
    where: Where
    scheduler: Scheduler
    operators: OperatorsChat | None
    states: AdapterLog

    def sights(self) -> tuple[AdapterSight, ...]:
        """How they are doing."""
        counts = self.arrivals.unread.counts
        sights = (supervisor.sight() for supervisor in self.supervisors)
        return tuple(replace(sight, unread=counts.get(sight.name, 0)) for sight in sights)

    def names(self) -> tuple[str, ...]:
        """Which platforms there are, each once."""
        return tuple(dict.fromkeys(one.adapter.name.partition("/")[0] for one in self.supervisors))

    def routes(self) -> list[web.RouteDef]:
        """What platforms call at our server."""
        return [route for supervisor in self.supervisors for route in supervisor.adapter.routes()]


def account_rules(section: ChatSection) -> AccountRules:
    """What a section says about its account."""
    return AccountRules(
        access=access.rules(section.allow, section.admins, open_to_all=section.open, pairing=section.pairing),
        groups=GroupRules(section.groups, section.by_person),
        chats={chat: GroupRules(respond, section.by_person) for chat, respond in section.chats.items()},
        per_minute=section.per_minute,
    )


def chat_outbox(store: Store, queues: Queues, forming: Forming, seed: int, clock: Clock, tell: Tell) -> Outbox:
    """The outbox of all chats. What it learns of a chat's new id goes to store and queues."""

    async def moved(address: ChatAddress, new_chat: str) -> None:
        await move_chat(store, queues, outbox, address, new_chat)

    outbox = Outbox(store, clock, seed, tell, forming=forming, asker_of=partial(asker_of, store), moved=moved)
    return outbox


@asynccontextmanager
async def platforms(
    config: Config, hub: Hub, outbox: Outbox, store: Store, clock: Clock, ids: Ids
) -> AsyncGenerator[Platforms]:
    """The outbox at work for the block, the intake, and an adapter for each platform that is configured. Nothing is received before `started`."""
    async with AsyncExitStack() as stack:
        arrivals = Arrivals(hub, store, outbox, clock, ids, link=config.people.link)
        await arrivals.open()
        for one in found().broken:
            log.error("platform.not_usable", name=one.name, words=one.words)
        built = [(section.build(arrivals, clock), account_rules(section)) for _, section in config.chats()]
        for one, _ in built:
            await stack.enter_async_context(one.adapter.opened())
        await stack.enter_async_context(outbox)
        supervisors: list[Supervisor] = []
        states = AdapterLog(store)
        for one, rules in built:
            platform, account = one.adapter.name.split("/")
            arrivals.add_account(one.adapter.name, rules)
            outbox.open_account(platform, account, Account(one.adapter.port, one.account_rate, one.chat_rate))
            outbound = _outbound(outbox, platform, account)
            supervisor = Supervisor(one.adapter, clock, outbound, outbox.chance.random, _noting(states, arrivals))
            supervisors.append(supervisor)
            arrivals.unread.again[one.adapter.name] = (supervisor.is_up, one.adapter.again)
        _connect(arrivals)
        await stack.enter_async_context(arrivals.commands_of)
        _check_entries(config, arrivals)
        where = Where(arrivals, outbox)
        zone = zone_in_force(config.schedule)
        scheduler = Scheduler(config.schedule, zone, store, hub, arrivals, clock, where.find)
        timed = TimedCommands(hub, store, outbox, arrivals, clock, zone, config.quota.reminders)
        arrivals.commands_of.add(timed.handlers())
        arrivals.commands_of.add({"files": files_command(hub)})
        arrivals.commands_of.on_scheduled = scheduler.wake
        operators = OperatorsChat(config.operators.chat, where, arrivals) if config.operators.chat else None
        yield Platforms(arrivals, outbox, tuple(supervisors), where, scheduler, operators, states)


def _check_entries(config: Config, arrivals: Arrivals) -> None:
    """Raises `CannotServe` if a scheduled prompt is for a platform that is not there: it would never happen, in silence."""
    there = {account.partition("/")[0] for account in arrivals.accounts}
    for entry in config.schedule.entries:
        platform = entry.chat.partition("/")[0]
        if platform not in there:
            raise CannotServe(
                f"[schedule] the entry {entry.name!r} is for a chat on {platform}, and no {platform} account is configured. "
                f"Set its token in [{platform}], or take the entry out."
            )


@asynccontextmanager
async def started(running: Platforms) -> AsyncGenerator[None]:
    """The adapters receive for the block; at its end they receive no more."""
    async with running.states.kept(), running.arrivals.unread.running():
        tasks = [asyncio.create_task(s.run(), name=f"adapter {s.adapter.name}") for s in running.supervisors]
        tasks.append(asyncio.create_task(running.scheduler.run(), name="scheduler"))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _noting(states: AdapterLog, arrivals: Arrivals) -> Callable[[AdapterStateRow], None]:
    def note(row: AdapterStateRow) -> None:
        states.note(row)
        if row.state == State.UP.value:
            arrivals.unread.wake()  # what waits for this adapter can be tried

    return note


def _outbound(outbox: Outbox, platform: str, account: str) -> Callable[[], float | None]:
    return lambda: outbox.accounts.outbound_age(platform, account)


def _connect(arrivals: Arrivals) -> None:
    async def tell_person(address: ChatAddress, key: str, words: str) -> None:
        await arrivals.take_command(post_inbound(address, key, key), Command("post", encode_post(Post(words))))

    arrivals.unread.tell = tell_person


async def asker_of(store: Store, origin: str) -> ChatOrigin | None:
    """Who asked for what a delivery's origin stands for: a turn, or ``inbox:<number>``."""
    kind, _, number = origin.partition(":")
    if kind == "inbox" and number.isdigit():
        row = await store.inbox.one(int(number))
    else:
        row = next(iter(await store.inbox.inputs(origin)), None)
    return inbox.decode(row.body).chat if row is not None else None
