"""How the alerter goes about it: what could not be told is kept and tried again in its time, what is told is told to programs as well, and what others
have decided to tell comes once. Beside a storage and a chat that are made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from agent_core.limits.budgets import Amount, BudgetRules, Level
from agent_core.limits.spend import Budget
from agent_core.store.store import StorageUnavailable
from gateway.limits.alerts import HOUR_MS, AlertLimits, AlertRules, Message
from gateway.observe.alerting import (
    LOG_SAVED,
    LOOK_SECONDS,
    NOT_TOLD_SECONDS,
    SLOW_LOOK_SECONDS,
    Alerter,
    Announcements,
)
from tests.store.support import FakeClock

RULES = AlertRules(per_hour=1_000, settle_ms=1)
BUDGETS = BudgetRules(limits={Budget.DAY: Amount(1_000)}, warn_share=0.8)


class Beside:
    """What an alerter looks at, and those whom it tells."""

    def __init__(self, *, chat: bool = True, budgets: BudgetRules | None = None) -> None:
        self.clock, self.reachable, self.hooked = FakeClock(), True, True
        self.said: list[tuple[str, str]] = []
        self.tried, self.programs = 0, list[Message]()
        self.asked: list[float] = []
        """Within how many seconds it has to be known that the storage works, each time that is asked."""
        self.levels: list[Mapping[tuple[str, int], Level] | StorageUnavailable] = []
        self.laws = ""
        self.watch = SimpleNamespace(words="", astray=False, free_bytes=None, look=self._look, works=self._works)
        self.store = SimpleNamespace(logs_saved=0, node=4, budgets=SimpleNamespace(levels=self._levels))
        self.announced = Announcements()
        self.alerter = Alerter(
            AlertLimits(), RULES, cast("Any", self.store), cast("Any", self.watch), self.announced, self.clock, tuple, dict, budgets,
            self._say if chat else None, laws_words=lambda: self.laws, hooks=self._program,
        )  # fmt: skip

    async def _look(self) -> None:
        """It is looked at."""

    async def _works(self, seconds: float) -> bool:
        self.asked.append(seconds)
        return True

    async def _levels(self, keys: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], Level]:
        del keys
        found = self.levels.pop(0) if self.levels else dict[tuple[str, int], Level]()
        if isinstance(found, StorageUnavailable):
            raise found
        return found

    async def _say(self, key: str, words: str) -> bool:
        self.tried += 1
        if self.reachable:
            self.said.append((key, words))
        return self.reachable

    async def _program(self, said: Message) -> None:
        if not self.hooked:
            raise StorageUnavailable("away")
        self.programs.append(said)

    async def look(self, seconds: float = LOOK_SECONDS) -> None:
        self.clock.now += round(seconds * 1000)
        await self.alerter.look()


async def test_a_chat_that_cannot_be_reached_is_tried_again_in_its_time_and_then_told_all() -> None:
    beside = Beside()
    beside.reachable = False
    beside.announced.announce("incident:1", "The first.")
    await beside.look()
    assert beside.tried == 1
    beside.announced.announce("incident:2", "The second.")
    for _ in range(round(NOT_TOLD_SECONDS / LOOK_SECONDS) - 1):
        await beside.look()
    assert beside.tried == 1, "it is left alone meanwhile"
    beside.reachable = True
    await beside.look()
    assert [words for _, words in beside.said] == ["The first.", "The second."]
    for _ in range(5):
        await beside.look()
    assert len(beside.said) == 2


async def test_what_a_program_is_not_told_holds_up_nobody_and_without_a_chat_the_log_alone_is_told() -> None:
    beside = Beside(chat=False)
    beside.hooked = False
    beside.announced.announce("incident:1", "The first.")
    with capture_logs() as lines:
        await beside.look()
        beside.hooked = True
        beside.laws = "A law is broken."
        await beside.look()
        beside.laws = ""
        await beside.look()
        await beside.look()
    assert [(line["log_level"], line["in_chat"]) for line in lines] == [
        ("warning", False), ("warning", False), ("info", False),
    ]  # fmt: skip
    assert [line.closes for said in beside.programs for line in said.lines] == [False, True]


async def test_the_same_is_announced_once_as_long_as_it_waits_and_is_said_under_its_own_key() -> None:
    beside = Beside()
    for key in ("incident:1", "incident:1", "incident:2"):
        beside.announced.announce(key, f"News of {key}.")
    await beside.look()
    assert beside.said == [(key, f"News of {key}.") for key in ("incident:1", "incident:2")]


async def test_a_log_that_was_taken_away_is_told_each_time_and_no_more_often() -> None:
    beside = Beside()
    for saved in (0, 1, 1, 2, 2):
        beside.store.logs_saved = saved
        await beside.look()
    assert [words for _, words in beside.said] == [LOG_SAVED] * 2


@pytest.mark.parametrize(("words", "astray"), [("", False), ("locked", False), ("", True)])
async def test_a_storage_that_nobody_writes_to_is_tried_once_a_minute_and_one_that_is_away_at_each_look(
    words: str, *, astray: bool
) -> None:
    beside = Beside()
    beside.watch.words, beside.watch.astray = words, astray
    looks = round(3 * SLOW_LOOK_SECONDS / LOOK_SECONDS)
    for _ in range(looks):
        await beside.look()
    slow = [seconds for seconds in beside.asked if seconds == SLOW_LOOK_SECONDS]
    soon = [seconds for seconds in beside.asked if seconds < LOOK_SECONDS]
    assert len(slow) == 3
    assert len(soon) == (looks if words or astray else 0)


async def test_how_the_budgets_stand_is_as_of_the_last_look_that_succeeded() -> None:
    beside = Beside(budgets=BUDGETS)
    await beside.alerter.read_pots()
    ((pot, level),) = beside.alerter.pots
    assert (pot.budget, level) == (Budget.DAY, Level())
    full = Level(spent=Amount(1_000))
    beside.levels = [{pot.key: full}, StorageUnavailable("away")]
    await beside.look()
    assert beside.alerter.pots == ((pot, full),)
    assert "no model is asked" in beside.said[0][1]
    await beside.look(SLOW_LOOK_SECONDS)
    assert beside.alerter.pots == ((pot, full),), "as far as anybody knows"
    assert len(beside.said) == 1


async def test_while_nothing_can_be_stored_nothing_is_said() -> None:
    beside = Beside()
    beside.watch.words = "locked"
    beside.announced.announce("incident:1", "The first.")
    for _ in range(20):
        await beside.look()
    assert beside.tried == 0
    beside.watch.words = ""
    await beside.look()
    assert beside.said[0][1] == "The first."


async def test_what_comes_again_in_the_next_process_is_told_again() -> None:
    """The chat says once what is said under one key, also over a restart."""
    keys: list[str] = []
    for process in range(2):
        beside = Beside()
        beside.clock.now += process * 10_000
        beside.store.logs_saved = 1
        await beside.look()
        keys += [key for key, words in beside.said if words == LOG_SAVED]
    assert len(set(keys)) == 2


async def test_each_time_that_something_had_no_room_until_it_was_over_that_is_said() -> None:
    beside = Beside()
    beside.alerter.rules = AlertRules(per_hour=1, settle_ms=1)
    for number in range(2):
        beside.announced.announce(f"incident:{number}", "There is room for this alone.")
        await beside.look()
        beside.laws = "A law is broken."
        await beside.look()
        beside.laws = ""
        await beside.look()
        await beside.look(HOUR_MS / 1000)
        await beside.look(HOUR_MS / 1000)
    counted = [(key, words) for key, words in beside.said if words.startswith("… and 1 more")]
    assert len(counted) == 2
    assert len({key for key, _ in counted}) == 2, "what was said under a key is not said again"
