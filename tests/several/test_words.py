"""What gateways tell each other is enough: nobody waits for one of those who look now and then.

What looks, does so each minute here, so that who was not woken by a word is not answered in time.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.databases import new_database
from tests.several.support import cluster
from tests.several.test_doors import asked

SECONDS = 40.0
"""Much longer than anything takes, and shorter than between two looks."""
WORKERS, TURNS = 8, 12
SELDOM = """
import gateway.sessions.followers
import gateway.several.collecting
import gateway.setaside.takeup
import gateway.sharing.portion

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
