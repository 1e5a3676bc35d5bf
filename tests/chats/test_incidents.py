"""Ten sessions that meet the same fault: one incident, two lines in the operators' chat, ten visible notices."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.chats.harness import answers, running, texts
from tests.chats.telegram_harness import TelegramHarness, Where, telegram_harness

QUIET = {
    "OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS": "1",
    "OUTSPOKEN_MODEL__REMEDY_SECONDS": "1",
    "OUTSPOKEN_MODEL__ATTEMPTS": "2",
    "OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "0.1",
    "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "0.2",
}


def lines(telegram: TelegramHarness, place: Where) -> list[str]:
    return [text for text in texts(telegram, place) if "Incident i_" in text]


async def test_one_line_when_it_opens_and_one_when_it_is_over(tmp_path: Path) -> None:
    async with telegram_harness(tmp_path) as telegram:
        operator = telegram.person("Olga")
        channel = telegram.private(operator)
        people = [telegram.person(f"P{number}") for number in range(10)]
        chats = [telegram.private(person) for person in people]
        async with running(telegram, OUTSPOKEN_OPERATORS__CHAT=f"telegram/{channel.chat.id}", **QUIET) as up:
            for chat, person in zip(chats, people, strict=True):
                telegram.say(chat, person, "down")
            await telegram.until(lambda: all(len(answers(telegram, chat)) for chat in chats), 40)
            await telegram.until(lambda: len(lines(telegram, channel)) == 1, 40)
            await telegram.until(lambda: all(any("⚠️" in t for t in texts(telegram, chat)) for chat in chats), 40)
            assert lines(telegram, channel)[0].startswith("🚨")
            await up.hub.learning.look()
            (incident,) = up.hub.learning.open_incidents
            assert incident.conversations == 10
        async with running(telegram, OUTSPOKEN_OPERATORS__CHAT=f"telegram/{channel.chat.id}", **QUIET) as up:
            await asyncio.sleep(0.5)
            assert len(lines(telegram, channel)) == 1  # a restart tells nothing twice
            await up.hub.learning.look(at=incident.last_at + 3_600_000)
            await telegram.until(lambda: len(lines(telegram, channel)) == 2, 20)
            assert lines(telegram, channel)[1].startswith("✅")
