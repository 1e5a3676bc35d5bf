"""What a plain turn in a chat costs, counted as in `tests.bench.counting`: a whole gateway with Telegram, from the update that brings a message
until its answer is sent and that is stored. Telegram, the model and the people are in the thread that is not counted.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING

from tests.fakes.telegram import Chat, TelegramFake, User

if TYPE_CHECKING:
    from tests.bench.counting import Outside, Tally

PLACES = 6
"""So many chats take turns, that none is written to faster than Telegram allows."""
TURNS = 15
"""So many are counted, and the least is told: that something is typed is shown every few seconds, and what is left is looked for, too."""
REST_SECONDS = 0.1
"""So long after its receipt is stored a chat has come to rest."""
SENT = "SELECT count(*) FROM deliveries WHERE state = 'sent'"


async def chat_turn(folder: Path, outside: Outside, tally: Tally) -> tuple[int, int, int]:
    """Statements, commits and Python calls of a turn of a conversation that is known, in a private chat."""
    from tests.serving import served

    telegram = TelegramFake()
    await outside.run(telegram.__aenter__())
    env = {
        "OPENAI_BASE_URL": f"http://127.0.0.1:{outside.port}/v1",
        "OPENAI_API_KEY": "bench",
        "OUTSPOKEN_MODEL__NAME": "bench",
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin,
        "OUTSPOKEN_TELEGRAM__OPEN": "true",
        "OUTSPOKEN_TELEGRAM__POLL_SECONDS": "50",
        "OUTSPOKEN_TELEGRAM__PER_MINUTE": "1000",
    }
    try:
        async with served(folder, env, patient=True):
            await outside.run(telegram.until(lambda: bool(telegram.log.of("getUpdates")), 60))
            people = [telegram.people.user(f"P{number}") for number in range(PLACES)]
            places = itertools.cycle([(person, telegram.people.private(person)) for person in people])
            (file,) = folder.rglob("*.db")
            with closing(Connection(file)) as stored:  # it is not counted
                for _ in range(2 * PLACES):
                    await _turn(telegram, outside, stored, *next(places))
                return await _counted(telegram, outside, stored, places, tally)
    finally:
        await outside.run(telegram.__aexit__(None, None, None))


async def _counted(
    telegram: TelegramFake,
    outside: Outside,
    stored: Connection,
    places: itertools.cycle[tuple[User, Chat]],
    tally: Tally,
) -> tuple[int, int, int]:
    found: list[tuple[int, int, int]] = []
    for _ in range(TURNS):
        before = tally.statements, tally.commits, tally.calls
        tally.on = True
        await _turn(telegram, outside, stored, *next(places))
        tally.on = False
        found.append((tally.statements - before[0], tally.commits - before[1], tally.calls - before[2]))
    statements, commits, calls = zip(*found, strict=True)
    return min(statements), min(commits), min(calls)


async def _turn(telegram: TelegramFake, outside: Outside, stored: Connection, person: User, place: Chat) -> None:
    """Somebody writes, and is answered, and that is stored."""
    (sent,) = stored.execute(SENT).fetchone()

    async def answered() -> None:
        before = _answers(place)
        telegram.people.say(place, person, "bench tokens=1")
        await telegram.until(lambda: _answers(place) > before, 60)

    await outside.run(answered())
    while stored.execute(SENT).fetchone() == (sent,):
        await asyncio.sleep(REST_SECONDS)
    await asyncio.sleep(REST_SECONDS)


def _answers(place: Chat) -> int:
    return sum(one.sender.is_bot and "pling" in one.text for one in place.messages.values())
