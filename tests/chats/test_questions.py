"""A tool asks the person in their chat: a field at a time, by words and by buttons, with what does not fit said, and no for an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.chats.harness import Harness, Seen, answer, answers, running, texts

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


async def test_in_a_group_nobody_else_answers_what_is_asked_of_somebody(platform: Harness, tmp_path: Path) -> None:
    ada, ben = platform.person("Ada"), platform.person("Ben")
    group = platform.group(ada, ben)
    booked = tmp_path / "booked"
    server = {"name": "desk", "command": sys.executable, "args": [str(DESK), str(booked)], "trusted": ["*"]}
    async with running(platform, OUTSPOKEN_MCP__SERVERS=json.dumps([server])):
        platform.say(group, ada, 'usetool desk__book {"name": "Ada"}', mention=True)
        asked = await answer(platform, group, "Seats (1 of 3)")
        _answer(platform, group, ben, asked, "12")
        await answer(platform, group, "Only Ada or an admin may decide that. It still waits.")
        platform.press(group, ben, asked.id, "decline")
        await platform.until(lambda: len([one for one in texts(platform, group) if "It still waits." in one]) == 2)
        _answer(platform, group, ada, asked, "4")
        where = await answer(platform, group, "one of inside; garden")
        platform.press(group, ben, where.id, "inside")
        await platform.until(lambda: len([one for one in texts(platform, group) if "It still waits." in one]) == 3)
        platform.press(group, ada, where.id, "garden")
        quiet = await answer(platform, group, "yes or no")
        platform.press(group, ada, quiet.id, "yes")
        await answer(platform, group, "booked 4 seats garden for Ada, quiet")
    assert booked.read_text() == "Ada 4\n"


def _answer(platform: Harness, place: Any, person: Any, asked: Seen, words: str) -> None:
    """Slack has no slash commands in threads."""
    if platform.name == "slack":
        platform.say(place, person, f"!answer {words}", reply_to=asked.id)
    else:
        platform.command(place, person, "answer", words)
