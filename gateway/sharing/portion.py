"""What of all that there is to do this gateway does: everything, or its slices, where several gateways divide it."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from weakref import WeakValueDictionary

import orjson

from adapters.contract.base import SessionKey, StopOutcome, Ticket
from agent_core.bell import Bell
from agent_core.jsonvalue import Json
from agent_core.model.reach import DOOR_SECONDS, Lives
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.store.slices.rows import HOUSE, TENURE, PeerNode, Tenure, account_in, single, slice_of
from agent_core.turn.events import Verdict

if TYPE_CHECKING:
    from agent_core.ports import Clock
    from agent_core.store.memory.access import StoredMemory
    from agent_core.store.store import Store
    from gateway.sharing.afar import FarTurn

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
PEOPLE = "people"
"""Word: who may talk, or what goes on in a private chat, is stored otherwise."""
SESSION, WATCH, TOOL = "session", "watch", "tool"
"""Words, with a session's id: there is more to see of it; somebody looks at it elsewhere; a tool that runs in it says how far it is."""
KEYS, KEPT, INCIDENTS, RATE = "keys", "kept", "incidents", "rate"
"""Words: a key of the API is stored otherwise; somebody has kept the first of a kind (behind a colon); an incident has begun or is over; something was let
through of which there is a limit a minute (with what it was)."""
DUE, FORGET = "due", "forget"
"""Words: for the house, something is due sooner than was thought; somebody is being forgotten, so that each stops what it runs for them."""
TOOL_SECONDS = 0.5
"""So often a conversation's tools are heard elsewhere."""
MOST_TOOL_CHARS = 300
WATCH_SECONDS = 10.0
"""How often whoever looks says so."""
HEED_SECONDS = 2.5 * WATCH_SECONDS
SOME_SECONDS = 60.0
"""So often it is looked whether there is the first of a kind by now, also if nobody has said so."""
ELSEWHERE_SECONDS = 1.0
"""How often it is looked what became of what does not run here, although nobody has said that there is more."""
MOST_KEPT = 1_000
"""When as many sessions were looked at, those are forgotten at which nobody looks any more."""
QUIET_SECONDS = 5.0
"""So long a slice that is given away waits for what is done in it."""
DOUBT_SECONDS, DOUBT_LOOKS = 0.5, 2
"""A lease that was over so often in a row is doubted: just before the database gives what is ours to others."""


class FarChange(StrEnum):
    """What a program, or the page, wants of a whole conversation."""

    DESCRIBE = "describe"
    RESET = "reset"
    SHOW = "show"
    DELETE = "delete"


class Changed(StrEnum):
    """What came of it."""

    DONE = "done"
    NOTHING = "nothing"
    """There was nothing to change."""
    RUNNING = "running"
    """A turn has not ended yet."""


class Says(Protocol):
    """Has others hear a word, now or (not `soon`) with the next one."""

    def __call__(self, word: str, /, *, soon: bool = True) -> None: ...


def _nobody_hears(word: str, /, *, soon: bool = True) -> None:
    del word, soon


class Far(Protocol):
    """Passes on to its owner what is wanted of a conversation, by its key. As `gateway.sessions.stopping.TurnStopping`."""

    async def stop(self, key: str) -> StopOutcome: ...
    async def stop_message(self, key: str, ticket: Ticket) -> StopOutcome: ...
    async def withdraw(self, key: str, ticket: Ticket) -> bool: ...
    async def approve(self, key: str, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting) -> bool: ...
    async def answer(self, key: str, turn: str, call: str, words: str, by: str) -> str | None: ...
    async def reworded(self, key: str, inbox_id: int) -> None: ...
    async def change(self, key: str, session: str, change: FarChange, *words: Json) -> Changed | None: ...


class Due:
    """When somebody who watches what is run elsewhere has to look: at once when there was a word, else a while after the last time."""

    __slots__ = ("_at", "_woken", "every")

    def __init__(self) -> None:
        self._at, self._woken = 0.0, True
        self.every = ELSEWHERE_SECONDS
        """How long that while is, seconds."""

    def ring(self) -> None:
        """There is more to see, somebody says."""
        self._woken = True

    def now(self) -> bool:
        """Whether it is time; if so, it is over."""
        if self.seconds > 0:
            return False
        self._woken, self._at = False, asyncio.get_running_loop().time() + self.every
        return True

    @property
    def seconds(self) -> float:
        """How long there is to wait for it."""
        return 0.0 if self._woken else max(0.0, self._at - asyncio.get_running_loop().time())


class FarWatchers:
    """Who watches turns at another gateway than the one that runs them; see `gateway.sharing.afar`. Implements `agent_core.driver.watcher.Afar`; at the other end, whoever looks calls `look_at`."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._looked_at: dict[str, float] = {}
        """Until when they count that look elsewhere, by the loop's clock."""
        self._said: dict[str, float] = {}
        """Until when others know that somebody looks here."""
        self._silent: dict[str, float] = {}
        """Until when nothing more is told of a session's tools."""
        self.turns: WeakValueDictionary[str, FarTurn] = WeakValueDictionary()
        """Those that are watched here, by their names."""

    def watched(self, session: str) -> bool:
        return bool(self._looked_at) and self._looked_at.get(session, 0.0) > asyncio.get_running_loop().time()

    def stored(self, session: str) -> None:
        if self.watched(session):
            self._tell(f"{SESSION}:{session}")

    def told(self, session: str, turn: str, call: str, words: str) -> None:
        """Passed on as it is, and not stored: it stands in a line that is shown only while the tool runs."""
        if self.watched(session) and self._silent.get(session, 0.0) <= asyncio.get_running_loop().time():
            _note(self._silent, session, TOOL_SECONDS)
            self._tell(f"{TOOL}:{orjson.dumps([session, turn, call, words[:MOST_TOOL_CHARS]]).decode()}")

    def heard_of_tool(self, said: str) -> str:
        """Note what a tool elsewhere says, if its turn is watched here; the session, else nothing."""
        session, turn, call, words = orjson.loads(said)
        found = self.turns.get(turn)
        if found is None:
            return ""
        found.hear(call, words)
        return str(session)

    def heard(self, session: str) -> None:
        """Somebody looks at it elsewhere."""
        _note(self._looked_at, session, HEED_SECONDS)

    def look_at(self, session: str) -> None:
        """Somebody looks at it here, and it is run elsewhere. To be called again and again."""
        if session and self._said.get(session, 0.0) <= asyncio.get_running_loop().time():
            _note(self._said, session, WATCH_SECONDS)
            self._tell(f"{WATCH}:{session}")

    def turn(self, store: Store, name: str) -> FarTurn:
        """A turn that is run elsewhere, the same for all who watch it here."""
        found = self.turns.get(name)
        if found is None:
            from gateway.sharing.afar import FarTurn  # of several gateways alone

            self.turns[name] = found = FarTurn(store, name)
        return found


def _note(until: dict[str, float], session: str, seconds: float) -> None:
    now = asyncio.get_running_loop().time()
    if len(until) >= MOST_KEPT:
        for one in [name for name, end in until.items() if end <= now]:
            del until[one]
    until[session] = now + seconds


class Portion:
    """`has` and `mine` are asked wherever something could be begun. `whole`: nobody else serves, and nothing is ever given away."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole
        self.held: frozenset[str] = frozenset()
        self.epochs: Mapping[str, int] = {}
        """Under which we have them."""
        self.handed: set[str] = set()
        """Those that whoever had them has just given us, and said how far they are; until somebody heeds it."""
        self.serves: frozenset[str] = frozenset()
        """The accounts that we have."""
        self.platforms: frozenset[str] = frozenset()
        """The names of all platforms that there are: a conversation of any other kind is answered by whoever has its slice."""
        self.peers: tuple[PeerNode, ...] = ()
        """The gateways that are there, this one among them."""
        self.owners: Mapping[str, int | None] = {}
        """Who has which slice, as of the last look."""
        self.looked: Mapping[str, int] = {}
        """The slices in which what others have left has come in, and under which epochs we had them then."""
        self.left: Collection[str] = ()
        """Chats in which parts are to be taken up that come before what is new there."""
        self.tell: Says = _nobody_hears
        """Has all others hear a word; see `gateway.several.together`."""
        self.afar = FarWatchers(self._say)
        """Who watches what at another gateway than the one that runs it."""
        self.words: dict[str, Callable[[], None]] = {}
        """What is done when another gateway says a word that means no more than that there is something new."""
        self.rates: dict[str, Callable[..., None]] = {}
        """By what is limited a minute: counts here what another gateway has let through."""
        self._let = itertools.count()
        self.cut_off = False
        """The database is not reached any more, and others are there who have taken over by now, if they reach it: whoever sees nothing more here comes
        again, and is led to one of them. What runs here still is shown as long as there is something to show: perhaps nobody reaches it."""
        self.asked: Callable[[SessionKey, int, str], Awaitable[None]] | None = None
        """Does what another gateway passes on, by the number of its message and in its words."""
        self.far: Far | None = None
        """There as soon as this gateway takes part."""
        self.changing_hands = asyncio.Lock()
        """Held while something of a slice is taken up, and while slices are let go of: what is being taken up is not idle."""
        self._changed = asyncio.Event()
        self._used: Counter[tuple[str, ...]] = Counter()
        self._ended = asyncio.Event()

    @cached_property
    def stored(self) -> Bell:
        """Rings when others may have stored something for us."""
        return Bell()

    @property
    def slices(self) -> frozenset[str] | None:
        """What is looked through for what is left; None: all."""
        return None if self.whole else self.held

    def has(self, name: str) -> bool:
        return self.whole or name in self.held

    def has_any(self, names: Iterable[str]) -> bool:
        return any(self.has(name) for name in names)

    def comes_first(self, chat: str) -> bool:
        """Something that others have left in a chat may be still to come in there, and comes before what is new: it is known, or nobody has looked yet
        (`gateway.recovery.keeper`). Of a chat that is not ours nothing is to come."""
        name = slice_of(chat)
        return chat in self.left or (name in self.held and self.looked.get(name) != self.epochs.get(name))

    def mine(self, key: str) -> bool:
        """Whether the conversation with this key is run here: it is in a slice of ours, and can be answered from here."""
        return self.whole or single(key) or (slice_of(key) in self.held and not self._unanswerable(account_in(key)))

    def _unanswerable(self, account: str) -> bool:
        """It is a platform's, and not ours: whoever has it answers, also if nobody has told us of that yet."""
        return account not in self.serves and account.partition("/")[0] in self.platforms

    def new_in(self, key: str) -> None:
        """A message was stored for a conversation that is run elsewhere."""
        self.tell(slice_of(key))

    def at_house(self, word: str, ring: Callable[[], None]) -> Callable[[], None]:
        """What one gateway does for all looks now and then what there is to do. Call what this gives where there is more: it is rung for here, and at the
        gateway that does it."""
        self.words[word] = ring

        def rung() -> None:
            ring()
            if not self.has(HOUSE):
                self.tell(word)

        return rung

    def let(self, what: str, *names: str, soon: bool = True) -> None:
        """Something of which there is a limit a minute was let through here: it counts at all gateways. Of what seldom comes to another one they are not
        told at once, but with the next words."""
        if not self.whole and len(self.peers) > 1:
            self.tell(f"{RATE}:{orjson.dumps([next(self._let), what, *names]).decode()}", soon=soon)

    def hear_of_rate(self, said: str) -> None:
        """The same, at the others."""
        _, what, *names = orjson.loads(said)
        if (count := self.rates.get(what)) is not None:
            count(*names)

    def _say(self, word: str) -> None:
        self.tell(word)  # which is another one as soon as we take part

    def change(
        self, held: Collection[str], epochs: Mapping[str, int] | None = None, found: Collection[str] = ()
    ) -> None:
        """This is what we have from now on: under these epochs, if there are others than before. What of it was `found` nobody alive had, so that
        nobody has said how far it is."""
        held, before = frozenset(held), {name: self.epochs.get(name) for name in self.held}
        if epochs is not None:
            self.epochs = epochs
        self.handed = (self.handed | (held - self.held - frozenset(found))) & held
        if {name: self.epochs.get(name) for name in held} != before:
            self.held = held
            self._changed.set()
            self._changed = asyncio.Event()

    async def while_had(self, names: str | Collection[str], work: Work, beside: Work | None = None) -> None:
        """Do it whenever we have the slice, or any of these, until cancelled; `beside` is done while we have none.

        Positions that are written in it are written under the slices that we have of them.
        """
        if self.whole:
            await work()
            return
        names = (names,) if isinstance(names, str) else tuple(names)
        while True:
            if self.has_any(names):
                self._used[names] += 1
                try:
                    await self._while(names, work, had=True)
                finally:
                    self._used[names] -= 1
                    self._ended.set()
            else:
                await self._while(names, beside or _nothing, had=False)

    async def _while(self, names: Sequence[str], work: Work, *, had: bool) -> None:
        tenure = self._tenure(names)
        before = TENURE.set(tenure) if had else None
        task: asyncio.Future[None] = asyncio.ensure_future(work())
        if before is not None:
            TENURE.reset(before)
        try:
            while self.has_any(names) is had and (len(names) > 1 or self._tenure(names).held == tenure.held):
                changed = asyncio.ensure_future(self._changed.wait())
                waiting = {changed} if task.done() else {changed, task}
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if task.done():
                    task.result()
                if len(names) > 1:
                    tenure.keep(self.epochs, [name for name in names if self.has(name)])
        finally:
            try:
                await _ended(task)
            finally:
                tenure.end()

    def _tenure(self, names: Sequence[str]) -> Tenure:
        return Tenure({name: self.epochs[name] for name in names if self.has(name) and name in self.epochs})

    async def quiet(self, names: Collection[str]) -> None:
        """Return when nothing is done any more in slices that were just let go of."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                while any(self._is_used(name) for name in names):
                    self._ended.clear()
                    await self._ended.wait()

    def _is_used(self, name: str) -> bool:
        """Something is done in it alone, or in it and others of which we have none any more."""
        return any(count and name in names and not self.has_any(names) for names, count in self._used.items())


class SomeKept:
    """Whether anybody at all has something of a kind kept: as long as nobody has, nobody looks for theirs with every turn."""

    def __init__(self, memory: StoredMemory, kind: str, clock: Clock, portion: Portion) -> None:
        self._memory, self._kind, self._clock, self._portion = memory, kind, clock, portion
        self._word = f"{KEPT}:{kind}"
        self._looked_at = float("-inf")
        self._some = False
        portion.words[self._word] = self._look_again

    async def any(self) -> bool:
        """Raises `StorageUnavailable`."""
        now = self._clock.monotonic()
        if not self._some and now - self._looked_at > SOME_SECONDS:
            self._looked_at = now  # before: what is said meanwhile has it looked once more
            try:
                self._some = bool(await self._memory.of_kind(self._kind, 1))
            except BaseException:
                self._look_again()
                raise
        return self._some

    def added(self) -> None:
        """Something is kept from now on."""
        if not self._some:
            self._some = True
            self._portion.tell(self._word)

    def _look_again(self) -> None:
        self._looked_at = float("-inf")


@dataclass(frozen=True, slots=True)
class AccountConnections:
    """Those of one account that are ours. Implements `adapters.contract.supervision.Connections`."""

    portion: Portion
    slices: Sequence[str]
    lives: Lives

    async def while_had(self, number: int, work: Work, /) -> None:
        await self.portion.while_had(self.slices[number], work)

    def has(self, number: int, /) -> bool:
        return self.portion.has(self.slices[number])

    async def may_open(self) -> None:
        while not self.lives.lease_ok():  # noqa: ASYNC110 - a lease that runs out, and is back, tells nobody
            await asyncio.sleep(DOOR_SECONDS)

    async def doubted(self) -> None:
        looks = 0
        while looks < DOUBT_LOOKS:
            await asyncio.sleep(DOUBT_SECONDS)
            looks = 0 if self.lives.lease_ok() or len(self.portion.peers) < 2 else looks + 1

    def handed(self, number: int, /) -> bool:
        handed = self.slices[number] in self.portion.handed
        self.portion.handed.discard(self.slices[number])
        return handed


async def _ended(task: asyncio.Future[None]) -> None:
    """Cancel it, and wait for its end, also if we are cancelled once more: what it does last is done under what we have."""
    task.cancel()
    again: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            again = error
    if again is not None:
        raise again


async def _nothing() -> None:
    pass
