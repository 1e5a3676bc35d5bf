"""A process that is killed in the middle of its work: whatever it was told is stored, is stored."""

from __future__ import annotations

import asyncio
import signal
from collections import defaultdict

import pytest

from tests.store.support import child, opened, take_over


@pytest.mark.parametrize("acknowledged", [1, 400, 1500])
async def test_every_acknowledged_row_survives_a_kill(where: str, acknowledged: int) -> None:
    told: defaultdict[str, int] = defaultdict(int)

    def hear(line: str) -> None:
        if len(words := line.split()) == 2 and words[1].isdigit():  # the last line may be cut
            told[words[0]] = max(told[words[0]], int(words[1]))

    async with child("append", where) as process:
        for _ in range(acknowledged):
            hear(await process.line())
        process.send(signal.SIGKILL)
        while line := await process.line():
            hear(line)
    assert told
    await asyncio.sleep(0.1)
    async with opened(where) as store:
        found = {one.turn: one for one in await take_over(store)}
        for turn, seq in told.items():
            assert turn in found
            rows = await store.turns.journal(turn)
            assert [one.seq for one in rows] == list(range(len(rows)))
            assert rows[-1].kind == "TakenOver"
            stored = rows[1:-1]
            assert len(stored) >= seq
            assert [one.body for one in stored] == [f'"{turn} {one.seq}"'.encode() for one in stored]
