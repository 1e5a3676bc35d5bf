"""The task that divides: it looks again and again who is there, takes what nobody alive has, and gives away what is too much.

Laws. A slice is given away when nothing is done in it: what was begun here is not cut off, and what comes meanwhile is stored and left to the next.
What is taken is looked through at once. Told to stop, a gateway gives away first what is idle, in one transaction, and the rest as it ends; what only
waits is then as good as idle. Where a platform is not reached, its account is not said to be served here (`gateway.sharing.withdrawal`): the rest follows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

import structlog

from agent_core.bell import Bell
from agent_core.store.slices.rows import HOUSE, Division, chat_slices
from agent_core.store.store import LeaseLost, StorageUnavailable, Store
from gateway.sharing.portion import Portion
from gateway.sharing.shares import CHATS, answering, divided
from gateway.sharing.withdrawal import Withdrawals, served, withdrawn

log = structlog.get_logger("gateway")

LOOK_SECONDS = 0.5
TROUBLE_SECONDS = 1.0
"""So long after a look that the database did not answer."""


class Dividing:
    """`begin` it before anything is looked through, then have `run` in a task; `leave` at the end."""

    def __init__(
        self,
        portion: Portion,
        store: Store,
        address: str,
        connections: Iterable[str],
        failing: Callable[[], Mapping[str, float]],
        busy: Callable[[bool], Collection[str]],
        coming: Callable[[], Awaitable[None]],
        gained: Callable[[], None],
        given: Callable[[frozenset[str]], None],
        tell: Callable[[], None],
    ) -> None:
        """`connections` are those of our accounts, as slices. `failing` says for how long those fail that do, seconds, by account. `busy` names the slices in which something is done, and those in which something waits unless told to pass over it; `coming` is waited for before more are ours, `gained` called when there are, `given` with those that are about to go;
        `tell` has the others look who has what."""
        self._portion = portion
        self._store = store
        self._address = address
        self._connections = tuple(connections)
        self._failing = failing
        self._withdrawn: Withdrawals = {}
        self._busy, self._coming, self._gained, self._given, self._tell = busy, coming, gained, given, tell
        self._leaving = self._everything = False
        self._gone = False
        """Something that is shared was not there at the last look."""
        self._one = asyncio.Lock()
        self.bell = Bell()

    async def begin(self) -> None:
        """Take part, and take what is free."""
        await self._store.slices.take_part(self._address, self._portion.serves)
        async with self._one:
            await self._divide()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                seconds = LOOK_SECONDS
                try:
                    await self._look()
                except (StorageUnavailable, LeaseLost) as error:
                    log.warning("slices.not_looked", error=str(error))
                    seconds = TROUBLE_SECONDS
                except Exception:
                    log.exception("slices.failed")
                    seconds = TROUBLE_SECONDS
                await self.bell.wait(seconds)
        finally:
            self.bell.close()

    async def leave(self, *, everything: bool = False) -> None:
        """Take nothing more, and give away what is idle, or `everything`. To be called again while something ends."""
        if self._store.ownership.lost.is_set():
            return
        self._everything = everything
        try:
            if not self._leaving:
                self._leaving = True
                await self._store.slices.take_part("", self._portion.serves)
            await self._look()
        except (StorageUnavailable, LeaseLost) as error:
            log.warning("slices.not_given", error=str(error))

    async def _look(self) -> None:
        async with self._one:
            seen = await self._store.slices.division()
            await self._see(seen)
            if not self._leaving:
                await self._offer(seen)
            before, self._gone = self._gone, not self._names <= seen.owners.keys()
            # What somebody has removed nobody would have any more. Whoever had it has looked since, and works there no longer.
            if (before and self._gone) or divided(self._store.node, seen, leaving=self._leaving, busy=self._kept(seen)):
                await self._divide()

    @property
    def _names(self) -> frozenset[str]:
        """Of all that is shared."""
        return frozenset((*chat_slices(), HOUSE, *self._connections))

    async def _offer(self, seen: Division) -> None:
        """Say which accounts are served here, if they are others by now."""
        accounts, before = self._portion.serves, self._withdrawn
        now = asyncio.get_running_loop().time()
        after = withdrawn(self._store.node, accounts, self._failing(), seen.taking_part, before, now)
        offers, offered = served(accounts, after), served(accounts, before)
        if offers != offered:
            await self._store.slices.take_part(self._address, offers)
            for account in sorted(offered - offers):
                log.warning("slices.account_withdrawn", account=account)
            for account in sorted(offers - offered):
                log.info("slices.account_served", account=account)
            self._tell()
        self._withdrawn = after

    async def _divide(self) -> None:
        """In two steps: what goes is let go of here first, so that nothing new is begun in it."""
        me, seen = self._store.node, await self._store.slices.division()
        async with self._portion.changing_hands:
            held = self._portion.held
            planned = divided(me, seen, leaving=self._leaving, busy=self._kept(seen))
            going = frozenset(name for name, to in planned.items() if name in held and to != me)
            if going:
                self._given(going)
                self._portion.change(held - going)
        await self._portion.quiet(going)
        try:
            now = await self._store.slices.divide(self._names, lambda there: self._decided(there, going))
        except BaseException:
            self._portion.change(held, found=going)  # it is still ours, if anything is, and was not worked on meanwhile
            raise
        await self._see(now, before=held, found=now.held_by(me) - (held - going))
        if going:
            self._tell()

    def _kept(self, seen: Division) -> Collection[str]:
        """What is not given away: what waits goes where it can be answered."""
        if self._everything:
            return ()
        return self._busy(self._leaving or self._store.node not in answering(seen.taking_part))

    def _decided(self, there: Division, going: frozenset[str]) -> dict[str, int]:
        """What is given is what was let go of, and nothing else."""
        me, held = self._store.node, there.held_by(self._store.node)
        moved = divided(me, there, leaving=self._leaving, busy=held - going)
        return {name: to for name, to in moved.items() if name not in held or name in going}

    async def _see(self, seen: Division, before: frozenset[str] | None = None, found: Collection[str] = ()) -> None:
        before = self._portion.held if before is None else before
        now = seen.held_by(self._store.node)
        if now - self._portion.held:
            await self._coming()
        self._portion.peers = tuple(one for one in seen.peers if one.address)
        self._portion.owners = seen.owners
        self._portion.change(now, {name: seen.epochs[name] for name in now}, found)
        if more := now - before:
            chats = sum(name.startswith(CHATS) for name in more)
            others = sorted(name for name in more if not name.startswith(CHATS))
            log.info("slices.taken", chats=chats, others=others, gateways=len(self._portion.peers))
            self._gained()
        if less := before - now:
            chats = sum(name.startswith(CHATS) for name in less)
            log.info("slices.given", chats=chats, others=sorted(n for n in less if not n.startswith(CHATS)))
