"""Which tools this gateway offers: its own, the operators' skills and Python, less what the configuration takes out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from adapters.contract.redacted import hidden
from agent_core.records import dataclass
from agent_core.tools.base import MemoryStore, Tool, ToolSpec
from agent_core.tools.builtin import builtin_tools, tool_names
from agent_core.tools.followup import NOBODY_FOLLOWS, FollowUps
from agent_core.tools.offer import Unusable
from agent_core.tools.registry import ToolRegistry
from agent_core.workers.pool import Workers
from gateway.config.sections import Config, Search, Tools
from gateway.config.tools.mcp import McpEntry, may_be_brought
from gateway.config.tools.toolnames import brings_python
from gateway.schedule.toolspecs import later_names
from gateway.shell.shell import ShellTools

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


@dataclass(frozen=True, slots=True)
class AddedTools:
    """Tools that are not the gateway's own, and what could not be one."""

    tools: Sequence[Tool]
    unusable: Sequence[Unusable]


async def toolset(
    config: Config,
    memory: MemoryStore,
    spool: Path,
    workers: Workers,
    stack: AsyncExitStack,
    follow_ups: FollowUps = NOBODY_FOLLOWS,
    later: Sequence[Tool] = (),
    shell: ShellTools | None = None,
) -> ToolRegistry:
    """All that is offered. Raises `ToolUnknown`, unless what is named may be in what could not be used: that is logged, and the rest goes on."""
    own = [
        *builtin_tools(memory, spool, workers, follow_ups),
        *later,
        *remembering(config.tools, memory),
        *searching(config.search),
    ]
    added = await added_tools(config.tools, workers, stack)
    unusable = [*added.unusable, *(shell.unusable if shell is not None else ())]
    for one in unusable:
        log.error("tool.unusable", source=one.source, why=one.why)
    everything = [*own, *(shell.tools if shell is not None else ()), *added.tools]
    named = named_tools(config)
    unknown = unknown_names(named, [*(tool.spec.name for tool in everything), *later_names()], config.mcp.servers)
    if unknown and not unusable:
        raise ToolUnknown(unknown)
    if unknown:
        log.error("tool.named_and_missing", words=unknown)
    return ToolRegistry(
        [tool for tool in everything if offered(named, tool.spec)], result_chars=config.tools.result_chars, hide=hidden
    )


def remembering(config: Tools, memory: MemoryStore) -> Sequence[Tool]:
    """The tool that changes what everybody's agent knows, if the operator has named who may."""
    if not config.memory_writers:
        return ()
    from agent_core.tools.builtin.notes import RememberForEverybody

    return (RememberForEverybody(memory),)


def searching(config: Search) -> Sequence[Tool]:
    """The tool that searches the web, if an engine is configured."""
    terms = config.terms()
    if terms is None:
        return ()
    from agent_core.tools.search.tool import SearchWeb, spec

    return (SearchWeb(terms, spec()),)


def named_tools(config: Config) -> NamedTools:
    """The names that stand in the configuration."""
    by_agents = [name for agent in config.agents.each for name in agent.tools or ()]
    return NamedTools(config.tools.enabled, config.tools.disabled, config.tools.approval, by_agents)


async def added_tools(config: Tools, workers: Workers, stack: AsyncExitStack) -> AddedTools:
    """What the operators bring beside the gateway's own; tools in Python have processes of their own until the end of the stack."""
    reader, unusable = await _skills(config, workers)
    if not brings_python(config):
        return AddedTools(reader, unusable)
    from agent_core.tools.python.tool import confines, python_tools

    theirs = await stack.enter_async_context(Workers(confines=confines(config.environment)))
    taken = [*tool_names(), *later_names(), *(tool.spec.name for tool in reader)]
    brought = await python_tools(config.path, theirs, taken)
    return AddedTools([*reader, *brought.tools], [*unusable, *brought.unusable])


async def _skills(config: Tools, workers: Workers) -> tuple[Sequence[Tool], Sequence[Unusable]]:
    """The tool that reads skills, if there are any."""
    if config.skills is None:
        return (), ()
    from agent_core.tools.skills.reading import SkillReader, read_skills

    found, unusable = await asyncio.to_thread(read_skills, config.skills)
    return [SkillReader(found, workers)] if found else [], unusable


def offered(named: NamedTools, spec: ToolSpec) -> bool:
    """Whether the configuration leaves it in."""
    name = spec.name
    return (not named.enabled or name in named.enabled) and name not in named.disabled


def unknown_names(named: NamedTools, known: Sequence[str], servers: Sequence[McpEntry] = ()) -> str:
    """What is named and not there, in words; empty if there is nothing, or if a server of tools may bring it. Pure."""
    asked = {*named.enabled, *named.disabled, *named.approval, *named.by_agents}
    unknown = sorted(name for name in asked - {*known} if not may_be_brought(name, servers))
    if not unknown:
        return ""
    return f"The configuration names a tool that does not exist: {', '.join(unknown)}. The tools are: {', '.join(sorted(known))}."
