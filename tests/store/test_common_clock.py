"""Who shares a database has its server's time of day, whatever their machines' clocks show; what clocks differ by all the time is no difference."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from structlog.testing import capture_logs

from agent_core.ports import NEAR_MS, CommonClock
from agent_core.store.database.ownership import Serves
from agent_core.store.store import open_store
from tests.store.support import IDS, FakeClock

HOUR = 3_600_000


@given(st.integers(-(10**9), 10**9), st.integers(0, 5_000), st.integers(0, 5_000))
def test_it_is_right_to_the_second_and_to_what_the_answer_took(off: int, before: int, behind: int) -> None:
    """`before` and `behind` the moment in which the server looked at its clock, the answer took so long."""
    machine = FakeClock()
    common = CommonClock(machine)
    at = machine.now_ms() + off
    machine.now += behind
    common.told(at, before + behind)
    assert abs(common.now_ms() - (at + behind)) <= NEAR_MS + before + behind
    before_again = common.ahead
    assert not common.told(at + behind, 0) or before + behind > 0
    machine.now += HOUR
    common.told(at + behind + HOUR, 0)
    assert abs(common.now_ms() - (at + behind + HOUR)) <= NEAR_MS
    assert before_again == common.ahead or before + behind > 0, "what agrees is left as it is"


def test_what_is_kept_together_by_what_sets_clocks_is_left_alone() -> None:
    common = CommonClock(FakeClock())
    for off in (0, 900, -900):
        assert not common.told(common.now_ms() + off, 10)
    assert common.ahead == 0
    assert common.told(common.now_ms() + HOUR, 0)
    assert common.told(common.now_ms() - HOUR + 300, 0), "the machine was set right"
    assert common.ahead == 0


@pytest.mark.parametrize("hours", [-3, 0, 3])
async def test_a_gateway_has_the_time_of_its_database_from_its_first_row_on(postgres: str, hours: int) -> None:
    clock = CommonClock(FakeClock(round(time.time() * 1000) + hours * HOUR))
    with capture_logs() as logs:
        async with open_store(postgres, clock=clock, ids=IDS, version="test", serves=Serves.SHARED) as store:
            begun = await store.writer.alone(
                lambda conn: conn.execute(
                    text("SELECT started_at FROM nodes WHERE node = :node"), {"node": store.node}
                ).scalar_one()
            )
            assert abs(begun - time.time() * 1000) < 60_000
            assert abs(clock.now_ms() - time.time() * 1000) < 60_000
    told = [line["seconds"] for line in logs if line["event"] == "storage.clock_differs"]
    assert [round(one / 3_600) for one in told] == ([-hours] if hours else [])
