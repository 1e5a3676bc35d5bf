"""The turn machine, rule by rule: what a turn does when things go wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.errors import ProtocolError
from agent_core.failures.exits import BrokenInText, ExitCode, TimeLimit
from agent_core.failures.leftout import LeftOutKind, Suspect
from agent_core.failures.remedies import CAUSE_TO_FAILURE, SET_ASIDE_SECONDS, Advice, Failure, Remedy
from agent_core.journal.rows import decode, encode
from agent_core.jsonvalue import Json
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.model.made import FILES
from agent_core.settings import CALLS_A_REPLY, RULES, LadderCounts, Route
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import AskApproval, CallModel, Compact, EndTurn, RunTool, SetAside
from agent_core.turn.events import (
    ApprovalAnswered,
    CallBroke,
    DeadlinePassed,
    DrainEnded,
    DriverFailed,
    FailureJudged,
    ReasoningArrived,
    ReplyFinished,
    SpendRefused,
    Steered,
    StopRequested,
    Superseded,
    TakenOver,
    TextArrived,
    ToolCallCut,
    ToolReturned,
    ToolStarted,
    TurnLeft,
    TurnOpened,
    Verdict,
)
from agent_core.turn.state import AssistantItem, PersonItem, ThoughtText, ToolItem
from agent_core.turn.view import BubbleKind, view
from tests.agent_core.turns import SETTINGS, Rig, opened

CUT = '{"path": "a.txt", "content": "hel'


def kinds(rig: Rig) -> list[BubbleKind]:
    return [bubble.kind for bubble in rig.view().bubbles]


def test_text_with_stop_is_the_answer():
    rig = Rig()
    rig.says("Hello!")
    assert rig.code is ExitCode.ANSWERED
    assert [(b.kind, b.text, b.final) for b in rig.view().bubbles] == [(BubbleKind.ANSWER, "Hello!", True)]


def test_text_beside_a_tool_call_is_interim_and_the_next_text_is_the_answer():
    rig = Rig()
    rig.calls_tool("read", text="Let me look.")
    rig.returns("contents")
    rig.says("It says contents.")
    assert rig.code is ExitCode.ANSWERED
    assert kinds(rig) == [BubbleKind.INTERIM, BubbleKind.ACTIVITY, BubbleKind.ANSWER]


def test_the_first_event_must_open_the_turn_and_only_once():
    with pytest.raises(ProtocolError):
        Turn().feed(TextArrived(at=1, text="x"))
    with pytest.raises(ProtocolError):
        Rig().feed(opened())


# ---------------------------------------------------------------- before content


def test_a_call_without_content_is_tried_four_times_and_then_ends_in_words():
    rig = Rig()
    for _ in range(4):
        assert isinstance(rig.wanted[-1], CallModel)
        rig.breaks(BreakCause.NO_CONTENT)
    assert rig.code is ExitCode.BROKEN_BEFORE_TEXT
    assert isinstance(rig.exit, exits.BrokenBeforeText)
    assert rig.exit.attempts == 4
    assert "4 attempts" in rig.view().text


@pytest.mark.parametrize(
    ("cause", "status", "code"),
    [
        (BreakCause.RATE_LIMITED, 429, ExitCode.RATE_LIMITED),
        (BreakCause.SERVER_ERROR, 500, ExitCode.PROVIDER_DOWN),
        (BreakCause.UNREACHABLE, 0, ExitCode.PROVIDER_DOWN),
        (BreakCause.GARBAGE, 200, ExitCode.PROVIDER_GARBAGE),
        (BreakCause.DROPPED, 0, ExitCode.BROKEN_BEFORE_TEXT),
    ],
)
def test_transient_failures_are_retried_and_named(cause: BreakCause, status: int, code: ExitCode):
    rig = Rig()
    for _ in range(4):
        rig.breaks(cause, status=status)
    assert rig.code is code
    assert len(rig.calls) == 4


@pytest.mark.parametrize(
    ("cause", "status", "code"),
    [
        (BreakCause.UNAUTHORISED, 401, ExitCode.NOT_AUTHORISED),
        (BreakCause.FORBIDDEN, 403, ExitCode.NOT_AUTHORISED),
        (BreakCause.PAYMENT_REQUIRED, 402, ExitCode.PAYMENT_REQUIRED),
        (BreakCause.NOT_FOUND, 404, ExitCode.MODEL_NOT_FOUND),
        (BreakCause.BAD_REQUEST, 400, ExitCode.BAD_REQUEST),
        (BreakCause.REFUSED, 400, ExitCode.REFUSED),
    ],
)
def test_what_the_same_route_cannot_mend_is_not_repeated(cause: BreakCause, status: int, code: ExitCode):
    rig = Rig()
    rig.breaks(cause, status=status)
    assert rig.code is code
    assert len(rig.calls) == 1


def test_a_bad_key_goes_to_the_next_credential_and_a_missing_model_to_the_next_model():
    routes = (Route("m1", "h", "k1"), Route("m1", "h", "k2"), Route("m2", "h", "k1"))
    rig = Rig(replace(SETTINGS, routes=routes))
    rig.breaks(BreakCause.UNAUTHORISED, status=401)
    assert rig.last_call.route.credential == "k2"
    rig.breaks(BreakCause.NOT_FOUND, status=404)
    assert rig.last_call.route.model == "m2"
    rig.says("fine")
    assert rig.code is ExitCode.ANSWERED


def test_a_long_retry_after_ends_the_turn_at_once_with_the_time():
    rig = Rig()
    rig.breaks(BreakCause.RATE_LIMITED, status=429, retry_after=600)
    assert rig.code is ExitCode.RATE_LIMITED
    assert "10 min" in rig.view().text


@pytest.mark.parametrize(
    ("cause", "asked", "seconds"),
    [
        (BreakCause.RATE_LIMITED, 0, SET_ASIDE_SECONDS[BreakCause.RATE_LIMITED]),
        (BreakCause.RATE_LIMITED, 90, 90),
        (BreakCause.RATE_LIMITED, 7_200, 7_200),
        (BreakCause.UNAUTHORISED, 5, SET_ASIDE_SECONDS[BreakCause.UNAUTHORISED]),
        (BreakCause.STALLED, 600, None),
    ],
)
def test_a_credential_is_left_alone_for_as_long_as_its_provider_asks_and_only_for_what_concerns_it(
    cause: BreakCause, asked: float, seconds: float | None
):
    rig = Rig(replace(SETTINGS, routes=(*SETTINGS.routes, Route("m1", "host", "k2"))))
    broke = CallBroke(at=rig.tick(), cause=cause, retry_after_seconds=asked)
    aside = [(one.credential, one.seconds) for one in rig.turn.feed(broke) if isinstance(one, SetAside)]
    assert aside == ([] if seconds is None else [("k1", seconds)])


def test_a_short_retry_after_is_waited_for():
    rig = Rig()
    before = rig.now
    rig.breaks(BreakCause.RATE_LIMITED, status=429, retry_after=90)
    assert rig.now - before >= 90_000
    rig.says("back")
    assert rig.code is ExitCode.ANSWERED


# ---------------------------------------------------------------- in text


def test_a_break_in_text_goes_on_from_the_text_and_shows_it_once():
    rig = Rig()
    rig.text("The quick brown ")
    rig.breaks(BreakCause.DROPPED)
    assert rig.last_call.partial == "The quick brown "
    assert rig.last_call.advice is Advice.CONTINUE
    rig.says("fox.")
    assert rig.code is ExitCode.ANSWERED
    assert rig.view().text == "The quick brown fox."


@pytest.mark.parametrize("again", ["The quick", "brown fox ju"])
@pytest.mark.parametrize("dies", [False, True])
def test_a_continuation_that_breaks_off_while_it_only_repeats_is_not_said_twice(again: str, dies: bool):
    rig = Rig()
    rig.text("The quick brown fox jumps over ")
    rig.breaks(BreakCause.DROPPED)
    rig.text(again)
    if dies:
        rig.feed(TakenOver(at=rig.tick(), epoch=2))
    else:
        rig.breaks(BreakCause.DROPPED)
    assert rig.last_call.partial == "The quick brown fox jumps over "
    rig.says("The quick brown fox jumps over the dog.")
    assert rig.view().text == "The quick brown fox jumps over the dog."


def test_a_break_in_text_that_cannot_be_continued_says_that_the_reply_is_cut():
    rig = Rig()
    rig.text("The quick")
    for _ in range(5):
        rig.breaks(BreakCause.STALLED)
    assert rig.code is ExitCode.BROKEN_IN_TEXT
    assert kinds(rig) == [BubbleKind.PARTIAL, BubbleKind.NOTICE]
    assert "cut short" in rig.view().text


def test_a_continuation_that_returns_nothing_does_not_make_a_cut_reply_an_answer():
    rig = Rig()
    rig.text("Half a sent")
    rig.breaks(BreakCause.ENDED_EARLY)
    for _ in range(4):
        rig.finish("stop")
    assert rig.code is ExitCode.BROKEN_IN_TEXT


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("cause", [BreakCause.NO_CONTENT, BreakCause.UNREACHABLE, None])
def test_what_was_said_before_a_break_takes_no_remedy_away(cut: bool, cause: BreakCause | None):
    rig = Rig()
    if cut:
        rig.text("Half a sent")
        rig.breaks(BreakCause.DROPPED)
    for _ in range(3):
        rig.finish("stop") if cause is None else rig.breaks(cause)
    rig.says("It is done.")
    assert rig.code is ExitCode.ANSWERED


def test_a_rate_limit_while_continuing_keeps_the_text_and_goes_on_from_it():
    rig = Rig()
    rig.text("Part one. ")
    rig.breaks(BreakCause.DROPPED)
    rig.breaks(BreakCause.RATE_LIMITED, status=429)
    assert rig.last_call.partial == "Part one. "
    rig.says("Part two.")
    assert rig.view().text == "Part one. Part two."


# ---------------------------------------------------------------- in a tool call


def test_a_break_in_a_tool_call_is_retried_then_advised_then_ended_and_never_executed():
    rig = Rig()
    advices: list[bool] = []
    while rig.turn.exit is None:
        advices.append(any("smaller" in str(item) for item in rig.turn.items))
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    assert rig.code is ExitCode.BROKEN_IN_TOOL_CALL
    assert advices == [False, False, True]
    assert rig.tools_run == []
    assert rig.exit.tools_dropped == ("write",)
    assert "not executed (write)" in rig.view().text


def test_the_preamble_of_a_repeated_tool_call_is_seen_once():
    rig = Rig()
    rig.text("I will write the file.")
    rig.begins_call("write", CUT)
    rig.breaks(BreakCause.STALLED)
    rig.text("I will write ")
    assert rig.view().text == "I will write the file."
    rig.text("the file.")
    rig.begins_call("write", '{"path": "a"}')
    rig.finish("tool_calls")
    rig.returns()
    rig.says("Done.")
    assert rig.view().text == "I will write the file.\n\nDone."


def test_the_preamble_of_a_call_that_breaks_off_again_and_again_is_seen_once():
    rig = Rig()
    for _ in range(2):
        rig.text("I will write the file.")
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    rig.text("I will write the file.")
    rig.begins_call("write", '{"path": "a"}')
    rig.finish("tool_calls")
    rig.returns()
    rig.says("Done.")
    assert rig.view().text == "I will write the file.\n\nDone."


def test_a_finish_reason_is_not_believed_if_a_tool_call_is_half_there():
    rig = Rig()
    rig.begins_call("write", CUT)
    rig.finish("tool_calls")
    assert isinstance(rig.wanted[-1], CallModel)
    rig.begins_call("write", CUT)
    rig.finish("stop")
    rig.begins_call("write", CUT)
    rig.finish("stop")
    assert rig.code is ExitCode.BROKEN_IN_TOOL_CALL


def test_a_promise_with_tool_calls_as_finish_reason_and_no_call_is_no_answer():
    rig = Rig()
    for _ in range(3):
        rig.says("I will call the tool now", "tool_calls")
    assert rig.code is ExitCode.PROMISED_WITHOUT_ACTING


def test_what_announces_a_picture_that_comes_with_it_is_the_answer():
    rig = Rig()
    rig.text("Here is the picture:")
    made: dict[str, Json] = {FILES: [{"kind": "image", "mime": "image/png", "file": "/spool/0123/image.png"}]}
    rig.feed(ReplyFinished(at=rig.tick(), reason="stop", made=made))
    assert rig.code is ExitCode.ANSWERED


def test_a_text_tool_call_that_was_cut_is_a_break_and_not_an_answer():
    rig = Rig()
    rig.text("Writing.")
    rig.feed(ToolCallCut(at=rig.tick(), name="write"))
    rig.finish("stop")
    assert isinstance(rig.wanted[-1], CallModel)


@pytest.mark.parametrize(
    ("named", "cut", "known"),
    [("write", "", "write"), ("", "write", "write"), ("", "", ""), ("send", "write", "write")],
)
def test_what_was_begun_and_cut_keeps_its_name_whenever_that_was_said(named: str, cut: str, known: str):
    rig = Rig()
    while rig.turn.exit is None:
        if named:
            rig.begins_call(named, CUT)
        rig.feed(ToolCallCut(at=rig.tick(), name=cut, index=0 if named else -1))
        rig.finish("stop")
    assert rig.code is ExitCode.BROKEN_IN_TOOL_CALL
    assert rig.exit.tools_dropped == (known,)
    assert rig.tools_run == []


@pytest.mark.parametrize("said", ["", "I write it down."])
def test_a_call_in_words_that_breaks_off_with_its_stream_is_told_as_a_call(said: str):
    rig = Rig()
    for _ in range(20):
        if rig.turn.exit is not None:
            break
        if said:
            rig.text(said)
        rig.begins_call("write", CUT)
        rig.feed(ToolCallCut(at=rig.tick(), name="write", index=0))
        rig.breaks(BreakCause.DROPPED)
    assert rig.code is ExitCode.BROKEN_IN_TOOL_CALL
    assert rig.exit.tools_dropped == ("write",)
    assert rig.tools_run == []


def test_the_same_tool_stalling_in_a_third_step_is_a_pattern_after_all_that_there_is_was_tried():
    rig = Rig()
    for _ in range(2):
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
        rig.calls_tool("write", '{"path": "a"}')
        rig.returns()
    while rig.turn.exit is None:
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    assert rig.code is ExitCode.SAME_STALL_AGAIN
    assert [remedy for _, remedy in rig.turn.remedies[2:]] == [Remedy.RETRY, Remedy.ADVISE_SMALLER, Remedy.WITHOUT_TOOL]


# ---------------------------------------------------------------- nothing, thoughts, promises


def test_an_empty_reply_is_retried_nudged_twice_and_then_told():
    rig = Rig()
    advices = [rig.last_call.advice]
    for _ in range(4):
        rig.finish("stop")
        if rig.turn.exit is None:
            advices.append(rig.last_call.advice)
    assert advices == [None, None, Advice.RETURNED_NOTHING, Advice.RETURNED_NOTHING]
    assert rig.code is ExitCode.EMPTY_REPLY


def test_nothing_after_tools_is_not_an_answer_and_the_interim_text_stays_progress():
    rig = Rig()
    rig.calls_tool("write", '{"path": "a"}', text="Now dispatching task 5.")
    rig.returns()
    for _ in range(4):
        rig.finish("stop")
    assert rig.code is ExitCode.EMPTY_AFTER_TOOLS
    assert rig.exit.tools_done == ("write",)
    assert kinds(rig) == [BubbleKind.INTERIM, BubbleKind.ACTIVITY, BubbleKind.NOTICE]
    assert "not finished" in rig.view().text


def test_text_beside_housekeeping_only_is_the_answer_if_nothing_follows():
    rig = Rig()
    rig.calls_tool("todo", text="All is done; I noted it.")
    rig.returns()
    rig.finish("stop")
    assert rig.code is ExitCode.ANSWERED
    assert rig.view().bubbles[0].kind is BubbleKind.ANSWER


@pytest.mark.parametrize("status", [one for one in ToolStatus if one is not ToolStatus.OK])
def test_text_beside_housekeeping_that_failed_is_no_answer_if_nothing_follows(status: ToolStatus):
    rig = Rig()
    rig.calls_tool("todo", text="All is done; I noted it.")
    rig.returns(status=status)
    for _ in range(9):
        if rig.turn.exit is None:
            rig.finish("stop")
    assert rig.code is not ExitCode.ANSWERED
    assert BubbleKind.ANSWER not in kinds(rig)


@pytest.mark.parametrize("phase", ["calling", "in the text", "acting", "waiting"])
@pytest.mark.parametrize(("late", "goes_on"), [(-1, True), (0, False), (60_000, False)])
def test_a_turn_is_taken_up_before_its_deadline_and_never_after_it(phase: str, late: int, goes_on: bool):
    rig = Rig()
    match phase:
        case "in the text":
            rig.text("half of it")
        case "acting":
            rig.calls_tool("read")
        case "waiting":
            broke = CallBroke(at=rig.tick(), cause=BreakCause.RATE_LIMITED, status=429, retry_after_seconds=60)
            rig.turn.feed(broke)
        case _:
            pass
    rig.feed(TakenOver(at=rig.turn.deadline_at + late, epoch=2))
    assert (rig.turn.exit is None) is goes_on
    if not goes_on:
        assert rig.code is ExitCode.INTERRUPTED_BY_RESTART


@pytest.mark.parametrize(
    "text",
    [
        "Now dispatching task 5 (UI):",
        "Noted.\n\nNow I will run the tests:",
        "记下了。下一步：",
        "Let me check the file now.",
    ],
)
def test_a_promise_beside_housekeeping_is_no_answer_if_nothing_follows(text: str):
    rig = Rig()
    rig.calls_tool("todo", text=text)
    rig.returns()
    rig.finish("stop")
    assert rig.turn.exit is None
    assert rig.last_call.advice is Advice.ACT_NOW
    while rig.turn.exit is None:
        rig.finish("stop")
    assert rig.code is ExitCode.PROMISED_WITHOUT_ACTING
    assert all(bubble.kind is not BubbleKind.ANSWER for bubble in rig.view().bubbles)


def test_turns_of_older_rules_end_as_they_did():
    rig = Rig(replace(SETTINGS, rules=5))
    rig.calls_tool("todo", text="Now dispatching task 5 (UI):")
    rig.returns()
    rig.finish("stop")
    assert rig.code is ExitCode.ANSWERED


def test_calls_side_by_side_that_fail_are_one_failure():
    rig = Rig()
    for step in range(2):
        for index in range(7):
            rig.begins_call("read", f'{{"n": {step * 10 + index}}}', index)
        rig.finish("tool_calls")
        rig.returns(f"no such file in step {step}", status=ToolStatus.FAILED)
    assert rig.turn.exit is None
    assert rig.turn.round.stopping is None
    for step in range(2, 7):
        rig.calls_tool("read", f'{{"n": {step * 10}}}')
        rig.returns(f"no such file in step {step}", status=ToolStatus.FAILED)
    assert rig.turn.round.stopping is not None
    assert rig.turn.round.stopping.code is ExitCode.FAILING_TOOL


def test_a_reply_beyond_our_own_limit_ends_at_once_and_says_whose_it_was():
    for cut in (False, True):
        rig = Rig()
        rig.text("A very long story.")
        if cut:
            rig.begins_call("write", '{"text": "')
        rig.breaks(BreakCause.TOO_LONG)
        assert rig.code is (ExitCode.TOOL_CALL_CUT_BY_LENGTH if cut else ExitCode.CUT_BY_LENGTH)
        assert len(rig.calls) == 1, "the model is not asked again"
        notice = rig.view().bubbles[-1].text
        assert "outspoken's own limit" in notice
        assert "600,000" in notice


def test_a_loop_is_told_and_the_model_goes_on_without_it():
    rig = Rig()
    rig.text("The first part.")
    rig.breaks(BreakCause.REPEATING)
    assert rig.last_call.partial == "The first part."
    assert rig.last_call.advice is Advice.REPEATED
    rig.says(" The second part.")
    assert rig.code is ExitCode.ANSWERED
    rig = Rig()
    for _ in range(10):
        if rig.turn.exit is None:
            rig.breaks(BreakCause.REPEATING)
    assert rig.code is ExitCode.BROKEN_BEFORE_TEXT
    assert "repeated itself" in rig.view().bubbles[-1].text


def test_text_beside_housekeeping_and_another_tool_is_progress():
    rig = Rig()
    rig.text("Working on it.")
    rig.begins_call("todo", "{}", 0)
    rig.begins_call("read", "{}", 1)
    rig.finish("tool_calls")
    while any(isinstance(e, RunTool) for e in rig.wanted):
        rig.returns()
    for _ in range(4):
        rig.finish("stop")
    assert rig.code is ExitCode.EMPTY_AFTER_TOOLS


def test_reasoning_only_is_continued_twice_and_then_told():
    rig = Rig()
    for _ in range(3):
        rig.feed(ReasoningArrived(at=rig.tick(), text="hmm, so"))
        rig.finish("stop")
        if rig.turn.exit is None:
            assert rig.last_call.advice is Advice.THOUGHT_ONLY
            assert "hmm" in rig.last_call.reasoning
    assert rig.code is ExitCode.THINKING_ONLY


def test_an_announcement_without_an_act_gets_one_nudge_and_then_the_truth():
    rig = Rig()
    rig.says("Now dispatching task 5:")
    assert rig.last_call.advice is Advice.ACT_NOW
    rig.says("Now dispatching task 5:")
    assert rig.code is ExitCode.PROMISED_WITHOUT_ACTING
    assert isinstance(rig.exit, exits.PromisedWithoutActing)
    assert "Now dispatching task 5:" in rig.exit.announced


def test_a_nudge_that_brings_the_act_makes_the_turn_go_on():
    rig = Rig()
    rig.says("Now dispatching task 5:")
    rig.calls_tool("write", '{"path": "a"}')
    rig.returns()
    rig.says("Dispatched.")
    assert rig.code is ExitCode.ANSWERED


# ---------------------------------------------------------------- length, filter, overflow


def test_a_reply_cut_by_length_is_continued_three_times():
    rig = Rig()
    for number in range(4):
        rig.says(f"part {number} ", "length")
    assert rig.code is ExitCode.CUT_BY_LENGTH
    assert rig.view().text.startswith("part 0 part 1 part 2 part 3 ")


def test_a_client_that_set_the_limit_itself_gets_what_it_asked_for():
    rig = Rig(replace(SETTINGS, client_output_limit=True))
    rig.says("five words and no more", "length")
    assert rig.code is ExitCode.CUT_BY_LENGTH
    assert isinstance(rig.exit, exits.Cut)
    assert rig.exit.limit_was_asked
    assert len(rig.calls) == 1


def test_length_inside_a_tool_call_is_advised_twice():
    rig = Rig()
    for _ in range(3):
        rig.begins_call("write", CUT)
        rig.finish("length")
    assert rig.code is ExitCode.TOOL_CALL_CUT_BY_LENGTH
    assert rig.tools_run == []


def test_a_filter_before_and_after_text():
    rig = Rig()
    rig.finish("content_filter")
    assert rig.code is ExitCode.REFUSED
    rig = Rig()
    rig.says("Well, ", "content_filter")
    assert rig.code is ExitCode.REFUSED_MIDWAY


def test_overflow_is_compacted_once():
    rig = Rig()
    rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    assert isinstance(rig.wanted[-1], Compact)
    rig.compacts()
    rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    assert rig.code is ExitCode.CONTEXT_OVERFLOW


def test_overflow_is_tried_once_more_even_if_little_could_be_left_out():
    rig = Rig()
    rig.breaks(BreakCause.TOO_LARGE, status=413)
    rig.compacts(helped=False)
    rig.breaks(BreakCause.TOO_LARGE, status=413)
    assert rig.code is ExitCode.REQUEST_TOO_LARGE


def test_a_tool_that_failed_is_not_told_as_done():
    rig = Rig()
    rig.calls_tool("write", '{"path": "x"}')
    rig.returns("permission denied", status=ToolStatus.FAILED)
    for _ in range(4):
        rig.finish("stop")
    assert rig.code is ExitCode.EMPTY_AFTER_TOOLS
    assert rig.exit.tools_done == ()
    assert "Done" not in rig.view().text


# ---------------------------------------------------------------- tools


@pytest.mark.parametrize(
    ("refusal", "code"),
    [("unknown_tool", ExitCode.UNKNOWN_TOOL), ("unreadable_arguments", ExitCode.UNREADABLE_ARGUMENTS)],
)
def test_calls_that_cannot_be_started_are_told_three_times(refusal: str, code: ExitCode):
    rig = Rig()
    for _ in range(4):
        rig.calls_tool("nonsense")
        rig.returns("no such tool", status=ToolStatus.REFUSED, refusal=refusal)
    assert rig.code is code
    assert rig.exit.tool == "nonsense"


def test_read_only_calls_run_together_and_others_alone_in_order():
    rig = Rig()
    for index, name in enumerate(("read", "read", "write", "read")):
        rig.begins_call(name, f'{{"n": {index}}}', index)
    rig.finish("tool_calls")
    assert [e.name for e in rig.wanted if isinstance(e, RunTool)] == ["read", "read"]
    rig.returns("a")
    assert [e.name for e in rig.wanted if isinstance(e, RunTool)] == ["write"]
    rig.returns("b")
    assert [e.name for e in rig.wanted if isinstance(e, RunTool)] == ["read"]


def test_the_same_failing_call_is_warned_of_and_then_stopped_with_a_last_word():
    rig = Rig()
    for number in range(4):
        rig.calls_tool("write", '{"path": "x"}')
        rig.returns("permission denied", status=ToolStatus.FAILED)
        if number == 1:
            assert "Note from the gateway" in str(rig.turn.items[-1])
    assert rig.last_call.offer_tools is False
    assert rig.last_call.advice is Advice.SUM_UP_LOOP
    rig.says("I could not write it.")
    assert rig.code is ExitCode.REPEATING_FAILING_CALL
    assert "I could not write it." in rig.view().text


def test_only_a_tool_that_reads_makes_no_progress_with_the_same_result():
    written, read = Rig(), Rig()
    for _ in range(4):
        written.calls_tool("write", '{"path": "x"}')
        written.returns("done")
        read.calls_tool("read", '{"path": "x"}')
        read.returns("the same")
    assert written.last_call.offer_tools
    assert read.last_call.advice is Advice.SUM_UP_LOOP
    read.says("It says the same each time.")
    assert read.code is ExitCode.NO_PROGRESS


def test_what_was_asked_for_behind_the_call_that_stops_is_not_run():
    rig = Rig()
    for _ in range(3):
        rig.calls_tool("write", '{"path": "x"}')
        rig.returns("permission denied", status=ToolStatus.FAILED)
    rig.begins_call("write", '{"path": "x"}', 0)
    rig.begins_call("send", "{}", 1)
    rig.finish("tool_calls")
    rig.returns("permission denied", status=ToolStatus.FAILED)
    assert "send" not in [run.name for run in rig.tools_run]
    assert "Not run" in str(rig.turn.items[-1])
    assert rig.last_call.advice is Advice.SUM_UP_LOOP


def test_the_step_limit_asks_for_a_summary_without_tools():
    rig = Rig(replace(SETTINGS, max_steps=2))
    for number in range(2):
        rig.calls_tool("write", f'{{"path": "{number}"}}')
        rig.returns()
    assert rig.last_call.offer_tools is False
    rig.says("Two files are written.")
    assert rig.code is ExitCode.STEP_LIMIT
    assert "Two files are written." in rig.view().text


SPEND = Spend(budget=Budget.PERSON, measure=Measure.TOKENS, limit=100, used=110, opens="2026-11-04 00:00 UTC")


def test_a_call_that_no_budget_has_room_for_ends_the_turn_and_names_what_was_done():
    rig = Rig()
    rig.calls_tool("read", text="I look.")
    rig.returns()
    rig.feed(SpendRefused(at=rig.tick(), spend=SPEND))
    assert rig.code is ExitCode.SPEND_LIMIT
    assert isinstance(rig.exit, exits.SpendLimit)
    assert (rig.exit.spend, rig.exit.tools_done) == (SPEND, ("read",))
    assert "I look." in rig.view().text
    assert "110 of 100 tokens" in rig.view().text
    assert "2026-11-04 00:00 UTC" in rig.view().text


def test_a_budget_without_room_in_the_middle_of_a_text_leaves_what_was_shown():
    rig = Rig()
    rig.text("Half a")
    rig.breaks()
    rig.feed(SpendRefused(at=rig.tick(), spend=SPEND))
    assert rig.code is ExitCode.SPEND_LIMIT
    assert rig.view().bubbles[0].text == "Half a"
    assert "cut short" in rig.view().bubbles[-1].text


def test_a_last_word_that_cannot_be_paid_for_does_not_change_why_the_turn_ends():
    rig = Rig(replace(SETTINGS, max_steps=1))
    rig.calls_tool("write")
    rig.returns()
    assert rig.last_call.offer_tools is False
    rig.feed(SpendRefused(at=rig.tick(), spend=SPEND))
    assert rig.code is ExitCode.STEP_LIMIT


def test_a_clients_own_tools_are_handed_back():
    rig = Rig(replace(SETTINGS, tools=(), client_tools=("get_weather",)))
    rig.calls_tool("get_weather", '{"city": "Rome"}', text="Checking.")
    assert rig.code is ExitCode.HANDED_TO_CLIENT
    assert [call.name for call in rig.turn.handed_calls] == ["get_weather"]


def test_a_call_that_a_clients_program_cannot_read_is_asked_for_again():
    rig = Rig(replace(SETTINGS, tools=(), client_tools=("get_weather",)))
    rig.calls_tool("get_weather", '{"city": Rome}')
    assert rig.turn.exit is None
    assert isinstance(rig.wanted[-1], CallModel), "it is asked again"
    rig.calls_tool("get_weather", '{"city": "Rome"}')
    assert rig.code is ExitCode.HANDED_TO_CLIENT
    assert [call.arguments for call in rig.turn.handed_calls] == ['{"city": "Rome"}']


def test_a_text_for_a_clients_tool_that_takes_one_is_handed_over():
    rig = Rig(replace(SETTINGS, tools=(), client_tools=("apply_patch",)))
    rig.calls_tool("apply_patch", "*** Begin Patch")
    assert rig.code is ExitCode.HANDED_TO_CLIENT


def test_a_request_for_approval_says_its_time_once_wherever_it_is_shown():
    rig = Rig()
    rig.calls_tool("danger")
    asked = rig.view().bubbles[-1]
    assert "decide" not in asked.text.lower()
    assert asked.limit == "(Decide within 10 min; then the answer ends without it.)"
    assert asked.left == "(10 min left to decide; then the answer ends without it.)"


def test_approval_is_asked_given_denied_and_expired():
    rig = Rig()
    rig.calls_tool("danger")
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    assert rig.view().bubbles[-1].kind is BubbleKind.APPROVAL
    rig.feed(ApprovalAnswered(at=rig.tick(), call=ask.call, verdict=Verdict.GIVEN))
    assert isinstance(rig.wanted[-1], RunTool)
    rig.returns()
    rig.calls_tool("danger")
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=ask.call, verdict=Verdict.DENIED))
    rig.calls_tool("danger")
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=ask.call, verdict=Verdict.DENIED))
    assert rig.code is ExitCode.APPROVAL_DENIED
    rig = Rig()
    rig.calls_tool("danger")
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=ask.call, verdict=Verdict.EXPIRED))
    assert rig.code is ExitCode.APPROVAL_EXPIRED


# ---------------------------------------------------------------- from outside


def test_what_ends_a_turn_from_outside_says_what_had_run_and_what_may_have():
    rig = Rig()
    rig.calls_tool("write", '{"path": "1"}')
    rig.returns()
    rig.calls_tool("send")
    effect = rig.wanted[-1]
    assert isinstance(effect, RunTool)
    rig.feed(ToolStarted(at=rig.tick(), call=effect.call))
    rig.feed(StopRequested(at=rig.tick()))
    assert rig.code is ExitCode.STOPPED
    assert rig.exit.tools_done == ("write",)
    assert rig.exit.tools_unsure == ("send",)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (DeadlinePassed(at=9), ExitCode.TIME_LIMIT),
        (Superseded(at=9), ExitCode.SUPERSEDED),
        (DrainEnded(at=9), ExitCode.INTERRUPTED_BY_RESTART),
        (DriverFailed(at=9, reference="err_1"), ExitCode.INTERNAL_ERROR),
        (StopRequested(at=9), ExitCode.STOPPED),
    ],
)
def test_events_from_outside_end_the_turn_in_every_phase(
    event: DeadlinePassed | Superseded | DrainEnded | DriverFailed | StopRequested, code: ExitCode
):
    prepares: list[Callable[[Rig], object]] = [
        lambda _: None,
        lambda rig: rig.text("x"),
        lambda rig: rig.calls_tool("read"),
        lambda rig: rig.calls_tool("danger"),
    ]
    for prepare in prepares:
        rig = Rig()
        prepare(rig)
        assert rig.feed(event) == [EndTurn(rig.exit)]
        assert rig.code is code


def test_steering_reaches_the_model_at_the_next_step_and_an_answer_waits_for_it():
    rig = Rig()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("in French, please")))
    rig.says("Hello.")
    assert isinstance(rig.wanted[-1], CallModel)
    assert "French" in str(rig.turn.items[-1])
    rig.says("Bonjour.")
    assert rig.code is ExitCode.ANSWERED
    assert rig.turn.steers == ()


def test_all_that_is_added_during_a_step_is_told_in_its_order_or_handed_back():
    rig, words = Rig(), ["in French, please", "and short", "no, in Dutch"]
    for number, said in enumerate(words, 1):
        rig.feed(Steered(at=rig.tick(), input=InputMessage(said), inbox=number))
    assert [(one.input.content, one.inbox) for one in rig.turn.steers] == [*zip(words, (1, 2, 3), strict=True)]
    rig.says("Hello.")
    told = [item.input.content for item in rig.turn.items if isinstance(item, PersonItem)]
    assert (told, rig.turn.steers) == (words, ())


def test_what_the_model_never_heard_is_handed_back():
    rig = Rig()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("and one more thing")))
    rig.feed(StopRequested(at=rig.tick()))
    assert [steer.input.content for steer in rig.turn.steers] == ["and one more thing"]


# ---------------------------------------------------------------- restart


def test_a_turn_that_was_waiting_for_the_model_goes_on_after_a_restart():
    rig = Rig()
    rig.text("Half a ")
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    assert rig.last_call.partial == "Half a "
    rig.says("sentence.")
    assert rig.view().text == "Half a sentence."


def test_what_was_said_again_is_shown_once_also_if_two_processes_die_before_they_can_say_so():
    rig = Rig()
    rig.text("The quick brown fox jumps")
    rig.breaks(BreakCause.DROPPED)
    rig.text("The quick brown fox jumps over")
    died = Turn()
    for event in [*rig.fed, TakenOver(at=rig.tick(), epoch=2)]:
        died.apply(event)
    died.feed(TakenOver(at=rig.tick(), epoch=3))
    assert view(died, rig.now).text == "The quick brown fox jumps over"


def test_a_pure_or_keyed_tool_runs_again_after_a_restart_and_one_with_effects_does_not():
    for name in ("read", "write"):
        rig = Rig()
        rig.calls_tool(name)
        effect = rig.wanted[-1]
        assert isinstance(effect, RunTool)
        rig.feed(ToolStarted(at=rig.tick(), call=effect.call))
        rig.feed(TakenOver(at=rig.tick(), epoch=2))
        assert rig.wanted == [replace(effect, again=True)]
    rig = interrupted("send")
    assert isinstance(rig.wanted[-1], CallModel)
    assert [run.name for run in rig.tools_run] == ["send"]


def interrupted(*names: str, rules: int = RULES) -> Rig:
    """A turn whose first call had begun when the process died, taken over."""
    rig = Rig(replace(SETTINGS, rules=rules))
    for index, name in enumerate(names):
        rig.begins_call(name, "{}", index)
    rig.finish("tool_calls")
    effect = rig.wanted[0]
    assert isinstance(effect, RunTool)
    rig.feed(ToolStarted(at=rig.tick(), call=effect.call, intention={"before": None}))
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    return rig


def test_an_effect_that_nobody_knows_of_is_told_to_the_model_and_to_the_person_and_the_turn_goes_on():
    rig = interrupted("send")
    told = rig.turn.items[-1]
    assert isinstance(told, ToolItem)
    assert "may have been done" in told.text
    assert "Do not simply repeat it" in told.text
    notes = [bubble for bubble in rig.view().bubbles if bubble.kind is BubbleKind.NOTE]
    assert [(note.text.startswith("send may or may not have been done"), note.final) for note in notes] == [
        (True, True)
    ]
    rig.says("It may have been sent; please look.")
    assert rig.code is ExitCode.ANSWERED
    assert rig.exit.tools_unsure == ("send",)
    assert rig.exit.tools_done == ()


def test_the_calls_behind_one_that_nobody_knows_of_still_run():
    rig = interrupted("send", "write", "read")
    assert [run.name for run in rig.wanted if isinstance(run, RunTool)] == ["write"]
    rig.returns()
    rig.returns()
    assert isinstance(rig.wanted[-1], CallModel)
    assert rig.turn.round.tools_done == ("write", "read")
    rig.feed(DeadlinePassed(at=rig.tick()))
    assert rig.exit.tools_unsure == ("send",)
    assert "May or may not have run: send" in rig.view().text


@pytest.mark.parametrize(
    "cause", [BreakCause.NO_CONTENT, BreakCause.STALLED, BreakCause.DROPPED, BreakCause.SERVER_ERROR]
)
@pytest.mark.parametrize("mended", [False, True])
def test_a_limit_that_comes_while_a_model_fails_is_told_with_how_it_fails(cause: BreakCause, mended: bool):
    rig = Rig()
    rig.breaks(cause, status=503 if cause is BreakCause.SERVER_ERROR else 0)
    if mended:
        rig.calls_tool("read")
    rig.feed(DeadlinePassed(at=rig.tick()))
    ending = rig.exit
    assert isinstance(ending, TimeLimit)
    silent = cause in (BreakCause.NO_CONTENT, BreakCause.STALLED)
    told = (None, 0, 0, 0) if mended else (cause, 3 if silent else 0, 1, 503 if cause is BreakCause.SERVER_ERROR else 0)
    assert (ending.cause, ending.seconds, ending.attempts, ending.status) == told


@pytest.mark.parametrize("asked", [("theirs",), ("read", "theirs"), ("theirs", "read", "also"), ("read", "write")])
def test_a_client_is_handed_its_own_calls_and_none_that_is_back(asked: tuple[str, ...]):
    rig = Rig(replace(SETTINGS, client_tools=("theirs", "also")))
    for index, name in enumerate(asked):
        rig.begins_call(name, "{}", index)
    rig.finish("tool_calls")
    while [one for one in rig.wanted if isinstance(one, RunTool)]:
        assert not rig.turn.handed_calls
        rig.returns()
    theirs = [name for name in asked if name not in ("read", "write")]
    assert (rig.turn.exit is not None) is bool(theirs)
    assert [call.name for call in rig.turn.handed_calls] == theirs


def test_a_keyed_call_runs_again_with_what_was_put_down_last_before_it_began():
    rig = Rig()
    rig.calls_tool("write")
    effect = rig.wanted[-1]
    assert isinstance(effect, RunTool)
    put_down: list[Json] = [{"before": 1}, {"before": 2}, None]
    for intention in put_down:
        rig.feed(ToolStarted(at=rig.tick(), call=effect.call, intention=intention))
    for epoch in (2, 3):
        rig.feed(TakenOver(at=rig.tick(), epoch=epoch))
        assert rig.wanted == [replace(effect, intention={"before": 2}, again=True)]


@pytest.mark.parametrize(("name", "sure"), [("read", True), ("write", False), ("send", False)])
def test_a_call_that_does_not_finish_in_time_may_have_been_done_unless_it_only_looks(name: str, sure: bool):
    rig = Rig()
    rig.calls_tool(name)
    rig.returns("too late", status=ToolStatus.TIMED_OUT)
    notes = [b.text for b in rig.view().bubbles if b.kind is BubbleKind.NOTE]
    assert rig.turn.round.tools_unsure == (() if sure else (name,))
    assert [("did not finish in time" in note) for note in notes] == ([] if sure else [True])


def test_an_approval_that_was_given_before_the_restart_stays_given():
    rig = Rig()
    rig.begins_call("read", "{}")
    rig.begins_call("danger", "{}", 1)
    rig.finish("tool_calls")
    rig.returns()
    ask = rig.wanted[-1]
    assert isinstance(ask, AskApproval)
    rig.feed(ApprovalAnswered(at=rig.tick(), call=ask.call, verdict=Verdict.GIVEN))
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    assert rig.wanted == [RunTool(ask.call, "danger", "{}")]


def test_a_call_that_cannot_be_shown_whole_is_not_asked_about_and_the_model_hears_why():
    long_path = json.dumps({"path": "a/" * 300 + "b"})
    rig = Rig()
    rig.calls_tool("danger", long_path)
    assert not any(isinstance(one, AskApproval) for one in rig.wanted)
    assert isinstance(rig.wanted[-1], CallModel)
    assert "Not run: its path cannot be shown whole" in str(rig.turn.items)
    rig = Rig(replace(SETTINGS, rules=3))
    rig.calls_tool("danger", long_path)
    assert isinstance(rig.wanted[-1], AskApproval), "a turn of an earlier version goes on as it was"


def test_a_journal_of_an_older_version_is_decided_by_the_rules_of_its_time():
    rig = interrupted("send", rules=1)
    assert rig.code is ExitCode.INTERRUPTED_BY_RESTART
    assert rig.exit.tools_unsure == ("send",)
    assert "May or may not have run" in rig.view().text
    assert [bubble.kind for bubble in rig.view().bubbles] == [BubbleKind.ACTIVITY, BubbleKind.NOTICE]
    rig = Rig(replace(SETTINGS, rules=1))
    rig.text("Half")
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    assert rig.turn.remedies == ((Failure.IN_TEXT, Remedy.CONTINUE),)
    written = encode(opened(replace(SETTINGS, rules=1)))
    old = decode(written.kind, written.body.replace(b',"rules":1', b"").replace(b',"restarts_a_step":8', b""))
    assert isinstance(old, TurnOpened)
    assert not old.settings.goes_on


def test_a_reply_that_a_restart_cut_says_so_also_where_going_on_from_it_fails_in_other_ways():
    rig = Rig()
    rig.text("Once upon a time there")
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    for cause in (BreakCause.NO_CONTENT, BreakCause.DROPPED) * 4:
        if rig.turn.exit is None:
            rig.breaks(cause)
    assert isinstance(rig.exit, BrokenInText)
    assert rig.exit.text().startswith("The reply above is cut short: outspoken itself was restarted, and going on")


def test_a_restart_is_no_failure_of_the_model():
    rig = Rig()
    rig.text("First, a word. ")
    rig.begins_call("write", '{"path": ')
    for epoch in range(2, 6):
        rig.feed(TakenOver(at=rig.tick(), epoch=epoch))
        assert isinstance(rig.wanted[-1], CallModel)
    assert (rig.turn.remedies, rig.turn.attempts, rig.turn.troubles.found) == ((), 0, ())
    rig.calls_tool("write", text="First, a word. ")
    assert [b.text for b in rig.view().bubbles if b.kind is BubbleKind.INTERIM] == ["First, a word. "]


def test_a_tool_with_effects_that_was_not_started_is_safe_to_run_after_a_restart():
    rig = Rig()
    rig.calls_tool("send")
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    assert [type(effect) for effect in rig.wanted] == [RunTool]


def test_restarts_that_never_end_are_bounded():
    rig = Rig()
    for epoch in range(2, 3 + SETTINGS.restarts_a_step):
        assert rig.turn.exit is None
        rig.feed(TakenOver(at=rig.tick(), epoch=epoch))
    assert rig.code is ExitCode.INTERRUPTED_BY_RESTART


AT_A_STOP: dict[str, Callable[[Rig], object]] = {
    "waiting for the model": lambda rig: None,
    "the reply that was arriving": lambda rig: rig.text("Half of it"),
    "the call of send_mail that was arriving": lambda rig: rig.begins_call("send_mail", "{"),
    "read": lambda rig: rig.calls_tool("read"),
}


@pytest.mark.parametrize("at", AT_A_STOP)
def test_a_stop_says_what_was_under_way(at: str):
    rig = Rig()
    AT_A_STOP[at](rig)
    rig.feed(StopRequested(at=rig.tick()))
    assert isinstance(rig.exit, exits.Stopped)
    assert rig.exit.detail == at


def test_an_orderly_stop_is_no_restart_that_broke_something_off():
    rig = Rig()
    for epoch in range(2, 5 + 2 * SETTINGS.restarts_a_step):
        rig.feed(TurnLeft(at=rig.tick()), TakenOver(at=rig.tick(), epoch=epoch))
    assert rig.turn.exit is None


def test_restarts_count_in_their_step_alone():
    rig = Rig()
    for step in range(2):
        for number in range(SETTINGS.restarts_a_step):
            rig.feed(TakenOver(at=rig.tick(), epoch=2 + number + step * SETTINGS.restarts_a_step))
        rig.calls_tool("read")
        effect = rig.wanted[-1]
        assert isinstance(effect, RunTool)
        rig.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.OK, text="it"))
    assert rig.turn.exit is None


def test_what_was_left_out_for_an_answer_is_kept_for_the_turns_to_come():
    rig = Rig()
    first = Suspect("k1", LeftOutKind.PICTURE, named=True)
    rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.REFUSED, suspects=(first,)))
    parts = rig.turn.leaving.parts
    assert parts
    assert not rig.turn.kept_out
    rig.says("An answer.")
    assert [one.parts for one in rig.turn.kept_out] == [parts]


def test_what_is_left_out_for_one_model_is_not_kept_from_the_next():
    rig = Rig(replace(SETTINGS, routes=(Route("m1", "host", "k1"), Route("m2", "host", "k1"))))
    named = Suspect("k1", LeftOutKind.PICTURE, named=True)
    rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.REFUSED, suspects=(named,)))
    assert rig.last_call.left_out == (named,)
    rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.REFUSED))
    assert (rig.last_call.route.model, rig.last_call.left_out) == ("m2", ())


def test_what_was_left_out_in_one_step_is_kept_beside_what_was_in_another():
    rig = Rig()
    for key in ("k1", "k2"):
        suspects = (Suspect(key, LeftOutKind.PICTURE, named=True),)
        rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.REFUSED, suspects=suspects))
        rig.calls_tool("read")
        effect = rig.wanted[-1]
        assert isinstance(effect, RunTool)
        rig.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.OK, text="it"))
    assert {part.key for one in rig.turn.kept_out for part in one.parts} == {"k1", "k2"}


def test_late_results_change_nothing():
    rig = Rig()
    rig.calls_tool("read")
    effect = rig.wanted[-1]
    assert isinstance(effect, RunTool)
    rig.feed(StopRequested(at=rig.tick()))
    before = rig.view()
    assert rig.turn.feed(ToolReturned(at=rig.tick(), call=effect.call, status=ToolStatus.OK, text="late")) == []
    assert rig.view() == before


def test_counts_come_from_the_settings():
    rig = Rig(replace(SETTINGS, ladder=LadderCounts(retry=0)))
    rig.breaks(BreakCause.NO_CONTENT)
    assert rig.code is ExitCode.BROKEN_BEFORE_TEXT


def asks_for(rig: Rig, count: int, name: str = "read") -> None:
    for index in range(count):
        rig.begins_call(name, f'{{"n": {index}}}', index)
    rig.finish("tool_calls")


def results_of(rig: Rig) -> dict[str, str]:
    return {item.call: item.text for item in rig.turn.items if isinstance(item, ToolItem)}


def test_calls_beyond_the_most_of_one_reply_are_not_run_and_the_model_is_told_so():
    rig = Rig()
    asks_for(rig, CALLS_A_REPLY + 10)
    assert len(rig.tools_run) == CALLS_A_REPLY
    rig.returns("done")
    assert isinstance(rig.wanted[-1], CallModel)
    results = results_of(rig)
    asked = [call.call for item in rig.turn.items if isinstance(item, AssistantItem) for call in item.calls]
    assert sorted(asked) == sorted(results)
    assert len(results) == CALLS_A_REPLY + 10
    not_run = [call for call, text in results.items() if f"at most {CALLS_A_REPLY} calls" in text]
    assert not_run == asked[CALLS_A_REPLY:]
    assert rig.says("All done.")
    assert rig.code is ExitCode.ANSWERED


@pytest.mark.parametrize("count", [CALLS_A_REPLY - 1, CALLS_A_REPLY])
def test_calls_up_to_the_most_of_one_reply_are_all_run(count: int):
    rig = Rig()
    asks_for(rig, count)
    assert len(rig.tools_run) == count


def test_a_turn_that_began_under_older_rules_runs_all_calls():
    rig = Rig(replace(SETTINGS, rules=2))
    asks_for(rig, CALLS_A_REPLY + 10)
    assert len(rig.tools_run) == CALLS_A_REPLY + 10


def test_a_reply_of_many_calls_one_after_the_other_keeps_its_limit():
    rig = Rig()
    asks_for(rig, CALLS_A_REPLY + 10, "write")
    for _ in range(CALLS_A_REPLY):
        assert isinstance(rig.wanted[0], RunTool)
        rig.returns("done")
    assert isinstance(rig.wanted[-1], CallModel)
    assert len(rig.tools_run) == CALLS_A_REPLY


def test_a_client_allows_so_many_calls_of_the_gateways_tools_in_a_turn():
    rig = Rig(replace(SETTINGS, most_tool_calls=3, client_tools=("theirs",)))
    asks_for(rig, 2)
    rig.returns("done")
    asks_for(rig, 2)
    rig.returns("done")
    assert len(rig.tools_run) == 3
    asks_for(rig, 1)
    assert len(rig.tools_run) == 3
    assert isinstance(rig.wanted[-1], CallModel), "it is told so, and goes on"
    told = [text.startswith("Not run: this request allows at most 3 calls") for text in results_of(rig).values()]
    assert sorted(told) == [False] * 3 + [True] * 2
    asks_for(rig, 5, "theirs")
    assert rig.code is ExitCode.HANDED_TO_CLIENT, "those of the client's are not counted"


def test_calls_for_the_client_are_handed_over_whatever_their_number():
    rig = Rig(replace(SETTINGS, client_tools=("theirs",)))
    asks_for(rig, CALLS_A_REPLY + 10, "theirs")
    assert rig.code is ExitCode.HANDED_TO_CLIENT
    assert len(rig.turn.handed_calls) == CALLS_A_REPLY + 10


@given(
    st.lists(st.tuples(st.text(max_size=4), st.sampled_from(["", "s0", "c1"]), st.booleans()), max_size=8),
    st.integers(0, 30),
)
def test_what_was_thought_is_the_same_by_its_places(pieces: list[tuple[str, str, bool]], cut: int):
    thought = ThoughtText()
    for text, behind, paused in pieces:
        if paused:
            thought.pause()
        thought.add(text, behind)
    placed = thought.placed(cut)
    assert "".join(text for _, text in placed) == thought.beyond(cut)
    assert (
        [behind for behind, _ in placed] == [behind for behind, _ in thought.placed(0)][-len(placed) :]
        if placed
        else True
    )


def test_thoughts_stand_behind_the_text_or_call_after_which_they_were_thought():
    rig = Rig()
    rig.turn = Turn()
    rig.feed(replace(opened(), surface="api"))
    rig.feed(ReasoningArrived(at=rig.tick(), text="first"))
    rig.text("I look.")
    rig.feed(ReasoningArrived(at=rig.tick(), text="second"))
    rig.begins_call("read", "{}", 0)
    rig.finish("tool_calls")
    rig.returns("done")
    rig.feed(ReasoningArrived(at=rig.tick(), text="third"))
    call = next(item for item in rig.turn.items if isinstance(item, ToolItem)).call
    assert rig.turn.thoughts.placed(0) == [("", "first"), ("text0", "second"), (call, "\n\nthird")]


@pytest.mark.parametrize(("surface", "kept"), [("api", True), ("web", True), ("telegram", False), ("terminal", False)])
def test_thoughts_are_kept_where_they_may_be_shown_and_nowhere_else(surface: str, kept: bool):
    rig = Rig()
    rig.turn = Turn()
    rig.feed(replace(opened(), surface=surface))
    rig.feed(ReasoningArrived(at=rig.tick(), text="a secret plan"))
    assert bool(rig.turn.thoughts.placed(0)) is kept


def test_what_was_added_before_the_last_words_is_heard_in_them():
    rig = Rig(replace(SETTINGS, max_steps=1))
    rig.calls_tool("write", '{"path": "a"}')
    rig.feed(Steered(at=rig.tick(), input=InputMessage("in French, please")))
    rig.returns()
    assert rig.last_call.offer_tools is False
    assert "French" in str(rig.turn.items)
    assert rig.turn.steers == ()


def test_what_was_said_before_it_goes_on_to_what_was_added_is_a_text_of_its_own():
    rig = Rig()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("in French, please")))
    rig.says("Hello.")
    rig.says("Bonjour.")
    assert [bubble.text for bubble in rig.view().bubbles] == ["Hello.", "Bonjour."]
    assert kinds(rig) == [BubbleKind.INTERIM, BubbleKind.ANSWER]


def test_what_it_has_said_stands_before_what_was_added_and_the_next_step_has_all_its_tries():
    rig = Rig()
    rig.breaks()
    rig.feed(Steered(at=rig.tick(), input=InputMessage("in French, please")))
    rig.says("Hello.")
    said, added = rig.turn.items[-2:]
    assert said == AssistantItem("Hello.")
    assert "French" in str(added)
    assert (rig.turn.attempts, rig.turn.last_break, dict(rig.turn.chosen)) == (0, None, {})


def test_what_was_promised_is_put_to_the_model_and_only_that_it_was_is_counted_on():
    rig = Rig()
    rig.breaks()
    rig.says("Let me check the file now.")
    assert rig.turn.items[-1] == AssistantItem("Let me check the file now.")
    assert rig.turn.promised
    assert set(rig.turn.chosen) == {(Failure.PROMISED, Remedy.NUDGE)}
    assert rig.last_call.advice is Advice.ACT_NOW
    rig.calls_tool("read")
    assert (rig.turn.promised, dict(rig.turn.chosen)) == ("", {})


def test_what_all_calls_of_a_turn_used_is_added_up():
    rig = Rig()

    def finished(reason: str) -> ReplyFinished:
        return ReplyFinished(
            at=rig.tick(), reason=reason, input_tokens=50, output_tokens=7, cached_tokens=3, reasoning_tokens=2
        )

    rig.begins_call("read", "{}")
    rig.feed(finished("tool_calls"))
    rig.returns()
    rig.text("Hello.")
    rig.feed(finished("stop"))
    turn = rig.turn
    assert (turn.input_tokens, turn.output_tokens, turn.cached_tokens, turn.reasoning_tokens) == (100, 14, 6, 4)


def test_what_broke_a_call_is_in_the_journal_once():
    rig = Rig()
    broke = CallBroke(at=rig.tick(), cause=BreakCause.DROPPED, waited_seconds=3, detail="reset by peer")
    rig.feed(broke)
    (judged,) = [event for event in rig.fed if isinstance(event, FailureJudged)]
    assert judged.detail == "", "the row before it says that"


@pytest.mark.parametrize(
    "cause", [cause for cause, failure in CAUSE_TO_FAILURE.items() if failure is Failure.BEFORE_CONTENT]
)
def test_an_answer_of_nothing_while_it_goes_on_may_mean_that_it_was_whole_and_a_refusal_does_not(cause: BreakCause):
    for status, failure in ((0, Failure.NOTHING_MORE), (503, Failure.BEFORE_CONTENT)):
        rig = Rig()
        rig.text("Once upon a time there was")
        rig.breaks()
        rig.breaks(cause, status=status)
        assert rig.turn.failing is failure


def test_the_seconds_of_a_failure_that_is_over_do_not_count_in_the_next_one():
    rig = Rig()
    rig.breaks()
    assert rig.turn.failed_seconds == 3
    rig.calls_tool("read")
    rig.returns()
    assert rig.turn.failed_seconds == 0
    rig.breaks()
    assert rig.turn.failed_seconds == 3


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_stop_by_forgetting_says_so(*, forgotten: bool):
    rig = Rig()
    rig.text("Once")
    rig.feed(StopRequested(at=rig.tick(), forgotten=forgotten))
    assert isinstance(rig.turn.exit, exits.Stopped)
    assert rig.turn.exit.forgotten == forgotten
