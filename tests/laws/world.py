"""Databases that a real gateway has written, on both engines: one at rest, and one whose gateway was killed in the middle.

Each is made once a process and copied for every test: what is done to a copy harms no other.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sqlite3 import connect
from typing import Any
from uuid import uuid4

from aiohttp import ClientSession
from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from agent_core.store.database.place import PostgresPlace, parse_place
from tests.chats.harness import answer, process, quiet, texts
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.databases import TEMPLATE, new_database
from tests.webhooks.receiver import SECRET, receiving

BUDGET = {"OUTSPOKEN_BUDGETS__DAY_TOKENS": "100000", "OUTSPOKEN_MODEL__ATTEMPTS": "1"}

LONG_QUESTION = "Größe " * 600 + "is what I ask about"
"""It is more than four KiB, so that it is cut out of its message."""


@dataclass(frozen=True)
class Left:
    """A database as its gateway left it, and when that was."""

    where: str
    """A file's path, or an address."""
    at: int
    server: str = ""


async def _at_rest(folder: Path, storage: dict[str, str]) -> None:
    async with telegram_harness(folder) as platform, receiving() as told:
        ada, bob = platform.person("Ada"), platform.person("Bob")
        chat, other = platform.private(ada), platform.private(bob)
        receiver = {"name": "deploy", "url": told.url, "secret_env": "HOOK_SECRET", "private": True}
        more = {
            "OUTSPOKEN_WEBHOOKS__RECEIVERS": json.dumps([receiver]), "HOOK_SECRET": SECRET,
            "OUTSPOKEN_TOOLS__APPROVAL": "delete_file", "OUTSPOKEN_SCHEDULE__TIMEZONE": "UTC",
        }  # fmt: skip
        async with process(platform, **BUDGET, **more, **storage) as gateway:
            await _said(platform, chat, ada, other, bob)
            await _otherwise(platform, chat, ada, gateway.url)
            await told.until(12)
            await asyncio.sleep(0.5)  # that they were told is stored


async def _otherwise(platform: TelegramHarness, chat: Any, ada: Any, url: str) -> None:
    """Requests, times to come and what somebody has to decide."""
    platform.command(chat, ada, "remind", "in 1 second tea")
    await answer(platform, chat, "Reminder: tea")
    for words in ("in 3 hours cake", "every hour stretch"):
        platform.command(chat, ada, "remind", words)
        await answer(platform, chat, words.rpartition(" ")[2])
    async with ClientSession() as http:
        for more in ({}, {"session": "wolf"}, {"session": "wolf"}, {}):
            body = {"messages": [{"role": "user", "content": "say hello program"}], **more}
            async with http.post(f"{url}/v1/chat/completions", json=body) as response:
                assert "hello program" in await response.text()
    platform.say(chat, ada, "delete notes.txt")
    asked = await answer(platform, chat, "May I delete")
    platform.press(chat, ada, asked.id, "✅ Approve")
    await answer(platform, chat, "Done: Deleted")
    await quiet(platform, chat)


async def _said(platform: TelegramHarness, chat: Any, ada: Any, other: Any, bob: Any) -> None:
    platform.say(chat, ada, "long 1800")
    await answer(platform, chat, "word1799", 30)
    platform.say(chat, ada, "write notes.txt: something to keep")
    await answer(platform, chat, "Done:", 20)
    platform.say(chat, ada, "send notes.txt")
    await answer(platform, chat, "Done: ", 20)
    platform.say(other, bob, "say hello Bob")
    await answer(platform, other, "hello Bob")
    platform.say(other, bob, "slow one two three four five six seven eight nine ten")
    await platform.until(lambda: platform.typing(other) or "one" in platform.preview(other), 10)
    platform.command(other, bob, "steer", "say all the same")
    await answer(platform, other, "all the same", 20)
    for count in (1, 2):  # so that what is stored of it is needed more than once
        platform.say(other, bob, f"say {LONG_QUESTION}")
        await platform.until(
            lambda count=count: sum(LONG_QUESTION[-20:] in one for one in texts(platform, other)) == count, 20
        )
    platform.say(other, bob, "down")
    await answer(platform, other, "⚠️", 30)
    platform.command(chat, ada, "usage")
    await answer(platform, chat, "You today")
    await quiet(platform, chat)
    await quiet(platform, other)


async def _in_the_middle(folder: Path, storage: dict[str, str]) -> None:
    async with telegram_harness(folder) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        async with process(platform, **BUDGET, **storage) as gateway:
            platform.say(chat, ada, "say first")
            await answer(platform, chat, "first")
            platform.say(chat, ada, "hold Well")
            await platform.model.holding.wait()
            platform.say(chat, ada, "say second")
            await asyncio.sleep(0.5)  # it is taken in, and waits
            await gateway.kill()


STORIES = {"rest": _at_rest, "middle": _in_the_middle}


@cache
def sqlite_left(story: str, folder: Path) -> Left:
    """The file, made once a process; where it lay, its gateway's folders lie."""
    home = folder / story
    home.mkdir(parents=True)
    asyncio.run(STORIES[story](home, {}))
    return Left(str(home / "outspoken.db"), time.time_ns() // 1_000_000)


@cache
def postgres_left(story: str, folder: Path, server: str) -> Left:
    """The same on a server."""

    async def make() -> str:
        url = await new_database(server, template=TEMPLATE)
        home = folder / f"{story}-postgres"
        home.mkdir(parents=True)
        await STORIES[story](home, {"OUTSPOKEN_STORAGE__URL": url})
        return url

    return Left(asyncio.run(make()), time.time_ns() // 1_000_000, server)


def copied(left: Left, folder: Path) -> Left:
    """The same once more."""
    if not left.server:
        target = folder / "copy.db"
        with closing(connect(left.where)) as source, closing(connect(target)) as to:
            source.backup(to)
        return Left(str(target), left.at)
    name = make_url(left.where).database
    assert name is not None
    url = asyncio.run(new_database(left.server, f"c{uuid4().hex}", template=name))
    return Left(url, left.at, left.server)


def changed(left: Left, sabotage: Callable[[Connection], object]) -> None:
    """Do something to it by hand, as somebody with the database's own tools would."""
    place = parse_place(left.where)
    if not isinstance(place, PostgresPlace):
        engine = create_engine(f"sqlite:///{left.where}")
        with engine.begin() as conn:
            sabotage(conn)
        engine.dispose()
        return
    url = place.url

    async def run() -> None:
        engine = create_async_engine(url)
        try:
            async with engine.begin() as conn:
                await conn.run_sync(sabotage)
        finally:
            await engine.dispose()

    asyncio.run(run())
