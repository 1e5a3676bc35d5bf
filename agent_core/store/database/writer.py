"""The one writer: commits whatever has queued up meanwhile, and answers each caller after the commit.

Laws.
1. A caller is answered only after the commit that holds its write. Durability therefore costs one sync a batch, not a caller.
2. Operations are carried out in the order in which they were queued.
3. One operation's fault never becomes another's: what is refused by decision (`Fenced`, `Conflict`) leaves the rest of its batch
   alone; if the database refuses the batch, it is rolled back and each operation is run alone.
4. What touches damaged pages fails alone (`Damaged`), after one more try on a fresh handle; the others are written.
5. A storage error is never followed by another try on the same handle: the line is reopened, then the batch is repeated by its
   keys, a bounded number of times; then the callers get `StorageUnavailable`.
6. The queue is bounded. At the bound `submit` waits: back-pressure, nothing is dropped.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, cast

import structlog
from sqlalchemy import Connection

from agent_core.records import dataclass
from agent_core.retry import STORAGE_REOPENED
from agent_core.store.batch.facts import Op
from agent_core.store.batch.owned import Owned
from agent_core.store.batch.transaction import NotAllNew, Outcome, carry_out
from agent_core.store.changes import Changes
from agent_core.store.database.lines import Line
from agent_core.store.database.ownership import Who
from agent_core.store.database.trouble import Blame, blame, for_want_of_room, in_words
from agent_core.store.errors import Damaged, Rejected, StorageFull, StorageUnavailable

T = TypeVar("T")
log = structlog.get_logger("storage")

QUEUE_OPS = 4_096
BATCH_OPS = 512
BATCH_BYTES = 4 * 1024 * 1024
"""What one commit holds at most, so that no caller waits long for the others. One operation may be larger."""
MAKE_ROOM = "Nothing can be acknowledged until there is room again; then it goes on by itself."
MOMENT_TRIES = 5
"""How often a batch is decided anew because another node was quicker."""


@dataclass(slots=True)
class _Queued:
    """An operation and who waits for it."""

    op: Op[object]
    answer: asyncio.Future[object]
    previous: object = None
    """What an attempt whose outcome is not known had answered."""


@dataclass(slots=True)
class _Alone:
    """A body that gets a transaction of its own. It must be repeatable."""

    body: Callable[[Connection], None]
    answer: asyncio.Future[float]
    """How many seconds the database was held for it."""


CarryOutBriefly: TypeAlias = Callable[
    [Connection, Sequence[tuple[Op[object], object]], Who, Callable[[list[Outcome]], None]], bool
]
"""See `batch.distant.carry_out`."""
_Item: TypeAlias = _Queued | _Alone


@dataclass(slots=True)
class _Failures:
    """How often a batch failed, and for what."""

    moments: int = 0
    rows: int = 0
    storage: int = 0


@dataclass(slots=True)
class Figures:
    """Counts since the start, for metrics."""

    batches: int = 0
    operations: int = 0
    largest_batch: int = 0
    reopened: int = 0


class Writer:
    """`start` it, `submit` and `alone` from anywhere, `close` it at the end."""

    def __init__(
        self,
        line: Line,
        who: Who,
        capacity: int = QUEUE_OPS,
        owned: Owned | None = None,
        brief: CarryOutBriefly | None = None,
    ) -> None:
        """`brief` is for a server, which may be far away."""
        self.figures = Figures()
        self.changes = Changes()
        self.on_commit: Callable[[int, float, bool], None] | None = None
        """Told of each batch that was tried: how many operations, how many seconds, whether it is stored."""
        self._line = line
        self._who = who
        self._owned = owned
        """What need not be read again, where nobody else writes."""
        self._brief = brief
        self._queue: deque[_Item] = deque()
        self._capacity = capacity
        self._room: asyncio.Event | None = None
        """Set when something was taken from a queue that was full, where anybody waits for that."""
        self._more: asyncio.Future[None] | None = None
        """The writer waits for something to do."""
        self._ending = False
        self._in_work: Sequence[_Item] = ()
        self._in_flight = 0
        self._idle: asyncio.Future[None] | None = None
        """Who closes it waits for this until nothing is under way."""
        self._closed = False
        self._handle_bad = False
        """The line's handle has had a storage error and must be reopened before it is used."""
        self._contended = False
        """Another node was quicker: the next attempt locks before it reads."""
        self._away = False
        """The last batch failed for the storage: until one gets through, a batch gets one try and does not wait."""
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write. `close` must follow."""
        self._task = self._loop.create_task(self._run(), name="store-writer")

    async def submit(self, op: Op[T]) -> T:
        """Queue `op`, wait for its commit, return its answer. Raises StoreError."""
        item = _Queued(op, self._loop.create_future())
        await self._wait(item)
        return cast("T", item.answer.result())

    async def alone(self, body: Callable[[Connection], T]) -> T:
        """Run `body` in a transaction of its own, when its turn comes. It must be repeatable. Raises StoreError."""
        return (await self.timed(body))[0]

    async def timed(self, body: Callable[[Connection], T]) -> tuple[T, float]:
        """As `alone`; and how many seconds nobody else could write for it: what waited before is not in it, the commit is."""
        got: list[T] = []

        def run(conn: Connection) -> None:
            got[:] = [body(conn)]

        item = _Alone(run, self._loop.create_future())
        await self._wait(item)
        return got[0], item.answer.result()

    async def close(self) -> None:
        """Take nothing more, finish what is queued, end the task."""
        self._closed = True
        if self._task is None:
            return
        if self._in_flight:
            self._idle = self._loop.create_future()
            await self._idle
        self._end()
        await self._task
        self._task = None

    async def _wait(self, item: _Item) -> None:
        if self._closed or self._task is None:
            raise StorageUnavailable(f"The store {self._line.shown} is closed; nothing can be written any more.")
        self._in_flight += 1
        try:
            while len(self._queue) >= self._capacity:
                self._room = self._room or asyncio.Event()
                await self._room.wait()
            self._queue.append(item)
            self._wake()
            if self._ending:
                raise StorageUnavailable(f"The writer of {self._line.shown} has stopped.")
            await item.answer
        finally:
            self._in_flight -= 1
            if self._in_flight == 0 and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)

    def _wake(self) -> None:
        """Let the writer look whether there is something to do."""
        more, self._more = self._more, None
        if more is not None and not more.done():
            more.set_result(None)

    def _end(self) -> None:
        """What is queued is the last. Who waits for room waits no longer."""
        self._ending = True
        self._wake()
        if self._room is not None:
            self._room.set()

    async def _run(self) -> None:
        try:
            while batch := await self._next_batch():
                self._in_work = batch
                await self._commit(batch)
                self._in_work = ()
        finally:
            # After `close` nothing is left here. If a defect of ours (or a cancellation) ended the loop, nobody may wait for ever.
            self._closed = True
            left = [*self._in_work, *self._queue]
            self._queue.clear()
            self._end()
            for item in left:
                _fail(item, StorageUnavailable(f"The writer of {self._line.shown} has stopped."))

    async def _next_batch(self) -> list[_Queued] | list[_Alone]:
        """All operations that wait, up to the limits; or one body that is to be alone; empty at the end."""
        queue = self._queue
        while not queue:
            if self._ending:
                return []
            self._more = self._loop.create_future()
            await self._more
        first = queue.popleft()
        if isinstance(first, _Alone):
            alone, batch = [first], []
        else:
            alone, batch, size = [], [first], 0
            while queue and len(batch) < BATCH_OPS:
                item, size = queue[0], size + _bytes(batch[-1].op)
                if isinstance(item, _Alone) or size >= BATCH_BYTES:
                    break
                queue.popleft()
                batch.append(item)
        room, self._room = self._room, None
        if room is not None:
            room.set()
        return alone or batch

    async def _commit(self, batch: Sequence[_Item]) -> None:
        """Answer everybody in `batch`. Whoever gave up waiting before it began is left out: nothing of theirs is written."""
        wanted: list[_Queued] = []
        for item in batch:
            match item:
                case _Alone() if not item.answer.cancelled():
                    await self._commit_alone(item)
                case _Queued() if not item.answer.cancelled():
                    wanted.append(item)
                case _:
                    pass
        if wanted:
            await self._commit_together(wanted)

    async def _commit_together(self, batch: list[_Queued]) -> None:
        figures, size = self.figures, len(batch)
        figures.batches += 1
        figures.operations += size
        figures.largest_batch = max(figures.largest_batch, size)
        began = time.monotonic()
        try:
            outcomes = await self._tried(partial(self._attempt, batch), [item.op for item in batch])
        except Exception as error:  # noqa: BLE001 - the border to the callers: what a value provokes goes to who brought it
            if isinstance(error, StorageUnavailable) and not isinstance(error, Damaged):
                self._tell(size, began, stored=False)
                for item in batch:
                    _fail(item, type(error)(str(error)), error)
                return
            if len(batch) == 1:
                damaged = isinstance(error, Damaged)
                _fail(
                    batch[0],
                    error if damaged else _rejected(type(batch[0].op).__name__, error),
                    None if damaged else error,
                )
                return
            for item in batch:
                if not item.answer.cancelled():
                    await self._commit_together([item])
        else:
            self._tell(size, began, stored=True)
            for item, (result, refusal) in zip(batch, outcomes, strict=True):
                if refusal is not None:
                    _fail(item, refusal)
                elif not item.answer.done():
                    item.answer.set_result(result)

    def _tell(self, operations: int, began: float, *, stored: bool) -> None:
        if self.on_commit is not None:
            self.on_commit(operations, time.monotonic() - began, stored)

    @property
    def line(self) -> Line:
        """The line to the database: what it is asked beside the batches comes between two of them."""
        return self._line

    @property
    def waiting(self) -> int:
        """Operations that wait for their commit."""
        return self._in_flight

    async def _commit_alone(self, item: _Alone) -> None:
        async def attempt() -> float:
            began = time.monotonic()
            self._forget()
            await self._line.transact(item.body)
            return time.monotonic() - began

        try:
            seconds = await self._tried(attempt)
        except Exception as error:  # noqa: BLE001 - the border to the caller, who gets what its own body raised
            _fail(item, error)
        else:
            if not item.answer.done():
                item.answer.set_result(seconds)

    async def _attempt(self, batch: Sequence[_Queued]) -> list[Outcome]:
        """Carry out and commit once. Before that the operations' `previous` answers are the ones to stand by."""
        outcomes: list[Outcome] = []
        ops = [(item.op, item.previous) for item in batch]

        def tell(found: list[Outcome]) -> None:
            outcomes[:] = found

        def body(conn: Connection, *, trusting: bool) -> None:
            outcomes[:] = carry_out(conn, ops, self._who, self._owned, trusting=trusting)

        # Where others write, too, each looks; and what may have been stored by an earlier attempt is not new.
        trusting = self._owned is not None and not [said for _, said in ops if said is not None]
        try:
            if self._brief is None or not await self._briefly(self._brief, batch, tell):
                try:
                    await self._line.transact(partial(body, trusting=trusting))
                except NotAllNew:
                    await self._line.transact(partial(body, trusting=False))
        except Exception as error:
            self._forget()
            self._contended = blame(error) is Blame.MOMENT
            if blame(error) in (Blame.STORAGE, Blame.ROWS):
                # The commit may have happened. Then a repetition finds its own rows, and must answer as this attempt would have.
                for item, (result, _) in zip(batch, outcomes, strict=False):
                    item.previous = result
            raise
        except BaseException:
            self._forget()
            raise
        if self._owned is not None:
            self._owned.keep()
        return outcomes

    async def _briefly(
        self, brief: CarryOutBriefly, batch: Sequence[_Queued], tell: Callable[[list[Outcome]], None]
    ) -> bool:
        """Carry it out with as few ways there and back as can be; False if that cannot be done so."""
        contended, self._contended = self._contended, False
        if contended:
            return False
        return await self._line.briefly(
            lambda conn: brief(conn, [(item.op, item.previous) for item in batch], self._who, tell)
        )

    def _forget(self) -> None:
        if self._owned is not None:
            self._owned.forget()

    async def _tried(self, attempt: Callable[[], Awaitable[T]], ops: Sequence[Op[object]] = ()) -> T:
        """Repeat `attempt` where that can help (laws 3 and 4). Raises StorageUnavailable, or the operation's own error. Whatever comes of it, who
        shows what is stored may look, unless all `ops` only prove that a write gets through; of a body that is alone nothing is known."""
        failed = _Failures()
        try:
            while True:
                try:
                    if self._handle_bad:
                        await self._line.reopen()
                        self._handle_bad = False
                        self.figures.reopened += 1
                    done = await attempt()
                except Exception as error:  # noqa: BLE001 - whoever waits gets it, where nothing else helps
                    await self._wait_to_repeat(error, failed)
                else:
                    break
        except Exception:
            self.changes.note()
            raise
        self._away = False
        if not ops or [op for op in ops if not op.proves]:
            self.changes.note()
        return done

    async def _wait_to_repeat(self, error: Exception, failed: _Failures) -> None:
        """Returns when it can be tried once more. Raises what is to be told if not."""
        match blame(error):
            case Blame.OPERATION:
                raise error
            case Blame.MOMENT:
                failed.moments += 1
                if failed.moments >= MOMENT_TRIES:
                    raise error
            case Blame.ROWS:
                self._handle_bad = True
                failed.rows += 1
                log.warning("storage.damaged", database=self._line.shown, error=in_words(error))
                if failed.rows > 1:
                    raise self._damaged(error) from error
            case Blame.STORAGE:
                self._handle_bad = True
                failed.storage += 1
                if self._away or STORAGE_REOPENED.over(failed.storage):
                    self._away = True
                    raise self._unavailable(error) from error
                log.warning("storage.reopening", database=self._line.shown, error=in_words(error))
                await asyncio.sleep(STORAGE_REOPENED.seconds(failed.storage - 1))  # at once, the first time

    def _damaged(self, error: Exception) -> Damaged:
        said = f"Rows in the database {self._line.shown} can neither be read nor written: {in_words(error)}."
        return Damaged(said, writing=True)

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        if for_want_of_room(error):
            return StorageFull(
                f"There is no room to write into the database {self._line.shown}: {in_words(error)}. {MAKE_ROOM}"
            )
        return StorageUnavailable(
            f"The database {self._line.shown} cannot be written: {in_words(error)}. Nothing can be acknowledged until "
            "that is mended (is the disk full, the server up, the file locked by another program?)."
        )


def _bytes(op: Op[object]) -> int:
    return op.weight() + sum(len(piece.content) for piece in op.cut_out())


def _rejected(what: str, error: Exception) -> Rejected:
    return Rejected(f"{what} cannot be stored, and nothing of it is: {in_words(error)}.")


def _fail(item: _Item, error: Exception, cause: Exception | None = None) -> None:
    if not item.answer.done():
        error.__cause__ = cause or error.__cause__
        item.answer.set_exception(error)
