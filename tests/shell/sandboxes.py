"""A command in the real sandbox, for tests; and whether there is one on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import which

import pytest

from agent_core.tools.sandbox.contained import environment
from agent_core.tools.sandbox.ends import CommandEnd
from agent_core.tools.sandbox.terms import MIB, SandboxKind, ShellTerms
from agent_core.tools.shell.record import COMMAND, OUTPUT, CommandRecord, encoded, end_of, put_whole
from agent_core.tools.shell.trial import _BOOT, why_not

SMALL = ShellTerms(seconds=20, memory_bytes=256 * MIB, processes=40, disk_bytes=32 * MIB, files=500, output_bytes=MIB)


KINDS = [*SandboxKind]


def _tried(terms: ShellTerms) -> str:
    """Beside a loop that may run here."""
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(lambda: asyncio.run(why_not(terms))).result()


@cache
def no_sandbox(kind: SandboxKind = SandboxKind.BUBBLEWRAP) -> str:
    """Why there is no such sandbox here."""
    terms = replace(SMALL, kind=kind)
    why = _tried(terms)
    if why and kind is SandboxKind.PODMAN and which("runc") and "CONTAINERS_CONF" not in os.environ:
        # with control groups of both kinds, as in some virtual machines, its usual runtime does not work, and another one does
        configuration = Path(tempfile.mkdtemp(prefix="outspoken-podman-")) / "containers.conf"
        configuration.write_text('[engine]\nruntime = "runc"\n')
        os.environ["CONTAINERS_CONF"] = str(configuration)
        why = _tried(terms)
    return why


def needs_sandbox(kind: SandboxKind = SandboxKind.BUBBLEWRAP) -> ShellTerms:
    """Skip, in words, where none works; small limits."""
    if why := no_sandbox(kind):
        pytest.skip(why)
    return replace(SMALL, kind=kind)


def put_down(place: Path, *argv: str, terms: ShellTerms = SMALL, workspace: Path | None = None) -> Path:
    """The folder of a command that was not begun."""
    folder, workspace = place / "command", workspace or place / "workspace"
    folder.mkdir(parents=True)
    workspace.mkdir(parents=True, exist_ok=True)
    put_whole(folder, COMMAND, encoded(CommandRecord("c1", "t1", "t1:1", str(workspace), argv[-1], argv, terms, 0)))
    return folder


def watcher(folder: Path, gateway: int | None = None) -> subprocess.Popen[bytes]:
    """The process that watches over it, begun."""
    told = (str(os.getpid() if gateway is None else gateway), str(folder), "\n".join(sys.path))
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", _BOOT, *told], env=environment(), start_new_session=True)


def ran(place: Path, script: str, terms: ShellTerms = SMALL, workspace: Path | None = None) -> tuple[CommandEnd, str]:
    """How a script ended, and what it printed."""
    folder = put_down(place, "/bin/sh", "-c", script, terms=terms, workspace=workspace)
    with watcher(folder) as process:
        process.wait(60)
    end, output = end_of(folder), folder / OUTPUT
    assert end is not None
    return end, output.read_text("utf-8", "replace") if output.exists() else ""
