"""The way of a message, measured: which files hand one on, from a person on Telegram to the answer there.

A file is on the way if it is on the stack at one of seven calls (`ENDS`): where the message is handed to the hub, where its queue gets a
place, where something of it is stored, where the model is asked, where the turn's machine takes a fact, where the chat asks what there is to
see, and where Telegram is called. What hands it on stands there; what only helps has returned before.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.telegram.port import TelegramPort
from agent_core.machine.turn import Turn
from agent_core.model.client import ModelClient
from agent_core.store.database.writer import Writer
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.queues.slots import TurnSlots
from gateway.sessions.accepting import Accepting
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import TelegramHarness, telegram_harness

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/architecture.md"
MOST = 25
"""Files. A new one needs a better reason than that it was easy to pass something on."""
ENDS = (
    (Accepting, "accept"),
    (TurnSlots, "at_once"),
    (TurnOutlet, "picture"),
    (Writer, "submit"),
    (ModelClient, "ask"),
    (Turn, "feed"),
    (TelegramPort, "create"),
    (TelegramPort, "edit"),
)
BESIDE = ("upkeep", "forgetting", "watchdog", "keeper", "incidents", "scheduler", "unread")
"""Tasks in which no message is handed on."""


@pytest.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


def on_the_way(patch: pytest.MonkeyPatch) -> set[str]:
    """Filled from now on."""
    found: set[str] = set()

    def noted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            task = asyncio.current_task()
            if task is not None and task.get_name() in BESIDE:
                return real(*args, **more)
            frame, names = sys._getframe(1), [real.__code__.co_filename]
            while frame is not None:
                names.append(frame.f_code.co_filename)
                frame = frame.f_back
            ours = (Path(name).relative_to(ROOT) for name in names if name.startswith(f"{ROOT}/"))
            found.update(str(one) for one in ours if one.parts[0] in ("adapters", "agent_core", "gateway"))
            return real(*args, **more)

        return call

    for owner, name in ENDS:
        patch.setattr(owner, name, noted(getattr(owner, name)))
    return found


def drawn(page: str) -> set[str]:
    """The files of the drawing: those after the first of a row may leave out its folder."""
    section = page[page.index("### The way of a message") :]
    section = section[: section.index("\n## ")]
    files: set[str] = set()
    for row in re.findall(r"^\| \d+ \|([^|]*)\|", section, re.MULTILINE):
        folder = ""
        for name in re.findall(r"`([^`]+\.py)`", row):
            folder = name.rpartition("/")[0] if "/" in name else folder
            files.add(name if "/" in name else f"{folder}/{name}")
    return files


async def test_the_way_of_a_message_is_as_it_is_drawn(
    telegram: TelegramHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with running(telegram):
        telegram.say(chat, ada, "say first")
        await answer(telegram, chat, "first")
        with monkeypatch.context() as patch:
            found = on_the_way(patch)
            telegram.say(chat, ada, "say second")
            await answer(telegram, chat, "second")
    assert sorted(found) == sorted(drawn(PAGE.read_text("utf-8")))
    assert len(found) <= MOST
