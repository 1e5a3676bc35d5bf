"""Background tasks: something is done in a turn of its own, beside the conversation, which is told when it ends, whatever the end is.

A task is a row and a message. The row is stored first and holds the message; only what is stored is begun. So each start looks at the rows
that are open, begins what was not (the message's key makes a second time nothing new), and follows it to its end. The end is a follow-up under a
key of its own, and only then is the row done: between any two of these the process may die, and nothing is lost or told twice.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import structlog

from adapters.contract.base import Ended, FromApi, FromChat, Inbound, LeftOpen, SessionKey, Showing, TaskTerms, Ticket
from adapters.contract.chat import ChatOrigin
from adapters.contract.notaccepted import NotAccepted
from agent_core import storedjson
from agent_core.failures.exits import ExitCode
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import Amount
from agent_core.messages import InputMessage
from agent_core.records import dataclass
from agent_core.retry import Retry
from agent_core.rules.taint import PLANTED
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.slices.rows import slice_of
from agent_core.store.store import Conflict, OwnedElsewhere, StorageUnavailable
from agent_core.text.tongue import spelled
from agent_core.tools.base import NotPossible, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.offer import ToolsFrom
from agent_core.turn.view import BubbleKind, View
from gateway.later.followups import FollowUpsHere, bare
from gateway.later.parts import Later
from gateway.limits.whose import author_of
from gateway.queues import inbox
from gateway.queues.languages import PAGE
from gateway.schedule import toolspecs
from gateway.schedule.schedules import ASKED_KINDS, TASK
from gateway.schedule.times import span

if TYPE_CHECKING:
    from pydantic import TypeAdapter

log = structlog.get_logger("task")

MISTAKE_SECONDS = 60.0
"""Pause after a mistake of ours: its turn goes on meanwhile."""
AGAIN_SECONDS = 5.0
"""Pause before a task is looked after again that could not be, because the storage is away."""
LONGEST_STATUS_SECONDS = 3600.0
SHOWN_OVER = 5
"""So many of those that are over are shown, the latest first."""
CLEAN = frozenset({ExitCode.ANSWERED})


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """What the operator allows."""

    at_once: int
    at_once_all: int
    seconds: int
    steps: int
    status_seconds: float
    most: Amount = Amount()
    """What one may use; 0: as any turn."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A task, as its row holds it."""

    title: str
    started_at: int
    asked: str
    """The message that asked for it, as it is stored."""
    work: FromApi
    """The message that it is."""
    ended: TaskEnd | None = None
    """Once it is over."""
    cancelled: bool = False
    """Somebody wants it stopped."""


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """How a task ended."""

    done: bool
    seconds: int
    tokens: int


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """How far a task is."""

    number: int
    title: str
    started_at: int
    begun: bool = False
    steps: int = 0
    """Model calls that came to a good end."""
    most_steps: int = 0
    tokens: int = 0
    """Used so far, in the name of whoever asked for it."""
    asks: bool = False
    doing: str = ""
    """What it runs."""


@functools.cache
def _plans() -> TypeAdapter[TaskPlan]:
    from pydantic import TypeAdapter

    return TypeAdapter(TaskPlan)


class Tasks:
    """Use `running` while the gateway serves."""

    def __init__(self, later: Later, follow_ups: FollowUpsHere, limits: TaskLimits) -> None:
        self._later = later
        self._follow_ups = follow_ups
        self.limits = limits
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._taking_up: set[asyncio.Task[None]] = set()
        self._tickets: dict[str, Ticket] = {}
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Tasks are looked after for the block; those that run at its end go on with the next start."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            self.look()
            try:
                yield
            finally:
                self._group = None
                for task in (*self._taking_up, *self._watching.values()):
                    task.cancel()

    def look(self) -> None:
        """There may be tasks of others that are ours to look after from now on."""
        if self._group is not None:
            task = self._group.create_task(self._take_up())
            self._taking_up.add(task)
            task.add_done_callback(self._taking_up.discard)

    async def start(self, context: ToolContext, title: str, prompt: str) -> ScheduleRow:
        """Store a task and begin it; the same call begins one. Raises `NotPossible`, `StorageUnavailable`."""
        asked = await self._later.seen_by(context.turn)
        name, key = f"{TASK}:{context.key}", asked.session.text()
        async with self._later.parts.alone(key):
            known = await self._later.store.schedules.one(name)
            if known is not None:
                return known
            rows = await self._later.store.schedules.of(key, *ASKED_KINDS)
            await self._check_room(rows)
            now = self._later.clock.now_ms()
            number = max((row.number for row in rows), default=0) + 1
            plan = TaskPlan(
                title,
                now,
                inbox.encode(emptied(asked)).decode(),
                work_of(asked, name, number, title, prompt, self.limits, tainted=context.tainted),
            )
            row = ScheduleRow(
                schedule=name, kind=TASK, session_key=key, surface="", number=number, rule=f"once {now}",
                body=storedjson.dumps(plan), next_at=None, at=now,
            )  # fmt: skip
            await self._later.store.schedules.put(row, context.turn)
        self._watch(row)
        return row

    async def _check_room(self, rows: list[ScheduleRow]) -> None:
        mine = sum(row.kind == TASK for row in rows)
        if mine >= self.limits.at_once:
            raise NotPossible(
                f"{mine} tasks run here already, and no more may. Nothing was begun; do it now instead, or cancel one of them."
            )
        everybodys = [
            row for row in await self._later.store.schedules.named(f"{TASK}:") if row.state is ScheduleState.ACTIVE
        ]
        if len(everybodys) >= self.limits.at_once_all:
            raise NotPossible(
                "The gateway runs as many tasks as it may just now. Nothing was begun; do it now instead, or later."
            )

    async def cancel(self, row: ScheduleRow) -> None:
        """Stop a task; its end is told as any other. That is stored first: whoever begins it, or goes on with it, finds it. Raises `StorageUnavailable`."""

        def wanted(now: ScheduleRow) -> ScheduleRow:
            plan = _plans().validate_json(now.body)
            return replace(now, body=storedjson.dumps(replace(plan, cancelled=True)), rev=now.rev + 1)

        with suppress(ValueError):  # what cannot be read is not run
            await self._change(row.schedule, wanted)
        ticket = self._tickets.get(row.schedule)
        if ticket is not None:
            await self._later.parts.stop(ticket)

    async def over(self, session_key: str) -> list[tuple[int, TaskPlan, int]]:
        """The latest tasks of a conversation that are over: number, what it was, and when it ended (ms). Raises `StorageUnavailable`."""
        found: list[tuple[int, TaskPlan, int]] = []
        for row in await self._later.store.schedules.over(session_key, TASK, SHOWN_OVER):
            with suppress(ValueError):
                plan = _plans().validate_json(row.body)
                found += [(row.number, plan, row.at)] if plan.ended is not None else []
        return found

    def progress(self, row: ScheduleRow) -> TaskProgress:
        """How far a task is, as far as it runs here."""
        try:
            plan = _plans().validate_json(row.body)
        except ValueError:
            return TaskProgress(row.number, "?", row.at)
        ticket = self._tickets.get(row.schedule)
        queue = self._later.parts.accepting.queues.of(ticket.session) if ticket is not None else None
        running = queue.running if queue is not None else None
        if running is None:
            return TaskProgress(row.number, plan.title, plan.started_at)
        turn, bubbles = running.driver.turn, running.driver.seen.current_view().bubbles
        acts = [one.text for one in bubbles if one.kind is BubbleKind.ACTIVITY and one.state == "running"]
        return TaskProgress(
            row.number, plan.title, plan.started_at, begun=True, steps=turn.steps_done, most_steps=turn.settings.max_steps,
            tokens=turn.input_tokens + turn.output_tokens, asks=any(one.kind is BubbleKind.APPROVAL for one in bubbles),
            doing=acts[-1] if acts else "",
        )  # fmt: skip

    # ------------------------------------------------------------------ looking after them

    async def _take_up(self) -> None:
        """What an earlier process left."""
        while True:
            try:
                rows = await self._later.store.schedules.named(f"{TASK}:")
            except StorageUnavailable:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            for row in rows:
                if row.state is ScheduleState.ACTIVE and self._mine(row):
                    self._watch(row)
            return

    def _mine(self, row: ScheduleRow) -> bool:
        """This gateway looks after it."""
        parts = self._later.whole
        return parts is None or parts.accepting.portion.mine(row.session_key)

    def _watch(self, row: ScheduleRow) -> None:
        if self._group is not None and row.schedule not in self._watching:
            task = self._group.create_task(self._look_after(row), name=row.schedule)
            self._watching[row.schedule] = task
            task.add_done_callback(lambda _: self._watching.pop(row.schedule, None))

    async def _look_after(self, row: ScheduleRow) -> None:
        try:
            plan = _plans().validate_json(row.body)
        except ValueError:
            log.exception("task.failed", task=row.schedule)
            return
        while True:
            try:
                title, words, end = await self._ended(row, plan)
                await self._tell(row, replace(plan, ended=end), title, words)
            except _LeftOpen:
                if not self._mine(row):
                    return  # whoever has it now looks after it, too
                await asyncio.sleep(AGAIN_SECONDS)  # this process ends, or its database was away for long
                continue
            except StorageUnavailable:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            except Exception:
                log.exception("task.failed", task=row.schedule)
                await asyncio.sleep(MISTAKE_SECONDS)
                continue
            return

    async def _ended(self, row: ScheduleRow, plan: TaskPlan) -> tuple[str, str, TaskEnd]:
        """Begin it, unless it is begun, and follow it: how it ended, in one line, in its words and in figures."""
        began = plan.started_at
        while True:
            try:
                ticket = await self._later.parts.accepting.accept(plan.work)
                break
            except NotAccepted as refused:
                if not refused.code.passes:
                    title = f"Task {row.number} ({plan.title}) could not be begun: {refused}"
                    return title, "It was not begun.", TaskEnd(done=False, seconds=0, tokens=0)
                await asyncio.sleep(AGAIN_SECONDS)
        self._tickets[row.schedule] = ticket
        try:
            if await self._is_cancelled(row.schedule):
                await self._later.parts.stop(ticket)
            sight = await self._followed(row, plan, ticket)
        finally:
            self._tickets.pop(row.schedule, None)
        seconds, summary = (self._later.clock.now_ms() - began) // 1000, sight.summary if sight is not None else None
        tokens = summary.input_tokens + summary.output_tokens if summary is not None else 0
        end = TaskEnd(done=sight is not None and sight.exit.code in CLEAN, seconds=seconds, tokens=tokens)
        return *end_words(row.number, plan.title, sight, seconds), end

    async def _followed(self, row: ScheduleRow, plan: TaskPlan, ticket: Ticket) -> Ended | None:
        """Its end; None if it was taken out before it began. Now and then its chat is told how far it is."""
        loop = asyncio.get_running_loop()
        pauses, told = Retry(self.limits.status_seconds, LONGEST_STATUS_SECONDS), 1
        next_status, view = loop.time() + pauses.seconds(told), View((), open=True)
        async with self._later.parts.follow(ticket) as follower:
            while True:
                sight = await follower.next(min(30.0, max(0.1, next_status - loop.time())))
                match sight:
                    case Ended():
                        return sight
                    case LeftOpen():
                        raise _LeftOpen
                    case Showing():
                        begun, view = view.bubbles == (), sight.view
                        if begun and (page := self._later.parts.accepting.queues.known(row.session_key)) is not None:
                            page.wake()  # who has the page open looks at what it asks from now on
                    case _:
                        if await self._dropped(ticket):
                            return None
                if loop.time() >= next_status:
                    told += 1
                    next_status = loop.time() + pauses.seconds(told)
                    await self._say(row, plan, status_words(row.number, plan, view, self._later.clock.now_ms()))

    async def _dropped(self, ticket: Ticket) -> bool:
        stored = await self._later.store.inbox.one(ticket.inbox_id)
        return stored is None or stored.state.value == "dropped"

    async def _say(self, row: ScheduleRow, plan: TaskPlan, words: str) -> None:
        asked = inbox.decode(plan.asked.encode())
        if isinstance(asked, FromChat):
            with suppress(StorageUnavailable, OwnedElsewhere):  # nobody misses it: the end is told for certain
                await self._later.parts.post(
                    asked.chat.address, f"{row.schedule}:at:{self._later.clock.now_ms()}", words
                )

    async def _tell(self, row: ScheduleRow, plan: TaskPlan, title: str, words: str) -> None:
        """Tell its conversation, then note that it is over. Said twice, it is told once."""
        told = await self._follow_ups.begin_for(
            inbox.decode(plan.asked.encode()), f"{row.schedule}:ended", title, words
        )
        await self._note_over(row.schedule, plan)
        log.info("task.ended", task=row.schedule, told=told)

    async def _note_over(self, name: str, plan: TaskPlan) -> None:
        """Note that it is over, as its row is by now: its chat may have another id since it was begun, or its conversation was forgotten."""
        now, body = self._later.clock.now_ms(), storedjson.dumps(plan)
        await self._change(name, lambda row: replace(row, state=ScheduleState.DONE, body=body, rev=row.rev + 1, at=now))

    async def _change(self, name: str, made: Callable[[ScheduleRow], ScheduleRow]) -> None:
        """Store its row as it is `made` of what it is by now, while it is not over."""
        schedules = self._later.store.schedules
        while (row := await schedules.one(name)) is not None and row.state is ScheduleState.ACTIVE:
            with suppress(Conflict):
                await schedules.put(made(row))
                return

    async def _is_cancelled(self, name: str) -> bool:
        row = await self._later.store.schedules.one(name)
        return row is not None and _plans().validate_json(row.body).cancelled


class _LeftOpen(Exception):
    """Nothing more is seen of it here: this process is about to end, or does not reach its database."""


@dataclass(frozen=True, slots=True)
class StartTask:
    """Begins a task."""

    tasks: Tasks
    spec: ToolSpec = toolspecs.START_TASK

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        title, prompt = " ".join(str(arguments["title"]).split()), str(arguments["instructions"]).strip()
        if not title or not prompt:
            raise NotPossible("A task needs a title and instructions. Nothing was begun.")
        try:
            row = await self.tasks.start(context, title, prompt)
        except StorageUnavailable:
            return ToolOutcome(
                ToolStatus.FAILED,
                "The storage cannot be reached just now, so nothing is known to be begun. Look with list_scheduled.",
            )
        limits = self.tasks.limits
        return ToolOutcome(
            ToolStatus.OK,
            f"Stored and begun as number {row.number}: {title}. It may take {span(limits.seconds)} and {limits.steps} steps; this conversation is told "
            "when it ends, however it ends. It is not done yet, so do not say that it is.",
        )


def work_of(
    asked: Inbound, name: str, number: int, title: str, prompt: str, limits: TaskLimits, *, tainted: bool
) -> FromApi:
    """The message that a task is: in the asker's name and folder, in a conversation of its own. What a `tainted` turn has it do may be the wish
    of others. Begun in a chat or on the page, its calls can be approved there. Pure."""
    chat = _place(asked.chat) if isinstance(asked, FromChat) else None
    terms = TaskTerms(
        asked.session.text(), author_of(asked), limits.seconds, limits.steps, chat=chat, number=number, title=title,
        tokens=limits.most.tokens, nanos=limits.most.nanos,
    )  # fmt: skip
    said = (
        f"[Background task “{title}”: the conversation that began it waits for its result, and knows nothing but what you reply at the "
        f"end. Reply with the result, or with what was not possible and why.]\n\n{prompt}"
    )
    own = asked if isinstance(asked, FromApi) else None
    return FromApi(
        account=asked.account, platform_key=name, session=key_beside(asked.session, name), surface=TASK,
        input=(InputMessage(said, foreign=PLANTED if tainted else ""),),
        memory_scope=asked.memory_scope, browser=own.browser if own is not None else "", key=own.key if own is not None else "",
        tools_from=ToolsFrom.GATEWAY, task=terms, can_approve=chat is not None or (own is not None and own.surface == PAGE and own.can_approve),
    )  # fmt: skip


def key_beside(conversation: SessionKey, name: str) -> SessionKey:
    """The key of a task's own conversation, in the slice of the one that began it: one gateway runs both, so that what the task asks is seen where its
    conversation is. It is the name that finds it there, and not the way in which slices are counted, so that gateways of all versions agree. Pure."""
    wanted = slice_of(conversation.text())
    keys = (SessionKey(TASK, "", f"{name}~{number}" if number else name) for number in itertools.count())
    return next(key for key in keys if slice_of(key.text()) == wanted)


def _place(chat: ChatOrigin) -> ChatOrigin:
    return replace(chat, message="", attachments=(), group="", unfinished=False, foreign="")


def emptied(asked: Inbound) -> Inbound:
    """The message that asked, without what was said in it. Pure."""
    return bare(asked) if isinstance(asked, FromApi) else replace(asked, input=())


def end_words(number: int, title: str, ended: Ended | None, seconds: int) -> tuple[str, str]:
    """(how a task ended in one line, what came of it). Pure."""
    name = f"Task {number} ({title})"
    if ended is None:
        return f"{name} was taken out before it began. Nothing of it was done.", "It was not begun."
    notices = " ".join(spelled(bubble.text) for bubble in ended.view.bubbles if bubble.kind is BubbleKind.NOTICE)
    if ended.exit.code in CLEAN:
        return f"{name} is done, after {span(seconds)}.", ended.view.text
    return (
        f"{name} has ended without its result, after {span(seconds)}: {notices or ended.exit.code.value}",
        ended.view.text,
    )


def status_words(number: int, plan: TaskPlan, view: View, now: int) -> str:
    """How far a task is, for its chat. Pure."""
    running = [
        bubble.text for bubble in view.bubbles if bubble.kind is BubbleKind.ACTIVITY and bubble.state == "running"
    ]
    asks = any(bubble.kind is BubbleKind.APPROVAL for bubble in view.bubbles)
    doing = ", waiting for your approval" if asks else f", running {running[-1]}" if running else ""
    return f"⏳ Task {number} ({plan.title}) goes on: {span((now - plan.started_at) // 1000)} so far{doing}."


def task_line(row: ScheduleRow, now: int) -> str:
    """A task in a list. Pure."""
    try:
        plan = orjson.loads(row.body)
        return f"{row.number}. running for {span((now - int(plan['started_at'])) // 1000)}: {plan['title']}"
    except (ValueError, KeyError, TypeError):
        return f"{row.number}. (a task that cannot be read)"


def task_planted(row: ScheduleRow) -> bool:
    """Whether the words of a task may be those of others: a turn began it that had read some. Pure."""
    try:
        return any(one.foreign for one in _plans().validate_json(row.body).work.input)
    except ValueError:
        return False  # none of them are shown
