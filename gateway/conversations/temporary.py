"""Temporary conversations of the page: the page has each deleted when it is left; what a page could not tell of (a phone that went out) goes here, after a day."""

from __future__ import annotations

import structlog

from adapters.contract.base import TEMPORARY
from adapters.contract.sessions import PAGES, BusyElsewhere, SessionState, StillRunning
from agent_core.store.sessions.rows import SessionRow
from agent_core.store.store import StoreError
from gateway.conversations.access import OF_PAGE, GatewaySessions, access_of
from gateway.sessions.hub import Hub

log = structlog.get_logger("gateway")

KEPT_MS = 24 * 3600 * 1000
AT_ONCE = 200


async def forget_temporary(hub: Hub, now_ms: int) -> int:
    """Deletes those in which nothing has happened for so long; how many."""
    access, gone = access_of(hub.accepting, hub.stopping, hub.forgetting, OF_PAGE), 0
    try:
        begins = f"{OF_PAGE.platform}/{PAGES}/{TEMPORARY}"
        rows = await access.store.sessions.named([begins], "", AT_ONCE, None, newest_first=False)
        for row in [row for row in rows if _is_old(row, now_ms) and hub.portion.mine(row.key)]:
            gone += await _forgotten(access, row, now_ms)
    except StoreError as error:
        log.warning("temporary.not_deleted", error=str(error))
    return gone


async def _forgotten(access: GatewaySessions, row: SessionRow, now_ms: int) -> bool:
    """Whether it could be deleted. One that cannot be just now keeps no other."""
    now = await access.store.sessions.one(row.session)  # those before it took time, and its page may be back
    (sight,) = await access.sights.of([now or row])
    if now is None or not _is_old(now, now_ms) or sight.state is not SessionState.IDLE:
        return False
    try:
        await access.delete(sight)
    except (BusyElsewhere, StillRunning) as error:
        log.warning("temporary.not_deleted", error=f"{row.session}: {type(error).__name__}")
        return False
    return True


def _is_old(row: SessionRow, now_ms: int) -> bool:
    return max(row.created_at, row.last_at) < now_ms - KEPT_MS
