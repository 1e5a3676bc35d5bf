"""A gateway that stood still shows nobody less than they have seen: another one may have gone on with what it runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.base import Ended, LeftOpen, Ticket
from agent_core.bell import Bell
from gateway.queues.queues import Queues
from gateway.sessions.followers import MessageFollower
from gateway.sharing.portion import Portion
from tests.agent_core.turns import Rig


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
    follower = MessageFollower(
        cast("Any", watching), Ticket(7, "s1", duplicate=False), end_alone=False, stored_alone=False
    )
    follower._far = cast("Any", object()) if afar else None
    follower._attach()
    assert bool(seen.bells) == (ours or not afar)
    follower._bell.close()


@pytest.mark.parametrize(
    ("whole", "overtaken", "ended", "stored", "left", "told"),
    [
        (False, True, True, False, False, LeftOpen),  # it had decided on its end, which may never have been stored
        (False, True, False, False, False, LeftOpen),
        (False, True, True, True, False, Ended),  # by the watchdog in the driver's place, which has stored it
        (False, False, True, True, False, Ended),
        (False, False, False, False, True, LeftOpen),
        (True, False, True, True, False, Ended),
        (True, True, True, True, False, Ended),
        (True, False, False, False, True, LeftOpen),
    ],
)
async def test_an_end_that_may_not_be_stored_is_told_to_nobody(
    whole: bool, overtaken: bool, ended: bool, stored: bool, left: bool, told: type[object]
) -> None:
    rig = Rig()
    rig.text("Hello")
    if ended:
        rig.finish()
    seen = SimpleNamespace(over=True, current_view=rig.view)
    driver = SimpleNamespace(
        seen=seen, turn=rig.turn, overtaken=overtaken, closed=stored, left_open=left, identity=SimpleNamespace(turn="t")
    )
    watching = SimpleNamespace(portion=Portion(whole=whole))
    follower = MessageFollower(
        cast("Any", watching), Ticket(7, "s1", duplicate=False), end_alone=False, stored_alone=False
    )
    assert isinstance(sight := follower._sight(cast("Any", driver), changed=True), told)
    assert isinstance(sight, Ended | LeftOpen)
    assert sight.view == rig.view()
    follower._bell.close()
