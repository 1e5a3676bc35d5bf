"""What one stream does to the others: no answer, however long or fast, and no large result holds the loop.

The loop's thread says how much of the processor it used between two looks; a piece of work whose size is known says what that is worth on
this machine. So neither a slow machine nor others that use it make a difference.
"""

from __future__ import annotations

import asyncio
import gc
import io
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from gateway.daemon import Serving
from tests.bench.load import Stream, ask
from tests.bench.machine import OTHER_CORE, process
from tests.ports import free_port
from tests.serving import served

UNIT = 150_000
"""So many steps of a loop in Python are one piece of work: some 3 ms where a frame of the others must not wait for more than 50."""
MOST_UNITS = 16.0
LONG = 40_000
"""Tokens: nearly as much as is taken of one reply."""
WORD = "word %d is here. "


def unit() -> float:
    """Seconds of the processor that one piece of work takes here, the best of five."""
    found: list[float] = []
    for _ in range(5):
        began = time.thread_time()
        for _ in range(UNIT):
            pass
        found.append(time.thread_time() - began)
    return min(found)


@asynccontextmanager
async def held() -> AsyncGenerator[list[float]]:
    """How long the loop was held at a time meanwhile, in seconds of its thread's processor time."""
    holds: list[float] = []

    async def look() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            holds.append(now - before)
            before = time.thread_time()

    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    try:
        yield holds
    finally:
        looking.cancel()


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    """A gateway whose model is a process of its own: what it does is nobody's hold."""
    port = free_port()
    with process(["-m", "tests.bench.upstream", str(port)], port, core=OTHER_CORE, log=tmp_path / "model.log"):
        env = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "OPENAI_API_KEY": "none",
            "OUTSPOKEN_MODEL__NAME": "bench",
        }
        async with served(tmp_path, env, patient=True) as serving:
            await asked(serving, "bench tokens=1")  # what the first one loads
            gc.collect()
            gc.freeze()  # what other tests of this process left is looked through in none of these holds
            try:
                yield serving
            finally:
                gc.unfreeze()


async def asked(up: Serving, words: str, *, stream: bool = True) -> Stream:
    return await ask(int(up.url.rsplit(":", 1)[1]), words, stream=stream)


async def others(up: Serving) -> None:
    """Some people who read along at the usual pace."""
    await asyncio.gather(*(asked(up, "bench tokens=60 pace=0.02") for _ in range(4)))


async def longest(up: Serving, work: Awaitable[object]) -> float:
    """The longest hold of the loop while `work` is done and others read, in units of work."""
    async with held() as holds:
        await asyncio.gather(work, others(up))
        await asyncio.sleep(0.2)  # what is done behind its end
    return max(holds) / unit()


async def with_result(up: Serving, chars: int) -> None:
    """A client that brings a large result of a tool along."""
    text = "".join(WORD % number for number in range(chars // 16))
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "bench tokens=20 pace=0.02"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]
    body = {"model": "outspoken", "stream": True, "messages": messages}
    data, headers = io.BytesIO(orjson.dumps(body)), {"Content-Type": "application/json"}
    address = f"{up.url}/v1/chat/completions"
    async with aiohttp.ClientSession() as client, client.post(address, data=data, headers=headers) as answer:
        assert answer.status == 200
        assert b"[DONE]" in await answer.read()


async def test_one_stream_as_fast_as_it_can_be_holds_nobody_up(up: Serving) -> None:
    assert await longest(up, asked(up, f"bench tokens={LONG}")) < MOST_UNITS


async def test_a_long_answer_that_is_given_at_once_holds_nobody_up(up: Serving) -> None:
    assert await longest(up, asked(up, f"bench tokens={LONG}", stream=False)) < MOST_UNITS


async def test_an_answer_that_is_longer_than_any_is_given_up_without_holding_anybody_up(up: Serving) -> None:
    assert await longest(up, asked(up, "bench tokens=200000")) < MOST_UNITS


async def test_a_result_of_a_megabyte_holds_nobody_up(up: Serving) -> None:
    assert await longest(up, with_result(up, 1_000_000)) < MOST_UNITS


async def test_a_hold_is_seen(up: Serving) -> None:
    """What would be too long is told: so the others say something."""

    async def holding() -> None:
        await asyncio.sleep(0.1)
        until = time.thread_time() + unit() * MOST_UNITS * 2
        while time.thread_time() < until:
            pass

    assert await longest(up, holding()) > MOST_UNITS
