"""Servers of others, from their packages and with their defaults: `.venv/clients` has them (`make test` makes it once)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.tools.mcp.terms import ServerTerms
from tests.mcp.rig import brought

BIN = Path(sys.prefix) / "clients" / "bin"


@pytest.fixture(autouse=True)
def _there() -> None:
    assert (BIN / "mcp-server-time").exists(), "make setup makes it"


async def test_the_time(tmp_path: Path):
    async with brought(tmp_path, ServerTerms("time", "time__", (str(BIN / "mcp-server-time"),))) as rig:
        assert set(rig.registry.names) == {"time__get_current_time", "time__convert_time"}
        outcome = await rig.call("time__get_current_time", {"timezone": "Asia/Tokyo"})
        assert (outcome.status, "+09:00" in outcome.text) == (ToolStatus.OK, True)
        outcome = await rig.call("time__get_current_time", {"timezone": "Nowhere"})
        assert (outcome.status, "Nowhere" in outcome.text) == (ToolStatus.FAILED, True)


async def test_a_database(tmp_path: Path):
    command = (str(BIN / "mcp-server-sqlite"), "--db-path", str(tmp_path / "papers.db"))
    async with brought(tmp_path, ServerTerms("sqlite", "sqlite__", command)) as rig:
        own = [
            spec
            for spec in rig.registry.brought
            if not spec.name.endswith("_resource") and "_resources" not in spec.name
        ]
        assert {spec.effect for spec in own} == {EffectClass.EFFECT}, "it says nothing of its tools"
        await rig.call("sqlite__create_table", {"query": "create table papers (title text)"})
        await rig.call("sqlite__write_query", {"query": "insert into papers values ('On silence')"})
        outcome = await rig.call("sqlite__read_query", {"query": "select * from papers"})
        assert "On silence" in outcome.text


async def test_a_page(tmp_path: Path):
    async with brought(
        tmp_path, ServerTerms("fetch", "fetch__", (str(BIN / "mcp-server-fetch"), "--ignore-robots-txt"))
    ) as rig:
        outcome = await rig.call("fetch__fetch", {"url": "http://127.0.0.1:9/nothing"})
        assert outcome.status is ToolStatus.FAILED
        assert "127.0.0.1:9" in outcome.text
