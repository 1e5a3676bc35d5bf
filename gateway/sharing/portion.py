"""What of all that there is to do this gateway does: everything, or its slices, where several gateways divide it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from adapters.contract.base import SessionKey, StopOutcome, Ticket
from agent_core.jsonvalue import Json
from agent_core.rules.consents import Lasting
from agent_core.store.slices.rows import PeerNode, single, slice_of
from agent_core.turn.events import Verdict

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
PEOPLE = "people"
"""Word: who may talk, or what goes on in a private chat, is stored otherwise."""
SESSION, WATCH = "session", "watch"
"""Words, with a session's id: there is more to see of it; somebody looks at it elsewhere."""
WATCH_SECONDS = 10.0
"""How often whoever looks says so."""
HEED_SECONDS = 2.5 * WATCH_SECONDS
MOST_KEPT = 1_000
"""When as many sessions were looked at, those are forgotten at which nobody looks any more."""
QUIET_SECONDS = 5.0
"""So long a slice that is given away waits for what is done in it."""


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


class Far(Protocol):
    """Passes on to its owner what is wanted of a conversation, by its key. As `gateway.sessions.stopping.TurnStopping`."""

    async def stop(self, key: str) -> StopOutcome: ...
    async def stop_message(self, key: str, ticket: Ticket) -> StopOutcome: ...
    async def withdraw(self, key: str, ticket: Ticket) -> bool: ...
    async def approve(self, key: str, turn: str, call: str, verdict: Verdict, by: str, lasts: Lasting) -> bool: ...
    async def answer(self, key: str, turn: str, call: str, words: str, by: str) -> str | None: ...
    async def reworded(self, key: str, inbox_id: int) -> None: ...
    async def change(self, key: str, session: str, change: FarChange, *words: Json) -> Changed | None: ...


class FarWatchers:
    """Who watches turns at another gateway than the one that runs them; see `gateway.sharing.afar`. Implements `agent_core.driver.watcher.Afar`; at the other end, whoever looks calls `look_at`."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._looked_at: dict[str, float] = {}
        """Until when they count that look elsewhere, by the loop's clock."""
        self._said: dict[str, float] = {}
        """Until when others know that somebody looks here."""

    def watched(self, session: str) -> bool:
        return bool(self._looked_at) and self._looked_at.get(session, 0.0) > asyncio.get_running_loop().time()

    def stored(self, session: str) -> None:
        if self.watched(session):
            self._tell(f"{SESSION}:{session}")

    def heard(self, session: str) -> None:
        """Somebody looks at it elsewhere."""
        _note(self._looked_at, session, HEED_SECONDS)

    def look_at(self, session: str) -> None:
        """Somebody looks at it here, and it is run elsewhere. To be called again and again."""
        if session and self._said.get(session, 0.0) <= asyncio.get_running_loop().time():
            _note(self._said, session, WATCH_SECONDS)
            self._tell(f"{WATCH}:{session}")


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
        self.peers: tuple[PeerNode, ...] = ()
        """The gateways that are there, this one among them."""
        self.owners: Mapping[str, int | None] = {}
        """Who has which slice, as of the last look."""
        self.tell: Callable[[str], None] = lambda _: None
        """Has all others hear a word; see `gateway.several.together`."""
        self.afar = FarWatchers(self._say)
        """Who watches what at another gateway than the one that runs it."""
        self.words: dict[str, Callable[[], None]] = {}
        """What is done when another gateway says a word that means no more than that there is something new."""
        self.asked: Callable[[SessionKey, int, str], Awaitable[None]] | None = None
        """Does what another gateway passes on, by the number of its message and in its words."""
        self.far: Far | None = None
        """There as soon as this gateway takes part."""
        self.changing_hands = asyncio.Lock()
        """Held while something of a slice is taken up, and while slices are let go of: what is being taken up is not idle."""
        self._changed = asyncio.Event()
        self._used: Counter[str] = Counter()
        self._ended = asyncio.Event()

    @property
    def slices(self) -> frozenset[str] | None:
        """What is looked through for what is left; None: all."""
        return None if self.whole else self.held

    def has(self, name: str) -> bool:
        return self.whole or name in self.held

    def mine(self, key: str) -> bool:
        """Whether the conversation with this key is run here."""
        return self.whole or single(key) or slice_of(key) in self.held

    def new_in(self, key: str) -> None:
        """A message was stored for a conversation that is run elsewhere."""
        self.tell(slice_of(key))

    def _say(self, word: str) -> None:
        self.tell(word)  # which is another one as soon as we take part

    def change(self, held: Collection[str]) -> None:
        """This is what we have from now on."""
        if frozenset(held) != self.held:
            self.held = frozenset(held)
            self._changed.set()
            self._changed = asyncio.Event()

    async def while_had(self, name: str, work: Work, beside: Work | None = None) -> None:
        """Do it whenever we have the slice, until cancelled; `beside` is done while we have it not."""
        if self.whole:
            await work()
            return
        while True:
            if self.has(name):
                self._used[name] += 1
                try:
                    await self._while(name, work, had=True)
                finally:
                    self._used[name] -= 1
                    self._ended.set()
            else:
                await self._while(name, beside or _nothing, had=False)

    async def _while(self, name: str, work: Work, *, had: bool) -> None:
        task: asyncio.Future[None] = asyncio.ensure_future(work())
        try:
            while self.has(name) is had:
                changed = asyncio.ensure_future(self._changed.wait())
                waiting = {changed} if task.done() else {changed, task}
                try:
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if task.done():
                    task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def quiet(self, names: Collection[str]) -> None:
        """Return when nothing is done any more in slices that were just let go of."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIET_SECONDS):
                while any(self._used[name] for name in names):
                    self._ended.clear()
                    await self._ended.wait()


async def _nothing() -> None:
    pass
