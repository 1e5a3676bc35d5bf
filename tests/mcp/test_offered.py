"""What servers listed before is offered without their being begun: under names that are free, and as theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.mcp.listed import ServerTool, written
from agent_core.tools.mcp.servers import McpServers, _digest
from agent_core.tools.mcp.terms import ServerTerms
from agent_core.tools.registry import ToolRegistry


class Own:
    """A tool of the gateway's."""

    spec = ToolSpec("recall", "ours", {"type": "object"}, EffectClass.PURE)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, "ours")


def known(folder: Path, registry: ToolRegistry, *terms: ServerTerms, tools: Sequence[str]) -> McpServers:
    """Servers that have listed these tools before."""
    for one in terms:
        listed = [dict(written(ServerTool(name, "theirs", {"type": "object"}))) for name in tools]
        (folder / f"{one.name}.tools.json").write_bytes(orjson.dumps({"of": _digest(one), "tools": listed}))
    return McpServers(terms, registry, folder, SystemClock(), result_chars=100)


def test_a_tool_that_is_called_like_one_of_ours_or_of_another_server_is_offered_under_another_name(tmp_path: Path):
    registry, terms = ToolRegistry([Own()]), [ServerTerms(name, "", ("nothing", name)) for name in ("a", "b")]
    servers = known(tmp_path, registry, *terms, tools=("recall", "other"))
    offered = [name for names in servers.names.values() for name in names.values()]
    assert len({*offered}) == 4
    assert "recall" not in offered
    assert sorted(registry.names) == sorted(["recall", *offered])
    assert [spec.description for spec in registry.specs() if spec.name == "recall"] == ["ours"]


def test_only_what_is_trusted_does_not_count_as_words_of_others(tmp_path: Path):
    registry = ToolRegistry([])
    known(tmp_path, registry, ServerTerms("a", "a__", ("nothing",), trusted=("mine",)), tools=("mine", "other"))
    assert {spec.name: (spec.foreign, spec.foreign_words) for spec in registry.specs()} == {
        "a__mine": (False, False),
        "a__other": (True, True),
    }
