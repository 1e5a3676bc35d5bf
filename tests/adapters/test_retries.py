"""What an SDK sends again joins the turn of the first; nothing else does."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.http.api.retries import JOINED_SECONDS, MOST, Retries, Served, is_retry

marks = st.sampled_from(["a", "b"])
steps = st.lists(
    st.tuples(st.sampled_from(["begin", "retry", "answered", "left", "later"]), marks, st.integers(0, 5)), max_size=30
)


@example([("begin", "a", 0), ("left", "a", 1), ("later", "a", 0), ("later", "a", 0), ("retry", "a", 0)])
@example([("begin", "a", 0), ("answered", "a", 0), ("retry", "a", 0)])
@example([("begin", "a", 0), ("begin", "a", 0), ("left", "a", 1), ("retry", "a", 0), ("retry", "a", 0)])
@given(steps)
def test_a_retry_joins_what_is_served_or_has_just_been_left_and_nothing_else(taken: list[tuple[str, str, int]]):
    retries, now, count = Retries(), 0.0, 0
    open_: list[Served] = []
    for step, mark, number in taken:
        can = {one.platform_key for one in open_ if one.mark == mark and (one.until is None or one.until > now)}
        match step:
            case "begin" | "retry":
                count += 1
                served = retries.begins(mark, f"k{count}", now, retry=step == "retry")
                if step == "retry" and can:
                    assert served.platform_key in can
                    left = {
                        one.platform_key
                        for one in open_
                        if one.mark == mark and one.until is not None and one.until > now
                    }
                    assert not left or served.platform_key in left, "the one whose client has gone"
                    gone = next(
                        (one for one in open_ if one.platform_key == served.platform_key and one.until is not None),
                        None,
                    )
                    if gone is not None:
                        open_.remove(gone)
                else:
                    assert served.platform_key == f"k{count}"
                open_.append(served)
            case "answered" | "left" if open_:
                one = open_[number % len(open_)]
                if step == "answered":
                    retries.answered(one)
                    open_.remove(one)
                elif one.until is None:
                    retries.left(one, now, 10.0 * number)
            case _:
                now += 7.0


def test_those_that_have_gone_are_remembered_up_to_a_number():
    retries = Retries()
    for number in range(MOST + 50):
        retries.left(retries.begins(f"m{number}", f"k{number}", 0.0, retry=False), 0.0, 60.0)
    assert retries.begins("m0", "new", 1.0, retry=True).platform_key == "new"
    assert retries.begins(f"m{MOST + 49}", "new", 1.0, retry=True).platform_key == f"k{MOST + 49}"


def test_what_is_found_stored_is_joined_once_however_often_it_is_found():
    retries = Retries()
    for _ in range(3):
        retries.found("m", ["k1", "k2"], 0.0)
    joined = [retries.begins("m", f"new{number}", 1.0, retry=True) for number in range(2)]
    assert [one.platform_key for one in joined] == ["k1", "k2"]
    for one in joined:
        retries.answered(one)
    assert retries.begins("m", "new", 1.0, retry=True).platform_key == "new"


@given(st.text(max_size=20))
def test_no_header_breaks_the_counter(value: str):
    headers: Any = {"x-stainless-retry-count": value}
    assert is_retry(headers) in (True, False)


def test_the_first_time_is_no_retry():
    assert not is_retry({})
    assert not is_retry({"x-stainless-retry-count": "0"})
    assert is_retry({"x-stainless-retry-count": "2"})


@pytest.mark.parametrize("goes_on", [0.0, 10.0, 59.0, JOINED_SECONDS, 3600.0, inf])
def test_who_has_gone_is_joined_as_long_as_the_turn_goes_on_and_for_a_minute_at_most(goes_on: float):
    retries, over = Retries(), 7.0 + min(goes_on, JOINED_SECONDS)
    retries.left(retries.begins("a", "k1", 0.0, retry=False), 7.0, goes_on)
    assert retries.knows("a", over - 0.001)
    assert not retries.knows("a", over)
