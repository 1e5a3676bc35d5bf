"""Whoever asked and went away: what they asked is stopped when the grace is over, unless somebody follows it by then."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import StopOutcome, Ticket
from agent_core.store.store import LeaseLost, StorageUnavailable
from gateway.sessions.leaving import ClientsGone


@pytest.mark.parametrize("follows", ["nobody", "somebody", "who came back and left", "another message"])
@pytest.mark.parametrize("fails", [None, StorageUnavailable("away"), LeaseLost("lost"), TypeError("a mistake of ours")])
async def test_only_what_nobody_follows_any_more_is_stopped_and_what_fails_ends_nothing_else(
    follows: str, fails: Exception | None
) -> None:
    stopped, following = list[int](), Counter[int]()

    async def stop(ticket: Ticket) -> StopOutcome:
        stopped.append(ticket.inbox_id)
        if fails is not None:
            raise fails
        return StopOutcome(stopped=True, words="")

    tasks = set[asyncio.Task[None]]()
    async with asyncio.TaskGroup() as group:
        gone = ClientsGone(cast("Any", SimpleNamespace(stop_message=stop)), following, group, tasks)
        gone.left(Ticket(7, "s", duplicate=False), 0.01)
        assert len(tasks) == 1
        match follows:
            case "somebody":
                following[7] += 1
            case "who came back and left":
                following[7] += 1
                following[7] -= 1
            case "another message":
                following[8] += 1
            case _:
                pass
        assert stopped == [], "a short while somebody may be on the way back"
    assert stopped == ([] if follows == "somebody" else [7])
    await asyncio.sleep(0)
    assert tasks == set()
