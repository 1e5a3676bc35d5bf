"""A command in a sandbox by bubblewrap: begun, its limits set from outside before it runs, looked at, and ended."""

from __future__ import annotations

import os
import platform
import resource
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from shutil import which

import orjson

from agent_core.tools.sandbox import bubblewrap
from agent_core.tools.sandbox.ends import EndCause
from agent_core.tools.sandbox.locked import NoSandbox
from agent_core.tools.sandbox.seccomp import filter_program
from agent_core.tools.sandbox.somebody import done_as, shown_to, user_of
from agent_core.tools.sandbox.terms import PROXY_PORT, ShellTerms
from agent_core.tools.sandbox.usage import family, memory_is_scarce, memory_of

NICE = 10
_AS_WELL = 64 << 30
"""Of address space, beside memory: what is reserved and not used costs nothing, and some languages reserve a lot."""


class Bubblewrapped:
    """Implements `LockedCommand`."""

    start_seconds = 20.0

    def __init__(self, workspace: str, argv: Sequence[str], terms: ShellTerms) -> None:
        self._workspace, self._argv, self._terms = workspace, argv, terms
        self._user = user_of(workspace) if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        self._go = -1
        self._init = 0
        self._said = b""
        self.status: int | None = None

    def start(self, out: int) -> int:
        """See `LockedCommand`."""
        program = which(bubblewrap.PROGRAM)
        if program is None:
            raise NoSandbox(f"{bubblewrap.PROGRAM} is not installed")
        user = self._user
        shown = self._workspace if user is None else shown_to(user, self._workspace, self._terms.read)
        block, self._go = os.pipe()
        status, status_end = os.pipe()
        given, told = self._told(shown, status_end, block)
        self._process = subprocess.Popen(  # noqa: S603 - what it runs is the point, and it runs in the sandbox
            [program, "--args", str(told), "--", *self._argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out, env={}, cwd="/",
            pass_fds=(*given, told, status_end, block), start_new_session=True, user=user, group=user,
            extra_groups=None if user is None else (),
        )  # fmt: skip
        for number in (*given, told, status_end, block):
            os.close(number)
        return status

    def _told(self, workspace: str, status: int, block: int) -> tuple[list[int], int]:
        """The descriptors that the sandbox is given, and that of its arguments: on a command line all could read them."""
        data = {place: _in_memory(text.encode()) for place, text in bubblewrap.OUR_FILES.items()}
        program = filter_program(platform.machine())
        seccomp = _in_memory(program) if program is not None else None
        told = bubblewrap.arguments(
            self._terms, workspace, there=os.path.exists, link=link_of, data=data,
            seccomp=seccomp, status=status, block=block,
        )  # fmt: skip
        given = [*data.values(), *([seccomp] if seccomp is not None else [])]
        return given, _in_memory(b"\0".join(os.fsencode(one) for one in told) + b"\0")

    def hear(self, chunk: bytes) -> None:
        """See `LockedCommand`."""
        self._said += chunk
        for line in self._said.splitlines():
            with suppress(ValueError):
                told = orjson.loads(line)
                self._init = int(told.get("child-pid", self._init))
                self.status = told.get("exit-code", self.status)

    @property
    def ready(self) -> bool:
        """See `LockedCommand`."""
        return self._init > 0

    def go(self) -> None:
        """See `LockedCommand`."""
        if self._user is None:
            limit(self._init, self._terms)
        else:
            done_as(self._user, lambda: limit(self._init, self._terms))
        if self._terms.hosts:
            from agent_core.tools.sandbox.proxy import serve_in_thread
            from agent_core.tools.sandbox.within import listening_within

            serve_in_thread(listening_within(self._init, PROXY_PORT), self._terms.hosts)
        os.write(self._go, b"1")

    def passed(self) -> EndCause | None:
        """See `LockedCommand`."""
        terms = self._terms
        processes = family(self._init, terms.processes + 2)
        if len(processes) > terms.processes + 2:  # the sandbox has two of its own
            return EndCause.PROCESSES
        if memory_of(processes, terms.memory_bytes) > terms.memory_bytes or memory_is_scarce():
            return EndCause.MEMORY
        return None

    def ask(self) -> None:
        """See `LockedCommand`."""
        for process in family(self._init, self._terms.processes):
            if process != self._init:
                with suppress(OSError):
                    os.kill(process, signal.SIGTERM)

    def kill(self) -> None:
        """See `LockedCommand`: with the first process of the sandbox the kernel ends the others."""
        if self._process is None or self._process.poll() is not None:
            return
        if self._init:
            with suppress(OSError):
                os.kill(self._init, signal.SIGKILL)
        self._process.kill()

    @property
    def over(self) -> bool:
        """See `LockedCommand`."""
        return self._process is None or self._process.poll() is not None

    def close(self) -> EndCause:
        """See `LockedCommand`."""
        if self._process is not None:
            self._process.wait()
            os.close(self._go)
        return EndCause.EXITED if self.status is not None else EndCause.SANDBOX

    def complaint(self, printed: bytes) -> str:
        """See `LockedCommand`."""
        return printed.decode("utf-8", "replace").strip()


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


def link_of(place: str) -> str:
    """Where a link of the machine leads; empty if it is none."""
    with suppress(OSError):
        return os.readlink(place)  # noqa: PTH115 - text is wanted
    return ""
