"""When something is tried again: one type for all of it, and one list of the numbers.

Pauses that grow stood in a dozen places, each with its own arithmetic, its own count of attempts (from 0 or from 1) and its own idea of
chance. So a pause is asked for in one way: by the number of the attempt that failed and a random number, which whoever decides is given.

What concerns one platform alone stands in its folder, as a `Retry` as well; a pause that never grows and is nobody else's stands where it
is taken. To change a number or to add one is a change of one file (tests/agent_core/test_retry.py does it in a copy).

Laws (the same file): no pause is longer than `most` nor shorter than its `least` share; with the same chance a later attempt waits no
less; before the first attempt nothing is waited for.

Known to be weak: the pages' JavaScript has its own arithmetic (`page.js`, `console.js`).
"""

from __future__ import annotations

import math

from agent_core.records import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait before something is tried again, and how often it is."""

    first: float
    """Seconds after the first attempt that failed."""
    most: float = math.inf
    """No pause is longer, seconds."""
    factor: float = 2.0
    least: float = 1.0
    """The share of a pause that is always waited; chance decides about the rest."""
    attempts: int = 0
    """So many in all, the first one included; 0: for ever."""

    def seconds(self, attempt: int, chance: float = 1.0) -> float:
        """The pause after the failed attempt number `attempt` (from 1). `chance` lies between 0 and 1."""
        if attempt < 1:
            return 0.0
        grown = min(self.most, self.first * self.factor ** min(attempt - 1, 20))
        return grown * (self.least + (1 - self.least) * chance)

    def ms(self, attempt: int, chance: float = 1.0) -> int:
        """The same in whole milliseconds."""
        return round(self.seconds(attempt, chance) * 1000)

    def over(self, attempt: int) -> bool:
        """After so many attempts that failed it is given up."""
        return 0 < self.attempts <= attempt


MODEL = Retry(1.0, 30.0, least=0.1)
"""A model call that failed before it said anything. These two are the defaults of `[model] retry_min_seconds` and `retry_max_seconds`."""
STORING = Retry(1.0, 5.0, factor=1.2)
"""A running turn that cannot store what happened."""
STORAGE_REOPENED = Retry(0.1, 1.0, factor=4.0, attempts=5)
"""The database is opened anew: the first time at once, so the pauses count from there."""
PULSE_AGAIN = Retry(0.05, 0.5)
"""The connection that shows that this process lives."""
BUDGET = Retry(1.0, 10.0)
"""What a call may use, or has used, cannot be stored."""
NOT_OPENED = Retry(1.0, 30.0)
"""No turn can be opened for want of the storage; it is tried at once when somebody writes."""
DELIVERY = Retry(1.0, 300.0, least=0.5)
"""A part of a chat that was not shown."""
HOOK = Retry(5.0, 4 * 3600.0, factor=4.0, least=0.9, attempts=13)
"""A webhook that was not taken: for about a day, as the specification asks."""
HOOK_RECEIVER = Retry(1.0, 60.0, least=0.5)
"""Whoever did not take the last one, whichever it was: one at a time, that slowly."""
ADAPTER = Retry(0.5, 30.0, least=0.5)
"""An adapter that went down."""
ACCOUNT_AWAY = Retry(60.0, 600.0)
"""An account whose platform one of several gateways did not reach is not served there."""
MISSED = Retry(0.5, 60.0)
"""A place whose past cannot be read."""
INTAKE = Retry(0.2, factor=4.0, attempts=3)
"""What a platform brought and what cannot be taken in: Slack waits three seconds for its acknowledgement. It is kept as it came afterwards."""
UNREAD = Retry(60.0, 6 * 3600.0, factor=10.0, attempts=5)
"""What was kept so, with one version of the program."""
TAKE_UP = Retry(0.5, 30.0)
"""What an earlier process left and what cannot be taken up."""
SUSPECTS = Retry(1.5, 24.0)
"""How long a batch of suspects is watched; one that is alone is watched as if it was tried once more."""
NOT_SET_ASIDE = Retry(2.0, 60.0)
"""A conversation that cannot be read and not be set aside either."""
TOOLS_LEFT_OUT = Retry(60.0, 3600.0)
"""How long no tools are offered to a model that refused them: there it is the offer that is tried again."""
SEARCH = Retry(1.0, 4.0, attempts=3)
"""A search of the web that failed in a way that passes."""
SPEECH = Retry(1.0, 8.0, least=0.5, attempts=3)
"""An endpoint that turns speech into text, or text into speech."""
