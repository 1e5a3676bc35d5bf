"""What is remembered, as people meet it in chats: theirs, the group's and everybody's, shown by `/memory` and gone by `/forget`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agent_core.jsonvalue import Json
from tests.chats.harness import Harness, answer, running, status
from tests.chats.telegram_harness import telegram_harness
from tests.chats.test_schedule import database


def use(tool: str, **arguments: Json) -> str:
    return f"usetool {tool} {json.dumps(arguments)}"


async def test_each_memory_is_shown_where_it_belongs_says_where_it_came_from_and_is_forgotten(
    platform: Harness,
) -> None:
    ada, bob = platform.person("Ada"), platform.person("Bob")
    home, group, away = platform.private(ada), platform.group(ada, bob), platform.private(bob)

    def say(place: Any, person: Any, words: str) -> None:
        platform.say(place, person, words, mention=place is group)

    async with running(platform) as up:
        account = (await status(up.url))["adapters"][0]["name"]
    writer = f"{account}/{platform.id_of(ada)}"
    async with running(platform, OUTSPOKEN_TOOLS__MEMORY_WRITERS=json.dumps([writer])):
        platform.command(home, ada, "memory")
        await answer(platform, home, "Nothing is remembered here.")
        say(home, ada, use("remember", name="dog", text="the dog is called Rex"))
        await answer(platform, home, "Remembered as 'dog'.")
        say(home, ada, use("remember_for_everybody", name="hours", text="open from 9 to 5"))
        await answer(platform, home, "for everybody who talks with this agent")
        platform.command(home, ada, "memory", "what is my dog called")
        shown = await answer(platform, home, "dog: the dog is called Rex")
        assert "turn " in shown.text
        say(group, ada, use("remember", name="day", text="we meet on Mondays", for_chat=True))
        await answer(platform, group, "for everybody in this chat")
        platform.command(group, bob, "memory")
        listed = await answer(platform, group, "day: we meet on Mondays")
        assert "Rex" not in listed.text
        assert "open from 9 to 5" in listed.text
        assert "asked by Ada" in listed.text
        platform.command(away, bob, "forget", "hours")
        await answer(platform, away, "Only people whom the operator named")
        say(away, bob, use("remember_for_everybody", name="hours", text="never"))
        await answer(platform, away, "remember_for_everybody")
        platform.command(group, bob, "forget", "day")
        await answer(platform, group, "“day” is forgotten for this chat.")
        platform.command(home, ada, "forget", "hours")
        await answer(platform, home, "“hours” is forgotten for everybody.")
        platform.command(home, ada, "forget", "all")
        await answer(platform, home, "1 thing is forgotten. What was said")
        platform.command(home, ada, "forget", "dog")
        await answer(platform, home, "Nothing is remembered under “dog”.")


async def test_what_an_older_version_kept_under_an_odd_name_is_forgotten_as_it_is_shown(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        ada = telegram.person("Ada")
        chat = telegram.private(ada)
        async with running(telegram):
            telegram.say(chat, ada, use("remember", name="dog", text="Rex"))
            await answer(telegram, chat, "Remembered as 'dog'.")
            telegram.command(chat, ada, "memory")
            shown = await answer(telegram, chat, "dog: Rex")
            assert "Kept for you: ." not in shown.text
        database(telegram, ("UPDATE memory SET name = ?", ("my\ndog " + "w" * 80,)))
        async with running(telegram):
            telegram.command(chat, ada, "memory")
            shown = await answer(telegram, chat, "• my dog www")
            name = shown.text.split("• ")[1].split(":")[0]
            assert name.endswith("…")
            telegram.command(chat, ada, "forget", name)
            await answer(telegram, chat, f"“{name}” is forgotten.")
