"""The tools that are offered: found by the registry, each from one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

from agent_core.tools.base import MemoryStore
from agent_core.tools.builtin import builtin_tools
from agent_core.workers.pool import Workers

ROOT = Path(__file__).parents[3]
OFFERED = [
    "read_file",
    "list_files",
    "search_files",
    "write_file",
    "append_file",
    "edit_file",
    "delete_file",
    "send_file",
    "fetch_url",
    "remember",
    "recall",
    "forget",
    "todo",
]
"""In the order in which the models read them: what a provider has cached begins with it."""
NAP = """
from collections.abc import Mapping
from agent_core.jsonvalue import Json
from agent_core.tools.base import EffectClass, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.offer import Offer

class Nap:
    spec = ToolSpec("nap", "Wait a little.", {"type": "object", "additionalProperties": False}, EffectClass.PURE)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        return ToolOutcome(ToolStatus.OK, "Slept.")

OFFER = Offer(6, lambda _: [Nap()])
"""
ASKED = """
from pathlib import Path
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.registry import Runnable, ToolRegistry
registry = ToolRegistry(builtin_tools(None, Path("spool"), None))
assert isinstance(registry.check("nap", "{}"), Runnable)
print(*registry.names)
"""


def test_the_tools_stand_in_the_order_in_which_they_always_stood(tmp_path: Path) -> None:
    tools = builtin_tools(cast("MemoryStore", None), tmp_path, cast("Workers", None))
    assert [tool.spec.name for tool in tools] == OFFERED


def test_a_new_tool_is_one_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "agent_core", tmp_path / "agent_core")
    (tmp_path / "agent_core" / "tools" / "builtin" / "nap.py").write_text(NAP, "utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    printed = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60, text=True
    )
    assert printed.stdout.split() == [*OFFERED, "nap"]
