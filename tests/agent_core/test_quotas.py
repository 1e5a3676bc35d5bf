"""The laws of what may be kept, for any order of those who write."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_core.limits.quotas import (
    AT_ONCE,
    BLOCK,
    KEPT,
    ON_DISK,
    Full,
    QuotaKind,
    QuotaLedger,
    QuotaLimits,
    amount_words,
    blocks,
    for_model,
    for_person,
    room,
    size_words,
)

KINDS = st.sampled_from(KEPT)
SIZES = st.integers(-60, 60)
ADDING = st.dictionaries(KINDS, SIZES, max_size=4)
LIMITS = QuotaLimits(
    {QuotaKind.WORKSPACE: 100, QuotaKind.FILES: 50, QuotaKind.MEMORY: 30, QuotaKind.SPOOL: 40}, whole=150
)
HOLDERS = st.sampled_from(["ada", "bob", "eve"])


class Writers(RuleBasedStateMachine):
    """People who write at the same moment, fail, remove, and are counted anew, beside a plain model of what really lies there."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = QuotaLedger(LIMITS)
        self.there: dict[str, dict[QuotaKind, int]] = {name: dict.fromkeys(KEPT, 0) for name in ("ada", "bob", "eve")}
        self.open: dict[int, tuple[str, dict[QuotaKind, int]]] = {}

    def really(self, holder: str) -> dict[QuotaKind, int]:
        return self.there[holder]

    @rule(holder=HOLDERS, adding=ADDING)
    def hold(self, holder: str, adding: dict[QuotaKind, int]) -> None:
        removing = {
            kind: sum(-a.get(kind, 0) for h, a in self.open.values() if h == holder and a.get(kind, 0) < 0)
            for kind in KEPT
        }
        # Nobody can remove what is not there
        adding = {
            kind: max(more, removing[kind] - self.there[holder][kind]) if more < 0 else more
            for kind, more in adding.items()
        }
        before = self.ledger.used(holder)
        answer = self.ledger.hold(holder, adding)
        if isinstance(answer, Full):
            assert any(more > 0 for more in adding.values()), "what takes nothing more has room"
            assert self.ledger.used(holder) == before
        else:
            self.open[answer] = (holder, adding)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        holder, adding = self.open.pop(number)
        for kind, more in adding.items():
            self.there[holder][kind] += more
        self.ledger.settle(number)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.open)))
        holder, adding = self.open.pop(number)
        before = self.ledger.used(holder)
        self.ledger.drop(number)
        after = self.ledger.used(holder)
        for kind, more in adding.items():
            assert after.get(kind, 0) == before.get(kind, 0) - max(0, more)

    @rule(holder=HOLDERS)
    def recount(self, holder: str) -> None:
        self.ledger.recounted(holder, self.there[holder])

    @rule()
    def count_everything(self) -> None:
        self.ledger.begin_count()
        whole = sum(self.there[name][kind] for name in self.there for kind in ON_DISK)
        list(self.ledger.end_count(whole, {name: dict(found) for name, found in self.there.items()}))

    @invariant()
    def no_part_is_told_to_be_more_than_the_whole(self) -> None:
        totals = self.ledger.totals()
        assert self.ledger.told() >= sum(totals[kind] for kind in ON_DISK)

    @invariant()
    def what_is_told_of_all_is_what_each_has(self) -> None:
        each = [used for _, used in self.ledger.most(len(self.there))]
        assert self.ledger.totals() == {kind: sum(used.get(kind, 0) for used in each) for kind in KEPT}
        sizes = [sum(used.get(kind, 0) for kind in ON_DISK) for used in each]
        assert self.open or sizes == sorted(sizes, reverse=True)

    @invariant()
    def nothing_is_over_its_limit(self) -> None:
        for holder in self.there:
            used = self.ledger.used(holder)
            for kind in KEPT:
                assert 0 <= used.get(kind, 0) <= LIMITS.each[kind]
                assert self.there[holder][kind] <= LIMITS.each[kind]
        assert 0 <= self.ledger.whole() <= LIMITS.whole

    @invariant()
    def the_ledger_knows_what_is_there(self) -> None:
        for holder in self.there:
            held = {kind: sum(max(0, a.get(kind, 0)) for h, a in self.open.values() if h == holder) for kind in KEPT}
            used = self.ledger.used(holder)
            assert {k: used.get(k, 0) for k in KEPT} == {k: self.there[holder][k] + held[k] for k in KEPT}


TestWriters = Writers.TestCase
TestWriters.settings = settings(deadline=None)


@given(st.dictionaries(KINDS, st.integers(0, 1000)), st.dictionaries(KINDS, st.integers(-1000, 1000)))
def test_without_a_limit_there_is_always_room(used: dict[QuotaKind, int], adding: dict[QuotaKind, int]) -> None:
    assert room(used, adding, {}) is None


@given(st.integers(0, 10**12), st.integers(-(10**9), 0))
def test_who_is_over_the_limit_can_still_remove(used: int, adding: int) -> None:
    assert room({QuotaKind.WORKSPACE: used}, {QuotaKind.WORKSPACE: adding}, {QuotaKind.WORKSPACE: 1}) is None


def test_what_everybody_has_is_told_as_quickly_of_many_as_of_few() -> None:
    def calls(holders: int) -> int:
        ledger = QuotaLedger(LIMITS)
        ledger.begin_count()
        list(ledger.end_count(holders, {f"h{number}": {QuotaKind.MEMORY: 1} for number in range(holders)}))
        counted = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            assert ledger.totals()[QuotaKind.MEMORY] == holders
            assert ledger.told() == holders
            assert len(ledger.most(3)) == 3
        finally:
            sys.setprofile(None)
        return counted

    assert calls(3) == calls(3_000)


def test_while_many_are_counted_others_go_on() -> None:
    ledger = QuotaLedger(LIMITS)
    ledger.begin_count()
    pauses = 0
    for _ in ledger.end_count(0, {f"h{number}": {QuotaKind.MEMORY: 1} for number in range(3 * AT_ONCE)}):
        pauses += 1
        assert isinstance(ledger.hold("h1", {QuotaKind.MEMORY: 1}), int)
    assert pauses == 3
    assert ledger.used("h1")[QuotaKind.MEMORY] >= 3


def test_the_last_room_is_given_once_and_comes_back_when_it_is_dropped_or_removed() -> None:
    ledger = QuotaLedger(QuotaLimits({QuotaKind.WORKSPACE: 10}))
    first = ledger.hold("ada", {QuotaKind.WORKSPACE: 10})
    assert isinstance(first, int)
    assert ledger.hold("ada", {QuotaKind.WORKSPACE: 1}) == Full(QuotaKind.WORKSPACE, 10, 10, 1)
    assert isinstance(ledger.hold("bob", {QuotaKind.WORKSPACE: 10}), int)
    ledger.drop(first)
    second = ledger.hold("ada", {QuotaKind.WORKSPACE: 10})
    assert isinstance(second, int)
    ledger.settle(second)
    removal = ledger.hold("ada", {QuotaKind.WORKSPACE: -4})
    assert isinstance(removal, int)
    assert isinstance(ledger.hold("ada", {QuotaKind.WORKSPACE: 4}), Full), "what is to be removed is still there"
    ledger.settle(removal)
    assert isinstance(ledger.hold("ada", {QuotaKind.WORKSPACE: 4}), int)


def test_a_count_during_which_something_was_written_is_known_from_one_during_which_nothing_was() -> None:
    ledger = QuotaLedger(LIMITS)
    before = ledger.quiet("ada")
    assert before is not None
    assert ledger.quiet("ada") == before
    for end in (ledger.drop, ledger.settle):
        held = ledger.hold("ada", {QuotaKind.FILES: 1})
        assert isinstance(held, int)
        assert ledger.quiet("ada") is None
        assert ledger.quiet("bob") is not None
        end(held)
        assert ledger.quiet("ada") not in (None, before)
        before = ledger.quiet("ada")


def test_what_everybody_has_together_is_limited_as_well() -> None:
    ledger = QuotaLedger(QuotaLimits({QuotaKind.WORKSPACE: 100}, whole=150))
    for holder in ("ada", "bob"):
        number = ledger.hold(holder, {QuotaKind.WORKSPACE: 70})
        assert isinstance(number, int)
        ledger.settle(number)
    assert ledger.hold("eve", {QuotaKind.WORKSPACE: 11}) == Full(QuotaKind.WHOLE, 140, 150, 11)
    assert isinstance(ledger.hold("eve", {QuotaKind.FILES: 3}), int)


def test_what_is_to_be_removed_makes_no_room_in_the_whole_for_what_is_written_with_it() -> None:
    ledger = QuotaLedger(QuotaLimits(whole=150))
    for holder, adding in (("ada", {QuotaKind.SPOOL: 50}), ("bob", {QuotaKind.WORKSPACE: 100})):
        number = ledger.hold(holder, adding)
        assert isinstance(number, int)
        ledger.settle(number)
    assert ledger.hold("ada", {QuotaKind.WORKSPACE: 20, QuotaKind.SPOOL: -20}) == Full(QuotaKind.WHOLE, 150, 150, 20)
    assert ledger.whole() == 150


def test_who_writes_during_a_count_of_everything_is_not_counted_away() -> None:
    ledger = QuotaLedger(QuotaLimits({QuotaKind.WORKSPACE: 100}, whole=1000))
    ledger.begin_count()
    number = ledger.hold("ada", {QuotaKind.WORKSPACE: 60})
    assert isinstance(number, int)
    ledger.settle(number)
    list(ledger.end_count(500, {"ada": {QuotaKind.WORKSPACE: 0}, "bob": {QuotaKind.WORKSPACE: 5}}))
    assert ledger.used("ada")[QuotaKind.WORKSPACE] == 60
    assert ledger.used("bob")[QuotaKind.WORKSPACE] == 5
    assert ledger.whole() == 560
    ledger.begin_count()
    list(ledger.end_count(5, {"bob": {QuotaKind.WORKSPACE: 5}}))
    assert ledger.used("ada") == {}
    assert [name for name, _ in ledger.most(5)] == ["bob"]


@given(st.integers(0, 2**50))
def test_a_file_counts_in_whole_blocks(size: int) -> None:
    assert size <= blocks(size) < size + BLOCK
    assert blocks(size) % BLOCK == 0


@given(st.sampled_from(QuotaKind), st.integers(0, 2**45), st.integers(1, 2**45), st.integers(1, 2**45))
def test_the_words_say_how_much_there_is_and_what_to_do(kind: QuotaKind, used: int, limit: int, adding: int) -> None:
    full = Full(kind, used, limit, adding)
    for words in (for_model(full), for_person(full)):
        assert words.endswith(".")
        assert len(words) < 400
        assert kind is QuotaKind.WHOLE or amount_words(kind, limit) in words


def test_sizes_are_told_as_people_read_them() -> None:
    sizes = (0, 1000, 1536, 7934, 1023 * 1024, 1024**2, 200 * 1024**2, 3 * 1024**3, 2**50)
    assert [size_words(size) for size in sizes] == [
        "0 bytes", "1000 bytes", "1.5 KB", "7.75 KB", "0.999 MB", "1 MB", "200 MB", "3 GB", "1,024 TB",
    ]  # fmt: skip
