"""JSON of other programs: what is a little off is read all the same, what is none is refused."""

from __future__ import annotations

import json
from contextlib import suppress

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import read_loosely

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_is_json_is_read_as_it_is(value: object) -> None:
    assert read_loosely(orjson.dumps(value)) == value
    assert read_loosely(b"\xef\xbb\xbf" + orjson.dumps(value)) == value


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (rb'{"a": "cut \ud83d", "b": 1}', {"a": "cut ?", "b": 1}),
        (rb'{"a": "\ud83d\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": NaN, "b": -Infinity}', {"a": None, "b": None}),
    ],
)
def test_what_is_a_little_off_is_read(said: bytes, read: object) -> None:
    assert read_loosely(said) == read


@given(
    st.binary(max_size=30)
    | st.sampled_from([b"[" * 200_000, b'{"a": 1e999999}', b"<html>", b"", b"\xff", json.dumps("x").encode()[:-1]])
)
def test_whatever_comes_it_is_read_or_refused(said: bytes) -> None:
    with suppress(ValueError):
        read_loosely(said)
