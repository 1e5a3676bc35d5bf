"""All built-in tools, in the order in which they are offered."""

from __future__ import annotations

from pathlib import Path

from agent_core.tools.base import MemoryStore, Tool
from agent_core.tools.files.readers import readers
from agent_core.tools.files.sendfile import SendFile
from agent_core.tools.files.writers import FILE_TOOLS
from agent_core.tools.notes import Forget, Recall, Remember, Todo
from agent_core.tools.web.fetch import FetchUrl
from agent_core.workers.pool import Workers


def builtin_tools(memory: MemoryStore, spool: Path, workers: Workers) -> list[Tool]:
    """The tools; `memory` keeps what `remember` and `todo` are told, `spool` the files that are to be sent; `workers` read."""
    return [
        *readers(workers),
        *FILE_TOOLS,
        SendFile(spool),
        FetchUrl(workers),
        Remember(memory),
        Recall(memory),
        Forget(memory),
        Todo(memory),
    ]
