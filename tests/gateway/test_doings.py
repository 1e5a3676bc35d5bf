"""What the agent does in each thread, where a platform shows it: the latest is shown, a failure is waited out, and only who fails in a row is left alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.chat import CallFailed, ChatAddress, Doing, Fate
from gateway.delivery.cosmetics import PAUSE_SECONDS, TROUBLES, Doings
from tests.store.support import FakeClock

WELL, LATER, NEVER = "well", "later", "never"
ADA = "7"


class Port:
    """Shows it, or fails in the way whose turn it is."""

    def __init__(self, outcomes: Sequence[str], retry_after: float) -> None:
        self.outcomes, self.retry_after = [*outcomes], retry_after
        self.asked: list[tuple[str, Doing, str]] = []

    async def doing(self, address: ChatAddress, thread: str, doing: Doing, person: str) -> None:
        del address
        self.asked.append((thread, doing, person))
        outcome = self.outcomes.pop(0) if self.outcomes else WELL
        if outcome != WELL:
            fate = Fate.REFUSED if outcome == NEVER else Fate.TOO_FAST
            raise CallFailed(fate, "no", retry_after=self.retry_after)


class Told:
    """One chat."""

    def __init__(self, outcomes: Sequence[str] = (), retry_after: float = 0.0) -> None:
        self.port, self.clock = Port(outcomes, retry_after), FakeClock()
        self.rang = asyncio.Event()
        self.doings = Doings(ChatAddress("slack", "T", "C"), cast("Any", self.port), self.clock, self.rang.set)

    async def show(self, running: dict[str, Doing], *, last_word_waits: bool = False) -> bool:
        """Whether there was a call; it is over."""
        before = len(self.port.asked)
        self.rang.clear()
        self.doings.show({thread: (one, ADA) for thread, one in running.items()}, last_word_waits=last_word_waits)
        await asyncio.sleep(0)
        if len(self.port.asked) > before:
            await asyncio.wait_for(self.rang.wait(), 5)
            return True
        return False


async def tried(outcomes: Sequence[str], retry_after: float) -> None:
    told, failed = Told(outcomes, retry_after), 0
    news, shown = Doing.WORKING, Doing.WAITING
    for outcome in outcomes:
        assert await told.show({"1": news})
        if outcome == WELL:
            news, shown = shown, news
        failed = 0 if outcome == WELL else failed + 1
        assert told.doings.refused is (outcome == NEVER or failed >= TROUBLES)
        if told.doings.refused:
            told.clock.now += 10**9
            assert not await told.show({"1": news})
            return
        if outcome == LATER:
            told.clock.now += round(max(retry_after, PAUSE_SECONDS) * 1000) - 1
            assert not await told.show({"1": news}), "the pause is not over"
            told.clock.now += 1


@given(st.lists(st.sampled_from([WELL, LATER, LATER, NEVER]), max_size=12), st.sampled_from([0.0, 60.0]))
@example([LATER] * (TROUBLES - 1) + [WELL] + [LATER] * (TROUBLES - 1), 0.0)
@example([LATER] * TROUBLES, 0.0)
@example([LATER, WELL] * TROUBLES, 60.0)
def test_a_failure_is_waited_out_and_only_so_many_in_a_row_end_it(outcomes: list[str], retry_after: float) -> None:
    asyncio.run(tried(outcomes, retry_after))


async def test_what_changed_is_shown_once_and_what_is_over_last_and_after_the_last_word() -> None:
    told = Told()
    assert await told.show({"1": Doing.WORKING})
    assert not await told.show({"1": Doing.WORKING}), "it is shown"
    assert await told.show({"1": Doing.WAITING, "2": Doing.WORKING})
    assert await told.show({"1": Doing.WAITING, "2": Doing.WORKING})
    assert not await told.show({"2": Doing.WORKING}, last_word_waits=True)
    assert await told.show({"2": Doing.WORKING})
    assert not await told.show({"2": Doing.WORKING}), "what is over is told once"
    assert told.port.asked == [
        ("1", Doing.WORKING, ADA),
        ("1", Doing.WAITING, ADA),
        ("2", Doing.WORKING, ADA),
        ("1", Doing.READY, ADA),
    ]


@pytest.mark.parametrize("outcomes", [[LATER, WELL], [WELL]])
async def test_after_a_failure_the_same_is_shown(outcomes: list[str]) -> None:
    told = Told(outcomes)
    for _ in outcomes:
        assert await told.show({"1": Doing.WORKING})
        told.clock.now += 60_000
    assert not await told.show({"1": Doing.WORKING})
