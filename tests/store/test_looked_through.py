"""What doctor says of a database that can be opened, and not be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_core.store.database.look import DatabaseSeen
from agent_core.store.sessions.asides import Aside
from gateway.config.paths import find_paths
from gateway.config.reading import load
from gateway.operate.database import judged_asides, pages
from tests.store.support import opened
from tests.store.test_nonsense import by_hand


async def test_that_a_table_is_missing_is_told_though_it_is_needed_to_look(where: str, tmp_path: Path) -> None:
    async with opened(where):
        pass
    await by_hand(where, "DROP TABLE sessions CASCADE" if "://" in where else "DROP TABLE sessions")
    env = {"OUTSPOKEN_STORAGE__URL": where if "://" in where else f"sqlite:///{where}", "OUTSPOKEN_HOME": str(tmp_path)}
    seen = await pages(load(None, env).config, find_paths(env))
    assert any("the table sessions" in one.what for one in seen.findings)


@pytest.mark.parametrize(("file", "told"), [(Path("x.db"), True), (None, False)])
def test_only_of_a_file_it_is_said_how_a_file_is_saved(file: Path | None, told: bool) -> None:
    (found,) = judged_asides(DatabaseSeen("here", "", file), [Aside("s_1", "telegram/1/7", "", 0)])
    assert ("SQLite" in found.fix) is told
