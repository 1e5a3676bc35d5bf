"""Time in which this machine could do what it was asked to, for what has to be soon: limits of the wall clock say how busy it was.

Known to be weak: on a machine that is busy all the time such a limit holds nothing. On a quiet one it is as strict as it says.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")


def kept_waiting() -> float:
    """For how many seconds, ever, somebody on this machine wanted a processor and had none: time in which nothing can be asked of anybody. 0 where
    the system does not tell."""
    if not PRESSURE.exists():
        return 0.0
    return int(PRESSURE.read_text().split("total=")[1].split()[0]) / 1_000_000


class Unhindered:
    """Begins to count when it is made."""

    def __init__(self) -> None:
        self.began, self._waited = time.monotonic(), kept_waiting()

    @property
    def seconds(self) -> float:
        """So many have passed, but for those in which somebody wanted a processor and had none."""
        return self.less(time.monotonic())

    def less(self, at: float) -> float:
        """The same of the time until `at` (monotonic); what was waited for since counts, too."""
        return at - self.began - (kept_waiting() - self._waited)


SLOWEST = 20
"""So much slower than a quiet machine a busy one is at most, as far as anybody waits for it."""


async def passed(seconds: float) -> None:
    """Come back when so many seconds have passed in which nobody was kept waiting; where somebody always is, after `SLOWEST` times as many."""
    since = Unhindered()
    while since.seconds < seconds and time.monotonic() - since.began < SLOWEST * seconds:
        await asyncio.sleep(seconds / 10)
