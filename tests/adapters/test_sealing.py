"""What is sealed for clients to keep is opened for those for whom it was sealed, as it was, and for nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.sealing import MARK, Seals
from agent_core.jsonvalue import Json
from gateway.config.keyfiles import SEALING, sealing_key

values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


async def with_key(key: bytes) -> Seals:
    seals = Seals(lambda: key)
    assert await seals.at_hand()
    return seals


@given(values, st.text(max_size=8), st.text(max_size=8), st.data())
async def test_what_was_sealed_is_opened_by_the_same_people_and_unchanged_alone(
    value: Json, whose: str, others: str, data: st.DataObject
) -> None:
    seals, strange = await with_key(b"1" * 64), await with_key(b"2" * 64)
    sealed = seals.seal(value, whose)
    assert sealed == seals.seal(value, whose)
    assert seals.opened(sealed, whose) == value
    assert strange.opened(sealed, whose) is None
    assert whose == others or seals.opened(sealed, others) is None
    at = data.draw(st.integers(len(MARK), len(sealed) - 5))
    changed = f"{sealed[:at]}{'A' if sealed[at] != 'A' else 'B'}{sealed[at + 1 :]}"
    assert seals.opened(changed, whose) is None


@given(st.text(max_size=30))
async def test_whatever_else_comes_is_nobodys(text: str) -> None:
    seals = await with_key(b"1" * 64)
    assert seals.opened(text, "") is None
    assert seals.opened(MARK + text, "") is None


async def test_without_a_key_nothing_is_sealed_and_nothing_fails() -> None:
    def no_key() -> bytes:
        raise PermissionError

    seals = Seals(no_key)
    assert not await seals.at_hand()
    assert (seals.seal("x", ""), seals.opened(f"{MARK}AAAA", "")) == ("", None)


def test_the_key_is_made_once_and_for_the_gateways_user_alone(tmp_path: Path) -> None:
    key = sealing_key(tmp_path)
    assert (len(key), key == sealing_key(tmp_path)) == (64, True)
    assert (tmp_path / SEALING).stat().st_mode & 0o777 == 0o600
    (tmp_path / SEALING).unlink()
    assert sealing_key(tmp_path) != key
    with pytest.raises(OSError, match="missing"):
        sealing_key(tmp_path / "missing")
