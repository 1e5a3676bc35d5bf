"""The soak in small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chats.soak import soak


@pytest.mark.timeout(180)
async def test_nothing_is_lost_and_nothing_is_said_twice_unmarked(tmp_path: Path) -> None:
    found = await soak(tmp_path, messages=150, chats=15, kills=2, seed=7)
    assert found.sound, found.lines()
    assert found.doubled_marked <= found.lost_answers + 2 * found.kills, found.lines()
