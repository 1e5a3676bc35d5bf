"""A command in a container: begun by the engine, asked and made to end, and removed."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which

from agent_core.tools.sandbox.bubblewrapped import link_of
from agent_core.tools.sandbox.container import BEGAN, ENDED, ContainerUser, UnfitPath, arguments, image_of, skeleton
from agent_core.tools.sandbox.ends import EndCause
from agent_core.tools.sandbox.locked import NoSandbox
from agent_core.tools.sandbox.seccomp import filter_profile
from agent_core.tools.sandbox.somebody import given_to, user_of
from agent_core.tools.sandbox.terms import SandboxKind, ShellTerms
from agent_core.tools.sandbox.usage import memory_is_scarce

SECCOMP = "seccomp.json"
ENGINE_SECONDS = 30.0
"""An engine has so long to answer."""
SAID_BYTES = 8_000
GIVEN = (
    "PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF",
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG",
)  # fmt: skip
"""Of the environment, what engines need in order to find themselves. None of it reaches a command."""
_NUMBERS: Mapping[str, int] = {
    "core": resource.RLIMIT_CORE, "cpu": resource.RLIMIT_CPU, "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC, "memlock": resource.RLIMIT_MEMLOCK,
    "msgqueue": resource.RLIMIT_MSGQUEUE, "rtprio": resource.RLIMIT_RTPRIO, "sigpending": resource.RLIMIT_SIGPENDING,
}  # fmt: skip


def environment() -> dict[str, str]:
    """What an engine is given of ours."""
    return {name: os.environ[name] for name in GIVEN if name in os.environ}


def asked(kind: SandboxKind, *told: str, given: bytes | None = None) -> tuple[int, str]:
    """What an engine answers to a question or an order. Raises `OSError`."""
    program = which(kind.value)
    if program is None:
        return 127, f"{kind.value} is not installed"
    try:
        done = subprocess.run(  # noqa: S603 - the engine
            [program, *told], input=given, stdin=None if given is not None else subprocess.DEVNULL, capture_output=True, check=False,
            env=environment(), cwd="/", timeout=ENGINE_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"{kind.value} did not answer within {ENGINE_SECONDS:g} s"
    return done.returncode, (done.stdout + done.stderr)[-SAID_BYTES:].decode("utf-8", "replace").strip()


def image_missing(terms: ShellTerms) -> str:
    """See that the image is there, and make ours if it is not; why it is not there, in words. Raises `OSError`."""
    name = image_of(terms, link_of)
    status, said = asked(terms.kind, "image", "inspect", "--format", "{{.Id}}", name)
    if status == 0:
        return ""
    if terms.image:
        return f"The image {name} cannot be used: {said[-300:] or f'status {status}'}. Get it with {terms.kind.value} pull {name}."
    status, said = asked(terms.kind, "import", "-", name, given=skeleton(link_of))
    return "" if status == 0 else f"{terms.kind.value} could not make an image: {said[-300:] or f'status {status}'}."


def removed(kind: SandboxKind, name: str, *, keep: bool = False) -> None:
    """End a container, if it runs, and remove it, or `keep` what is known of it."""
    with suppress(OSError):
        asked(kind, "kill", name)
        if not keep:
            asked(kind, "rm", "--force", name)


class Contained:
    """Implements `LockedCommand`. `folder` is the command's own, outside; `name` tells its container from all others."""

    start_seconds = 60.0

    def __init__(self, folder: Path, name: str, workspace: str, argv: Sequence[str], terms: ShellTerms) -> None:
        self._folder, self._name, self._workspace, self._argv, self._terms = folder, name, workspace, argv, terms
        self._process: subprocess.Popen[bytes] | None = None
        self._line = self._said = b""
        self.ready = False
        self.status: int | None = None

    def _user(self) -> ContainerUser:
        if os.geteuid() == 0:
            number = user_of(self._workspace)
            given_to(self._workspace, number)
            return ContainerUser(number, number, alone=True)
        return ContainerUser(os.geteuid(), os.getegid(), kept=self._terms.kind is SandboxKind.PODMAN)

    def start(self, out: int) -> int:
        """See `LockedCommand`."""
        program = which(self._terms.kind.value)
        if program is None:
            raise NoSandbox(f"{self._terms.kind.value} is not installed")
        if self._terms.hosts:
            raise NoSandbox("a container engine keeps no list of hosts")
        profile = self._folder / SECCOMP
        profile.write_bytes(filter_profile())
        try:
            told = arguments(
                self._terms, self._workspace, self._argv, name=self._name, user=self._user(), seccomp=str(profile),
                hard={name: resource.getrlimit(number)[1] for name, number in _NUMBERS.items()},
                there=os.path.exists, link=link_of,
            )  # fmt: skip
        except UnfitPath as error:
            raise NoSandbox(str(error)) from None
        status, status_end = os.pipe()
        processors = os.sched_getaffinity(0)
        # Whom podman begins has those of whoever begins podman
        os.sched_setaffinity(0, sorted(processors)[-max(1, self._terms.cpus) :])
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what it runs is the point, and it runs in the sandbox
                [program, *told], stdin=subprocess.PIPE, stdout=out, stderr=status_end, env=environment(), cwd="/", start_new_session=True,
            )  # fmt: skip
        finally:
            os.sched_setaffinity(0, processors)
            os.close(status_end)
        return status

    def hear(self, chunk: bytes) -> None:
        """See `LockedCommand`. A command may write here as well: it can spoil nothing but what is said of itself."""
        *lines, self._line = (self._line + chunk).split(b"\n")
        self._line = self._line[-SAID_BYTES:]
        for line in lines:
            word, _, rest = line.strip().partition(b" ")
            if word == BEGAN.encode():
                self.ready = True
            elif word == ENDED.encode() and rest.isdigit() and len(rest) < 4:
                self.status = int(rest)
            elif len(self._said) < SAID_BYTES:
                self._said += line + b"\n"

    def go(self) -> None:
        """See `LockedCommand`: the engine holds the limits from the beginning."""

    def passed(self) -> EndCause | None:
        """See `LockedCommand`."""
        return EndCause.MEMORY if memory_is_scarce() else None

    def ask(self) -> None:
        """See `LockedCommand`."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write(b"end\n")
                self._process.stdin.flush()

    def kill(self) -> None:
        """See `LockedCommand`."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.kill()  # first: an engine may wait for somebody to take what is printed before it ends anything
        self._process.wait()
        removed(self._terms.kind, self._name, keep=True)

    @property
    def over(self) -> bool:
        """See `LockedCommand`."""
        return self._process is None or self._process.poll() is not None

    def close(self) -> EndCause:
        """See `LockedCommand`."""
        if self._process is None:
            return EndCause.SANDBOX
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.wait()
        memory = self._lacked_memory() if self.ready and self.status != 0 else False
        removed(self._terms.kind, self._name)
        if not self.ready:
            return EndCause.SANDBOX
        if memory:
            return EndCause.MEMORY
        return EndCause.UNKNOWN if self.status is None else EndCause.EXITED

    def _lacked_memory(self) -> bool:
        with suppress(OSError):
            return asked(self._terms.kind, "inspect", "--format", "{{.State.OOMKilled}}", self._name) == (0, "true")
        return False

    def complaint(self, printed: bytes) -> str:
        """See `LockedCommand`."""
        return (self._said + self._line or printed).decode("utf-8", "replace").strip()[-500:]
