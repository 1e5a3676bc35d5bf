"""The gateway's side: few worker processes, begun when they are first needed and let go when they are idle.

Laws (tests hold them): a job ends within its seconds, whatever it does; one that is cancelled, too slow, too large or that dies
takes its process with it, and the next job has a fresh one; one owner has one worker at a time, so that nobody keeps all of
them; who finds too long a line is told so at once; nothing is left when the gateway ends, however it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from types import TracebackType

import structlog

from agent_core.jsonvalue import Json
from agent_core.patience import Limit
from agent_core.records import dataclass
from agent_core.workers.confines import OWN, Confines, spelled
from agent_core.workers.wire import HEAD_BYTES, Unsendable, frame, lengths, value_of

log = structlog.get_logger("worker")

WORKERS = 3
LINE = 64
"""How many jobs may wait."""
IDLE_SECONDS = 30.0
START_SECONDS = 30.0
REAP_SECONDS = 2.0
JOBS = 500
"""After so many a worker is replaced: whatever a library has not given back goes with it."""
BEAT_CHARS = 200
"""Of what a job says while it works."""
SAID_CHARS = 400
"""Of what it says went wrong, for the log."""
_BOOT = "import sys; sys.path[:] = sys.argv.pop().splitlines(); from agent_core.workers.child import main; main()"


class WorkerTrouble(StrEnum):
    """Why a job has no result."""

    SLOW = "slow"
    MEMORY = "memory"
    DEPTH = "depth"
    """It is nested too deeply."""
    SIZE = "size"
    """The result is too large."""
    DIED = "died"
    UNSENDABLE = "unsendable"
    """What is asked holds half characters, or numbers of more than 64 bits."""
    BUSY = "busy"
    CLOSED = "closed"
    NO_PROCESS = "no_process"
    BUG = "bug"


_TROUBLES = {one.value: one for one in WorkerTrouble}
"""A page that has taken a worker over may name one that there is not."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker can do, and its limits."""

    target: str
    """``module:function``; the function takes a dictionary and bytes, and gives a value that JSON knows."""
    seconds: float
    answer_bytes: int = 8_000_000


class WorkFailed(Exception):
    """The job has no result. Nothing of it goes on."""

    def __init__(self, trouble: WorkerTrouble) -> None:
        super().__init__(trouble.value)
        self.trouble = trouble


class _Broken(Exception):
    """The worker is gone, or says what it should not."""


def _unheard(_: str) -> None:
    """Nobody wants to know how far a job is."""


@dataclass(eq=False, slots=True)
class _Worker:
    process: asyncio.subprocess.Process
    begins_more: bool = False
    """It may have begun processes."""
    jobs: int = 0
    idle_since: float = 0.0

    async def ask(self, request: bytes, most_bytes: int, heard: Callable[[str], None]) -> dict[str, Json]:
        """The answer to a frame; what is said on the way is `heard`. Raises `_Broken`, or `WorkFailed` if it is too large."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request)
            await self.process.stdin.drain()
            while "beat" in (answer := await self.hear(most_bytes)):
                heard(str(answer["beat"])[:BEAT_CHARS])
                await asyncio.sleep(0)  # what is read already does not wait, and others have their turn all the same
            return answer
        except (OSError, EOFError, ValueError) as error:
            raise _Broken from error

    async def hear(self, most_bytes: int) -> dict[str, Json]:
        assert self.process.stdout is not None
        body, blob = lengths(await self.process.stdout.readexactly(HEAD_BYTES))
        if body + blob > most_bytes:
            raise WorkFailed(WorkerTrouble.SIZE)
        return value_of(await self.process.stdout.readexactly(body))

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def end(self) -> int | None:
        """Kill it, with all that it has begun; its exit status, if it came soon."""
        if self.begins_more and self.alive:
            from agent_core.workers.left import end_below

            await asyncio.to_thread(end_below, self.process.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)  # and with it whatever it has begun itself
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            async with asyncio.timeout(REAP_SECONDS):
                # What it had still said is read away: the process counts as over only when its pipes are.
                while self.process.stdout is not None and await self.process.stdout.read(1 << 16):
                    pass
                return await self.process.wait()
        except TimeoutError:  # it hangs in the kernel, on a disk that does not answer; the signal waits for it there
            log.warning("worker.does_not_die", pid=self.process.pid)
            return None


class Workers:
    """Worker processes that jobs are given to, few of them. Nothing is begun before the first job; `aclose`, or the end of the block, ends everything."""

    def __init__(
        self, most: int = WORKERS, *, line: int = LINE, idle_seconds: float = IDLE_SECONDS, confines: Confines = OWN
    ) -> None:
        self._most = most
        self._confines = confines
        self._longest = line
        self._idle_seconds = idle_seconds
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._owners: dict[object, int] = {}
        """Who has a worker now."""
        self._line: dict[asyncio.Future[None], object] = {}
        """Who waits, in order, and for whom."""
        self._running = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[int | None]] = set()
        self._closed = False
        self._over: asyncio.Future[None] | None = None
        """Done when no job runs any more; while it is closed."""

    async def __aenter__(self) -> Workers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End all workers; jobs that run or wait fail."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for waiting in self._line:
            if not waiting.done():
                waiting.set_exception(WorkFailed(WorkerTrouble.CLOSED))
        for worker in (*self._idle, *self._busy):
            self._end(worker)
        self._idle.clear()
        if self._running:
            self._over = asyncio.get_running_loop().create_future()
            await self._over
        while self._ending:
            await asyncio.wait(self._ending)

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that there are."""
        return [worker.process.pid for worker in (*self._idle, *self._busy) if worker.alive]

    async def run(
        self,
        job: Job,
        request: Mapping[str, Json],
        blob: bytes = b"",
        *,
        owner: object = None,
        heard: Callable[[str], None] = _unheard,
        line_seconds: float | None = None,
    ) -> Json:
        """The result of a job. Raises `WorkFailed`. An `owner` (a conversation, say) has one worker at a time; what a job says
        while it works is `heard`. Who has waited for `line_seconds` and got no worker is told that all are busy."""
        try:
            asked = frame({"job": job.target, "seconds": job.seconds, "request": dict(request)}, blob)
        except Unsendable:
            raise WorkFailed(WorkerTrouble.UNSENDABLE) from None
        mine = object() if owner is None else owner
        if self._free_for(mine):
            self._take(mine)
        else:
            try:
                async with asyncio.timeout(line_seconds):
                    await self._enter(mine)
            except TimeoutError:
                raise WorkFailed(WorkerTrouble.BUSY) from None
        try:
            return await self._run(job, asked, heard)
        finally:
            self._leave(mine)

    # ------------------------------------------------------------------ the line

    def _free_for(self, owner: object) -> bool:
        """Nobody has to wait."""
        return not self._closed and self._running < self._most and owner not in self._owners

    async def _enter(self, owner: object) -> None:
        if self._closed:
            raise WorkFailed(WorkerTrouble.CLOSED)
        if len(self._line) >= self._longest:
            raise WorkFailed(WorkerTrouble.BUSY)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line[turn] = owner
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave(owner)  # it was given a worker in the same moment
            raise
        finally:
            self._line.pop(turn, None)

    def _take(self, owner: object) -> None:
        self._running += 1
        self._owners[owner] = self._owners.get(owner, 0) + 1

    def _leave(self, owner: object) -> None:
        self._running -= 1
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]
        if self._over is not None and not self._over.done() and not self._running:
            self._over.set_result(None)
        for turn, waiting in list(self._line.items()):
            if self._running >= self._most:
                break
            if not turn.done() and waiting not in self._owners:
                self._take(waiting)
                turn.set_result(None)

    # ------------------------------------------------------------------ the work

    async def _run(self, job: Job, asked: bytes, heard: Callable[[str], None]) -> Json:
        worker = await self._worker()
        if self._closed:
            self._end(worker)
            raise WorkFailed(WorkerTrouble.CLOSED)
        self._busy.add(worker)
        kept = False
        try:
            async with Limit(job.seconds):
                answer = await worker.ask(asked, job.answer_bytes, heard)
            kept = "done" in answer and not answer.get("worn") and worker.jobs < JOBS and not self._closed
        except TimeoutError:
            raise self._failed(job, WorkerTrouble.SLOW) from None
        except WorkFailed as error:
            raise self._failed(job, error.trouble) from None
        except _Broken:
            status = await worker.end()
            trouble = WorkerTrouble.SLOW if status == -signal.SIGXCPU else WorkerTrouble.DIED
            raise self._failed(job, WorkerTrouble.CLOSED if self._closed else trouble, status=status) from None
        finally:
            self._busy.discard(worker)
            if kept:
                self._rest(worker)
            else:
                self._end(worker)
        if "done" not in answer:
            error, source = (str(answer.get(name) or "")[:SAID_CHARS] for name in ("error", "source"))
            raise self._failed(job, _TROUBLES.get(str(answer.get("failed")), WorkerTrouble.BUG), error, source)
        return answer["done"]

    @staticmethod
    def _failed(
        job: Job, trouble: WorkerTrouble, error: str = "", source: str = "", status: int | None = None
    ) -> WorkFailed:
        """Logs it."""
        if trouble is not WorkerTrouble.CLOSED:
            log.warning(
                "worker.job_failed", job=job.target, why=trouble.value, error=error, source=source, exit_status=status
            )
        return WorkFailed(trouble)

    async def _worker(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                worker.jobs += 1
                return worker
            self._end(worker)
        began = time.monotonic()
        try:
            worker = _Worker(await _spawned(self._confines), self._confines.processes)
        except OSError as error:
            log.error("worker.not_started", error=str(error))  # noqa: TRY400 - the system's, not a bug of ours
            raise WorkFailed(WorkerTrouble.NO_PROCESS) from None
        try:
            async with asyncio.timeout(START_SECONDS):
                await worker.hear(100)
        except BaseException as error:
            self._end(worker)
            if isinstance(error, TimeoutError | EOFError | OSError | ValueError):
                log.error("worker.not_started", error=type(error).__name__)  # noqa: TRY400 - a process, not a bug of ours
                raise WorkFailed(WorkerTrouble.NO_PROCESS) from None
            raise
        log.debug("worker.started", pid=worker.process.pid, milliseconds=round((time.monotonic() - began) * 1000))
        worker.jobs = 1
        return worker

    def _rest(self, worker: _Worker) -> None:
        worker.idle_since = time.monotonic()
        self._idle.append(worker)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._idle_seconds, self._sweep)

    def _sweep(self) -> None:
        """End those that have had nothing to do for a while."""
        self._sweeper = None
        now = time.monotonic()
        for worker in [one for one in self._idle if now - one.idle_since >= self._idle_seconds * 0.9 or not one.alive]:
            self._idle.remove(worker)
            self._end(worker)
        if self._idle and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(self._idle_seconds, self._sweep)

    def _end(self, worker: _Worker) -> None:
        task = asyncio.get_running_loop().create_task(worker.end(), name="worker's end")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _spawned(confines: Confines) -> asyncio.subprocess.Process:
    """A fresh interpreter that finds the same modules as this one, and is given nothing else but what its confines name."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", "-c", _BOOT, str(os.getpid()), spelled(confines), "\n".join(sys.path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in confines.environment if name in os.environ},
        cwd="/",
        start_new_session=True,
    )
