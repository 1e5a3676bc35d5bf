"""Nothing that only looks nice goes out while a last word waits, or where nothing may."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from adapters.contract.pacing import URGENCIES, Urgency
from adapters.delivery.reconcile import LookLater
from gateway.delivery.surface import Surface
from tests.agent_core.turns import gives
from tests.store.support import FakeClock


class Chat:
    """One surface at one moment: what waits to be shown, and whether something may be."""

    def __init__(self, waiting: tuple[Urgency, ...], kept_back_ms: int, *, may: bool, running: bool) -> None:
        self.shown: list[bool] = []
        parts = [SimpleNamespace(urgency=one, row=SimpleNamespace(final=one is Urgency.FINAL)) for one in waiting]
        outlet = SimpleNamespace(driver=object(), task=None, turn="t")
        waits = {one: kept_back_ms if one is Urgency.COSMETIC else 0 for one in URGENCIES}
        records = SimpleNamespace(may_show=gives(may))
        gates = SimpleNamespace(waits=gives(waits))
        self.surface = SimpleNamespace(
            _closed=False, address=None, name="chat", _outlets=[outlet] if running else [],
            amendments=SimpleNamespace(carry_out=self._nothing), _look=self._nothing, _rest=self._nothing,
            ledger=SimpleNamespace(parts={}, held=set(), waiting=parts, pay=self._nothing),
            _shared=SimpleNamespace(clock=FakeClock(), gates=gates, records=records),
            calls=SimpleNamespace(traits=SimpleNamespace(sessions=False)),
            _cosmetics=SimpleNamespace(show=self._show), _next=gives(LookLater(1_000)),
        )  # fmt: skip

    async def _nothing(self, *_: object) -> bool:
        return False

    async def _show(self, *_: object, typing: bool) -> bool:
        self.shown.append(typing)
        return False


@pytest.mark.parametrize(
    "waiting", [(), (Urgency.COSMETIC,), (Urgency.STATUS,), (Urgency.FINAL,), (Urgency.STATUS, Urgency.FINAL)]
)
@pytest.mark.parametrize("kept_back_ms", [0, 1])
@pytest.mark.parametrize("may", [True, False])
@pytest.mark.parametrize("running", [True, False])
def test_typing_is_shown_while_something_runs_and_no_last_word_waits(
    waiting: tuple[Urgency, ...], kept_back_ms: int, *, may: bool, running: bool
) -> None:
    chat = Chat(waiting, kept_back_ms, may=may, running=running)
    asyncio.run(vars(Surface)["_once"](chat.surface))
    quiet = Urgency.FINAL not in waiting and not kept_back_ms
    assert chat.shown == ([True] if may and running and quiet else [])
