"""The process that watches over one command, outside of its sandbox: begins it, keeps its output, holds its limits, and writes down how it ended.

It outlives the gateway that began it. It ends the command when it is asked to, when a limit is passed, when the conversation's folder is gone, and when
the gateway died and no other one says that it goes on with it. If this process is killed, the kernel kills all that is in the sandbox.

Known to be weak: killed in the very moment in which bubblewrap begins, it leaves a process that waits for ever and has run nothing.

Law (tests/shell/test_commands.py): a command is begun at most once; whatever becomes of it, `end.json` says so, unless this process is killed.
"""

from __future__ import annotations

import fcntl
import os
import platform
import resource
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from shutil import which

import orjson

from agent_core.tools.shell import bubblewrap
from agent_core.tools.shell.record import (
    BEGAN,
    END,
    LOCK,
    OUTPUT,
    OWNER,
    STOP,
    CommandEnd,
    CommandRecord,
    EndCause,
    encoded_end,
    put_whole,
    record_of,
)
from agent_core.tools.shell.seccomp import filter_program
from agent_core.tools.shell.somebody import done_as, shown_to, user_of
from agent_core.tools.shell.terms import PROXY_PORT, ShellTerms
from agent_core.tools.shell.usage import FolderWatch, family, memory_is_scarce, memory_of

QUICK_SECONDS, SLOW_SECONDS = 0.05, 0.2
"""Between two looks at what it takes: in its first second, and later."""
MERCY_SECONDS = 3.0
"""From being asked to end to being made to."""
ORPHAN_SECONDS = 600.0
"""So long another gateway has time to say that it goes on with the command."""
START_SECONDS = 20.0
LAST_WORDS_SECONDS = 2.0
GONE_SECONDS = 0.01
"""Between the end of a process's output and its own."""
NICE = 10
CHUNK = 1 << 16
_AS_WELL = 64 << 30
"""Of address space, beside memory: what is reserved and not used costs nothing, and some languages reserve a lot."""


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


class CommandWatch:
    """One command, from its beginning to its end."""

    def __init__(self, folder: Path, record: CommandRecord, gateway: int) -> None:
        self._folder, self._record, self._terms = folder, record, record.terms
        self._workspace = Path(record.workspace)
        self._gateway, self._orphan_since = gateway, 0.0
        self._user = user_of(record.workspace) if os.geteuid() == 0 else None
        self._cause = EndCause.EXITED
        self._asked_at = 0.0
        self._init = 0
        self._exit: int | None = None
        self._said = b""
        self._waiting = selectors.DefaultSelector()
        self._written = 0
        self._output = os.open(folder / OUTPUT, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        signal.signal(signal.SIGTERM, self._told_to_stop)
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def run(self) -> CommandEnd:
        """Its end."""
        disk = FolderWatch(self._workspace, self._terms.disk_bytes, self._terms.files)
        program = which(bubblewrap.PROGRAM)
        if program is None:
            return CommandEnd(EndCause.SANDBOX, words=f"{bubblewrap.PROGRAM} is not installed")
        block, go = os.pipe()
        pipes = (os.pipe(), os.pipe())
        (out, out_end), (status, status_end) = pipes
        user = self._user
        shown = self._record.workspace if user is None else shown_to(user, self._record.workspace, self._terms.read)
        given, told = self._told(shown, status_end, block)
        process = subprocess.Popen(  # noqa: S603 - what it runs is the point, and it runs in the sandbox
            [program, "--args", str(told), "--", *self._record.argv], stdin=subprocess.DEVNULL, stdout=out_end, stderr=out_end, env={}, cwd="/",
            pass_fds=(*given, told, status_end, block), start_new_session=True, user=user, group=user,
            extra_groups=None if user is None else (),
        )  # fmt: skip
        for number in (*given, told, out_end, status_end, block):
            os.close(number)
        for number, taken in ((out, self._keep), (status, self._hear)):
            os.set_blocking(number, False)
            self._waiting.register(number, selectors.EVENT_READ, taken)
        try:
            self._begin(go, process)
            if self._init:
                self._watch(process, disk)
        finally:
            self._kill(process)
            process.wait()
            os.close(go)
        self._last_words()
        if self._cause is EndCause.EXITED and self._exit is None:
            return CommandEnd(EndCause.SANDBOX, words=self._complaint())
        if self._cause is EndCause.EXITED and disk.look():
            self._cause = EndCause.DISK
        return CommandEnd(self._cause, self._exit if self._cause is EndCause.EXITED else None)

    # ------------------------------------------------------------------ beginning

    def _told(self, workspace: str, status: int, block: int) -> tuple[list[int], int]:
        """The descriptors that the sandbox is given, and that of its arguments: on a command line all could read them."""
        data = {place: _in_memory(text.encode()) for place, text in bubblewrap.OUR_FILES.items()}
        program = filter_program(platform.machine())
        seccomp = _in_memory(program) if program is not None else None
        told = bubblewrap.arguments(
            self._terms, workspace, there=os.path.exists, link=_link, data=data,
            seccomp=seccomp, status=status, block=block,
        )  # fmt: skip
        given = [*data.values(), *([seccomp] if seccomp is not None else [])]
        return given, _in_memory(b"\0".join(os.fsencode(one) for one in told) + b"\0")

    def _begin(self, go: int, process: subprocess.Popen[bytes]) -> None:
        """Have the limits hold before the command is."""
        until = time.monotonic() + START_SECONDS
        while not self._init and process.poll() is None and time.monotonic() < until:
            self._listen(SLOW_SECONDS)
        if not self._init:
            return
        if self._user is None:
            limit(self._init, self._terms)
        else:
            done_as(self._user, lambda: limit(self._init, self._terms))
        if self._terms.hosts:
            from agent_core.tools.shell.proxy import serve_in_thread
            from agent_core.tools.shell.within import listening_within

            serve_in_thread(listening_within(self._init, PROXY_PORT), self._terms.hosts)
        os.write(go, b"1")

    # ------------------------------------------------------------------ watching

    def _watch(self, process: subprocess.Popen[bytes], disk: FolderWatch) -> None:
        began = looked = time.monotonic()
        while process.poll() is None:
            now = time.monotonic()
            rest = QUICK_SECONDS if now - began < 1 else SLOW_SECONDS
            self._listen(max(0.0, looked + rest - now))
            now = time.monotonic()
            if self._asked_at and now - self._asked_at > MERCY_SECONDS:
                self._kill(process)
            if now < looked + rest:
                continue
            looked = now
            cause = self._passed(now - began, disk) or self._unwanted(now)
            if cause is EndCause.STOPPED or cause is EndCause.GATEWAY:
                self._ask_to_end(cause, now)
            elif cause is not None and not self._asked_at:
                self._cause = cause
                self._kill(process)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """End all that is in the sandbox: with the first process of it the kernel ends the others."""
        if process.poll() is None and self._init:
            with suppress(OSError):
                os.kill(self._init, signal.SIGKILL)
        process.kill()

    def _passed(self, seconds: float, disk: FolderWatch) -> EndCause | None:
        """Which limit it has passed."""
        terms = self._terms
        if seconds > terms.seconds:
            return EndCause.TIME
        if self._written > terms.output_bytes:
            return EndCause.OUTPUT
        processes = family(self._init, terms.processes + 2)
        if len(processes) > terms.processes + 2:  # the sandbox has two of its own
            return EndCause.PROCESSES
        if memory_of(processes, terms.memory_bytes) > terms.memory_bytes or memory_is_scarce():
            return EndCause.MEMORY
        return EndCause.DISK if disk.over() else None

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
        for process in family(self._init, self._terms.processes):
            if process != self._init:
                with suppress(OSError):
                    os.kill(process, signal.SIGTERM)

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
                self._written = (
                    self._terms.output_bytes + 1
                )  # there is no room on the disk: it ends as one that wrote too much

    def _hear(self, chunk: bytes) -> None:
        """What the sandbox says of itself."""
        self._said += chunk
        for line in self._said.splitlines():
            with suppress(ValueError):
                told = orjson.loads(line)
                self._init = int(told.get("child-pid", self._init))
                self._exit = told.get("exit-code", self._exit)

    def _last_words(self) -> None:
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self._waiting.get_map() and time.monotonic() < until:
            self._listen(SLOW_SECONDS)

    def _complaint(self) -> str:
        """What the sandbox said in place of beginning."""
        with suppress(OSError):
            return (self._folder / OUTPUT).read_bytes()[-500:].decode("utf-8", "replace").strip()
        return ""


def limit(process: int, terms: ShellTerms) -> None:
    """The limits that the kernel holds for each process; children have them from their parents, and cannot raise them."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, max(1, int(terms.seconds))),
        (resource.RLIMIT_DATA, terms.memory_bytes),
        (resource.RLIMIT_AS, terms.memory_bytes + _AS_WELL),
        (resource.RLIMIT_FSIZE, terms.disk_bytes),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_NPROC, terms.processes),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 1024),
        (resource.RLIMIT_RTPRIO, 0),
    ):
        low = resource.prlimit(process, kind)[1]
        held = most if low == resource.RLIM_INFINITY else min(most, low)
        resource.prlimit(process, kind, (held, held))
    os.setpriority(os.PRIO_PROCESS, process, NICE)
    cores = sorted(os.sched_getaffinity(0))
    with suppress(OSError):
        os.sched_setaffinity(process, cores[-max(1, terms.cpus) :])
    with suppress(OSError):
        score = os.open(f"/proc/{process}/oom_score_adj", os.O_WRONLY)
        os.write(score, b"900")  # when memory is short, the kernel takes this first
        os.close(score)


def _in_memory(body: bytes) -> int:
    """A descriptor from which this is read."""
    number = os.memfd_create("outspoken")
    os.write(number, body)
    os.lseek(number, 0, os.SEEK_SET)
    return number


def _link(place: str) -> str:
    with suppress(OSError):
        return os.readlink(place)  # noqa: PTH115 - text is wanted
    return ""
