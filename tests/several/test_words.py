"""What gateways tell each other is enough: nobody waits for one of those who look now and then.

What looks, does so each minute here, so that who was not woken by a word is not answered in time.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.databases import new_database
from tests.several.support import cluster
from tests.several.test_doors import Page, asked, named
from tests.several.test_shared import posted

SECONDS = 40.0
"""Much longer than anything takes, and shorter than between two looks."""
WORKERS, TURNS = 8, 12
SELDOM = """
import gateway.sessions.followers
import gateway.several.collecting
import gateway.setaside.takeup
import gateway.sharing.portion
import gateway.chats.scheduler

gateway.chats.scheduler.LONGEST_SLEEP_SECONDS = 60.0
gateway.several.collecting.LOOK_SECONDS = gateway.setaside.takeup.OURS_SECONDS = 60.0
gateway.sharing.portion.ELSEWHERE_SECONDS = gateway.sessions.followers.ELSEWHERE_SECONDS = 60.0
"""


@pytest.fixture
async def database(postgres_server: str) -> str:
    return await new_database(postgres_server, template="migrated")


@pytest.mark.timeout(150)
async def test_nobody_waits_for_a_look_where_a_word_is_said(database: str, tmp_path: Path) -> None:
    async with cluster(tmp_path, "telegram", database) as all_:
        nodes = [await all_.begin(name, SELDOM) for name in ("first", "second")]
        await all_.even(2)

        async def talk(number: int) -> None:
            """Each next thing at the other gateway, as behind a balancer."""
            for turn in range(TURNS):
                async with asyncio.timeout(SECONDS):
                    told = await asked(nodes[(number + turn) % 2], f"talk-{number}", f"say {turn}")
                assert told["choices"][0]["message"]["content"] == str(turn)

        await asyncio.gather(*(talk(number) for number in range(WORKERS)))


async def test_what_the_house_does_it_does_at_once_whoever_is_asked(database: str, tmp_path: Path) -> None:
    """A reminder comes at its time, and somebody is forgotten, also if another gateway was told so."""
    async with cluster(tmp_path, "telegram", database) as all_:
        nodes = [await all_.begin(name, SELDOM) for name in ("first", "second")]
        await all_.even(2)
        [(house,)] = await all_.ask("SELECT owner FROM slices WHERE slice = 'house'")
        other = next(number for number in (1, 2) if number != house)
        node = nodes[other - 1]
        (name,) = await named(all_, other, 1, "web/page")
        page = Page(node, name)
        watching = asyncio.create_task(page.watch())
        await page.say("/remind in 3 seconds tea")
        await page.until("Reminder: tea", SECONDS)
        watching.cancel()
        status, told = await posted(node, "/api/access", {"verb": "forget", "who": "api/ada"})
        assert status == 200, told
        async with asyncio.timeout(SECONDS):
            while await all_.ask("SELECT count(*) FROM forgets WHERE done_at IS NULL") != [(0,)]:
                await asyncio.sleep(0.1)
        all_.sound()
