"""The soak in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chats.soak import soak

CHATS = 15
"""Each has at most one call under way when the gateway is killed."""


@pytest.mark.parametrize(("platform", "messages", "kills"), [("discord", 30, 1), ("slack", 30, 1), ("telegram", 40, 1)])
async def test_nothing_is_lost_and_nothing_is_said_twice_unmarked(
    platform: str, messages: int, kills: int, tmp_path: Path
) -> None:  # fmt: skip
    found = await soak(tmp_path, platform, messages, chats=CHATS, kills=kills, seed=7)
    assert found.sound, found.lines()
    assert found.doubled_marked <= found.lost_answers + CHATS * found.kills, found.lines()
