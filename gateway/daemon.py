"""The daemon: builds everything from the configuration, serves until it is told to stop, and leaves nothing running.

`serving` is the composition root: the daemon, a terminal client without a daemon, and the tests all use it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from adapters.contract.redacted import set_redactor
from adapters.http.common import guarded
from agent_core.bell import Bell
from agent_core.beside import loaded
from agent_core.driver.spending import Spender
from agent_core.failures.exits import ExitCode
from agent_core.limits.budgets import NANOS, Amount
from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Endpoint, overdue
from agent_core.ports import Clock, CommonClock, SystemClock, SystemIds
from agent_core.records import dataclass
from agent_core.settings import RULES, TurnSettings
from agent_core.signals import Committed, ModelCalled, Signal, Signals, TurnClosed
from agent_core.store.database.ownership import Serves
from agent_core.store.database.place import PostgresPlace, SqlitePlace, parse_place
from agent_core.store.database.trouble import away_now
from agent_core.store.errors import CannotOpenNow, StoppedWaiting
from agent_core.store.slices.rows import HOUSE
from agent_core.store.store import Store, open_store
from agent_core.text.redaction import Redactor
from agent_core.tools.registry import ToolRegistry
from agent_core.workers.pool import Workers
from gateway.chats.platforms import Platforms, chat_outbox, language_rules, platforms, started
from gateway.chats.scheduler import zone_in_force
from gateway.chats.voice import ChatVoice
from gateway.config.agents import agents_of
from gateway.config.model import Model, endpoints_of, rehearsal_endpoint
from gateway.config.operatorkey import operator_key_of, with_operator_key
from gateway.config.paths import Paths
from gateway.config.reading import CannotServe, redactor_of
from gateway.config.sections import Config
from gateway.config.server import BEYOND_DRAIN_SECONDS
from gateway.config.tools.shell import COMMANDS
from gateway.delivery.forming import WORKERS, Forming
from gateway.delivery.outbox import Outbox
from gateway.http.keyadmin import KeyAdmin
from gateway.http.server import api_key_of, open_doors
from gateway.http.status import Look
from gateway.later.followups import FollowUpsHere
from gateway.later.parts import Later
from gateway.later.reminders import time_tools
from gateway.later.tasks import TaskLimits, Tasks
from gateway.limits.admission import Bounds
from gateway.limits.budgets import BudgetBook
from gateway.limits.quotas import Quotas
from gateway.limits.rates import Doors, KeyMeters
from gateway.limits.standing import Standings
from gateway.observe.alerting import Alerter, Announcements
from gateway.observe.health import Health, LifePhase, ModelWatch, Vitals
from gateway.observe.lawwatch import LawWatch
from gateway.observe.lifesign import signs_of_life
from gateway.observe.metrics import Metrics
from gateway.observe.metricscatalogue import GatewayParts, KnownAtStart
from gateway.observe.notify import Notifier, managed
from gateway.observe.traces import traced
from gateway.operate.context import prepare_places
from gateway.people.keyring import Keyring
from gateway.queues.languages import Languages
from gateway.queues.queues import Queues
from gateway.recovery.keeper import Keeper
from gateway.sessions.containment import ToolPolicy
from gateway.sessions.hub import Hub
from gateway.sessions.opening import HubSettings
from gateway.sharing.portion import Portion
from gateway.shell.background import BackgroundCommands
from gateway.shell.shell import ShellTools, shell_tools_here
from gateway.storage.damage import DamageMet
from gateway.storage.leftovers import leftovers, words_of
from gateway.storage.soundness import SoundnessWatch
from gateway.storage.storewatch import MIB, StoreWatch, free_bytes
from gateway.succession.succession import Succession
from gateway.toolset import ToolUnknown, toolset
from gateway.version import program_version
from gateway.warming import warmed
from gateway.webhooks.telling import HookTelling

if TYPE_CHECKING:
    from agent_core.model.speech.speaking import Speaker
    from agent_core.model.speech.tool import Speak
    from agent_core.tools.mcp.servers import McpServers
    from gateway.chats.attachments import Attachments
    from gateway.chats.enclosed import EnclosedFiles
    from gateway.storage.workfolder import WorkFolder
    from gateway.webhooks.sender import HookSender

log = structlog.get_logger("gateway")

TEMPORARY_SECONDS = 3600.0
TITLES_WAIT = 100
"""So many conversations may wait for their titles; the others are named after their next answers."""
DELIVERY_SECONDS = 5.0
"""How long a shutdown waits for parts to go out; what is left goes out at the next start."""
SYSTEM_PROMPT = (
    "You are a helpful assistant. You can use tools: files in your workspace folder, web pages, a memory and a to-do list. "
    "Use a tool when it helps, say briefly what you are doing, and answer in the language of the person. "
    "Write long files in several parts: a first part, then append the rest."
)


class Stopping:
    """How it is told to stop: once in order, twice in a hurry."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.hurry = asyncio.Event()
        """Of this life. One that has lost its database has nothing left to wait for."""

    def begin_anew(self) -> None:
        """The next life may take its time again."""
        self.hurry = asyncio.Event()

    def ask(self) -> bool:
        """A signal came. False if there is nothing left that another one could hurry."""
        (self.hurry if self.asked.is_set() else self.asked).set()
        return not self.hurry.is_set()


@dataclass(frozen=True, slots=True)
class Serving:
    """A gateway that is up."""

    url: str
    hub: Hub
    keeper: Keeper
    rehearsal: bool
    recovered: int
    """How many open turns of earlier processes were found, and are taken up."""
    lost: asyncio.Event
    """Set when this process no longer owns its database (PostgreSQL only): nothing goes on, and it has to begin anew."""
    follow_ups: FollowUpsHere
    """Tells conversations of what ended after its turn."""


@asynccontextmanager
async def serving(
    config: Config,
    paths: Paths,
    stopping: Stopping | None = None,
    clock: Clock | None = None,
    succession: Succession | None = None,
) -> AsyncGenerator[Serving]:
    """A running gateway for the block; at its end, turns are given time to end, and everything is closed. `succession` says what is done while another
    one has the database; without it, that is an error.

    Raises `CannotServe`, or `agent_core.store.store.CannotOpen`, with words for a person.
    """
    stopping = stopping or Stopping()
    config = _prepared(config, paths)
    ids = SystemIds(clock := _common(config, clock or SystemClock()))
    redactor, signals = set_redactor(redactor_of(config, os.environ)), Signals()
    async with AsyncExitStack() as stack:
        endpoints = await _endpoints(config, stack)
        announced, damage = Announcements(), DamageMet(clock)
        store = await _opened(config, paths, clock, ids, succession, announced, stack)
        watch = _watch(config, paths, store, clock, signals, damage)
        signals.listen((metrics := Metrics(config.budgets.currency)).on)
        await stack.enter_async_context(metrics.watching_loop(paths.state_dir / "loop-held.txt"))
        continues = await stack.enter_async_context(traced(config.telemetry.otlp_endpoint, signals))
        client = _client(endpoints, clock, redactor, store, stack)
        workers = await stack.enter_async_context(Workers())
        follow_ups, tasks = _later(config, store, clock)
        tools, shell = await _tools(config, endpoints[0], store, paths, workers, clock, stack, follow_ups, tasks)
        servers = await _mcp_servers(config, paths, tools, clock, follow_ups, stack)
        quotas = _quotas(config, paths, store, clock)
        portion = Portion(whole=not config.storage.several)
        telling, hooks = await _webhooks(config, store, workers, signals, clock, ids, portion, stack)
        queues, forming = Queues(), Forming(await stack.enter_async_context(Workers(WORKERS)))
        outbox = chat_outbox(store, queues, forming, ids, clock, signals, damage, telling.parts, portion, quotas)
        voice = _voice(config, endpoints[0], outbox, queues, store, quotas, workers, clock, stack)
        budgets = await _budgets(config, store, clock, signals, voice, stack)
        keyring = await _keyring(config, paths, store, clock, ids, budgets.meters, portion, stack)
        hub = Hub(
            _hub_settings(config, paths, tools, servers), store, client, endpoints, tools, clock, ids, signals.tell,
            queues=queues, chats=voice, budgets=budgets, quotas=quotas, no_room=watch.refusal, continues=continues,
            damage=damage, announce=announced.announce, herald=telling,
            doors=Doors(Standings(agents_of(config.agents, _admins(config)), keyring.terms), budgets.meters), portion=portion,
        )  # fmt: skip
        await stack.enter_async_context(hub)
        chats = await _chats(config, hub, outbox, store, clock, ids, follow_ups, shell, tasks, stack)
        keeper = Keeper(hub, store, clock, ids, outbox.parts, chats.commands, hub.learning.set_aside)
        drain = await _together(config, paths, store, hub, chats, keeper, tasks, signals, ids, stack)
        left_open = await keeper.count_open()
        stack.push_async_callback(outbox.drained, DELIVERY_SECONDS, stopping.hurry)
        soundness = _soundness(config, paths, store, clock, damage, watch, hub)
        laws = LawWatch(config.storage.url or paths.database, config.audit, clock)
        alerter = _alerter(config, store, watch, announced, clock, chats, hub, keeper, quotas, soundness, laws, hooks)
        health = _health(signals, watch, store, chats, hub, keeper, alerter, await _folder(config, paths, clock, stack))
        metrics.begin(KnownAtStart(chats.names(), endpoints))
        metrics.read_from(GatewayParts(
            hub, keeper, chats.outbox, chats.supervisors, store, health, alerter, soundness, quotas, metrics.loop, laws, hooks
        ))  # fmt: skip
        others = (keeper.aside, soundness, laws, hooks, servers, shell)
        look = Look(hub, store, chats, health, alerter, quotas, clock, endpoints, *others)
        routes = _asked_routes(health, metrics, keyring, hub, operator_key_of(config), hooks, ids)
        url = await open_doors(config, paths, hub, store, clock, ids, chats, look, routes, keyring, workers, stack)
        stack.push_async_callback(drain, config.server.drain_seconds, stopping.hurry)
        _keep(hub, keeper, config.model, client, store, clock, signals)
        for one in (started(chats, hub.portion), *(each.running() for each in (quotas, alerter, soundness, laws))):
            await stack.enter_async_context(one)
        await _tells_others(url, config, hub, store, chats, health, stack)
        stack.enter_context(health.serving())
        yield Serving(url, hub, keeper, config.model.rehearsal, left_open, store.ownership.lost, follow_ups)


def _common(config: Config, clock: Clock) -> Clock:
    """What a server stores for several machines, one after the other or at once, has the server's time."""
    return (
        CommonClock(clock)
        if config.storage.url and not isinstance(parse_place(config.storage.url), SqlitePlace)
        else clock
    )


def _keep(
    hub: Hub, keeper: Keeper, model: Model, client: ModelClient, store: Store, clock: Clock, signals: Signals
) -> None:
    """What goes on beside the turns. What an earlier process left is taken up behind the open port, beside what is new."""
    hub.keep(partial(warmed, client, store), "warming")
    hub.keep(partial(_titles, model, hub, store, clock, signals), "titles")
    hub.keep(partial(_temporary, hub, clock), "temporary")
    hub.keep(keeper.run, "keeper")


async def _temporary(hub: Hub, clock: Clock) -> None:
    """Temporary conversations that nobody left in order are deleted."""
    while True:
        await asyncio.sleep(TEMPORARY_SECONDS)
        await loaded("gateway.conversations.temporary")
        from gateway.conversations.temporary import forget_temporary

        await forget_temporary(hub, clock.now_ms())


async def _titles(model: Model, hub: Hub, store: Store, clock: Clock, signals: Signals) -> None:
    """Conversations of the page are named, by what answers there."""
    if not model.titles or model.rehearsal:
        return
    ended: asyncio.Queue[TurnClosed] = asyncio.Queue(TITLES_WAIT)

    def on(signal: Signal) -> None:
        if (
            isinstance(signal, TurnClosed)
            and signal.surface == "web"
            and signal.exit == ExitCode.ANSWERED
            and not ended.full()
        ):
            ended.put_nowait(signal)

    signals.listen(on, TurnClosed)
    first = await ended.get()
    await loaded("gateway.conversations.titles")
    from gateway.conversations.titles import Titles

    titles = Titles(hub, store, clock, signals.tell)
    await titles.look(first)
    await titles.run(ended)


async def _together(
    config: Config,
    paths: Paths,
    store: Store,
    hub: Hub,
    chats: Platforms,
    keeper: Keeper,
    tasks: Tasks,
    signals: Signals,
    ids: SystemIds,
    stack: AsyncExitStack,
) -> Callable[[float, asyncio.Event], Awaitable[None]]:
    """It takes part, if it is one of several. How it comes to its end."""
    if hub.portion.whole:
        return hub.drain
    from gateway.several.files import share_spool
    from gateway.several.together import together

    await asyncio.to_thread(share_spool, paths.spool, config.spool(paths))
    place, server = parse_place(config.storage.url), config.server
    if not isinstance(place, PostgresPlace):
        raise CannotServe("[storage] several is for PostgreSQL: a SQLite file has one gateway.")
    address = f"http://{server.host}:{server.port}"
    team = await stack.enter_async_context(
        together(hub.portion, place, address, store, hub, chats, keeper, tasks, signals, ids)
    )
    return team.drain


async def _tells_others(
    url: str, config: Config, hub: Hub, store: Store, chats: Platforms, health: Health, stack: AsyncExitStack
) -> None:
    """How it does, if it is one of several."""
    if not hub.portion.whole:
        from gateway.several.telling import telling

        await stack.enter_async_context(telling(url, config, store, hub, chats, health))


def _files(
    config: Config, endpoint: Endpoint, quotas: Quotas, workers: Workers, clock: Clock, stack: AsyncExitStack
) -> tuple[Attachments, EnclosedFiles]:
    """What takes files that people send. Made when somebody sends the first one."""
    from agent_core.documents.kinds import FileKind
    from gateway.chats.attachments import Attachments
    from gateway.chats.enclosed import EnclosedFiles
    from gateway.chats.readout import FileReaders

    ears = None
    if (terms := config.hearing.terms(endpoint)) is not None:
        from agent_core.model.speech.hearing import Transcriber

        ears = Transcriber(terms, _programs(stack), clock)
    given = {
        FileKind.PICTURE: config.model.pictures,
        FileKind.PDF: config.model.pdf,
        FileKind.SOUND: config.model.audio,
    }
    readers = FileReaders(workers, ears, takes=frozenset(kind for kind, takes in given.items() if takes))
    return Attachments(quotas, readers), EnclosedFiles(quotas, readers)


def _speaking(config: Config, endpoint: Endpoint, spool: Path, clock: Clock, stack: AsyncExitStack) -> Sequence[Speak]:
    """The tool that says something aloud, if somebody speaks. What speaks is loaded with the first words."""
    if not config.speaking.on or (terms := config.speaking.terms(endpoint)) is None:
        return ()
    from agent_core.model.speech.tool import Speak

    @cache
    def voice() -> Speaker:
        from agent_core.model.speech.speaking import Speaker

        return Speaker(terms, cache(partial(_programs, stack)), clock)

    return (Speak(voice, spool, terms.seconds),)


def _programs(stack: AsyncExitStack) -> Workers:
    """Workers that may begin programs of the operator's; none is begun before it is needed."""
    from agent_core.model.speech.program import CONFINES

    programs = Workers(2, confines=CONFINES)
    stack.push_async_callback(programs.aclose)
    return programs


def _prepared(config: Config, paths: Paths) -> Config:
    """The places are there; the configuration with the operators' key, which is made if there is none."""
    prepare_places(paths)
    try:
        return with_operator_key(config, paths, make=True)
    except OSError as error:
        raise CannotServe(
            f"The operators' key cannot be written into {paths.state_dir}: {error.strerror}. See to the rights and the room there, or set one yourself: "
            "OUTSPOKEN_SERVER__OPERATOR_KEY."
        ) from error


async def _opened(
    config: Config,
    paths: Paths,
    clock: Clock,
    ids: SystemIds,
    succession: Succession | None,
    announced: Announcements,
    stack: AsyncExitStack,
) -> Store:
    """The store. What of an earlier database there was while this one was missing or empty is told."""
    left = leftovers(config, paths)
    where, waits = config.storage.url or paths.database, succession.waits if succession is not None else None
    serves = Serves.SHARED if config.storage.several else Serves.ALONE
    opened = open_store(where, clock=clock, ids=ids, version=program_version(), serves=serves, waits=waits)
    store = await stack.enter_async_context(opened)
    if succession is not None:
        await succession.opened()
    if left:
        log.warning("storage.begun_anew", database=store.shown, left=left)
        announced.announce("storage:anew", words_of(store.shown, left))
    return store


async def _endpoints(config: Config, stack: AsyncExitStack) -> tuple[Endpoint, ...]:
    if not config.model.rehearsal:
        return endpoints_of(config.model.chain())
    from agent_core.model.rehearsal import rehearsal_server

    rehearsal = await stack.enter_async_context(rehearsal_server())
    return (rehearsal_endpoint(rehearsal.base_url, rehearsal.api_key),)


def _client(
    endpoints: tuple[Endpoint, ...], clock: Clock, redactor: Redactor, store: Store, stack: AsyncExitStack
) -> ModelClient:
    """What asks the model; closed with the stack."""
    tell_of_old_rows(endpoints, clock)
    client = ModelClient(endpoints, clock, redactor, store.ownership)
    stack.push_async_callback(client.aclose)
    return client


def _watch(config: Config, paths: Paths, store: Store, clock: Clock, signals: Signals, damage: DamageMet) -> StoreWatch:
    room = partial(free_bytes, *state_folders(config, paths))
    watch = StoreWatch(store, clock, room, config.storage.min_free_mib * MIB, lambda: damage.everybodys)
    store.on_commit(lambda operations, seconds, stored: signals.tell(Committed(operations, seconds, stored)))
    signals.listen(damage.on, TurnClosed)
    signals.listen(watch.on, Committed)
    return watch


async def _keyring(
    config: Config,
    paths: Paths,
    store: Store,
    clock: Clock,
    ids: SystemIds,
    meters: KeyMeters,
    portion: Portion,
    stack: AsyncExitStack,
) -> Keyring:
    """Who may call. A file is written to by nobody else while we run; a server is."""
    keyring = Keyring(
        store, clock, ids, api_key_of(config), keyless=config.server.keyless, meters=meters, portion=portion
    )
    await keyring.open()
    if not keyring.opens_anything() and not (config.server.identity_header and config.server.trusted_proxies):
        log.warning("keys.none", host=config.server.host)
    file = isinstance(parse_place(config.storage.url or paths.database), SqlitePlace)
    await stack.enter_async_context(keyring.running(shared=not file))
    return keyring


def state_folders(config: Config, paths: Paths) -> tuple[Path, ...]:
    """Where room is needed: the state, and the database, if it is a file somewhere else."""
    place = parse_place(config.storage.url or paths.database)
    return (paths.state_dir, *((place.path.parent,) if isinstance(place, SqlitePlace) else ()))


def tell_of_old_rows(endpoints: Sequence[Endpoint], clock: Clock) -> None:
    """What is known of an endpoint may be out of date; said once, at the start."""
    today = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date()
    for row in overdue(endpoints, today):
        log.warning("model.known_bad_overdue", row=row.name, look_again=row.look_again.isoformat(), report=row.report)


async def _chats(
    config: Config,
    hub: Hub,
    outbox: Outbox,
    store: Store,
    clock: Clock,
    ids: SystemIds,
    follow_ups: FollowUpsHere,
    shell: ShellTools,
    tasks: Tasks,
    stack: AsyncExitStack,
) -> Platforms:
    """The chats, and then what tells them something."""
    background = BackgroundCommands(shell, hub.workspaces)
    chats = await stack.enter_async_context(
        platforms(config, hub, outbox, store, clock, ids, follow_ups, tasks, background)
    )
    await stack.enter_async_context(shell.running())
    await stack.enter_async_context(tasks.running())
    return chats


def _later(config: Config, store: Store, clock: Clock) -> tuple[FollowUpsHere, Tasks]:
    """What works for later; it begins when the gateway is whole."""
    later = Later(store, clock, partial(zone_in_force, config.schedule), config.quota.reminders)
    follow_ups, said = FollowUpsHere(later), config.tasks
    most = Amount(said.tokens, round(said.money * NANOS))
    limits = TaskLimits(said.at_once, said.at_once_all, said.seconds, said.steps, said.status_seconds, most)
    return follow_ups, Tasks(later, follow_ups, limits)


async def _tools(
    config: Config,
    endpoint: Endpoint,
    store: Store,
    paths: Paths,
    workers: Workers,
    clock: Clock,
    stack: AsyncExitStack,
    follow_ups: FollowUpsHere,
    tasks: Tasks,
) -> tuple[ToolRegistry, ShellTools]:
    shell, spool = (
        await shell_tools_here(config.shell, paths.state_dir, store, clock, follow_ups),
        config.spool(paths),
    )
    later = (*time_tools(follow_ups.later, tasks, config.send.chats), *_speaking(config, endpoint, spool, clock, stack))
    try:
        found = await toolset(config, store.memory, spool, workers, stack, follow_ups, later, shell)
        return found, shell
    except ToolUnknown as error:
        raise CannotServe(str(error)) from error


def _admins(config: Config) -> Sequence[str]:
    """Those whom the sections of the platforms name, as PLATFORM/PERSON."""
    return [f"{platform.name}/{one}" for platform, section in config.chats() for one in section.admins]


async def _mcp_servers(
    config: Config, paths: Paths, tools: ToolRegistry, clock: Clock, follow_ups: FollowUpsHere, stack: AsyncExitStack
) -> McpServers | None:
    """The programs that bring further tools; nothing of that is loaded without one. Entered before the hub, so that the last turns have them."""
    if not config.mcp.servers:
        return None
    from agent_core.tools.mcp.servers import McpServers

    servers = McpServers(
        [one.terms(paths.state_dir / "mcp") for one in config.mcp.servers], tools, paths.state_dir / "mcp", clock,
        result_chars=config.tools.result_chars, offered=config.tools.enabled or None, withheld=config.tools.disabled,
        approval=config.tools.approval, follow_ups=follow_ups,
    )  # fmt: skip
    await stack.enter_async_context(servers.running())
    return servers


def _voice(
    config: Config,
    endpoint: Endpoint,
    outbox: Outbox,
    queues: Queues,
    store: Store,
    quotas: Quotas,
    workers: Workers,
    clock: Clock,
    stack: AsyncExitStack,
) -> ChatVoice:
    files = partial(_files, config, endpoint, quotas, workers, clock, stack)
    return ChatVoice(outbox, files, Languages(language_rules(config), queues, store))


def _hub_settings(config: Config, paths: Paths, tools: ToolRegistry, servers: McpServers | None) -> HubSettings:
    model, patience = config.model, config.model.patience()
    prompt = model.system_prompt_file.read_text("utf-8") if model.system_prompt_file else model.system_prompt
    policy = ToolPolicy(
        frozenset(config.tools.approval), config.tools.tainted, config.tools.tainted_tools, config.tools.approvers
    )
    return HubSettings(
        turn=TurnSettings(
            routes=(),
            tools=tuple(policy.facts(spec) for spec in tools.specs()),
            first_content_seconds=patience.first_content_seconds,
            stall_seconds=patience.stall_seconds,
            remedy_seconds=patience.remedy_seconds,
            turn_seconds=model.turn_seconds,
            max_steps=model.max_steps,
            retry_min_seconds=model.retry_min_seconds,
            retry_max_seconds=model.retry_max_seconds,
            retry_after_max_seconds=model.retry_after_max_seconds,
            approval_seconds=config.tools.approval_seconds,
            ladder=config.ladder(),
            guards=config.guardrails.counts(),
            rules=RULES,
        ),
        system_prompt=prompt or SYSTEM_PROMPT,
        connect_seconds=model.connect_seconds,
        queue_limit=config.session.queue_limit,
        policy=config.session.policy,
        workspaces=config.tools.workspace or paths.workspaces,
        tools_policy=policy,
        languages=language_rules(config),
        history_turns=config.session.history_turns,
        rehearsal=model.rehearsal,
        version=program_version(),
        bounds=Bounds.of(config.session.open_turns, config.session.waiting_limit),
        incidents=config.incidents.rules(),
        operators_chat=bool(config.operators.chat),
        keep=config.retention.keep(),
        spool=config.spool(paths),
        printed=paths.state_dir / COMMANDS,
        memory_writers=frozenset(config.tools.memory_writers),
        tools_settled=servers.settled if servers is not None else None,
    )


async def _budgets(
    config: Config, store: Store, clock: Clock, signals: Signals, voice: ChatVoice, stack: AsyncExitStack
) -> BudgetBook:
    """Entered before the hub: turns that are ended with it are still settled."""
    rules = config.budgets.rules()
    spender = await stack.enter_async_context(Spender(store, rules, clock, signals.tell))
    return BudgetBook(spender, store, clock, voice.warned)


def _quotas(config: Config, paths: Paths, store: Store, clock: Clock) -> Quotas:
    workspaces = config.tools.workspace or paths.workspaces
    spool = config.spool(paths)
    return Quotas(config.quota.limits(), paths.state_dir, workspaces, spool, store.overview.memories, clock)


async def _webhooks(
    config: Config,
    store: Store,
    workers: Workers,
    signals: Signals,
    clock: Clock,
    ids: SystemIds,
    portion: Portion,
    stack: AsyncExitStack,
) -> tuple[HookTelling, HookSender | None]:
    """What makes messages for other programs, and what sends them; that is not there, and not loaded, without any receiver. Entered before the
    hub, so that the last turns are told as well."""

    async def key_of(session: str) -> str:
        known = await store.sessions.one(session)
        return known.key if known is not None else ""

    receivers = [one.receiver() for one in config.webhooks.receivers]
    telling = HookTelling([one.rule for one in receivers], key_of, clock, Bell())
    if not receivers:
        return telling, None
    from gateway.webhooks.posting import posting
    from gateway.webhooks.sender import HookSender

    signals.listen(telling.on)
    poster = await stack.enter_async_context(posting(workers))
    sender = HookSender(receivers, telling, store, poster, clock, ids.seed(), portion)
    await stack.enter_async_context(sender.running())
    return telling, sender


def _soundness(
    config: Config, paths: Paths, store: Store, clock: Clock, damage: DamageMet, watch: StoreWatch, hub: Hub
) -> SoundnessWatch:
    where = config.storage.url or paths.database
    return SoundnessWatch(where, store, clock, lambda: damage.times, watch.damaged, hub.aside.sound)


def _hook_routes(hooks: HookSender | None, key: str | None, ids: SystemIds) -> list[web.RouteDef]:
    if hooks is None:
        return []
    from gateway.webhooks.routes import HookRoutes

    return HookRoutes(hooks, key, ids).routes()


def _alerter(
    config: Config,
    store: Store,
    watch: StoreWatch,
    announced: Announcements,
    clock: Clock,
    chats: Platforms,
    hub: Hub,
    keeper: Keeper,
    quotas: Quotas,
    soundness: SoundnessWatch,
    laws: LawWatch,
    hooks: HookSender | None,
) -> Alerter:
    operators, rules = config.operators, config.budgets.rules()
    return Alerter(
        operators.limits(),
        operators.alert_rules(),
        store,
        watch,
        announced,
        clock,
        chats.sights,
        chats.outbox.surfaces.oldest_by_platform,
        rules if rules.active else None,
        chats.operators.tell if chats.operators is not None else None,
        keeper.late_words,
        hub.slots.oldest_seconds,
        soundness.words,
        quotas.words,
        laws.words,
        hooks.troubles if hooks is not None else tuple,
        hooks.alerted if hooks is not None else None,
        several=not hub.portion.whole,
        for_all=lambda: hub.portion.has(HOUSE),
    )


def _asked_routes(
    health: Health,
    metrics: Metrics,
    keyring: Keyring,
    hub: Hub,
    operators: str | None,
    hooks: HookSender | None,
    ids: SystemIds,
) -> list[web.RouteDef]:
    keys = KeyAdmin(keyring, hub, operators)
    asked = [*health.routes(partial(guarded, operators)), *metrics.routes(operators), *keys.routes()]
    return [*asked, *_hook_routes(hooks, operators, ids)]


async def _folder(config: Config, paths: Paths, clock: Clock, stack: AsyncExitStack) -> WorkFolder | None:
    """What looks after the workspaces, where they lie in a place of their own."""
    if config.tools.workspace is None and not config.storage.several:
        return None
    from gateway.storage.workfolder import WorkFolder

    folder = WorkFolder(config.tools.workspace or paths.workspaces, clock)
    await stack.enter_async_context(folder.running())
    return folder


def _health(
    signals: Signals,
    watch: StoreWatch,
    store: Store,
    chats: Platforms,
    hub: Hub,
    keeper: Keeper,
    alerter: Alerter,
    folder: WorkFolder | None,
) -> Health:
    model_watch = ModelWatch()
    signals.listen(model_watch.on, ModelCalled)

    def vitals(phase: LifePhase) -> Vitals:
        return Vitals(
            phase,
            store_works=not watch.words,
            owns=store.ownership.lease_ok(),
            store_damaged=watch.damaged(),
            adapters=chats.sights(),
            model_answers=model_watch.answers,
            unclaimed=keeper.late_words(),
            damage=alerter.damage_words(),
            folder=folder.words if folder is not None else "",
            alerts=alerter.open,
            incidents=len(hub.learning.open_incidents),
        )

    return Health(watch, vitals, lambda: hub.laws_broken)


async def run_daemon(
    config: Config, paths: Paths, announce: Callable[[Serving], None], *, takeover: bool = False
) -> None:
    """Serve until a signal of `stops`; a second signal leaves the open turns to the next process at once. A database that was lost is no end: as soon
    as it can be had, the gateway begins anew, in the same process, and takes up what was open."""
    loop = asyncio.get_running_loop()
    signals = stops()
    stopping = Stopping()

    def asked() -> None:
        if not stopping.ask():
            for number in signals:
                loop.remove_signal_handler(number)

    for number in signals:
        loop.add_signal_handler(number, asked)
    if signal.SIGHUP not in signals and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        loop.add_signal_handler(signal.SIGHUP, _not_read_again)
    async with managed(os.environ) as notifier:
        # What stands by is what was started: whoever waits for its start is told that it is up.
        tell = partial(_stands, notifier)
        succession = Succession(config, paths, stopping.asked, tell, takeover=takeover)
        try:
            while not stopping.asked.is_set():
                config = await _live(config, paths, stopping, succession, notifier, announce)
                stopping.begin_anew()
        except StoppedWaiting:
            pass
        finally:
            await succession.close()
    log.info("gateway.stopped")


def stops() -> list[signal.Signals]:
    """The signals that stop the gateway in order: also that its terminal is closed, unless it was started to outlive that (nohup). To what has none,
    the same signal says something else: that its configuration was changed."""
    closed = [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL and _has_terminal() else []
    return [signal.SIGTERM, signal.SIGINT, *closed]


def _not_read_again() -> None:
    log.warning("gateway.not_read_again")


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _stands(notifier: Notifier, words: str) -> None:
    notifier.tell(READY="1", STATUS=words)


async def _live(
    config: Config,
    paths: Paths,
    stopping: Stopping,
    succession: Succession,
    notifier: Notifier,
    announce: Callable[[Serving], None],
) -> Config:
    """Serve until told to stop, or until the database is lost; if it cannot be had, wait until it may be tried again. With what the next life begins:
    whoever knows where this one is finds it there."""
    again, up = succession.has_served, None
    try:
        async with AsyncExitStack() as stack:
            up = await stack.enter_async_context(serving(config, paths, stopping, succession=succession))
            await stack.enter_async_context(signs_of_life(paths.state_dir))
            announce(up)
            config = _at(config, up.url)
            notifier.tell(READY="1", STATUS=f"Serving at {up.url}")
            log.info(
                "gateway.ready",
                url=up.url,
                version=program_version(),
                rehearsal=up.rehearsal,
                recovered_turns=up.recovered,
            )
            await _either(stopping.asked, up.lost)
            if up.lost.is_set():
                log.warning("gateway.database_lost")
                notifier.tell(STATUS="The database was lost; it is tried again")
                stopping.hurry.set()
            else:
                most = config.server.drain_seconds + BEYOND_DRAIN_SECONDS
                notifier.tell(STOPPING="1", STATUS="Open turns may end", EXTEND_TIMEOUT_USEC=f"{most * 1_000_000:.0f}")
                log.info("gateway.stopping")
    except Exception as error:
        # Of a first start that is told: whoever waits for it is to know. A later one may meet a server that is only just coming back.
        may_wait = isinstance(error, CannotOpenNow) or (again and up is None)
        if (away := away_now(error) if may_wait else None) is None:
            raise
        await succession.cannot_open(away)
    return config


def _at(config: Config, url: str) -> Config:
    """With the port that was taken."""
    server = config.server.model_copy(update={"port": urlsplit(url).port or config.server.port})
    return config.model_copy(update={"server": server})


async def _either(first: asyncio.Event, second: asyncio.Event) -> None:
    """Wait for one of two events."""
    waiting = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
