"""A conversation that cannot be read, and not be set aside either, is tried again after pauses, and keeps no other one waiting."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from agent_core.retry import NOT_SET_ASIDE
from agent_core.store.store import Damaged, StorageUnavailable
from gateway.queues.queues import Queues
from gateway.setaside.setaside import PutAside
from tests.store.support import IDS, FakeClock

ERROR = Damaged("damaged")


async def test_it_is_tried_again_after_growing_pauses_and_others_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, tried, away = FakeClock(), list[str](), [True]
    none = cast("Any", None)
    damage = SimpleNamespace(everybodys=False, times=0)
    aside = PutAside(Queues(), none, none, cast("Any", damage), None, none, clock, IDS)

    async def put(session: str, _: Exception) -> bool:
        tried.append(session)
        if away[0]:
            raise StorageUnavailable("It is away.")
        return True

    monkeypatch.setattr(aside, "_put", put)
    with capture_logs():
        for number in (1, 2, 3):
            assert not await aside.put("s", ERROR)
            pause = round(NOT_SET_ASIDE.seconds(number) * 1000)
            for part in (0, pause - 1):
                clock.now += part
                assert not await aside.put("s", ERROR)
            assert tried.count("s") == number, "not before its pause is over"
            assert not await aside.put(f"another {number}", ERROR)
            assert tried[-1] == f"another {number}"
            clock.now += 1
        assert set(aside.stuck) == {"s", "another 1", "another 2", "another 3"}
        assert aside.recent() == len(aside.stuck), "whoever looks is told of those, too"
        assert damage.times == len(tried)
        away[0] = False
        assert await aside.put("s", ERROR)
    assert "s" not in aside.stuck
