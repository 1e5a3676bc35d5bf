"""The tools of this configuration, looked at and tried while no gateway runs, or beside one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.records import dataclass
from agent_core.tools.base import Tool, ToolContext, ToolOutcome, ToolSpec
from agent_core.tools.builtin import own_tools
from agent_core.tools.offer import Unusable
from agent_core.tools.python.tool import PythonTool
from agent_core.tools.registry import ArgumentsUnreadable, NoSuchTool, ToolChanged, ToolRegistry
from agent_core.workers.pool import Workers
from gateway.config.sections import Config
from gateway.schedule.toolspecs import OF_TIME
from gateway.shell.shell import SOURCE, shell_tools_of
from gateway.toolset import added_tools, named_tools, offered, searching


class NotTried(Exception):
    """A tool was not run; why, in words."""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in a list."""

    name: str
    effect: str
    source: str
    offered: bool
    description: str

    def as_json(self) -> Json:
        """For programs."""
        return {
            "name": self.name,
            "effect": self.effect,
            "source": self.source,
            "offered": self.offered,
            "description": self.description,
        }


async def listed(config: Config) -> tuple[list[ListedTool], Sequence[Unusable]]:
    """All tools, and what could not be used."""
    named = named_tools(config)

    def one(spec: ToolSpec, source: str) -> ListedTool:
        return ListedTool(spec.name, spec.effect.value, source, offered(named, spec), spec.description)

    async with AsyncExitStack() as stack:
        workers = await stack.enter_async_context(Workers())
        added = await added_tools(config.tools, workers, stack)
        shell = await shell_tools_of(config.shell)
    mine = [tool.spec for tool in (*own_tools(), *searching(config.search))]
    own = [one(spec, "outspoken") for spec in (*mine, *OF_TIME)]
    own += [one(tool.spec, SOURCE) for tool in shell.tools]
    return [*own, *(one(tool.spec, _source(tool)) for tool in added.tools)], [*added.unusable, *shell.unusable]


def _source(tool: Tool) -> str:
    return tool.described.source.name if isinstance(tool, PythonTool) else "skills"


async def tried(
    config: Config, name: str, arguments: str, shown: Callable[[PythonTool, str], None]
) -> tuple[ToolOutcome, str]:
    """What the tool said, and what it printed; how far it is, is `shown`. Raises `NotTried`."""
    async with AsyncExitStack() as stack:
        workers = await stack.enter_async_context(Workers())
        added = await added_tools(config.tools, workers, stack)
        by_name = {tool.spec.name: tool for tool in added.tools if isinstance(tool, PythonTool)}
        tool = by_name.get(name)
        if tool is None:
            why = [f"{one.source}: {one.why}." for one in added.unusable]
            there = ", ".join(by_name) or "none"
            raise NotTried("\n".join([f"There is no tool of your own called {name}. There is: {there}.", *why]))
        checked = ToolRegistry([tool]).check(name, arguments)
        match checked:
            case ArgumentsUnreadable():
                raise NotTried(f"These arguments do not fit, so nothing was run. {checked.complaint}")
            case NoSuchTool() | ToolChanged():
                raise AssertionError(name)
            case _:
                pass
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="outspoken-try-"))
        context = ToolContext("try", "1", "try:1", Path(folder), "try", SystemClock(), lambda words: shown(tool, words))
        return await tool.tried(checked.arguments, context)
