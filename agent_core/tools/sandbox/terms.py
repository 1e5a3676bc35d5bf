"""What a command may use, and how that is written down for the process that watches over it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from agent_core.jsonvalue import Json
from agent_core.records import dataclass

MIB = 1024 * 1024
INSIDE = "/workspace"
"""Where a command finds the conversation's folder."""
SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
PROXY_PORT = 3128


class SandboxKind(StrEnum):
    """What a command is locked up with; the container engines by the names of their programs."""

    BUBBLEWRAP = "bubblewrap"
    PODMAN = "podman"
    DOCKER = "docker"


ENGINES = (SandboxKind.PODMAN, SandboxKind.DOCKER)


@dataclass(frozen=True, slots=True)
class ShellTerms:
    """The limits of one command, and what it is locked up with."""

    seconds: float = 3600.0
    """That it may take, and of processor time for each of its processes."""
    memory_bytes: int = 2048 * MIB
    processes: int = 256
    disk_bytes: int = 1024 * MIB
    """That its folder may grow by, and the longest file that it may write."""
    files: int = 20_000
    """By so many files its folder may grow."""
    output_bytes: int = 16 * MIB
    cpus: int = 2
    hosts: tuple[str, ...] = ()
    """That it may call; none: it has no network."""
    read: tuple[str, ...] = ()
    """Folders of the machine that it may read, beside the system's."""
    kind: SandboxKind = SandboxKind.BUBBLEWRAP
    image: str = ""
    """Of a container: what its programs are; empty: the machine's."""


def spelled(terms: ShellTerms) -> dict[str, Json]:
    """As it is stored with a command."""
    return {
        "seconds": terms.seconds,
        "memory_bytes": terms.memory_bytes,
        "processes": terms.processes,
        "disk_bytes": terms.disk_bytes,
        "files": terms.files,
        "output_bytes": terms.output_bytes,
        "cpus": terms.cpus,
        "hosts": [*terms.hosts],
        "read": [*terms.read],
        "kind": terms.kind.value,
        "image": terms.image,
    }


def read_terms(told: Mapping[str, Json]) -> ShellTerms:
    """What `spelled` wrote. Raises `ValueError`."""

    def number(name: str) -> int:
        value = told.get(name)
        if not isinstance(value, int | float):
            raise ValueError(f"{name} is no number")  # noqa: TRY004 - as for all that cannot be read
        return int(value)

    def words(name: str) -> tuple[str, ...]:
        value = told.get(name)
        return tuple(map(str, value)) if isinstance(value, list) else ()

    return ShellTerms(
        seconds=number("seconds"),
        memory_bytes=number("memory_bytes"),
        processes=number("processes"),
        disk_bytes=number("disk_bytes"),
        files=number("files"),
        output_bytes=number("output_bytes"),
        cpus=number("cpus"),
        hosts=words("hosts"),
        read=words("read"),
        # What older gateways wrote says nothing
        kind=SandboxKind(str(told.get("kind") or SandboxKind.BUBBLEWRAP.value)),
        image=str(told.get("image") or ""),
    )


def surroundings(terms: ShellTerms) -> dict[str, str]:
    """The whole environment of a command: nothing of the gateway's."""
    path = ":".join((*(f"{one}/bin" for one in terms.read), *SEARCHED))
    known = {"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}  # noqa: S108 - of the sandbox
    if terms.hosts:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        known |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
    return known
