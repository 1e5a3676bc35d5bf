"""The story of a turn for whoever asks at the API's door: it is told where it was asked."""

from __future__ import annotations

from collections.abc import Callable

from adapters.contract.base import SessionKey
from adapters.contract.callers import Caller
from adapters.http.theirs import asked_by, held_by
from agent_core.store.store import Store
from gateway.explain.story import why_as_then
from gateway.queues import inbox


async def told_to(caller: Caller, browser: str, store: Store, turn: str, now: Callable[[], int]) -> tuple[str, ...]:
    """What `/why` says of a turn of the caller's, or of their browser's; empty if they have none of this name."""
    return await why_as_then(store, turn, now) if await _is_theirs(caller, browser, store, turn) else ()


async def _is_theirs(caller: Caller, browser: str, store: Store, turn: str) -> bool:
    asked = await store.inbox.inputs(turn)
    if asked:
        return all(asked_by(inbox.decode(row.body), caller, browser) for row in asked)
    row = await store.turns.one(turn)
    session = await store.sessions.one(row.session) if row is not None else None
    # What was asked is not kept any more
    return session is not None and held_by(SessionKey.of(session.key), caller, browser)
