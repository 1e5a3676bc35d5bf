"""What receivers are told and when it is looked for that, rule by rule. Without a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from agent_core.bell import Bell
from agent_core.signals import Committed
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from gateway.webhooks.events import HookRule
from gateway.webhooks.telling import HookTelling
from tests.agent_core.turns import gives
from tests.store.support import FakeClock


class Rung(Bell):
    """Counts."""

    times = 0

    def ring(self) -> None:
        self.times += 1


def telling(bell: Bell, *rules: HookRule) -> HookTelling:
    return HookTelling(rules, cast("Any", gives("")), FakeClock(), bell)


def part(state: DeliveryState) -> DeliveryRow:
    return DeliveryRow("telegram/1/7/", "t_1", state.value, 0, 1, b"{}", "h", f"k {state.value}", state, at=5)


async def test_of_all_parts_those_are_told_that_failed_for_good() -> None:
    herald = telling(Bell(), HookRule("deploy"), HookRule("other"))
    on_its_way = replace(part(DeliveryState.FAILED), final=False)
    rows = herald.parts("s_1", [*(part(state) for state in DeliveryState), on_its_way])
    assert sorted(one.receiver for one in rows) == ["deploy", "other"]
    assert telling(Bell()).parts("s_1", [part(DeliveryState.FAILED)]) == ()


async def test_after_something_was_made_the_next_two_commits_are_looked_at_whichever_has_it() -> None:
    bell = Rung()
    herald = telling(bell, HookRule("deploy"))
    stored, not_stored = (Committed(operations=1, seconds=0.1, stored=one) for one in (True, False))
    herald.on(stored)
    assert bell.times == 0, "nothing was made"
    herald.parts("s_1", [part(DeliveryState.FAILED)])
    for signal, times in ((not_stored, 0), (stored, 1), (not_stored, 1), (stored, 2), (stored, 2)):
        herald.on(signal)
        assert bell.times == times
    herald.parts("s_1", [part(DeliveryState.SENT)])
    herald.on(stored)
    assert bell.times == 2, "nothing of it is told"
