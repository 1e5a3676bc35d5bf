"""The storm in small: three gateways, all platforms, a program that watches; they come, go, hang, are cut off and die while people talk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.databases import new_database
from tests.several.storm import storm


@pytest.mark.timeout(450)
async def test_nothing_is_lost_and_nothing_is_said_twice_while_gateways_come_and_go(
    postgres_server: str, tmp_path: Path
) -> None:
    database = await new_database(postgres_server, template="migrated")
    wrong = await storm(tmp_path, database, ["telegram", "discord", "slack"], seconds=15, seed=7, most=3, chats=9)
    assert not wrong, "\n".join(wrong)
