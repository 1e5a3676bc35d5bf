"""Removing what is old, now and then: a little at a time, between the turns. What is decided is in `agent_core.limits.retention`.

Laws: no transaction of it holds the writer for long, and in between the writer is the others' for longer; what is removed is counted and
logged; whatever goes wrong with one kind, the others go on, and the next look tries again.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from agent_core.limits.reckoning import Reckoning, decoded, encoded, looked
from agent_core.limits.retention import Keep, cutoff, needed, next_size
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.store.keeping import retaining
from agent_core.store.keeping.keeping import PAUSE
from agent_core.store.keeping.pruning import Pruned
from agent_core.store.store import Damaged, StorageUnavailable, Store
from agent_core.tools.files.trees import below, remove_tree
from agent_core.tools.files.workspace import LEFT_OVER

log = structlog.get_logger("gateway")
K = TypeVar("K")
T = TypeVar("T")

FIRST_SECONDS = 300.0
"""The first look comes soon: a gateway that is restarted every day has to get there too."""
EVERY_SECONDS = 6 * 3600.0
CLOCKS_SECONDS = 60.0
"""So often the clocks are compared."""
STORED_SECONDS = 600.0
"""So often it is stored what they showed."""
RECKONING = "reckoning"
LOOKED_AT_ONCE = 500
TURNS_MOST = 400
FILES_MOST = 64
SESSIONS_MOST = 200
BYTES_AT_ONCE = 512 * 1024
"""Each byte that is removed is overwritten, and that is written to the log."""
STALE_SECONDS = 86_400.0
"""So old is no file that somebody is writing."""
GOING = ".going-"
"""How the name of a folder begins that is being removed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What one look removed, and how large things are then."""

    at: int = 0
    """When it ended, ms; 0 if there was none yet."""
    messages: int = 0
    parts: int = 0
    failures: int = 0
    nodes: int = 0
    journals: int = 0
    files: int = 0
    records: int = 0
    workspaces: int = 0
    spooled: int = 0
    longest_ms: int = 0
    """Of its transactions."""
    database_bytes: int = 0
    workspaces_bytes: int = 0
    spool_bytes: int = 0
    doubted: bool = False
    """The clock is ahead of the time that is known to have passed, so things count as younger until a gateway has run for a day."""

    @property
    def removed(self) -> int:
        """How much, of whatever kind."""
        return (
            self.messages + self.parts + self.failures + self.nodes + self.journals + self.files + self.records
            + self.workspaces + self.spooled
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Where files lie, beside the database."""

    workspaces: Path
    spool: Path | None = None
    """Copies of files on their way to chats."""


@dataclass(slots=True)
class Upkeep:
    """Runs as long as the gateway does."""

    store: Store
    clock: Clock
    keep: Keep
    places: FilePlaces
    told: int
    """So many turns of a conversation are put before the model."""
    busy: Callable[[], Collection[Path]] = field(default=lambda: ())
    """The workspaces of running turns."""
    also: Callable[[], Awaitable[object]] | None = None
    """What else is tidied up at each look."""
    forget: Callable[[], None] = lambda: None
    """Lets go of what is remembered of conversations: some of it may be kept no longer."""
    last: Tally = field(default_factory=Tally)
    _reckoning: Reckoning | None = None
    _began: float = 0
    _seen: float = 0
    """When the clocks were compared last, by the one that does not jump."""
    _stored: float = 0
    _stuck: bool = False
    """In this look pages could not be given back."""

    async def run(self) -> None:
        """Look again and again."""
        if self.also is not None:
            await self.also()
        due = self.clock.monotonic() + FIRST_SECONDS
        while True:
            with suppress(StorageUnavailable):  # the next minute looks again
                await self._reckoned()
            if self.clock.monotonic() >= due:
                await self.look()
                due = self.clock.monotonic() + EVERY_SECONDS
            await asyncio.sleep(CLOCKS_SECONDS)

    async def look(self) -> Tally:
        """Remove what is old now."""
        if self.also is not None:
            await self.also()
        untouched = False
        try:
            time = await self._reckoned()
            self.last = await self._look(time, Tally(doubted=time.in_doubt))
            untouched = not self.last.removed
        except StorageUnavailable as error:
            log.warning("upkeep.not_done", error=str(error))
            return self.last
        finally:
            if not untouched:
                self.forget()
        one = self.last
        if not one.removed and not one.doubted:
            return one
        log.info(
            "upkeep.done", messages=one.messages, parts=one.parts, failures=one.failures, nodes=one.nodes,
            journals=one.journals, files=one.files, records=one.records, workspaces=one.workspaces, spooled=one.spooled,
            longest_ms=one.longest_ms, database_bytes=one.database_bytes, workspaces_bytes=one.workspaces_bytes,
            spool_bytes=one.spool_bytes, doubted=one.doubted,
        )  # fmt: skip
        return one

    async def _reckoned(self) -> Reckoning:
        """What time it is for things that are kept."""
        before = self._reckoning
        if before is None:
            before = await self._known()
            self._began = self._seen = self.clock.monotonic()
            now = looked(before, self.clock.now_ms(), 0, None)
        else:
            mono = self.clock.monotonic()
            passed, run = round((mono - self._seen) * 1000), round((self._seen - self._began) * 1000)
            now, self._seen = looked(before, self.clock.now_ms(), passed, run), mono
        first, self._reckoning = self._reckoning is None, now
        leapt = (now.dips, now.leaps, now.in_doubt) != (before.dips, before.leaps, before.in_doubt)
        if first or leapt or self._seen - self._stored >= STORED_SECONDS:
            await self.store.memory.put("", RECKONING, "", encoded(now), at_ms=self.clock.now_ms())
            self._stored = self._seen
        return now

    async def _known(self) -> Reckoning:
        """What was stored of it, or, by an earlier version, beside it."""
        stored = await self.store.memory.entries("", RECKONING)
        found = decoded(stored[0][1]) if stored else None
        if found is not None:
            return found
        return Reckoning(await self.store.retaining.known_until(self.store.node) or self.clock.now_ms())

    async def _look(self, now: Reckoning, tally: Tally) -> Tally:
        self._stuck = False
        pruned = await _alone(self.store.keeping.prune(now.now, self.keep, now.leaps), Pruned(0, 0))
        if pruned.damaged:
            log.warning("upkeep.not_done", error=pruned.damaged)
        longest = [pruned.seconds]
        journals = await _alone(self._journals(now, longest), 0)
        files = await _alone(self._files(now, longest), 0)
        records = await _alone(self._records(now, longest), 0)
        await self._give_back(longest)
        workspaces, room = await _alone(self._workspaces(now), (0, 0))
        spooled, spool = await _alone(self._spooled(now), (0, 0))
        return replace(
            tally,
            at=self.clock.now_ms(),
            messages=pruned.messages,
            parts=pruned.parts,
            failures=pruned.failures,
            nodes=pruned.nodes,
            journals=journals,
            files=files,
            records=records,
            workspaces=workspaces,
            spooled=spooled,
            longest_ms=round(max(longest) * 1000),
            database_bytes=await self.store.retaining.database_bytes(),
            workspaces_bytes=room,
            spool_bytes=spool,
        )

    # ------------------------------------------------------------------ rows

    async def _journals(self, now: Reckoning, longest: list[float]) -> int:
        before = cutoff(now.now, self.keep.journals_days, now.leaps)
        if before is None:
            return 0
        count, after, why = 0, (0, ""), self.keep.words("journals_days")
        told: dict[str, int] = {}
        while found := await self.store.retaining.old_turns(before, after, LOOKED_AT_ONCE):
            after = (found[-1].closed_at, found[-1].turn)
            of = await self.store.retaining.conversations_of({one.session for one in found}, self.told, before, told)
            old = [one.turn for one in found if not needed(of[one.session], one.number, before, undone=one.undone)]
            count += await self._in_batches(
                old, TURNS_MOST, longest, lambda turns: retaining.remove_journals(turns, why)
            )
        return count

    async def _files(self, now: Reckoning, longest: list[float]) -> int:
        before = cutoff(now.now, self.keep.attachments_days, now.leaps)
        if before is None or not await self.store.retaining.old_files(before, 1, (0, b"")):
            return 0
        in_use = await self.store.retaining.files_in_use(before, self.told)
        count, after = 0, (0, b"")
        while found := await self.store.retaining.old_files(before, LOOKED_AT_ONCE, after):
            after = (found[-1].at, found[-1].digest)
            sizes = {one.digest: one.size for one in found if one.digest not in in_use}
            count += await self._in_batches(
                [*sizes], FILES_MOST, longest, lambda files: retaining.remove_files(files, before), sizes.__getitem__
            )
        return count

    async def _records(self, now: Reckoning, longest: list[float]) -> int:
        before = cutoff(now.now, self.keep.records_days, now.leaps)
        if before is None:
            return 0
        count, after = 0, ""
        while found := await self.store.retaining.old_sessions(before, LOOKED_AT_ONCE, after):
            after = found[-1].session
            old = [one.session for one in found]
            count += await self._in_batches(
                old, SESSIONS_MOST, longest, lambda sessions: retaining.remove_sessions(sessions, before)
            )
        return count

    async def _in_batches(
        self,
        things: Sequence[K],
        most: int,
        longest: list[float],
        body: Callable[[Sequence[K]], Callable[[Connection], int]],
        weigh: Callable[[K], int] = lambda _: 0,
    ) -> int:
        """Remove all of these, so many at once as take some milliseconds, and of large ones few; their room goes back at once."""
        count, first, size = 0, 0, 8
        while first < len(things):
            some = _light(things[first : first + size], weigh)
            done = await self.store.keeping.remove_some(body(some))
            first, count = first + len(some), count + done.count
            size = next_size(size, done.seconds, most)
            longest.append(done.seconds)
            await asyncio.sleep(done.seconds * PAUSE)
            await self._give_back(longest)
        return count

    async def _give_back(self, longest: list[float]) -> None:
        """Let the disk have what is free. Soon: the longer SQLite's list of free pages is, the longer it looks for each. Around damage it stays in the file."""
        if not self._stuck:
            self._stuck = not await _alone(self._given_back(longest), otherwise=False)

    async def _given_back(self, longest: list[float]) -> bool:
        while (freed := await self.store.keeping.remove_some(retaining.give_back)).count:
            longest.append(freed.seconds)
            await asyncio.sleep(freed.seconds * PAUSE)
        return True

    # ------------------------------------------------------------------ files

    async def _workspaces(self, now: Reckoning) -> tuple[int, int]:
        before = cutoff(now.now, self.keep.workspaces_days, now.leaps)
        busy = {path.name for path in self.busy()}
        return await asyncio.to_thread(_sweep, self.places.workspaces, before, busy, frozenset[str]())

    async def _spooled(self, now: Reckoning) -> tuple[int, int]:
        if self.places.spool is None:
            return 0, 0
        before = cutoff(now.now, self.keep.attachments_days, now.leaps)
        on_their_way = b"\n".join([one.row.want for one in await self.store.deliveries.open()])
        kept = await asyncio.to_thread(_named_in, self.places.spool, on_their_way)
        return await asyncio.to_thread(_sweep, self.places.spool, before, set[str](), kept)


async def _alone(work: Awaitable[T], otherwise: T) -> T:
    """What came of one kind. What cannot be read of it, or a mistake of ours, keeps no other; where the storage is away, nothing is done."""
    try:
        return await work
    except Damaged as error:
        log.warning("upkeep.not_done", error=str(error))
    except StorageUnavailable:
        raise
    except Exception:
        log.exception("upkeep.failed")
    return otherwise


def _light(things: Sequence[K], weigh: Callable[[K], int]) -> Sequence[K]:
    """As many of the first of them as are to go at once, one at least."""
    total = 0
    for number, one in enumerate(things):
        total += weigh(one)
        if total > BYTES_AT_ONCE and number:
            return things[:number]
    return things


def _named_in(folder: Path, words: bytes) -> frozenset[str]:
    """Which folders are named in what is still on its way."""
    with suppress(OSError):
        return frozenset(one.name for one in folder.iterdir() if one.name.encode() in words)
    return frozenset()


def _sweep(root: Path, before: int | None, busy: Collection[str], kept: Collection[str]) -> tuple[int, int]:
    """Remove the folders in `root` that nobody has used since a time. How many those were, and the bytes of the others."""
    gone = total = 0
    try:
        found = sorted(root.iterdir())
    except FileNotFoundError:
        return 0, 0
    except OSError as error:
        log.warning("workspace.not_removed", folder=root.name, error=str(error))
        return 0, 0
    for one in found:
        if one.name.startswith(GOING):
            with suppress(OSError):
                remove_tree(one)
            continue
        used, size = _looked_at(one)
        total += size
        if before is None or used >= before or one.name in busy or one.name in kept or one.name.startswith("."):
            continue
        try:
            if one.is_symlink() or not one.is_dir():
                one.unlink()
            else:  # under another name first: whoever looks for it finds all of it or nothing
                going = one.with_name(f"{GOING}{one.name}")
                one.rename(going)
                remove_tree(going)
        except OSError as error:
            log.warning("workspace.not_removed", folder=one.name, error=str(error))
            continue
        gone, total = gone + 1, total - size
    return gone, total


def _looked_at(path: Path) -> tuple[int, int]:
    """When anything in a folder was changed last, ms, and how many bytes are in it. What killed processes left of files is removed."""
    latest, size, stale = 0.0, 0, time.time() - STALE_SECONDS
    with suppress(OSError):
        about = path.lstat()
        latest, size = about.st_mtime, 0 if stat.S_ISDIR(about.st_mode) else about.st_size
    for one in below(path):
        if one.about.st_mtime < stale and LEFT_OVER.fullmatch(one.name):
            with suppress(OSError):
                folder = os.fstat(one.folder)
                os.unlink(one.name, dir_fd=one.folder)
                os.utime(one.folder, ns=(folder.st_atime_ns, folder.st_mtime_ns))  # nobody has used it
                continue
        latest, size = max(latest, one.about.st_mtime), size + (0 if one.is_folder else one.about.st_size)
    return round(latest * 1000), size


def used(workspace: Path) -> None:
    """A turn begins in this folder: it counts as used now."""
    with suppress(OSError):  # there is none yet
        os.utime(workspace)
