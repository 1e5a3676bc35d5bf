"""Two thousand people within two seconds: when is each of them told something, and what?

``python -m tests.bench.run crowd``. The model is slow (it says nothing for some seconds), so that nobody is told anything by an answer
that happens to be quick: what counts is the first word of the gateway's own, the place in the queue or the turn that has begun.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from tests.bench.cases import Bench, Figure
from tests.bench.load import request_bytes
from tests.bench.machine import settle

PEOPLE = 2_000
WITHIN_SECONDS = 2.0
TOLD_SECONDS = 2.0
WORDS = "bench tokens=3 pace=0.3 wait=5"
PEOPLE_READ = "X-Outspoken-Errors: words\r\n"
"""As front ends of chats ask. A program that goes by the status is told nothing for ten seconds, so that what comes may still be one."""
PATIENCE_SECONDS = 600.0


@dataclass(slots=True)
class Person:
    """One client of the API, as it saw its request."""

    asked_at: float = 0.0
    status: int = 0
    told_at: float = 0.0
    """The place in the queue, or that the turn has begun."""
    first_at: float = 0.0
    """The answer's first word."""
    over_at: float = 0.0
    whole: bool = False


class _Asking(asyncio.Protocol):
    """One request on a raw connection; reads to the end. Cheap, so that the client is not what is measured."""

    def __init__(self, request: bytes, person: Person, over: asyncio.Future[None]) -> None:
        self._request = request
        self._person = person
        self._over = over
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        person, now = self._person, time.monotonic()
        if not person.status:
            person.status = int(data.split(b" ", 2)[1])
        if not person.told_at and (b'"outspoken"' in data or b": turn " in data or b": queued" in data):
            person.told_at = now
        if not person.first_at and b"pling" in data:
            person.first_at = now
        self._tail = (self._tail + data)[-400:]
        if b"[DONE]" in self._tail:
            person.over_at, person.whole = now, b'"stop"' in self._tail or person.whole

    def connection_lost(self, exc: Exception | None) -> None:
        self._person.over_at = self._person.over_at or time.monotonic()
        if not self._over.done():
            self._over.set_result(None)


async def _person(port: int, begin_at: float) -> Person:
    loop, seen = asyncio.get_running_loop(), Person()
    await asyncio.sleep(max(0.0, begin_at - time.monotonic()))
    over: asyncio.Future[None] = loop.create_future()
    seen.asked_at = time.monotonic()
    await loop.create_connection(
        lambda: _Asking(request_bytes(port, WORDS, more=PEOPLE_READ), seen, over), "127.0.0.1", port
    )
    await over
    return seen


async def crowd_of(port: int, people: int, within_seconds: float) -> list[Person]:
    """So many people, one after the other within the time; each reads to the end."""
    began = time.monotonic() + 0.2
    arrivals = [began + within_seconds * number / people for number in range(people)]
    async with asyncio.timeout(PATIENCE_SECONDS):
        return list(await asyncio.gather(*(_person(port, at) for at in arrivals)))


def share(values: list[float], part: float) -> float:
    """The value that `part` of them do not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


async def crowd(bench: Bench) -> list[Figure]:
    """2 000 people within two seconds on the API, streaming."""
    await settle(1.0)
    before = bench.gateway.cpu_seconds()
    seen = await crowd_of(bench.gateway.port, PEOPLE, WITHIN_SECONDS)
    used = bench.gateway.cpu_seconds() - before
    told = [person.told_at - person.asked_at for person in seen if person.told_at]
    first = [person.first_at - person.asked_at for person in seen if person.first_at]
    name = f"{PEOPLE} people within {WITHIN_SECONDS:g} s"
    return [
        Figure(f"{name}: never told", len(seen) - len(told), "", limit=0),
        Figure(f"{name}: answers not whole", sum(not person.whole for person in seen), "", limit=0),
        Figure(f"{name}: told after, median", share(told, 0.5), "s"),
        Figure(f"{name}: told after, p99", share(told, 0.99), "s"),
        Figure(f"{name}: told after, at most", max(told), "s", limit=TOLD_SECONDS),
        Figure(f"{name}: first word, at most", max(first, default=0.0), "s"),
        Figure(f"{name}: CPU a person", used / len(seen) * 1000, "ms"),
    ]
