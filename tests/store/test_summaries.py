"""Summaries of a conversation that somebody shared who is forgotten."""

from __future__ import annotations

import orjson
from sqlalchemy import func, select

from agent_core.store import tables as t
from agent_core.store.keeping import forgetting as steps
from agent_core.store.turns.rows import ROWS_A_TURN
from tests.store.support import opened, row, turn_of


async def test_another_word_stands_in_the_place_of_each_summary_and_of_nothing_else(where: str) -> None:
    said = b'{"at":1,"kept_turns":2,"summary":"tangerine"}'
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        rows = [row(1, said, "Compacted"), row(2, b'"tangerine"'), row(3, said, "Compacted")]
        await store.turns.append(session, epoch, turn, rows)
        found = await store.forgotten.summaries(session)
        assert [key % ROWS_A_TURN for key in sorted(found)] == [1, 3]
        assert (await store.keeping.remove_some(steps.blank_summaries(found))).count == 2
        bodies = [one.body for one in await store.turns.journal(turn)]
        assert [b"tangerine" in body for body in bodies] == [False, False, True, False]
        kept = [steps.SUMMARY.encode() in body and b'"kept_turns":2' in body for body in bodies]
        assert kept == [False, True, False, True]


async def test_nothing_is_left_of_a_large_summary_whose_place_another_word_takes(where: str) -> None:
    said = orjson.dumps({"at": 5, "kept_turns": 2, "summary": "tangerine " * 1_000})
    async with opened(where) as store:
        session, epoch, turn = await turn_of(store)
        await store.turns.append(session, epoch, turn, [row(1, said, "Compacted")])
        count = select(func.count()).select_from(t.pieces)
        assert (await store.asks.all(count))[0][0] == 1, "it was cut out"
        await store.keeping.remove_some(steps.blank_summaries(await store.forgotten.summaries(session)))
        assert (await store.asks.all(count))[0][0] == 0
