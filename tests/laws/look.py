"""The auditor, asked at the end of tests that left a database behind."""

from __future__ import annotations

import time
from pathlib import Path

from agent_core.ports import Clock
from agent_core.store.evidence import EvidenceReads
from agent_core.store.reading import open_reads
from gateway.laws.auditor import Audited, Auditor, Watermark
from gateway.laws.law import LATE_MS, Breach, Viewpoint
from gateway.version import program_version


async def audited(where: str | Path, *, late_ms: int = LATE_MS, now: int = 0, runs: bool | None = False) -> Audited:
    """A look at the whole database, without a second one at what is broken: nobody else is at work."""
    async with open_reads(where) as reads:
        evidence = EvidenceReads(reads.asks)
        nodes = tuple(await evidence.nodes())
        moment = Viewpoint(
            now or time.time_ns() // 1_000_000, nodes, late_ms, program_version(), runs, await evidence.latest()
        )
        return await Auditor(evidence, moment, again_seconds=0.0).run(Watermark())


async def breaches(where: str | Path, *, late_ms: int = LATE_MS, now: int = 0) -> list[Breach]:
    """Which laws are broken there."""
    return (await audited(where, late_ms=late_ms, now=now)).breaches


HOWEVER_LATE_MS = 10**13
"""A test that ends does not wait for what would come."""


async def is_lawful(where: str | Path, clock: Clock | None = None) -> None:
    """Assert that what gateways have left there breaks no law. None of them runs any more."""
    found = await breaches(where, late_ms=HOWEVER_LATE_MS, now=clock.now_ms() if clock is not None else 0)
    assert not found, "\n".join(one.what for one in found)
