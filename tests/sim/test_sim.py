"""The simulation in small: some hundred turns, and that a seed can be repeated."""

from __future__ import annotations

import re
from collections.abc import Generator

import pytest

from tests.sim.starter import Starter, started


@pytest.fixture(scope="module")
def simulation() -> Generator[Starter]:
    with started() as starter:
        yield starter


def test_some_hundred_turns_keep_every_law(simulation: Starter) -> None:
    done = simulation.run("--turns", "100")
    assert done.returncode == 0, done.said
    found = re.match(r"(\d+) turns", done.said)
    assert found is not None
    assert int(found[1]) >= 100
    print(done.said)


def test_some_hundred_turns_with_an_odd_upstream_keep_every_law(simulation: Starter) -> None:
    done = simulation.run("--turns", "100", "--seed", "10000000")
    assert done.returncode == 0, done.said


def test_several_gateways_at_once_keep_every_law(simulation: Starter) -> None:
    done = simulation.run("--turns", "25", "--seed", "20000041")
    assert done.returncode == 0, done.said
    print(done.said)


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
