"""The doors: the one HTTP server, with everything that it serves."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cache, partial
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from adapters.http import sessions
from adapters.http.api.surface import ApiSettings, OpenAiApi
from adapters.http.behindproxy import BehindProxy
from adapters.http.routes import Handler, HttpRoute, later
from adapters.http.sealing import Seals
from adapters.http.web import WebChat, WebSettings
from adapters.http.written.highlighting import highlighted
from agent_core.jsonvalue import Json
from agent_core.ports import Clock, SystemIds
from agent_core.signals import Tell
from agent_core.store.store import Store
from agent_core.workers.pool import Workers
from gateway.chats.platforms import Platforms
from gateway.config.keyfiles import sealing_key
from gateway.config.operatorkey import operator_key_of
from gateway.config.paths import Paths
from gateway.config.reading import CannotServe
from gateway.config.sections import Config
from gateway.console.access import CONSOLE_ROUTES, Access
from gateway.http.admin import Admin
from gateway.http.approvaladmin import ApprovalAdmin
from gateway.http.connections import Doorkeeper
from gateway.http.entry import EntryMiddleware, Middleware, ServersLog, expecting, introducing
from gateway.http.hooks import HookIntake
from gateway.http.mcpdoor import McpEntrance
from gateway.http.sending import Sending
from gateway.http.status import Look
from gateway.http.triage import TriageLook
from gateway.people.keyring import Keyring
from gateway.queues.refusals import Refusals
from gateway.sessions.hub import Hub
from gateway.version import program_version

if TYPE_CHECKING:
    from adapters.contract.pagecommands import PageCommands
    from adapters.contract.sessions import SessionAccess
    from gateway.conversations.deciding import Deciding

SHUTDOWN_SECONDS = 3.0
"""How long the server waits at its end for those who still read."""
CONSOLE = "gateway.console.opening"
BACKLOG = 2_048
"""Connections that may wait to be taken: a thousand people may come at once."""


def api_key_of(config: Config) -> str | None:
    """The key that callers must send; None if there is none."""
    return config.server.api_key.get_secret_value() if config.server.api_key else None


async def open_doors(
    config: Config,
    paths: Paths,
    hub: Hub,
    store: Store,
    clock: Clock,
    ids: SystemIds,
    chats: Platforms,
    look: Look,
    routes: Sequence[web.RouteDef],
    keyring: Keyring,
    workers: Workers,
    stack: AsyncExitStack,
) -> str:
    """Start the server, with what it serves besides; its address."""
    server = config.server
    api = OpenAiApi(
        hub,
        ApiSettings(
            callers=keyring,
            max_body_bytes=server.max_body_bytes,
            keep_alive_seconds=server.keep_alive_seconds,
            disconnect=server.disconnect,
            disconnect_seconds=server.disconnect_seconds,
            cors_origins=server.cors_origins,
            errors=server.errors,
            thinking=server.thinking,
            seals=Seals(lambda: sealing_key(paths.state_dir)),
        ),
        clock,
        ids,
        Refusals(store, clock, ids, hub.tell),
    )
    listed = _beside_the_page(config, hub, clock, workers)
    page = WebChat(hub, _page_settings(config, keyring), clock, ids, listed, cache(partial(_page_commands, hub, chats)))
    app = web.Application(client_max_size=server.max_body_bytes)
    operator_key = operator_key_of(config)
    admin = Admin(chats, operator_key, look)
    sending = Sending(
        store,
        hub.accepting,
        chats.commands,
        hub.quotas,
        chats.outbox,
        chats.where,
        operator_key,
        config.spool(paths),
    )
    served = [
        *api.routes(sessions.served(partial(_sessions, hub), thinking=server.thinking)),
        *page.routes(),
        *admin.routes(),
        *sending.routes(),
        *ApprovalAdmin(cache(partial(_deciding, hub, store, clock)), clock, ids, operator_key).routes(),
        *chats.routes(),
        *routes,
    ]
    served += _hooks(config, hub, chats, clock).routes()
    servers = look.servers.status if look.servers is not None else tuple
    watching = cache(partial(_watching, config, hub, store, clock, ids, chats, servers))
    served += [route.served(one) for route, one in later(watching, CONSOLE_ROUTES, CONSOLE).items()]
    address: list[str] = []
    mcp = _mcp(config, keyring, lambda: _from_here(address[0]))
    served += mcp.routes()
    served += TriageLook(config.storage.url or paths.database, clock, operator_key).routes()
    served.append(HttpRoute.DESCRIBE.served(_described(served)))
    app.add_routes(expecting(served))
    app.on_shutdown.append(mcp.aclose)
    address.append(await _listening(config, app, _learning(hub, keyring), ids, hub.tell, stack))
    return address[0]


def _learning(hub: Hub, keyring: Keyring) -> Sequence[Middleware]:
    """Where keys may be made at other gateways, one that is not known is asked for."""
    return () if hub.portion.whole else (introducing(keyring.learn),)


def _page_settings(config: Config, keyring: Keyring) -> WebSettings:
    server = config.server
    language, links = config.session.language, server.share_links
    return WebSettings(keyring, server.keep_alive_seconds, server.thinking, language=language, share_links=links)


def _mcp(config: Config, keyring: Keyring, url: Callable[[], str]) -> McpEntrance:
    """The way of other agents to us. `url` is asked once we listen."""
    server = config.server
    access = Access(operator_key_of(config), behind_proxy=bool(server.public_url))
    return McpEntrance(keyring, access, server.cors_origins, server.max_body_bytes, url, on=server.mcp)


def _from_here(url: str) -> str:
    """The address by which this machine calls what listens everywhere."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def _page_commands(hub: Hub, chats: Platforms) -> PageCommands:
    """The commands of chats, as the page has them; loaded when it is first opened."""
    from gateway.chats.onpage import CommandsOnPage

    return CommandsOnPage(chats.commands, bool(hub.doors.standings.agents))


def _sessions(hub: Hub) -> SessionAccess:
    """What programs do with stored conversations; loaded when one first does."""
    from gateway.conversations.access import access_of

    return access_of(hub.accepting, hub.stopping, hub.forgetting)


def _deciding(hub: Hub, store: Store, clock: Clock) -> Deciding:
    """What waits for somebody's word; loaded when it is first asked for."""
    from gateway.conversations.deciding import Deciding
    from gateway.conversations.sights import SessionSights

    return Deciding(store, hub.stopping, SessionSights(store, hub.stopping.queues, clock))


def _beside_the_page(config: Config, hub: Hub, clock: Clock, workers: Workers) -> Mapping[HttpRoute, Handler]:
    """What serves the list of conversations and links to them, and how code and formulas are drawn."""
    access = partial(_page_sessions, hub)
    listed = sessions.page_served(access)
    links = sessions.links_served(access, config.server.share_links, clock)
    wishes = sessions.wishes_served(hub.opener.instructions)
    return {
        **listed,
        **links,
        **wishes,
        HttpRoute.HIGHLIGHT: highlighted(workers),
        HttpRoute.FORMULAS: partial(_formulas, workers),
    }


async def _formulas(workers: Workers, request: web.Request) -> web.StreamResponse:
    from adapters.http.written.drawing import drawn  # few answers have one

    return await drawn(workers)(request)


def _page_sessions(hub: Hub) -> SessionAccess:
    """The same of the web page's."""
    from gateway.conversations.access import OF_PAGE, access_of

    return access_of(hub.accepting, hub.stopping, hub.forgetting, OF_PAGE)


def _described(served: Sequence[web.RouteDef]) -> Handler:
    """What serves the document of these routes. It is made, and its modules are loaded, when it is first asked for: once, and beside the loop, as it takes
    more than half a second of a processor."""
    there = {(one.method, one.path) for one in served}
    made: asyncio.Task[bytes] | None = None

    def written() -> bytes:
        from adapters.http.openapi.document import document

        rows = [route for route in HttpRoute if (route.method, route.pattern) in there or route is HttpRoute.DESCRIBE]
        return orjson.dumps(document(program_version(), rows))

    async def describe(_: web.Request) -> web.StreamResponse:
        nonlocal made
        made = made or asyncio.create_task(asyncio.to_thread(written), name="the document of the API")
        return web.Response(body=await asyncio.shield(made), content_type="application/json")

    return describe


def _hooks(config: Config, hub: Hub, chats: Platforms, clock: Clock) -> HookIntake:
    doors = [entry.door() for entry in config.hooks.entries]
    return HookIntake(doors, hub.accepting, chats.where, chats.outbox, clock, hub.tell)


async def _listening(
    config: Config,
    app: web.Application,
    inner: Sequence[Middleware],
    ids: SystemIds,
    tell: Tell,
    stack: AsyncExitStack,
) -> str:
    """Serve the application until the stack is left; the address."""
    server = config.server
    limits = server.door_limits(open_files())
    runner = web.AppRunner(
        app,
        access_log=None,
        shutdown_timeout=SHUTDOWN_SECONDS,
        handler_cancellation=True,
        keepalive_timeout=limits.idle_seconds * 2,
        logger=ServersLog(),
    )
    keeper = Doorkeeper(limits, tell)
    EntryMiddleware(keeper, ids, tell, BehindProxy(server.identity_header, limits.trusted)).connect(app, *inner)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    assert runner.server is not None
    await stack.enter_async_context(keeper.looking())
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(
            partial(keeper.door, runner.server), server.host, server.port, backlog=BACKLOG
        )
    except OSError as error:
        known = not isinstance(error, socket.gaierror)
        fix = (
            "If another program uses this port, stop it or choose another one: OUTSPOKEN_SERVER__PORT=8788 outspoken run"
            if known
            else "Correct [server] host: an address of this machine, or 0.0.0.0 for all of them."
        )
        why = os.strerror(error.errno or 0) if known else error.strerror  # uvloop says the address once more
        raise CannotServe(f"Cannot listen at {server.host}:{server.port}: {why}. {fix}") from error
    stack.callback(listening.close)
    host, port = listening.sockets[0].getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def open_files() -> int:
    """How many files this process may have open; as many as it is allowed to be allowed. A connection is a file."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2**20
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        except (OSError, ValueError):
            pass
    return 2**20 if soft == resource.RLIM_INFINITY else soft


def _watching(
    config: Config, hub: Hub, store: Store, clock: Clock, ids: SystemIds, chats: Platforms, servers: Callable[[], Sequence[Json]]
) -> Mapping[HttpRoute, Handler]:  # fmt: skip
    """What serves the operators' console; loaded when somebody first looks."""
    from gateway.console.opening import console

    return console(config, hub, store, clock, ids, chats, servers).routes()
