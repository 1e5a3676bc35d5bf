"""``outspoken audit``: whether what is stored keeps the laws, looked at once, beside a gateway or without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agent_core.ports import Clock
from agent_core.store.evidence import EvidenceReads
from agent_core.store.reading import open_reads
from gateway.config.paths import Paths
from gateway.config.sections import Config
from gateway.laws.auditor import Audited, Auditor, Rest, Watermark
from gateway.laws.law import Viewpoint
from gateway.operate.context import holder_of_database
from gateway.version import program_version

TELLS_SECONDS = 5.0
"""So often whoever waits for the result is told that it is on its way."""


def telling(clock: Clock, progress: Callable[[str], None]) -> Rest:
    """It waits for nothing, and says now and then how much has been looked at."""
    seen, told = 0, clock.monotonic()

    async def rest(count: int) -> None:
        nonlocal seen, told
        seen += count
        if (now := clock.monotonic()) - told >= TELLS_SECONDS:
            told = now
            progress(f"Looked at {seen:,} turns, messages and parts of answers so far …")

    return rest


async def audited(
    config: Config,
    paths: Paths,
    clock: Clock,
    late_seconds: float | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Audited:
    """Look at everything; `progress` is told meanwhile how much that was. Raises CannotOpen, StorageUnavailable: then nothing can be said."""
    holder = await asyncio.to_thread(holder_of_database, config, paths)
    async with open_reads(config.storage.url or paths.database) as reads:
        evidence = EvidenceReads(reads.asks)
        nodes = await evidence.nodes()
        runs = None if holder is None else holder != 0
        late = round((config.audit.late_seconds if late_seconds is None else late_seconds) * 1000)
        moment = Viewpoint(clock.now_ms(), tuple(nodes), late, program_version(), runs, await evidence.latest())
        return await Auditor(evidence, moment, telling(clock, progress)).run(Watermark())
