"""What has been measured to help against a failure: remedies with how often they were tried and how often they helped. Pure.

Laws (tests/agent_core/test_measured.py): what never helped is never the best; of two that are as good, the plainer one is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_core.judging.remedies import SPECIAL, Rung


def best_remedy(tries: Iterable[tuple[Rung, bool, int]]) -> Rung | None:
    """The remedy that helped in the largest share of its tries, with a little doubt for few tries; None if none helped.

    `tries` are (remedy, whether it helped, how often). To ask the same model for the same again counts as a remedy like any other: where that
    helps as well, nothing special is done.
    """
    helped, tried = Counter[Rung](), Counter[Rung]()
    for rung, good, count in tries:
        tried[rung] += count
        helped[rung] += count if good else 0
    return max(
        (rung for rung in tried if helped[rung]),
        key=lambda rung: ((helped[rung] + 1) / (tried[rung] + 2), rung not in SPECIAL, rung),
        default=None,
    )
