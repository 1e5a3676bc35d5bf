"""Three platforms in one daemon, one of them in trouble: what that adds to the others. And what three of them cost at rest."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.cases import Figure
from tests.bench.machine import OTHER_CORE, process
from tests.chats.together import SENDS, Three, Trouble, chat_of, id_of, three
from tests.ports import free_port

PEOPLE = 40
"""In turn, so that no chat's own pace is felt."""
PAUSE_SECONDS = 0.05
"""Between two messages; the platforms that are well take turns."""
MESSAGES = 150
"""For each condition, to all platforms that are well together: one of them is above the p99."""
ANSWER_SECONDS = 10.0
STARTS = 3
REST_SECONDS = 3.0
"""Once all are connected, before it is looked what they need, and once a trouble is over."""
STREAM = "chat.startStream"
"""Slack's other way to begin an answer, for one that does not come at once."""
OUT = Path("tests/.out")
"""Where the gateway's log is kept, to look up what was not answered."""


@dataclass
class Room:
    """One platform's chats."""

    name: str
    harness: Any
    people: list[tuple[Any, Any]] = field(default_factory=list[tuple[Any, Any]])
    turn: int = 0

    def say(self, words: str) -> tuple[str, float]:
        """The next person writes; the chat and the moment."""
        person, place = self.people[self.turn % len(self.people)]
        self.turn += 1
        self.harness.say(place, person, words)
        return id_of(self.name, place), time.monotonic()

    def answered(self, said: list[tuple[str, float]]) -> list[float | None]:
        """Seconds until each answer came to the platform; None for those that did not come."""
        calls: dict[str, list[float]] = {}
        for call in self.harness.fake.log:
            if str(call.route) in (SENDS[self.name], STREAM):
                calls.setdefault(chat_of(self.name, call), []).append(call.at)
        came = [(at, next((one for one in calls.get(chat, ()) if one > at), None)) for chat, at in said]
        return [None if one is None else one - at for at, one in came]


def percentile(values: list[float], share: float) -> float:
    """In milliseconds; of nothing it is without end."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else float("inf")


def _env(world: Three, folder: Path, up: int, gate: int) -> Mapping[str, str]:
    return {
        **world.env(),
        "OUTSPOKEN_HOME": str(folder),
        "OUTSPOKEN_SERVER__PORT": str(gate),
        "OPENAI_BASE_URL": f"http://127.0.0.1:{up}/v1",
        "OPENAI_API_KEY": "bench",
        "OUTSPOKEN_MODEL__NAME": "bench",
    }


async def isolation(folder: Path) -> list[Figure]:
    """The figures. Fakes and people are in this process, on the other core."""
    os.sched_setaffinity(0, {OTHER_CORE})
    up = free_port()
    with process(["-m", "tests.bench.upstream", str(up)], up, core=OTHER_CORE, log=folder / "three-upstream.log"):
        figures = await _at_rest(folder, up)
        async with three(folder) as world:
            gate = free_port()
            env = _env(world, folder / "three", up, gate)
            OUT.mkdir(parents=True, exist_ok=True)
            with await asyncio.to_thread(_started, gate, env, OUT / "isolation.log") as _:
                await world.ready()
                return figures + await _conditions(world)


def _started(gate: int, env: Mapping[str, str], log: Path) -> Any:
    return _Running(gate, env, log)


class _Running:
    """A gateway that is started without keeping the fakes from answering."""

    def __init__(self, gate: int, env: Mapping[str, str], log: Path) -> None:
        self._context = process(["-m", "gateway", "run"], gate, env, log=log)
        self.measured = self._context.__enter__()

    def __enter__(self) -> Any:
        return self.measured

    def __exit__(self, *exc: object) -> None:
        self._context.__exit__(None, None, None)


async def _at_rest(folder: Path, up: int) -> list[Figure]:
    """From the start until all three platforms have the bot, and what it needs then."""
    ready: list[float] = []
    cpu: list[float] = []
    memory = 0.0
    for number in range(STARTS):
        async with three(folder) as world:
            gate = free_port()
            began = time.monotonic()
            env = _env(world, folder / "rest", up, gate)
            with await asyncio.to_thread(_started, gate, env, folder / f"rest{number}.log") as gateway:
                await world.discord.until(lambda w=world: all(_has(w)), 90)
                ready.append(time.monotonic() - began)
                cpu.append(gateway.cpu_seconds())
                await asyncio.sleep(REST_SECONDS)
                memory = gateway.resident_mib()
    return [
        Figure("three platforms: all connected after (median)", sorted(ready)[len(ready) // 2], "s", limit=3.0),
        Figure("three platforms: CPU until then (median)", sorted(cpu)[len(cpu) // 2], "s"),
        Figure("three platforms: idle memory", memory, "MiB", limit=95),
    ]


def _has(world: Three) -> list[bool]:
    polled = bool(world.telegram.fake.log.of("getUpdates"))
    return [world.discord.fake.connected, bool(world.slack.fake.sockets.open), polled]


async def _conditions(world: Three) -> list[Figure]:
    rooms: dict[str, Room] = {}
    for name, harness in world.all.items():
        people = [harness.person(f"P{number}") for number in range(PEOPLE)]
        rooms[name] = Room(name, harness, [(one, harness.private(one)) for one in people])
    await _measured(rooms, list(rooms), lambda: None)  # everything is made once
    figures: list[Figure] = []
    async with _late() as late:
        for name in rooms:
            _crowd(rooms[name])
            before, _ = await _measured(rooms, _others(rooms, name), lambda: None)
            for trouble in Trouble:
                late[:] = [0.0]
                figures += await _condition(world, rooms, name, trouble, before)
                figures.append(Figure(f"{name} {trouble}: the fakes themselves were late by up to", max(late), "ms"))
                print(f"  {name} {trouble} done", file=sys.stderr, flush=True)
    return figures


def _others(rooms: dict[str, Room], name: str) -> list[str]:
    return [one for one in rooms if one != name]


async def _condition(
    world: Three, rooms: dict[str, Room], name: str, trouble: Trouble, before: list[float]
) -> list[Figure]:
    """The others while one is in trouble, beside what they took `before`, within the same half minute: a machine's speed wanders."""
    _crowd(rooms[name])
    again = await world.begin(name, trouble)
    again()
    found, missing = await _measured(rooms, _others(rooms, name), again)
    world.end(name)
    await asyncio.sleep(REST_SECONDS)
    what = f"{name} {trouble}"
    median, worst = (percentile(found, share) - percentile(before, share) for share in (0.5, 0.99))
    return [
        Figure(f"{what}: added to the others, median", median, "ms"),
        Figure(f"{what}: the same, p99", worst, "ms", limit=250, reference=percentile(before, 0.99)),
        Figure(f"{what}: others not answered in {ANSWER_SECONDS:g} s", missing, "", limit=0),
    ]


def _crowd(room: Room) -> None:
    """Ten people write at once where the trouble is, before it as well: their load is not the trouble's."""
    for _ in range(10):
        room.say("bench tokens=60 pace=0.05")


@asynccontextmanager
async def _late() -> AsyncGenerator[list[float]]:
    """How much later than due this process was awake, in ms: so much of a figure is the machine's, not the gateway's."""
    seen = [0.0]

    async def look() -> None:
        while True:
            due = time.monotonic() + 0.02
            await asyncio.sleep(0.02)
            seen.append((time.monotonic() - due) * 1000)

    task = asyncio.create_task(look())
    try:
        yield seen
    finally:
        task.cancel()


async def _measured(rooms: dict[str, Room], names: list[str], again: Callable[[], None]) -> tuple[list[float], int]:
    """Seconds until the answers of the platforms in `names`, and how many did not come."""
    said: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    for number in range(MESSAGES):
        name = names[number % len(names)]
        said[name].append(rooms[name].say("bench tokens=1"))
        await asyncio.sleep(PAUSE_SECONDS)
        if number % 20 == 0:
            again()
    end = time.monotonic() + ANSWER_SECONDS
    while True:
        waited = [
            (name, chat, took)
            for name in names
            for (chat, _), took in zip(said[name], rooms[name].answered(said[name]), strict=True)
        ]
        missing = [(name, chat) for name, chat, took in waited if took is None]
        if not missing or time.monotonic() > end:
            for name, chat in missing:
                print(
                    f"  no answer in {name}, chat {chat}, by {datetime.now(UTC):%H:%M:%S}", file=sys.stderr, flush=True
                )
            return [took for *_, took in waited if took is not None], len(missing)
        await asyncio.sleep(0.1)
