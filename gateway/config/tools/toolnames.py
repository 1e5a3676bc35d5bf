"""Which tools there are, as far as the configuration alone says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.config.tools.shell import SHELL_TOOLS

if TYPE_CHECKING:
    from gateway.config.sections import Config, Tools


def brings_python(config: Tools) -> bool:
    """Whether anybody brings tools in Python."""
    from agent_core.tools.python.sources import sources

    return config.path is not None or bool(sources(None))


def known_names(config: Config) -> Sequence[str]:
    """The names of all tools, if they are known before a gateway starts; empty if others bring some (functions in Python, other programs),
    whose names only they know."""
    from agent_core.tools.builtin import tool_names
    from agent_core.tools.builtin.notes import FOR_EVERYBODY
    from agent_core.tools.search import SEARCH_WEB
    from agent_core.tools.skills.format import READ_SKILL
    from gateway.schedule.toolspecs import later_names

    if config.mcp.servers or brings_python(config.tools):
        return ()
    more = ((READ_SKILL, config.tools.skills), (SEARCH_WEB, config.search.engine))
    shell = SHELL_TOOLS if config.shell.on else ()
    everybodys = (FOR_EVERYBODY,) if config.tools.memory_writers else ()
    spoken = ("speak",) if config.speaking.on else ()
    return (*tool_names(), *spoken, *later_names(), *everybodys, *shell, *(name for name, there in more if there))
