"""Work that goes on beside a block, and ends with it: no task without an owner, and none that outlives its owner. And modules that are loaded beside
the loop."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None], name: str) -> AsyncGenerator[None]:
    """`work` runs for the block. It is cancelled at its end and waited for; what it raises is its own to tell."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def loaded(module: str) -> None:
    """What few need is loaded by the first who does: that one waits for it, and nobody else on the loop."""
    if module not in sys.modules:
        await asyncio.to_thread(import_module, module)
