"""Ways out of the sandbox, each tried in the real one: none leads out, and nothing of a canary is seen inside or sent away."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_core.tools.sandbox.ends import EndCause
from agent_core.tools.sandbox.terms import ENGINES, MIB, SandboxKind
from tests.shell.escapes import OUT, PRELUDE, PYTHON, SHELL
from tests.shell.sandboxes import KINDS, SMALL, needs_sandbox, ran

CANARY = "CANARY-5f0c1e"
TRIED = len(SHELL) + len(PYTHON) + 12
"""With the bombs below."""


@dataclass
class Outside:
    """A machine with something to lose."""

    place: Path
    name: str
    doors: list[socket.socket]
    victim: subprocess.Popen[bytes]

    @property
    def port(self) -> int:
        return self.doors[0].getsockname()[1]

    def filled(self, text: str) -> str:
        """An attempt with what it needs to know."""
        for name, value in (("place", self.place), ("port", self.port), ("pid", self.victim.pid), ("name", self.name)):
            text = text.replace(f"{{{name}}}", str(value))
        return text.replace("OUT", OUT).replace("{{", "{").replace("}}", "}")


@contextmanager
def outside(place: Path) -> Generator[Outside]:
    """Secrets in files and environments, open doors, a process that could be ended."""
    (place / "other").mkdir(parents=True)
    for name in ("secret.txt", "outspoken.db", "outspoken.toml", "other/theirs.txt"):
        (place / name).write_text(CANARY)
    name = f"outspoken-test-{os.getpid()}"
    doors = [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)]
    doors[1].bind(f"\0{name}")
    doors[2].bind(str(place / "door"))
    for door in doors:
        door.listen()
        door.setblocking(False)
    victim = subprocess.Popen(["sleep", "600"], env={"OUTSPOKEN_TOKEN": CANARY, "PATH": os.environ["PATH"]})
    try:
        yield Outside(place, name, doors, victim)
        assert victim.poll() is None, "a process outside was ended"
        for door in doors:
            with pytest.raises(BlockingIOError):
                door.accept()
        assert sorted(one.name for one in place.rglob("*")) == [
            "door", "other", "outspoken.db", "outspoken.toml", "secret.txt", "theirs.txt",
        ]  # fmt: skip
        for one in place.rglob("*.txt"):
            assert one.read_text() == CANARY
    finally:
        victim.kill()
        victim.wait()
        for door in doors:
            door.close()


def sections(output: str) -> dict[str, str]:
    """What each attempt printed."""
    found: dict[str, str] = {}
    for part in output.split("\n=== ")[1:]:
        name, _, rest = part.partition("\n")
        found[name] = rest
    return found


def escaped(output: str) -> list[str]:
    """The attempts that led out, with what they printed."""
    return [f"{name}: {said[:300]}" for name, said in sections(output).items() if OUT in said or CANARY in said]


@pytest.mark.parametrize("kind", KINDS)
def test_no_attempt_of_a_shell_leads_out(kind: SandboxKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = needs_sandbox(kind)
    monkeypatch.setenv("OUTSPOKEN_API_KEY", CANARY)
    with outside(tmp_path / "machine") as machine:
        tries = {name: machine.filled(text) for name, text in SHELL.items()}
        workspace = tmp_path / "run" / "workspace"
        workspace.mkdir(parents=True)
        for number, text in enumerate(tries.values()):
            (workspace / f"{number}.sh").write_text(text)
        run = f'for i in $(seq 0 {len(tries) - 1}); do echo; echo "=== $i"; timeout 4 bash $i.sh 2>&1; done'
        end, output = ran(tmp_path / "run", run, replace(small, seconds=120), workspace)
    assert end.cause is EndCause.EXITED, (end, output[-500:])
    assert len(sections(output)) == len(tries), "an attempt did not run"
    found = [[*SHELL][int(one.partition(":")[0])] + one for one in escaped(output)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", KINDS)
def test_no_system_call_leads_out(kind: SandboxKind, tmp_path: Path) -> None:
    small = needs_sandbox(kind)
    if platform.machine() != "x86_64":
        pytest.skip("the numbers of the calls are those of x86_64")
    with outside(tmp_path / "machine") as machine:
        workspace = tmp_path / "run" / "workspace"
        workspace.mkdir(parents=True)
        (workspace / "prelude.py").write_text(PRELUDE.replace("OUT", OUT))
        body = ["from prelude import *", "import sys"]
        for name, text in PYTHON.items():
            body += [f"print({f'{chr(10)}=== {name}'!r}, flush=True)", "child = os.fork()", "if not child:", "  try:"]
            body += [f"    {part}" for part in machine.filled(text).split("\n")]
            body += [
                "  except BaseException as e: print(type(e).__name__)",
                "  sys.stdout.flush(); os._exit(0)",
                "os.waitpid(child, 0)",
            ]
        (workspace / "attempts.py").write_text("\n".join(body))
        end, output = ran(tmp_path / "run", "exec python3 attempts.py", small, workspace)
    assert end.cause is EndCause.EXITED, (end, output[-500:])
    assert len(sections(output)) == len(PYTHON), output
    assert escaped(output) == []


BOMBS = {
    "processes without end": ("i=0; while [ $i -lt 1000 ]; do sleep 20 & i=$((i+1)); done; wait", {EndCause.PROCESSES, EndCause.EXITED}),
    "processes of processes": ("b() { [ $1 -gt 6 ] || { b $(($1+1)) & b $(($1+1)) & sleep 1; }; }; b 0", {EndCause.PROCESSES, EndCause.EXITED}),
    "memory in one process": ("python3 -c 'x=[]\nwhile 1: x.append(bytearray(10**7))'; echo $?; sleep 0.2", {EndCause.EXITED, EndCause.MEMORY}),
    "memory in many": ("for i in 1 2 3 4 5 6; do python3 -c 'import time; x=bytearray(10**8); time.sleep(6)' & done; wait", {EndCause.MEMORY}),
    "shared memory": ("python3 -c 'import mmap,time; x=mmap.mmap(-1, 10**9); x.write(b\"x\"*10**9); time.sleep(30)'; sleep 1", {EndCause.MEMORY, EndCause.EXITED}),
    "files in memory": ("head -c 1G /dev/zero > /tmp/x; head -c 1G /dev/zero > /dev/shm/x; du -k /tmp /dev/shm | awk '{s+=$1} END {exit s>150000}'", {EndCause.EXITED}),
    "many small files": ("i=0; while :; do i=$((i+1)); : > f$i; done", {EndCause.DISK}),
    "a disk": ("i=0; while :; do i=$((i+1)); head -c 8M /dev/zero > f$i; done", {EndCause.DISK}),
    "a disk behind folders in folders": ("i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done; head -c 8M /dev/zero > f; sleep 10", {EndCause.DISK}),
    "a disk behind a closed folder": ("mkdir d; for i in 1 2 3 4 5 6; do head -c 8M /dev/zero > d/f$i; done; chmod 000 d; sleep 10", {EndCause.DISK}),
    "words without end": ("yes", {EndCause.OUTPUT}),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_its_sandbox(name: str, kind: SandboxKind, tmp_path: Path) -> None:
    small = needs_sandbox(kind)
    script, causes = BOMBS[name]
    end, output = ran(tmp_path, script, small)
    if kind in ENGINES and EndCause.MEMORY in causes:
        causes = {*causes, EndCause.EXITED}  # there the kernel ends one process of it, and the others go on
    assert end.cause in causes, (end, output[-300:])
    assert end.cause is not EndCause.EXITED or end.status is not None
    size = sum(one.stat().st_size for one in (tmp_path / "workspace").iterdir())
    assert size < 20 * SMALL.disk_bytes
    assert len(output) <= SMALL.output_bytes + MIB


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stays_behind_and_nobody_outside_is_ended(kind: SandboxKind, tmp_path: Path) -> None:
    small = needs_sandbox(kind)
    with outside(tmp_path / "machine"):
        ran(tmp_path / "all", "kill -KILL -1", small)
    ran(tmp_path, "(setsid sleep 47117 &); nohup sleep 47118 >/dev/null 2>&1 & sleep 0.1", small)
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert not {b"47117", b"47118"} & {*one.read_bytes().split(b"\0")}
        except OSError:
            continue


def test_there_are_at_least_eighty() -> None:
    assert TRIED >= 80


def test_a_command_that_closes_its_folder_closes_it_for_nobody_after_it(tmp_path: Path) -> None:
    needs_sandbox()
    workspace = tmp_path / "workspace"
    end, _ = ran(tmp_path / "1", "echo x > f; chmod 000 /workspace", workspace=workspace)
    assert (end.cause, end.status) == (EndCause.EXITED, 0)
    assert workspace.stat().st_mode & 0o700 == 0o700
    workspace.chmod(0)
    end, output = ran(tmp_path / "2", "cat f", workspace=workspace)
    assert (end.status, output) == (0, "x\n")
