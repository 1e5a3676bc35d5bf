"""Whatever one column of the database holds – a disk, or somebody with a database's own tools, may have written it – the gateway starts, and whoever
writes is answered, or told the truth."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from sqlite3 import IntegrityError, connect

import pytest
from sqlalchemy import Column, Table, UniqueConstraint

from agent_core.store import tables as t
from tests.chats.harness import process, texts
from tests.chats.telegram_harness import telegram_harness
from tests.laws.world import BUDGET, copied, sqlite_left

SENSELESS = {int: 10**15, str: "[[x", bytes: b"\xff{"}
KEEPS_TRYING_SECONDS = 100.0
"""What cannot be taken up is tried again for a minute."""


def _unique(table: Table) -> set[str]:
    """The columns of which no two rows may hold the same."""
    constraints = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    return {column.name for one in (table.primary_key, *constraints) for column in one.columns}


FILLED = (
    t.sessions,
    t.inbox,
    t.turns,
    t.journal,
    t.deliveries,
    t.budgets,
    t.reservations,
    t.memory,
    t.nodes,
    t.cursors,
)
"""Those with a row in the database of somebody whose turn was cut off in the middle."""
COLUMNS = [
    pytest.param(table, column, id=f"{table.name}.{column.name}")
    for table in FILLED
    for column in table.columns
    if column.name not in _unique(table)
]


@pytest.mark.some(3)
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_whatever_a_column_holds_the_gateway_starts_and_who_writes_gets_a_word(
    table: Table, column: Column[object], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "laws"
    left = copied(sqlite_left("middle", folder), tmp_path)
    database = Path(left.where).rename(tmp_path / "outspoken.db")
    with closing(connect(database)) as base:
        value = SENSELESS[column.type.python_type]
        try:
            base.execute(f"UPDATE {table.name} SET {column.name} = ?", (value,))
        except IntegrityError as error:
            pytest.skip(f"it cannot hold that: {error}")
        base.commit()
    asyncio.run(_gets_a_word(tmp_path))


async def _gets_a_word(home: Path) -> None:
    async with telegram_harness(home) as platform:
        ada = platform.person("Ada")
        chat = platform.private(ada)
        platform.fake.world._next_message = 1_000  # what is stored came before
        async with process(platform, **BUDGET):
            platform.say(chat, ada, "say all the same")
            await platform.until(
                lambda: any("all the same" in one or "⚠️" in one for one in texts(platform, chat)), KEEPS_TRYING_SECONDS
            )
