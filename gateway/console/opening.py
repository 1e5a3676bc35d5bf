"""The operators' console, put together when somebody first looks: a gateway that nobody watches needs nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent_core.jsonvalue import Json
from agent_core.ports import Clock, SystemIds
from agent_core.store.store import Store
from gateway.chats.platforms import Platforms
from gateway.config.operatorkey import operator_key_of
from gateway.config.reading import redactor_of
from gateway.config.sections import Config
from gateway.console.access import Access
from gateway.console.acting import Acting
from gateway.console.looking import Board, Sources
from gateway.console.naming import Names
from gateway.console.reading import TextReading
from gateway.console.server import Console
from gateway.console.turns import ConsoleTurns
from gateway.conversations.sights import SessionSights
from gateway.sessions.hub import Hub
from gateway.version import program_version


def console(
    config: Config, hub: Hub, store: Store, clock: Clock, ids: SystemIds, chats: Platforms, servers: Callable[[], Sequence[Json]]
) -> Console:  # fmt: skip
    """The operators' console."""
    server, redactor, names = config.server, redactor_of(config), Names(store)
    sources = Sources(
        store,
        hub,
        chats.outbox,
        chats.sights,
        config.budgets.rules(),
        clock,
        redactor,
        program_version(),
        names,
        servers,
    )
    access = Access(operator_key_of(config), behind_proxy=bool(server.public_url))
    acting = Acting(store, chats.outbox, chats.where, hub.portion, clock, ids)
    reading = TextReading(store, SessionSights(store, hub.queues, clock), names, clock, ids)
    return Console(Board(sources), ConsoleTurns(store, hub, clock, redactor, names), acting, reading, access, clock)
