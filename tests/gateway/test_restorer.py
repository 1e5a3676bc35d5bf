"""Parts that earlier processes left open: each goes on under the ownership of its own session, whenever its account is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.chat import ChatAddress, Content, ContentKind
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import new_part
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import Delivery, DeliveryState
from gateway.delivery.outbox import Restorer
from gateway.delivery.owners import Owner
from tests.store.support import FakeClock

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


class Found:
    """Parts by their origins, of a store and of words."""

    def __init__(self, *origins: str) -> None:
        row = SimpleNamespace
        self.parts = [
            cast("Delivery", SimpleNamespace(row=row(surface=PLACES[0].text(), origin=one), session="a"))
            for one in origins
        ]
        self.taken_back: list[str] = []

    async def of_all(self, names: Sequence[str]) -> list[Delivery]:
        return [one for one in self.parts if one.row.origin in names]

    def take_back(self, address: ChatAddress, origin: str) -> None:
        assert address == PLACES[0]
        self.taken_back.append(origin)


def restorer(found: Found, monkeypatch: pytest.MonkeyPatch) -> tuple[Restorer, list[tuple[list[str], Any, Any]]]:
    none, taken = cast("Any", None), list[tuple[list[str], Any, Any]]()
    one = Restorer(none, none, cast("Any", found), cast("Any", SimpleNamespace(deliveries=found)))

    def take_up(parts: Sequence[Delivery], epochs: object, going_on: object = ()) -> None:
        taken.append(([part.row.origin for part in parts], epochs, going_on))

    monkeypatch.setattr(one, "take_up", take_up)
    return one, taken


async def test_what_said_that_a_message_waits_goes_when_its_turn_goes_on_and_what_its_turn_shows_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Found("t1", "queue:7", "queue:8", "t2")
    one, taken = restorer(found, monkeypatch)
    await one.load([cast("Any", SimpleNamespace(turn="t1", session="a", epoch=3))], [7])
    assert taken == [(["t1", "queue:7"], {"a": 3}, ["t1"])]
    assert found.taken_back == ["queue:7"]


async def test_words_about_messages_that_wait_are_known_of_their_own_conversation_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Found("queue:7", "queue:8")
    vars(found.parts[1])["session"] = "b"
    one, taken = restorer(found, monkeypatch)
    await one.load_words(Owner("a", 3), [7, 8])
    assert taken == [(["queue:7"], {"a": 3}, ())]
    assert found.taken_back == [], "they still wait"


@pytest.mark.parametrize(("bubble", "told"), [("text0", True), ("notice", True), ("failed.text0.0", False)])
async def test_a_part_that_is_set_aside_is_told_in_its_chat_and_no_word_of_that_has_one_of_its_own(
    bubble: str, *, told: bool
) -> None:
    kept, noted, said = list[Any](), list[str](), list[str]()

    async def put(owner: Owner, rows: Sequence[Any]) -> None:
        kept.extend((owner, row.state) for row in rows)

    async def say(_address: object, owner: Owner, origin: str, content: Content) -> None:
        assert owner == Owner("a", 3)
        assert "It failed" not in content.body.text
        said.append(origin)

    def note(surface: str, *_: object) -> None:
        noted.append(surface)

    shared = SimpleNamespace(records=SimpleNamespace(put=put), troubles=SimpleNamespace(note=note), clock=FakeClock())
    one = Restorer(cast("Any", shared), cast("Any", None), cast("Any", SimpleNamespace(say=say)), cast("Any", None))
    wanted = WantedPart(bubble, 0, Content(ContentKind.TEXT, Styled("It failed")), final=True)
    row = new_part(wanted, PLACES[0].text(), "t1", 1).row
    await one.set_aside(Delivery("a", row), Owner("a", 3), "it ended the gateway")
    assert (kept, noted) == ([(Owner("a", 3), DeliveryState.FAILED)], [PLACES[0].text()])
    assert said == ([f"t1!failed.{bubble}.0"] if told else [])
