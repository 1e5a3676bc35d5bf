"""Whoever watches a turn at a gateway that does not run it sees it grow, through the death of the one that does, without a gap or a repeat."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.several.together import CUT_OFF_SECONDS
from tests.databases import new_database
from tests.pressure import Unhindered
from tests.several.support import PATIENT_SECONDS, Cluster, Node, cluster
from tests.several.test_doors import Page, named
from tests.storage.test_postgres_ways import server
from tests.wire import cable

WORDS = " ".join(f"word{number}" for number in range(40))


@pytest.fixture
async def two(postgres_server: str, tmp_path: Path) -> AsyncGenerator[tuple[Cluster, Node, Node]]:
    database = await new_database(postgres_server, template="migrated")
    async with cluster(tmp_path, "telegram", database) as all_:
        first, second = await all_.begin("first"), await all_.begin("second")
        await all_.even(2)
        yield all_, first, second


class Stream:
    """What somebody is told who asks at one gateway."""

    def __init__(self, node: Node, name: str, words: str, key: str) -> None:
        self.node, self.name, self.words, self.key = node, name, words, key
        self.pieces: list[str] = []
        self.told = ""
        """All of it, as it came."""
        self.last: dict[str, Any] = {}

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    async def watch(self) -> None:
        headers = {"X-Outspoken-Session": self.name, "Idempotency-Key": self.key}
        body = {"model": "m1", "messages": [{"role": "user", "content": self.words}], "stream": True}
        async with (
            aiohttp.ClientSession() as http,
            http.post(f"{self.node.url}/v1/chat/completions", json=body, headers=headers) as response,
        ):
            assert response.status == 200, await response.text()
            async for line in response.content:
                self.told += line.decode()
                if line.startswith(b"data: {"):
                    self.last = json.loads(line[6:])
                    if piece := self.last["choices"][0]["delta"].get("content"):
                        self.pieces.append(piece)

    async def until(self, words: str) -> None:
        async with asyncio.timeout(PATIENT_SECONDS):
            while words not in self.text:
                await asyncio.sleep(0.02)


async def test_text_is_seen_elsewhere_while_it_is_written(two: tuple[Cluster, Node, Node]) -> None:
    all_, first, second = two
    (name,) = await named(all_, 1, 1)
    far, near = Stream(second, name, f"slow {WORDS}", "k"), Stream(first, name, f"slow {WORDS}", "k")
    async with asyncio.TaskGroup() as group:
        group.create_task(far.watch())
        while not all_.harness.model.requests:
            await asyncio.sleep(0.02)
        group.create_task(near.watch())
    assert far.text == near.text
    assert "word39" in far.text
    assert len(far.pieces) > 8, far.pieces  # six seconds of it: by the second there would be six
    all_.sound()


@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
async def test_no_gap_and_no_repeat_when_whoever_runs_it_goes(
    two: tuple[Cluster, Node, Node], ends: signal.Signals
) -> None:
    all_, first, second = two
    streams: list[Stream] = []
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(await named(all_, 1, 4)):
            streams.append(one := Stream(second, name, f"slow {WORDS} #{number}", f"k{number}"))
            group.create_task(one.watch())
        await asyncio.gather(*(one.until("word5") for one in streams))
        first.signal(ends)
    for one in streams:
        again = Stream(second, one.name, one.words, one.key)
        await again.watch()
        assert one.text == again.text
        assert one.text.count("word39") == 1
        assert one.last["choices"][0]["finish_reason"] == "stop", one.last
    all_.sound()


async def test_a_page_elsewhere_sees_text_grow(two: tuple[Cluster, Node, Node]) -> None:
    all_, _, second = two
    (name,) = await named(all_, 1, 1, "web/page")
    page = Page(second, name)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(page.watch())
        await page.say(f"slow {WORDS}")
        async with asyncio.timeout(PATIENT_SECONDS):
            while [one["state"] for one in page.seen.values()] != ["closed"]:
                await asyncio.sleep(0.05)
        watching.cancel()
    texts = ["\n".join(bubble.get("text", "") for bubble in one["bubbles"]) for one in page.told if one["bubbles"]]
    assert len(texts) > 8, texts  # by the second there would be six
    all_.sound()


TOOL = """
import time
from agent_core.toolbox import Call, effect

@effect(seconds=60)
def works(call: Call, steps: int) -> str:
    'Works.'
    for number in range(steps):
        call.progress(f"step {number} of {steps}")
        time.sleep(0.3)
    return "done"
"""


async def test_what_a_tool_says_of_how_far_it_is_is_seen_at_a_page_elsewhere(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "steps.py").write_text(TOOL)
    tools = {"OUTSPOKEN_TOOLS__PATH": str(tmp_path / "tools")}
    async with cluster(tmp_path, "telegram", database) as all_:
        await all_.begin("first", **tools)
        second = await all_.begin("second", **tools)
        await all_.even(2)
        (name,) = await named(all_, 1, 1, "web/page")
        page = Page(second, name)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(page.watch())
            await page.say(f"usetool works {json.dumps({'steps': 12})}")
            async with asyncio.timeout(60):
                while [one["state"] for one in page.seen.values()] != ["closed"]:
                    await asyncio.sleep(0.05)
            watching.cancel()
        texts = ["\n".join(bubble.get("text", "") for bubble in one["bubbles"]) for one in page.told if one["bubbles"]]
        assert len({text for text in texts if "step " in text}) >= 2, texts
        assert "step " not in texts[-1], "it is taken back"
        all_.sound()


async def test_a_stream_pauses_while_the_database_is_restarted_and_goes_on(tmp_path: Path) -> None:
    with server() as database:
        url = f"postgresql://postgres@127.0.0.1:{database.port}/postgres"
        async with cluster(tmp_path, "telegram", url) as all_:
            await all_.begin("first")
            second = await all_.begin("second")
            await all_.even(2)
            streams = [
                Stream(second, name, f"slow {WORDS} #{owner}{number}", f"k{owner}{number}")
                for owner in (1, 2)
                for number, name in enumerate(await named(all_, owner, 2))
            ]
            async with asyncio.TaskGroup() as group:
                for one in streams:
                    group.create_task(one.watch())
                await asyncio.gather(*(one.until("word3") for one in streams))
                await asyncio.to_thread(database.stop, "immediate")
                await asyncio.sleep(2)
                await asyncio.to_thread(database.start)
            for one in streams:
                assert one.text.strip() == one.words.removeprefix("slow "), one.text
                assert one.last["choices"][0]["finish_reason"] == "stop", one.last
            assert await all_.ask("SELECT count(*) FROM nodes") == [(2,)], "nothing began anew"
            all_.sound()


AWAY = "cannot store anything just now"
SOON_SECONDS = 7.0
"""Until whoever looks is told that nothing new can be known: what was asked of the database last has to be given up first."""


async def test_who_watches_at_a_gateway_that_is_cut_off_is_told_soon_and_led_to_the_other(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    with cable(database) as (url, way):
        async with cluster(tmp_path, "telegram", database) as all_:
            holds = {"OUTSPOKEN_MODEL__STALL_SECONDS": "120"}
            first = await all_.begin("first", OUTSPOKEN_STORAGE__URL=url, **holds)
            second = await all_.begin("second", **holds)
            await all_.even(2)
            (name,) = await named(all_, 2, 1, "web/page")
            (talk,) = await named(all_, 2, 1)
            here, there = Page(first, name), Page(second, name)
            stream = Stream(first, talk, f"hold {WORDS}", "watched")
            page, asking = asyncio.create_task(here.watch()), asyncio.create_task(stream.watch())
            await there.say(f"hold {WORDS}")
            await asyncio.gather(here.until("word2"), stream.until("word2"))
            way.silent = True
            cut_off = Unhindered()
            await here.until(AWAY)
            assert cut_off.seconds < SOON_SECONDS
            await asyncio.gather(page, asking)
            assert cut_off.seconds < CUT_OFF_SECONDS + 2 * SOON_SECONDS
            all_.harness.model.released.set()  # it is not over before they are told
            assert way.silent, "their streams have ended, and they may come again elsewhere"
            assert stream.last["outspoken"]["exit"] == "left_open"
            assert AWAY in stream.told
            again = Stream(second, talk, f"hold {WORDS}", "watched")
            await again.watch()
            assert again.text.strip() == f"{WORDS} end"
            assert stream.text.split("\n\n[")[0].strip() in WORDS, "and what was shown was true"
            way.silent = False
            await all_.even(2)
            all_.sound()


async def test_who_watches_what_runs_at_a_gateway_that_is_cut_off_sees_its_text_come(
    postgres_server: str, tmp_path: Path
) -> None:
    """Perhaps nobody reaches the database, and nothing is taken over."""
    database = await new_database(postgres_server, template="migrated")
    with cable(database) as (url, way):
        async with cluster(tmp_path, "telegram", database) as all_:
            first = await all_.begin("first", OUTSPOKEN_STORAGE__URL=url)
            await all_.begin("second")
            await all_.even(2)
            (name,) = await named(all_, 1, 1, "web/page")
            page = Page(first, name)
            watching = asyncio.create_task(page.watch())
            await page.say("hold something")
            await page.until('"open"')
            way.silent = True
            await asyncio.sleep(CUT_OFF_SECONDS + 2)
            assert not watching.done()
            way.silent = False
            watching.cancel()
