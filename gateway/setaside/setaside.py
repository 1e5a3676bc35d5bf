"""Sets aside conversations that cannot be read any more, so that their chats go on and nobody else notices.

Theory. What hits damaged rows is told so by the store (`Damaged`: it was tried twice). Whoever meets that in a conversation has it set aside
here: its open turn is ended with words that are true, its session loses its key to a new one (`agent_core.store.sessions.asides`), each message that
waited is told that it was not answered, and the operators are told once. What of this cannot be written is left out; if not even the
key can be moved, nothing is changed, `status` and an alert say so, and it is tried again after pauses that double.

Damage is set aside conversation by conversation only as long as it is the conversation's own: where the one that begins in its place meets
it as well, it is everybody's (`gateway.storage.spread`), nothing is set aside or begun any more, and what was taken waits in the inbox.

Law: whatever cannot be read, everybody else goes on; no message of the conversation ends without a word where its chat is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress

import structlog

from adapters.contract.base import FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.driver.closing import Closer, Closing, TurnIdentity, closing_of, ended_otherwise, unread
from agent_core.failures.notices import DAMAGED, NotStarted
from agent_core.ports import Clock, Ids
from agent_core.records import dataclass
from agent_core.retry import NOT_SET_ASIDE
from agent_core.store.inbox.rows import Accepted, InboxRow, NewMessage
from agent_core.store.sessions.asides import Aside, Fresh
from agent_core.store.store import Damaged, StorageUnavailable, Store, StoreError
from agent_core.store.turns.rows import OpenTurn
from agent_core.text.tongue import sentence
from gateway.delivery.chatside import ChatSide, outlet_for
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.limits.alerts import Announce
from gateway.queues import inbox
from gateway.queues.queues import Queues
from gateway.storage.damage import DamageMet
from gateway.storage.storewatch import EVERYBODYS

log = structlog.get_logger("gateway")

KNOWN_MOST = 1_000
RECENT_MS = 24 * 3_600_000

NO_MESSAGE = sentence(
    "⚠️ A message that you sent here was not answered, and nothing was done for it: what was stored of it cannot be read any more, because "
    "the storage is damaged. Send it again. Whoever runs the gateway is told."
)
NOT_ANSWERED = f"⚠️ {NotStarted.DAMAGED.said()}"
GOES_ON = "its chat goes on with a new one"
CANNOT = "the new one in its chat cannot be used either"
WAITS = sentence(
    "⚠️ I cannot go on just now: the storage of the gateway is damaged. What you sent is kept, and goes on when that is mended. Whoever runs the "
    "gateway is told."
)
NO_SCHEDULE = sentence(
    "⚠️ Something that was to happen here now did not: what is stored of it cannot be used, because the storage is damaged. Set it anew. Whoever "
    "runs the gateway is told."
)


@dataclass(slots=True)
class _Stuck:
    """A conversation that could not be set aside."""

    words: str
    tries: int
    not_before: float


class PutAside:
    """Sets conversations aside that cannot be read, and single messages."""

    def __init__(
        self,
        queues: Queues,
        chats: ChatSide,
        closer: Closer,
        damage: DamageMet,
        announce: Announce | None,
        store: Store,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._queues = queues
        self._chats = chats
        self._closer = closer
        self.damage = damage
        self._announce = announce
        self._store = store
        self._clock = clock
        self._ids = ids
        self._one = asyncio.Lock()
        self._stuck: dict[str, _Stuck] = {}
        self._useless = False
        """What was to be said in the conversation that began last could not be stored."""
        self.known: dict[str, Aside] = {}
        """What was set aside, by session, the latest last."""
        self._told: set[str] = set()
        """Sessions whose chats were told that they wait."""
        self.schedules: dict[str, str] = {}
        """Schedules that cannot be read or claimed, with the reason: they are left alone, and the others go on."""

    @property
    def stuck(self) -> dict[str, str]:
        """Conversations that cannot be read and could not be set aside either, with the reason."""
        return {session: one.words for session, one in self._stuck.items()}

    def recent(self) -> int:
        """How many conversations were set aside within a day, or should be and cannot."""
        since = self._clock.now_ms() - RECENT_MS
        return len(self._stuck) + sum(one.at >= since for one in self.known.values())

    # ------------------------------------------------------------------ what is everybody's

    def check(self) -> None:
        """Raises `Damaged` if what all need is."""
        if self.damage.everybodys:
            raise Damaged(EVERYBODYS)

    def sound(self) -> None:
        """A look through everything found nothing damaged."""
        self.damage.sound()
        self._told.clear()

    def _say_unstored(self, asked: Iterable[Inbound], words: str) -> None:
        if (first := next((one for one in asked if isinstance(one, FromChat)), None)) is not None:
            self._chats.tell_unstored(first.chat, words)

    def tell_waiting(self, session: str) -> None:
        """Damage is everybody's: once, that what was taken waits."""
        asked = self._asked_in(session)
        if asked and session not in self._told and len(self._told) < KNOWN_MOST:
            self._told.add(session)
            self._say_unstored(asked, WAITS)

    def _asked_in(self, session: str) -> list[Inbound]:
        """The messages that its chat waits for, the latest first."""
        queue = self._queues.of(session)
        if queue is None:
            return []
        running = queue.running.messages if queue.running is not None else ()
        return [one.inbound for one in reversed((*running, *queue.steers, *queue.waiting))]

    # ------------------------------------------------------------------ setting aside

    async def load(self) -> None:
        """Know what earlier processes have set aside."""
        with suppress(StorageUnavailable):  # a list for whoever looks; it must not be in the way of a start
            self.known = {one.session: one for one in reversed(await self._store.asides.all())}

    async def accept_anew(self, message: NewMessage, error: Damaged) -> Accepted:
        """Store a message whose conversation cannot be read in the one that begins in its place. Raises `StorageUnavailable`."""
        if not await self.put_key(message.session_key, error):
            raise error
        try:
            return await self._store.inbox.accept(message)
        except Damaged as again:
            self.damage.meet(message.session_key, again, usable=False)
            raise

    async def lose(self, number: int, whose: Fresh) -> None:
        """One message of a conversation that is sound cannot be read: it is dropped, and its chat is told."""
        await self._store.asides.drop(number, inbox.NOT_READ)
        log.error("message.unreadable", inbox=number, session=whose.session, chat=whose.key)
        with suppress(StoreError):
            await self._chats.tell_anew(None, number, whose, NO_MESSAGE)
        if self._announce is not None:
            words = f"⚠️ A message in {whose.key} cannot be read, and stays unanswered: the storage is damaged. Run outspoken db check."
            self._announce(f"aside:message:{number}", words)

    def schedule(self, name: str, words: str, chat: ChatOrigin | None) -> None:
        """A schedule cannot be read or claimed: whoever runs the gateway is told, and its chat, if that is known."""
        self.damage.times += 1
        self.schedules[name] = words
        while len(self.schedules) > KNOWN_MOST:
            del self.schedules[next(iter(self.schedules))]
        log.error("schedule.set_aside", schedule=name, error=words)
        if chat is not None:
            self._chats.tell_unstored(chat, NO_SCHEDULE)
        if self._announce is not None:
            said = f"⚠️ The schedule {name} cannot be carried out, and is left alone: {words} Run outspoken db check, or set it anew."
            self._announce(f"aside:schedule:{name}", said)

    async def put_key(self, key: str, error: Exception) -> bool:
        """The same as `put`, of the conversation that has this key."""
        try:
            found = await self._store.asides.session_of(key)
        except StorageUnavailable:
            found = None
        if found is None:  # a conversation that only begins, or the list of all
            self.damage.meet(key, error, usable=False)
            return False
        return await self.put(found[0], error)

    async def put(self, session: str, error: Exception) -> bool:
        """Set it aside, and tell whoever it concerns. False if that cannot be stored just now, or it is not this process's to do."""
        async with self._one:
            if self.damage.everybodys:
                self.tell_waiting(session)
                return False
            if session in self.known:
                return True
            stuck = self._stuck.get(session)
            if stuck is not None and self._clock.monotonic() < stuck.not_before:
                return False
            self.damage.times += 1
            try:
                done = await self._put(session, error)
            except StoreError as failure:
                tries = stuck.tries + 1 if stuck is not None else 1
                not_before = self._clock.monotonic() + NOT_SET_ASIDE.seconds(tries)
                self._stuck[session] = _Stuck(str(failure), tries, not_before)
                log.warning("conversation.not_set_aside", session=session, error=str(failure), tries=tries)
                return False
            self._stuck.pop(session, None)
            return done

    async def _put(self, session: str, error: Exception) -> bool:
        queue, asked = self._queues.of(session), self._asked_in(session)
        with suppress(StoreError):  # it may be among what cannot be written; then it is tried in another way below
            await self._end_turn(
                session, queue.epoch if queue is not None else await self._store.sessions.claim(session)
            )
        fresh = await self._store.asides.set_aside(session, DAMAGED, self._ids.new("s"))
        if fresh is None:
            return False
        self.known[session] = Aside(session, fresh.key, DAMAGED, self._clock.now_ms())
        while len(self.known) > KNOWN_MOST:
            del self.known[next(iter(self.known))]
        self._useless = False
        with suppress(StoreError):
            await self._end_turn(session, fresh.epoch, fresh)
        unanswered = await self._drop_waiting(session, fresh)
        usable = not self._useless
        # What is new lies beside what is new of others: where it cannot be written, theirs may not either.
        self.damage.meet(fresh.key, error, usable=usable and not (isinstance(error, Damaged) and error.writing))
        log.error(
            "conversation.set_aside",
            session=session,
            chat=fresh.key,
            unanswered=unanswered,
            error=f"{type(error).__name__}: {error}",
        )
        if queue is not None:
            self._queues.point(queue, fresh.session, fresh.epoch)
        if not usable:
            self._say_unstored(asked, NOT_ANSWERED)
        self._tell_operators(session, fresh, unanswered, usable=usable)
        return True

    @contextmanager
    def _in_new(self) -> Generator[None]:
        """The block writes into the new conversation; whether that is possible is noted."""
        try:
            yield
        except Damaged:
            self._useless = True
        except StoreError:
            pass

    def _tell_operators(self, session: str, fresh: Fresh, unanswered: int, *, usable: bool) -> None:
        if self._announce is None:
            return
        count = (
            f"; {unanswered} message{'s' if unanswered != 1 else ''} of it stay{'s' if unanswered == 1 else ''} unanswered"
            if unanswered
            else ""
        )
        words = (
            f"⚠️ Rows of the conversation {fresh.key} cannot be read: the storage is damaged. It is set aside ({session}){count}; "
            f"{GOES_ON if usable else CANNOT}. Look at the disk, run outspoken db check, and restore a backup if it says so."
        )
        self._announce(f"aside:{session}", words)

    # ------------------------------------------------------------------ the open turn

    async def _asked(self, turn: str) -> Sequence[InboxRow]:
        try:
            return await self._store.inbox.inputs(turn)
        except Damaged:
            return ()

    async def _end_turn(self, session: str, epoch: int, instead: Fresh | None = None) -> None:
        """End its open turn as turns end. With `instead` its journal cannot be written, and what is said in its chat is that session's."""
        found = await self._store.asides.open_turn(session)
        if found is None:
            return
        turn, rows = found
        now = self._clock.now_ms()
        ending, failed = unread(self._ids.new("err"), DAMAGED, now, NotStarted.DAMAGED)
        end = closing_of(TurnIdentity(turn, session, epoch), ending, now, rows, (failed,))
        chat = OpenTurn(turn, session, epoch)
        if instead is not None:
            chat = OpenTurn(turn, instead.session, instead.epoch)
        outlet = await outlet_of(self._chats, self._store, chat, await self._asked(turn))
        if instead is None:
            await self._closer.close(end, outlet)
            self._over(session, turn, end)
        else:
            self._over(session, turn, end)  # whatever can be stored of it
            with self._in_new():
                await self._closer.close(end, outlet, instead=instead)

    def _over(self, session: str, turn: str, end: Closing) -> None:
        """Whoever follows the turn here sees its end."""
        queue = self._queues.of(session)
        if queue is not None and queue.running is not None and queue.running.driver.identity.turn == turn:
            own = queue.running.driver.turn
            queue.running.give_up(own if own.exit is not None else ended_otherwise(own, end.exit, end.at))

    # ------------------------------------------------------------------ the messages that waited

    async def _drop_waiting(self, session: str, fresh: Fresh) -> int:
        """Each is told that it was not answered; how many there are."""
        queue = self._queues.of(session)
        held = {one.inbox_id: one.inbound for one in (*queue.waiting, *queue.steers)} if queue is not None else {}
        try:
            waiting = await self._store.asides.waiting(session)
        except Damaged:
            waiting = [*held]
        for number in waiting:
            with suppress(StoreError):
                await self._store.asides.drop(number, DAMAGED)
            inbound = held.get(number) or await self._read(number)
            with self._in_new():
                await self._chats.tell_anew(inbound, number, fresh, NOT_ANSWERED)
        return len(waiting)

    async def _read(self, number: int) -> Inbound | None:
        try:
            row = await self._store.inbox.one(number)
            return inbox.decode(row.body) if row is not None else None
        except (StorageUnavailable, inbox.UnreadableMessage):
            return None


async def outlet_of(chats: ChatSide, store: Store, found: OpenTurn, asked: Sequence[InboxRow]) -> TurnOutlet | None:
    """Where a turn that is not looked into is shown. If its message cannot be read, the key of its conversation says which chat it is."""
    with suppress(inbox.UnreadableMessage):
        if asked:
            return outlet_for(chats, inbox.decode(asked[0].body), found.turn, found.session, found.epoch)
    key = await store.asides.key_of(found.session)
    if key is None or key.count("/") != 4:
        return None
    at = SessionKey.of(key)
    chat = ChatOrigin(ChatAddress(at.platform, at.account, at.chat, at.thread), ChatKind.PRIVATE, ChatPerson("", ""))
    return chats.outlet(chat, found.turn, found.session, found.epoch)
