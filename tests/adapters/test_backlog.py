"""The laws of what is behind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.backlog import Backlog, Behind, after_failure, lot, numbered
from adapters.contract.chat import CallFailed, Fate
from agent_core.ports import SystemClock
from agent_core.retry import MISSED

FAILURES = st.builds(
    CallFailed, st.sampled_from(sorted(Fate)), st.just("no"), retry_after=st.floats(0, 3_600)
)  # fmt: skip
BEHIND = st.builds(
    Behind, st.integers(0, 1 << 60), st.integers(0, 1 << 40), st.integers(0, 50), st.integers(0, 1 << 40)
)


@given(BEHIND, FAILURES, st.integers(0, 1 << 41))
def test_a_place_that_may_be_read_one_day_keeps_its_mark(behind: Behind, error: CallFailed, now: int) -> None:
    left = after_failure(behind, error, now)
    assert (left is None) == (error.fate is Fate.REFUSED)
    if left is not None:
        assert (left.mark, left.since_ms) == (behind.mark, behind.since_ms)


@given(BEHIND, FAILURES, st.integers(0, 1 << 41))
def test_a_pause_is_kept_and_never_endless(behind: Behind, error: CallFailed, now: int) -> None:
    left = after_failure(behind, error, now)
    if left is not None:
        asked = round(error.retry_after * 1000) if error.fate is Fate.TOO_FAST else 0
        assert left.not_before_ms - now >= asked
        assert left.not_before_ms - now <= max(asked, MISSED.ms(100))


@dataclass
class History:
    """Places and how often each fails before it can be read."""

    failing: dict[str, list[Exception]] = field(default_factory=dict[str, list[Exception]])
    read: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    parts: dict[str, int] = field(default_factory=dict[str, int])
    """How often there is more of a place."""

    async def __call__(self, place: str, behind: Behind) -> bool:
        await asyncio.sleep(0)
        if failures := self.failing.get(place):
            raise failures.pop(0)
        self.read.append((place, behind.mark))
        self.parts[place] = left = self.parts.get(place, 0) - 1
        return left < 0


async def until_empty(backlog: Backlog) -> None:
    task = asyncio.create_task(backlog.run())
    try:
        async with asyncio.timeout(60):
            while len(backlog):
                await asyncio.sleep(0.01)
    finally:
        task.cancel()


async def test_what_fails_is_read_later_and_keeps_nobody_back() -> None:
    history = History({"a": [CallFailed(Fate.UNKNOWN, "x")], "b": [CallFailed(Fate.REFUSED, "x")]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 3), ("b", 2), ("c", 1)])
    await until_empty(backlog)
    assert history.read == [("c", 1), ("a", 3)]


async def test_a_pause_is_for_all_places() -> None:
    history = History({"a": [CallFailed(Fate.TOO_FAST, "x", retry_after=0.3)]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 2), ("b", 1)])
    task = asyncio.create_task(backlog.run())
    await asyncio.sleep(0.1)
    assert history.read == []
    task.cancel()
    await until_empty(backlog)
    assert history.read == [("a", 2), ("b", 1)]


async def test_a_place_that_is_behind_stays_where_it_is() -> None:
    backlog = Backlog("test/1", History(), SystemClock())
    backlog.add([("a", 5)])
    backlog.add([("a", 9)])
    assert backlog.mark("a") == 5
    backlog.advanced("a", 4)
    assert backlog.mark("a") == 5
    backlog.advanced("a", 7)
    assert backlog.mark("a") == 7
    assert backlog.mark("b") is None


async def test_what_is_read_at_leisure_comes_last_and_not_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.contract.backlog.LEISURE_SECONDS", 0.2)
    history = History()
    backlog = Backlog("test/1", history, SystemClock())
    quiet = {"quiet": 8, "quieter": 7, "quietest": 6}
    backlog.add(quiet.items(), since_ms=1, leisure=1.0)
    backlog.add([("a", 3), ("b", 2)])
    backlog.add([("b", 2)], leisure=1.0)
    task = asyncio.create_task(backlog.run())
    await asyncio.sleep(0.1)
    first, second, third = sorted(quiet, key=lambda place: lot(place, 1, 1.0), reverse=True)
    assert history.read == [("a", 3), ("b", 2), (first, quiet[first])]
    assert backlog.hurry(third, 1.0), "somebody waits for it"
    await asyncio.sleep(0.05)
    assert history.read[3:] == [(third, quiet[third])]
    task.cancel()
    await until_empty(backlog)
    assert history.read[4:] == [(second, quiet[second])]


@given(st.sets(st.text("abc:0123456789", max_size=20), min_size=1, max_size=20), st.integers(0, 2**41))
def test_each_place_has_its_turn_however_soon_another_gap_comes(places: set[str], first_gap: int) -> None:
    firsts = {max(places, key=lambda place: lot(place, first_gap + 20_000 * gap, 1.0)) for gap in range(1_000)}
    assert firsts == places


@given(st.integers(0, 2**41))
def test_of_two_kinds_of_places_those_with_the_better_chance_come_first_nearly_always(gap: int) -> None:
    chances = {f"D{number}": 1.0 for number in range(20)} | {f"D{number}:1": 0.1 for number in range(80)}
    order = sorted(chances, key=lambda place: lot(place, gap, chances[place]), reverse=True)
    assert sum(chances[place] == 1.0 for place in order[:20]) >= 10


async def test_a_place_that_was_to_wait_is_read_when_there_is_a_gap() -> None:
    history = History()
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 5)], pause_seconds=600.0)
    backlog.add([("a", 5)])
    async with asyncio.timeout(10):
        await until_empty(backlog)
    assert history.read == [("a", 5)]


async def test_what_is_not_read_to_its_end_goes_on_at_leisure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.contract.backlog.LEISURE_SECONDS", 0.1)
    history = History(parts={"long": 2})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("long", 9), ("a", 3)])
    await until_empty(backlog)
    assert history.read == [("long", 9), ("a", 3), ("long", 9), ("long", 9)]


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(0, 99), st.booleans(), st.integers(0, 3))),
)
async def test_every_place_is_read_to_its_end(places: dict[str, tuple[int, bool, int]]) -> None:
    history = History(parts={place: parts for place, (_, _, parts) in places.items()})
    backlog = Backlog("test/1", history, SystemClock())
    for place, (mark, leisure, _) in places.items():
        backlog.add([(place, mark)], leisure=leisure)
        assert backlog.hurry(place, 1.0)
    async with asyncio.timeout(60):
        for place in places:
            await backlog.catch_up(place)
    assert len(backlog) == 0
    assert sorted(history.read) == sorted((p, mark) for p, (mark, _, parts) in places.items() for _ in range(parts + 1))


@pytest.mark.parametrize(("retry_after", "caught_up"), [(0.1, True), (600.0, False)])
async def test_what_comes_waits_for_its_past_only_if_that_is_near(retry_after: float, *, caught_up: bool) -> None:
    history = History({"a": [CallFailed(Fate.TOO_FAST, "x", retry_after=retry_after)]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 5)])
    async with asyncio.timeout(60):
        await backlog.catch_up("a")
        await backlog.catch_up("nowhere")
    assert (backlog.mark("a") is None) == caught_up


async def test_what_a_library_raises_is_a_failure_like_others_and_disturbs_nobody_who_waits() -> None:
    history = History({"a": [KeyError("x"), RuntimeError("y")]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 3), ("b", 2)])
    await backlog.catch_up("a", 0.0)
    assert backlog.mark("a") == 3, "it stays behind"
    await until_empty(backlog)
    assert sorted(history.read) == [("a", 3), ("b", 2)]


def test_a_place_that_is_behind_stores_its_mark_until_its_history_is_read() -> None:
    async def read(_: str, __: Behind) -> bool:
        return True

    backlog = Backlog("bot", read, SystemClock())
    assert backlog.cursor("room", 5, late=False) == 5
    backlog.saw("room", 9)
    assert backlog.cursor("room", 5, late=False) == 9, "never back"
    backlog.add([("room", 9)])
    assert backlog.cursor("room", 40, late=False) == 9, "what came by itself is ahead of what is to be read"
    assert backlog.cursor("room", 12, late=True) == 12
    backlog.stored("room", 40, late=False)
    assert backlog.mark("room") == 9
    backlog.stored("room", 12, late=True)
    assert backlog.mark("room") == 12
    backlog.stored("room", 10, late=True)
    assert (backlog.mark("room"), backlog.seen["room"]) == (12, 40)


async def test_who_comes_while_a_pause_is_long_does_not_wait_for_any_of_it() -> None:
    history = History({"a": [CallFailed(Fate.TOO_FAST, "x", retry_after=600.0)]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 5)])
    async with asyncio.timeout(20):
        await backlog.catch_up("a", 300.0)


async def test_what_is_added_is_read_by_who_had_nothing_to_read() -> None:
    history = History()
    backlog = Backlog("test/1", history, SystemClock())
    reading = asyncio.create_task(backlog.run())
    await asyncio.sleep(0.05)
    backlog.add([("a", 5)])
    try:
        async with asyncio.timeout(20):
            while not history.read:
                await asyncio.sleep(0.01)
    finally:
        reading.cancel()


async def test_a_gap_while_a_place_is_read_has_it_read_once_more() -> None:
    """What its page held was said before that gap: what was said in it would be found by nobody."""
    places, said, stored = ["a"], {"a": [1, 2]}, list[int]()
    reading, lost = asyncio.Event(), asyncio.Event()

    async def read(place: str, behind: Behind) -> bool:
        page = [number for number in said[place] if number > behind.mark]
        reading.set()
        await lost.wait()  # what is on it waits to be stored
        for number in page:
            stored.append(number)
            backlog.stored(place, number, late=True)
        return True

    backlog = Backlog("test/1", read, SystemClock())
    backlog.add([(place, 0) for place in places])
    task = asyncio.create_task(backlog.run())
    async with asyncio.timeout(10):
        await reading.wait()
        said["a"].append(3)  # while nobody listens
        backlog.add([("a", 2)])  # a connection is there again
        lost.set()
        while len(backlog):
            await asyncio.sleep(0.01)
    task.cancel()
    assert stored == [1, 2, 3]


async def test_who_was_waited_for_and_can_never_be_read_hurries_nobody_later() -> None:
    history = History({"a": [CallFailed(Fate.REFUSED, "x")]})
    backlog = Backlog("test/1", history, SystemClock())
    backlog.add([("a", 5)])
    assert backlog.hurry("a", 1.0)
    await backlog.catch_up("a")
    assert not len(backlog)
    backlog.add([("a", 5)], leisure=1.0)  # we may read there again
    backlog.add([("b", 1), ("c", 2)])
    await until_empty(backlog)
    assert history.read == [("c", 2), ("b", 1), ("a", 5)]


async def test_a_pause_that_was_asked_for_is_not_ended_by_a_shorter_one() -> None:
    """Two places may be asked for at once, and the later answer may name less."""
    backlog = Backlog("test/1", History(), SystemClock())
    backlog.add([("a", 2), ("b", 1), ("c", 1)])
    backlog._failed("a", CallFailed(Fate.TOO_FAST, "x", retry_after=600.0))
    backlog._failed("b", CallFailed(Fate.TOO_FAST, "x", retry_after=1.0))
    assert not backlog.hurry("c", 590.0), "all places wait for the whole of it"
    assert backlog.hurry("c", 601.0)


@given(st.lists(st.integers(0, 9) | st.none(), max_size=9))
def test_the_messages_of_a_page_come_the_oldest_first_whatever_order_its_platform_likes(page: list[int | None]) -> None:
    odd: list[Exception] = []
    found = numbered(
        [{"id": one} for one in page], lambda one: int(one["id"] if one["id"] is not None else ""), odd.append
    )
    assert [number for number, _ in found] == sorted(one for one in page if one is not None)
    assert all(one["id"] == number for number, one in found)
    assert len(odd) == page.count(None)
