"""Quotas in the gateway: who a holder is, what is really there, and room held for whatever is written.

Theory. `agent_core.limits.quotas.QuotaLedger` decides; this counts. Nobody is refused on figures that may be old: before a refusal, what its holder has
is counted anew. Whose figures may be wrong (a write was cancelled in its middle) is counted before anything else is held for them.
Everything is counted at the start, in the background, and now and then after that, so what others do on the disk is seen.

What a day's count is about (what comes in, conversations of the API) is decided in the database, in the commit that stores the message,
so it holds for all nodes and across restarts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

import structlog

from adapters.contract.base import Inbound
from adapters.contract.pacing import worth_saying
from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import (
    AT_ONCE,
    ON_DISK,
    Amounts,
    Full,
    QuotaKind,
    QuotaLedger,
    QuotaLimits,
    amount_words,
    size_words,
    used_words,
)
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.remembered import MEMORY
from agent_core.store.errors import StorageUnavailable
from agent_core.text.tongue import speak
from agent_core.tools.base import NoRoom
from agent_core.tools.builtin.notes import ENTRY_BYTES, LISTS
from gateway.limits.diskuse import Counted, CountStopped, Owners, Stop, count_all, count_folder
from gateway.limits.incoming import Incoming, holder_of, whose_share
from gateway.limits.whose import ROOMS, folder_name, shown, workspace_of

log = structlog.get_logger("quota")

COUNT_SECONDS = 600.0
"""Between two counts of everything."""
REST = 50
"""And so many times as long as a count takes: it never keeps the disk busy."""
ANEW = 20
"""A holder who is refused again and again is not counted for more than one part in so many of the time."""
TRIES = 3
QUIET_SECONDS = 1.0
"""So long a count waits for a moment in which nothing is being written for its holder."""
SHOWN = 10
NEARLY = 0.9
"""From this share of the whole on the operators are told."""
OPERATORS = "operators"
"""Whose files are those that operators send."""
COUNTED = {MEMORY, LISTS}
"""The kinds of what is remembered."""
OF_FOLDERS = {QuotaKind.WORKSPACE, QuotaKind.FILES, QuotaKind.SPOOL}
"""What lies in folders that are somebody's."""

Memories = Callable[[Collection[str]], Awaitable[list[tuple[str, str, int, int]]]]
"""(scope, kind, bytes, entries), as the store knows them; of everybody, or of these scopes and what is below them."""


def scopes_of(holder: str) -> tuple[str, ...]:
    """Under which scopes what counts in a holder's share stands; a slash at the end: below that. Others' may stand there, too. Pure."""
    chat = "/".join(holder.split("/")[:3])
    return holder, f"{holder}/", f"{chat}/", f"session/{holder}/"


@dataclass(frozen=True, slots=True)
class ScopedSpace:
    """Implements `agent_core.tools.base.Space` for one conversation."""

    quotas: Quotas
    holder: str
    workspace: Path

    @asynccontextmanager
    async def hold(self, adding: Amounts, place: Path | None = None) -> AsyncGenerator[None]:
        """See `Space`."""
        async with self.quotas.hold(self.holder, adding, place or self.workspace):
            yield

    async def left(self) -> Amounts:
        """See `Space`."""
        return await self.quotas.left(self.holder, self.workspace)

    async def changed(self) -> None:
        """See `Space`."""
        self.quotas.changed(self.holder)


class Quotas:
    """What is kept, counted, and room held for more. Use `running` for its life; `hold` works without it, too."""

    def __init__(
        self, limits: QuotaLimits, state_dir: Path, workspaces: Path, spool: Path, memories: Memories, clock: Clock
    ) -> None:
        self.limits = limits
        self.ledger = QuotaLedger(limits)
        self.refused: Counter[QuotaKind] = Counter()
        """How often there was no room."""
        self._state = state_dir
        self._workspaces = workspaces
        self._spool = spool
        self._memories = memories
        self._clock = clock
        self._owners = Owners(state_dir)
        self._loaded = False
        self._loading = asyncio.Lock()
        self._dirty: set[str] = set()
        self._not_before: dict[str, float] = {}
        """When holders who were refused are counted again at the earliest, by the monotonic clock."""
        self._one: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._said: Counter[tuple[str, QuotaKind]] = Counter()
        self.incoming = Incoming(limits, self.ledger, self.note)
        self.counted = False
        """Everything was counted once."""

    def space(self, inbound: Inbound, workspace: Path) -> ScopedSpace:
        """The room of whoever wrote a message."""
        return ScopedSpace(self, whose_share(inbound), workspace)

    def workspace(self, inbound: Inbound) -> Path:
        """Where the files of a message's conversation are."""
        return workspace_of(inbound, self._workspaces)

    def move(self, old_session: str, new_session: str) -> None:
        """A conversation has another key: its files are found under that, unless there are some already."""
        was, here = (self._workspaces / folder_name(key) for key in (old_session, new_session))
        if was.is_dir() and not here.exists():
            try:
                was.rename(here)
            except OSError as error:
                log.warning("workspace.not_moved", session=new_session, error=str(error))
            else:
                holder = holder_of(new_session)
                self._owners.claim(here, holder)
                self._dirty.add(holder)

    # ------------------------------------------------------------------ holding

    @asynccontextmanager
    async def hold(self, holder: str, adding: Amounts, place: Path) -> AsyncGenerator[None]:
        """Room for what the block writes into `place`. Raises `NoRoom` before it."""
        await self._load()
        if adding.keys() & OF_FOLDERS:
            await self._own(place, holder)
        await self._count_if_unknown(holder, adding)
        held = self.ledger.hold(holder, adding)
        if isinstance(held, Full) and await self._counted_anew(holder, adding):
            held = self.ledger.hold(holder, adding)
        if isinstance(held, Full):
            self.note(holder, held)
            raise NoRoom(held)
        try:
            yield
        except BaseException:
            self.ledger.drop(held)
            self._dirty.add(holder)  # a thread may still be at it, and some of it may be there
            raise
        self.ledger.settle(held)

    async def left(self, holder: str, place: Path) -> Amounts:
        """How much more there is room for in a folder of a holder's, of what has a limit."""
        await self._load()
        await self._own(place, holder)
        await self._count_if_unknown(holder, {QuotaKind.WORKSPACE: 0, QuotaKind.FILES: 0})
        used, limits = self.ledger.used(holder), self.limits.each
        found = {
            kind: max(0, limits[kind] - used.get(kind, 0))
            for kind in (QuotaKind.WORKSPACE, QuotaKind.FILES)
            if limits.get(kind)
        }
        if self.limits.whole:
            found[QuotaKind.WHOLE] = max(0, self.limits.whole - self.ledger.whole())
        return found

    def note(self, holder: str, full: Full) -> None:
        """Somebody was refused: counted, and said now and then."""
        self.refused[full.kind] += 1
        key = ("" if full.kind is QuotaKind.WHOLE else holder, full.kind)
        if len(self._said) > MOST_SAID:
            self._said.clear()
        self._said[key] += 1
        if worth_saying(self._said[key]):
            log.warning(
                "quota.reached", what=full.kind.value, holder=shown(holder), used=full.used, limit=full.limit, adding=full.adding,
                times=self._said[key],
            )  # fmt: skip

    async def _load(self) -> None:
        """Learn whose the folders are."""
        async with self._loading:
            if not self._loaded:
                await asyncio.to_thread(self._owners.load)
                self._loaded = True

    async def _own(self, place: Path, holder: str) -> None:
        if not self._owners.knows(place, holder):
            lasting = place.parent != self._workspaces / ROOMS
            if await asyncio.to_thread(self._owners.claim, place, holder, lasting=lasting):
                self._dirty.add(holder)  # what it holds already has not been counted as theirs

    # ------------------------------------------------------------------ counting

    async def _count_if_unknown(self, holder: str, adding: Amounts) -> None:
        if holder not in self._dirty and self.ledger.known(holder, adding):
            return
        async with self._one.setdefault(holder, asyncio.Lock()):
            if holder in self._dirty or not self.ledger.known(holder, adding):
                await self._count(holder, adding)

    async def _counted_anew(self, holder: str, adding: Amounts) -> bool:
        """Count a holder before they are refused. False if that was done just now."""
        began = self._clock.monotonic()
        if began < self._not_before.get(holder, began):
            return False
        async with self._one.setdefault(holder, asyncio.Lock()):
            await self._count(holder, adding)
        now = self._clock.monotonic()
        if len(self._not_before) > MOST_SAID:
            self._not_before.clear()
        self._not_before[holder] = now + ANEW * (now - began)
        return True

    async def _count(self, holder: str, kinds: Iterable[QuotaKind]) -> None:
        """What a holder really has, as far as these kinds ask for it.

        It counts only if nothing was written for them meanwhile, which might have been seen or not. Else it is tried again, and left at
        last: then the figures are as they were.
        """
        for _ in range(TRIES):
            before = await self._quiet(holder)
            found = await self._found(holder, set(kinds))
            if before is not None and before == self.ledger.quiet(holder):
                self._dirty.discard(holder)
                if QuotaKind.MEMORY in set(kinds) - found.keys():
                    self._dirty.add(holder)
                self.ledger.recounted(holder, found)
                return

    async def _quiet(self, holder: str) -> int | None:
        """Wait, for a while, until nothing is being written for a holder."""
        until = self._clock.monotonic() + QUIET_SECONDS
        while (found := self.ledger.quiet(holder)) is None and self._clock.monotonic() < until:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        return found

    async def _found(self, holder: str, kinds: set[QuotaKind]) -> dict[QuotaKind, int]:
        """What a holder has. While the storage is away, what is remembered is missing."""
        found: dict[QuotaKind, int] = {}
        if kinds - {QuotaKind.MEMORY}:
            found |= await asyncio.to_thread(self._on_disk, self._owners.folders(holder))
        if QuotaKind.MEMORY in kinds:
            with suppress(StorageUnavailable):
                found[QuotaKind.MEMORY] = (await self._remembered(scopes_of(holder))).get(holder, 0)
        return found

    def _on_disk(self, folders: list[Path]) -> dict[QuotaKind, int]:
        found = {QuotaKind.WORKSPACE: 0, QuotaKind.FILES: 0, QuotaKind.SPOOL: 0}
        for folder in folders:
            use = count_folder(folder)
            if folder.parent == self._spool:
                found[QuotaKind.SPOOL] += use.size + BLOCK_OF_FOLDER
            else:
                found[QuotaKind.WORKSPACE] += use.size
                found[QuotaKind.FILES] += use.files
        return found

    async def _remembered(self, of: Collection[str] = ()) -> dict[str, int]:
        """Bytes by holder; of everybody, or of those with these scopes. Raises `StorageUnavailable`.

        Settings and approvals that are kept in the same place are nothing that is remembered for anybody, and no `forget` removes them.
        """
        rows = await self._memories(of)
        return await asyncio.to_thread(_added_up, rows) if len(rows) > AT_ONCE else _added_up(rows)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Everything is counted in the background, for the block."""
        stop = Stop()
        async with beside(partial(self._run, stop), "quota"):
            try:
                yield
            finally:
                stop.stop()

    async def _run(self, stop: Stop) -> None:
        while True:
            began = self._clock.monotonic()
            try:
                await self.count_everything(stop)
            except CountStopped:
                return
            except (OSError, StorageUnavailable) as error:
                log.warning("quota.not_counted", error=str(error))
            except Exception as error:
                log.exception("quota.not_counted", error=type(error).__name__)
            await asyncio.sleep(max(COUNT_SECONDS, REST * (self._clock.monotonic() - began)))

    async def count_everything(self, stop: Stop | None = None) -> None:
        """Count what is really there, of everybody."""
        began = self._clock.monotonic()
        await self._load()
        self.ledger.begin_count()
        roots = (self._workspaces, self._workspaces / ROOMS, self._spool)
        counted = await asyncio.to_thread(count_all, self._state, roots, stop or Stop())
        await asyncio.to_thread(self._owners.tidy)
        found = await asyncio.to_thread(self._by_holder, counted, await self._remembered())
        for _ in self.ledger.end_count(counted.whole, found):
            await asyncio.sleep(0)
        self.counted = True
        log.info(
            "quota.counted", used=self.ledger.whole(), holders=len(found), seconds=round(self._clock.monotonic() - began, 2)
        )  # fmt: skip

    def _by_holder(self, counted: Counted, remembered: Mapping[str, int]) -> dict[str, dict[QuotaKind, int]]:
        """In a thread: there may be as many as people."""
        found: dict[str, dict[QuotaKind, int]] = {}
        for folder, use in counted.folders.items():
            if not (holder := self._owners.holder(folder)):
                continue
            its = found.setdefault(holder, {})
            if folder.parent == self._spool:
                its[QuotaKind.SPOOL] = its.get(QuotaKind.SPOOL, 0) + use.size + BLOCK_OF_FOLDER
            else:
                its[QuotaKind.WORKSPACE] = its.get(QuotaKind.WORKSPACE, 0) + use.size
                its[QuotaKind.FILES] = its.get(QuotaKind.FILES, 0) + use.files
        for holder, size in remembered.items():
            found.setdefault(holder, {})[QuotaKind.MEMORY] = size
        return found

    # ------------------------------------------------------------------ telling

    def nearly_full(self) -> bool:
        """Whether the whole is nearly used up, or is."""
        return bool(self.limits.whole) and self.ledger.whole() >= self.limits.whole * NEARLY

    def words(self) -> str:
        """That the whole is nearly used up, for operators; empty if it is not."""
        if not self.nearly_full():
            return ""
        used, limit = self.ledger.whole(), self.limits.whole
        refused = " Files, and what is to be remembered, are refused." if used >= limit else ""
        return (
            f"{size_words(used)} of {size_words(limit)} are kept in the state directory ({used * 100 // limit} %).{refused} outspoken "
            "status shows who has most; remove something, or raise [quota] whole_mib."
        )

    def status(self) -> dict[str, Json]:
        """For ``outspoken status``."""
        most = self.ledger.most(SHOWN)
        return {
            "counted": self.counted,
            "used_bytes": self.ledger.told(),
            "limit_bytes": self.limits.whole,
            "kinds": {kind.value: amount for kind, amount in self.ledger.totals().items()},
            "refused": {kind.value: self.refused[kind] for kind in QuotaKind},
            "most": [
                {"holder": shown(holder), **{kind.value: used.get(kind, 0) for kind in (*ON_DISK, QuotaKind.FILES)}}
                for holder, used in most
                if any(used.values())
            ],
        }

    async def lines(
        self, inbound: Inbound, kinds: tuple[QuotaKind, ...] = (QuotaKind.WORKSPACE, QuotaKind.FILES, QuotaKind.MEMORY)
    ) -> tuple[str, ...]:
        """How much of theirs is kept, for the person."""
        holder = whose_share(inbound)
        await self._load()
        await self._count_if_unknown(holder, dict.fromkeys(kinds, 0))
        used = self.ledger.used(holder)
        amounts = [self._of(kind, used.get(kind, 0)) for kind in kinds if kind is not QuotaKind.MEMORY]
        lines = [speak("Kept for you: {amounts}.", amounts=", ".join(amounts))] if amounts else []
        if QuotaKind.MEMORY in kinds:
            memory = self._of(QuotaKind.MEMORY, used.get(QuotaKind.MEMORY, 0))
            lines.append(speak("Remembered for you: {amount}.", amount=memory))
        return tuple(lines)

    def files_of(self, inbound: Inbound) -> int:
        """How many files are kept for the person, as far as they were counted."""
        return self.ledger.used(whose_share(inbound)).get(QuotaKind.FILES, 0)

    def changed(self, holder: str) -> None:
        """Somebody else has changed what a holder has: it is counted before it is asked for next."""
        self._dirty.add(holder)

    def _of(self, kind: QuotaKind, used: int) -> str:
        limit = self.limits.each.get(kind, 0)
        if not limit:
            return amount_words(kind, used)
        return speak("{used} of {limit}", used=used_words(kind, used), limit=amount_words(kind, limit))


def _added_up(rows: Iterable[tuple[str, str, int, int]]) -> dict[str, int]:
    """Bytes by holder. Pure."""
    found: Counter[str] = Counter()
    for scope, kind, size, entries in rows:
        if kind in COUNTED:
            owner = scope.rpartition("/")[0] if kind == LISTS else scope
            found[holder_of(owner)] += size + entries * ENTRY_BYTES
    return dict(found)


MOST_SAID = 10_000
BLOCK_OF_FOLDER = 4096
