"""Chats that several gateways share: each message is answered once, whoever took it; who dies, stops or leaves is followed by the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.databases import new_database
from tests.several.support import HARNESSES, Talks, cluster

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def database(postgres_server: str) -> AsyncGenerator[str]:
    yield await new_database(postgres_server, template="migrated")


@pytest.mark.parametrize("platform", sorted(HARNESSES))
async def test_two_share_the_chats_and_each_message_is_answered_once(
    platform: str, database: str, tmp_path: Path
) -> None:
    async with cluster(tmp_path, platform, database) as all_:
        await all_.begin("first")
        await all_.harness.ready()
        talks = Talks(all_.harness, 12)
        talks.say_everywhere()
        await talks.all_answered()
        await all_.begin("second")
        await all_.even(2)
        for _ in range(3):
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
