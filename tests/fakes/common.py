"""What the fakes of all platforms share: a clock that can be turned forward, a log of requests, scripts of faults, and a door.

A fake is a real server on a free port of 127.0.0.1. A test scripts what goes wrong, per route:

    script = Script()
    script.add("sendMessage", Reset(), None, LoseAnswer())  # the first is cut, the second goes well, the third arrives unanswered
    script.add("sendMessage", (Delay(0.2), LoseAnswer()))   # both for one request
    script.odds("sendMessage", 7, (0.1, Reset()))           # from then on one in ten is cut, the same ones for the same seed

Nothing here knows a platform.
"""

from __future__ import annotations

import asyncio
import email.utils
import random
import socket
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from aiohttp import web

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""Any value that JSON can hold."""
JsonObject: TypeAlias = dict[str, Json]

GRAIN_SECONDS = 0.05
"""How often a wait looks again at what changes with time alone, such as a draft that fades."""
BUSY = 4
"""Tests name how long something takes where nothing else runs. So many times as long is waited for it."""


class Clock:
    """The computer's clock, which a test may turn forward instead of sleeping."""

    def __init__(self) -> None:
        self._ahead_seconds = 0.0

    def monotonic(self) -> float:
        """Seconds since some moment in the past; never goes back."""
        return time.monotonic() + self._ahead_seconds

    def unix(self) -> float:
        """Seconds since 1970."""
        return time.time() + self._ahead_seconds

    def advance(self, seconds: float) -> None:
        """Let this much time have passed for the fake. Sleeps that are under way are not shortened."""
        assert seconds >= 0, seconds
        self._ahead_seconds += seconds


class Bell:
    """Wakes whoever waits for a change."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        """Something has changed."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Come back at the next ring, or after so many seconds."""
        event = self._event
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await event.wait()
        except TimeoutError:
            return

    async def until(self, condition: Callable[[], bool], within: float, what: Callable[[], str]) -> None:
        """Come back as soon as `condition` holds.

        Raises:
            AssertionError: it did not within so many seconds, nor for long after; `what` is asked for the words.
        """
        end = time.monotonic() + within * BUSY
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f"not within {within * BUSY:g} s: {what()}")
            await self.wait(min(left, GRAIN_SECONDS))


# --- the log ---


@dataclass(slots=True)
class Call:
    """One request as the fake saw it."""

    number: int
    """1 for the first."""
    route: str
    params: Mapping[str, Json]
    """What the request said, parsed."""
    files: Mapping[str, int]
    """Uploaded parts by name, with their size in bytes."""
    at: float
    """Monotonic seconds at which it had been read."""
    ended_at: float | None = None
    """Monotonic seconds at which the fake was done with it."""
    status: int | None = None
    """HTTP status of the answer that was made, even if it was lost then. None: none was made."""
    answer: Json = None
    """The body of that answer."""
    faults: tuple[Fault, ...] = ()
    ignored: frozenset[str] = frozenset()
    """Parameters that no code of the fake looked at: a typing mistake, or something that it does not know."""


class Log:
    """All requests in the order of their arrival."""

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def __iter__(self) -> Iterator[Call]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def of(self, route: str) -> list[Call]:
        """The requests to one route."""
        return [call for call in self._calls if call.route == route]

    def routes(self, *without: str) -> list[str]:
        """The routes in order, leaving some out."""
        return [call.route for call in self._calls if call.route not in without]

    def open(self, route: str, params: Mapping[str, Json], files: Mapping[str, int], at: float) -> Call:
        """Note a request that has arrived."""
        call = Call(len(self._calls) + 1, route, params, files, at)
        self._calls.append(call)
        return call


# --- faults ---


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer this in the platform's place; nothing happens on the platform."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Delay:
    """Take so many seconds, before the platform acts or after it has."""

    seconds: float
    after: bool = False


@dataclass(frozen=True, slots=True)
class Reset:
    """Cut the connection before anything happens on the platform (TCP reset)."""


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """The platform acts, but the answer does not arrive: the connection is cut."""

    sent: Literal["nothing", "half"] = "nothing"
    """How much of the answer gets through."""
    clean: bool = False
    """Close in good order (FIN) instead of resetting."""


@dataclass(frozen=True, slots=True)
class Garble:
    """The platform acts, and answers something that means nothing to anybody."""

    body: bytes = b'{"ok": true, "result": {"odd": 1}}'

    def answer(self) -> web.Response:
        return web.Response(body=self.body, content_type="application/json")


class Pause:
    """The request gets no answer until the test says `release()`; `reached` is set once a request waits here."""

    def __init__(self, *, after: bool = False) -> None:
        self.after = after
        """Wait when the platform has acted already, instead of before."""
        self.reached = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        """Let the requests that wait here go on, and later ones through."""
        self._released.set()

    async def pass_through(self) -> None:
        """Wait for `release()`."""
        self.reached.set()
        await self._released.wait()


Fault: TypeAlias = Answer | Delay | Reset | LoseAnswer | Garble | Pause
Step: TypeAlias = Fault | Sequence[Fault] | None
"""What befalls one request: a fault, several at once, or nothing."""
When: TypeAlias = Callable[[Mapping[str, Json]], bool]
"""Whether a step is meant for a request with these parameters."""

ANY = "*"
"""The script for requests to whatever route."""


def _faults(step: Step) -> tuple[Fault, ...]:
    match step:
        case None:
            return ()
        case Answer() | Delay() | Reset() | LoseAnswer() | Garble() | Pause():
            return (step,)
        case _:
            return tuple(step)


def _always(_: Mapping[str, Json]) -> bool:
    return True


@dataclass(slots=True)
class _Dice:
    chance: random.Random
    sides: tuple[tuple[float, Step], ...]

    def roll(self) -> tuple[Fault, ...]:
        point = self.chance.random()
        for share, step in self.sides:
            if point < share:
                return _faults(step)
            point -= share
        return ()


class Script:
    """Which faults befall which requests. Steps are used up in order; when there are none, what `always` or `odds` said holds."""

    def __init__(self) -> None:
        self._steps: dict[str, deque[tuple[When, Step]]] = {}
        self._always: dict[str, Step] = {}
        self._dice: dict[str, _Dice] = {}

    def add(self, route: str, *steps: Step, when: When = _always) -> None:
        """One step for each of the next requests to a route (`ANY`: to all); those that `when` refuses do not use one up."""
        self._steps.setdefault(route, deque()).extend((when, step) for step in steps)

    def always(self, route: str, step: Step) -> None:
        """This befalls every request to the route from now on. None takes it back."""
        self._always[route] = step

    def odds(self, route: str, seed: int, *sides: tuple[float, Step]) -> None:
        """Each step befalls this share (0 to 1) of the requests; the same seed chooses the same ones. No sides: no more dice."""
        assert sum(share for share, _ in sides) <= 1.0, sides
        # Seeded by route, so that the order of requests to different routes does not matter.
        self._dice[route] = _Dice(random.Random(f"{seed} {route}"), sides)

    def clear(self) -> None:
        """From now on all goes well."""
        self._steps.clear()
        self._always.clear()
        self._dice.clear()

    def left(self, route: str) -> int:
        """How many steps have not been used up yet."""
        return len(self._steps.get(route, ()))

    def take(self, route: str, params: Mapping[str, Json]) -> tuple[Fault, ...]:
        """The faults for a request that has just arrived."""
        for name in (route, ANY):
            steps = self._steps.get(name, deque())
            for index, (when, step) in enumerate(steps):
                if when(params):
                    del steps[index]
                    return _faults(step)
        for name in (route, ANY):
            if self._always.get(name) is not None:
                return _faults(self._always[name])
        for name in (route, ANY):
            if name in self._dice:
                return self._dice[name].roll()
        return ()


# --- the door ---


def cut(given: asyncio.BaseTransport | None, *, clean: bool = False) -> None:
    """End a connection at once: by a reset, or in good order (`clean`)."""
    if given is None:
        return
    transport = cast("asyncio.Transport", given)  # uvloop's is none by name
    if clean:
        transport.close()
        return
    raw = transport.get_extra_info("socket")
    if raw is not None:
        # A linger time of zero makes the kernel send RST instead of FIN.
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def _bound(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "SO_REUSEPORT"):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    return sock


def _dated(clock: Clock) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def date(_: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = email.utils.formatdate(clock.unix(), usegmt=True)

    return date


class Door:
    """Where an application listens: a free port of 127.0.0.1, which can be shut (connections refused) and opened again.

    A second socket stays bound to the port and never listens. Without it, another program could get the port while it is shut, and a
    client that dials a free port of its own range again and again will one day be connected with itself.
    """

    def __init__(self, app: web.Application, clock: Clock | None = None) -> None:
        """With a `clock`, answers carry its time in ``Date``, and not the computer's."""
        if clock is not None:
            app.on_response_prepare.append(_dated(clock))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        self._site: web.SockSite | None = None
        self._placeholder: socket.socket | None = None

    @property
    def is_open(self) -> bool:
        """Whether connections are accepted."""
        return self._site is not None

    @property
    def port(self) -> int:
        """The port, which is known from the first `open` on."""
        assert self._placeholder is not None, "not opened yet"
        return int(self._placeholder.getsockname()[1])

    async def open(self) -> None:
        """Accept connections, on the same port as ever."""
        if self._site is not None:
            return
        if self._placeholder is None:
            self._placeholder = _bound(0)
            await self._runner.setup()
        self._site = web.SockSite(self._runner, _bound(self.port))
        await self._site.start()

    async def shut(self) -> None:
        """Refuse connections, and reset those that stand."""
        if self._site is None:
            return
        site, self._site = self._site, None
        await site.stop()
        self.cut_all()

    def cut_all(self) -> None:
        """Reset every connection that stands."""
        if self._runner.server is not None:
            for connection in list(self._runner.server.connections):
                cut(connection.transport)

    async def close(self) -> None:
        """Shut for good."""
        await self.shut()
        await self._runner.cleanup()
        if self._placeholder is not None:
            self._placeholder.close()
