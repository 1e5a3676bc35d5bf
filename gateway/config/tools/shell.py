"""The section ``[shell]``: commands that the agent runs in a sandbox."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, assert_never

from pydantic import Field, field_validator

from adapters.contract.settings import Section, Texts, Unit, complaint

if TYPE_CHECKING:
    from agent_core.tools.sandbox.terms import SandboxKind, ShellTerms

MIB = 1024 * 1024
COMMANDS = "commands"
"""The folder in the state directory in which commands are written down."""
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
SHELL_TOOLS = ("run_command", "read_output", "stop_command")


class ShellSandbox(StrEnum):
    """What commands are locked up with."""

    OFF = "off"
    BUBBLEWRAP = "bubblewrap"
    PODMAN = "podman"
    DOCKER = "docker"
    ANY = "any"


class Shell(Section):
    """Commands that the agent runs in a sandbox, each with these limits; see docs/shell.md."""

    sandbox: ShellSandbox = ShellSandbox.OFF
    """What commands are locked up with; any: the first of bubblewrap, podman and docker that works here; off: the agent runs none. Where
    it does not work here, there are none either, and log, status and doctor say why: no command ever runs outside of a sandbox."""
    image: str = Field(default="", max_length=300, examples=["docker.io/library/python:3.12"])
    """The image that commands run in, with podman or docker; it has to be there, none is fetched. Empty: the programs of this machine."""
    hosts: Texts = Field(default=(), examples=[["pypi.org", "files.pythonhosted.org"]])
    """Hosts that commands may call by HTTP and HTTPS: names, *.example.org for all below, either with :PORT. Empty: no network."""
    read: Texts = Field(default=(), examples=[["/opt/science"]])
    """Further folders of this machine that commands may read, as whole paths; programs in their bin are found."""
    wait_seconds: int = Field(default=20, ge=0, le=300)
    """Seconds that a call waits for its command; then the command goes on in the background, and its end is told."""
    seconds: int = Field(default=3600, ge=1, le=7 * 24 * 3600)
    """Seconds that a command may take, and of processor time each of its processes."""
    memory_mib: int = Field(default=2048, ge=64, le=1_000_000)
    """MiB of memory that a command may take; a quarter of it for temporary files."""
    processes: Annotated[int, Unit("processes")] = Field(default=256, ge=8, le=100_000)
    """Processes and threads that a command may have at once."""
    cpus: Annotated[int, Unit("processors")] = Field(default=2, ge=1, le=1024)
    """Processors that a command may use at once."""
    disk_mib: int = Field(default=1024, ge=1, le=1_000_000)
    """MiB by which a command may let its folder grow; less where [quota] leaves less."""
    output_mib: int = Field(default=16, ge=1, le=1024)
    """MiB that a command may print."""
    at_once: Annotated[int, Unit("commands")] = Field(default=4, ge=1, le=32)
    """Commands that may run at once in one conversation."""

    @field_validator("hosts")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from agent_core.tools.sandbox.hosts import RULE

        if any(not RULE.fullmatch(one.lower()) for one in value):
            fix = "Write names such as example.org, *.example.org or example.org:8443, without https:// and without a path."
            raise complaint("hosts", "something in it is no name of a host", fix)
        return value

    @field_validator("image")
    @classmethod
    def _name(cls, value: str) -> str:
        if value and not IMAGE.fullmatch(value):
            raise complaint("image", "it is no name of an image", "Write a name such as docker.io/library/python:3.12.")
        return value

    @field_validator("read")
    @classmethod
    def _whole(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if (
                not one.startswith("/")
                or ".." in one.split("/")
                or one.strip("/") in {"", "proc", "dev", "sys", "tmp", "workspace"}
            ):
                raise complaint("read", "something in it is no whole path of a folder", "Write whole paths such as /opt/science.")  # fmt: skip
        return value

    @property
    def on(self) -> bool:
        """The operator wants commands to be run."""
        return self.sandbox is not ShellSandbox.OFF

    def kinds(self) -> tuple[SandboxKind, ...]:
        """The sandboxes that are wanted, the best first."""
        from agent_core.tools.sandbox.terms import ENGINES, SandboxKind

        match self.sandbox:
            case ShellSandbox.OFF:
                return ()
            case ShellSandbox.ANY:
                return ENGINES if self.image else (SandboxKind.BUBBLEWRAP, *ENGINES)
            case ShellSandbox.BUBBLEWRAP | ShellSandbox.PODMAN | ShellSandbox.DOCKER:
                return (SandboxKind(self.sandbox.value),)
            case _:
                assert_never(self.sandbox)

    def terms(self) -> ShellTerms:
        """The limits as the tools take them; of the sandboxes that are wanted, with the first."""
        from agent_core.tools.sandbox.terms import ShellTerms

        return ShellTerms(
            seconds=self.seconds, memory_bytes=self.memory_mib * MIB, processes=self.processes, disk_bytes=self.disk_mib * MIB,
            output_bytes=self.output_mib * MIB, cpus=self.cpus, hosts=self.hosts, read=self.read, image=self.image,
        )  # fmt: skip
