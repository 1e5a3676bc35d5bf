"""Which sandbox commands can be locked up in on this machine: tried, not guessed, in the order in which they are wanted."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which

from agent_core.patience import Limit
from agent_core.records import dataclass
from agent_core.tools.sandbox.bubblewrap import PROGRAM
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.seccomp import ARCHITECTURES
from agent_core.tools.sandbox.terms import ENGINES, MIB, SandboxKind, ShellTerms
from agent_core.tools.shell.output import cleaned
from agent_core.tools.shell.record import (
    COMMAND,
    LOCK,
    OUTPUT,
    CommandRecord,
    encoded,
    end_of,
    put_whole,
)

TRIAL_SECONDS = 20.0
ENGINE_TRIAL_SECONDS = 90.0
"""An engine that was not used for long has to wake up."""
SEEN, CHECKED = "seen-from-outside", "all of this holds"
_EVERYWHERE = (
    'set -e; test -w .; test ! -w /usr; test "$(id -u)" != 0; '
    "if (: > /proc/sys/kernel/core_pattern) 2>/dev/null; then echo the kernel can be configured; exit 1; fi; "
    "test \"$(cat /proc/net/dev | grep -c :)\" = 1; grep -q 'Seccomp:.*2' /proc/self/status; grep -q 'CapEff:.*0000000000000000' /proc/self/status; "
)
TRIAL = f"test ! -e /proc/1/root/home || exit 1; {_EVERYWHERE}"
"""What has to be true inside: few files, nothing of the system can be changed, no network but its own, the filter, no rights."""
_SMALL_MEMORY, _SMALL_PROCESSES, _MORE_PROCESSES = 64 * MIB, 32, 96
ENGINE_TRIAL = (
    f"{_EVERYWHERE} echo yes > {SEEN}; echo {CHECKED}; set +e; "
    'held=no; all=; for i in 1 2 3 4; do (head -c 40000000 /dev/zero; sleep 1) | tail >/dev/null & all="$all $!"; done; '
    "for one in $all; do wait $one || held=yes; done 2>/dev/null; [ $held = yes ] || { echo no limit of memory is held; exit 1; }; "
    f"(i=0; while [ $i -lt {_MORE_PROCESSES} ]; do sleep 3 & i=$((i+1)); done) 2>/dev/null & sleep 0.7; set -- /proc/[0-9]*; "
    f"[ $# -le {_SMALL_PROCESSES + 8} ] || {{ echo no limit of processes is held; exit 1; }}; exit 0"
)
"""The same in a container, and that the engine holds what nobody else does there: memory, by four that take less than the limit each; processes."""
_BOOT = "import sys; sys.path[:] = sys.argv.pop().splitlines(); from agent_core.tools.shell.watcher import main; main()"


_BEGUN: set[asyncio.subprocess.Process] = set()
"""Those that may go on: they outlast the gateway that began them, and nothing is to be said of an object that goes before its process."""


@dataclass(frozen=True, slots=True)
class TriedSandboxes:
    """Which sandbox works, and why those that are wanted before it do not."""

    kind: SandboxKind | None
    why_not: tuple[tuple[SandboxKind, str], ...] = ()

    @property
    def words(self) -> str:
        """Why those do not work that were tried in vain; each sentence ends with what to do."""
        return " ".join(why if len(self.why_not) == 1 else f"{kind.value}: {why}" for kind, why in self.why_not)


async def watching(folder: Path, kind: SandboxKind) -> asyncio.subprocess.Process:
    """Begin the process that watches over the command of a folder. It is given nothing but what it needs to find programs, and an engine. Raises `OSError`."""
    _BEGUN.difference_update([one for one in _BEGUN if one.returncode is not None])
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    if kind in ENGINES:
        from agent_core.tools.sandbox import contained

        environment |= contained.environment()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", "-c", _BOOT, str(os.getpid()), str(folder), "\n".join(sys.path)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
    )
    _BEGUN.add(process)
    return process


async def first_that_works(
    terms: ShellTerms, wanted: Sequence[SandboxKind], near: Path | None = None
) -> TriedSandboxes:
    """The first of them in which a command can be locked up here. `near`: a folder in which an engine is known to find what it is to show."""
    found: list[tuple[SandboxKind, str]] = []
    for kind in wanted:
        why = await why_not(replace(terms, kind=kind), near)
        if not why:
            return TriedSandboxes(kind, tuple(found))
        found.append((kind, why))
    return TriedSandboxes(None, tuple(found))


async def why_not(terms: ShellTerms, near: Path | None = None) -> str:
    """Why no command can be locked up here in this sandbox, as sentences that end with what to do; empty if one can."""
    if not sys.platform.startswith("linux"):
        return "Commands need Linux."
    if platform.machine() not in ARCHITECTURES:
        return f"Commands need one of the processors whose system calls are known here ({', '.join(ARCHITECTURES)}), and this is {platform.machine()}."
    if terms.kind in ENGINES:
        return await _engine_why_not(terms, near)
    if terms.image:
        return 'An image is for a container engine. Take image out of [shell], or sandbox = "podman" or "docker".'
    if which(PROGRAM) is None:
        return (
            "bubblewrap is not installed. Install it (Debian: apt install bubblewrap; Fedora: dnf install bubblewrap)."
        )
    end, said, _ = await _tried(terms, TRIAL, TRIAL_SECONDS, None)
    if end.cause is EndCause.EXITED and end.status == 0:
        return ""
    found = (end.words or said).strip().removeprefix("bwrap: ")[:300] or f"a trial ended with {end.status}"
    return (
        f"A trial of the sandbox did not succeed: {found}. bubblewrap needs user namespaces and a /proc of its own: in a container these have to be "
        "allowed, on a machine look at kernel.unprivileged_userns_clone, user.max_user_namespaces and AppArmor."
    )


async def _engine_why_not(terms: ShellTerms, near: Path | None) -> str:
    from agent_core.tools.sandbox.contained import image_missing

    engine = terms.kind.value
    if which(engine) is None:
        return f"{engine} is not installed. Install it (Debian: apt install {'podman' if engine == 'podman' else 'docker.io'})."
    if terms.hosts:
        return (
            f'{engine} keeps no list of hosts that may be called. Take hosts out of [shell], or sandbox = "bubblewrap".'
        )
    try:
        if why := await asyncio.to_thread(image_missing, terms):
            return why
    except OSError as error:
        return f"{engine} could not be begun: {error.strerror}. Look at {engine} info."
    small = replace(terms, memory_bytes=_SMALL_MEMORY, processes=_SMALL_PROCESSES)
    end, said, seen = await _tried(small, ENGINE_TRIAL, ENGINE_TRIAL_SECONDS, near)
    held = end.cause is EndCause.MEMORY or (end.cause is EndCause.EXITED and end.status == 0)
    if held and CHECKED in said and seen:
        return ""
    if held and not seen:
        said = "what it wrote did not arrive in the folder of this machine, so the engine runs somewhere else"
    found = (end.words or said).strip()[-300:] or f"a trial ended with {end.status}"
    return (
        f"A trial of a container did not succeed: {found}. {engine} needs limits of memory and processes (control groups of its own), and an engine on "
        f"this machine: look at {engine} info."
    )


async def _tried(terms: ShellTerms, script: str, seconds: float, near: Path | None) -> tuple[CommandEnd, str, bool]:
    """How a script ended, what it printed, and whether it left `SEEN` where we see it."""
    with tempfile.TemporaryDirectory(prefix="trial-", dir=near, ignore_cleanup_errors=True) as place:
        folder = await asyncio.to_thread(_put_down, Path(place), terms, script)
        end, said = await _ended(folder, terms.kind, seconds)
        return end, said, (Path(place) / "workspace" / SEEN).exists()


def _put_down(place: Path, terms: ShellTerms, script: str) -> Path:
    folder, workspace = place / "trial", place / "workspace"
    folder.mkdir()
    workspace.mkdir()
    record = CommandRecord("trial", "", "", str(workspace), "trial", ("sh", "-c", script), terms, 0)
    put_whole(folder, COMMAND, encoded(record))
    return folder


async def _ended(folder: Path, kind: SandboxKind, seconds: float) -> tuple[CommandEnd, str]:
    try:
        process = await watching(folder, kind)
    except OSError as error:
        return CommandEnd(EndCause.SANDBOX, words=str(error)), ""
    try:
        async with Limit(seconds):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        return CommandEnd(EndCause.SANDBOX, words=f"it did not end within {seconds:g} s"), ""
    end = end_of(folder) or CommandEnd(
        EndCause.SANDBOX, words="it did not begin" if not (folder / LOCK).exists() else ""
    )
    output = folder / OUTPUT
    return end, cleaned(output.read_bytes()[-2000:]) if output.exists() else ""
