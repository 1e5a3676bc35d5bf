"""Budgets as people see them in a chat: the warning, the notice, ``/usage``, and a process that is killed in a call."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.chats.harness import Harness, answer, process, quiet, running, texts
from tests.chats.telegram_harness import telegram_harness

PERSON = {"OUTSPOKEN_BUDGETS__PERSON_TOKENS": "50"}
"""The scripted model uses 15 tokens a reply."""


async def test_a_person_is_warned_once_then_told_and_sees_it_in_usage(platform: Harness) -> None:
    ada, bob = platform.person("Ada"), platform.person("Bob")
    chat, other = platform.private(ada), platform.private(bob)
    async with running(platform, **PERSON):
        for number in range(1, 5):
            platform.say(chat, ada, f"say reply{number}")
            await answer(platform, chat, f"reply{number}")
            if number == 3:
                await answer(platform, chat, "90 % of your budget for today is used: 45 of 50 tokens")
        platform.say(chat, ada, "say reply5")
        notice = await answer(platform, chat, "Your budget for today is used up (60 of 50 tokens)")
        assert "opens again at" in notice.text
        assert len(platform.model.requests) == 4
        platform.command(chat, ada, "usage")
        told = await answer(platform, chat, "You today: 60 of 50 tokens (120 %)")
        assert "This chat today: 60 tokens" in told.text
        assert "Everybody today: 60 tokens" in told.text
        await quiet(platform, chat)
        assert sum("% of your budget" in text for text in texts(platform, chat)) == 1
        platform.say(other, bob, "say hello")
        await answer(platform, other, "hello")


async def test_a_process_that_is_killed_in_a_call_leaves_it_counted_and_nothing_held(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        limit = {"OUTSPOKEN_BUDGETS__DAY_TOKENS": "100000", "OUTSPOKEN_BUDGETS__ASSUMED_OUTPUT_TOKENS": "7000"}
        async with process(platform, **limit) as first:
            platform.say(chat, ada, "hold Well")
            await platform.model.holding.wait()
            await first.kill()
        platform.model.release()
        async with process(platform, **limit):
            await answer(platform, chat, "end", 30)
            platform.command(chat, ada, "usage")
            told = await answer(platform, chat, "Everybody today")
            assert "of it estimated" in told.text
        database = next(tmp_path.rglob("*.db"))
        with closing(sqlite3.connect(database)) as opened, opened:
            calls = opened.execute("SELECT state, estimated, used_tokens FROM reservations ORDER BY at").fetchall()
            day = opened.execute(
                "SELECT spent_tokens, held_tokens, calls FROM budgets WHERE scope = 'day:all'"
            ).fetchone()
        assert [(state, estimated) for state, estimated, _ in calls] == [("settled", 1), ("settled", 0)]
        assert calls[0][2] > 7_000
        assert tuple(day) == (sum(used for _, _, used in calls), 0, 2)
