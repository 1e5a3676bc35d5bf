"""What a platform says that it made is known by its id, or is not known."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.contract.base import SessionKey
from adapters.contract.chat import CallFailed, Cause, Fate, id_of


@given(st.one_of(st.integers(min_value=1), st.from_regex(r"[0-9]{1,20}(\.[0-9]{6})?", fullmatch=True)))
def test_an_id_is_kept_as_it_is(value: int | str) -> None:
    if value != "0":
        assert id_of(value) == str(value)


@pytest.mark.parametrize("value", [None, "", " ", 0, "0", "None", True, False, 1.5, {}, [], {"ts": "1"}, b"1"])
def test_what_is_no_id_leaves_it_unknown_whether_it_was_made(value: object) -> None:
    with pytest.raises(CallFailed) as failed:
        id_of(value)
    assert (failed.value.fate, failed.value.cause) == (Fate.UNKNOWN, Cause.UNREADABLE)


NAMES = st.text(st.sampled_from("ab/%25F"), max_size=5)


@example("a/b", "", "%2F", "%", "")
@example("a", "b", "c/d", "", "")
@given(NAMES, NAMES, NAMES, NAMES, NAMES)
def test_no_two_conversations_have_one_key_and_each_is_read_back(
    platform: str, account: str, chat: str, thread: str, person: str
) -> None:
    key = SessionKey(platform, account, chat, thread, person)
    assert key.text().count("/") == 4
    assert SessionKey.of(key.text()) == key
