"""How a command is locked up by a container engine: its arguments, the image that holds nothing but places, and what runs first inside. Pure.

The promises are those of `bubblewrap`: a root that is read-only, the machine's programs or those of an image, no network, no rights, the same system calls
refused, memory in place of a disk for temporary files. What the engine has to hold (memory, processes) it is tried for, see `trial`.

The first process of a container is ours: it gives the command a clean environment and nothing to read, tells its exit status, and ends everything when nobody
outside holds its input any more, so that a container does not outlive the process that watches over it.

Known to be weak: an engine keeps no list of hosts that may be called, so with such a list there is no container. An engine's daemon that is asked to begin
a container may be slow to end it.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b

from agent_core.records import dataclass
from agent_core.tools.sandbox.bubblewrap import OF_ETC, OUR_FILES, SHARED_MEMORY, SYSTEM, temporary_bytes
from agent_core.tools.sandbox.terms import INSIDE, SandboxKind, ShellTerms, surroundings

BEGAN, ENDED, ENGINE_NICE = "outspoken-began", "outspoken-ended", 10
FIRST = f"""\
exec 3<&0 </dev/null
ulimit -d $1
shift
if command -v nice >/dev/null; then set -- nice -n {ENGINE_NICE} -- "$@"; fi
echo {BEGAN} >&2
"$@" 2>&1 3<&- &
child=$!
(while read -r asked; do kill -TERM -1; done <&3; kill -KILL -1) >/dev/null 2>&1 &
exec 3<&-
trap : TERM
wait $child
status=$?
while kill -0 $child 2>/dev/null; do wait $child; status=$?; done
echo {ENDED} $status >&2
"""
"""The first process of a container, as a script of sh. A line on its input asks all to end; when its input is closed, all are ended.

The limit of memory for each process is set here: the runtimes of engines, which set limits before they are done, need more than a small one."""
PLACES = ("dev", "etc", "proc", "sys", "tmp", "usr", INSIDE.strip("/"))
UNFIT = frozenset(',"\n\r')
"""What a path cannot hold that an engine is to show."""
_LIMITED = ("core", "cpu", "fsize", "nofile", "nproc", "memlock", "msgqueue", "rtprio", "sigpending")


class UnfitPath(Exception):
    """A path cannot be named to an engine."""


@dataclass(frozen=True, slots=True)
class ContainerUser:
    """Who a command is. `kept`: the same person inside of the engine's own users as outside."""

    number: int
    group: int
    kept: bool = False
    alone: bool = False
    """Nobody else on the machine has this number, so their processes may be counted by it."""


def ulimits(terms: ShellTerms, user: ContainerUser, hard: Mapping[str, int]) -> list[str]:
    """The limits of each process. `hard`: what this process may have at most, -1 for no limit; an engine without rights cannot give more."""
    wanted = {
        "core": 0, "cpu": max(1, int(terms.seconds)), "fsize": terms.disk_bytes, "nofile": 1024,
        "nproc": terms.processes if user.alone else hard.get("nproc", -1), "memlock": 0, "msgqueue": 0, "rtprio": 0, "sigpending": 1024,
    }  # fmt: skip
    told: list[str] = []
    for name in _LIMITED:
        most = hard.get(name, -1)
        value = wanted[name] if most < 0 else min(wanted[name], most) if wanted[name] >= 0 else most
        if value >= 0:
            told += ["--ulimit", f"{name}={value}:{value}"]
    return told


def arguments(
    terms: ShellTerms,
    workspace: str,
    argv: Sequence[str],
    *,
    name: str,
    user: ContainerUser,
    seccomp: str,
    hard: Mapping[str, int],
    there: Callable[[str], bool],
    link: Callable[[str], str],
) -> list[str]:
    """What the engine is told, beside its own name. `seccomp` is the path of the filter. Raises `UnfitPath`."""
    podman = terms.kind is SandboxKind.PODMAN
    told = [
        *("run", "--interactive", "--name", name, "--pull", "never", "--log-driver", "none", "--network", "none", "--hostname", "sandbox"),
        *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"),
        *("--security-opt", f"seccomp={seccomp}", "--ipc", "private", "--user", f"{user.number}:{user.group}", "--entrypoint", ""),
        *("--memory", str(terms.memory_bytes), "--memory-swap", str(terms.memory_bytes), "--pids-limit", str(terms.processes + 4)),
        *("--tmpfs", f"/tmp:rw,nosuid,nodev,mode=1777,size={temporary_bytes(terms)}", "--shm-size", str(SHARED_MEMORY)),  # noqa: S108 - of the sandbox
        *("--oom-score-adj", "900", *ulimits(terms, user, hard)),
    ]  # fmt: skip
    # Its processors are those of whoever begins it: where it may not count them, it may still be held to them
    if podman:
        told += [
            "--http-proxy=false",
            "--read-only-tmpfs=false",
            "--no-hosts",
            "--passwd=false",
            "--security-opt",
            "mask=/sys",
        ]
        told += ["--userns", "keep-id"] if user.kept else []
    else:
        told += ["--tmpfs", "/sys:ro,size=4k,mode=0555", "--cpus", str(terms.cpus), "--cpu-shares", "256"]
    told += [part for place in _shown(terms, there, link) for part in ("--mount", mount(place, place))]
    told += ["--mount", mount(workspace, INSIDE, write=True), "--workdir", INSIDE, image_of(terms, link)]
    told += [
        "env",
        "-i",
        *(f"{one}={value}" for one, value in surroundings(terms).items()),
        "sh",
        "-c",
        FIRST,
        "sh",
        str(terms.memory_bytes // 1024),
    ]
    return [*told, *argv]


def _shown(terms: ShellTerms, there: Callable[[str], bool], link: Callable[[str], str]) -> list[str]:
    machine = [] if terms.image else [place for place in (*SYSTEM, *OF_ETC) if place in OF_ETC or not link(place)]
    return [place for place in (*machine, *terms.read) if there(place)]


def mount(source: str, target: str, *, write: bool = False) -> str:
    """How an engine is told to show a place. Raises `UnfitPath`."""
    if UNFIT & {*source, *target}:
        raise UnfitPath(
            f"{source!r} cannot be shown to a container, because of a comma, a quotation mark or an end of line in it"
        )
    return f"type=bind,source={source},target={target}" + ("" if write else ",readonly")


def image_of(terms: ShellTerms, link: Callable[[str], str]) -> str:
    """The image that a command runs in; without one of the operator's, one with nothing but places for the machine's own programs."""
    return terms.image or f"localhost/outspoken-sandbox:{blake2b(skeleton(link), digest_size=6).hexdigest()}"


def skeleton(link: Callable[[str], str]) -> bytes:
    """An image's files: folders to put the machine's programs into, and the few files that take the place of the system's."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for place in PLACES:
            archive.addfile(_entry(place, tarfile.DIRTYPE, 0o755))
        for place in SYSTEM:
            if to := link(place):
                archive.addfile(_entry(place.strip("/"), tarfile.SYMTYPE, 0o777, to))
        for place, text in OUR_FILES.items():
            entry = _entry(place.strip("/"), tarfile.REGTYPE, 0o444)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def _entry(name: str, kind: bytes, mode: int, to: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, mode, to
    return entry
