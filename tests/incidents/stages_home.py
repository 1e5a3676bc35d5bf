"""Incidents of the machine that the gateway runs on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from sqlalchemy.exc import OperationalError

from tests.chats.harness import process
from tests.chats.telegram_harness import TelegramHarness
from tests.fakes.telegram import TelegramFake
from tests.incidents.model import troubled_model
from tests.incidents.rig import PATIENCE, Operator, gateway_of, telegram
from tests.statements import told_of

DIES_IN_A_TOOL = (
    "import os, signal; from agent_core.tools.files.writing import WritingTool; "
    "WritingTool.run = lambda self, arguments, context: os.kill(os.getpid(), signal.SIGKILL); "
)
"""What is run before the gateway: its process is killed, as by the kernel when memory is short, while a tool runs."""


class Dying(TelegramHarness):
    """A gateway that dies in its first tool."""

    prelude = DIES_IN_A_TOOL


@contextmanager
def no_room() -> Generator[None]:
    """Every statement that writes fails as SQLite fails on a full disk."""

    def refuse(statement: str, _values: object) -> None:
        if statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE")):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
            raise OperationalError(statement, None, error)

    with told_of(refuse):
        yield


@asynccontextmanager
async def full_disk(folder: Path) -> AsyncGenerator[Operator]:
    """The disk has no room any more, so nothing can be stored."""
    async with telegram(folder) as scene:
        await scene.traffic()
        with no_room():
            ada = scene.chat.person("Ada")
            scene.say(scene.chat.private(ada), ada, "say hello")
            await asyncio.sleep(3)
            yield scene.operator


@asynccontextmanager
async def killed_in_a_tool(folder: Path) -> AsyncGenerator[Operator]:
    """The process dies while a tool runs, and is started again."""
    async with TelegramFake() as fake, troubled_model() as model:
        chat = Dying(fake, model, folder)
        ada = chat.person("Ada")
        place = chat.private(ada)
        async with process(chat) as first:
            said = f"{place.chat.id}:{chat.say(place, ada, 'append')}"
            await asyncio.to_thread(first.inner.wait, PATIENCE)
        async with gateway_of(chat) as (_, operator):
            operator.named["MESSAGE"] = said
            await chat.until(lambda: any("Appended." in one.text for one in chat.seen(place)), PATIENCE)
            await asyncio.sleep(0.3)
            yield operator


@asynccontextmanager
async def clock_jump(folder: Path) -> AsyncGenerator[Operator]:
    """The machine's clock is hours away from everybody else's."""
    async with telegram(folder) as scene:
        await scene.traffic()
        scene.chat.fake.advance(5 * 3600)
        scene.model.ahead_seconds = 5 * 3600
        yield scene.operator


STAGES = {
    "A full disk": full_disk,
    "Killed in the middle of a tool": killed_in_a_tool,
    "A clock that jumped": clock_jump,
}
