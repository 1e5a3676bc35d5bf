"""How much time has really passed: for any starts, stops, leaps, writes and looks."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from agent_core.limits.reckoning import HOUR_MS, MOST_LEAPS, STEADY_MS, SWING_MS, Reckoning, decoded, encoded, looked
from agent_core.limits.retention import DAY_MS, cutoff
from tests.examples import MANY

START = 1_700_000_000_000
PERIODS = (7, 8, 30, 400)


@dataclass
class World:
    """A machine, of which only this test knows how late it really is."""

    true: int = START
    off_by: int = 0
    known: Reckoning = field(default_factory=lambda: Reckoning(START))
    stored: str = encoded(Reckoning(START))
    up: bool = True
    began: int = 0
    mono: int = 0
    seen: int = 0
    since_leap: int = 0
    """How long gateways have run since a wrong leap ahead, or since the clock went wrong."""
    written: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """When it really was, and what it was stamped with."""

    @property
    def wall(self) -> int:
        return self.true + self.off_by

    def look(self) -> None:
        if self.up:
            self.known = looked(self.known, self.wall, self.mono - self.seen, self.seen - self.began)
            self.seen = self.mono
            self.stored = encoded(self.known)

    def run(self, ms: int) -> None:
        self.true += ms
        if self.up:
            self.mono += ms
            self.since_leap += ms if self.off_by else 0
        self.look()

    def stop(self) -> None:
        self.up = False

    def start(self) -> None:
        if not self.up:
            found = decoded(self.stored)
            assert found is not None
            self.up, self.mono, self.seen, self.began = True, 0, 0, 0
            self.known = looked(found, self.wall, 0, None)
            self.stored = encoded(self.known)

    def leap(self, to: int) -> None:
        self.off_by = to
        self.look()

    def write(self) -> None:
        if self.up:
            self.written.append((self.true, self.wall))

    def law(self) -> None:
        for days in PERIODS:
            before = cutoff(self.known.now, days, self.known.leaps)
            assert before is not None
            gone = [(true, stamp) for true, stamp in self.written if stamp < before]
            assert all(self.true - true >= days * DAY_MS for true, _ in gone), (days, gone)


HOURS = st.integers(0, 40 * 24)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("run"), HOURS),
        st.tuples(st.just("off"), HOURS),
        st.tuples(st.just("leap"), st.integers(-500 * 24, 500 * 24).filter(lambda hours: abs(hours) > 1)),
        st.tuples(st.just("leap while off"), st.integers(-500 * 24, 500 * 24).filter(lambda hours: abs(hours) > 1)),
        st.tuples(st.just("right"), st.just(0)),
        st.tuples(st.just("right while off"), st.just(0)),
        st.tuples(st.just("write"), st.just(0)),
    ),
    max_size=40,
)


@MANY
@given(STEPS)
def test_nothing_that_is_younger_than_its_period_goes_before_a_wrong_clock_has_stood_for_a_day(
    steps: list[tuple[str, int]],
) -> None:
    world = World()
    world.write()
    for step, hours in steps:
        ms = hours * HOUR_MS
        match step:
            case "run":
                left = STEADY_MS - 1 - world.since_leap
                world.run(min(ms, left) if world.off_by else ms)
            case "off":
                world.stop()
                world.true += ms
                world.law()
                world.start()
            case "leap":
                world.leap(ms)
            case "right":
                world.leap(0)
                world.since_leap = 0
            case "leap while off" | "right while off":
                world.stop()
                world.leap(ms)
                world.start()
                world.since_leap = world.since_leap if ms else 0
            case _:
                world.write()
        world.law()
        assert decoded(encoded(world.known)) == world.known
        assert len(world.known.leaps) <= MOST_LEAPS


@given(st.integers(SWING_MS, 4000 * DAY_MS), st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_who_was_off_for_long_is_believed_after_a_day_of_running_over_restarts_too(away: int, runs: list[int]) -> None:
    world, ran = World(), 0
    world.stop()
    world.true += away + 1
    world.start()
    for hours in runs:
        assert world.known.in_doubt == (ran < STEADY_MS)
        assert world.known.now == (world.wall if ran >= STEADY_MS else START + ran)
        world.run(hours * HOUR_MS)
        world.stop()
        world.start()
        ran += hours * HOUR_MS


@given(st.lists(st.tuples(st.integers(1, 16), st.integers(1, 20)), min_size=10, max_size=100))
def test_a_machine_that_is_off_every_night_still_lets_go(nights: list[tuple[int, int]]) -> None:
    world = World()
    for running, off in nights:
        world.run(running * HOUR_MS)
        world.stop()
        world.true += off * HOUR_MS
        world.start()
    assert not world.known.leaps
    assert len(world.known.doubted) <= STEADY_MS // HOUR_MS + 1


@given(st.integers(0, 4000), st.integers(0, 59_000))
def test_a_clock_that_goes_as_it_should_is_believed(minutes: int, odd: int) -> None:
    world = World()
    for _ in range(minutes % 50):
        world.run(60_000 + odd)
    assert world.known.now == world.true
    assert not world.known.in_doubt


@given(st.lists(st.tuples(st.integers(0, 4000 * 24), st.integers(0, 4)), min_size=1, max_size=5))
def test_as_much_is_in_doubt_as_the_clock_is_ahead_and_none_once_it_was_put_right(leaps: list[tuple[int, int]]) -> None:
    world = World()
    for ahead, hours in leaps:
        world.leap(ahead * HOUR_MS)
        world.run(hours * HOUR_MS)
        assert (world.known.ahead, world.known.now) == (ahead * HOUR_MS, world.true)
    world.leap(0)
    assert (world.known.now, world.known.in_doubt) == (world.true, False)


@given(st.text())
def test_what_cannot_be_read_is_nothing(text: str) -> None:
    assert decoded(text) is None or encoded(decoded(text) or Reckoning(0))


@given(st.integers(2, 500 * 24), st.lists(st.integers(0, 23), max_size=3), st.integers(1, 30 * 24), st.booleans())
def test_what_a_clock_stamped_that_was_behind_counts_as_stamped_when_it_was_put_right(
    behind: int, runs: list[int], later: int, restarted: bool
) -> None:
    world = World()
    world.leap(-behind * HOUR_MS)
    for hours in runs:
        world.write()
        if world.since_leap + hours * HOUR_MS < STEADY_MS:
            world.run(hours * HOUR_MS)
    if restarted:
        world.stop()
    world.leap(0)
    world.start()
    world.law()
    world.run(later * HOUR_MS)
    world.law()


@given(st.integers(2, 500 * 24), st.integers(0, 23), st.integers(1, 30 * 24))
def test_so_does_what_was_stamped_by_a_clock_that_began_in_the_past(behind: int, hours: int, later: int) -> None:
    past = START - behind * HOUR_MS
    world = World(off_by=-behind * HOUR_MS, known=Reckoning(past), stored=encoded(Reckoning(past)))
    world.write()
    world.run(hours * HOUR_MS)
    world.leap(0)
    world.run(later * HOUR_MS)
    world.law()
