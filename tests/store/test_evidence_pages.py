"""An auditor's page: a row of which nobody can make anything is named, hides no other, and is not met again on the next page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select

from agent_core.store import evidence
from agent_core.store import tables as t
from agent_core.store.database.asks import StoreAsks
from agent_core.store.evidence import EvidenceReads
from tests.store.support import FakeClock, message, opened, row, session_of, started
from tests.store.test_pieces import body, said


class Odd(StoreAsks):
    """Of some turns it can make nothing."""

    odd: frozenset[str] = frozenset()

    async def made(self, query: Any, make: Callable[[Any], Any]) -> list[Any]:
        def of(found: Any) -> Any:
            made = make(found)  # a turn, or where it lies and a turn
            turn: Any = made[-1] if hasattr(made, "__len__") else made
            if turn.turn in self.odd:
                raise ValueError("no such state")
            return made

        return await super().made(query, of)


async def test_what_was_there_at_a_time_is_known_also_where_nothing_came_since(where: str) -> None:
    clock = FakeClock()
    async with opened(where, clock) as store:
        reads = EvidenceReads(store.asks)
        assert await reads.numbers_before(100) == (0, 0, 0)
        numbers = [(await store.inbox.accept(message(f"k{at}", at=at))).inbox_id for at in (100, 200, 300)]
        found = [(await reads.numbers_before(at))[0] for at in (100, 101, 200, 300, 301, 10_000)]
        first, second, third = numbers
        assert found == [first - 1, first, first, second, third, third]


@pytest.mark.parametrize("odd", [(), (0,), (1,), (3,), (0, 1, 2, 3)])
@pytest.mark.parametrize("size", [1, 2, 10])
async def test_each_turn_is_on_one_page_or_named_as_senseless(odd: tuple[int, ...], size: int, sqlite: str) -> None:
    clock = FakeClock()
    async with opened(sqlite, clock) as store:
        turns: list[str] = []
        for number in range(4):
            session, epoch = await session_of(store, f"chat {number}")
            accepted = await store.inbox.accept(message(f"k{number}", f"chat {number}"))
            _, _, turn = await started(store, accepted, epoch)
            await store.turns.close(session, epoch, turn, [row(1)], "answered", clock.now + number)
            turns.append(turn)
        asks = Odd(store.asks.readers, "here")
        asks.odd = frozenset(turns[number] for number in odd)
        reads, after, found, named = EvidenceReads(asks), (0, ""), list[str](), list[str]()
        for _ in range(10):
            page = await reads.closed_turns(after, size)
            if not page.keys:
                break
            found += [one.turn for one in page.rows]
            named += [name for name, _ in page.senseless]
            assert len(page.keys) == len(page.rows) + len(page.senseless) <= size
            after = page.keys[-1]
        assert (found, named) == ([one for one in turns if one not in asks.odd], [turns[number] for number in odd])


@pytest.mark.parametrize("most", [1, 900, 10**6])
async def test_a_page_of_what_is_large_is_bounded_by_its_size_and_each_is_on_one(
    most: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "PIECES_BYTES", most)
    async with opened(where) as store:
        await store.inbox.accept(message("k", body=body(said(20))))
        reads, after, pages = EvidenceReads(store.asks), 0, list[list[int]]()
        while page := await reads.pieces(after, 100):
            pages.append([one.size for one in page])
            after = page[-1].number
        assert all(len(sizes) == 1 or sum(sizes) <= most for sizes in pages)
        assert sum(map(len, pages)) == len(await store.writer.alone(lambda conn: conn.execute(select(t.pieces)).all()))
