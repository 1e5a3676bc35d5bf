"""Whether commands can be locked up on this machine: tried, not guessed."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from pathlib import Path
from shutil import which

from agent_core.patience import Limit
from agent_core.tools.shell.bubblewrap import PROGRAM
from agent_core.tools.shell.output import cleaned
from agent_core.tools.shell.record import (
    COMMAND,
    LOCK,
    OUTPUT,
    CommandEnd,
    CommandRecord,
    EndCause,
    encoded,
    end_of,
    put_whole,
)
from agent_core.tools.shell.seccomp import ARCHITECTURES
from agent_core.tools.shell.terms import ShellTerms

TRIAL_SECONDS = 20.0
TRIAL = (
    "set -e; test ! -e /proc/1/root/home; test -w .; test ! -w /usr; "
    "if (: > /proc/sys/kernel/core_pattern) 2>/dev/null; then echo the kernel can be configured; exit 1; fi; "
    "test \"$(cat /proc/net/dev | grep -c :)\" = 1; grep -q 'Seccomp:.*2' /proc/self/status; grep -q 'CapEff:.*0000000000000000' /proc/self/status"
)
"""What has to be true inside: few files, nothing of the system can be changed, no network but its own, the filter, no rights."""
_BOOT = "import sys; sys.path[:] = sys.argv.pop().splitlines(); from agent_core.tools.shell.watcher import main; main()"


_BEGUN: set[asyncio.subprocess.Process] = set()
"""Those that may go on: they outlast the gateway that began them, and nothing is to be said of an object that goes before its process."""


async def watching(folder: Path) -> asyncio.subprocess.Process:
    """Begin the process that watches over the command of a folder. It is given nothing but what it needs to find programs. Raises `OSError`."""
    _BEGUN.difference_update([one for one in _BEGUN if one.returncode is not None])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-I", "-S", "-X", "utf8", "-c", _BOOT, str(os.getpid()), str(folder), "\n".join(sys.path)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath)},
        cwd="/",
        start_new_session=True,
    )
    _BEGUN.add(process)
    return process


async def why_not(terms: ShellTerms) -> str:
    """Why no command can be locked up here, as a sentence that ends with what to do; empty if one can."""
    if not sys.platform.startswith("linux"):
        return "Commands need Linux."
    if platform.machine() not in ARCHITECTURES:
        return f"Commands need one of the processors whose system calls are known here ({', '.join(ARCHITECTURES)}), and this is {platform.machine()}."
    if which(PROGRAM) is None:
        return (
            "bubblewrap is not installed. Install it (Debian: apt install bubblewrap; Fedora: dnf install bubblewrap)."
        )
    with tempfile.TemporaryDirectory(prefix="outspoken-shell-", ignore_cleanup_errors=True) as place:
        end, said = await _ended(await asyncio.to_thread(_put_down, Path(place), terms))
    if end.cause is EndCause.EXITED and end.status == 0:
        return ""
    found = (end.words or said).strip().removeprefix("bwrap: ")[:300] or f"a trial ended with {end.status}"
    return (
        f"A trial of the sandbox did not succeed: {found}. bubblewrap needs user namespaces and a /proc of its own: in a container these have to be "
        "allowed, on a machine look at kernel.unprivileged_userns_clone, user.max_user_namespaces and AppArmor."
    )


def _put_down(place: Path, terms: ShellTerms) -> Path:
    folder, workspace = place / "command", place / "workspace"
    folder.mkdir()
    workspace.mkdir()
    record = CommandRecord("trial", "", "", str(workspace), "trial", ("/bin/sh", "-c", TRIAL), terms, 0)
    put_whole(folder, COMMAND, encoded(record))
    return folder


async def _ended(folder: Path) -> tuple[CommandEnd, str]:
    try:
        process = await watching(folder)
    except OSError as error:
        return CommandEnd(EndCause.SANDBOX, words=str(error)), ""
    try:
        async with Limit(TRIAL_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        return CommandEnd(EndCause.SANDBOX, words=f"it did not end within {TRIAL_SECONDS:g} s"), ""
    end = end_of(folder) or CommandEnd(
        EndCause.SANDBOX, words="it did not begin" if not (folder / LOCK).exists() else ""
    )
    output = folder / OUTPUT
    return end, cleaned(output.read_bytes()[-2000:]) if output.exists() else ""
