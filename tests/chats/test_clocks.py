"""A wall clock that somebody sets while the gateway runs: what lasts within a process goes by the other clock."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent_core.journal.replay import replay
from agent_core.ports import SystemClock
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness

HOUR, MONTH = 3_600_000, 30 * 24 * 3_600_000
FULL = 4_096
"""Characters of a message that may be the first piece of a longer one."""


class SetClock(SystemClock):
    """The machine's clocks, of which one was set."""

    def __init__(self) -> None:
        self.by = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.by


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


@pytest.mark.parametrize("by", [-HOUR, MONTH])
async def test_an_answer_comes_though_the_clock_is_set_while_it_is_wanted(telegram: TelegramHarness, by: int) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    clock = telegram.clock = SetClock()
    async with running(telegram):
        telegram.say(chat, ada, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        telegram.fail_sends("503", "503", "ok")
        clock.by = by
        telegram.model.release()
        await answer(telegram, chat, "on end", 20)
        telegram.say(chat, ada, "say next")
        await answer(telegram, chat, "next", 20)


@pytest.mark.parametrize("by", [-HOUR, MONTH])
async def test_a_piece_that_waits_for_the_next_one_is_answered_though_the_clock_is_set(
    telegram: TelegramHarness, by: int
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    clock = telegram.clock = SetClock()
    async with running(telegram):
        telegram.say(chat, ada, "say short " + "x" * (FULL - 10))
        await asyncio.sleep(0.3)
        clock.by = by
        await answer(telegram, chat, "short", 20)
        await quiet(telegram, chat)
        assert texts(telegram, chat)


@pytest.mark.parametrize("by", [-HOUR // 10, -HOUR])
async def test_a_turn_that_comes_to_a_clock_behind_lasts_no_less_than_nothing(
    telegram: TelegramHarness, by: int
) -> None:
    """As where it changes between gateways whose clocks differ."""
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    clock = telegram.clock = SetClock()
    async with running(telegram, OUTSPOKEN_SERVER__DRAIN_SECONDS="1"):
        telegram.say(chat, ada, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        await asyncio.sleep(1.2)  # what has come is stored
    clock.by = by
    telegram.model.release()
    with capture_logs() as logs:
        async with running(telegram) as up:
            await answer(telegram, chat, "on end", 30)
            (ended,) = [line for line in logs if line["event"] == "turn.ended"]
            again = replay(await up.hub.accepting.store.turns.journal(ended["turn"]))
    assert not again.differences, "and is judged again as it was"
    assert 1 < ended["seconds"] < 60
    assert ended["first_content_seconds"] >= 0
    database = sqlite3.connect(next(telegram.folder.rglob("*.db")))
    ((opened, closed),) = database.execute("SELECT opened_at, closed_at FROM turns").fetchall()
    kinds = database.execute("SELECT kind, at FROM journal ORDER BY id").fetchall()
    database.close()
    assert opened < closed < opened + 60_000
    at = [at for kind, at in kinds if kind != "TakenOver"]
    assert max(at) - min(at) < 60_000
    assert "TakenOver" in dict(kinds)


@pytest.mark.parametrize("by", [-3 * HOUR, 3 * HOUR])
async def test_a_turn_goes_on_at_a_machine_whose_clock_stands_otherwise(
    telegram: TelegramHarness, postgres: str, by: int
) -> None:
    """It ended as interrupted, because its time seemed to be up."""
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    clock = telegram.clock = SetClock()
    place = {"OUTSPOKEN_STORAGE__URL": postgres}
    async with running(telegram, OUTSPOKEN_SERVER__DRAIN_SECONDS="1", **place):
        telegram.say(chat, ada, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
    clock.by = by
    telegram.model.release()
    with capture_logs() as logs:
        async with running(telegram, **place):
            await answer(telegram, chat, "on end", 30)
    (ended,) = [line for line in logs if line["event"] == "turn.ended"]
    assert (ended["exit"], ended["seconds"] < 60) == ("answered", True)
