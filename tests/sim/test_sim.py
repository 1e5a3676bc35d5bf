"""The simulation in small: some hundred turns, and that a seed can be repeated."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator

import pytest

from agent_core.turn.events import TakenOver, TextArrived
from tests.sim.laws import lost_with_its_process
from tests.sim.starter import Starter, started
from tests.sim.world import EPOCH_MS


@pytest.fixture(scope="module")
def simulation() -> Generator[Starter]:
    with started() as starter:
        yield starter


def test_some_hundred_turns_of_every_kind_keep_every_law(simulation: Starter) -> None:
    """Those of one gateway, with an odd upstream, and of several gateways at once to which everything happens, or nothing."""
    done = simulation.run("--seed", "1", "10000000", "20000041", "25000000", "--turns", "100", "100", "25", "15")
    assert done.returncode == 0, done.said
    found = re.match(r"(\d+) turns", done.said)
    assert found is not None
    assert int(found[1]) >= 240
    print(done.said)


ALONE = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
from tests.sim.apart import apart

pool = ThreadPoolExecutor(2)
working = pool.submit(time.sleep, 0.2)
del pool  # nobody knows of it any more: its threads end when they have done what they do
assert apart(threading.active_count) == 1
assert working.done()
"""


def test_nobody_else_is_in_a_process_that_is_forked() -> None:
    """What a thread holds at that moment, SQLite's own lock perhaps, a child would wait for without an end."""
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


SOUND = ("252", "4001762", "5001034", "5108", "5109")
"""All but the first found something once; the last one only behind the one before it, whose last question it was answered from."""
SEVERAL_SOUND = ("20000047", "20000060")
"""A keeper that failed for good, and a message that overtook another."""


@pytest.mark.parametrize("seeds", [SOUND, SEVERAL_SOUND])
def test_seeds_can_be_repeated_to_the_byte_and_those_that_found_something_once_stay_sound(
    seeds: tuple[str, ...], simulation: Starter
) -> None:
    done = [simulation.run("--only", *those) for those in (seeds, seeds[:1])]
    assert [one.returncode for one in done] == [0, 0], [one.said for one in done]
    first, again = [re.findall(r"fingerprint (\w{64})", one.said) for one in done]
    assert len(first) == len(seeds)
    assert again == first[:1]


@pytest.mark.parametrize(("stored", "lost"), [((1_000,), True), ((1_000, 2_500), False)])
def test_what_was_seen_to_go_away_comes_again_only_where_nothing_later_was_stored_before_the_turn_was_taken_over(
    stored: tuple[int, ...], lost: bool
) -> None:
    """A thought that is taken back is journalled as text is, within a second: a death before that is a death before it was said (odd upstreams, once)."""
    events = [TextArrived(at=EPOCH_MS + at, text="hm") for at in stored]
    assert lost_with_its_process([*events, TakenOver(at=EPOCH_MS + 5_000, epoch=2)], 2.0) == lost
    assert not lost_with_its_process(events, 2.0)
