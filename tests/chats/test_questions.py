"""A tool asks the person in their chat: a field at a time, by words and by buttons, with what does not fit said, and no for an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.chats.harness import Harness, answer, answers, running

DESK = Path(__file__).parents[1] / "mcp" / "deskserver.py"


async def test_a_tool_asks_in_the_chat_and_is_answered(platform: Harness, tmp_path: Path) -> None:
    ada = platform.person("Ada")
    chat = platform.private(ada)
    booked = tmp_path / "booked"
    server = {"name": "desk", "command": sys.executable, "args": [str(DESK), str(booked)], "trusted": ["*"]}
    async with running(platform, OUTSPOKEN_MCP__SERVERS=json.dumps([server])):
        platform.command(chat, ada, "answer", "5")
        await answer(platform, chat, "Nothing is asked here now.")
        platform.say(chat, ada, 'usetool desk__book {"name": "Ada"}')
        asked = await answer(platform, chat, "Seats (1 of 3)")
        assert asked.buttons == ("decline",)
        assert "> We have [many](https://evil.example)." in asked.text
        platform.command(chat, ada, "answer", "many")
        await answer(platform, chat, "It must be a whole number, 1 to 12.")
        platform.command(chat, ada, "answer", "4")
        where = await answer(platform, chat, "one of inside; garden")
        platform.press(chat, ada, where.id, "garden")
        quiet = await answer(platform, chat, "yes or no")
        platform.press(chat, ada, quiet.id, "yes")
        await answer(platform, chat, "booked 4 seats garden for Ada, quiet")
        platform.say(chat, ada, 'usetool desk__book {"name": "Bob"}')
        await platform.until(lambda: any("Seats (1" in one.text and one.buttons for one in answers(platform, chat)))
        again = next(one for one in answers(platform, chat) if "Seats (1" in one.text and one.buttons)
        platform.press(chat, ada, again.id, "decline")
        await answer(platform, chat, "It is told that you decline.")
    assert booked.read_text() == "Ada 4\n"
