"""What a kind of log line is, as data, and the actions that many of them share. Pure.

Why here: a platform's folder says which lines it writes; the gateway's own, and the page of all, are in `gateway/observe/logcatalogue.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of line."""

    name: str
    levels: tuple[str, ...]
    """The levels that it can have; an ``error`` may come with a traceback (field ``exception``)."""
    when: str
    fields: tuple[str, ...] = ()
    """Always there."""
    sometimes: tuple[str, ...] = ()
    """Only there where it is written by one of several places."""
    action: str = ""
    """What an operator can do; for every event from warning on."""
    by: tuple[str, ...] = ()
    """Fields whose values tell one trouble from another, for `outspoken triage`."""
    connection: bool = False
    """It says that the connection to a platform is lost, like `adapter.deaf`: for triage they are one trouble."""
    everyone: bool = False
    """Whatever it is, everybody on the account is concerned."""

    @property
    def trouble(self) -> bool:
        return not {"warning", "error"}.isdisjoint(self.levels)


DISK = "Look at the disk (full? slow?), the database server and its log; `outspoken doctor` tries both."
BUG = "A mistake in the program: report it with the traceback and `outspoken replay TURN --export FILE`."
LATER = "Nothing at once: it is tried again. If it goes on, look at the network and the platform's status page."


def log_event(
    name: str,
    levels: str,
    when: str,
    fields: str = "",
    action: str = "",
    *,
    sometimes: str = "",
    by: str = "",
    connection: bool = False,
    everyone: bool = False,
) -> LogEvent:
    """A kind of line; levels and fields with blanks between."""
    return LogEvent(
        name,
        tuple(levels.split()),
        when,
        tuple(fields.split()),
        tuple(sometimes.split()),
        action,
        tuple(by.split()),
        connection,
        everyone,
    )
