"""How adapters were doing is stored to the last, each change once and in its order, whatever the storage did meanwhile."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent_core.store.deliveries.rows import AdapterStateRow
from agent_core.store.store import StorageUnavailable
from gateway.chats import supervisor
from gateway.chats.supervisor import AdapterLog


class Paper:
    """What is stored; the first so many times it is away."""

    def __init__(self, away: int) -> None:
        self.away = away
        self.rows: list[tuple[str, int, str]] = []

    async def note_adapter(self, row: AdapterStateRow) -> None:
        if self.away > 0:
            self.away -= 1
            raise StorageUnavailable("It is away.")
        await asyncio.sleep(0)
        self.rows.append((row.account, row.at, row.state))


def states(log: AdapterLog, *names: str) -> None:
    for name in names:
        log.note(AdapterStateRow("telegram/1", 5, name, ""))


@pytest.mark.parametrize("away", [0, 1, 3])
@pytest.mark.parametrize("rests", [True, False], ids=["while it runs", "as it ends"])
async def test_each_change_is_stored_once_and_in_its_order_up_to_the_last(
    monkeypatch: pytest.MonkeyPatch, away: int, rests: bool
) -> None:
    monkeypatch.setattr(supervisor, "AWAY_SECONDS", 0.0)
    paper = Paper(away if rests else 0)
    store: Any = SimpleNamespace(deliveries=paper)
    log = AdapterLog(store)
    states(log, "starting")
    with capture_logs():
        async with log.kept(), asyncio.timeout(20):
            states(log, "up", "down")
            while rests and len(paper.rows) < 3:
                await asyncio.sleep(0)
            states(log, "stopped")
    assert [state for _, _, state in paper.rows] == ["starting", "up", "down", "stopped"]
    assert len({at for _, at, _ in paper.rows}) == 4, "changes of one millisecond are told apart"


async def test_an_end_waits_for_a_storage_that_does_not_answer_as_long_as_it_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "LAST_SECONDS", 0.01)

    async def never(_: AdapterStateRow) -> None:
        await asyncio.Event().wait()

    store: Any = SimpleNamespace(deliveries=SimpleNamespace(note_adapter=never))
    log = AdapterLog(store)
    async with asyncio.timeout(20):
        async with log.kept():
            states(log, "stopped")


async def test_an_end_does_not_wait_for_a_storage_that_is_away_and_what_it_did_not_take_is_kept() -> None:
    paper = Paper(1)
    store: Any = SimpleNamespace(deliveries=paper)
    log = AdapterLog(store)
    async with log.kept(), asyncio.timeout(20):
        states(log, "stopped")
    assert paper.rows == []
    async with log.kept(), asyncio.timeout(20):
        pass
    assert [state for _, _, state in paper.rows] == ["stopped"]
