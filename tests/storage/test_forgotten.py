"""Somebody is forgotten while something of theirs runs and waits: they are told so in their chat, in true words, and what they write then is answered."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from agent_core.failures.notices import NotStarted
from tests.chats.harness import answer, running, texts
from tests.chats.telegram_harness import telegram_harness
from tests.storage.harm import asked, database_of

FORGOTTEN = "somebody asked that you be forgotten"


async def forget(url: str, account: str, person: str) -> None:
    body = {"verb": "forget", "who": f"{account}/{person}"}
    async with aiohttp.ClientSession() as http, http.post(f"{url}/api/access", json=body) as response:
        assert response.status == 200, await response.text()


async def test_whoever_is_forgotten_while_they_wait_is_told_so_and_is_answered_then(tmp_path: Path) -> None:
    patient = {"OUTSPOKEN_MODEL__STALL_SECONDS": "60"}
    async with telegram_harness(tmp_path) as telegram:
        anna, ben = telegram.person("Anna"), telegram.person("Ben")
        hers, group = telegram.private(anna), telegram.group(anna, ben)
        async with running(telegram, **patient) as up:
            telegram.say(hers, anna, "hold on")
            await asyncio.wait_for(telegram.model.holding.wait(), 60)
            telegram.say(hers, anna, "say quinces")
            telegram.say(group, ben, "say medlars", mention=True)
            await answer(telegram, group, "medlars")
            await telegram.until(lambda: asked(database_of(tmp_path), "select 1 from inbox where state = 'new'") != [])
            (account,) = asked(
                database_of(tmp_path), "select distinct account from inbox where account like 'telegram%'"
            )[0]
            await forget(up.url, str(account), telegram.id_of(anna))
            telegram.say(hers, anna, "say afterwards")
            await answer(telegram, hers, "afterwards", 30)
            await telegram.until(lambda: sum(FORGOTTEN in one for one in texts(telegram, hers)) == 2, 20)
            telegram.model.release()
            await telegram.until(
                lambda: asked(database_of(tmp_path), "select 1 from forgets where done_at is null") == [], 30
            )
            seen = " ".join(texts(telegram, hers))
            for wrong in ("as you asked", "mistake of mine", "quinces"):
                assert wrong not in seen, seen
            assert FORGOTTEN not in " ".join(texts(telegram, group))
            assert NotStarted.FORGOTTEN.said() in seen
            telegram.say(hers, anna, "say later")
            await answer(telegram, hers, "later", 30)


async def test_the_question_of_an_approval_is_not_stored_again_when_it_is_taken_back(tmp_path: Path) -> None:
    asking = {"OUTSPOKEN_TOOLS__APPROVAL": "write_file"}
    async with telegram_harness(tmp_path) as telegram:
        anna = telegram.person("Anna")
        hers = telegram.private(anna)
        async with running(telegram, **asking) as up:
            for number in range(3):
                telegram.say(hers, anna, "write quinces.txt: x")
                await telegram.until(lambda: any("May I write" in one for one in texts(telegram, hers)[-1:]), 20)
                telegram.say(hers, anna, "say medlars")
                waiting = "select 1 from inbox where state = 'new'"
                await telegram.until(lambda waiting=waiting: asked(database_of(tmp_path), waiting) != [])
                account = asked(database_of(tmp_path), "select distinct account from inbox")[0][0]
                await forget(up.url, str(account), telegram.id_of(anna))
                left = "select 1 from forgets where done_at is null"
                await telegram.until(lambda left=left: asked(database_of(tmp_path), left) == [], 30)
                telegram.say(hers, anna, f"say afterwards{number}")
                await answer(telegram, hers, f"afterwards{number}", 30)
        holding = "select origin, state from deliveries where instr(want, 'quinces')"
        assert asked(database_of(tmp_path), holding) == []
