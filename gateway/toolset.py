"""Which tools this gateway offers: its own, those of the operators' Python, less what the configuration takes out."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent_core.records import dataclass
from agent_core.tools.base import MemoryStore, Tool
from agent_core.tools.builtin import builtin_tools
from agent_core.tools.registry import ToolRegistry
from agent_core.workers.pool import Workers
from gateway.config.sections import Config, Tools
from gateway.config.toolnames import brings_python

if TYPE_CHECKING:
    from agent_core.tools.python.tool import BroughtTools

log = structlog.get_logger("gateway")


class ToolUnknown(Exception):
    """The configuration names a tool that there is not; in words."""


@dataclass(frozen=True, slots=True)
class NamedTools:
    """The names that the configuration gives to tools."""

    enabled: Sequence[str]
    disabled: Sequence[str]
    approval: Sequence[str]
    by_agents: Sequence[str] = ()


async def toolset(
    config: Config, memory: MemoryStore, spool: Path, workers: Workers, stack: AsyncExitStack
) -> ToolRegistry:
    """All that is offered. Raises `ToolUnknown`, unless what is named may be in what could not be used: that is logged, and the rest goes on."""
    everything = builtin_tools(memory, spool, workers)
    unusable = 0
    if brings_python(config.tools):
        brought = await brought_python(config.tools, stack, [tool.spec.name for tool in everything])
        everything += brought.tools
        unusable = len(brought.unusable)
        for one in brought.unusable:
            log.error("tool.unusable", source=one.source, why=one.why)
    named = named_tools(config)
    unknown = unknown_names(named, [tool.spec.name for tool in everything])
    if unknown and not unusable:
        raise ToolUnknown(unknown)
    if unknown:
        log.error("tool.named_and_missing", words=unknown)
    return ToolRegistry([tool for tool in everything if offered(named, tool)], result_chars=config.tools.result_chars)


def named_tools(config: Config) -> NamedTools:
    """The names that stand in the configuration."""
    by_agents = [name for agent in config.agents.each for name in agent.tools or ()]
    return NamedTools(config.tools.enabled, config.tools.disabled, config.tools.approval, by_agents)


async def brought_python(config: Tools, stack: AsyncExitStack, taken: Sequence[str]) -> BroughtTools:
    """The tools in Python, with processes of their own until the end of the stack."""
    from agent_core.tools.python.tool import confines, python_tools

    workers = await stack.enter_async_context(Workers(confines=confines(config.environment)))
    return await python_tools(config.path, workers, taken)


def offered(named: NamedTools, tool: Tool) -> bool:
    """Whether the configuration leaves it in."""
    name = tool.spec.name
    return (not named.enabled or name in named.enabled) and name not in named.disabled


def unknown_names(named: NamedTools, known: Sequence[str]) -> str:
    """What is named and not there, in words; empty if there is nothing. Pure."""
    unknown = sorted({*named.enabled, *named.disabled, *named.approval, *named.by_agents} - {*known})
    if not unknown:
        return ""
    return f"The configuration names a tool that does not exist: {', '.join(unknown)}. The tools are: {', '.join(sorted(known))}."
