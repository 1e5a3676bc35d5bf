"""What a deployment has to go through: a start while a platform is away, a turn, a stop within an open turn, a hang."""

from __future__ import annotations

import asyncio
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable

from adapters.checks.probe import Question
from tests.chats.harness import answer
from tests.chats.telegram_harness import TelegramHarness, Where
from tests.deploy.real.engines import Place
from tests.fakes.common import ANY, Reset
from tests.fakes.telegram import User

PATIENCE = 90.0


async def until(told: str, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    began = time.monotonic()
    while not await asyncio.to_thread(condition):
        assert time.monotonic() - began < seconds, f"not within {seconds:g} s: {told}"
        await asyncio.sleep(0.3)


def says(place: Place, question: str) -> bool:
    return place.outspoken("health", question)[0] == 0


def asked(place: Place, question: Question) -> int:
    """From outside: nothing can be run in a container that is being stopped."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{place.port}{question.path}", timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as refused:
        return refused.code


async def story(place: Place, telegram: TelegramHarness, note: Callable[[str], None]) -> None:
    """Raises AssertionError where it goes otherwise than the documentation says."""
    chat = telegram.private(eve := telegram.person("Eve"))
    telegram.fake.faults.always(ANY, Reset())
    await asyncio.to_thread(place.start)
    await until("it is ready although the platform is away", lambda: says(place, "ready"))
    assert await asyncio.to_thread(says, place, "alive")
    assert not await asyncio.to_thread(says, place, "well")
    assert await asyncio.to_thread(place.healthy)
    note("started while Telegram was away: alive and ready, not well")
    telegram.fake.faults.clear()
    await until("it is well when the platform is back", lambda: says(place, "well"), 180)
    telegram.say(chat, eve, "say hello")
    await answer(telegram, chat, "hello", PATIENCE)
    telegram.say(chat, eve, "write a.txt: b")
    await answer(telegram, chat, "Done", PATIENCE)
    note("a platform came back, a turn was answered, a tool ran in its worker")
    await _stopped_in_a_turn(place, telegram, chat, eve, note)
    await _hung(place, telegram, chat, eve, note)
    assert await asyncio.to_thread(place.zombies) == 0
    await asyncio.to_thread(place.stop)


async def _stopped_in_a_turn(
    place: Place, telegram: TelegramHarness, chat: Where, eve: User, note: Callable[[str], None]
) -> None:
    telegram.say(chat, eve, "hold the line")
    await asyncio.wait_for(telegram.model.holding.wait(), PATIENCE)
    began = time.monotonic()
    stopping = asyncio.create_task(asyncio.to_thread(place.stop))
    await asyncio.sleep(1.5)
    if not stopping.done():
        drains = [await asyncio.to_thread(asked, place, question) for question in (Question.READY, Question.ALIVE)]
        assert drains == [503, 200], "who drains is alive, and not ready"
    await stopping
    took = time.monotonic() - began
    telegram.model.release()
    await asyncio.to_thread(place.start)
    await until("ready again", lambda: says(place, "ready"))
    telegram.say(chat, eve, "say again")
    await answer(telegram, chat, "again", PATIENCE)
    note(
        f"stopped in order within an open turn, in {took:.1f} s, while it was alive and not ready; went on after the start"
    )


async def _hung(place: Place, telegram: TelegramHarness, chat: Where, eve: User, note: Callable[[str], None]) -> None:
    pid = await asyncio.to_thread(place.pid)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    try:
        assert not await asyncio.to_thread(says, place, "alive")
        code, said = await asyncio.to_thread(place.outspoken, "status")
        assert code == 75, said
        assert "does not answer" in said, said
        if place.watched:
            await until("the watchdog starts it again", lambda: place.pid() not in (0, pid), 150)
        else:
            assert not await asyncio.to_thread(place.healthy)
    finally:
        if not place.watched:
            os.kill(pid, signal.SIGCONT)
    await until("alive again", lambda: says(place, "ready"))
    telegram.say(chat, eve, "say well again")
    await answer(telegram, chat, "well again", PATIENCE)
    how = (
        "the watchdog started it again" if place.watched else "the health check failed, and it went on when it was let"
    )
    note(f"hung: {how}, after {time.monotonic() - began:.0f} s; status said that it runs and does not answer")
