"""What mistakes that were planted have taught about sending: a lease is asked before each send, and what is shown last is stored with the end."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.turns.access import Turns
from gateway.delivery.ledger import Ledger, Records
from tests.chats.harness import answer, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness

AWHILE = 1.5
SHOWS = ("sendMessage", "sendMessageDraft", "editMessageText", "sendChatAction")


class May:
    """Whether anything may be sent, as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = True

        def may_send(_: Records) -> bool:
            return self.held

        monkeypatch.setattr(Records, "may_send", may_send)


def shown(platform: TelegramHarness) -> list[str]:
    """The calls that people see something of."""
    return [call.route for call in platform.fake.log if call.route in SHOWS]


async def test_nothing_at_all_is_shown_while_the_lease_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may = May(monkeypatch)
    async with telegram_harness(tmp_path) as platform, running(platform):
        ada = platform.person("Ada")
        chat = platform.private(ada)
        may.held = False
        platform.say(chat, ada, "hold Well")  # while it runs, a draft of it and that it types would be shown
        await platform.model.holding.wait()
        await asyncio.sleep(AWHILE)
        assert shown(platform) == []
        may.held = True
        platform.model.release()
        await answer(platform, chat, "Well end")
        assert texts(platform, chat) == ["Well end"]


async def test_the_lease_is_asked_once_more_when_it_is_stored_that_a_part_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To store it may take long: whoever held the lease before need not hold it after."""
    may, begun = May(monkeypatch), asyncio.Event()
    keep_begun = Ledger.keep_begun

    async def slowly(self: Ledger, *given: Any, **more: Any) -> Any:
        made = await keep_begun(self, *given, **more)
        if not begun.is_set():
            may.held = False
            begun.set()
        return made

    monkeypatch.setattr(Ledger, "keep_begun", slowly)
    async with telegram_harness(tmp_path) as platform, running(platform):
        ada = platform.person("Ada")
        chat = platform.private(ada)
        platform.say(chat, ada, "say hello")
        await asyncio.wait_for(begun.wait(), 20)
        await asyncio.sleep(AWHILE)
        assert "sendMessage" not in shown(platform)
        may.held = True
        await answer(platform, chat, "hello", 20)


@pytest.mark.parametrize(("words", "bubble"), [("down", "notice"), ("say hello", "text0")])
async def test_what_a_turn_ends_with_is_stored_with_its_end(
    words: str, bubble: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    close = Turns.close

    async def seen(self: Turns, *given: Any) -> None:
        rows: Sequence[DeliveryRow] = given[6]
        stored.extend(row.bubble for row in rows)
        await close(self, *given)

    monkeypatch.setattr(Turns, "close", seen)
    async with telegram_harness(tmp_path) as platform, running(platform, OUTSPOKEN_MODEL__ATTEMPTS="1"):
        ada = platform.person("Ada")
        chat = platform.private(ada)
        platform.say(chat, ada, words)
        await answer(platform, chat, "⚠️" if bubble == "notice" else "hello", 30)
    assert bubble in stored


async def test_what_is_said_into_a_running_turn_is_done_with_it_and_by_nobody_else(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as platform, running(platform):
        ada = platform.person("Ada")
        chat = platform.private(ada)
        platform.say(chat, ada, "hold Well")
        await platform.model.holding.wait()
        platform.command(chat, ada, "steer", "say all the same")
        with closing(sqlite3.connect(f"file:{tmp_path / 'outspoken.db'}?mode=ro", uri=True)) as db:

            def counted(what: str) -> int:
                return int(db.execute(f"SELECT count(*) FROM {what}").fetchone()[0])

            await platform.until(lambda: counted("inbox WHERE platform_key LIKE 'steer:%'") == 1, 20)
            platform.model.release()
            await answer(platform, chat, "all the same", 20)
            assert (counted("inbox WHERE state = 'new'"), counted("turns")) == (0, 1)
