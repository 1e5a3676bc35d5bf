"""What a person sees when a model fails, with the gateway and without. ``python -m tests.bench.without``

Both are given the same failing model (tests/e2e): each way to fail once. *Without* is the usual loop around the `openai` client, as its
guides show it: its own retries and timeouts, tools run until none is asked for, text shown as it comes, and any error told.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import openai
import structlog

from tests.e2e.test_upstream_faults import RECOVERED, SECRET, TOLD, ask, scenarios
from tests.e2e.upstream import upstream
from tests.serving import served

PATIENCE_SECONDS = 15.0
"""So long a person waits for something new. (The client itself waits for ten minutes.)"""
LONGEST_SECONDS = 120.0
"""All of them are over by then, or still waiting."""
STEPS = 12
AT_ONCE = 40


class Seen(StrEnum):
    """What a person has at the end."""

    ANSWER = "the answer"
    TOLD = "a notice that says what was not done, and why"
    ERROR = "an error"
    UNFINISHED = "something unfinished or empty that looks finished"
    NOTHING = "still waiting"


async def plain(client: openai.AsyncOpenAI, name: str, said: list[str]) -> None:
    """The usual loop; what is shown is added to `said`. Raises what the client raises."""
    messages: list[Any] = [{"role": "user", "content": f"scenario: {name}"}]
    for _ in range(STEPS):
        calls: dict[int, dict[str, str]] = {}
        text = ""
        async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                said.append(choice.delta.content or "")
                for part in choice.delta.tool_calls or ():
                    known = calls.setdefault(part.index, {"id": part.id or "", "name": "", "arguments": ""})
                    if part.function is not None:
                        known["name"] += part.function.name or ""
                        known["arguments"] += part.function.arguments or ""
        if not calls:
            return
        asked = [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}} for c in calls.values()]  # fmt: skip
        messages.append({"role": "assistant", "content": text, "tool_calls": asked})
        for call in calls.values():
            json.loads(call["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})


def judged(name: str, said: str) -> Seen:
    """What text without an error is worth: the model's answers all end alike."""
    whole = ("well.", "done.", "be.", "Indeed.", "é")
    return Seen.ANSWER if name in RECOVERED and said.strip().endswith(whole) else Seen.UNFINISHED


async def without(url: str, name: str) -> Seen:
    """One way to fail, without the gateway."""
    said: list[str] = []
    client = openai.AsyncOpenAI(base_url=url, api_key=SECRET)
    task = asyncio.create_task(plain(client, name, said))
    seen = -1
    while not task.done() and len(said) > seen:
        seen = len(said)
        await asyncio.wait([task], timeout=PATIENCE_SECONDS)
    if task.done():
        return Seen.ERROR if task.exception() is not None else judged(name, "".join(said))
    task.cancel()
    await asyncio.wait([task], timeout=1)  # a client that goes on reading is left to itself: this program ends soon
    return Seen.NOTHING


async def with_it(http: aiohttp.ClientSession, url: str, name: str) -> Seen:
    """The same with it."""
    said, _, code = await ask(http, url, name)
    if code == "answered":
        return judged(name, said)
    return Seen.TOLD if said.strip() else Seen.NOTHING


async def compare(folder: Path) -> Mapping[str, Counter[Seen]]:
    """How often each was seen."""
    names, limit = (*RECOVERED, *TOLD), asyncio.Semaphore(AT_ONCE)

    async def all_of(seen: Callable[[str], Coroutine[Any, Any, Seen]]) -> Counter[Seen]:
        async def one(name: str) -> Seen:
            async with limit:
                return await seen(name)

        tasks = [asyncio.create_task(one(name)) for name in names]
        await asyncio.wait(tasks, timeout=LONGEST_SECONDS)
        return Counter(task.result() if task.done() else Seen.NOTHING for task in tasks)

    async with upstream(scenarios()) as model:
        plainly = await all_of(lambda name: without(model.url, name))
    async with upstream(scenarios()) as model, aiohttp.ClientSession() as http:
        env = {"OUTSPOKEN_MODEL__BASE_URL": model.url, "OUTSPOKEN_MODEL__NAME": "m", "OUTSPOKEN_MODEL__API_KEY": SECRET}
        async with served(folder, env) as up:
            ours = await all_of(lambda name: with_it(http, up.url, name))
    return {"without": plainly, "with outspoken": ours}


async def report() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="outspoken-without-") as name:
        found = await compare(Path(name))
    print(f"{len(RECOVERED) + len(TOLD)} ways in which a model fails; what a person has at the end\n")
    print(f"| | {' | '.join(found)} |\n|---|{'---|' * len(found)}")
    for seen in Seen:
        print(f"| {seen.value} | {' | '.join(str(counts[seen]) for counts in found.values())} |", flush=True)
    os._exit(0)  # a client that was left may never end


def main() -> None:
    """Entry point."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    asyncio.run(report())


if __name__ == "__main__":
    main()
