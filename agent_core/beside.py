"""Work that goes on beside a block, and ends with it: no task without an owner, and none that outlives its owner. And modules that are loaded beside
the loop.

Law (tests/agent_core/test_beside.py): work beside the turns neither ends the gateway by a mistake of ours, nor ceases without a word. What it
raises is logged, and it is begun anew after a while.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import import_module

import structlog

log = structlog.get_logger("gateway")

FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 1.0, 60.0
"""So long it rests after its first failure, twice as long after each further one, and never longer."""


@asynccontextmanager
async def beside(work: Callable[[], Awaitable[None]], name: str) -> AsyncGenerator[None]:
    """`work` is kept up for the block. It is cancelled at its end and waited for."""
    task = asyncio.create_task(kept_up(work, name), name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def kept_up(work: Callable[[], Awaitable[None]], name: str) -> None:
    """Do it until it is over, or cancelled."""
    loop, pause = asyncio.get_running_loop(), FIRST_PAUSE_SECONDS
    while True:
        began = loop.time()
        try:
            await work()
        except Exception:
            if loop.time() - began > MOST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            log.exception("work.failed", work=name, again_in_seconds=pause)
        else:
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, MOST_PAUSE_SECONDS)


async def loaded(module: str) -> None:
    """What few need is loaded by the first who does: that one waits for it, and nobody else on the loop."""
    if module not in sys.modules:
        await asyncio.to_thread(import_module, module)
