"""What a program, or the page, wants of a whole conversation that is run here, and asked for at another gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from adapters.contract.base import SessionKey
from adapters.contract.sessions import BusyElsewhere, StillRunning
from agent_core.jsonvalue import Json
from gateway.conversations.access import OF_API, OF_PAGE, access_of
from gateway.sessions.hub import Hub
from gateway.sharing.portion import Changed, FarChange

CARRIED_OUT = "the conversation is deleted, as it says"


async def changed(
    hub: Hub, key: SessionKey, inbox_id: int, session: str, change: FarChange, words: Sequence[Json]
) -> Json:
    """Do what the message with this number asks for, and say what came of it; None if that is somebody else's by now."""
    shelf = OF_PAGE if key.platform == OF_PAGE.platform else OF_API
    access = access_of(hub.accepting, hub.stopping, hub.forgetting, shelf)
    row = await access.store.sessions.one(session)
    if row is None or row.key != key.text() or not hub.portion.mine(row.key):
        return None
    (sight,) = await access.sights.of([row])
    there = True
    try:
        match change:
            case FarChange.DESCRIBE:
                # An earlier version does not say what was seen
                wanted, *seen = cast("Sequence[Mapping[str, str]]", words)
                await access.describe(replace(sight, metadata=seen[0]) if seen else sight, wanted)
            case FarChange.RESET:
                await access.reset(sight)
            case FarChange.SHOW:
                there = await access.show(sight, str(words[0]))
            case FarChange.DELETE:
                # The wish is in the conversation, and would be without words in it when that is gone.
                await access.store.inbox.drop(inbox_id, CARRIED_OUT)
                await access.delete(sight)
    except StillRunning:
        return Changed.RUNNING.value
    except BusyElsewhere:
        return None
    return (Changed.DONE if there else Changed.NOTHING).value
