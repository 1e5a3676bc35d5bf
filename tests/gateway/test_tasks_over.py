"""A background task that is over counts no more, whatever became of its row since it was begun: else a conversation could have no other one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import FromApi, SessionKey
from agent_core.messages import InputMessage
from agent_core.store.schedules.rows import ScheduleRow, ScheduleState
from agent_core.store.store import Conflict, StorageUnavailable
from agent_core.storedjson import dumps
from gateway.later.tasks import TaskEnd, TaskLimits, TaskPlan, Tasks
from gateway.queues import inbox
from gateway.schedule.schedules import TASK
from tests.store.support import FakeClock

SAID = FromApi(
    account="web", platform_key="k1", session=SessionKey("web", "page", "1"), input=(InputMessage("go"),), surface="web", memory_scope=""
)  # fmt: skip
PLAN = TaskPlan("count", 1, inbox.encode(SAID).decode(), SAID, TaskEnd(done=True, seconds=3, tokens=4))
ROW = ScheduleRow(
    schedule=f"{TASK}:1", kind=TASK, session_key="telegram/1/old//", surface="", number=1, rule="once 1", body=dumps(PLAN),
    next_at=None,
)  # fmt: skip
LIMITS = TaskLimits(at_once=1, at_once_all=1, seconds=9, steps=9, status_seconds=9)


@pytest.mark.parametrize("looks", [0, 1, 2])
async def test_the_gateway_ends_although_the_storage_is_away_where_tasks_are_looked_for(looks: int) -> None:
    """Of several gateways one looks again whenever it has more to do: also while the storage comes and goes."""

    async def named(_: str) -> list[ScheduleRow]:
        raise StorageUnavailable("away")

    later = SimpleNamespace(store=SimpleNamespace(schedules=SimpleNamespace(named=named)), clock=FakeClock())
    tasks = Tasks(cast("Any", later), cast("Any", None), LIMITS)
    async with asyncio.timeout(2):
        async with tasks.running():
            for _ in range(looks):
                tasks.look()
            await asyncio.sleep(0)


class Schedules:
    """The rows of the storage. The chat's id changes `moves` times, each time just before something is stored."""

    def __init__(self, row: ScheduleRow | None, moves: int = 0) -> None:
        self.row, self.moves = row, moves

    async def one(self, _: str) -> ScheduleRow | None:
        return self.row

    async def put(self, row: ScheduleRow, _turn: str = "") -> None:
        assert self.row is not None
        if self.moves:
            self.moves -= 1
            self.row = replace(self.row, session_key=f"telegram/1/new{self.moves}//", rev=self.row.rev + 1)
        if row.rev != self.row.rev + 1:
            raise Conflict("it was changed meanwhile")
        self.row = row


@pytest.mark.parametrize("moves", [0, 1, 2])
async def test_a_task_whose_chat_has_another_id_meanwhile_is_over(moves: int) -> None:
    schedules = Schedules(replace(ROW, session_key="telegram/1/new//", rev=2), moves)
    await told(schedules)
    assert schedules.row is not None
    assert schedules.row.state is ScheduleState.DONE
    assert schedules.row.session_key == ("telegram/1/new0//" if moves else "telegram/1/new//")


@pytest.mark.parametrize("row", [None, replace(ROW, state=ScheduleState.CANCELLED, rev=2)])
async def test_what_was_forgotten_or_is_over_already_stays_so(row: ScheduleRow | None) -> None:
    schedules = Schedules(row)
    await told(schedules)
    assert schedules.row == row


async def told(schedules: Schedules) -> None:
    """The task was followed to its end since it was read."""

    async def begin_for(*_: object) -> bool:
        return True

    later = SimpleNamespace(store=SimpleNamespace(schedules=schedules), clock=FakeClock())
    tasks = Tasks(cast("Any", later), cast("Any", SimpleNamespace(begin_for=begin_for)), LIMITS)
    await tasks._tell(ROW, PLAN, "Task 1 is done.", "ok")


async def test_they_end_with_the_gateway_although_the_storage_is_away_and_more_of_them_were_looked_for() -> None:
    async def away(_: str) -> list[ScheduleRow]:
        raise StorageUnavailable("away")

    later = SimpleNamespace(store=SimpleNamespace(schedules=SimpleNamespace(named=away)))
    limits = TaskLimits(at_once=1, at_once_all=1, seconds=9, steps=9, status_seconds=9)
    tasks = Tasks(cast("Any", later), cast("Any", None), limits)
    async with asyncio.timeout(2), tasks.running():
        tasks.look()
        await asyncio.sleep(0.01)
