"""The connections of an account that has several: shared by the gateways, and moved without a gap when one comes or goes."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chats.slack_harness import SlackHarness
from tests.databases import new_database
from tests.several.support import Cluster, Talks, cluster

pytestmark = pytest.mark.timeout(150)


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


async def until(true: Callable[[], bool], seconds: float = 20) -> float:
    """How long it took."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def shared(all_: Cluster, *counts: int) -> None:
    """As soon as the connections of the account are shared like this."""
    query = "SELECT owner, count(*) FROM slices WHERE slice LIKE 'account/%%' AND owner IS NOT NULL GROUP BY owner"
    async with asyncio.timeout(20):
        while sorted(count for _, count in await all_.ask(query)) != sorted(counts):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_sockets_of_slack_are_spread_and_moved(how: signal.Signals, database: str, tmp_path: Path) -> None:
    sockets = {"OUTSPOKEN_SLACK__SOCKETS": "3"}
    async with cluster(tmp_path, "slack", database) as all_:
        harness = all_.harness
        assert isinstance(harness, SlackHarness)
        slack = harness.fake
        await all_.begin("first", **sockets)
        await until(lambda: len(slack.sockets.open) == 3)
        talks = Talks(harness, 6)
        talks.say_everywhere()
        await talks.all_answered()

        def histories() -> int:
            return slack.log.routes().count("conversations.history")

        await asyncio.sleep(1)  # the first one reads what it finds
        read = histories()
        second = await all_.begin("second", **sockets)
        await all_.even(2)
        await shared(all_, 1, 2)
        await until(lambda: len(slack.sockets.open) == 3)
        moved = slack.sockets.latest
        assert moved.number > 3, "the second has opened one of its own"
        for _ in range(3):
            talks.say_everywhere()
            await talks.all_answered()
        assert all(one.acked for one in slack.sockets.open), "each of them takes in"
        assert histories() == read, "who is handed a socket has missed nothing"
        talks.judge()

        second.signal(how)
        for _ in range(3):  # what goes to a socket that is gone is told again to another one
            talks.say_everywhere()
            await asyncio.sleep(0.3)
        await all_.even(1)
        await shared(all_, 3)
        await until(lambda: len([one for one in slack.sockets.open if one is not moved]) == 3)
        talks.say_everywhere()
        await talks.all_answered(60)
        assert {number for one in talks.said for number in one} == {
            number for which in range(6) for number in talks.answers(which)
        }
        if how is signal.SIGTERM:
            assert histories() == read
        else:
            assert histories() > read, "nobody said how far the socket was"
        all_.sound()
