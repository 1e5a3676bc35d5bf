"""Rows that cannot be read: their conversation is set aside with words, and everybody else goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from adapters.terminal.operator import status_lines
from agent_core.store.store import Damaged
from gateway.setaside import takeup
from gateway.setaside.unclaimed import Unclaimed
from tests.chats.harness import Leaves, answer, running, status, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.fakes.common import Pause
from tests.storage.harm import asked, changed, damage, database_of

SET_ASIDE = "cannot be read any more, because the storage is damaged"


async def asides_of(url: str) -> list[dict[str, Any]]:
    return (await status(url))["set_aside"]


async def talked(telegram: TelegramHarness, place: Any, person: Any, words: str) -> None:
    telegram.say(place, person, f"say {words}")
    await answer(telegram, place, words)


async def test_a_conversation_that_cannot_be_read_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        anna, ben = telegram.person("Anna"), telegram.person("Ben")
        hers, his = telegram.private(anna), telegram.private(ben)
        async with running(telegram):
            for person, place, fruit in ((anna, hers, "apricots"), (ben, his, "plums")):
                for number in range(3):  # enough for pages of their own
                    await talked(telegram, place, person, f"{fruit}{number}")
        database = database_of(tmp_path)
        (session,) = (
            row[0] for row in asked(database, f"select session from sessions where key like '%/{hers.chat.id}/%'")
        )
        assert damage(database, "journal", "apricots1")
        async with running(telegram, Leaves.DAMAGED) as up:
            telegram.say(hers, anna, "say cherries")
            await answer(telegram, hers, SET_ASIDE)
            await talked(telegram, his, ben, "dates")
            await talked(telegram, hers, anna, "elderberries")
            (aside,) = await asides_of(up.url)
            assert aside["session"] == session
        async with running(telegram, Leaves.DAMAGED) as up:  # it is known, and nobody is told anew
            await talked(telegram, hers, anna, "figs")
            assert [one["session"] for one in await asides_of(up.url)] == [session]
        assert sum(SET_ASIDE in words for words in texts(telegram, hers)) == 1
        assert "cherries" not in " ".join(texts(telegram, hers))


async def test_a_message_whose_body_cannot_be_read_is_told_so_and_holds_up_nobody(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        anna, ben = telegram.person("Anna"), telegram.person("Ben")
        hers, his = telegram.private(anna), telegram.private(ben)
        patient = {"OUTSPOKEN_MODEL__STALL_SECONDS": "60", "OUTSPOKEN_SERVER__DRAIN_SECONDS": "1"}
        async with running(telegram, **patient):
            await talked(telegram, hers, anna, "apricots")
            telegram.say(hers, anna, "hold on")
            await asyncio.wait_for(telegram.model.holding.wait(), 60)
            telegram.say(hers, anna, "say waiting")
            await telegram.until(lambda: asked(database_of(tmp_path), "select 1 from inbox where state = 'new'") != [])
        telegram.model.release()
        assert changed(database_of(tmp_path), "update inbox set body = x'00ff00' where state = 'new'") == 1
        async with running(telegram, Leaves.DAMAGED) as up:
            await talked(telegram, his, ben, "dates")
            await answer(telegram, hers, "what was stored of it cannot be read")
            await talked(telegram, hers, anna, "elderberries")
            assert await asides_of(up.url) == []  # the conversation itself is sound


@pytest.mark.parametrize("what", ["deliveries", "journal"])
async def test_damage_in_what_all_need_is_told_everywhere_and_no_chat_is_left_without_a_word(
    tmp_path: Path, what: str
) -> None:
    async with telegram_harness(tmp_path) as telegram:
        people = [telegram.person(name) for name in ("Anna", "Ben", "Cleo", "Dora")]
        places = [telegram.private(person) for person in people]
        async with running(telegram, Leaves.DAMAGED) as up:
            for place, person in zip(places, people, strict=True):
                await talked(telegram, place, person, "apricots")
            stored = "select 1 from deliveries where state = 'sent'"  # else the damage meets a send whose outcome is not stored
            await telegram.until(lambda: len(asked(database_of(tmp_path), stored)) >= len(places))
            assert damage(database_of(tmp_path), what)
            before = [len(texts(telegram, place)) for place in places]
            for place, person in zip(places, people, strict=True):
                telegram.say(place, person, "say cherries")
            for number, place in enumerate(places):
                await telegram.until(lambda n=number, p=place: len(texts(telegram, p)) > before[n], 30)
                assert "damaged" in texts(telegram, place)[-1]
            telegram.say(places[0], people[0], "say plums")  # where journals were read, the new one meets it by now
            async with aiohttp.ClientSession() as client, asyncio.timeout(60):
                while True:
                    async with client.get(f"{up.url}/readyz") as found:
                        if found.status == 503:
                            assert "restore a backup" in await found.text()
                            break
                    await asyncio.sleep(0.1)
                asked_for = {"messages": [{"role": "user", "content": "say dates"}]}
                async with client.post(f"{up.url}/v1/chat/completions", json=asked_for) as found:
                    assert (found.status, "database of the gateway is damaged" in await found.text()) == (503, True)
            seen = "\n".join(status_lines(await status(up.url)))
            assert "no message is taken" in seen
            asides = len(await asides_of(up.url))
            telegram.say(places[0], people[0], "say figs")  # nobody is set aside for it any more
            telegram.command(places[1], people[1], "new")
            await asyncio.sleep(2)
            assert len(await asides_of(up.url)) == asides


async def test_a_message_that_waits_to_be_taken_up_when_damage_is_found_to_be_everybodys_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper found it just before its queue had it: it is the keeper's to take up, who takes nothing up now."""
    async with telegram_harness(tmp_path) as telegram:
        anna = telegram.person("Anna")
        hers = telegram.private(anna)
        async with running(telegram, Leaves.DAMAGED) as up:
            await talked(telegram, hers, anna, "apricots")
            aside, queues = up.hub.aside, up.hub.queues
            with monkeypatch.context() as slow:
                slow.setattr(takeup, "OURS_SECONDS", 600.0)
                slow.setattr(Unclaimed, "find", _found)
                slow.setattr(Unclaimed, "holds", _holds)
                telegram.say(hers, anna, "say cherries")
                await telegram.until(lambda: [one for one in queues.blocked() if one.waiting] != [])
                for chat in ("telegram/1/1/", "telegram/1/2/", "telegram/1/3/"):
                    aside.damage.meet(chat, Damaged("planted"), usable=False)
                await answer(telegram, hers, "What you sent is kept, and goes on when that is mended")
                await asyncio.sleep(2)  # so long that the keeper has looked again
            aside.sound()
            await answer(telegram, hers, "cherries")
            told = " ".join(texts(telegram, hers))
            assert (told.count("is kept, and goes on"), told.count("cherries")) == (1, 1)


def _holds(self: Unclaimed, session: str) -> bool:
    del self, session
    return True


async def _found(self: Unclaimed, session: str, before: int = 0) -> bool:
    """The keeper has just found something of it."""
    del self, session, before
    return True


@pytest.mark.parametrize("acted", [False, True], ids=["before the platform has acted", "behind it"])
async def test_damage_while_a_send_is_on_its_way_is_told_once_and_not_tried_again_for_ever(
    tmp_path: Path, acted: bool
) -> None:
    async with telegram_harness(tmp_path) as telegram:
        anna = telegram.person("Anna")
        hers = telegram.private(anna)
        async with running(telegram, Leaves.DAMAGED) as up:
            await talked(telegram, hers, anna, "apricots")
            pause = Pause(after=acted)
            telegram.fake.script("sendMessage", pause, chat=hers.chat)
            telegram.say(hers, anna, "say cherries")
            await asyncio.wait_for(pause.reached.wait(), 60)
            stored = "select 1 from deliveries where state = 'sending'"
            await telegram.until(lambda: asked(database_of(tmp_path), stored) != [])
            assert damage(database_of(tmp_path), "deliveries")
            with capture_logs() as logs:
                pause.release()
                await telegram.until(lambda: "storage of the gateway is damaged" in " ".join(texts(telegram, hers)), 40)
                await asyncio.sleep(12)  # so long that who tries every five seconds has tried again
            tried = [line for line in logs if line["event"] == "surface.storage_unavailable"]
            assert len(tried) == 1, tried
            assert sum("storage of the gateway is damaged" in words for words in texts(telegram, hers)) == 1
            assert "cherries" in " ".join(texts(telegram, hers))
            async with aiohttp.ClientSession() as client, asyncio.timeout(60):
                while True:  # what was met is a reason to look, and what is found is said
                    async with client.get(f"{up.url}/readyz") as found:
                        if "damaged" in await found.text():
                            break
                    await asyncio.sleep(0.1)


async def test_a_turn_whose_message_cannot_be_read_ends_in_its_chat_and_nothing_says_that_it_goes_on(
    tmp_path: Path,
) -> None:
    async with telegram_harness(tmp_path) as telegram:
        anna = telegram.person("Anna")
        hers = telegram.private(anna)
        async with running(telegram, OUTSPOKEN_MODEL__STALL_SECONDS="60", OUTSPOKEN_SERVER__DRAIN_SECONDS="1"):
            telegram.say(hers, anna, "hold on")
            await asyncio.wait_for(telegram.model.holding.wait(), 60)
        telegram.model.release()
        assert changed(database_of(tmp_path), "update inbox set body = x'00ff00' where state = 'taken'") == 1
        async with running(telegram, Leaves.DAMAGED):
            await answer(telegram, hers, "The task is not finished")
            await telegram.until(lambda: not any("goes on afterwards" in words for words in texts(telegram, hers)))
