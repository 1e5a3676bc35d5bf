"""What is known to be open and worked on by nobody alive: asked by whoever begins something new in a session, kept by the keeper.

Known to be weak: it is what the last look found; what another process let go of since is found with the next.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeAlias

from agent_core.bell import Bell
from agent_core.ports import Clock
from agent_core.store.sessions.takeups import Charges, LeftMessage, LeftPart, LeftTurn
from agent_core.store.store import Store
from gateway.queues.inbox import COMMAND_LANE, NORMAL_LANE
from gateway.setaside.setaside import PutAside
from gateway.setaside.takeup import KnownItem, LeftItem, LeftKind

Left: TypeAlias = LeftTurn | LeftMessage | LeftPart


class Unclaimed:
    """The keeper brings it up to date; whoever begins something in a session asks it first."""

    def __init__(self, store: Store, aside: PutAside, clock: Clock) -> None:
        self._store = store
        self._aside = aside
        self._clock = clock
        self.known: dict[tuple[LeftKind, str], KnownItem] = {}
        self.left: dict[tuple[LeftKind, str], Left] = {}
        self.wanted: set[str] = set()
        """Sessions that somebody waits for."""
        self.taking: set[str] = set()
        """Sessions that are just being taken up: what is new in them comes after what waited."""
        self.opening_now: set[str] = set()
        """Sessions whose message was taken up, and whose turn is being opened."""
        self.bell = Bell()

    def holds(self, session: str) -> bool:
        """Something of the session is still to be taken up, as far as is known. It comes next."""
        known = self.known.get((LeftKind.SESSION, session))
        if session in self.taking:
            return True
        if known is None or known.taken_at is not None:
            return False
        self.wanted.add(session)
        self.bell.ring()
        return True

    async def still_holds(self, session: str, before: int = 0) -> bool:
        """The same; looked up, if all that was seen is something of ours: that may have been between the store and its queue in that moment."""
        known = self.known.get((LeftKind.SESSION, session))
        if known is None or not known.item.ours or known.taken_at is not None or session in self.taking:
            return self.holds(session)
        return await self.find(session, before)

    async def find(self, session: str, before: int = 0) -> bool:
        """The same, looked up; of messages, only those before the number `before` count."""
        turns = await self._store.left.turns(session)
        messages = await self._store.left.messages(session) if not turns else []
        messages = [m for m in messages if m.lane == NORMAL_LANE and (not before or m.inbox_id < before)]
        first: Left | None = next(iter([*turns, *messages]), None)
        if first is None:
            self._forget_seen(session)
            return False
        if (LeftKind.SESSION, session) not in self.known:
            ended = await self._store.left.ended({first.owner}) if first.owner is not None else frozenset[int]()
            self._add(replace(self.item(first, ended), ours=False), first)
        return self.holds(session)

    def _forget_seen(self, session: str) -> None:
        """It is in somebody's hands by now; what is just being taken up is in the keeper's."""
        key = (LeftKind.SESSION, session)
        if (
            session not in self.taking
            and (known := self.known.get(key)) is not None
            and known.item.ours
            and known.taken_at is None
        ):
            del self.known[key], self.left[key]

    async def opening(self, session: str) -> None:
        """A turn of the session is about to be opened."""
        self._aside.check()
        known = self.known.get((LeftKind.SESSION, session))
        if known is None or known.taken_at is None or not self.only_waits(known.item) or session in self.opening_now:
            return
        if known.item.died:
            await self._store.left.charge(self.charges([(known.item, known.item.charged(alone=known.alone))]))
            if (known := self.known.get(known.item.key)) is None:
                return  # it came to count as ours meanwhile
        self.opening_now.add(session)
        self.known[known.item.key] = replace(known, taken_at=self._clock.monotonic())

    def to_come(self) -> frozenset[str]:
        """The chats in which nothing new is shown yet, because parts are to be taken up there that were wanted before it."""
        now = self._clock.monotonic()
        return frozenset(
            left.surface
            for key, one in self.known.items()
            if isinstance(left := self.left[key], LeftPart) and one.holds_back(now)
        )

    def only_waits(self, item: LeftItem) -> bool:
        """A message for a turn: nothing was begun with it yet."""
        return item.kind is LeftKind.SESSION and isinstance(self.left[item.key], LeftMessage)

    def _add(self, item: LeftItem, left: Left) -> None:
        self.known.setdefault(item.key, KnownItem(item, self._clock.monotonic()))
        self.left[item.key] = left

    def item(self, one: Left, ended: Collection[int]) -> LeftItem:
        match one:
            case LeftPart():
                kind, name = LeftKind.PART, "\n".join((one.surface, one.origin, one.bubble, str(one.part)))
            case LeftMessage() if one.lane == COMMAND_LANE:
                kind, name = LeftKind.COMMAND, str(one.inbox_id)
            case _:
                kind, name = LeftKind.SESSION, one.session
        here = one.owner == self._store.node
        ours = here and not (isinstance(one, LeftPart) and one.earlier)  # nobody here has had that
        died = one.owner is not None and not here and one.owner not in ended
        return LeftItem(kind, name, one.at, one.suspicion, died, ours)

    def charges(self, items: Sequence[tuple[LeftItem, int]]) -> Charges:
        turns: dict[str, int] = {}
        messages: dict[int, int] = {}
        parts: dict[tuple[str, str, str, int], int] = {}
        for item, suspicion in items:
            match self.left[item.kind, item.name]:
                case LeftTurn(turn=turn):
                    turns[turn] = suspicion
                case LeftMessage(inbox_id=number):
                    messages[number] = suspicion
                case LeftPart() as part:
                    parts[part.surface, *part.name] = suspicion
        return Charges(turns, messages, parts)
