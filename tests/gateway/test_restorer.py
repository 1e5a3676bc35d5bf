"""Parts that earlier processes left open: each goes on under the ownership of its own session, whenever its account is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.chat import ChatAddress
from agent_core.store.deliveries.rows import Delivery
from gateway.delivery.outbox import Restorer
from gateway.delivery.owners import Owner

PLACES = tuple(ChatAddress(platform, "1", chat) for platform in ("telegram", "slack") for chat in ("7", "8"))
SESSIONS = {"a": 3, "b": 5}
Restored = set[tuple[str, Owner, int]]


class Surfaces:
    """Accounts of which some are there, and the others come later."""

    def __init__(self, there: Collection[str]) -> None:
        self.there, self.waiting = there, list[tuple[ChatAddress, Callable[[Any], None]]]()
        self.restored: Restored = set()

    def when_there(self, address: ChatAddress, work: Callable[[Any], None]) -> None:
        if address.platform in self.there:
            self._do(address, work)
        else:
            self.waiting.append((address, work))

    def come(self) -> None:
        for address, work in self.waiting:
            self._do(address, work)

    def _do(self, address: ChatAddress, work: Callable[[Any], None]) -> None:
        def restore(rows: Sequence[Any], owner: Owner, going_on: Collection[str]) -> None:
            assert going_on == ("t",)
            self.restored |= {(address.text(), owner, one.row.number) for one in rows}

        work(SimpleNamespace(ledger=SimpleNamespace(restore=restore)))


PARTS = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(sorted(SESSIONS))), max_size=6)


@given(PARTS, st.sets(st.sampled_from(["telegram", "slack"])))
@example([(PLACES[0], "a"), (PLACES[0], "b")], set[str]())
@example([(PLACES[0], "a"), (PLACES[2], "b")], {"telegram"})
def test_each_part_is_its_own_sessions_at_once_and_later(parts: list[tuple[ChatAddress, str]], there: set[str]) -> None:
    left = [cast("Delivery", SimpleNamespace(row=SimpleNamespace(surface=place.text(), number=number), session=session))
            for number, (place, session) in enumerate(parts)]  # fmt: skip
    surfaces = Surfaces(there)
    restorer = Restorer(cast("Any", None), cast("Any", surfaces), cast("Any", None), cast("Any", None))
    restorer.take_up(left, SESSIONS, ("t",))
    surfaces.come()
    assert surfaces.restored == {
        (place.text(), Owner(session, SESSIONS[session]), number) for number, (place, session) in enumerate(parts)
    }
