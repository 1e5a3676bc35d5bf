"""What the parts of a surface owe to the store: nothing goes out that is not stored, and what could not be stored has not begun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from adapters.contract.chat import Content, ContentKind, Traits
from adapters.delivery.parts import WantedPart
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Damaged, StorageUnavailable
from gateway.delivery.ledger import Ledger, Records
from gateway.delivery.owners import Owner
from gateway.storage.damage import DamageMet
from tests.store.support import FakeClock

ME = Owner("s", 7)


class Paper(Records):
    """A store of rows that fails as it is told."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(cast("Any", None), DamageMet(clock))
        self.rows: list[tuple[Owner, DeliveryRow]] = []
        self.fails: Exception | None = None

    async def put(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        if self.fails is not None:
            raise self.fails
        self.rows += [(owner, row) for row in rows]


def ledger_of(*origins: str) -> tuple[Ledger, Paper]:
    clock = FakeClock()
    paper = Paper(clock)
    ledger = Ledger("chat", paper, clock, lambda: None)
    for origin in origins:
        ledger.propose(origin, ME, wanted(origin))
        ledger.release(origin)
    return ledger, paper


def wanted(*texts: str, final: bool = True) -> list[WantedPart]:
    return [
        WantedPart("b", number, Content(ContentKind.TEXT, Styled(text)), final=final)
        for number, text in enumerate(texts)
    ]


async def test_a_part_is_stored_as_being_sent_before_it_is_sent() -> None:
    ledger, paper = ledger_of("t1")
    (before,) = ledger.ready()
    begun = await ledger.keep_begun(before, repeated=False)
    assert paper.rows == [(ME, begun.row)]
    assert begun.row.state is DeliveryState.SENDING
    assert begun.row.attempt == before.row.attempt + 1
    assert ledger.current(before) == begun


async def test_what_is_wanted_waits_from_then_on_also_what_was_shown_long_ago() -> None:
    clock = FakeClock()
    ledger = Ledger("chat", Paper(clock), clock, lambda: None)
    (new,) = ledger.plan("t1", wanted("one"))
    assert new.row.at == clock.now
    ledger.take([replace(new, row=replace(new.row, state=DeliveryState.SENT, platform_id="7"))])
    clock.now += 3_600_000
    (again,) = ledger.plan("t1", wanted("other"))
    assert (again.row.state, again.row.at) == (DeliveryState.WANTED, clock.now)


@pytest.mark.parametrize("error", [StorageUnavailable("away"), Damaged("damaged")])
async def test_what_could_not_be_stored_has_not_begun(error: StorageUnavailable) -> None:
    ledger, paper = ledger_of("t1")
    (before,) = ledger.ready()
    paper.fails = error
    with pytest.raises(type(error)):
        await ledger.keep_begun(before, repeated=False)
    (now,) = ledger.waiting
    assert now.row == replace(before.row, at=now.row.at)


async def test_what_met_damage_waits_until_all_was_found_sound_and_nothing_else_does() -> None:
    ledger, paper = ledger_of("t1", "t2")
    first, second = ledger.ready()
    paper.fails = Damaged("damaged")
    with pytest.raises(Damaged):
        await ledger.keep_begun(first, repeated=False)
    assert ledger.ready() == [second]
    paper.fails = None
    await ledger.pay(())
    assert all(row.origin != "t1" for _, row in paper.rows), "nor is it stored"
    paper.damage.sounds += 1
    assert {part.name for part in ledger.ready()} == {first.name, second.name}


async def test_what_somebody_is_about_to_store_goes_out_only_then() -> None:
    ledger, _ = ledger_of()
    rows = ledger.propose("t1", ME, wanted("a", "b"))
    assert [row.part for row in rows] == [0, 1]
    assert ledger.ready() == []
    assert len(ledger.waiting) == 2
    ledger.release("t1")
    assert len(ledger.ready()) == 2


@pytest.mark.parametrize("stored", [True, False])
async def test_what_was_offered_is_owed_only_if_it_was_not_stored(stored: bool) -> None:
    ledger, paper = ledger_of("t1")
    (before,) = ledger.ready()
    begun = await ledger.keep_begun(before, repeated=False)
    paper.rows.clear()
    _, rows = ledger.close("t1", ME, wanted("other words"), Traits(drafts=False))
    assert [row.origin for row in rows] == ["t1"]
    ledger.release("t1", stored=stored)
    assert await ledger.pay(()) is not stored
    assert [row.rev for _, row in paper.rows] == ([] if stored else [begun.row.rev + 1])


async def test_of_a_turn_that_runs_nothing_is_owed_but_that_sending_is_over() -> None:
    ledger, paper = ledger_of("t1")
    (before,) = ledger.ready()
    begun = await ledger.keep_begun(before, repeated=False)
    assert not await ledger.pay({"t1"})
    ledger.not_begun(begun)
    ledger.not_begun(before)
    assert await ledger.pay({"t1"})
    assert [row.state for _, row in paper.rows] == [DeliveryState.SENDING, DeliveryState.WANTED]


@pytest.mark.parametrize("runs", [True, False])
async def test_what_changes_while_a_turn_runs_is_not_stored_each_time_and_what_it_left_is(runs: bool) -> None:
    ledger, paper = ledger_of("t1")
    (part,) = ledger.ready()
    await ledger.keep(part)
    paper.rows.clear()
    for text in ("a", "a b", "a b c"):
        ledger.take(ledger.plan("t1", wanted(text)))
        assert await ledger.pay({"t1"} if runs else ()) is not runs
    assert len(paper.rows) == (0 if runs else 3)


async def test_what_a_turn_that_goes_on_has_on_its_way_waits_for_it() -> None:
    clock = FakeClock()
    ledger = Ledger("chat", Paper(clock), clock, lambda: None)
    first, _ = ledger_of("t1", "t2")
    rows = [part.row for part in first.parts.values()]
    growing = [Delivery("s", row) for row in rows]
    ledger.restore(growing, ME, going_on={"t1"})
    assert {part.row.origin for part in ledger.ready()} == {"t1", "t2"}, "what is final is not waited for"
    ledger.sweep()
    assert len(ledger.parts) == 2


async def test_parts_of_a_chat_that_has_another_id_are_stored_there_and_here_nothing_is_left() -> None:
    ledger, paper = ledger_of("t1")
    other = Ledger("new chat", paper, FakeClock(), lambda: None)
    before = list(ledger.parts)
    ledger.hand_over(other)
    assert (ledger.parts, ledger.owners, ledger.held) == ({}, {}, set())
    assert list(other.parts) == before
    assert {part.row.surface for part in other.parts.values()} == {"new chat"}
    assert other.owners == {"t1": ME}


async def test_parts_of_a_chat_that_has_another_id_wait_since_they_were_wanted_first() -> None:
    ledger, paper = ledger_of("t1")
    since = ledger.oldest_wanted_at()
    ledger.propose("t2", ME, wanted("on its way", final=False))
    other = Ledger("new chat", paper, FakeClock(1_700_000_900_000), lambda: None)
    ledger.hand_over(other)
    assert other.oldest_wanted_at() == since is not None
    assert other.waited(("t2", "b", 0)) == 0, "what is on its way is not to stay, and waits for nothing"


async def test_a_part_that_stands_where_the_chat_is_now_is_what_was_wanted_last_where_it_was() -> None:
    """After a restart the turn is shown where it was asked, until the platform says that the chat is another."""
    ledger, paper = ledger_of("t1")
    other = Ledger("new chat", paper, FakeClock(), lambda: None)
    (left,) = ledger.plan("t1", wanted("half of"))
    other.restore([Delivery("s", replace(left.row, surface="new chat", state=DeliveryState.SENT, platform_id="7"))], ME)
    ledger.propose("t1", ME, wanted("half of it, and the rest"))
    ledger.release("t1")
    ledger.hand_over(other)
    (part,) = other.parts.values()
    assert (part.content.body.text, part.row.platform_id, part.row.state) == (
        "half of it, and the rest",
        "7",
        DeliveryState.WANTED,
    )
    assert await other.pay(()), "what the store has of it is an earlier state"


def kept(place: int, origin: str = "t1", **more: Any) -> Delivery:
    """A part that an earlier process has left."""
    ledger, _ = ledger_of()
    (part,) = ledger.plan(origin, wanted("left"))
    return Delivery("s", replace(part.row, place=place, **more))


async def test_places_go_on_behind_all_that_were_given_and_never_back() -> None:
    ledger, paper = ledger_of()
    ledger.restore([kept(40), kept(7, "t2")], ME)
    (new,) = ledger.plan("t3", wanted("new"))
    assert new.row.place == 41
    ledger.take([new])
    paper.placed(3)
    assert paper.next_place == 42


async def test_what_is_stored_by_now_wakes_its_surface() -> None:
    clock, rung = FakeClock(), list[str]()
    ledger = Ledger("chat", Paper(clock), clock, lambda: rung.append("rang"))
    ledger.propose("t1", ME, wanted("a"))
    rung.clear()
    ledger.release("t1")
    assert rung == ["rang"]


async def test_a_word_that_stands_is_remembered_at_rest_and_stored_as_gone_with_the_end() -> None:
    """Else the next process would let it stand."""
    clock = FakeClock()
    ledger = Ledger("chat", Paper(clock), clock, lambda: None)
    word = kept(1, "queue:5", state=DeliveryState.SENT, platform_id="9")
    ledger.restore([word, kept(2, "t1", state=DeliveryState.SENT, platform_id="10")], ME)
    ledger.sweep()
    assert [part.row.origin for part in ledger.parts.values()] == ["queue:5"]
    assert ledger.standing
    ledger.take_back("queue:5")
    _, rows = ledger.close("t1", ME, wanted("the end"), Traits(drafts=False))
    assert {(row.origin, row.gone) for row in rows} == {("t1", False), ("queue:5", True)}
    assert not ledger.standing


async def test_what_is_being_stored_with_an_end_is_not_stored_beside_it() -> None:
    ledger, paper = ledger_of("t1")
    (before,) = ledger.ready()
    await ledger.keep_begun(before, repeated=False)
    paper.rows.clear()
    ledger.close("t1", ME, wanted("other words"), Traits(drafts=False))
    assert not await ledger.pay(())
    assert paper.rows == []


async def test_a_turn_of_an_earlier_process_is_awaited_until_it_ends() -> None:
    clock = FakeClock()
    ledger = Ledger("chat", Paper(clock), clock, lambda: None)
    growing = kept(1, final=False, state=DeliveryState.WANTED, platform_id="9")
    ledger.restore([growing], ME, going_on={"t1"})
    assert ledger.ready() == [], "what is on its way is changed by its turn"
    (part,) = ledger.waiting
    assert not part.row.gone
    ledger.close("t1", ME, wanted("the end"), Traits(drafts=False))
    ledger.release("t1")
    assert ledger.awaited == set()
    ledger.take([replace(part, row=replace(part.row, final=True))])
    assert len(ledger.ready()) == 1


async def test_what_an_earlier_process_has_left_waits_since_then() -> None:
    clock = FakeClock()
    ledger = Ledger("chat", Paper(clock), clock, lambda: None)
    ledger.restore([kept(1, at=clock.now - 60_000)], ME)
    oldest = ledger.oldest_wanted_at()
    assert oldest is not None
    assert round(clock.monotonic() * 1000) - oldest == 60_000


async def test_what_was_not_begun_after_all_is_as_it_was() -> None:
    """Also one that was to be created a second time: without a label, as nothing has happened."""
    ledger, _ = ledger_of()
    ledger.restore([kept(1, state=DeliveryState.UNKNOWN, attempt=2, sending_at=5)], ME)
    (before,) = ledger.ready()
    begun = await ledger.keep_begun(before, repeated=True)
    assert (begun.row.labelled, begun.row.attempt) == (True, 3)
    ledger.not_begun(before)
    row, now = before.row, ledger.current(before).row
    assert (now.state, now.attempt, now.sending_at, now.labelled) == (row.state, 2, 5, False)


async def test_what_is_held_where_it_was_is_held_where_its_chat_has_gone() -> None:
    ledger, paper = ledger_of()
    ledger.propose("t1", ME, wanted("a"))
    ledger.awaited.add("t2")
    other = Ledger("new chat", paper, FakeClock(), lambda: None)
    ledger.hand_over(other)
    assert (other.held, other.awaited, other.ready()) == ({"t1"}, {"t2"}, [])
    other.release("t1")
    assert len(other.ready()) == 1


async def test_what_a_surface_knows_of_a_part_counts_more_than_what_is_read_of_it() -> None:
    ledger, _ = ledger_of()
    read = kept(1, state=DeliveryState.UNKNOWN)
    ledger.restore([read], ME)
    (part,) = ledger.waiting
    sent = replace(part, row=replace(part.row, state=DeliveryState.SENT, platform_id="9"))
    ledger.take([sent])
    ledger.restore([read], ME)
    assert ledger.current(part) == sent


async def test_what_was_somebody_elses_meanwhile_is_as_it_is_stored() -> None:
    """Its conversation went to another gateway with two parts on their way, and came back: one was sent there. Sent again under what the other one
    is taken up with, its chat would have it twice."""
    ledger, _ = ledger_of()
    ledger.propose("t1", ME, wanted("sent elsewhere", "not sent"))
    ledger.release("t1")
    gone, left = ledger.ready()
    ledger.restore([Delivery("s", left.row)], Owner("s", ME.epoch + 2))
    assert [part.name for part in ledger.ready()] == [left.name]
    assert gone.name not in ledger.parts


async def test_what_is_read_again_under_the_same_ownership_leaves_the_others_as_they_are() -> None:
    ledger, _ = ledger_of()
    ledger.propose("t1", ME, wanted("one", "two"))
    ledger.release("t1")
    one, two = ledger.ready()
    ledger.restore([Delivery("s", two.row)], ME)
    assert [part.name for part in ledger.ready()] == [one.name, two.name]


async def test_of_what_is_somebody_elses_nothing_is_known_any_more() -> None:
    """Nor is anything of it waited for: when it comes back, it may have ended there."""
    ledger, paper = ledger_of("t1")
    ledger.awaited.add("t2")
    ledger.held.add("t3")
    paper.fails = Damaged("damaged")
    with pytest.raises(Damaged):
        await ledger.keep_begun(ledger.ready()[0], repeated=False)
    assert ledger.stopped
    ledger.forget_all()
    assert not any(
        (ledger.parts, ledger.owners, ledger.held, ledger.awaited, ledger.stopped, ledger.oldest_wanted_at())
    )
