"""What whoever runs the gateway asks it on the command line, and what becomes of what cannot be read."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.chats.harness import answer, process, quiet, running, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.fakes.common import JsonObject
from tests.forked import run
from tests.ports import free_port


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def outspoken(folder: Path, *words: str, port: int, typed: str = "") -> tuple[int, str]:
    """(exit status, what it printed); `typed` comes by standard input."""
    env = {"PATH": os.environ["PATH"], "OUTSPOKEN_HOME": str(folder), "OUTSPOKEN_SERVER__PORT": str(port)}
    ran = await asyncio.to_thread(run, list(words), env, stdin=typed, together=True)
    return ran.returncode, ran.stdout


async def test_status_and_access_of_a_running_gateway(telegram: TelegramHarness) -> None:
    port = free_port()
    eve = telegram.person("Eve")
    chat = telegram.private(eve)
    bob = telegram.person("Bob")
    with_bob = telegram.private(bob)
    closed = {"OUTSPOKEN_TELEGRAM__OPEN": "false", "OUTSPOKEN_SERVER__PORT": str(port)}
    closed["OUTSPOKEN_TELEGRAM__ALLOW"] = json.dumps([str(bob.id)])
    async with process(telegram, **closed):
        telegram.say(chat, eve, "say hello")
        told = await answer(telegram, chat, "outspoken access approve")
        code = re.search(r"approve ([A-Z0-9]{8})", told.text)
        assert code is not None
        status, words = await outspoken(telegram.folder, "access", "list", port=port)
        assert status == 0
        assert code.group(1) in words
        status, words = await outspoken(telegram.folder, "access", "approve", code.group(1), port=port)
        assert (status, "approved" in words, "Eve" in words) == (0, True, True)
        telegram.say(with_bob, bob, "say welcome")  # whom the configuration lets in, so nobody has decided about him
        await answer(telegram, with_bob, "welcome")
        status, words = await outspoken(telegram.folder, "access", "list", port=port)
        assert re.search(rf"^spoke +telegram/\d+  {bob.id}  ", words, re.MULTILINE), words
        telegram.say(chat, eve, "say thanks")
        await answer(telegram, chat, "thanks")
        status, words = await outspoken(telegram.folder, "status", port=port)
        assert status == 0
        assert re.search(r"telegram/\d+: up .*last in \d+ s ago, last out \d+ s ago", words)
        status, words = await outspoken(telegram.folder, "access", "approve", "NOSUCH", port=port)
        assert status == 1
        assert "no such code" in words
    status, words = await outspoken(telegram.folder, "status", port=port)
    assert status == 75
    assert "outspoken run" in words
    # Without a gateway, straight in the database.
    status, words = await outspoken(telegram.folder, "access", "revoke", str(eve.id), port=port)
    assert (status, "revoked" in words) == (0, True)
    status, words = await outspoken(telegram.folder, "access", "revoke", str(bob.id), port=port)
    assert (status, "revoked" in words) == (0, True), words
    known = re.search(r"revoked +(telegram/\d+)", words)
    assert known is not None
    both = [await outspoken(telegram.folder, group, "list", port=port) for group in ("access", "people")]
    assert both[0] == both[1]
    # Forgotten, by the name of what it is about: nothing of what was said is left, and whether she may talk is.
    assert any(b"thanks" in one.read_bytes() for one in telegram.folder.rglob("outspoken.db*"))
    for group in ("people", "access"):
        whom = f"{known.group(1)}/{(eve if group == 'people' else bob).id}"
        status, words = await outspoken(telegram.folder, group, "forget", whom, "--yes", port=port)
        assert status == 0, words
        assert re.search(r"Forgotten\. Turns: 1,", words), words
    assert not any(b"thanks" in one.read_bytes() for one in telegram.folder.rglob("outspoken.db*"))
    async with process(telegram, **closed):
        telegram.say(chat, eve, "say hello?")
        telegram.say(with_bob, bob, "say hello?")
        await quiet(telegram, chat, 1.5)
        assert "hello?" not in (*texts(telegram, chat), *texts(telegram, with_bob))


async def test_what_no_bot_is_given_starts_no_turn_and_is_told(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        story: JsonObject = {"story": {"id": 1, "chat": {"id": 1, "type": "private"}}}
        body: JsonObject = {"message_id": 900, "date": 1, "chat": chat.chat.to_json(), "from": ada.to_json(), **story}
        chat.chat.started = True
        telegram.fake.world.tell("message", body, chat.chat)
        telegram.fake.bell.ring()
        await answer(telegram, chat, "I cannot take this: story")
        assert telegram.model.requests == []


async def test_a_turn_that_cannot_be_read_any_more_ends_visibly(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with process(telegram) as one:
        telegram.say(chat, ada, "hold on")
        await asyncio.wait_for(telegram.model.holding.wait(), 60)
        await one.kill()
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(telegram.folder / "outspoken.db")) as conn, conn:
        conn.execute("UPDATE journal SET body = ? WHERE seq = 0", (b"{broken",))
    telegram.model.release()
    async with process(telegram):
        await answer(telegram, chat, "⚠️", 20)
