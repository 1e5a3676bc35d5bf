"""The auditor's question, asked of a gateway's database from outside, once it has come to rest."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from agent_core.store.deliveries.access import Lying
from agent_core.store.reading import open_reads
from tests import elsewhere


async def lies(folder: Path, within: float = 20.0) -> list[Lying]:
    """What is stored and is not true, when it has had time to come to rest."""
    until = time.monotonic() + within
    async with open_reads(elsewhere.database_of(folder)) as reads:
        while True:
            found = await reads.deliveries.lying()
            if not found or time.monotonic() > until:
                return found
            await asyncio.sleep(0.3)
