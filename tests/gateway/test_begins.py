"""Which messages are stored together with the turn that they begin: those of a conversation that is ours, in which nothing else goes on, while nobody has
died lately."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent_core.store.inbox.rows import NewMessage
from gateway.queues.queue import SessionQueue
from gateway.queues.queues import Queues
from gateway.sessions.atonce import AtOnce
from tests.agent_core.turns import gives
from tests.gateway.test_slots import message
from tests.store.support import FakeClock

WAYS = [
    "it is ours", "it was ours when its last turn ended", "nobody knows whose it is", "the gateway ends", "somebody has died lately",
    "something waits", "a turn runs", "something was left", "its task is not over", "something was steered", "something was left elsewhere",
    "there is no room", "it cannot be prepared",
]  # fmt: skip
BEGINS = WAYS[:2]


@pytest.mark.parametrize("what", WAYS)
async def test_a_message_begins_at_once_only_where_nothing_can_come_before_it(what: str) -> None:
    clock, queues, prepared, left = FakeClock(), Queues(), list[str](), list[SessionQueue]()
    inbound = message("a", 5).inbound
    queue = queues.at(inbound.session.text())
    some: Any = SimpleNamespace()

    async def prepare(_: object, session: str, epoch: int, __: object) -> Any:
        if what == "it cannot be prepared":
            raise LookupError
        prepared.append(f"{session} {epoch}")
        return some

    slots = SimpleNamespace(at_once=gives(what != "there is no room"), leave=left.append)
    runner: Any = SimpleNamespace(closing=what == "the gateway ends", slots=slots)
    unclaimed: Any = SimpleNamespace(holds=gives(what == "something was left elsewhere"))
    none = cast("Any", None)
    at_once = AtOnce(queues, runner, cast("Any", SimpleNamespace(prepare=prepare)), unclaimed, none, clock)
    at_once.wary_until = clock.monotonic() + (1 if what == "somebody has died lately" else 0)
    match what:
        case "nobody knows whose it is":
            pass
        case "it was ours when its last turn ended":
            queues.pasts.keep(queue.key, "s", 3, cast("Any", SimpleNamespace(size=0)))
        case _:
            queues.own(queue, "s", 3)
    match what:
        case "something waits":
            queue.waiting = [message("a", 1)]
        case "a turn runs":
            queue.running = some
        case "something was left":
            queue.blocked = True
        case "its task is not over":
            queue.task = some
        case "something was steered":
            queue.steers = [message("a", 1)]
        case _:
            pass
    new = NewMessage("api", "k", queue.key, "normal", b"", clock.now, None, "new", person="")
    begins = await at_once.beginning(queue, inbound, new)
    assert (begins is not None) == (what in BEGINS)
    assert prepared == (["s 3"] if what in BEGINS else [])
    assert left == ([queue] if what == "it cannot be prepared" else []), "its slot is for others"
