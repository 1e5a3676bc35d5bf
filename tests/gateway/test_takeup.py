"""What is taken up, and when: the laws of the keeper, over any series of deaths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import log2

from hypothesis import given
from hypothesis import strategies as st

from agent_core.retry import SUSPECTS, TAKE_UP
from gateway.setaside.takeup import (
    LATE_SECONDS,
    MISTAKES,
    WINDOW,
    KnownItem,
    LeftItem,
    LeftKind,
    again,
    due,
    found,
    late,
    late_words,
)

TICK = 0.25
LONG = 10_000.0


@dataclass
class Thing:
    """Something that was left, and what comes of it when it is taken up."""

    kind: LeftKind
    name: str
    at: int
    kills_after: float | None = None
    """Seconds after it is taken up; None: it does not kill."""
    progress_after: float = LONG
    suspicion: int = 0
    deaths: int = 0
    """How often it was taken up."""
    aside: bool = False
    done: bool = False


@dataclass
class Process:
    """One life of the gateway over things that are left."""

    things: dict[tuple[LeftKind, str], Thing]
    died_before: bool
    book: dict[tuple[LeftKind, str], KnownItem] = field(default_factory=dict[tuple[LeftKind, str], KnownItem])
    now: float = 100.0
    taken: dict[tuple[LeftKind, str], float] = field(default_factory=dict[tuple[LeftKind, str], float])
    killed_at: float = LONG
    """Somebody kills it from outside after so many seconds."""

    def live(self) -> bool:
        """Until all is taken up, or something kills it; whether it lives."""
        began = self.now
        for _ in range(2_000):
            if self.now - began >= self.killed_at:
                return False
            open_ = [t for key, t in self.things.items() if not t.aside and not t.done and key not in self.taken]
            items = [LeftItem(t.kind, t.name, t.at, t.suspicion, self.died_before) for t in open_]
            self.book = found(self.book, items, self.now)
            self.settle()
            self.act()
            self.now += TICK
            if any(
                t.kills_after is not None and self.now - at >= t.kills_after
                for key, at in self.taken.items()
                if not (t := self.things[key]).done
            ):
                return False
            over = not self.book and all(key in self.taken or t.aside for key, t in self.things.items())
            if over and not any(self.things[key].kills_after is not None for key in self.taken):
                return True
        return True

    def settle(self) -> None:
        for key, at in self.taken.items():
            thing = self.things[key]
            if not thing.done and self.now - at >= thing.progress_after:
                thing.done, thing.suspicion = True, 0
        for key, known in list(self.book.items()):
            if known.taken_at is not None and (self.things[key].done or not known.young(self.now)):
                if known.suspect and not self.things[key].done:
                    self.things[key].suspicion = known.item.spared
                del self.book[key]

    def act(self) -> None:
        due_now = due(self.book, self.now)
        for item in due_now.aside:
            self.things[item.key].aside = True
            del self.book[item.key]
        young = [known for known in self.book.values() if known.young(self.now)]
        if any(known.suspect for known in young):
            assert all(known.suspect for known in young)
            assert not due_now.take, "something is taken up beside a suspect"
        for item in due_now.take:
            assert item.key not in self.taken, "it is taken up twice"
            self.things[item.key].suspicion = item.charged(alone=due_now.alone)
            self.things[item.key].deaths += 1
            self.taken[item.key] = self.now
            self.book[item.key] = replace(self.book[item.key], item=item, taken_at=self.now, alone=due_now.alone)
        for kind, most in WINDOW.items():
            innocent = [k for k in self.book.values() if k.item.kind is kind and not k.suspect]
            assert sum(k.young(self.now) for k in innocent) <= most


def things(kinds: st.SearchStrategy[float | None]) -> st.SearchStrategy[list[Thing]]:
    made = st.builds(
        Thing,
        kind=st.sampled_from(LeftKind),
        name=st.integers(0, 10_000).map(str),
        at=st.integers(0, 50),
        kills_after=kinds,
        progress_after=st.sampled_from((0.1, 0.5, 3.0, LONG)),
    )
    return st.lists(made, max_size=60, unique_by=lambda thing: (thing.kind, thing.name))


POISON = st.one_of(st.none(), st.none(), st.none(), st.sampled_from((0.0, 0.2, 0.9)))


def by_key(left: list[Thing]) -> dict[tuple[LeftKind, str], Thing]:
    return {(thing.kind, thing.name): thing for thing in left}


def open_of(left: list[Thing]) -> dict[tuple[LeftKind, str], Thing]:
    return by_key([thing for thing in left if not thing.aside and not thing.done])


@given(things(POISON))
def test_what_kills_is_set_aside_and_nothing_else_ever_is(left: list[Thing]) -> None:
    for thing in left:
        if thing.kills_after is not None:
            thing.progress_after = LONG
    poison = sum(thing.kills_after is not None for thing in left)
    deaths = 0
    while not Process(open_of(left), died_before=True).live():
        deaths += 1
        assert deaths <= poison * (2 + log2(len(left))), "the gateway dies for ever"
    for thing in left:
        assert thing.aside == (thing.kills_after is not None), thing


@given(things(st.none()), st.sampled_from((0.0, 0.2, 0.9)), st.integers(0, 60), st.booleans())
def test_the_one_that_kills_is_found_by_halves(left: list[Thing], after: float, at: int, slow: bool) -> None:
    for thing in left:
        thing.progress_after = LONG if slow else thing.progress_after
    poison = Thing(LeftKind.SESSION, "poison", at, kills_after=after)
    left.append(poison)
    deaths = 1  # that of the process in which it came
    while not Process(open_of(left), died_before=True).live():
        deaths += 1
    assert poison.aside
    assert poison.deaths >= 2
    assert deaths <= 3 + log2(len(left))
    assert not any(thing.aside for thing in left if thing is not poison)


@given(things(st.none()), st.lists(st.floats(0.0, 12.0), max_size=14))
def test_kills_from_outside_set_nothing_aside_but_what_was_alone_when_the_last_one_came(
    left: list[Thing], kills: list[float]
) -> None:
    alone: set[tuple[LeftKind, str]] = set()
    for killed_at in [*kills, LONG]:
        process = Process(open_of(left), died_before=True, killed_at=killed_at)
        process.live()
        for thing in left:
            if thing.aside:
                assert (thing.kind, thing.name) in alone
                assert thing.deaths >= 2
        alone |= {known.item.key for known in process.book.values() if known.alone}


def test_500_suspects_go_on_within_half_a_minute() -> None:
    left = [Thing(LeftKind.SESSION, f"{n:03}", n, suspicion=1) for n in range(500)]
    process = Process(by_key(left), died_before=True)
    began = process.now
    assert process.live()
    assert process.now - began < 12 * SUSPECTS.first
    assert {thing.suspicion for thing in left} == {2}


@given(things(st.none()))
def test_whatever_kills_nothing_is_all_taken_up(left: list[Thing]) -> None:
    process = Process({(thing.kind, thing.name): thing for thing in left}, died_before=True)
    assert process.live()
    assert set(process.taken) == set(process.things)


@given(things(st.none()), st.integers(2, 6))
def test_stops_in_order_make_nothing_suspicious(left: list[Thing], times: int) -> None:
    for thing in left:
        thing.progress_after = LONG
    for _ in range(times):
        process = Process({(thing.kind, thing.name): thing for thing in left}, died_before=False)
        assert process.live()
        assert not any(thing.suspicion or thing.aside for thing in left)


def test_what_kills_slowly_comes_to_its_end_all_the_same() -> None:
    thing = Thing(LeftKind.SESSION, "leak", 1, kills_after=SUSPECTS.first * 3)
    deaths = 0
    while not thing.aside and deaths < 20:
        Process({(thing.kind, thing.name): thing}, died_before=True).live()
        deaths += 1
    assert thing.aside
    assert deaths < 8


def test_the_oldest_come_first_and_those_that_somebody_waits_for_before_them() -> None:
    items = [LeftItem(LeftKind.SESSION, f"{n:03}", n) for n in range(100)]
    book = found({}, items, 0.0)
    first = due(book, 0.0, frozenset({"099"}))
    assert [item.name for item in first.take] == ["099", *(f"{n:03}" for n in range(39))]


def test_what_cannot_be_taken_up_is_tried_again_after_a_while_and_named_when_it_is_late() -> None:
    book = found({}, [LeftItem(LeftKind.SESSION, "s", 1), LeftItem(LeftKind.PART, "p", 1)], 0.0)
    known = book[LeftKind.SESSION, "s"]
    for _ in range(20):
        known = again(known, 10.0)
        assert 10.0 < known.not_before <= 10.0 + TAKE_UP.most
    assert not due({known.item.key: known}, known.not_before - 0.01).take
    assert due({known.item.key: known}, known.not_before).take
    assert late_words(late(book, LATE_SECONDS - 1)) == ""
    assert late_words(late(book, LATE_SECONDS)).startswith("1 conversation and 1 delivery of an earlier process")


@given(st.lists(st.booleans(), max_size=10), st.integers(0, 10), st.sampled_from(LeftKind))
def test_what_a_mistake_of_ours_keeps_from_being_taken_up_is_set_aside_after_some_tries_and_what_only_waits_never_is(
    ours: list[bool], more: int, kind: LeftKind
) -> None:
    known, now = KnownItem(LeftItem(kind, "s", 1), 0.0), 0.0
    for mistake in [*ours, *([True] * more)]:
        known = again(known, now, mistake=mistake)
        now = known.not_before
        hopeless = due({known.item.key: known}, now)
        assert (known.item in hopeless.aside) == (known.mistakes >= MISTAKES)
        assert (known.item in hopeless.take) == (known.mistakes < MISTAKES)


def test_that_takes_a_minute() -> None:
    assert 30.0 <= sum(TAKE_UP.seconds(tries) for tries in range(1, MISTAKES + 1)) <= 90.0


def test_what_belongs_to_this_process_is_left_alone_for_a_moment() -> None:
    book = found({}, [LeftItem(LeftKind.COMMAND, "1", 1, ours=True)], 0.0)
    assert not due(book, 1.0).take
    assert due(book, 3.5).take
    assert found(book, [], 1.0) == {}


def test_how_something_was_left_is_remembered_as_it_was_found_first() -> None:
    item = LeftItem(LeftKind.SESSION, "s", 1, died=False, ours=True)
    known = found({}, [item], 0.0)
    (again_,) = found(known, [replace(item, died=True, ours=False, suspicion=7)], 1.0).values()
    assert (again_.item.died, again_.item.ours, again_.item.suspicion, again_.since) == (False, True, 7, 0.0)


def test_each_kind_has_room_of_its_own() -> None:
    known = found({}, [LeftItem(kind, f"{kind}{n}", n) for kind, most in WINDOW.items() for n in range(most + 1)], 0.0)
    first = due(known, 100.0).take
    assert Counter(one.kind for one in first) == WINDOW
    taken = {key: replace(one, taken_at=100.0) if one.item in first else one for key, one in known.items()}
    taken.pop(first[0].key)
    assert [one.kind for one in due(taken, 100.0).take] == [first[0].kind], "another's place is nobody else's"


def test_beside_a_suspect_nothing_is_taken_up_until_it_has_lived_for_a_while() -> None:
    suspects = [LeftItem(LeftKind.SESSION, f"{n}", n, suspicion=2) for n in range(5)]
    known = found({}, suspects, 0.0)
    first = due(known, 0.0).take
    assert len(first) == 3, "half of them, at most one more than the other half"
    known = {key: replace(one, taken_at=0.0 if one.item in first else None) for key, one in known.items()}
    known |= found({}, [LeftItem(LeftKind.COMMAND, "new", 9, died=False)], 0.0)
    assert not due(known, 0.1).take
    assert [one.name for one in due(known, LONG).take] == ["new"]
