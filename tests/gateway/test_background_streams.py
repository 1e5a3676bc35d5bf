"""The stream of a response in the background, through the death of the gateway: what is gone on with fits what was told before."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.upstream import HEAD, Wait, delta, end, upstream
from tests.forked import Forked, start
from tests.gateway.test_process import environment
from tests.ports import free_port

FIRST = (HEAD, *(piece for n in range(40) for piece in (delta(content=f"one{n} "), Wait(0.05))), end())
SECOND = (HEAD, delta(content="Quite another answer, "), Wait(0.1), delta(content="from the next process."), end())
"""A model seldom says the same again."""


async def ready(process: Forked, url: str) -> None:
    async with asyncio.timeout(100), aiohttp.ClientSession() as client:
        while True:
            with suppress(aiohttp.ClientError):
                async with client.get(f"{url}/readyz") as response:
                    if response.status == 200:
                        return
            assert process.returncode is None
            await asyncio.sleep(0.05)


async def read(response: aiohttp.ClientResponse, events: list[dict[str, Any]], texts: int = 10**6) -> None:
    """The events of a stream, until it ends, breaks, or so many pieces of text have come."""
    with suppress(aiohttp.ClientError):
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
                if sum(event["type"] == "response.output_text.delta" for event in events) >= texts:
                    return


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


@pytest.mark.parametrize("pieces", [1, 4])
async def test_the_stream_is_gone_on_with_where_it_was_though_the_gateway_was_killed_and_the_model_says_something_else(
    tmp_path: Path, pieces: int
) -> None:
    port, log = free_port(), tmp_path / "log"
    url = f"http://127.0.0.1:{port}"
    async with upstream({"go": [FIRST, SECOND]}) as model, aiohttp.ClientSession() as client:
        env = environment(tmp_path, port, OUTSPOKEN_MODEL__BASE_URL=model.url, OUTSPOKEN_MODEL__NAME="m")
        env["OPENAI_API_KEY"] = "sk-test"
        told: list[dict[str, Any]] = []
        process = start(["run"], env, out=log, err=log)
        try:
            await ready(process, url)
            asked = {"model": "outspoken", "input": "scenario: go", "background": True, "stream": True}
            async with client.post(f"{url}/v1/responses", json=asked) as response:
                await read(response, told, pieces)
                process.kill()
                await read(response, told)
        finally:
            process.kill()
        process = start(["run"], env, out=log, err=log)
        try:
            await ready(process, url)
            stream = f"{url}/v1/responses/{told[0]['response']['id']}"
            params = {"stream": "true", "starting_after": str(told[-1]["sequence_number"])}
            rest: list[dict[str, Any]] = []
            async with asyncio.timeout(60), client.get(stream, params=params) as response:
                await read(response, rest)
            async with client.get(stream) as response:
                whole = await response.json()
        finally:
            process.kill()
    assert whole["status"] == "completed"
    said = "".join(item["content"][0]["text"] for item in whole["output"] if item["type"] == "message")
    assert "from the next process" in said
    assert text_of([*told, *rest]) == said
    numbers = [event["sequence_number"] for event in [*told, *rest]]
    assert numbers == sorted(set(numbers))
