"""Carries out the commands of chats. Each is done once: its message is done in the commit that stores what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from adapters.base import REHEARSAL_WORDS, Inbound, NotAccepted
from adapters.chat import ChatOrigin, Content, ContentKind
from adapters.parts import call_mark
from adapters.text.styled import Styled
from agent_core.events import Verdict
from agent_core.ports import Clock
from agent_core.store.rows import PersonRow, SessionChange, TurnRow
from agent_core.store.store import Conflict, Fenced, StorageUnavailable, Store
from agent_core.view import View
from gateway.commands import CommandSpec, help_words, shortened, status_words, usage_words
from gateway.configtypes import SessionPolicy
from gateway.hub import Hub
from gateway.lanes import Lane, person_words
from gateway.outbox import Outbox
from gateway.prefs import Prefs
from gateway.surfaces import Owner

log = structlog.get_logger("chat")

ALWAYS = "always"
HERE = "here"
PATIENCE_SECONDS = 60.0


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

    @property
    def key(self) -> str:
        return self.inbound.session.text()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command says and changes."""

    words: str
    change: SessionChange = field(default_factory=SessionChange)


class People(Protocol):
    """What commands need of the desk."""

    def people(self) -> tuple[PersonRow, ...]: ...

    async def approve(self, code_or_id: str, by: str) -> PersonRow | None: ...

    async def revoke(self, person: str, by: str) -> PersonRow | None: ...

    async def submit(self, inbound: Inbound, key: str, text: str, busy: SessionPolicy | None) -> int: ...


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
        self._turns: dict[str, asyncio.Lock] = {}
        """Who changes a session does it alone."""
        self._handlers: Mapping[str, Callable[[Request], Awaitable[Reply]]] = {
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

    def begin(self, request: Request) -> None:
        """Carry out a command, beside everything else."""
        task = self._group.create_task(self._run(request), name=f"command {request.command.name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        try:
            reply = await self._reply(request)
        except NotAccepted as refused:
            reply = Reply(str(refused))
        except StorageUnavailable:
            raise
        except Exception:
            log.exception("command.failed", command=request.command.name, session=request.owner.session)
            reply = Reply(f"/{request.command.name} failed because of a mistake of mine; the log has the details.")
        await self._respond(request, reply)

    async def _reply(self, request: Request) -> Reply:
        if request.command.admin and not request.admin:
            return Reply("Only admins may do that.")
        return await self._handlers[request.command.name](request)

    async def _respond(self, request: Request, reply: Reply) -> None:
        origin = f"inbox:{request.inbox_id}"
        reply_to = request.origin.reply_to if request.command.name != "press" else request.origin.root
        words = reply.words[:3_800]
        contents = [Content(ContentKind.ASIDE, Styled(words), reply_to=reply_to)] if words else []
        rows = self._outbox.propose(request.origin.address, request.owner, origin, contents)
        began = self._clock.monotonic()
        try:
            while True:
                try:
                    owner = request.owner
                    await self._store.respond(owner.session, owner.epoch, request.inbox_id, reply.change, rows)
                except Conflict as error:
                    log.warning("command.not_stored", command=request.command.name, error=str(error))
                except StorageUnavailable:
                    if self._clock.monotonic() - began > PATIENCE_SECONDS:
                        raise
                    await asyncio.sleep(1.0)
                    continue
                return
        finally:
            self._outbox.release(request.origin.address, origin)

    # ------------------------------------------------------------------ helpers

    def _lane(self, request: Request) -> Lane | None:
        return self._hub.known_lane(request.key)

    async def _last_turn(self, request: Request) -> TurnRow | None:
        """The latest turn of the conversation that was not taken back."""
        session = await self._store.session(request.owner.session)
        since = session.since if session is not None else 0
        for row in reversed(await self._store.turns(request.owner.session, 20)):
            if not row.undone and row.number > since:
                return row
        return None

    async def _stopped(self, request: Request) -> str:
        """Stop what runs or is just about to; what it did, in words, or nothing."""
        lane = self._lane(request)
        if lane is None or (lane.running is None and not lane.waiting):
            return ""
        if lane.running is None:
            ticket = lane.ticket_of(lane.waiting[0])
            return (await self._hub.stop_message(ticket)).words
        return (await self._hub.stop(request.inbound.session)).words

    async def _set(self, request: Request, prefs: Prefs, words: str) -> Reply:
        lane = self._lane(request)
        if lane is not None:
            lane.prefs, lane.prefs_loaded = prefs, True
        return Reply(words, SessionChange(policy=prefs.encode()))

    async def _prefs(self, request: Request) -> Prefs:
        found = await self._store.session(request.owner.session)
        return Prefs.decode(found.policy if found is not None else None)

    # ------------------------------------------------------------------ the commands

    async def _new(self, request: Request) -> Reply:
        await self._stopped(request)
        self._hub.forget_memory(request.key)
        if request.words.strip():
            # The conversation must have begun anew before these words are taken.
            await self._store.change(request.owner.session, request.owner.epoch, SessionChange(forget=True))
            await self._people.submit(request.inbound, f"new:{request.inbound.platform_key}", request.words, None)
            return Reply("")
        return Reply("A new conversation. What was said before is not before me any more.", SessionChange(forget=True))

    async def _stop_here(self, request: Request) -> Reply:
        """A platform's own stop button: it means the turn that is shown there, and that turn's notice is answer enough."""
        lane = self._lane(request)
        here = (request.origin.address, request.origin.root)
        chats = [m.inbound.chat for m in lane.running.messages] if lane is not None and lane.running is not None else []
        if any(chat is not None and (chat.address, chat.root) == here for chat in chats):
            await self._stopped(request)
        return Reply("")

    async def _stop(self, request: Request) -> Reply:
        if request.words.strip() == HERE:
            return await self._stop_here(request)
        lane = self._lane(request)
        waiting = list(lane.waiting) if lane is not None and request.words.strip().lower() == "all" else []
        words = await self._stopped(request)
        dropped = 0
        for message in waiting:
            if lane is not None and (await self._hub.stop_message(lane.ticket_of(message))).stopped:
                dropped += 1
        if dropped:
            words = f"{words}\n{dropped} waiting messages were taken out of the queue.".strip()
        left = len(lane.waiting) if lane is not None else 0
        if left:
            words += f"\n{left} {'message waits and runs' if left == 1 else 'messages wait and run'} now."
        return Reply(words.strip() or "Nothing is running here.")

    async def _retry(self, request: Request) -> Reply:
        lane = self._lane(request)
        if lane is not None and lane.running is not None:
            return Reply("An answer is on its way. /stop it first, then /retry.")
        turn = await self._last_turn(request)
        messages = await self._hub.messages_of(turn.turn) if turn is not None else ()
        if turn is None or not messages:
            return Reply("There is nothing to try again.")
        self._hub.forget_memory(request.key)
        await self._store.change(request.owner.session, request.owner.epoch, SessionChange(undo=turn.turn))
        for number, message in enumerate(messages):
            key = f"retry:{request.inbound.platform_key}:{number}"
            again = replace(message.inbound, platform_key=key)
            await self._hub.accept(again)
        return Reply("")

    async def _undo(self, request: Request) -> Reply:
        lane = self._lane(request)
        if lane is not None and lane.running is not None:
            return Reply("An answer is on its way. /stop it first, then /undo.")
        turn = await self._last_turn(request)
        if turn is None:
            return Reply("There is nothing to take back.")
        messages = await self._hub.messages_of(turn.turn)
        self._hub.forget_memory(request.key)
        said = shortened(" ".join(person_words(m.inbound) for m in messages))
        words = f"Forgotten: “{said}” and what came of it. What tools have done is not undone."
        return Reply(words, SessionChange(undo=turn.turn))

    async def _status(self, request: Request) -> Reply:
        lane = self._lane(request)
        running: View | None = None
        seconds = 0
        waiting: list[str] = []
        if lane is not None:
            waiting = [shortened(person_words(message.inbound)) for message in lane.waiting]
            if lane.running is not None:
                driver = lane.running.driver
                running = driver.current_view()
                seconds = max(0, self._clock.now_ms() - driver.opened_at) // 1000
        model = (await self._prefs(request)).model or self._hub.default_model()
        name = request.origin.address.text()
        trouble = self._outbox.troubles.get(name)
        troubles = [f"Delivery: {trouble.words}"] if trouble is not None else []
        return Reply(
            status_words(
                running=running, seconds=seconds, waiting=waiting, model=model,
                unsent=self._outbox.unsent_of(name), troubles=troubles,
            )
        )  # fmt: skip

    async def _why(self, request: Request) -> Reply:
        lane = self._lane(request)
        if lane is not None and lane.running is not None:
            turn = lane.running.driver.identity.turn
        else:
            rows = await self._store.turns(request.owner.session, 1)
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
        lane = self._lane(request)
        waiting = lane.waiting if lane is not None else []
        listed = [f"{i + 1}. {shortened(person_words(m.inbound))}" for i, m in enumerate(waiting)]
        return Reply("\n".join(listed) or "Nothing waits.")

    async def _steer(self, request: Request) -> Reply:
        words = request.words.strip()
        if words.lower() == ALWAYS:
            prefs = replace(await self._prefs(request), policy=SessionPolicy.STEER)
            return await self._set(request, prefs, "From now on, messages go into the running answer.")
        if not words:
            return Reply("Say what I should take into account: /steer WORDS")
        lane = self._lane(request)
        busy = lane is not None and lane.running is not None
        key = f"steer:{request.inbound.platform_key}"
        await self._people.submit(request.inbound, key, words, SessionPolicy.STEER)
        return Reply("I take that into account at the next step." if busy else "")

    async def _usage(self, request: Request) -> Reply:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        midnight = round(now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
        session = await self._store.usage(request.owner.session)
        today = await self._store.usage(request.owner.session, midnight)
        return Reply(usage_words(session, today))

    async def _help(self, request: Request) -> Reply:
        rehearsal = REHEARSAL_WORDS if self._hub.about().rehearsal else ""
        return Reply(help_words(admin=request.admin, rehearsal=rehearsal))

    async def _access(self, request: Request) -> Reply:
        verb, _, what = request.words.strip().partition(" ")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        match verb:
            case "list" | "":
                listed = [f"{p.state.value} {p.person} {p.name} {p.code}".strip() for p in self._people.people()[:30]]
                return Reply("\n".join(listed) or "Nobody has asked yet.")
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
        lane = self._lane(request)
        driver = lane.running.driver if lane is not None and lane.running is not None else None
        if driver is None or driver.identity.turn != turn:
            return Reply("That is over; nothing waits for a decision any more.")
        call = next((b.call for b in driver.current_view().bubbles if b.call and call_mark(b.call) == mark), "")
        by = f"{request.origin.address.platform}:{request.origin.person.id}"
        done = await self._hub.approve(request.inbound.session, turn, call, verdict, by)
        return Reply("" if done else "That was decided already.")
