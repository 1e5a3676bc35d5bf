"""Who is being forgotten just now. Whoever of them writes meanwhile is answered as soon as what they said before is gone, so that nothing of it is told once
more, by a model or by what it looks up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from adapters.contract.base import Inbound
from agent_core.store.keeping.forgetting import Account
from gateway.limits.whose import author_of

WAIT_SECONDS = 20.0
"""So long at most they wait: whose past is long has it removed over minutes, and is told within half a minute what becomes of what they say."""


class BeingForgotten:
    """Kept by `gateway.retention.forgetting`; asked before a turn is prepared."""

    def __init__(self) -> None:
        self.jobs: dict[str, Sequence[Account]] = {}
        self._in_hand: set[str] = set()
        """Those of them of which more is known here than is stored."""
        self._changed = asyncio.Event()

    def begins(self, job: str, who: Sequence[Account]) -> None:
        self.jobs[job] = who
        self._in_hand.add(job)

    def stored(self, job: str) -> None:
        """Whoever does it, it is stored that it is to be done, and will be that it is."""
        self._in_hand.discard(job)

    def ends(self, job: str) -> None:
        """Nothing of what they said is told any more."""
        self._in_hand.discard(job)
        if self.jobs.pop(job, None) is not None:
            self._ring()

    def are(self, jobs: Mapping[str, Sequence[Account]]) -> None:
        """These are stored as not done yet, and no others."""
        self.jobs = {**jobs, **{job: who for job, who in self.jobs.items() if job in self._in_hand}}
        self._ring()

    async def over(self, inbound: Inbound) -> None:
        """Come back once its author is none of them, or after a while."""
        who = inbound.account, author_of(inbound)
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                while any(who in some for some in self.jobs.values()):
                    await self._changed.wait()

    def _ring(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
