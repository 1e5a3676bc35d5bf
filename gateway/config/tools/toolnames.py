"""Which tools there are, as far as the configuration alone says it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config.sections import Tools


def brings_python(config: Tools) -> bool:
    """Whether anybody brings tools in Python."""
    from agent_core.tools.python.sources import sources

    return config.path is not None or bool(sources(None))


def known_names(config: Tools, *, brought: bool = False) -> Sequence[str]:
    """The names of all tools, if they are known before a gateway starts; empty if others bring some (`brought`: other programs do), whose
    names only they know."""
    from agent_core.tools.builtin import tool_names
    from agent_core.tools.skills.format import READ_SKILL

    if brought or brings_python(config):
        return ()
    return (*tool_names(), READ_SKILL) if config.skills else tool_names()
