"""What an earlier process left calls its models in a ramp: the laws, and a gateway that goes on with a hundred open turns."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from typing import Any

from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from gateway.limits.admission import Admission, Bounds, SlotClaim
from gateway.limits.ramp import FIRST, QUIET_SECONDS, Ramp
from tests.gateway.rig import chunk, gateway
from tests.gateway.test_admission import PATIENT

MANY = 100


PAUSES = st.floats(0, 1) | st.floats(QUIET_SECONDS, 2 * QUIET_SECONDS)
"""Within a ramp few: with each second twice as many begin."""


@given(st.lists(PAUSES, max_size=9))
def test_in_the_first_seconds_no_more_begin_than_the_ramp_lets(pauses: list[float]) -> None:
    ramp, now, began = Ramp(), 1_000.0, list[float]()
    for pause in pauses:
        now += pause
        if began and now - began[-1] >= ramp.quiet_seconds:
            began.clear()
        while ramp.room(now):
            ramp.took(now)
            began.append(now)
    assert all(number <= math.ceil(FIRST * 2 ** (at - began[0] + 1e-9)) for number, at in enumerate(began, 1))


@given(st.integers(1, 3_000))
def test_a_crowd_is_through_in_a_time_that_is_known(count: int) -> None:
    ramp, now = Ramp(), 50.0
    for _ in range(count):
        now += ramp.wait_seconds(now)
        assert ramp.room(now)
        ramp.took(now)
    assert now - 50.0 <= max(0.0, math.log2(count / FIRST)) + 1e-6


def test_after_a_while_in_which_nothing_began_a_new_ramp_begins() -> None:
    ramp = Ramp()
    for _ in range(FIRST):
        ramp.took(5.0)
    assert not ramp.room(5.0)
    assert ramp.room(5.0 + ramp.quiet_seconds)
    ramp.took(5.0 + ramp.quiet_seconds)
    assert ramp.count == 1


class Asked:
    """A model that notes when it is asked what, and never ends by itself."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, str]] = []
        self.let = asyncio.Event()

    async def reply(self, messages: list[dict[str, Any]], response: web.StreamResponse, _: web.Request) -> None:
        said = next(str(one["content"]) for one in messages if one["role"] == "user")
        self.calls.append((time.monotonic(), said))
        await response.write(chunk({"content": "so "}))
        await self.let.wait()
        await response.write(chunk({"content": "it is"}, "stop") + b"data: [DONE]\n\n")


async def test_a_hundred_open_turns_call_in_a_ramp_the_oldest_first(
    tmp_path: Path,
) -> None:
    first = Asked()
    async with gateway(tmp_path, first.reply, settings=PATIENT) as one:
        for number in range(MANY):
            await one.hub.accept(one.inbound(f"number {number:03}", session=f"s{number}"))
        async with asyncio.timeout(60):
            while len(first.calls) < MANY:
                await asyncio.sleep(0.02)
        await one.hub.drain(0.0)
    second = Asked()
    async with gateway(tmp_path, second.reply, settings=PATIENT) as two:
        async with asyncio.timeout(60):
            while len(second.calls) < MANY:
                await asyncio.sleep(0.02)
        old, began = second.calls, second.calls[0][0]
        for seconds in (0, 1, 2, 3):
            assert sum(at - began < seconds for at, _ in old) <= FIRST * 2 ** (seconds + 0.5), "on a busy machine"
        numbers = [int(said.split()[1]) for _, said in old]
        assert sum(abs(number - place) for place, number in enumerate(numbers)) / MANY < FIRST, numbers
        print(f"{MANY} open turns: the last calls {old[-1][0] - began:.1f} s after the first")
        second.let.set()
        assert two.recovered == MANY


def test_who_is_new_does_not_wait_for_the_ramp() -> None:
    admission: Admission[str] = Admission(Bounds.of(100, 100))
    for number in range(3 * FIRST):
        admission.ask(f"left {number}", SlotClaim("", number, taken_up=True))
    admission.ask("new", SlotClaim("", 10_000))
    begun: list[str] = []
    while (key := admission.next(5.0)) is not None:
        admission.begun(key)
        begun.append(key)
    assert begun == [*(f"left {number}" for number in range(FIRST)), "new"]
    assert 0 < admission.held_up_seconds(5.0) < 1
