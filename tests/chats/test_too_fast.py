"""Messages that come too fast are kept and run when their time comes, once, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.people import access
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness

KEPT = "Your message is kept, and I take it up in"
FEW = {"OUTSPOKEN_TELEGRAM__PER_MINUTE": "2"}


@pytest_asyncio.fixture
async def telegram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[TelegramHarness]:
    monkeypatch.setattr(access, "MINUTE_MS", 5_000)
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def test_what_came_too_fast_is_told_once_and_answered_when_its_time_comes(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        for word in ("one", "two", "three"):
            telegram.say(chat, ada, f"say {word}")
        await answer(telegram, chat, f"{KEPT} 5 s; /stop takes it out.")
        assert "three" not in texts(telegram, chat)
        await answer(telegram, chat, "three", 20)
        await quiet(telegram, chat)
        shown = texts(telegram, chat)
        assert shown.count("three") == 1
        assert sum(KEPT in one for one in shown) == 1


async def test_stop_takes_out_what_waits_for_its_time(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        for word in ("one", "two", "three"):
            telegram.say(chat, ada, f"say {word}")
        await answer(telegram, chat, KEPT)
        telegram.command(chat, ada, "stop")  # which nobody is too fast for
        await answer(telegram, chat, "1 waiting message was taken out of the queue.")
        await quiet(telegram, chat, 6)
        assert "three" not in texts(telegram, chat)


async def test_what_waits_for_its_time_is_answered_by_the_next_process(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        for word in ("one", "two", "three"):
            telegram.say(chat, ada, f"say {word}")
        await answer(telegram, chat, KEPT)
    async with running(telegram, **FEW):
        await answer(telegram, chat, "three", 20)
        await quiet(telegram, chat)
        assert texts(telegram, chat).count("three") == 1


async def test_the_new_words_are_answered_of_what_waits_and_what_is_beyond_is_refused(
    telegram: TelegramHarness,
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        said = [telegram.say(chat, ada, f"say {word}") for word in ("one", "two", "three")]
        await answer(telegram, chat, KEPT)
        telegram.edit(chat, said[-1], "say otherwise")
        await answer(telegram, chat, "otherwise", 20)
        await quiet(telegram, chat)
        assert "three" not in texts(telegram, chat)


def test_so_many_wait_for_their_time_and_each_at_its_own() -> None:
    recent, found = access.Recent(), list[int]()
    for _ in range(2):
        recent, early = recent.with_one(0, 2)
        assert not early
    for _ in range(4):
        recent, later = recent.with_one_later(1_000, 2, 3)
        found.append(later)
    assert found == [59_000, 59_000, 119_000, 0]
