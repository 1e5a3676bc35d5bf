"""What people see: statuses in time, endings that stand out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.remedies import Failure, Remedy
from agent_core.journal.rows import completed, turn_of
from agent_core.jsonvalue import Json
from agent_core.limits.quotas import Full, QuotaKind, for_person, written
from agent_core.tools.asking import AskedStep, kept
from agent_core.tools.base import FULL, ToolStatus
from agent_core.turn.effects import AskApproval, RunTool
from agent_core.turn.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBroke,
    ReasoningArrived,
    ReplyFinished,
    StopRequested,
    TextArrived,
    ToolReturned,
    ToolsRefused,
    ToolStarted,
    TurnEnded,
    Verdict,
)
from agent_core.turn.state import Mended, ThoughtText
from agent_core.turn.timeline import made_files
from agent_core.turn.view import BubbleKind, view
from tests.agent_core.turns import SETTINGS, Rig, opened


def status(rig: Rig, after_seconds: float) -> str:
    bubbles = view(rig.turn, rig.now + round(after_seconds * 1000)).bubbles
    return next((b.text for b in bubbles if b.kind is BubbleKind.STATUS), "")


def test_waiting_for_the_model_is_told_at_twenty_seconds_and_grows():
    rig = Rig()
    assert status(rig, 19) == ""
    assert "20 s" in status(rig, 20)
    assert "45 s" in status(rig, 45)


@pytest.mark.parametrize(("cause", "seconds"), [(BreakCause.STALLED, 60), (BreakCause.DROPPED, 120)])
def test_a_call_behind_a_silent_one_says_that_it_has_less_time(cause: BreakCause, seconds: int):
    rig = Rig()
    assert "(gives up at about 120 s)" in status(rig, 30)
    rig.breaks(cause)
    assert f"(gives up at about {seconds} s)" in status(rig, 30)


def test_how_long_is_waited_is_told_as_it_is_for_a_long_prompt():
    rig = Rig()
    shown = view(rig.turn, rig.now + 30_000, rig.turn.may_be_silent(60_000)).bubbles
    assert "(gives up at about 180 s)" in shown[-1].text
    rig.breaks(BreakCause.STALLED)
    shown = view(rig.turn, rig.now + 30_000, rig.turn.may_be_silent(200_000)).bubbles
    assert "(gives up at about 120 s)" in shown[-1].text, "twice what a call behind a silent one has"


def test_thinking_is_told_apart_from_silence():
    rig = Rig()
    rig.now += 25_000
    rig.feed(ReasoningArrived(at=rig.now, text="hmm"))
    assert "thinking" in status(rig, 1)


def test_a_call_that_arrives_slowly_is_named_with_its_size():
    rig = Rig()
    rig.begins_call("write", '{"content": "' + "x" * 500)
    words = status(rig, 30)
    assert "write" in words
    assert "513 characters" in words


def test_a_pause_before_a_retry_says_why_and_how_long():
    rig = Rig()
    rig.turn.feed(CallBroke(at=rig.tick(), cause=BreakCause.RATE_LIMITED, status=429, retry_after_seconds=60))
    words = status(rig, 0)
    assert "rate limit" in words
    assert "60 s" in words
    later = {
        seconds: f"in {left} s (" for seconds, left in ((0.5, 60), (1, 59), (58.5, 2), (59.5, 1), (60, 0), (99, 0))
    }
    assert {seconds: words for seconds, words in later.items() if words not in status(rig, seconds)} == {}


@pytest.mark.parametrize("cause", [BreakCause.STALLED, BreakCause.DROPPED, BreakCause.ENDED_EARLY])
def test_the_attempt_that_is_told_is_the_call_that_runs(cause: BreakCause):
    rig = Rig()
    for number in (2, 3):
        rig.breaks(cause)
        assert len(rig.calls) == number
        for seconds in (0, 30):
            assert f"(attempt {number}" in status(rig, seconds)


def test_a_pause_that_is_over_at_once_is_not_worth_a_word():
    for seconds, told in ((1, False), (1.9, False), (2, True)):
        rig = Rig()
        rig.turn.feed(CallBroke(at=rig.tick(), cause=BreakCause.RATE_LIMITED, status=429, retry_after_seconds=seconds))
        assert bool(status(rig, 0)) is told, seconds


def test_how_long_a_tool_runs_does_not_count_how_long_a_person_was_asked():
    rig = Rig()
    rig.calls_tool("danger")
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    rig.feed(ApprovalAsked(at=rig.tick(), call=ask.call, seconds=900))
    assert status(rig, 400) == ""  # the question itself tells how long it waits
    rig.now += 400_000
    rig.feed(ApprovalAnswered(at=rig.now, call=ask.call, verdict=Verdict.GIVEN))
    rig.feed(ToolStarted(at=rig.tick(), call=ask.call))
    assert status(rig, 11) == ""
    assert status(rig, 42) == "Running danger, 42 s"


@pytest.mark.parametrize("back", [None, 0, 1])
def test_of_calls_that_run_side_by_side_the_longest_is_told(back: int | None):
    rig = Rig()
    for index in (0, 1):
        rig.begins_call("read", "{}", index)
    rig.finish("tool_calls")
    calls = [one.call for one in rig.wanted if isinstance(one, RunTool)]
    begun = rig.now
    for later, call in zip((0, 10_000), calls, strict=True):
        rig.feed(ToolStarted(at=begun + later, call=call))
    if back is not None:
        rig.feed(ToolReturned(at=begun + 20_000, call=calls[back], status=ToolStatus.OK, text="done"))
    shown = view(rig.turn, begun + 42_000).bubbles[-1].text
    assert shown == f"Running read, {32 if back == 0 else 42} s"


def test_a_tool_that_runs_long_is_told():
    rig = Rig()
    rig.calls_tool("read")
    effect = rig.wanted[-1]
    assert isinstance(effect, RunTool)
    rig.feed(ToolStarted(at=rig.tick(), call=effect.call))
    activity = view(rig.turn, rig.now + 42_000).bubbles[-2]
    assert (activity.kind, activity.state, activity.seconds) == (BubbleKind.ACTIVITY, "running", 42)
    assert "read" in status(rig, 42)


def test_nothing_but_the_notice_remains_of_a_turn_that_never_spoke():
    rig = Rig(replace(SETTINGS))
    for _ in range(4):
        rig.breaks(BreakCause.UNREACHABLE)
    assert [b.kind for b in rig.view().bubbles] == [BubbleKind.NOTICE]
    assert rig.view().bubbles[0].actions


def test_what_an_older_version_took_for_the_answer_stays_the_answer():
    journal = [
        opened(replace(SETTINGS, rules=4)),
        TextArrived(at=2_000, text="Let me check the file."),  # an announcement, as we see it now
        ReplyFinished(at=3_000, reason="stop"),
        TurnEnded(at=4_000, exit=exits.Answered()),
    ]
    turn = turn_of(completed(journal))
    assert [(bubble.kind, bubble.text) for bubble in view(turn, 5_000).bubbles] == [
        (BubbleKind.ANSWER, "Let me check the file.")
    ]


def test_a_turn_without_its_tools_says_so_once_before_the_words_that_miss_them():
    rig = Rig()
    for words in ("I cannot look, ", "but it is four."):
        rig.feed(ToolsRefused(at=rig.tick()))
        rig.text(words)
        if words.endswith(", "):
            rig.breaks(BreakCause.DROPPED)
    rig.finish()
    bubbles = view(rig.turn, rig.now).bubbles
    assert [bubble.kind for bubble in bubbles] == [BubbleKind.NOTE, BubbleKind.ANSWER]
    assert "without them" in bubbles[0].text
    assert bubbles[1].text == "I cannot look, but it is four."


def test_a_person_is_told_how_long_they_have_to_decide():
    rig = Rig()
    rig.calls_tool("danger")
    activity = rig.turn.round.activity("c1_0")
    assert activity is not None
    assert activity.approval_deadline - activity.since == 1000 * rig.settings.approval_seconds


@pytest.mark.parametrize("over", ["returned", "stopped", "answered"])
def test_what_a_call_asks_can_be_answered_while_it_is_open_and_never_after(over: str):
    rig = Rig()
    rig.calls_tool("send")
    (effect,) = [one for one in rig.wanted if isinstance(one, RunTool)]
    before, step = AskedStep("m0", "Sure?", ("yes",), answer="yes"), AskedStep("m1", "How many?", ("1", "2"))
    rig.feed(ToolStarted(at=rig.tick(), call=effect.call, intention=kept([before, step])))

    def asked() -> list[tuple[str, tuple[str, ...], bool]]:
        return [(b.state, b.options, b.final) for b in rig.view().bubbles if b.kind is BubbleKind.QUESTION]

    assert asked() == [("over", (), True), ("open", ("1", "2"), False)]
    match over:
        case "returned":
            rig.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.OK, text="done"))
        case "stopped":
            rig.feed(StopRequested(at=rig.tick()))
        case _:
            said = kept([before, replace(step, answer="2")])
            rig.feed(ToolStarted(at=rig.tick(), call=effect.call, intention=said))
    assert asked() == [("over", (), True)] * 2


def test_that_there_is_no_room_is_told_once_for_each_kind_however_often_it_is_tried():
    rig = Rig()
    for kind in (QuotaKind.FILES, QuotaKind.FILES, QuotaKind.MEMORY, QuotaKind.FILES):
        rig.calls_tool("write")
        (effect,) = [one for one in rig.wanted if isinstance(one, RunTool)]
        rig.feed(ToolStarted(at=rig.tick(), call=effect.call))
        facts: dict[str, Json] = {FULL: [*written(Full(kind, 9, 9, 1))]}
        rig.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.FAILED, text="full", facts=facts))
    told = [b.text for b in rig.view().bubbles if b.kind is BubbleKind.NOTE]
    assert told == [for_person(Full(kind, 9, 9, 1)) for kind in (QuotaKind.FILES, QuotaKind.MEMORY)]


def test_the_time_that_is_left_to_decide_grows_less_and_the_limit_stays():
    rig = Rig()
    rig.calls_tool("danger")
    (ask,) = [one for one in rig.wanted if isinstance(one, AskApproval)]
    rig.feed(ApprovalAsked(at=rig.now, call=ask.call, seconds=600))
    seen: list[tuple[str, str]] = []
    for seconds in (0, 60, 599, 700):
        bubbles = view(rig.turn, rig.now + seconds * 1000).bubbles
        (found,) = [one for one in bubbles if one.kind is BubbleKind.APPROVAL]
        seen.append((found.limit.partition(";")[0], found.left.partition(" left")[0]))
    assert seen == [("(Decide within 10 min", left) for left in ("(10 min", "(9 min", "(1 s", "(0 s")]


def test_nobody_has_longer_to_decide_than_the_limit_says_also_where_the_clock_is_behind():
    rig = Rig()
    rig.calls_tool("danger")
    (found,) = [one for one in view(rig.turn, rig.now - 500_000).bubbles if one.kind is BubbleKind.APPROVAL]
    assert found.left.startswith("(10 min left")


def test_what_is_thought_behind_a_bubble_is_told_there_from_wherever_it_is_asked_for():
    thought = ThoughtText()
    for text, behind in (("one", "a"), ("two", "b"), ("six", "b")):
        thought.add(text, behind)
    assert [thought.placed(chars) for chars in (0, 2, 3, 6, 9)] == [
        [("a", "one"), ("b", "twosix")],
        [("a", "e"), ("b", "twosix")],
        [("b", "twosix")],
        [("b", "six")],
        [],
    ]


def test_what_replies_make_is_told_apart_whichever_of_them_made_it():
    made: list[Json] = [{"kind": "image", "file": "/a.png"}, "nothing", {"kind": "audio", "url": "https://x/"}]
    first = made_files([], made)
    second = made_files([Mended(Failure.BEFORE_CONTENT, Remedy.AS_USUAL, 3), *first], made)
    assert [(one.kind, one.path, one.url) for one in first] == [("image", "/a.png", ""), ("audio", "", "https://x/")]
    assert len({one.key for one in (*first, *second)}) == 4
