"""Work that goes on beside a block, and ends with it: no task without an owner, and none that outlives its owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
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
