"""Looking at a server's pages: what is damaged is told, and nothing else counts as damage.

The server of the tests has no amcheck. What stands for it here has its functions, and its words for what they find.
"""

from __future__ import annotations

import pytest

from agent_core.store.database import lines
from agent_core.store.errors import CannotOpen
from agent_core.store.keeping.checking import NO_AMCHECK, check
from tests.databases import connected

INSTALLED = "CREATE SCHEMA tools; UPDATE pg_extension SET extname = 'amcheck', extnamespace = 'tools'::regnamespace WHERE extname = 'plpgsql'"
OF_TABLES = "CREATE FUNCTION tools.verify_heapam(regclass, OUT msg text) RETURNS SETOF text LANGUAGE sql AS $$ SELECT NULL::text WHERE false $$"
OF_INDEXES = """
CREATE FUNCTION tools.bt_index_check(one regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  IF one = 'one_open'::regclass THEN {} END IF;
END $$
"""


async def looked_at(postgres: str, *done: str) -> None:
    conn = await connected(postgres)
    for one in done:
        await conn.execute(one)
    await conn.close()


async def test_a_sound_database_is_called_so_wherever_amcheck_is(postgres: str) -> None:
    await looked_at(postgres, INSTALLED, OF_TABLES, OF_INDEXES.format(""))
    found = await check(postgres)
    assert (found.complaints, found.not_looked) == ((), "")
    assert found.tables > 20


async def test_an_index_that_is_damaged_is_told_with_its_table(postgres: str) -> None:
    raised = "RAISE EXCEPTION 'item order invariant violated' USING ERRCODE = 'XX002';"
    await looked_at(postgres, INSTALLED, OF_TABLES, OF_INDEXES.format(raised))
    found = await check(postgres)
    assert (found.complaints, found.broken) == (("turns: item order invariant violated",), ("turns",))


async def test_what_another_program_keeps_in_a_way_of_its_own_is_not_damaged(postgres: str) -> None:
    raised = "RAISE EXCEPTION 'only heap AM is supported' USING ERRCODE = '0A000';"
    await looked_at(postgres, INSTALLED, OF_TABLES, OF_INDEXES.format(raised))
    assert not (await check(postgres)).complaints


async def test_an_older_amcheck_cannot_look(postgres: str) -> None:
    """A server that was upgraded has the old one until somebody updates it, and that cannot look at tables."""
    await looked_at(postgres, INSTALLED, OF_INDEXES.format(""))
    found = await check(postgres)
    assert (found.complaints, found.not_looked) == ((), NO_AMCHECK)


async def test_what_could_not_be_looked_at_is_not_damaged(postgres: str) -> None:
    raised = "RAISE EXCEPTION 'canceling statement due to lock timeout' USING ERRCODE = '55P03';"
    await looked_at(postgres, INSTALLED, OF_TABLES, OF_INDEXES.format(raised))
    with pytest.raises(CannotOpen, match="lock timeout"):
        await check(postgres)


async def test_a_large_table_is_looked_at_for_as_long_as_that_takes(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await looked_at(postgres, INSTALLED, OF_TABLES, OF_INDEXES.format("PERFORM pg_sleep(0.4);"))
    monkeypatch.setattr(lines, "UNHEARD_SECONDS", 0.2)
    assert not (await check(postgres)).complaints
