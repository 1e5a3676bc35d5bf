"""An SDK's retry joins what is stored of its first request, over a restart too: nothing is run twice."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp

from tests.serving import served

ENV = {"OUTSPOKEN_SERVER__DRAIN_SECONDS": "0"}
SLOW = {"model": "outspoken", "messages": [{"role": "user", "content": "count to 20 slowly"}]}


async def asked(url: str, count: int, body: dict[str, Any] = SLOW) -> tuple[int, dict[str, Any]]:
    """An answer, as an SDK asks for it the first time, or again."""
    headers = {"x-stainless-retry-count": str(count)}
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/chat/completions", json=body, headers=headers) as got,
    ):
        return got.status, await got.json()


def turns(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "outspoken.db")) as database:
        return int(database.execute("SELECT count(*) FROM turns").fetchone()[0])


async def test_a_retry_over_a_restart_joins_the_turn_that_goes_on_and_one_that_ended_meanwhile(tmp_path: Path):
    async with served(tmp_path, ENV) as first:
        lost = [asyncio.create_task(asked(first.url, 0)) for _ in range(2)]
        while turns(tmp_path) < 2:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
    for one in await asyncio.gather(*lost, return_exceptions=True):
        assert isinstance(one, BaseException) or one[1]["outspoken"]["exit"] == "left_open", one
    async with served(tmp_path, ENV) as second:
        answers = await asyncio.gather(asked(second.url, 1), asked(second.url, 1))
        assert [status for status, _ in answers] == [200, 200]
        assert all("19, 20." in body["choices"][0]["message"]["content"] for _, body in answers)
        assert len({body["id"] for _, body in answers}) == 2, "each of the two is somebody's"
        assert turns(tmp_path) == 2
        other = {**SLOW, "messages": [{"role": "user", "content": "hello"}]}
        assert (await asked(second.url, 1, other))[0] == 200
        assert turns(tmp_path) == 3, "of another body"
    async with served(tmp_path, ENV) as third:
        _, again = await asked(third.url, 1, other)
        assert again["id"] not in {body["id"] for _, body in answers}
        assert turns(tmp_path) == 4, "whoever had an answer wants another"
