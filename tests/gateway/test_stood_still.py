"""A gateway that stood still shows nobody less than they have seen: another one may have gone on with what it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import Ticket
from agent_core.bell import Bell
from gateway.queues.queues import Queues
from gateway.sessions.followers import MessageFollower


class Seen:
    """Of a turn that runs here."""

    over = False

    def __init__(self) -> None:
        self.bells: list[Bell] = []

    def subscribe(self, bell: Bell) -> None:
        self.bells.append(bell)


@pytest.mark.parametrize("afar", [True, False])
@pytest.mark.parametrize("ours", [True, False])
async def test_what_was_seen_from_afar_is_not_taken_back_by_what_may_be_anothers(afar: bool, ours: bool) -> None:
    queues, seen = Queues(), Seen()
    queue = queues.at("telegram/1/2//")
    queues.own(queue, "s1", 1)
    driver = SimpleNamespace(over=False, turn=SimpleNamespace(exit=None), seen=seen)
    queue.running = cast("Any", SimpleNamespace(driver=driver, messages=(SimpleNamespace(inbox_id=7),)))
    store = SimpleNamespace(ownership=SimpleNamespace(lease_ok=lambda: ours))
    watching = SimpleNamespace(queues=queues, store=store)
    follower = MessageFollower(cast("Any", watching), Ticket(7, "s1", duplicate=False), end_alone=False)
    follower._far = cast("Any", object()) if afar else None
    follower._attach()
    assert bool(seen.bells) == (ours or not afar)
    follower._bell.close()
