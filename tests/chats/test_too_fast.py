"""Messages that come too fast are kept and run when their time comes, once, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.people import access, members
from gateway.queues import held, slots
from tests.chats.harness import answer, quiet, running, texts
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness
from tests.fakes.telegram import User

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


async def test_who_is_too_fast_is_told_so_in_the_language_that_they_chose(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MINUTE_MS", 60_000)
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        telegram.command(chat, ada, "language", "de")
        await answer(telegram, chat, "Deutsch")
        telegram.say(chat, ada, "say two")
        await answer(telegram, chat, "two")
        await quiet(telegram, chat)  # nothing of hers runs or waits
        telegram.say(chat, ada, "say three")
        await answer(telegram, chat, "Das war mir zu schnell.")


async def test_the_pictures_of_an_album_count_as_one_message(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MINUTE_MS", 60_000)  # nothing is taken up here, so a slow machine may take its time
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        telegram.album(chat, ada, [bytes([number]) * 20 for number in range(5)], "say album")
        telegram.say(chat, ada, "say two")
        await answer(telegram, chat, "two")
        telegram.say(chat, ada, "say three")
        await answer(telegram, chat, KEPT)
        assert sum("fast" in one for one in texts(telegram, chat)) == 1


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


async def test_what_is_delivered_again_while_it_waits_is_not_run_before_its_time(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram, **FEW):
        for word in ("one", "two", "three"):
            telegram.say(chat, ada, f"say {word}")
        await answer(telegram, chat, KEPT)
        telegram.redeliver()
        await quiet(telegram, chat, 2)
        assert "three" not in texts(telegram, chat)
        await answer(telegram, chat, "three", 20)
        await quiet(telegram, chat)
        assert texts(telegram, chat).count("three") == 1


FULL = {"OUTSPOKEN_SESSION__QUEUE_LIMIT": "1", "OUTSPOKEN_MODEL__STALL_SECONDS": "60"}


async def _crowd(telegram: TelegramHarness) -> tuple[User, Where]:
    """One is answered, one waits, and for one there is no room."""
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    telegram.say(chat, ada, "hold on")
    await asyncio.wait_for(telegram.model.holding.wait(), 60)
    for word in ("one", "two"):
        telegram.say(chat, ada, f"say {word}")
    await answer(telegram, chat, "This one is kept")
    return ada, chat


async def test_what_waits_for_room_is_answered_by_the_next_process(telegram: TelegramHarness) -> None:
    async with running(telegram, **FULL):
        _, chat = await _crowd(telegram)
    telegram.model.release()
    async with running(telegram, **FULL):
        await answer(telegram, chat, "two", 20)
        await quiet(telegram, chat)
        assert [one for one in texts(telegram, chat) if one in ("one", "two")] == ["one", "two"]


async def test_more_than_so_many_without_room_are_refused_in_words_and_stop_all_takes_them_out(
    telegram: TelegramHarness,
) -> None:
    async with running(telegram, **FULL):
        ada, chat = await _crowd(telegram)
        for number in range(members.HELD_MOST):
            telegram.say(chat, ada, f"say more {number}")
        await answer(telegram, chat, f"{members.HELD_MOST + 1} messages are already waiting here. It is not kept")
        assert sum("This one is kept" in one for one in texts(telegram, chat)) == members.HELD_MOST
        telegram.command(chat, ada, "stop all")
        await answer(telegram, chat, f"{members.HELD_MOST + 1} waiting messages were taken out of the queue.")
        await quiet(telegram, chat, 3)
        assert not [one for one in texts(telegram, chat) if one == "two" or one.startswith("more")]


async def test_stop_alone_leaves_what_waits_for_room(telegram: TelegramHarness) -> None:
    async with running(telegram, **FULL):
        ada, chat = await _crowd(telegram)
        telegram.command(chat, ada, "stop")
        await answer(telegram, chat, "two", 20)


async def test_words_of_commands_for_which_there_is_no_room_are_kept_in_their_order(telegram: TelegramHarness) -> None:
    async with running(telegram, **FULL):
        ada, chat = await _crowd(telegram)
        telegram.command(chat, ada, "queue", "say three")
        await telegram.until(lambda: sum("This one is kept" in one for one in texts(telegram, chat)) == 2)
        telegram.command(chat, ada, "new", "say four")
        await answer(telegram, chat, "four", 20)
        await quiet(telegram, chat)
        said = ("one", "two", "three", "four")
        assert [one for one in texts(telegram, chat) if one in said] == [*said]
        assert not [one for one in texts(telegram, chat) if "not kept" in one]


async def test_a_new_conversation_whose_words_are_refused_says_both(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "HELD_MOST", 0)
    monkeypatch.setattr(slots, "RECOUNT_SECONDS", 0.0)  # who is answered is no longer counted among those who wait
    ada, bob = telegram.person("Ada"), telegram.person("Bob")
    here, there = telegram.private(ada), telegram.private(bob)
    async with running(telegram, **FULL, OUTSPOKEN_SESSION__OPEN_TURNS="1", OUTSPOKEN_SESSION__WAITING_LIMIT="1"):
        telegram.say(there, bob, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        telegram.say(there, bob, "say later")
        await answer(telegram, there, "one answer before this one")
        telegram.command(here, ada, "new", "say four")
        told = await answer(telegram, here, "A new conversation.")
        assert "Too many people are waiting for an answer just now, so your message was not taken." in told.text


def test_so_many_wait_for_their_time_and_each_at_its_own() -> None:
    recent, found = access.Recent(), list[int]()
    for _ in range(2):
        recent, early = recent.with_one(0, 2)
        assert not early
    for _ in range(4):
        recent, later = recent.with_one_later(1_000, 2, 3)
        found.append(later)
    assert found == [59_000, 59_000, 119_000, 0]
