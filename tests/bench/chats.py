"""Two hundred chats at once on a platform with limits: how long after the model's end each answer is there."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from adapters.telegram.port import ACCOUNT_RATE
from tests.bench.cases import Figure
from tests.bench.machine import OTHER_CORE, process
from tests.fakes.telegram import Chat, Rates, TelegramFake
from tests.ports import free_port

CHATS = 200
TOKENS = 160
PACE_SECONDS = 0.05
SPREAD_SECONDS = 14.0
"""People do not all write in the same instant; all chats overlap for some seconds."""


def imposed(ends: list[float]) -> list[float]:
    """When each answer could be there at the earliest, if the platform's limit for the whole bot were the only delay."""
    interval = ACCOUNT_RATE.interval_ms / 1000
    tokens, at = float(ACCOUNT_RATE.burst), ends[0]
    earliest: list[float] = []
    for end in ends:
        now = max(end, at)
        tokens = min(float(ACCOUNT_RATE.burst), tokens + (now - at) / interval)
        wait = max(0.0, (1.0 - tokens) * interval)
        now += wait
        tokens = min(float(ACCOUNT_RATE.burst), tokens + wait / interval) - 1.0
        at = now
        earliest.append(now)
    return earliest


async def chats(folder: Path) -> list[Figure]:
    """The figures. The fake and the people are in this process, on the other core."""
    os.sched_setaffinity(0, {OTHER_CORE})
    up, gate = free_port(), free_port()
    async with TelegramFake(rates=Rates()) as telegram:
        env = {
            "OUTSPOKEN_HOME": str(folder / "chats"),
            "OUTSPOKEN_SERVER__PORT": str(gate),
            "OPENAI_BASE_URL": f"http://127.0.0.1:{up}/v1",
            "OPENAI_API_KEY": "bench",
            "OUTSPOKEN_MODEL__NAME": "bench",
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "OUTSPOKEN_TELEGRAM__API_BASE": telegram.origin,
            "OUTSPOKEN_TELEGRAM__OPEN": "true",
        }
        upstream = ["-m", "tests.bench.upstream", str(up)]
        with (
            process(upstream, up, core=OTHER_CORE, log=folder / "chats-upstream.log"),
            process(["-m", "gateway", "run"], gate, env, log=folder / "chats-gateway.log") as gateway,
        ):
            return await _measure(telegram, gateway.cpu_seconds)


async def _measure(telegram: TelegramFake, cpu_seconds: Callable[[], float]) -> list[Figure]:
    people = [telegram.people.user(f"P{n}") for n in range(CHATS)]
    places = [telegram.people.private(person) for person in people]
    await telegram.until(lambda: bool(telegram.log.of("getUpdates")), 20)
    before = cpu_seconds()
    watch = asyncio.create_task(_finals(telegram, places))
    ends: list[float] = []
    for person, place in zip(people, places, strict=True):
        telegram.people.say(place, person, f"bench tokens={TOKENS} pace={PACE_SECONDS}")
        ends.append(time.monotonic() + TOKENS * PACE_SECONDS)
        await asyncio.sleep(SPREAD_SECONDS / CHATS)
    shown = await asyncio.wait_for(watch, 90)
    used = cpu_seconds() - before
    lags = sorted(shown[i] - earliest for i, earliest in enumerate(imposed(ends)))
    drafts = len(telegram.log.of("sendMessageDraft")) / CHATS / (TOKENS * PACE_SECONDS)
    refused = sum(call.status == 429 for call in telegram.log)
    whole = sum(len(_texts(place)) == 1 and _texts(place)[0].count("pling") == TOKENS for place in places)
    return [
        Figure(
            f"{CHATS} chats: answer after the model's end, over the limits, p99", lags[int(len(lags) * 0.99)], "s", 1.5
        ),
        Figure(f"{CHATS} chats: the same, median", lags[len(lags) // 2], "s"),
        Figure(f"{CHATS} chats: states of a draft a second and chat", drafts, "/s"),
        Figure(f"{CHATS} chats: refused as too fast", refused, "", 0),
        Figure(f"{CHATS} chats: answers whole and once", whole, "", CHATS, at_least=True),
        Figure(f"{CHATS} chats: CPU of the gateway", used, "s"),
    ]


def _texts(place: Chat) -> list[str]:
    return [m.text for m in place.messages.values() if m.sender.is_bot and not m.deleted]


async def _finals(telegram: TelegramFake, places: list[Chat]) -> dict[int, float]:
    """When each chat's answer was there, as monotonic seconds."""
    shown: dict[int, float] = {}
    while len(shown) < len(places):
        for number, place in enumerate(places):
            if number not in shown and any(text.count("pling") >= TOKENS for text in _texts(place)):
                shown[number] = time.monotonic()
        await telegram.bell.wait(0.02)
        await asyncio.sleep(0.01)
    return shown
