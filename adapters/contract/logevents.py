"""What is said of a kind of log line beside its call, and the actions that many of them share. Pure.

Why here: a platform's folder says it of the lines that it writes; the gateway's own are in `gateway/observe/logcatalogue.py`. The level and
the fields stand in the call alone, and the page of all lines reads them there (`tests/printed/logs.py`).
"""

from __future__ import annotations

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of line."""

    name: str
    when: str
    action: str = ""
    """What an operator can do; for every event from warning on, and only there."""
    by: str = ""
    """Fields whose values tell one trouble from another, for `outspoken triage`; with blanks between."""
    connection: bool = False
    """It says that the connection to a platform is lost, like `adapter.deaf`: for triage they are one trouble."""
    everyone: bool = False
    """Whatever it is, everybody on the account is concerned."""


DISK = "Look at the disk (full? slow?), the database server and its log; `outspoken doctor` tries both."
BUG = "A mistake in the program: report it with the traceback and `outspoken replay TURN --export FILE`."
LATER = "Nothing at once: it is tried again. If it goes on, look at the network and the platform's status page."
