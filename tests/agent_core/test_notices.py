"""Every exit has its words, and each names what its rule says it must name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause, cause_words
from agent_core.failures import exits
from agent_core.failures.exits import EXITS, Exit, ExitCode, read
from agent_core.failures.leftout import LeftOutKind, Suspect, left_out_words
from agent_core.failures.notices import Action, ExitClass, NotStarted
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.text.durations import at_time, duration

FACTS: dict[str, object] = {
    "cause": "stalled",
    "seconds": 37,
    "attempts": 4,
    "steps": 3,
    "tools_done": ["read_file", "write_file"],
    "tools_dropped": ["edit_file"],
    "tools_unsure": ["append_file"],
    "tool": "write_file",
    "count": 7,
    "limit": 600,
    "status": 418,
    "retry_after_seconds": 660,
    "announced": "Now dispatching task 5:",
    "pattern": "the call of write_file breaks off",
    "tried": ["retry", "advise smaller"],
    "reference": "err_xyz",
    "size": 123456,
    "reason": "queue_full",
    "detail": "some detail",
    "model": "m-1",
    "text_shown": True,
    "spend": {
        "budget": "day",
        "measure": "money",
        "limit": 2 * 10**9,
        "used": 2_010_000_000,
        "currency": "EUR",
        "opens": "2026-11-04 00:00 UTC",
        "opens_in_seconds": 7500,
    },
}
"""Facts as they are stored; versions before this one stored any of them with any exit."""


def ending(code: ExitCode, **facts: object) -> Exit:
    """An exit with those of these facts that are its own."""
    return read({"code": code, "facts": facts})


MUST_NAME: dict[ExitCode, tuple[str, ...]] = {
    ExitCode.BROKEN_BEFORE_TEXT: ("37 s", "4 attempts"),
    ExitCode.BROKEN_IN_TEXT: ("cut short", "quiet"),
    ExitCode.BROKEN_IN_TOOL_CALL: ("edit_file", "not executed"),
    ExitCode.SAME_STALL_AGAIN: ("breaks off", "7 times", "advise smaller", "smaller piece"),
    ExitCode.EMPTY_REPLY: ("4 attempts",),
    ExitCode.EMPTY_AFTER_TOOLS: ("3 steps", "last tool: write_file", "not finished"),
    ExitCode.THINKING_ONLY: ("4 attempts",),
    ExitCode.PROMISED_WITHOUT_ACTING: ("Now dispatching task 5:", "Nothing is running"),
    ExitCode.CUT_BY_LENGTH: ("cut",),
    ExitCode.TOOL_CALL_CUT_BY_LENGTH: ("edit_file", "not executed"),
    ExitCode.REFUSED: ("filter refused",),
    ExitCode.REFUSED_MIDWAY: ("filter",),
    ExitCode.UNKNOWN_TOOL: ("write_file", "7 times"),
    ExitCode.UNREADABLE_ARGUMENTS: ("write_file", "7 times"),
    ExitCode.REPEATING_FAILING_CALL: ("write_file", "7 times"),
    ExitCode.FAILING_TOOL: ("write_file", "7 times"),
    ExitCode.NO_PROGRESS: ("write_file", "7 times"),
    ExitCode.GOING_IN_CIRCLES: ("write_file", "7 times"),
    ExitCode.STEP_LIMIT: ("600", "Done before that"),
    ExitCode.TIME_LIMIT: ("10 min", "Done before that"),
    ExitCode.SPEND_LIMIT: (
        "budget for today",
        "2.01 of 2.00 EUR",
        "2026-11-04 00:00 UTC",
        "2 h 5 min",
        "Done before that",
    ),
    ExitCode.RATE_LIMITED: ("429", "11 min", "4 attempts"),
    ExitCode.PROVIDER_DOWN: ("4 attempts", "37 s"),
    ExitCode.PROVIDER_GARBAGE: ("4 attempts", "no chat completion"),
    ExitCode.NOT_AUTHORISED: ("key",),
    ExitCode.PAYMENT_REQUIRED: ("payment",),
    ExitCode.MODEL_NOT_FOUND: ("m-1",),
    ExitCode.BAD_REQUEST: ("not accept", "418"),
    ExitCode.CONTEXT_OVERFLOW: ("123456",),
    ExitCode.REQUEST_TOO_LARGE: ("123456",),
    ExitCode.STOPPED: ("Cancelled: some detail", "read_file"),
    ExitCode.SUPERSEDED: ("Interrupted",),
    ExitCode.APPROVAL_DENIED: ("write_file",),
    ExitCode.APPROVAL_EXPIRED: ("write_file",),
    ExitCode.INTERRUPTED_BY_RESTART: ("read_file", "May or may not have run: append_file"),
    ExitCode.INTERNAL_ERROR: ("err_xyz",),
    ExitCode.NOT_STARTED: ("not taken up", "send it again"),
}


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_but_the_clean_ones_has_a_notice_that_names_what_it_must(code: ExitCode):
    notice = ending(code, **FACTS).notice()
    if EXITS[code].kind in (ExitClass.CLEAN, ExitClass.HANDED):
        assert notice is None
        return
    assert notice is not None
    for words in MUST_NAME[code]:
        assert words in notice.text, (code, words, notice.text)


@pytest.mark.parametrize("code", list(ExitCode))
def test_stop_and_status_zero_belong_to_clean_exits_alone(code: ExitCode):
    assert (EXITS[code].kind.finish_reason == "stop") == (code is ExitCode.ANSWERED)
    assert (EXITS[code].kind.status == 0) == (EXITS[code].kind in (ExitClass.CLEAN, ExitClass.HANDED))
    assert EXITS[code].kind.finish_reason in ("stop", "length", "tool_calls", "content_filter")


@given(st.sampled_from(list(ExitCode)), st.sampled_from([None, *BreakCause]), st.sampled_from([None, *NotStarted]))
def test_a_notice_is_a_clean_sentence_whatever_facts_are_missing(
    code: ExitCode, cause: BreakCause | None, reason: NotStarted | None
):
    notice = ending(code, cause=cause, reason=reason, tool="read", tools_done=["read"]).notice()
    if notice is not None:
        assert notice.text.strip() == notice.text
        assert "  " not in notice.text
        assert "None" not in notice.text


@pytest.mark.parametrize("cause", list(BreakCause))
def test_every_cause_has_words(cause: BreakCause):
    assert len(cause_words(cause, seconds=3)) > 10


def test_durations_are_said_in_the_unit_that_fits():
    assert [duration(s) for s in (1, 119, 120, 150, 3599, 7200, 7500)] == [
        "1 s", "119 s", "2 min", "2 min 30 s", "59 min", "2 h", "2 h 5 min",
    ]  # fmt: skip


def test_a_budget_that_calls_under_way_hold_is_told_from_one_that_is_used_up():
    spend = Spend(budget=Budget.DAY, measure=Measure.TOKENS, limit=100, used=60, held=50, opens="tomorrow")
    told = exits.SpendLimit(spend=spend).notice()
    assert told is not None
    assert "50 tokens are held for calls under way" in told.text
    assert "Try again in a minute" in told.text
    assert "tomorrow" not in told.text


def test_a_spend_limit_of_an_earlier_version_keeps_its_words():
    told = exits.SpendLimit(limit=600, count=700).notice()
    assert told is not None
    assert "limit of 600 tokens for one message (700 used)" in told.text


def test_a_limit_names_what_led_to_it():
    notice = exits.TimeLimit(limit=1800, cause=BreakCause.RATE_LIMITED, status=429, attempts=5).notice()
    assert notice is not None
    assert "30 min" in notice.text
    assert "rate limit was hit" in notice.text
    assert "5 attempts" in notice.text


@pytest.mark.parametrize(
    ("cause", "chars", "smaller"),
    [
        (BreakCause.STALLED, 40_000, True),
        (BreakCause.STALLED, 40, False),
        (BreakCause.UNREADABLE_CALL, 40_000, False),
    ],
)
def test_smaller_pieces_are_advised_where_the_size_may_be_the_reason(cause: BreakCause, chars: int, smaller: bool):
    notice = exits.BrokenInToolCall(cause=cause, chars=chars, tools_dropped=("write_file",)).notice()
    assert notice is not None
    assert ("smaller pieces" in notice.text) is smaller


@pytest.mark.parametrize("looped", [exits.NoProgress, exits.GoingInCircles, exits.RepeatingFailingCall])
def test_nobody_is_told_to_continue_what_only_repeats(looped: type[exits.Looped]):
    notice = looped(tool="read_file", count=4).notice()
    assert notice is not None
    assert "continue" not in notice.text
    assert Action.CONTINUE not in notice.actions


INVITES = ("Send it again", "you can try again", "Put it differently", "Ask for the work")


@pytest.mark.parametrize("code", list(ExitCode))
@pytest.mark.parametrize("ran", ["tools_done", "tools_unsure"])
def test_after_tools_nobody_is_invited_to_have_all_of_it_done_again(code: ExitCode, ran: str) -> None:
    facts: dict[str, object] = {"attempts": 4, "steps": 2, "retry_after_seconds": 9, "announced": "Now:"}
    facts |= {"tool": "append_file", ran: ["append_file"]}
    for cause in (None, *BreakCause):
        notice = ending(code, cause=cause, **facts).notice()
        if notice is None or code in (ExitCode.NOT_STARTED, ExitCode.EMPTY_REPLY):  # no tool can have run
            continue
        assert not [words for words in INVITES if words in notice.text], notice.text
        assert Action.RETRY not in notice.actions
        if "append_file" in notice.text and code is ExitCode.BROKEN_BEFORE_TEXT:
            assert "only the rest" in notice.text
            assert Action.CONTINUE in notice.actions


def test_of_a_refused_request_it_is_said_whether_it_was_repeated() -> None:
    once = exits.BadRequest(cause=BreakCause.BAD_REQUEST, status=400, attempts=1).notice()
    often = exits.BadRequest(cause=BreakCause.BAD_REQUEST, status=400, attempts=4).notice()
    assert once is not None
    assert "It was not repeated." in once.text
    assert often is not None
    assert "repeated" not in often.text
    assert "4 attempts" in often.text


def test_of_a_stall_that_comes_again_is_said_what_the_next_message_does() -> None:
    notice = exits.SameStallAgain(tool="write_file", pattern="x", count=3).notice()
    assert notice is not None
    assert "without write_file" not in notice.text
    assert "write_file stays on offer; where this conversation is remembered, the next message begins" in notice.text


def test_the_beginning_of_a_reply_is_no_earlier_message() -> None:
    mine = left_out_words(
        [Suspect("k", LeftOutKind.MESSAGE, "assistant", now=True)], "m", "host", BreakCause.BAD_REQUEST
    )
    theirs = left_out_words([Suspect("k", LeftOutKind.MESSAGE, "assistant")], "m", "host", BreakCause.BAD_REQUEST)
    assert "earlier" not in mine
    assert "What this reply had said so far" in mine
    assert "An earlier message" in theirs


def test_a_provider_that_says_when_is_not_asked_in_a_moment():
    for record in (exits.ProviderDown, exits.BrokenBeforeText):
        told = record(cause=BreakCause.SERVER_ERROR, status=503, attempts=1, retry_after_seconds=900)
        notice = told.notice()
        assert notice is not None
        assert "The provider says to try again in 15 min" in notice.text
        assert "in a moment" not in notice.text
        ran = replace(told, tools_done=("append_file",)).notice()
        assert ran is not None
        assert "in 15 min" in ran.text
        assert "only the rest" in ran.text
        assert "in a moment" not in ran.text


def test_long_waits_are_told_in_days():
    assert duration(3 * 86_400 + 7200) == "3 days 2 h"
    assert duration(47 * 3600) == "47 h"


@pytest.mark.parametrize("ms", [-(2**63), -(10**15), 0, 1_700_000_000_000, 10**17, 2**63 - 1])
def test_any_number_that_can_be_stored_is_a_time_that_can_be_told(ms: int) -> None:
    assert at_time(ms).strftime("%Y-%m-%d %H:%M:%S")
