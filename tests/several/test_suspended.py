"""A gateway that is suspended for a while, and goes on: it does nothing that is not its own any more, and whoever had asked at it knows where they stand."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import aiohttp
import pytest

from tests.chats.slack_harness import SlackHarness
from tests.databases import new_database
from tests.several.support import PATIENT_SECONDS, Talks, cluster
from tests.several.test_doors import named
from tests.several.test_watching import Stream

pytestmark = pytest.mark.timeout(180)
WORDS = "slow " + " ".join(f"word{number}" for number in range(40))


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


async def test_whoever_asked_at_a_suspended_gateway_is_told_that_it_goes_on_and_has_all_of_it_once(
    database: str, tmp_path: Path
) -> None:
    """In conversations of both, in a request of its own, and in one that begins while it is suspended."""
    async with cluster(tmp_path, "telegram", database) as all_:
        first, second = await all_.begin("first"), await all_.begin("second")
        await all_.even(2)
        (here,), (there,) = await named(all_, 1, 1), await named(all_, 2, 1)
        streams = [Stream(first, name, f"{WORDS} #{key}", key) for key, name in (("h", here), ("t", there), ("s", ""))]
        ends: dict[str, str] = {}

        async def watch(one: Stream) -> None:
            try:
                await one.watch()
                ends[one.key] = one.last["choices"][0]["finish_reason"]
            except (aiohttp.ClientError, AssertionError) as error:
                ends[one.key] = str(error)[:300]

        async with asyncio.TaskGroup() as group:
            for one in streams:
                group.create_task(watch(one))
            await asyncio.gather(*(one.until("word3") for one in streams))
            first.signal(signal.SIGSTOP)
            late = Stream(first, "", f"{WORDS} #late", "late")
            group.create_task(watch(late))
            await all_.even(1)
            await asyncio.sleep(4)
            asked = len(all_.harness.model.requests)
            first.signal(signal.SIGCONT)
            went_on = time.monotonic()
            async with asyncio.timeout(PATIENT_SECONDS):
                while len(ends) < 4:
                    await asyncio.sleep(0.05)
            told = time.monotonic() - went_on
        print(f"told {told:.2f} s after it went on")
        for one in (streams[0], streams[2], late):
            assert ends[one.key] == "length", (one.key, ends[one.key])
            assert "this goes on afterwards" in one.text
        assert not [m for m in all_.harness.model.requests[asked:] if "#late" not in str(m)], (
            "nothing is asked too late"
        )
        for one in (*streams, late):
            again = Stream(second, one.name, one.words, one.key)
            await again.watch()
            assert again.text.count("word39") == 1, again.text
            if one.key == "t":
                assert one.text == again.text
        assert await all_.ask("SELECT count(*) FROM turns WHERE state = 'open'") == [(0,)]
        asked_of = [sum(f"#{one.key}" in str(m) for m in all_.harness.model.requests) for one in (*streams, late)]
        assert asked_of == [2, 1, 2, 1], "each once more where it was cut off"
        await all_.even(2)
        for one in streams:  # it has begun anew, and is where it was
            again = Stream(first, one.name, one.words, one.key)
            await again.watch()
            assert again.text.count("word39") == 1, again.text
        all_.sound()


async def test_the_sockets_of_a_suspended_gateway_change_the_order_of_no_chat(database: str, tmp_path: Path) -> None:
    """They stay open at Slack, which gives them their share. Whoever has the sockets now looks what was said before."""
    async with cluster(tmp_path, "slack", database) as all_:
        assert isinstance(all_.harness, SlackHarness)
        slack = all_.harness.fake
        slack.outbox.retries_seconds = (1.0,) * 30
        nodes = [await all_.begin("first")]
        await all_.harness.ready()
        nodes.append(await all_.begin("second"))
        await all_.even(2)
        talks = Talks(all_.harness, 6)
        talks.say_everywhere()
        await talks.all_answered()
        before = list(slack.sockets.open)
        nodes[0].signal(signal.SIGSTOP)
        await all_.even(1)
        async with asyncio.timeout(PATIENT_SECONDS):
            while all(one in before for one in slack.sockets.open):
                await asyncio.sleep(0.05)
        assert all(one in slack.sockets.open for one in before)
        await asyncio.sleep(3)  # the gap is read
        for _ in range(4):
            talks.say_everywhere()
            await asyncio.sleep(0.5)
        await talks.all_answered()
        talks.judge()
        nodes[0].signal(signal.SIGCONT)
        talks.say_everywhere()
        await all_.even(2)
        talks.say_everywhere()
        await talks.all_answered()
        talks.judge()
        all_.sound()
