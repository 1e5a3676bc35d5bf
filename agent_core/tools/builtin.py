"""All built-in tools, in the order in which they are offered."""

from __future__ import annotations

from agent_core.tools.base import MemoryStore, Tool
from agent_core.tools.fetch import FetchUrl
from agent_core.tools.files import FILE_TOOLS
from agent_core.tools.notes import Forget, Recall, Remember, Todo


def builtin_tools(memory: MemoryStore) -> list[Tool]:
    """The tools; `memory` keeps what `remember` and `todo` are told."""
    return [*FILE_TOOLS, FetchUrl(), Remember(memory), Recall(memory), Forget(memory), Todo(memory)]
