"""Chats that several gateways share: each message is answered once, whoever took it; who dies, stops or leaves is followed by the others."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from tests.databases import new_database
from tests.pressure import Unhindered
from tests.several.support import HARNESSES, PATIENT_SECONDS, Talks, cluster
from tests.wire import cable


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


@pytest.mark.some(1)
@pytest.mark.parametrize("platform", sorted(HARNESSES))
async def test_two_share_the_chats_and_each_message_is_answered_once(
    platform: str, database: str, tmp_path: Path
) -> None:
    async with cluster(tmp_path, platform, database) as all_:
        await all_.begin("first")
        await all_.harness.ready()
        talks = Talks(all_.harness, 8)
        talks.say_everywhere()
        await talks.all_answered()
        await all_.begin("second")
        await all_.even(2)
        for _ in range(2):
            talks.say_everywhere()
            await talks.all_answered()
        talks.judge()
        owners = await all_.ask(
            "SELECT DISTINCT s.owner FROM turns t JOIN sessions s USING (session) WHERE t.state = 'closed'"
        )
        assert len(owners) == 2, "both run turns"
        await asyncio.sleep(0.5)
        talks.judge()
        all_.sound()


GONE = [
    ("telegram", signal.SIGKILL),
    ("discord", signal.SIGKILL),
    ("slack", signal.SIGKILL),
    ("telegram", signal.SIGSTOP),
]


@pytest.mark.some(2)
@pytest.mark.parametrize(("platform", "how"), GONE)
async def test_what_is_gone_is_followed_by_the_other(
    platform: str, how: signal.Signals, database: str, tmp_path: Path
) -> None:
    async with cluster(tmp_path, platform, database) as all_:
        first = await all_.begin("first")
        second = await all_.begin("second")
        await all_.even(2)
        await all_.harness.ready()
        talks = Talks(all_.harness, 8)
        talks.say_everywhere()
        await talks.all_answered()
        for which in range(len(talks.people)):
            talks.say(which, "slow one two three four five six seven answer")
        await asyncio.sleep(0.5)
        gone = Unhindered()
        first.signal(how)
        await all_.even(1)
        took = gone.seconds
        talks.say_everywhere()
        await talks.all_answered()
        print(f"all slices {took:.2f} s after {how.name}, all answered after {gone.seconds:.2f} s")
        talks.judge()
        assert took < (3 if how is signal.SIGKILL else 8)
        if how is signal.SIGSTOP:
            asked = len(all_.harness.model.requests)
            first.signal(signal.SIGCONT)
            await all_.even(2)  # it is there again, as another node, in the same process
            assert first.inner.returncode is None
            assert len(all_.harness.model.requests) == asked, "nothing is asked by who came too late"
            talks.say_everywhere()
            await talks.all_answered()
            talks.judge()
        assert second.inner.returncode is None
        all_.sound()


LATE = """
import asyncio
from gateway.recovery.keeper import Keeper

look = Keeper._look


async def late(self):
    if len(self._portion.held) > 60:
        await asyncio.sleep(4)
    await look(self)


Keeper._look = late
"""
"""Who has all chats finds late what others have left."""


async def test_an_answer_that_was_left_comes_before_that_to_what_is_said_next(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "telegram", database) as all_:
        first, second = await all_.begin("first"), await all_.begin("second", LATE)
        await all_.even(2)
        await all_.harness.ready()
        talks = Talks(all_.harness, 6)
        talks.say_everywhere()
        await talks.all_answered()
        ran = await all_.ask("SELECT s.key FROM sessions s WHERE owner = 1")
        theirs = [n for n, place in enumerate(talks.places) if f"/{all_.harness.chat_of(place)}/" in str(ran)]
        assert theirs, "chats are shared"
        all_.harness.flood(60)
        talks.say(theirs[0])
        async with asyncio.timeout(PATIENT_SECONDS):
            while not (
                all_.harness.flooded()
                and await all_.ask("SELECT 1 FROM deliveries WHERE state IN ('wanted', 'sending')")
            ):
                await asyncio.sleep(0.05)
        first.signal(signal.SIGKILL)
        talks.say(theirs[0])
        await talks.all_answered()
        talks.judge()
        said = second.log.read_text()
        assert said.index("slices.taken") < said.index("turn.started"), "the second goes on"
        all_.sound()


async def test_who_is_cut_off_from_the_database_leaves_the_poll_to_the_next(database: str, tmp_path: Path) -> None:
    with cable(database) as (url, way):
        async with cluster(tmp_path, "telegram", database) as all_:
            first = await all_.begin("first", OUTSPOKEN_STORAGE__URL=url)
            second = await all_.begin("second")
            await all_.even(2)
            await all_.harness.ready()
            talks = Talks(all_.harness, 12)
            talks.say_everywhere()
            await talks.all_answered()
            await asyncio.sleep(1)  # that the answers are sent is stored
            way.silent = True
            for which in range(10):
                talks.say(which)
                await asyncio.sleep(1)
            asked = Unhindered()
            await talks.all_answered()
            took = asked.seconds
            way.silent = False
            await all_.even(2)
            talks.say_everywhere()
            await talks.all_answered()
            talks.judge()
            assert took < 5, "the poll is the next one's alone"
            for node in (first, second):
                said = node.log.read_text()
                assert "telegram.conflict" not in said, "nobody is told to stop one of them"
                assert "adapter.failed" not in said


async def test_one_that_ends_hands_over_at_once(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "telegram", database) as all_:
        first = await all_.begin("first")
        await all_.begin("second")
        await all_.even(2)
        talks = Talks(all_.harness, 8)
        talks.say_everywhere()
        await talks.all_answered()
        for which in range(4):
            talks.say(which, "slow one two three four five answer")
        await asyncio.sleep(0.3)
        told = time.monotonic()
        first.signal(signal.SIGTERM)
        while (await all_.ask("SELECT count(*) FROM slices WHERE owner = 1"))[0][0] > 8:
            await asyncio.sleep(0.01)
        print(f"what was idle was handed over {time.monotonic() - told:.3f} s after it was told to stop")
        for which in range(4, 8):
            talks.say(which)
        await talks.all_answered()
        assert await first.ended() == 0
        await all_.even(1)
        talks.say_everywhere()
        await talks.all_answered()
        talks.judge()
        all_.sound()


async def test_commands_reach_whoever_runs_the_conversation(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "telegram", database) as all_:
        for name in ("first", "second"):  # what holds on is stopped, and not given up before on a busy machine
            await all_.begin(name, OUTSPOKEN_MODEL__STALL_SECONDS="60", OUTSPOKEN_MODEL__FIRST_CONTENT_SECONDS="60")
        await all_.even(2)
        harness, people = all_.harness, 8
        talks = Talks(harness, people)
        for which in range(people):
            harness.say(talks.places[which], talks.people[which], "hold on")
        async with asyncio.timeout(PATIENT_SECONDS):
            while len(harness.model.requests) < people:
                await asyncio.sleep(0.05)
        for which in range(people):
            harness.say(talks.places[which], talks.people[which], "/stop")
        async with asyncio.timeout(PATIENT_SECONDS):
            while (await all_.ask("SELECT count(*) FROM turns WHERE exit = 'stopped'"))[0][0] < people:
                await asyncio.sleep(0.05)
        talks.say_everywhere()
        await talks.all_answered()
        talks.judge()
        all_.sound()
