"""How fast the journal takes rows, without a gateway around it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agent_core.ports import SystemClock, SystemIds
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.store import Store, open_store
from agent_core.store.turns.rows import JournalRow
from tests.bench.cases import Figure

TASKS = 64


async def _session(store: Store, number: int, rows: int) -> None:
    now = SystemClock().now_ms()
    message = NewMessage("bench", f"m{number}", f"bench/{number}", "normal", b"{}", now, None, f"s_{number}")
    accepted = await store.inbox.accept(message)
    epoch = await store.sessions.claim(accepted.session)
    turn = f"t_{number}"
    first = JournalRow(seq=0, kind="TurnOpened", body=b"{}", at=now)
    await store.turns.start(
        session=accepted.session,
        epoch=epoch,
        turn=turn,
        inbox_ids=(accepted.inbox_id,),
        row=first,
        opened_at=now,
        deadline=now + 1000,
    )
    body = b'{"text":"' + b"x" * 120 + b'"}'
    for seq in range(1, rows):
        await store.turns.append(
            accepted.session, epoch, turn, [JournalRow(seq=seq, kind="TextArrived", body=body, at=now)]
        )


async def journal_rows(folder: Path, rows_a_task: int) -> list[Figure]:
    """Durable rows a second, one row a call, from 64 tasks."""
    clock = SystemClock()
    async with open_store(folder / "bench.db", clock=clock, ids=SystemIds(clock), version="bench") as store:
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(TASKS):
                group.create_task(_session(store, number, rows_a_task))
        seconds = time.monotonic() - began
    return [Figure("durable journal rows, 64 tasks", TASKS * rows_a_task / seconds, "/s", limit=10_000, at_least=True)]
