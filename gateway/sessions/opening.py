"""Opens turns: from an accepted message to the turn's first event, which is stored before anything of the turn happens.

What is in the event is pure (`opened_event`). Messages whose turn cannot be opened are given up with a word, and hold up nobody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from pathlib import Path

import structlog

from adapters.contract.base import FromApi, FromChat, Inbound, TaskTerms
from agent_core.driver.closing import TurnIdentity
from agent_core.driver.driver import TurnDriver, World
from agent_core.driver.media import MediaKeeper
from agent_core.driver.modelcalls import ModelCaller, client_tools
from agent_core.driver.spending import Spending
from agent_core.driver.work import unheard
from agent_core.failures.known import Known
from agent_core.failures.leftout import LeftOut, looked_at
from agent_core.failures.notices import NotStarted
from agent_core.failures.shortage import shortage
from agent_core.jsonvalue import Json
from agent_core.judging.compaction import SYSTEM, system_of
from agent_core.learning.incidents import IncidentRules
from agent_core.limits.retention import Keep
from agent_core.messages import Message
from agent_core.model.client import ModelClient
from agent_core.records import dataclass
from agent_core.rules.consents import Kind
from agent_core.settings import Route, TurnSettings
from agent_core.store.inbox.rows import InboxState
from agent_core.store.keeping.forgetting import DROPPED, DROPPING
from agent_core.store.store import Conflict, Damaged, Fenced, LeaseLost, StorageUnavailable, Store
from agent_core.store.turns.rows import OpeningTurn
from agent_core.tools.base import UNLIMITED, Space, ToolContext, ToolSpec
from agent_core.turn.events import TurnOpened
from gateway.config.types import SessionPolicy
from gateway.delivery.chatside import ChatSide, dropping, outlet_for
from gateway.delivery.owners import Owner
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.limits.admission import Bounds
from gateway.limits.budgets import BudgetBook
from gateway.limits.quotas import Quotas
from gateway.limits.standing import AS_CONFIGURED, Standings, TurnStanding
from gateway.limits.whose import (
    Offers,
    asker_of,
    memories_of,
    memory_of,
    nameless,
    tools_from,
    withheld_from,
    workspace_of,
)
from gateway.people.instructions import OwnInstructions
from gateway.queues.inbox import NO_MODEL, NOT_OPENED
from gateway.queues.languages import PAGE, LanguageRules, language_for
from gateway.queues.loglines import log_started
from gateway.queues.prefs import Prefs, prefs_of
from gateway.queues.queue import SessionQueue, Waiting, naming_files
from gateway.retention import upkeep
from gateway.retention.underway import BeingForgotten
from gateway.sessions.chain import ModelChain
from gateway.sessions.consents import ConsentBook, shared_asker
from gateway.sessions.containment import ToolPolicy, foreign_at_first
from gateway.sessions.learning import Learning
from gateway.sessions.recall import PastRecall
from gateway.sessions.recents import unrun_sight
from gateway.setaside.setaside import PutAside
from gateway.setaside.unclaimed import Unclaimed

log = structlog.get_logger("gateway")

SETTINGS_KNOWN = 64
ERRAND_CALLS = 2
"""A front end's own errand is asked for once, and once more."""


@dataclass(frozen=True, slots=True)
class HubSettings:
    """What the gateway's configuration says about turns and sessions."""

    turn: TurnSettings
    """The template of each turn's settings; its routes and client tools are replaced."""
    system_prompt: str
    connect_seconds: float
    queue_limit: int
    """How many messages may wait in one session."""
    policy: SessionPolicy
    """What a message does that comes while a turn of its session is running."""
    workspaces: Path
    history_turns: int
    """How many closed turns of a session are put before the model at most."""
    rehearsal: bool
    version: str
    watch_look_seconds: float = 5.0
    """How often it is looked whether drivers do something."""
    watch_grace_seconds: float = 20.0
    """So long a driver may be overdue: timers and a busy loop are not exact."""
    bounds: Bounds = field(default_factory=Bounds)
    """How many turns may be open, and how many messages wait."""
    incidents: IncidentRules = field(default_factory=IncidentRules)
    languages: LanguageRules = field(default_factory=LanguageRules)
    """In which language the operator wants people to be spoken to."""
    operators_chat: bool = False
    """There is a chat in which operators are told of incidents."""
    keep: Keep = field(default_factory=Keep)
    """How long what is kept."""
    spool: Path | None = None
    """Copies of files on their way to chats."""
    printed: Path | None = None
    """What commands printed, by conversation."""
    tools_policy: ToolPolicy = field(default_factory=ToolPolicy)
    """What the operator says of what reaches outside."""
    memory_writers: frozenset[str] = frozenset()
    """Who may have it remember things for everybody, as ACCOUNT/PERSON."""
    tools_settled: Callable[[], Awaitable[None]] | None = None
    """Waits a little for programs whose tools nobody knows yet; None: there are none."""

    @property
    def watch(self) -> tuple[float, float]:
        """How often drivers are looked at, and how long one may be overdue."""
        return self.watch_look_seconds, self.watch_grace_seconds


def opened_event(
    inbounds: Sequence[Inbound],
    settings: HubSettings,
    routes: tuple[Route, ...],
    known: Known,
    *,
    at: int,
    seed: int,
    left_out: Sequence[LeftOut] = (),
    standing: TurnStanding = AS_CONFIGURED,
    earlier: bool = False,
    consents: Sequence[Kind] = (),
    language: str = "",
) -> TurnOpened:
    """The first event of the turn that answers `inbounds` (one, or several that were merged)."""
    first = inbounds[0]
    request = first if isinstance(first, FromApi) else None
    source, brought = tools_from(first), request.client_tools if request is not None else ()
    theirs = client_tools(brought).names if source.clients else ()
    withheld = (
        withheld_from(first, settings.memory_writers)
        | set(theirs)
        | standing.withheld([tool.name for tool in settings.turn.tools])
    )
    turn = _settings(
        settings.turn,
        routes,
        frozenset(withheld) if source.gateways else None,
        theirs,
        ERRAND_CALLS if request is not None and request.errand else 0,
        can_approve=first.can_approve,
        client_output_limit=request is not None and request.client_output_limit,
        most_tool_calls=request.most_tool_calls if request is not None else 0,
        task=request.task if request is not None else None,
    )
    asked = tuple(message for inbound in inbounds for message in inbound.input)
    said = [message.to_message() for message in asked]
    history = request.own_history if request is not None else None
    return TurnOpened(
        at=at, input=asked, settings=turn, seed=seed, surface=first.surface, known=known if not turn.most_calls else Known(),
        left_out=looked_at(left_out, said), agent=standing.name, agent_by=standing.by, key=standing.key,
        own_history=history,
        request=request.request if request is not None else {},
        client_tools=brought if theirs else (),
        foreign=foreign_at_first(inbounds, history, turn.tools, earlier=earlier), consents=tuple(consents),
        language=language,
        asker=shared_asker(first),
    )  # fmt: skip


@lru_cache(SETTINGS_KNOWN)
def _settings(
    template: TurnSettings,
    routes: tuple[Route, ...],
    withheld: frozenset[str] | None,
    client_tools: tuple[str, ...],
    most_calls: int,
    *,
    can_approve: bool,
    client_output_limit: bool,
    most_tool_calls: int,
    task: TaskTerms | None,
) -> TurnSettings:
    """The settings of a turn, without the tools that are withheld (None: without any). Most turns of a gateway have the same: they are made
    once."""
    return replace(
        template,
        turn_seconds=task.seconds if task is not None else template.turn_seconds,
        max_steps=task.steps if task is not None else template.max_steps,
        routes=routes,
        tools=tuple(t for t in template.tools if t.name not in withheld) if withheld is not None else (),
        client_tools=client_tools,
        most_calls=most_calls,
        can_approve=can_approve,
        client_output_limit=client_output_limit,
        most_tool_calls=most_tool_calls,
    )


def with_brought(settings: HubSettings, brought: Sequence[ToolSpec]) -> HubSettings:
    """The settings with the tools of other programs, as they are now."""
    if not brought:
        return settings
    more = tuple(settings.tools_policy.facts(one) for one in brought)
    return replace(settings, turn=replace(settings.turn, tools=(*settings.turn.tools, *more)))


def unsaid(inbound: Inbound, standing: Sequence[Json]) -> Inbound:
    """The message without what its client said before in the system's name and still stands: clients send it with every request."""
    if isinstance(inbound, FromChat) or not standing:
        return inbound
    if system_of([message.to_message() for message in inbound.input]) != standing:
        return inbound
    rest = tuple(message for message in inbound.input if message.role not in SYSTEM)
    return replace(inbound, input=rest) if rest else inbound


def brought(inbound: FromApi) -> list[Message]:
    """The conversation that a client brings along, with what it says now."""
    return [*(inbound.own_history or ()), *(message.to_message() for message in inbound.input)]


@lru_cache(16)
def system_prompt_of(prompt: str, date: str) -> str:
    """The system prompt of a turn that begins on `date` (ISO); one text for all turns that have it."""
    return f"{prompt}\n\nToday is {date} (UTC)." if prompt else ""


class NoWay(Exception):
    """There is no way to any model that the turn may ask."""


@dataclass(frozen=True, slots=True)
class Budgeting:
    """What counts a turn's use; None: nobody does."""

    budgets: BudgetBook | None = None
    quotas: Quotas | None = None

    def spending(self, inbound: Inbound, whose: TurnIdentity, standing: TurnStanding) -> Spending | None:
        """What pays for the turn's model calls."""
        return self.budgets.spending(inbound, whose, standing) if self.budgets is not None else None

    def space(self, inbound: Inbound, workspace: Path) -> Space:
        """What counts what its tools keep."""
        return UNLIMITED if self.quotas is None else self.quotas.space(inbound, workspace)


@dataclass(frozen=True, slots=True)
class PreparedTurn:
    """A turn that could be opened."""

    driver: TurnDriver
    opening: OpeningTurn
    route: Route
    standing: TurnStanding


@dataclass(frozen=True, slots=True)
class TurnOpener:
    """Makes the drivers of turns, and opens new ones. `continues` is told a turn and its caller's trace, in each process that works on it."""

    settings: HubSettings
    store: Store
    world: World
    client: ModelClient
    chain: ModelChain
    offers: Offers
    recall: PastRecall
    learning: Learning
    left: Unclaimed
    aside: PutAside
    chats: ChatSide
    counting: Budgeting
    continues: Callable[[str, str], None]
    standings: Standings
    consents: ConsentBook
    instructions: OwnInstructions
    forgotten: BeingForgotten = field(default_factory=BeingForgotten)

    async def open(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver | None:
        """A driver whose turn is open in the store. None if that is not possible, and the message has been given up."""
        try:
            return await self._open_or_give_up(queue, messages)
        except StorageUnavailable as error:
            if isinstance(error, Damaged) and await self.aside.put(queue.session, error):
                return None
            raise

    async def _open_or_give_up(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver | None:
        try:
            return await self._try_to_open(queue, messages)
        except StorageUnavailable:
            raise
        except (Fenced, LeaseLost) as error:
            # It is another gateway's now, which has what waits from the store. Nothing of it is ours to give up.
            log.warning("turn.not_opened", session=queue.session, inbox=messages[0].inbox_id, error=str(error))
            queue.waiting.clear()
            queue.epoch = 0
            queue.wake()
            return None
        except NoWay as error:
            log.warning("turn.not_opened", session=queue.session, inbox=messages[0].inbox_id, error=str(error))
            await self._give_up(queue, messages, NO_MODEL, NotStarted.NO_MODEL)
            return None
        except Exception as error:
            if isinstance(error, Conflict) and await self.store.left.turns(queue.session):
                queue.blocked = True  # what an earlier process left open comes first, then this is tried again
                await self.left.find(queue.session)
                return None
            if isinstance(error, Conflict) and await self._dropped_meanwhile(queue, messages):
                return None
            withdrawn = [message for message in messages if message not in queue.waiting]
            if not withdrawn and (short := shortage(error)):
                log.warning("turn.not_opened", session=queue.session, inbox=messages[0].inbox_id, error=short)
                await self._give_up(queue, messages, short, NotStarted.SHORT)
                return None
            if not withdrawn:
                log.exception("turn.not_opened", session=queue.session, error=type(error).__name__)
            await self._give_up(queue, withdrawn or messages, NOT_OPENED, NotStarted.NOT_OPENED)
            return None

    async def _try_to_open(self, queue: SessionQueue, messages: tuple[Waiting, ...]) -> TurnDriver:
        await self.left.opening(queue.session)
        made = await self.prepare(queue, queue.session, queue.epoch, messages)
        await self.store.turns.open(made.opening, [message.inbox_id for message in messages])
        return self.opened(made, messages)

    async def prepare(
        self, queue: SessionQueue, session: str, epoch: int, messages: tuple[Waiting, ...]
    ) -> PreparedTurn:
        """A turn that answers these messages, not open yet. Nothing follows from it if it never is."""
        first = messages[0].inbound
        if self.forgotten.jobs:
            await self.forgotten.over(first)
        if self.settings.tools_settled is not None:
            await self.settings.tools_settled()
        if not first.stateless:
            await self.load_memory(queue)
        turn = self.world.ids.new("t")
        asked = first.model if isinstance(first, FromApi) else ""
        prefs = Prefs() if asked else await prefs_of(self.store, queue)
        standing = self.standings.of(first, prefs.agent)
        driver = self.driver(turn, session, epoch, messages, queue, standing.name, await self.instructions.told(first))
        wished = "" if asked and asked == standing.name else asked or prefs.model
        routes = standing.routes(await self.chain.routes(wished), wished)
        if not routes:
            raise NoWay(f"none of the models of {standing.name or standing.key} is there any more")
        owner, purse = Owner(session, epoch), driver.purse
        inbounds = [
            await self.chats.attached(m.inbound, m.inbox_id, partial(self._workspace, m.inbound), owner, purse)
            for m in messages
        ]
        known = await self.learning.known(first, session, epoch)
        inbounds = [unsaid(inbound, queue.memory.standing) for inbound in inbounds]
        inbounds = [naming_files(one, message.inbox_id) for one, message in zip(inbounds, messages, strict=True)]
        now, seed = self.world.clock.now_ms(), self.world.ids.seed()
        settings = with_brought(self.settings, self.world.tools.brought)
        left_out = queue.memory.left_out
        if isinstance(first, FromApi) and first.stateless:
            left_out = self.learning.refused.of(brought(first))
        event = opened_event(
            inbounds, settings, routes, known, at=now, seed=seed, left_out=left_out, standing=standing,
            earlier=queue.memory.foreign, consents=[one.kind for one in await self.consents.standing(first, queue.memory)],
            language=language_for(first, queue.prefs, self.settings.languages),
        )  # fmt: skip
        return PreparedTurn(driver, driver.opening(event), routes[0], standing)

    def opened(self, made: PreparedTurn, messages: tuple[Waiting, ...]) -> TurnDriver:
        """It is open in the store, and has taken the messages."""
        driver, route, standing = made.driver, made.route, made.standing
        if isinstance(driver.outlet, TurnOutlet):
            driver.outlet.attach(driver)
        for message in messages:
            self.chats.begun(message.inbound, message.inbox_id)
        log_started(driver, messages, route.model, route.endpoint, self.world.tell, standing.name, standing.key)
        return driver

    async def _give_up(self, queue: SessionQueue, messages: Sequence[Waiting], reason: str, told: NotStarted) -> None:
        """Messages whose turn cannot be opened must not stop the ones behind them, nor vanish without a word."""
        owner = Owner(queue.session, queue.epoch)
        for message in messages:
            drop = dropping(self.store, message.inbox_id, reason, owner)
            with suppress(Conflict):  # its turn has begun
                await self.chats.not_run(message.inbound, message.inbox_id, owner, told, drop, reason)
                if queue.recent_loaded and queue.key.startswith(f"{PAGE}/"):
                    queue.recent.append(unrun_sight(message, reason))
            if message in queue.waiting:  # still: what could not be stored waits on
                queue.waiting.remove(message)
        queue.wake()

    async def _dropped_meanwhile(self, queue: SessionQueue, messages: Sequence[Waiting]) -> bool:
        """Whether some were dropped on purpose while their turn was being opened; those wait no more, and the others go on waiting."""
        found = [(message, await self.store.inbox.one(message.inbox_id)) for message in messages]
        gone = [(message, row.reason) for message, row in found if row is not None and row.state is InboxState.DROPPED]
        for message, reason in gone:
            if message not in queue.waiting:
                continue  # whoever withdrew it has said so
            queue.waiting.remove(message)
            if reason in (DROPPED, DROPPING):
                owner = Owner(queue.session, queue.epoch)
                drop = dropping(self.store, message.inbox_id, reason, owner)
                await self.chats.not_run(message.inbound, message.inbox_id, owner, NotStarted.FORGOTTEN, drop)
        queue.wake()
        return bool(gone)

    def _workspace(self, inbound: Inbound) -> Path:
        return workspace_of(inbound, self.settings.workspaces)

    def _space(self, inbound: Inbound) -> Space:
        """What counts what is kept of its turn."""
        return self.counting.space(inbound, self._workspace(inbound))

    def driver(
        self,
        turn: str,
        session: str,
        epoch: int,
        messages: tuple[Waiting, ...],
        queue: SessionQueue,
        agent: str,
        instructions: str,
    ) -> TurnDriver:
        """The driver of a turn that this agent (empty: the gateway's own) answers these messages in; neither begun nor resumed yet. `instructions`:
        what the person wants of it."""
        first = messages[0].inbound
        standing = self.standings.named(first, agent)
        if not nameless(first):  # what has a folder of its own for its turn finds none
            upkeep.used(self._workspace(first))
        clock, tell = self.world.clock, self.world.tell
        date = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).date().isoformat()
        if isinstance(first, FromApi) and first.trace:
            self.continues(turn, first.trace)
        identity = TurnIdentity(turn, session, epoch, first.surface, first.session.text())
        caller = ModelCaller(
            client=self.client,
            clock=clock,
            system_prompt="\n\n".join(
                part
                for part in (system_prompt_of(standing.prompt(self.settings.system_prompt), date), instructions)
                if part
            ),
            memory=queue.memory,
            offer=self.offers.to(first, standing),
            connect_seconds=self.settings.connect_seconds,
            spending=self.counting.spending(first, identity, standing),
            turn=turn,
            session=session,
            tell=tell,
            media=MediaKeeper(self.settings.spool, turn, partial(self._space, first)) if self.settings.spool else None,
        )

        known: ToolContext | None = None  # what all calls of the turn have alike is found out once

        def contexts() -> ToolContext:
            nonlocal known
            if known is not None:
                return known
            workspace = self._workspace(first)
            known = ToolContext(
                turn=turn,
                call="",
                key="",
                workspace=workspace,
                memory_scope=standing.scope(memory_of(first)),
                memories=standing.memories(memories_of(first, self.settings.memory_writers)),
                author=asker_of(first),
                writer=first.chat.person.name if isinstance(first, FromChat) else "",
                clock=clock,
                heartbeat=unheard,
                skills=standing.skills,
                space=self.counting.space(first, workspace),
                purse=caller.spending,
            )
            return known

        outlet = outlet_for(self.chats, first, turn, session, epoch)
        return TurnDriver(self.world, identity, caller, contexts, outlet)

    async def load_memory(self, queue: SessionQueue) -> None:
        """The session's earlier turns, once a queue."""
        if not queue.memory_loaded:
            queue.memory = await self.recall.memory(queue.session)
            queue.memory_loaded = True
