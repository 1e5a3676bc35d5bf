"""Gateways of which one reaches only a part: not the answers of the database, not the platform, not the model. Nothing is lost or said twice for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.chats.harness import texts
from tests.chats.slack_harness import SlackHarness
from tests.databases import new_database
from tests.several.history import MARK, Chat, History, judged
from tests.several.support import Cluster, Talks, cluster
from tests.wire import Wire, cable, wire

pytestmark = pytest.mark.timeout(180)
AWAY_SECONDS = 9.0
"""Longer than the database waits for a gateway of which it hears nothing."""


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


def by(one: Wire, url: str) -> str:
    """An address, over a wire."""
    return url.replace(f":{urlsplit(url).port}", f":{one.port}")


async def talked(all_: Cluster, talks: Talks, way: Wire, *, mute: bool) -> None:
    """Everybody talks while the wire lets nothing through, or nothing back; then it is whole again. What is wrong by then."""
    talks.say_everywhere()
    await talks.all_answered()
    for which in range(len(talks.people)):
        talks.say(which, "slow one two three four five answer")
    await asyncio.sleep(0.3)
    way.mute, way.silent = mute, not mute
    until = asyncio.get_running_loop().time() + AWAY_SECONDS
    while asyncio.get_running_loop().time() < until:
        talks.say(talks.number % len(talks.people))
        await asyncio.sleep(0.5)
    way.mute = way.silent = False
    await all_.even(2)
    talks.say_everywhere()


def wrong(all_: Cluster, talks: Talks) -> list[str]:
    seen = History()
    for which, said in enumerate(talks.said):
        shown = [one.text for one in all_.harness.seen(talks.places[which]) if one.mine]
        seen.chats.append(Chat(str(which), False, said, shown))
    return judged(seen)


async def test_who_is_heard_by_the_database_and_hears_nothing_of_it_leaves_all_to_the_other(
    database: str, tmp_path: Path
) -> None:
    """What it asks is done, and it is not told so: it may have written what it does not know of."""
    with cable(database) as (url, way):
        async with cluster(tmp_path, "telegram", database) as all_:
            await all_.begin("first", OUTSPOKEN_STORAGE__URL=url)
            await all_.begin("second")
            await all_.even(2)
            talks = Talks(all_.harness, 10)
            await talked(all_, talks, way, mute=True)
            await talks.all_answered(60)
            assert not wrong(all_, talks)
            asked = Counter(words.rsplit("#", 1)[1].split()[0] for words in all_.harness.model.asked if "#" in words)
            assert max(asked.values()) <= 2, "once more where it was cut off, at most"
            all_.sound()


async def test_who_does_not_hear_the_database_leaves_the_sockets_of_slack_to_the_other(
    database: str, tmp_path: Path
) -> None:
    """Slack gives each event to any socket: what is told to one who can store nothing comes late, and behind what was said after it."""
    with cable(database) as (url, way):
        async with cluster(tmp_path, "slack", database) as all_:
            assert isinstance(all_.harness, SlackHarness)
            sockets = all_.harness.fake.sockets
            await all_.begin("first", OUTSPOKEN_STORAGE__URL=url)
            await all_.harness.ready()
            await all_.begin("second")
            await all_.even(2)
            ((holder,),) = await all_.ask("SELECT owner FROM slices WHERE slice LIKE 'account/%%'")
            talks = Talks(all_.harness, 6)
            talks.say_everywhere()
            await talks.all_answered()
            before = list(sockets.open)
            way.mute = True
            async with asyncio.timeout(AWAY_SECONDS):
                while any(one in sockets.open for one in before):
                    talks.say(talks.number % len(talks.people))
                    await asyncio.sleep(0.3)
            left = talks.number
            for _ in range(2):
                talks.say_everywhere()
                await asyncio.sleep(0.5)
            await talks.all_answered(60)
            ((owner,),) = await all_.ask("SELECT owner FROM slices WHERE slice LIKE 'account/%%'")
            assert owner != holder
            way.mute = False
            await all_.even(2)
            talks.say_everywhere()
            await talks.all_answered(60)
            for which, said in enumerate(talks.said):
                answers = talks.answers(which)
                assert len(set(answers)) == len(answers), answers
                assert [n for n in answers if int(n) > left] == [n for n in said if int(n) > left]
            all_.sound()


@pytest.mark.parametrize("what", ["platform", "model"])
async def test_who_reaches_the_database_and_not_the_platform_or_the_model_loses_nothing(
    what: str, database: str, tmp_path: Path
) -> None:
    async with cluster(tmp_path, "telegram", database) as all_:
        harness = all_.harness
        env = harness.env()
        name = "OUTSPOKEN_TELEGRAM__API_BASE" if what == "platform" else "OPENAI_BASE_URL"
        there = env[name] if what == "platform" else harness.model.url
        with wire(urlsplit(there).port or 80) as way:
            first = await all_.begin("first", **{name: by(way, there)})
            await all_.begin("second")
            await all_.even(2)
            talks = Talks(harness, 10)
            await talked(all_, talks, way, mute=False)
            async with asyncio.timeout(90):  # answered, or told what was not done
                while len(talks.missing()) > sum(
                    "⚠️" in text for place in talks.places for text in texts(harness, place)
                ):
                    await asyncio.sleep(0.1)
            await asyncio.sleep(2)
            assert not wrong(all_, talks)
            marked = sum(MARK in text for place in talks.places for text in texts(harness, place))
            print(f"{what}: {marked} parts are marked as perhaps seen twice; {len(talks.missing())} told about")
            assert first.inner.returncode is None
            all_.sound()


SOON = """
import gateway.chats.supervisor as supervisor
import gateway.sharing.withdrawal as withdrawal
supervisor.STAND_SECONDS = supervisor.LOOK_SECONDS = 1.0
supervisor.ANSWER_SECONDS = 2.0
withdrawal.FAILING_SECONDS, withdrawal.LATER_SECONDS = 3.0, 1.0
"""
"""What is given up after a quarter of a minute is so after three seconds."""
BASES = {
    "telegram": "OUTSPOKEN_TELEGRAM__API_BASE",
    "discord": "OUTSPOKEN_DISCORD__API_BASE",
    "slack": "OUTSPOKEN_SLACK__API_BASE",
}


@pytest.mark.parametrize(
    ("platform", "silent"), [("telegram", False), ("telegram", True), ("discord", False), ("slack", False)]
)
async def test_who_does_not_reach_the_platform_any_more_leaves_its_connection_and_chats_to_the_other(
    platform: str, silent: bool, database: str, tmp_path: Path
) -> None:
    async with cluster(tmp_path, platform, database) as all_:
        harness = all_.harness
        name = BASES[platform]
        there = harness.env()[name]
        with wire(urlsplit(there).port or 80) as way:
            await all_.begin("first", SOON, **{name: by(way, there)})
            await harness.ready()
            await all_.begin("second", SOON)
            await all_.even(2)
            ((first,),) = await all_.ask("SELECT owner FROM slices WHERE slice LIKE 'account/%%'")
            talks = Talks(harness, 8)
            talks.say_everywhere()
            await talks.all_answered()
            way.silent = silent
            if not silent:
                way.refusing = True
                way.cut()
            talks.say_everywhere()
            took = await talks.all_answered(60)
            print(f"all are answered {took:.1f} s after the cut")
            owners = dict(await all_.ask("SELECT slice, owner FROM slices"))
            theirs = {owner for slice_, owner in owners.items() if slice_.startswith(("account/", "chats/"))}
            assert first not in theirs
            talks.judge()
            way.refusing = way.silent = False
            all_.sound()
