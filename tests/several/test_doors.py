"""The API and the web page at a gateway that does not run the conversation: served, and heeded by the one that does."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent_core.store.slices.rows import slice_of
from tests.databases import new_database
from tests.several.support import Cluster, Node, cluster

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def two(postgres_server: str, tmp_path: Path) -> AsyncGenerator[tuple[Cluster, Node, Node]]:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        first, second = await all_.begin("first"), await all_.begin("second")
        await all_.even(2)
        yield all_, first, second


async def named(all_: Cluster, owner: int, count: int) -> list[str]:
    """Names of conversations that this node runs."""
    held = {name for (name,) in await all_.ask(f"SELECT slice FROM slices WHERE owner = {owner}")}
    names = (f"talk-{number}" for number in range(10_000))
    return [name for name in names if slice_of(f"api/key/{name}//") in held][:count]


async def asked(node: Node, name: str, words: str, *, stream: bool = False, key: str = "") -> Any:
    headers = {"X-Outspoken-Session": name} | ({"Idempotency-Key": key} if key else {})
    body = {"model": "m1", "messages": [{"role": "user", "content": words}], "stream": stream}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{node.url}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        read = await response.text()
        assert response.status == 200, read
        return read if stream else json.loads(read)


def said(stream: str) -> str:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


async def test_a_request_is_answered_wherever_it_comes(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    for owner in (1, 2):
        for number, name in enumerate(await named(all_, owner, 3)):
            for node in (first, second):
                found = await asked(node, name, f"say hello #{number}")
                assert f"hello #{number}" in found["choices"][0]["message"]["content"]
                assert f"hello #{number}" in said(await asked(node, name, f"say hello #{number}", stream=True))
    assert (await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'"))[0][0] == 0
    assert (await all_.ask("SELECT count(*) FROM turns"))[0][0] == 24
    all_.sound()


async def test_what_is_watched_elsewhere_is_followed_through_a_takeover(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1)
    asking = asyncio.create_task(asked(second, name, "slow one two three four five six seven eight", stream=True))
    while not all_.harness.model.requests:
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.3)
    first.signal(signal.SIGKILL)
    stream = await asking
    assert said(stream).count("eight") == 1
    assert "[DONE]" in stream
    all_.sound()
