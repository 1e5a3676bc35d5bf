"""The section of quotas; see `gateway.config.sections` for the laws."""

from __future__ import annotations

from pydantic import Field

from agent_core.limits.quotas import Kind, Limits
from gateway.config.types import Section

MIB = 1024 * 1024


def _mib(default: int, what: str) -> int:
    field: int = Field(default=default, ge=0, le=10**9, description=f"{what} MiB; 0 is no limit.")
    return field


def _count(default: int, what: str) -> int:
    field: int = Field(default=default, ge=0, le=10**9, description=f"{what} 0 is no limit.")
    return field


class Quota(Section):
    """How much may be kept: of each person (a group, or a user of the API, counts as one), and in all. What has no room is refused in words."""

    workspace_mib: int = _mib(512, "Files in the workspaces of one person.")
    workspace_files: int = _count(10_000, "Files and folders in the workspaces of one person.")
    memory_kib: int = Field(
        default=1024,
        ge=0,
        le=10**9,
        description="What is remembered for one person, with to-do lists. KiB; 0 is no limit.",
    )
    spool_mib: int = _mib(512, "Files on their way to one person.")
    incoming_mib: int = _mib(256, "Files and pictures that one person may send in a day (UTC).")
    sessions: int = _count(5_000, "Named conversations that one user of the API may begin in a day (UTC).")
    reminders: int = Field(default=50, ge=1, le=1_000, description="Reminders that may be set in one conversation.")
    whole_mib: int = _mib(
        16 * 1024,
        "Everything in the state directory. Text is answered all the same; files, and what is to be remembered, are refused from there on.",
    )

    def limits(self) -> Limits:
        """The limits as the core takes them."""
        each = {
            Kind.WORKSPACE: self.workspace_mib * MIB,
            Kind.FILES: self.workspace_files,
            Kind.MEMORY: self.memory_kib * 1024,
            Kind.SPOOL: self.spool_mib * MIB,
            Kind.INCOMING: self.incoming_mib * MIB,
            Kind.SESSIONS: self.sessions,
        }
        return Limits(each, self.whole_mib * MIB)
