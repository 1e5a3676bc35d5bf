"""The auditor in the daemon: now and then it looks at what has happened since, on a connection of its own and slowly.

Laws: nobody waits for it, and it writes nothing; it looks at so many things in a second at most, whatever there is; it ends at once when the
gateway stops. What it found is known until a later look at the same finds it mended: what is open is looked at in every pass, and what has
ended and was found broken is kept until a restart, because nobody mends the past.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.store.errors import CannotOpen, StorageUnavailable
from gateway.config.limits import Audit
from gateway.version import program_version

if TYPE_CHECKING:
    from gateway.laws.auditor import Watermark
    from gateway.laws.law import Breach, Law

log = structlog.get_logger("audit")

BEGIN_SECONDS = 60.0
"""After a start others come first."""
HOUR_MS = 3_600_000
NEWEST = 5_000
"""So many model calls, and messages to webhooks, are looked at in a pass, the latest: there may be millions."""
TOLD = 5
"""So many breaches stand in one line of the log, and in what operators are told."""


class LawWatch:
    """`running` is its life."""

    def __init__(self, where: str | Path, rules: Audit, clock: Clock) -> None:
        self._where = where
        self._rules = rules
        self._clock = clock
        self._mark: Watermark | None = None
        self.known: tuple[Breach, ...] = ()
        """What is broken, as of the last look."""
        self.at = 0
        """When that ended, ms; 0: there was none yet."""
        self.looked = 0
        """How many things were looked at since the start."""
        self.passes = 0

    def counts(self) -> Mapping[Law, int]:
        """How often each law is known to be broken."""
        from gateway.laws.law import Law

        counted = Counter(one.law for one in self.known)
        return {law: counted[law] for law in Law}

    def words(self) -> str:
        """What operators are told; empty if every law is kept."""
        if not self.known:
            return ""
        named = "; ".join(one.what for one in self.known[:TOLD])
        more = f" And {len(self.known) - TOLD} more." if len(self.known) > TOLD else ""
        return f"What is stored breaks a law: {named}{more} See outspoken audit."

    def status(self) -> dict[str, Json]:
        """For `status` and the console."""
        from gateway.laws.words import as_json

        return {
            "looked_at": self.at or None,
            "looked": self.looked,
            "breaches": as_json(self.known[:TOLD]),
            "count": len(self.known),
        }

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """It looks, for the block."""
        if not self._rules.per_second:
            yield
            return
        async with beside(self._run, "audit"):
            yield

    async def _run(self) -> None:
        await asyncio.sleep(min(BEGIN_SECONDS, self._rules.every_seconds))
        while True:
            try:
                await self.look()
            except (CannotOpen, StorageUnavailable) as error:
                log.warning("audit.not_looked", error=str(error))
            except Exception:
                log.exception("audit.failed")
            await asyncio.sleep(self._rules.every_seconds)

    async def look(self) -> None:
        """One pass."""
        from agent_core.store.evidence import EvidenceReads
        from agent_core.store.reading import open_reads
        from gateway.laws.auditor import Auditor, Watermark
        from gateway.laws.law import MENDS, Viewpoint

        async with open_reads(self._where) as reads:
            evidence = EvidenceReads(reads.asks)
            now, nodes = self._clock.now_ms(), await evidence.nodes()
            late, latest = self._rules.late_seconds * 1000, await evidence.latest()
            moment = Viewpoint(now, tuple(nodes), late, program_version(), runs=True, latest=latest)
            since = self._mark or Watermark(
                (now - self._rules.hours * HOUR_MS, ""),
                *await evidence.numbers_before(now - self._rules.hours * HOUR_MS),
            )
            found = await Auditor(evidence, moment, self._rest, newest=NEWEST).run(since)
        before = {one.place for one in self.known}
        kept = [one for one in self.known if one.law not in MENDS]
        fresh = [one for one in found.breaches if one.key not in {kept_one.key for kept_one in kept}]
        self.known, self._mark, self.at = (*kept, *fresh), found.mark, self._clock.now_ms()
        self.looked += found.seen
        self.passes += 1
        if told := [one for one in fresh if one.place not in before]:
            log.error(
                "audit.broken", count=len(told), laws=sorted({one.law.value for one in told}),
                where=[one.where for one in told[:TOLD]], complaints=[one.what for one in told[:TOLD]],
            )  # fmt: skip
        elif before and not self.known:
            log.info("audit.mended")

    async def _rest(self, count: int) -> None:
        await asyncio.sleep(count / self._rules.per_second)
