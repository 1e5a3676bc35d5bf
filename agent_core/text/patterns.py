"""Regular expressions that are compiled when something is first looked for with them, or all of them when nobody waits.

The large ones take some 45 ms to compile, a tenth of a start, and nothing is looked for before the first turn. `compile_all` is what the
warming after a start calls. A pattern behaves as what `re.compile` gives: methods are those of the real one from the first use on.
A wrong expression is found by the first use instead of by the import, so `tests/agent_core/test_patterns.py` compiles all that there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, cast
from weakref import WeakSet


class LatePattern:
    """Stands for a pattern. What is asked of it is kept, so that it costs nothing from the second time on."""

    def __init__(self, given: str | Callable[[], str], flags: int) -> None:
        self._source = given
        self.given = flags
        self._real: re.Pattern[str] | None = None

    @cached_property
    def pattern(self) -> str:
        return self._source if isinstance(self._source, str) else self._source()

    def __getattr__(self, name: str) -> Any:
        self._real = self._real or re.compile(self.pattern, self.given)
        found = getattr(self._real, name)
        setattr(self, name, found)
        return found


_made = WeakSet[LatePattern]()


def late(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` would give, some time later; the pattern itself may be made then."""
    made = LatePattern(pattern, flags)
    _made.add(made)
    return cast("re.Pattern[str]", made)


def compile_all() -> None:
    """Compile what has not been yet. Takes tens of milliseconds: not on a loop."""
    for one in list(_made):
        _ = one.search
