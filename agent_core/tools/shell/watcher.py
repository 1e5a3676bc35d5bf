"""The process that watches over one command, outside of its sandbox: begins it, keeps its output, holds its limits, and writes down how it ended.

It outlives the gateway that began it. It ends the command when it is asked to, when a limit is passed, when the conversation's folder is gone, and when
the gateway died and no other one says that it goes on with it. If this process is killed, all that is in the sandbox is, by the kernel or by the first
process inside.

Known to be weak: killed in the very moment in which bubblewrap begins, it leaves a process that waits for ever and has run nothing.

Law (tests/shell/test_commands.py): a command is begun at most once; whatever becomes of it, `end.json` says so, unless this process is killed.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from agent_core.tools.sandbox.bubblewrapped import Bubblewrapped
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.locked import LockedCommand, NoSandbox
from agent_core.tools.sandbox.terms import SandboxKind
from agent_core.tools.sandbox.usage import FolderWatch, open_again
from agent_core.tools.shell.record import (
    BEGAN,
    END,
    LOCK,
    OUTPUT,
    OWNER,
    STOP,
    CommandRecord,
    container_of,
    encoded_end,
    put_whole,
    record_of,
)

QUICK_SECONDS, SLOW_SECONDS = 0.05, 0.2
"""Between two looks at what it takes: in its first second, and later."""
MERCY_SECONDS = 3.0
"""From being asked to end to being made to."""
ORPHAN_SECONDS = 600.0
"""So long another gateway has time to say that it goes on with the command."""
LAST_WORDS_SECONDS = 2.0
GONE_SECONDS = 0.01
"""Between the end of a process's output and its own."""
CHUNK = 1 << 16


def main() -> None:
    """Called with the process id of the gateway and the command's folder."""
    gateway, folder = int(sys.argv[1]), Path(sys.argv[2])
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(os.open(folder / BEGAN, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return  # another process does this, or has done it
    began = time.monotonic()
    try:
        record = record_of(folder)
        end = CommandWatch(folder, record, gateway).run() if record else CommandEnd(EndCause.SANDBOX)
    except Exception as error:  # noqa: BLE001 - whatever it is, the end is to be known
        end = CommandEnd(EndCause.SANDBOX, words=f"{type(error).__name__}: {error}"[:500])
    put_whole(folder, END, encoded_end(CommandEnd(end.cause, end.status, time.monotonic() - began, end.words)))


def locked(folder: Path, record: CommandRecord) -> LockedCommand:
    """The command in the sandbox that it was asked for in."""
    if record.terms.kind is SandboxKind.BUBBLEWRAP:
        return Bubblewrapped(record.workspace, record.argv, record.terms)
    from agent_core.tools.sandbox.contained import Contained

    return Contained(folder, container_of(folder), record.workspace, record.argv, record.terms)


class CommandWatch:
    """One command, from its beginning to its end."""

    def __init__(self, folder: Path, record: CommandRecord, gateway: int) -> None:
        self._folder, self._terms = folder, record.terms
        self._workspace = Path(record.workspace)
        self._gateway, self._orphan_since = gateway, 0.0
        self._locked = locked(folder, record)
        self._cause = EndCause.EXITED
        self._asked_at = 0.0
        self._waiting = selectors.DefaultSelector()
        self._written = 0
        self._output = os.open(folder / OUTPUT, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        signal.signal(signal.SIGTERM, self._told_to_stop)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def run(self) -> CommandEnd:
        """Its end."""
        open_again(self._workspace)
        disk = FolderWatch(self._workspace, self._terms.disk_bytes, self._terms.files)
        out, out_end = os.pipe()
        try:
            status = self._locked.start(out_end)
        except NoSandbox as error:
            return CommandEnd(EndCause.SANDBOX, words=str(error))
        finally:
            os.close(out_end)
        for number, taken in ((out, self._keep), (status, self._locked.hear)):
            os.set_blocking(number, False)
            self._waiting.register(number, selectors.EVENT_READ, taken)
        try:
            self._begin()
            if self._locked.ready:
                self._watch(disk)
        finally:
            self._locked.kill()
            self._last_words()
            cause = self._locked.close()
            open_again(self._workspace)
        if self._cause is EndCause.EXITED and cause is EndCause.SANDBOX:
            return CommandEnd(cause, words=self._locked.complaint(self._printed()))
        if self._cause is EndCause.EXITED and disk.look():
            self._cause = EndCause.DISK
        self._cause = cause if self._cause is EndCause.EXITED else self._cause
        return CommandEnd(self._cause, self._locked.status if self._cause is EndCause.EXITED else None)

    def _begin(self) -> None:
        """Have the limits hold before the command is."""
        until = time.monotonic() + self._locked.start_seconds
        while not self._locked.ready and not self._locked.over and time.monotonic() < until:
            self._listen(SLOW_SECONDS)
        if self._locked.ready:
            self._locked.go()

    # ------------------------------------------------------------------ watching

    def _watch(self, disk: FolderWatch) -> None:
        began = looked = time.monotonic()
        while not self._locked.over:
            now = time.monotonic()
            rest = QUICK_SECONDS if now - began < 1 else SLOW_SECONDS
            self._listen(max(0.0, looked + rest - now))
            now = time.monotonic()
            if self._asked_at and now - self._asked_at > MERCY_SECONDS:
                self._locked.kill()
            if now < looked + rest:
                continue
            looked = now
            cause = self._passed(now - began, disk) or self._unwanted(now)
            if cause is EndCause.STOPPED or cause is EndCause.GATEWAY:
                self._ask_to_end(cause, now)
            elif cause is not None and not self._asked_at and self._cause is EndCause.EXITED:
                self._cause = cause
                self._locked.kill()

    def _passed(self, seconds: float, disk: FolderWatch) -> EndCause | None:
        """Which limit it has passed."""
        if seconds > self._terms.seconds:
            return EndCause.TIME
        if self._written > self._terms.output_bytes:
            return EndCause.OUTPUT
        return self._locked.passed() or (EndCause.DISK if disk.over() else None)

    def _unwanted(self, now: float) -> EndCause | None:
        """Whether it is to end although it has passed no limit."""
        with suppress(OSError, ValueError):
            return EndCause((self._folder / STOP).read_text("utf-8"))
        if not self._workspace.is_dir():
            return EndCause.GONE
        if os.getppid() == self._gateway or self._adopted():
            self._orphan_since = 0.0
            return None
        self._orphan_since = self._orphan_since or now
        return EndCause.ORPHANED if now - self._orphan_since > ORPHAN_SECONDS else None

    def _adopted(self) -> bool:
        with suppress(OSError, ValueError):
            os.kill(int((self._folder / OWNER).read_text("utf-8")), 0)
            return True
        return False

    def _told_to_stop(self, _number: int, _frame: object) -> None:
        """Whoever stops the whole service stops this, too."""
        with suppress(OSError):
            (self._folder / STOP).write_text(EndCause.GATEWAY.value, "utf-8")

    def _ask_to_end(self, cause: EndCause, now: float) -> None:
        if self._asked_at:
            return
        self._cause, self._asked_at = cause, now
        self._locked.ask()

    # ------------------------------------------------------------------ listening

    def _listen(self, seconds: float) -> None:
        """Take what is written, or wait so long for it."""
        if not self._waiting.get_map():
            time.sleep(min(seconds, GONE_SECONDS))
            return
        for key, _ in self._waiting.select(seconds):
            with suppress(BlockingIOError):
                chunk = os.read(key.fd, CHUNK)
                if chunk:
                    key.data(chunk)
                else:
                    self._waiting.unregister(key.fd)

    def _keep(self, chunk: bytes) -> None:
        room = self._terms.output_bytes - self._written
        self._written += len(chunk)
        if room > 0:
            try:
                os.write(self._output, chunk[:room])
            except OSError:
                # There is no room on the disk: it ends as one that wrote too much
                self._written = self._terms.output_bytes + 1

    def _last_words(self) -> None:
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self._waiting.get_map() and time.monotonic() < until:
            self._listen(SLOW_SECONDS)

    def _printed(self) -> bytes:
        with suppress(OSError):
            return (self._folder / OUTPUT).read_bytes()[-500:]
        return b""
