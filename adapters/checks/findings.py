"""What a look at something has found, in words for a person: what is wrong, what to do, where to click. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum

from agent_core.records import dataclass


class Severity(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Good to know; nothing has to be done."""
    WARNING = "warning"
    """It works, and something may go wrong."""
    PROBLEM = "problem"
    """It does not work."""
    CONFIGURATION = "configuration"
    """It does not start before the configuration has been changed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    check: str
    """Its stable name, ``area.what``."""
    level: Severity
    what: str
    """A sentence: what is so."""
    fix: str = ""
    """A sentence or two: what to do. Never empty from WARNING on."""
    link: str = ""
    """Where to click."""

    def __post_init__(self) -> None:
        assert self.fix or self.level in (Severity.OK, Severity.NOTE), self


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look brought."""

    findings: tuple[Finding, ...]
    skew_seconds: float | None = None
    """How far the other side's clock is ahead of this machine's; None if it did not tell the time."""


@dataclass(frozen=True, slots=True)
class Check:
    """One look that `outspoken doctor` takes."""

    name: str
    """Under which it is told that the look itself failed."""
    limit_seconds: float
    look: Callable[[], Awaitable[Seen]]
    clock: str = ""
    """Whose time it brings along; empty if nobody's."""


LOCAL_SECONDS = 10.0
"""For a look at this machine."""
REMOTE_SECONDS = 30.0
"""For a look at somebody else's."""


def ok(check: str, what: str) -> Finding:
    """All is well."""
    return Finding(check, Severity.OK, what)


def note(check: str, what: str, fix: str = "", link: str = "") -> Finding:
    """Good to know."""
    return Finding(check, Severity.NOTE, what, fix, link)


def warning(check: str, what: str, fix: str, link: str = "") -> Finding:
    """Something may go wrong."""
    return Finding(check, Severity.WARNING, what, fix, link)


def problem(check: str, what: str, fix: str, link: str = "") -> Finding:
    """Something does not work."""
    return Finding(check, Severity.PROBLEM, what, fix, link)


def worst(findings: Iterable[Finding]) -> Severity:
    """The gravest level among them; OK if there are none."""
    order = list(Severity)
    return max((one.level for one in findings), key=order.index, default=Severity.OK)
