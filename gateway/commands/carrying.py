"""Carries out the commands of chats. Each is done once: its message is done in the commit that stores what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from weakref import WeakValueDictionary

import structlog

from adapters.contract.base import FromApi, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, Content, ContentKind
from adapters.contract.notaccepted import NotAccepted
from adapters.text.styled import Styled, units
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.sessions.rows import PlaceChange, SessionChange
from agent_core.store.store import Conflict, Fenced, StorageUnavailable, Store
from agent_core.text.tongue import begin_speaking, command, known_sentence, number, speak
from gateway.commands.registry import CommandSpec
from gateway.delivery.outbox import Outbox
from gateway.delivery.owners import Owner
from gateway.limits.whose import shown_in
from gateway.queues.languages import Languages
from gateway.sharing.inhand import InHand

log = structlog.get_logger("chat")

PATIENCE_SECONDS = 60.0
LEAVE = "leave"
"""How `/new` is carried out where another chat's conversation goes on."""
PIECE_UNITS, MOST_PIECES = 3_800, 10
"""How much of what a command says is in a message, and in how many."""
ANEW = 5
"""How often a command is carried out anew because a schedule changed while it was."""


@dataclass(frozen=True, slots=True)
class Request:
    """A command that was accepted."""

    command: CommandSpec
    words: str
    inbound: Inbound
    inbox_id: int
    owner: Owner
    admin: bool
    own: SessionKey
    """The session that the chat has of its own; another one may go on in it."""
    received_at: int = 0
    arrival: int = 0
    """Its place among the messages of its conversation."""

    @property
    def origin(self) -> ChatOrigin:
        """Where it was given: a chat, or the web page."""
        return shown_in(self.inbound)

    @property
    def key(self) -> str:
        return self.inbound.session.text()

    @property
    def visiting(self) -> bool:
        """The conversation of another chat goes on here."""
        return self.origin.kind is ChatKind.PRIVATE and self.own != self.inbound.session


@dataclass(frozen=True, slots=True)
class CommandReply:
    """What a command says and changes."""

    words: str
    change: SessionChange = field(default_factory=SessionChange)
    elsewhere: tuple[tuple[ChatAddress, str], ...] = ()
    """What is said in other chats."""
    contents: tuple[Content, ...] = ()
    """What is shown instead of `words`."""
    schedules: tuple[ScheduleRow, ...] = ()
    """Schedules that it makes or changes."""


def said_in(words: str) -> Sequence[Styled]:
    """What a command says, in as many messages as that takes; what is too much for some says so at its end. Pure."""
    whole = Styled(words)
    if units(words) <= PIECE_UNITS:
        return (whole,)
    from adapters.text.split import split  # seldom is so much said

    pieces = split(whole, PIECE_UNITS)
    if len(pieces) <= MOST_PIECES:
        return pieces
    left, last = sum(len(one.text) for one in pieces[MOST_PIECES:]), pieces[MOST_PIECES - 1].text
    cut = speak(
        "{before} […{count} characters are left out here…] {behind}", before=last, count=number(left), behind=""
    )
    return (*pieces[: MOST_PIECES - 1], Styled(cut.rstrip()))


Handler = Callable[[Request], Awaitable[CommandReply]]


async def at_once(_key: str) -> None:
    """Nothing is ever left there."""


class ChatCommands:
    """Use it as an async context manager: its tasks are over when it is left."""

    def __init__(
        self,
        handlers: Callable[[], Awaitable[Mapping[str, Handler]]],
        store: Store,
        outbox: Outbox,
        clock: Clock,
        pointed: Callable[[PlaceChange], None],
        scheduled: Callable[[], None],
        retold: Callable[[str], None],
        on_page: Callable[[Request, list[str], str], None],
        languages: Languages,
        taken_up: Callable[[str], Awaitable[None]] = at_once,
    ) -> None:
        """`handlers` is asked for what carries out each command when one is given, `pointed` is told when it was stored what goes on in a chat, `scheduled` when schedules were, `retold` the key of a conversation of
        which the model is told something else from now on, `on_page` what was said there and which turn it took back. `taken_up` waits, not for long, until it is known what an earlier process left in a conversation."""
        self._handlers = handlers
        self._store = store
        self._outbox = outbox
        self._clock = clock
        self._pointed = pointed
        self._scheduled = scheduled
        self._retold = retold
        self._on_page = on_page
        self._languages = languages
        self._taken_up = taken_up
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self.in_hand = InHand[int, str]()
        """The commands that are being carried out, by their numbers in the inbox: the keys of their sessions."""
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """Who changes a session does it alone. A lock is there for as long as somebody has it or waits for it."""

    async def __aenter__(self) -> ChatCommands:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)

    def begin(self, request: Request) -> asyncio.Task[None]:
        """Carry out a command, beside everything else; the task is this object's own."""
        task = self._group.create_task(self._run(request), name=f"command {request.command.name}")
        self._tasks.add(task)
        self.in_hand.take(request.inbox_id, request.key)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self.in_hand.leave(request.inbox_id))
        return task

    @asynccontextmanager
    async def alone(self, key: str) -> AsyncGenerator[None]:
        """No command changes the session with this key while the block runs."""
        lock = self._turns.setdefault(key, asyncio.Lock())
        async with lock:
            yield

    async def _run(self, request: Request) -> None:
        try:
            with suppress(StorageUnavailable):  # what is carried out asks it again, with patience
                begin_speaking(await self._languages.of(request.inbound, request.owner.session))
            if not request.command.own:
                await self._taken_up(request.key)
            if not request.command.changes:
                await self._carry_out(request)
                return
            async with self.alone(request.key):
                await self._carry_out(request)
        except Fenced:
            log.warning("command.overtaken", command=request.command.name)
        except Exception:
            log.exception("command.failed", command=request.command.name)

    async def _carry_out(self, request: Request) -> None:
        for _ in range(ANEW):
            if await self._respond(request, await self._answer(request)):
                return
        log.error("command.not_stored", command=request.command.name, session=request.owner.session)

    async def _answer(self, request: Request) -> CommandReply:
        try:
            return await self._reply(request)
        except NotAccepted as refused:
            return CommandReply(str(refused))
        except StorageUnavailable:
            raise
        except Exception:
            log.exception("command.failed", command=request.command.name, session=request.owner.session)
            return CommandReply(
                speak(
                    "{command} failed because of a mistake of mine; the log has the details.",
                    command=command(request.command.name),
                )
            )

    async def _reply(self, request: Request) -> CommandReply:
        if request.command.admin and not request.admin:
            return CommandReply(speak("Only admins may do that."))
        return await (await self._handlers())[request.command.name](request)

    async def _respond(self, request: Request, reply: CommandReply) -> bool:
        """Store what a command says and changes. False if a schedule of it is another by now: carry it out anew."""
        origin = f"inbox:{request.inbox_id}"
        reply_to = request.origin.reply_to if request.command.name != "press" else request.origin.root
        said = said_in(known_sentence(reply.words)) if reply.words else ()
        contents = [*reply.contents] or [Content(ContentKind.ASIDE, one, reply_to=reply_to) for one in said]
        rows = self._parts(request, origin, contents)
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
                    self._pointed(reply.change.place)
                if reply.schedules:
                    self._scheduled()
                if reply.change.forget or reply.change.undo:
                    self._retold(request.key)
                if isinstance(request.inbound, FromApi):
                    self._on_page(request, [one.body.text for one in contents], reply.change.undo or "")
                return True
        finally:
            own = () if isinstance(request.inbound, FromApi) else (request.origin.address,)
            for address in (*own, *(address for address, _ in reply.elsewhere)):
                self._outbox.words.release(address, origin, stored=stored)

    def _parts(self, request: Request, origin: str, contents: Sequence[Content]) -> list[DeliveryRow]:
        """What a command says, to be stored with what it changes."""
        if not isinstance(request.inbound, FromApi):
            return self._outbox.words.propose(request.origin.address, request.owner, origin, contents)
        from gateway.queues.pageanswers import page_parts  # of the page alone

        records = self._outbox.records
        rows = page_parts(request.origin.address.text(), origin, contents, records.next_place, self._clock.now_ms())
        records.placed(records.next_place + len(rows))
        return rows
