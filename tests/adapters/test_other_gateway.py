"""Another gateway that speaks by our account is known by marks that we did not send; what is ours, or may be, is not told as somebody else's."""

from __future__ import annotations

import pytest

from adapters.contract.supervision import SETTLED_SECONDS, TWIN_SECONDS, OtherGateway

LATER = SETTLED_SECONDS + 1


def test_what_we_sent_is_ours_however_it_comes_back() -> None:
    other = OtherGateway("Slack", 0.0)
    other.sends("a")
    assert other.sent("a")
    assert not other.sent("b")
    assert not other.heard("a", LATER)
    assert other.words(LATER) == ""


@pytest.mark.parametrize("age", [0.0, SETTLED_SECONDS - 1])
def test_what_an_earlier_process_was_just_sending_is_nobody_elses(age: float) -> None:
    other = OtherGateway("Slack", 100.0)
    assert not other.heard("b", 100.0 + age)
    assert other.words(100.0 + age) == ""


def test_that_there_is_another_is_news_once_and_told_until_it_was_not_heard_for_long() -> None:
    other = OtherGateway("Slack", 0.0)
    assert other.heard("b", LATER)
    assert not other.heard("c", LATER + 1), "it is known"
    assert "Slack" in other.words(LATER + TWIN_SECONDS)
    assert other.words(LATER + 2 + TWIN_SECONDS) == ""
    assert other.heard("d", LATER + 2 + TWIN_SECONDS)


def test_others_that_are_meant_to_be_there_are_no_news() -> None:
    other = OtherGateway("Slack", 0.0, expected=True)
    assert not other.heard("b", LATER)
    assert other.words(LATER) == ""
