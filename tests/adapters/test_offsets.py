"""The laws of offsets, against servers that treat them differently: Telegram's own, one that compares numbers, one that never forgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.telegram.polling import Asking, after

FAR = 100_000


@dataclass
class Kept:
    """What all of them have: updates under rising numbers, each with a name of its own."""

    next: int = 500_000
    names: int = 0
    waiting: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """(number, name)"""
    forgotten: set[int] = field(default_factory=set[int])
    """By name."""

    def put(self) -> None:
        self.waiting.append((self.next, self.names))
        self.next, self.names = self.next + 1, self.names + 1

    def begin_anew(self, number: int) -> None:
        self.next = number

    def forget(self, below: int) -> None:
        self.forgotten |= {name for number, name in self.waiting if number < below}
        self.waiting = [one for one in self.waiting if one[0] >= below]


@dataclass
class Telegrams(Kept):
    """As tdlib's queue does it: an offset that is far from the numbers there are counts as none (TQueue.cpp, `get`)."""

    def begin_anew(self, number: int) -> None:
        if not self.waiting:  # a queue that holds something goes on counting
            self.next = number

    def ask(self, offset: int | None, limit: int) -> list[tuple[int, int]]:
        head = self.waiting[0][0] if self.waiting else self.next
        if offset is not None and head - FAR <= offset <= self.next + 10:
            self.forget(offset)
        return self.waiting[:limit]


@dataclass
class Compares(Kept):
    """Forgets whatever has a lower number, and answers with the rest."""

    def ask(self, offset: int | None, limit: int) -> list[tuple[int, int]]:
        if offset is not None:
            self.forget(offset)
        return sorted(self.waiting)[:limit]


@dataclass
class Remembers(Kept):
    """Never forgets: an offset only leaves out."""

    def ask(self, offset: int | None, limit: int) -> list[tuple[int, int]]:
        return [one for one in self.waiting if offset is None or one[0] >= offset][:limit]


STEPS = st.lists(st.one_of(st.integers(1, 4), st.just("poll"), st.integers(1, 10**6).map(lambda n: -n)), max_size=60)


def play(server: Telegrams | Compares | Remembers, steps: Sequence[int | str], limit: int) -> tuple[set[int], int]:
    """The names that were taken, and how many polls in a row brought nothing new, without waiting or a pause."""
    asking, taken, idle, most = Asking(), set[int](), 0, 0
    for step in [*steps, *["poll"] * (server_size(steps) * 3 + 6)]:
        if step == "poll":
            before = len(taken)
            answer = server.ask(asking.offset, limit)
            taken |= {name for _, name in answer}
            waited = asking.waits and not answer
            asking = after(asking, [number for number, _ in answer], len(answer))
            idle = 0 if waited or asking.stuck or len(taken) > before else idle + 1
            most = max(most, idle)
            assert server.forgotten <= taken, "confirmed, and never seen"
        elif isinstance(step, int) and step > 0:
            for _ in range(step):
                server.put()
        elif isinstance(step, int):
            server.begin_anew(-step)
    return taken, most


def server_size(steps: Sequence[int | str]) -> int:
    return sum(step for step in steps if isinstance(step, int) and step > 0)


@given(STEPS, st.sampled_from([1, 2, 100]))
@settings(deadline=None)
def test_telegrams_own_queue_is_read_whole_wherever_its_numbers_begin(steps: list[int | str], limit: int) -> None:
    server = Telegrams()
    taken, idle = play(server, steps, limit)
    assert taken == set(range(server.names))
    assert idle <= 2


@given(STEPS, st.just(100))
@settings(deadline=None)
def test_where_numbers_fall_on_a_server_that_compares_them_nothing_is_lost(steps: list[int | str], limit: int) -> None:
    """Whoever confirms at once has nothing to fear: what came under lower numbers meanwhile is only lost if it came before that."""
    server = Compares()
    quiet: list[int | str] = []
    for step in steps:  # numbers begin anew after a quiet time, when all is confirmed
        quiet += ["poll", "poll", "poll", step] if isinstance(step, int) and step < 0 else [step]
    taken, idle = play(server, quiet, limit)
    assert taken == set(range(server.names))
    assert idle <= 2


@given(st.lists(st.one_of(st.integers(1, 4), st.just("poll")), max_size=40))
@settings(deadline=None)
def test_a_server_that_never_forgets_is_not_asked_all_the_time(steps: list[int | str]) -> None:
    server = Remembers()
    taken, idle = play(server, steps, 100)
    if server.names <= 100:
        assert taken == set(range(server.names))
    assert idle <= 3


def test_what_is_taken_is_confirmed_at_once_and_by_its_own_numbers() -> None:
    first = after(Asking(), [7, 8, 9], 3)
    assert (first.offset, first.waits) == (10, False)
    idle = after(first, [], 0)
    assert (idle.offset, idle.waits, idle.stuck) == (None, True, False)
    lower = after(idle, [3], 1)
    assert (lower.offset, lower.waits) == (4, False)


def test_what_has_no_number_is_asked_for_again_after_a_pause() -> None:
    assert after(Asking(), [], 2).stuck
