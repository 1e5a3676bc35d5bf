"""What has been measured to help against a failure: remedies with how often they were tried and how often they helped. Pure.

Laws (tests/agent_core/test_measured.py): what never helped is never the best; of two that are as good, the plainer one is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agent_core.failures.remedies import Remedy

REMEDIES = {one.value: one for one in Remedy}
"""By the names under which they are stored. Of a name that is none nobody learns anything."""


def best_remedy(tries: Iterable[tuple[Remedy, bool, int]]) -> Remedy | None:
    """The remedy that helped in the largest share of its tries, with a little doubt for few tries; None if none helped.

    `tries` are (remedy, whether it helped, how often). To ask the same model for the same again counts as a remedy like any other: where that
    helps as well, nothing special is done.
    """
    helped, tried = Counter[Remedy](), Counter[Remedy]()
    for remedy, good, count in tries:
        tried[remedy] += count
        helped[remedy] += count if good else 0
    return max(
        (remedy for remedy in tried if helped[remedy]),
        key=lambda remedy: ((helped[remedy] + 1) / (tried[remedy] + 2), remedy.recipe.hiccup, remedy),
        default=None,
    )
