"""Signs of life that a running gateway leaves beside its database, for whoever cannot reach it: which process it is, and when its loop
turned last.

A file of the state directory, held by `flock` for the life of the process, holds the process id; a task of the event loop touches it
every few seconds. So a process that is gone is told from one that hangs, whatever became of the file, and one that hangs from one that
only listens elsewhere. `judge` decides what somebody who asks is told; it is pure.

Known to be weak: the process id is that of the gateway's own PID namespace, so to somebody outside of its container it names another process.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import structlog

from adapters.checks.probe import Answering
from agent_core.beside import beside
from agent_core.records import dataclass

log = structlog.get_logger("gateway")

FILE_NAME = "gateway.alive"
BEAT_SECONDS = 5.0
SILENT_SECONDS = 4 * BEAT_SECONDS
"""Without a sign for so long, the loop is taken to be stuck."""


@dataclass(frozen=True, slots=True)
class LifeSign:
    """What a running process has left."""

    pid: int
    seen_at: float
    """When its loop turned last, seconds since 1970."""
    stopped: bool = False
    """Somebody has stopped the process (SIGSTOP); it was not the loop."""


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """Whether the gateway of this configuration can be asked."""

    url: str = ""
    """Where it answers; empty if it does not."""
    trouble: str = ""
    """Why nobody can be asked, if that is not only because none runs."""
    fix: str = ""
    pid: int = 0
    """The process that runs and does not answer; 0 if it answers, or does not run."""


def judge(reply: Answering, url: str, sign: LifeSign | None, holder: int | None, now: float) -> RunningGateway:
    """What is found. `holder` is the process that has the database open, as far as that is known. Pure."""
    if reply is Answering.GATEWAY:
        return RunningGateway(url)
    pid = sign.pid if sign is not None else holder
    if not pid:
        if reply is Answering.SILENT:
            return RunningGateway(
                trouble=f"Something takes connections at {url} and does not answer, and it is no gateway of this state directory.",
                fix="Look what listens there, or name another port: [server] port.",
            )
        return RunningGateway()
    head = f"A gateway runs (process {pid}) and does not answer{f' at {url}' if url else ''}"
    silent = 0.0 if sign is None else now - sign.seen_at
    last = ""
    if sign is not None:
        since = datetime.fromtimestamp(sign.seen_at, UTC).strftime("%H:%M:%S UTC")
        last = f"its loop turned last at {since}, {_long(silent)} ago"
    if sign is not None and sign.stopped:
        fix = f"Let it go on: kill -CONT {pid}"
        return RunningGateway(trouble=f"{head}: somebody has stopped the process, and {last}.", fix=fix, pid=pid)
    if silent < SILENT_SECONDS:
        fix = "It may be starting, upgrading its database, busy or stopping: ask again. Or it has another [server] host or port than this configuration."
        return RunningGateway(trouble=f"{head}{f'; {last}' if last else ''}.", fix=fix, pid=pid)
    fix = (
        f"It hangs. Restart it: systemctl restart outspoken, podman restart outspoken, or kill -ABRT {pid} and outspoken run. "
        "What was open goes on, and the log says where it hung: loop.held, or after SIGABRT the next start's loop.was_held."
    )
    return RunningGateway(trouble=f"{head}: {last}.", fix=fix, pid=pid)


def _long(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@asynccontextmanager
async def signs_of_life(state_dir: Path) -> AsyncGenerator[None]:
    """Leave them for the block. A directory that takes no file costs those signs for as long as it takes none, and nothing else."""
    left = _Left(state_dir / FILE_NAME)
    left.sign()
    try:
        async with beside(partial(_beat, left), "signs of life"):
            yield
    finally:
        left.close()


class _Left:
    """The file in which they are left, once it can be held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._well = True

    def sign(self) -> None:
        """Leave one, if that can be done just now."""
        try:
            if self._handle < 0:
                self._handle = _held(self._path)
            else:
                os.utime(self._handle)
        except OSError as error:  # the disk takes nothing; or whoever looks at this very moment holds the file
            if self._well:
                log.warning("gateway.no_sign", error=error.strerror or type(error).__name__)
            self._well = False
        else:
            self._well = True

    def close(self) -> None:
        """Leave no more."""
        if self._handle >= 0:
            os.close(self._handle)


def _held(path: Path) -> int:
    """Raises OSError, also if another process holds it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(handle, f"{os.getpid():<20}\n".encode(), 0)
    except OSError:
        os.close(handle)
        raise
    return handle


async def _beat(left: _Left) -> None:
    while True:
        left.sign()
        await asyncio.sleep(BEAT_SECONDS)


def sign_of(state_dir: Path) -> LifeSign | None:
    """What the process that runs now has left; None if none runs, or that cannot be found out."""
    try:
        handle = os.open(state_dir / FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        content = os.pread(handle, 32, 0).split()
        if not content or not content[0].isdigit():
            return None
        pid = int(content[0])
        return LifeSign(pid, os.fstat(handle).st_mtime, _stopped(pid))
    else:
        return None
    finally:
        os.close(handle)


def _stopped(pid: int) -> bool:
    """Whether the process is stopped, where the system tells (Linux)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:1]
    except OSError:
        return False
    return state in ([b"T"], [b"t"])
