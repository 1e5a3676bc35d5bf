"""Turns that are to be forgotten are found by the page: wherever theirs stand in it, each that is over goes, and one that runs is looked for again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.ports import SystemIds
from agent_core.store.keeping.forgetting import ForgettingJob
from agent_core.store.keeping.retaining import Removed
from gateway.retention import forgetting
from gateway.retention.forgetting import Forgetting
from tests.store.support import FakeClock

OPEN, OVER, OTHERS = "open", "over", "others'"
PAGE = 2


class Stored:
    """Turns in their order, of which a page is told at once."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.kinds, self.removed = kinds, list[str]()
        self.forgotten = SimpleNamespace(turns=self.page, tool_keys=self.nothing)
        self.turns = SimpleNamespace(journal=self.nothing)
        self.keeping = self

    async def page(self, job: object, most: int, after: str) -> tuple[list[Any], str]:
        del job
        places = range(int(after or -1) + 1, len(self.kinds))[:most]
        theirs = [one for one in places if self.kinds[one] != OTHERS]
        told = [SimpleNamespace(turn=str(one), session="s", open=self.kinds[one] == OPEN) for one in theirs]
        return told, str(places[-1]) if places else ""

    async def nothing(self, *_: object) -> list[Any]:
        return []

    async def remove_some(self, body: Callable[[Any], int]) -> Removed:
        return Removed(body(None), 0.0)


@given(st.lists(st.sampled_from([OPEN, OVER, OTHERS]), max_size=3 * PAGE))
@example([OPEN, OVER, OVER, OVER])
@example([OTHERS] * PAGE + [OPEN])
@example([OTHERS] * PAGE + [OVER, OTHERS, OTHERS])
def test_each_that_is_over_is_removed_once_and_one_that_runs_anywhere_is_told(kinds: list[str]) -> None:
    stored, clock = Stored(kinds), FakeClock()

    def removing(turns: Sequence[str]) -> Callable[[Any], int]:
        def body(_: object) -> int:
            stored.removed += turns
            return len(turns)

        return body

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(forgetting, "LOOKED_AT_ONCE", PAGE)
        patched.setattr(forgetting.steps, "remove_turns", removing)
        one: Any = Forgetting(cast("Any", stored), clock, SystemIds(clock), Path("/nowhere"), None, None)
        count, files, busy = asyncio.run(one._turns(ForgettingJob("f", (), 0, None)))
    over = [str(place) for place, kind in enumerate(kinds) if kind == OVER]
    assert (stored.removed, count, files, busy) == (over, len(over), 0, OPEN in kinds)
