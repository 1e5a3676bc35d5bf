"""Servers of tools for tests, as the gateway has them, and calls of their tools."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.asking import NOBODY, ToolAnswer, ToolQuestion
from agent_core.tools.base import ToolContext, ToolOutcome
from agent_core.tools.mcp.server import ServerState
from agent_core.tools.mcp.servers import McpServers
from agent_core.tools.mcp.terms import ServerTerms
from agent_core.tools.registry import Runnable, ToolRegistry

FAULTY = Path(__file__).with_name("faultymcp.py")
CLOCK = SystemClock()


def faulty(fault: str, record: Path, **more: Any) -> ServerTerms:
    """The server that misbehaves so, with short limits."""
    terms = ServerTerms("faulty", "faulty__", (sys.executable, "-S", str(FAULTY), fault, str(record)))
    quick = replace(terms, start_seconds=8, silence_seconds=1.5, limit_seconds=4, message_bytes=2_000_000)
    return replace(quick, **more)


@dataclass
class McpRig:
    servers: McpServers
    registry: ToolRegistry
    folder: Path
    beats: list[str] = field(default_factory=list[str])
    asked: list[ToolQuestion] = field(default_factory=list[ToolQuestion])
    answers: list[ToolAnswer] = field(default_factory=list[ToolAnswer])
    """What the person says, in order; nobody can be asked without."""

    async def learnt(self) -> None:
        """Wait until each server listed its tools or is down."""
        async with asyncio.timeout(60):
            while any(
                not one.listing.tools and one.state is not ServerState.DOWN for one in self.servers.servers.values()
            ):
                await asyncio.sleep(0.02)

    async def ask(self, question: ToolQuestion) -> ToolAnswer:
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else NOBODY

    def context(self, call: str = "call_a", *, again: bool = False) -> ToolContext:
        return ToolContext(
            "t_1",
            call,
            f"t_1:{call}",
            self.folder / "workspace",
            "m",
            CLOCK,
            self.beats.append,
            again=again,
            ask=self.ask,
        )

    async def call(self, tool: str, arguments: Mapping[str, Json] | None = None, *, again: bool = False) -> ToolOutcome:
        checked = self.registry.check(tool, orjson.dumps(dict(arguments or {})).decode())
        assert isinstance(checked, Runnable), checked
        return await self.registry.run(checked, self.context(again=again))


@asynccontextmanager
async def brought(folder: Path, *terms: ServerTerms) -> AsyncGenerator[McpRig]:
    """These servers, looked after for the block."""
    registry = ToolRegistry([])
    servers = McpServers(terms, registry, folder / "mcp", CLOCK, result_chars=5_000)
    async with servers.running():
        rig = McpRig(servers, registry, folder)
        await rig.learnt()
        yield rig
