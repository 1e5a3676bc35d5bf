"""Requests of the API that were not taken: each is logged and counted, and those of clients that may call are stored, as a refused message is.

Laws. Who may not call leaves no row, whatever they send. Not more than `MOST_A_MINUTE` are stored in a minute, and as many lines are
written about strangers, so that nobody fills the disk. No word of the request is kept, and its idempotency key stays free: the
same request may be sent again, and is then taken.
"""

from __future__ import annotations

import asyncio

import structlog

from adapters.contract.base import FromApi, RefusedRequest, SessionKey
from agent_core.ports import Clock, Ids
from agent_core.signals import MessageTaken, RequestRefused, Tell
from agent_core.store.errors import StorageUnavailable
from agent_core.store.inbox.rows import NewMessage
from agent_core.store.store import Store
from gateway.people.access import Recent
from gateway.queues import inbox

log = structlog.get_logger("api")

MOST_A_MINUTE = 60
STORE_SECONDS = 2.0
"""So long a client waits for its refusal because of the note that is made of it."""
SESSION = SessionKey("api", "refused", "")
"""All of them are in one: a request that is not taken makes no conversation."""
LANE = "refused"


class Refusals:
    """Notes what is refused. Call it with each."""

    def __init__(self, store: Store, clock: Clock, ids: Ids, tell: Tell) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._stored = Recent()
        self._strangers = Recent()

    async def __call__(self, refused: RefusedRequest) -> None:
        """Never raises for want of a storage: the client gets its refusal all the same."""
        self._tell(RequestRefused(status=refused.status))
        steady = round(self._clock.monotonic() * 1000)
        if refused.stranger:
            self._strangers, early = self._strangers.with_one(steady, MOST_A_MINUTE)
            if not early:
                log.info("api.stranger", status=refused.status)
            return
        self._stored, early = self._stored.with_one(steady, MOST_A_MINUTE)
        stored = not early and await self._store_it(refused, self._clock.now_ms())
        log.info(
            "api.refused", request=refused.request, status=refused.status, reason=refused.reason, stored=stored,
            caller=refused.caller,
        )  # fmt: skip

    async def _store_it(self, refused: RefusedRequest, now: int) -> bool:
        key = f"refused:{refused.request}:{self._ids.new('x')}"
        inbound = FromApi(
            account="api", platform_key=key, session=SESSION, input=(), surface="api", memory_scope="api",
            key=refused.caller,
        )  # fmt: skip
        message = NewMessage(
            account="api", platform_key=key, session_key=SESSION.text(), lane=LANE, body=inbox.encode(inbound),
            received_at=now, cursor=None, new_session_id=self._ids.new("s"), refused=refused.reason,
        )  # fmt: skip
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await self._store.inbox.accept(message)
        except (StorageUnavailable, TimeoutError):
            return False
        self._tell(MessageTaken(account="api", lane=LANE))
        return True
