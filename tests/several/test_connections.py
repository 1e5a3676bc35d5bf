"""The connections of an account that has several: shared by the gateways, and moved without a gap when one comes or goes."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from adapters.discord.sessions import BEGIN_MS
from tests.chats.discord_harness import DiscordHarness
from tests.chats.slack_harness import SlackHarness
from tests.databases import new_database
from tests.fakes.discord import Channel, Route
from tests.fakes.discord.gateway import Gateway
from tests.fakes.discord.ids import shard_of
from tests.fakes.discord.sessions import Op
from tests.several.support import PATIENT_SECONDS, Cluster, Talks, cluster
from tests.wire import cable


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


async def until(true: Callable[[], bool], seconds: float = PATIENT_SECONDS) -> float:
    """How long it took."""
    began = time.monotonic()
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)
    return time.monotonic() - began


async def shared(all_: Cluster, *counts: int) -> None:
    """As soon as the connections of the account are shared like this."""
    query = "SELECT owner, count(*) FROM slices WHERE slice LIKE 'account/%%' AND owner IS NOT NULL GROUP BY owner"
    async with asyncio.timeout(PATIENT_SECONDS):
        while sorted(count for _, count in await all_.ask(query)) != sorted(counts):
            await asyncio.sleep(0.05)


async def read_up(all_: Cluster, talks: Talks) -> None:
    """As soon as nothing is left to be read of what was said: as long as there is, it is stored how far that was read."""
    wanted: set[tuple[str, str]] = set()
    for place in talks.places:
        said = [one.id for one in all_.harness.seen(place) if not one.mine]
        wanted.add((all_.harness.chat_of(place), said[-1]))
    async with asyncio.timeout(PATIENT_SECONDS):
        while not wanted <= set(await all_.ask("SELECT channel, last_seen FROM cursors")):
            await asyncio.sleep(0.05)


@pytest.mark.some(1)
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_sockets_of_slack_are_spread_and_moved(how: signal.Signals, database: str, tmp_path: Path) -> None:
    sockets = {"OUTSPOKEN_SLACK__SOCKETS": "3", "OUTSPOKEN_SLACK__SPREAD": "true"}
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

        await read_up(all_, talks)  # the first one reads what it finds
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
        await talks.all_answered()
        assert {number for one in talks.said for number in one} == {
            number for which in range(6) for number in talks.answers(which)
        }
        if how is signal.SIGTERM:
            assert histories() == read
        else:
            assert histories() > read, "nobody said how far the socket was"
        all_.sound()


class Queue:
    """The queue in which sessions of Discord are begun, as the database had it: when each place in it was over, by its own clock. How soon a session is
    begun that has its place is a matter of the machine."""

    def __init__(self, all_: Cluster) -> None:
        self._all = all_

    async def watched(self) -> None:
        """Before any gateway begins."""
        noted = "BEGIN INSERT INTO queued VALUES (NEW.last_seen::bigint); RETURN NEW; END"
        for statement in (
            "CREATE TABLE queued (free_at bigint)",
            f"CREATE FUNCTION queue() RETURNS trigger LANGUAGE plpgsql AS '{noted}'",
            "CREATE TRIGGER queue AFTER UPDATE ON cursors FOR EACH ROW WHEN (NEW.channel LIKE 'starts:%%') EXECUTE FUNCTION queue()",
        ):
            await self._all.ask(statement)

    async def judge(self, begun: int, apart_ms: int, left: int) -> None:
        """Each session that was begun had a place of its own, they keep apart, and no more than `left` were of somebody who was gone before it began."""
        places = [at for (at,) in await self._all.ask("SELECT free_at FROM queued ORDER BY free_at")]
        print(f"{len(places)} places for {begun} sessions")
        assert begun <= len(places) <= begun + left
        assert all(after - before >= apart_ms for before, after in pairwise(places)), places


SHARDS = {"OUTSPOKEN_DISCORD__SHARDS": "3"}


async def stored(all_: Cluster, gateway: Gateway) -> None:
    """As soon as it is stored how far each session is."""
    query = "SELECT last_seen FROM cursors WHERE channel LIKE 'session:%%' AND last_seen <> ''"
    async with asyncio.timeout(PATIENT_SECONDS):
        while True:
            known = {(one[0], one[1]) for one in (json.loads(told) for (told,) in await all_.ask(query))}
            if known == {(one.id, one.sent[-1].seq) for one in gateway.live}:
                return
            await asyncio.sleep(0.05)


class Servers:
    """A person in three servers, each of another connection of three, and in a thread of each."""

    def __init__(self, harness: DiscordHarness) -> None:
        self.harness = harness
        self.ada = harness.person("Ada")
        self.places: list[Channel] = []
        for shard in range(3):
            while True:
                channel = harness.group(self.ada)
                assert channel.guild is not None
                if shard_of(channel.guild.id, 3) == shard:
                    break
            self.places += [channel, harness.fake.people.thread(channel, self.ada, "aside")]
        self.places.append(harness.private(self.ada))
        self.said: list[str] = []

    def say(self) -> None:
        """In all of them."""
        for place in self.places:
            self.said.append(number := str(len(self.said)))
            self.harness.say(place, self.ada, f"say answer #{number}", mention=place is not self.places[-1])

    def answered(self) -> list[str]:
        shown = [one.text for place in self.places for one in self.harness.seen(place) if one.mine]
        return sorted((text.rsplit("#", 1)[1].split()[0] for text in shown if "#" in text), key=int)

    async def judge(self, seconds: float = 30) -> None:
        await until(lambda: set(self.answered()) == set(self.said), seconds)
        assert self.answered() == self.said, "each once"
        for place in self.places:
            mine = [one.text.rsplit("#", 1)[1] for one in self.harness.seen(place) if one.mine and "#" in one.text]
            assert mine == sorted(mine, key=int), "in its own place, in order"


async def test_shards_of_discord_are_spread_and_go_on_where_the_last_one_was(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "discord", database) as all_:
        harness = all_.harness
        assert isinstance(harness, DiscordHarness)
        fake = harness.fake
        await (queue := Queue(all_)).watched()
        servers = Servers(harness)

        def begun() -> int:
            return len(fake.gateway.of(Op.IDENTIFY))

        def histories() -> int:
            return sum(call.route == Route.LIST_MESSAGES for call in fake.log)

        await all_.begin("first", **SHARDS)
        await until(lambda: {one.shard for one in fake.gateway.live} == {0, 1, 2})
        servers.say()
        await servers.judge()
        assert begun() == 3
        await stored(all_, fake.gateway)
        read = histories()

        second = await all_.begin("second", **SHARDS)
        await shared(all_, 1, 2)
        await until(lambda: sum(one.resumes for one in fake.gateway.sessions) == 1)
        for _ in range(2):
            servers.say()
            await servers.judge()
        assert (begun(), histories()) == (3, read), (
            "who is handed a connection goes on with its session, and has missed nothing"
        )

        second.signal(signal.SIGKILL)
        servers.say()
        await shared(all_, 3)
        await servers.judge(60)
        assert sum(one.resumes for one in fake.gateway.sessions) == 2
        assert (begun(), histories()) == (3, read), "nor has who takes it from one that is killed"

        before = {one.id: one.resumes for one in fake.gateway.sessions}
        third = await all_.begin("third", **SHARDS)
        await shared(all_, 1, 2)
        await until(lambda: sum(one.resumes for one in fake.gateway.sessions) == 3)
        third.signal(signal.SIGKILL)
        (gone,) = [one for one in fake.gateway.sessions if one.resumes > before[one.id]]
        fake.gateway.sessions.remove(gone)
        fake.gateway.ended.append(gone)
        servers.say()
        await shared(all_, 3)
        await servers.judge(60)
        assert histories() > read, "a session that cannot go on is begun anew, and the history is read"
        await queue.judge(begun(), BEGIN_MS, 1)
        all_.sound()


async def test_the_one_connection_of_discord_goes_on_at_the_next_gateway(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "discord", database) as all_:
        harness = all_.harness
        assert isinstance(harness, DiscordHarness)
        fake = harness.fake
        first = await all_.begin("first")
        await harness.ready()
        await all_.begin("second")
        await all_.even(2)
        servers = Servers(harness)
        servers.say()
        await servers.judge()
        await stored(all_, fake.gateway)
        first.signal(signal.SIGTERM)
        assert await first.ended() == 0
        servers.say()
        await servers.judge()
        assert len(fake.gateway.of(Op.IDENTIFY)) == 1
        assert [one.resumes for one in fake.gateway.live] == [1]
        all_.sound()


QUICK_MS = 1_100
QUICK_QUEUE = f"""
import adapters.discord.adapter as adapter
import adapters.discord.sessions as sessions
import gateway.chats.supervisor as supervisor
sessions.BEGIN_MS, adapter.DEAF_SECONDS, adapter.PROBE_SECONDS, supervisor.LOOK_SECONDS = {QUICK_MS}, 10.0, 3.0, 1.0
"""
"""All a quarter to a fifth of what it is, so that a queue of a minute and a half takes a quarter of one."""


@pytest.mark.some(1)
@pytest.mark.parametrize("dies", [False, True])
async def test_a_queue_that_is_longer_than_the_patience_with_a_silent_connection_is_passed_by_all(
    dies: bool, database: str, tmp_path: Path
) -> None:
    """Sixteen connections of two gateways, which come one after the other, and so give each other places; then the one at the front is gone."""
    shards = 16
    async with cluster(tmp_path, "discord", database) as all_:
        harness = all_.harness
        assert isinstance(harness, DiscordHarness)
        fake = harness.fake
        await (queue := Queue(all_)).watched()
        many = {"OUTSPOKEN_DISCORD__SHARDS": f"{shards}"}
        first = await all_.begin("first", QUICK_QUEUE, **many)
        await until(lambda: len(fake.gateway.of(Op.IDENTIFY)) >= 1)
        second = await all_.begin("second", QUICK_QUEUE, **many)
        await shared(all_, shards // 2, shards // 2)
        if dies:
            first.signal(signal.SIGKILL)
            fake.gateway.sessions.clear()  # nobody can go on with what it had
        await until(lambda: {one.shard for one in fake.gateway.live} == {*range(shards)})
        await queue.judge(len(fake.gateway.of(Op.IDENTIFY)), QUICK_MS, shards // 2 - 1)
        for node in (second,) if dies else (first, second):
            assert "adapter.deaf" not in node.log.read_text()
        all_.sound()


IMPATIENT = (
    QUICK_QUEUE
    + """
import asyncio
import types
import adapters.discord.client
import discord.client

adapters.discord.client.WAIT_SECONDS = 6.0

def wait_for(work, timeout):
    return asyncio.wait_for(work, 8.0 if timeout == 60.0 else timeout)

discord.client.asyncio = types.SimpleNamespace(**{**vars(asyncio), "wait_for": wait_for})
"""
)
"""The library's patience with a connection that is not made is as much shorter as the queue."""


async def test_connections_whose_sessions_are_all_ended_later_wait_longer_than_the_library_does_and_are_all_had_again(
    database: str, tmp_path: Path
) -> None:
    shards = 16
    async with cluster(tmp_path, "discord", database) as all_:
        harness = all_.harness
        assert isinstance(harness, DiscordHarness)
        fake = harness.fake
        await (queue := Queue(all_)).watched()
        node = await all_.begin("first", IMPATIENT, OUTSPOKEN_DISCORD__SHARDS=f"{shards}")
        await until(lambda: {one.shard for one in fake.gateway.live} == {*range(shards)})
        fake.gateway.invalidate(resumable=False)
        await until(lambda: not fake.gateway.live)
        await until(lambda: {one.shard for one in fake.gateway.live} == {*range(shards)})
        await queue.judge(len(fake.gateway.of(Op.IDENTIFY)), QUICK_MS, 1)
        assert "adapter.deaf" not in node.log.read_text()
        all_.sound()


async def test_who_may_have_lost_its_connection_to_another_gateway_does_not_fight_for_it(
    database: str, tmp_path: Path
) -> None:
    """Each of two that go on with the same session cuts the other one off, and library and Discord let them do so thirty times a second."""
    with cable(database) as (url, way):
        async with cluster(tmp_path, "discord", database) as all_:
            assert isinstance(all_.harness, DiscordHarness)
            gateway = all_.harness.fake.gateway
            await all_.begin("first", OUTSPOKEN_STORAGE__URL=url)
            await all_.begin("second")
            await all_.even(2)
            talks = Talks(all_.harness, 4)
            talks.say_everywhere()
            await talks.all_answered()
            (session,) = gateway.live
            async with asyncio.timeout(PATIENT_SECONDS):
                while not await all_.ask("SELECT 1 FROM cursors WHERE channel LIKE 'session:%%' AND last_seen <> ''"):
                    await asyncio.sleep(0.05)  # how far it is, is stored each second
            way.silent = True
            await until(lambda: session.resumes > 0)
            for _ in range(8):  # longer than the first needs to see that it is alone
                talks.say_everywhere()
                await asyncio.sleep(1)
            assert session.resumes <= 2
            way.silent = False
            await all_.even(2)
            talks.say_everywhere()
            await talks.all_answered()
            talks.judge()
            all_.sound()
