"""Carries out the commands of chats. Each is done once: its message is done in the commit that stores what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from adapters.contract.base import REHEARSAL_WORDS, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted
from adapters.delivery.parts import call_mark
from adapters.terminal.operator import NOBODY_ASKED
from adapters.text.styled import Styled
from agent_core.ports import Clock
from agent_core.store.people.rows import PersonRow
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Conflict, Fenced, StorageUnavailable, Store
from agent_core.store.turns.rows import TurnRow
from agent_core.turn.events import Verdict
from agent_core.turn.view import View
from gateway.commands.registry import CommandSpec, shortened, status_words, usage_words
from gateway.config.types import SessionPolicy
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner, queue_origin
from gateway.sessions.hub import Hub
from gateway.sessions.prefs import Prefs
from gateway.sessions.queue import SessionQueue, Waiting, person_words
from gateway.sessions.recents import said_of

log = structlog.get_logger("chat")

ALWAYS = "always"
HERE = "here"
PATIENCE_SECONDS = 60.0
NEW_WORDS = "A new conversation."
LEAVE = "leave"
"""How `/new` is carried out where another chat's conversation goes on."""
STOPPED_THERE = "⚠️ Your message was taken out of the queue by /stop all, given in another chat of this conversation."
ELSEWHERE_WORDS = (
    "This button belongs to another conversation than the one that goes on here now. /resume leads back to it."
)
ANEW = 5
"""How often a command is carried out anew because a schedule changed while it was."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command that was accepted."""

    command: CommandSpec
    words: str
    inbound: Inbound
    origin: ChatOrigin
    inbox_id: int
    owner: Owner
    admin: bool
    own: SessionKey
    """The session that the chat has of its own; another one may go on in it."""
    received_at: int = 0

    @property
    def key(self) -> str:
        return self.inbound.session.text()

    @property
    def visiting(self) -> bool:
        """The conversation of another chat goes on here."""
        return self.origin.kind is ChatKind.PRIVATE and self.own != self.inbound.session


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says and changes."""

    words: str
    change: SessionChange = field(default_factory=SessionChange)
    elsewhere: tuple[tuple[ChatAddress, str], ...] = ()
    """What is said in other chats."""
    contents: tuple[Content, ...] = ()
    """What is shown instead of `words`."""
    schedules: tuple[ScheduleRow, ...] = ()
    """Schedules that it makes or changes."""


Handler = Callable[[Request], Awaitable[Reply]]


class People(Protocol):
    """What commands need of the arrivals."""

    def people(self) -> tuple[PersonRow, ...]: ...

    async def approve(self, code_or_id: str, by: str) -> PersonRow | None: ...

    async def revoke(self, person: str, by: str) -> PersonRow | None: ...

    async def submit(self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None) -> int: ...

    def pointed(self, change: PlaceChange) -> None:
        """It was stored what goes on in a chat."""
        ...

    def help_words(self, *, admin: bool, rehearsal: str) -> str: ...


class ChatCommands:
    """Use it as an async context manager: its tasks are over when it is left."""

    def __init__(self, hub: Hub, store: Store, outbox: Outbox, clock: Clock, people: People) -> None:
        self._hub = hub
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._people = people
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self.under_way: set[int] = set()
        """The commands that are being carried out, by their numbers in the inbox."""
        self._turns: dict[str, asyncio.Lock] = {}
        """Who changes a session does it alone."""
        self.on_scheduled: Callable[[], None] | None = None
        """Told when schedules were stored."""
        self._handlers: dict[str, Handler] = {
            "new": self._new,
            "stop": self._stop,
            "retry": self._retry,
            "undo": self._undo,
            "status": self._status,
            "why": self._why,
            "model": self._model,
            "queue": self._queue,
            "steer": self._steer,
            "usage": self._usage,
            "help": self._help,
            "start": self._help,
            "access": self._access,
            "press": self._press,
        }

    async def __aenter__(self) -> ChatCommands:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def add(self, handlers: Mapping[str, Handler]) -> None:
        """Commands whose doing is elsewhere; before any comes."""
        self._handlers |= handlers

    def begin(self, request: Request) -> asyncio.Task[None]:
        """Carry out a command, beside everything else; the task is this object's own."""
        task = self._group.create_task(self._run(request), name=f"command {request.command.name}")
        self._tasks.add(task)
        self.under_way.add(request.inbox_id)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self.under_way.discard(request.inbox_id))
        return task

    async def _run(self, request: Request) -> None:
        try:
            if not request.command.changes:
                await self._carry_out(request)
                return
            lock = self._turns.setdefault(request.key, asyncio.Lock())
            async with lock:
                await self._carry_out(request)
            if not lock.locked():
                self._turns.pop(request.key, None)
        except Fenced:
            log.warning("command.overtaken", command=request.command.name)
        except Exception:
            log.exception("command.failed", command=request.command.name)

    async def _carry_out(self, request: Request) -> None:
        for _ in range(ANEW):
            if await self._respond(request, await self._answer(request)):
                return
        log.error("command.not_stored", command=request.command.name, session=request.owner.session)

    async def _answer(self, request: Request) -> Reply:
        try:
            return await self._reply(request)
        except NotAccepted as refused:
            return Reply(str(refused))
        except StorageUnavailable:
            raise
        except Exception:
            log.exception("command.failed", command=request.command.name, session=request.owner.session)
            return Reply(f"/{request.command.name} failed because of a mistake of mine; the log has the details.")

    async def _reply(self, request: Request) -> Reply:
        if request.command.admin and not request.admin:
            return Reply("Only admins may do that.")
        return await self._handlers[request.command.name](request)

    async def _respond(self, request: Request, reply: Reply) -> bool:
        """Store what a command says and changes. False if a schedule of it is another by now: carry it out anew."""
        origin = f"inbox:{request.inbox_id}"
        reply_to = request.origin.reply_to if request.command.name != "press" else request.origin.root
        words = reply.words[:3_800]
        contents = [*reply.contents] or (
            [Content(ContentKind.ASIDE, Styled(words), reply_to=reply_to)] if words else []
        )
        rows = self._outbox.words.propose(request.origin.address, request.owner, origin, contents)
        for address, told in reply.elsewhere:
            content = Content(ContentKind.ASIDE, Styled(told))
            rows += self._outbox.words.propose(address, request.owner, origin, [content])
        began, stored = self._clock.monotonic(), False
        try:
            while True:
                try:
                    owner = request.owner
                    await self._store.sessions.respond(
                        owner.session, owner.epoch, request.inbox_id, reply.change, rows, reply.schedules
                    )
                except Conflict as error:
                    log.warning("command.not_stored", command=request.command.name, error=str(error))
                    return not reply.schedules
                except StorageUnavailable:
                    if self._clock.monotonic() - began > PATIENCE_SECONDS:
                        raise
                    await asyncio.sleep(1.0)
                    continue
                stored = True
                if reply.change.place is not None:
                    self._people.pointed(reply.change.place)
                if reply.schedules and self.on_scheduled is not None:
                    self.on_scheduled()
                return True
        finally:
            for address in (request.origin.address, *(address for address, _ in reply.elsewhere)):
                self._outbox.words.release(address, origin, stored=stored)

    # ------------------------------------------------------------------ helpers

    def _queue_of(self, request: Request) -> SessionQueue | None:
        return self._hub.queues.known(request.key)

    async def _last_turn(self, request: Request) -> TurnRow | None:
        """The latest turn of the conversation that was not taken back."""
        session = await self._store.sessions.one(request.owner.session)
        since = session.since if session is not None else 0
        for row in reversed(await self._store.turns.latest(request.owner.session, 20)):
            if not row.undone and row.number > since:
                return row
        return None

    async def _stopped(self, request: Request) -> str:
        """Stop what runs or is just about to; what it did, in words, or nothing."""
        queue = self._queue_of(request)
        if queue is None or (queue.running is None and not queue.waiting):
            return ""
        if queue.running is None:
            message = queue.waiting[0]
            words = (await self._hub.stop_message(queue.ticket_of(message))).words
            if message.inbound.chat is not None:
                self._outbox.words.take_back(message.inbound.chat.address, queue_origin(message.inbox_id))
            return words
        return (await self._hub.stop(request.inbound.session)).words

    async def _set(self, request: Request, prefs: Prefs, words: str) -> Reply:
        queue = self._queue_of(request)
        if queue is not None:
            queue.prefs, queue.prefs_loaded = prefs, True
        return Reply(words, SessionChange(policy=prefs.encode()))

    async def _prefs(self, request: Request) -> Prefs:
        found = await self._store.sessions.one(request.owner.session)
        return Prefs.decode(found.policy if found is not None else None)

    # ------------------------------------------------------------------ the commands

    async def _new(self, request: Request) -> Reply:
        if request.visiting:
            return await self._handlers[LEAVE](request)
        await self._stopped(request)
        self._hub.queues.forget_memory(request.key)
        if request.words.strip():
            # The conversation must have begun anew before these words are taken.
            await self._store.sessions.change(request.owner.session, request.owner.epoch, SessionChange(forget=True))
            await self._people.submit(request.inbound, f"new:{request.inbound.platform_key}", request.words, None)
            return Reply("")
        return Reply(f"{NEW_WORDS} What was said before is not before me any more.", SessionChange(forget=True))

    async def _stop_here(self, request: Request) -> Reply:
        """A platform's own stop button: it means the turn that is shown there, and that turn's notice is answer enough."""
        queue = self._queue_of(request)
        here = (request.origin.address, request.origin.root)
        chats = (
            [m.inbound.chat for m in queue.running.messages] if queue is not None and queue.running is not None else []
        )
        if any(chat is not None and (chat.address, chat.root) == here for chat in chats):
            await self._stopped(request)
        return Reply("")

    async def _stop(self, request: Request) -> Reply:
        if request.words.strip() == HERE:
            return await self._stop_here(request)
        queue = self._queue_of(request)
        waiting = list(queue.waiting) if queue is not None and request.words.strip().lower() == "all" else []
        dropped = 0
        for message in waiting:  # before the running one: the next would begin when that ends
            if queue is not None and await self._dropped(queue, message, request):
                dropped += 1
        words = await self._stopped(request)
        if dropped:
            words = f"{words}\n{dropped} waiting messages were taken out of the queue.".strip()
        left = len(queue.waiting) if queue is not None else 0
        if left:
            words += f"\n{left} {'message waits and runs' if left == 1 else 'messages wait and run'} now."
        return Reply(words.strip() or "Nothing is running here.")

    async def _dropped(self, queue: SessionQueue, message: Waiting, request: Request) -> bool:
        """Take a waiting message out; who wrote it in another chat is told there."""
        elsewhere = message.inbound.chat is not None and message.inbound.chat.address != request.origin.address
        return await drop_waiting(self._hub, self._outbox, queue, message, STOPPED_THERE if elsewhere else "")

    async def _retry(self, request: Request) -> Reply:
        queue = self._queue_of(request)
        if queue is not None and queue.running is not None:
            return Reply("An answer is on its way. /stop it first, then /retry.")
        turn = await self._last_turn(request)
        messages = await self._hub.watching.messages_of(turn.turn) if turn is not None else ()
        if turn is None:
            return Reply("There is nothing to try again.")
        if not messages:
            return Reply(
                "That was so long ago that I do not have your message as it came any more. Send it again, please."
            )
        self._hub.queues.forget_memory(request.key)
        await self._store.sessions.change(request.owner.session, request.owner.epoch, SessionChange(undo=turn.turn))
        for number, message in enumerate(messages):
            key = f"retry:{request.inbound.platform_key}:{number}"
            again = asked_in(message.inbound, request.origin)
            await self._hub.accepting.accept(replace(again, platform_key=key))
        return Reply("")

    async def _undo(self, request: Request) -> Reply:
        queue = self._queue_of(request)
        if queue is not None and queue.running is not None:
            return Reply("An answer is on its way. /stop it first, then /undo.")
        turn = await self._last_turn(request)
        if turn is None:
            return Reply("There is nothing to take back.")
        if turn.removed:
            return Reply(f"There is nothing to take back: what was said here last is {turn.removed}.")
        messages = await self._hub.watching.messages_of(turn.turn)
        self._hub.queues.forget_memory(request.key)
        said = " ".join(person_words(m.inbound) for m in messages) or await said_of(self._store, turn.turn)
        what = f"“{shortened(said)}”" if said.strip() else "your last message"
        words = f"Forgotten: {what} and what came of it. What tools have done is not undone."
        return Reply(words, SessionChange(undo=turn.turn))

    async def _status(self, request: Request) -> Reply:
        queue = self._queue_of(request)
        running: View | None = None
        seconds = 0
        waiting: list[str] = []
        if queue is not None:
            waiting = [shortened(person_words(message.inbound)) for message in queue.waiting]
            if queue.running is not None:
                driver = queue.running.driver
                running = driver.current_view()
                seconds = max(0, self._clock.now_ms() - driver.opened_at) // 1000
        model = (await self._prefs(request)).model or self._hub.chain.default
        name = request.origin.address.text()
        trouble = self._outbox.troubles.known.get(name)
        troubles = [f"Delivery: {trouble.words}"] if trouble is not None else []
        if request.visiting:
            troubles.append(f"The conversation from {request.inbound.session.platform.capitalize()} goes on here.")
        if queue is not None and queue.running is not None and not queue.running.same_chat(request.inbound):
            troubles.append("What runs was asked in another chat, and is shown there.")
        return Reply(
            status_words(
                running=running, seconds=seconds, waiting=waiting, model=model,
                unsent=self._outbox.surfaces.unsent_of(name), troubles=troubles,
            )
        )  # fmt: skip

    async def _why(self, request: Request) -> Reply:
        queue = self._queue_of(request)
        if queue is not None and queue.running is not None:
            turn = queue.running.driver.identity.turn
        else:
            rows = await self._store.turns.latest(request.owner.session, 1)
            turn = rows[0].turn if rows else ""
        return await self._story(turn)

    async def _story(self, turn: str) -> Reply:
        lines = await self._hub.why(turn) if turn else ()
        return Reply("\n".join(lines) or "There was no answer here yet.")

    async def _model(self, request: Request) -> Reply:
        prefs = await self._prefs(request)
        names = self._hub.about().models
        wished = request.words.strip()
        if not wished:
            listed = "\n".join(f"{'▸' if name == (prefs.model or names[0]) else '·'} {name}" for name in names)
            return Reply(f"{listed}\nChoose one: /model NAME")
        if wished not in names:
            return Reply(f"There is no model called {wished} here. There is: {', '.join(names)}.")
        chosen = "" if wished == names[0] else wished
        return await self._set(request, replace(prefs, model=chosen), f"From now on: {wished}.")

    async def _queue(self, request: Request) -> Reply:
        words = request.words.strip()
        if words.lower() == ALWAYS:
            prefs = replace(await self._prefs(request), policy=SessionPolicy.QUEUE)
            return await self._set(request, prefs, "From now on, messages wait while I am at work.")
        if words:
            key = f"queue:{request.inbound.platform_key}"
            await self._people.submit(request.inbound, key, words, SessionPolicy.QUEUE)
            return Reply("")
        queue = self._queue_of(request)
        waiting = queue.waiting if queue is not None else []
        listed = [f"{i + 1}. {shortened(person_words(m.inbound))}" for i, m in enumerate(waiting)]
        return Reply("\n".join(listed) or "Nothing waits.")

    async def _steer(self, request: Request) -> Reply:
        words = request.words.strip()
        if words.lower() == ALWAYS:
            prefs = replace(await self._prefs(request), policy=SessionPolicy.STEER)
            return await self._set(request, prefs, "From now on, messages go into the running answer.")
        if not words:
            return Reply("Say what I should take into account: /steer WORDS")
        queue = self._queue_of(request)
        busy = queue is not None and queue.running is not None and queue.running.same_chat(request.inbound)
        key = f"steer:{request.inbound.platform_key}"
        await self._people.submit(request.inbound, key, words, SessionPolicy.STEER)
        return Reply("I take that into account at the next step." if busy else "")

    async def _usage(self, request: Request) -> Reply:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        midnight = round(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
        session = await self._store.turns.usage(request.owner.session)
        today = await self._store.turns.usage(request.owner.session, midnight)
        budgets = self._hub.budgets
        lines = await budgets.usage(request.inbound) if budgets is not None else ()
        quotas = self._hub.quotas
        kept = await quotas.lines(request.inbound) if quotas is not None else ()
        return Reply("\n".join((usage_words(session, today), *lines, *kept)))

    async def _help(self, request: Request) -> Reply:
        rehearsal = REHEARSAL_WORDS if self._hub.about().rehearsal else ""
        return Reply(self._people.help_words(admin=request.admin, rehearsal=rehearsal))

    async def _access(self, request: Request) -> Reply:
        verb, _, what = request.words.strip().partition(" ")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        match verb:
            case "list" | "":
                listed = [f"{p.state.value} {p.person} {p.name} {p.code}".strip() for p in self._people.people()[:30]]
                return Reply("\n".join(listed) or NOBODY_ASKED)
            case "approve":
                row = await self._people.approve(what, by)
                return Reply(
                    f"{row.name} may talk to me now." if row else "No such code or person; codes live an hour."
                )
            case "revoke":
                row = await self._people.revoke(what, by)
                return Reply(f"{row.name} may not talk to me any more." if row else "I know nobody with this id.")
            case _:
                return Reply("/access list, /access approve CODE, /access revoke ID")

    # ------------------------------------------------------------------ buttons

    async def _press(self, request: Request) -> Reply:
        kind, _, rest = request.words.partition(":")
        turn, _, mark = rest.partition(":")
        shown = await self._store.turns.one(turn) if request.origin.kind is ChatKind.PRIVATE else None
        if kind in ("continue", "retry") and shown is not None and shown.session != request.owner.session:
            return Reply(ELSEWHERE_WORDS)
        match kind:
            case "continue":
                key = f"continue:{request.inbound.platform_key}"
                await self._people.submit(request.inbound, key, "continue", None)
                return Reply("")
            case "retry":
                return await self._retry(request)
            case "why":
                return await self._story(turn)
            case "feedback":
                log.info(
                    "feedback.given", turn=turn, judged=mark, session=request.owner.session, by=request.origin.person.id
                )
                return Reply("Thank you, that is noted.")
            case "allow" | "deny":
                return await self._decide(request, turn, mark, Verdict.GIVEN if kind == "allow" else Verdict.DENIED)
            case _:
                return Reply("This button is from another version of me and does nothing any more.")

    async def _decide(self, request: Request, turn: str, mark: str, verdict: Verdict) -> Reply:
        queue = await self._queue_of_button(request, turn)
        driver = queue.running.driver if queue is not None and queue.running is not None else None
        if queue is None or driver is None or driver.identity.turn != turn:
            return Reply("That is over; nothing waits for a decision any more.")
        call = next((b.call for b in driver.current_view().bubbles if b.call and call_mark(b.call) == mark), "")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        done = await self._hub.approve(SessionKey.of(queue.key), turn, call, verdict, by)
        return Reply("" if done else "That was decided already.")

    async def _queue_of_button(self, request: Request, turn: str) -> SessionQueue | None:
        """Where the turn of a button runs: here, or in a conversation that went on here when it was asked."""
        row = await self._store.turns.one(turn)
        queue = self._hub.queues.of(row.session) if row is not None else None
        if queue is None or queue.key == request.key or queue.running is None:
            return queue
        return queue if queue.running.same_chat(request.inbound) else None


def asked_in(inbound: Inbound, origin: ChatOrigin) -> Inbound:
    """A message as if it had been written where a command was given: what follows is shown there."""
    if inbound.chat is None or inbound.chat.address == origin.address:
        return inbound
    moved = replace(origin, attachments=inbound.chat.attachments)
    return replace(inbound, chat=moved, surface=origin.address.platform)


async def drop_waiting(hub: Hub, outbox: Outbox, queue: SessionQueue, message: Waiting, words: str) -> bool:
    """Take a message out of its queue, and say `words` (if any) where it was written. False if it did not wait any more."""
    if not (await hub.stop_message(queue.ticket_of(message))).stopped:
        return False
    if message.inbound.chat is not None:
        outbox.words.take_back(message.inbound.chat.address, queue_origin(message.inbox_id))
    if message.inbound.chat is not None and words:
        content = Content(ContentKind.ASIDE, Styled(words), reply_to=message.inbound.chat.reply_to)
        owner = Owner(queue.session, queue.epoch)
        await outbox.words.say(message.inbound.chat.address, owner, f"inbox:{message.inbox_id}", content)
    return True
