"""Every target on its seeds, and on what hypothesis makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import MANY
from tests.fuzz.seeds import SEEDS
from tests.fuzz.targets import TARGETS


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A seed with some of it replaced, doubled, taken out or put in from another."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 20)))
        kind = draw(st.sampled_from(("replace", "double", "remove", "splice")))
        if kind == "replace":
            data[start:end] = draw(st.binary(max_size=8))
        elif kind == "double":
            data[start:start] = data[start:end] * draw(st.integers(1, 5))
        elif kind == "remove":
            del data[start:end]
        else:
            other = draw(st.sampled_from(seeds))
            data[start:start] = other[: draw(st.integers(0, 40))]
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds(name: str) -> None:
    for seed in SEEDS[name]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_of_the_seeds(name: str) -> None:
    @MANY
    @given(data=mutated(SEEDS[name]))
    def run(data: bytes) -> None:
        TARGETS[name](data)

    run()


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes(name: str) -> None:
    @MANY
    @given(data=st.binary(max_size=400))
    def run(data: bytes) -> None:
        TARGETS[name](data)

    run()
