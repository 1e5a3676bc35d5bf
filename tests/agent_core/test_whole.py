"""A whole text whose end was lost is an answer: what a model that is asked to go on and has nothing to add says of it; and what stays unclear."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.failures.leftout import LeftOutKind, Suspect
from agent_core.rules.whole import TextForm, form_of, may_say_nothing_more, says_nothing_more
from agent_core.settings import LadderCounts
from agent_core.turn.effects import AskDone
from agent_core.turn.events import CallBroke, DoneSaid, ReasoningArrived, ReplyFinished, TextArrived
from agent_core.turn.state import Remark, Segment, SegmentKind
from agent_core.turn.transcript import closed_turn_messages
from tests.agent_core.turns import SETTINGS, Rig

WHOLE = "The harbour opens at nine.\n\nBring your ticket and some water."
LINE = "Paris has two million inhabitants."
HALF = "The harbour opens at nine and the ferry lea"
NO_QUESTIONS = replace(SETTINGS, ladder=LadderCounts(promise_question=0))


def answer(rig: Rig) -> str:
    return next(e.visible for e in rig.turn.timeline if isinstance(e, Segment) and e.kind is SegmentKind.ANSWER)


def notice(rig: Rig) -> str:
    assert rig.turn.exit is not None
    told = rig.turn.exit.notice()
    return told.text if told is not None else ""


def cut(rig: Rig, text: str, how: str) -> None:
    """The model says `text`, and what comes then is no good end."""
    rig.text(text)
    if how in {cause.value for cause in BreakCause}:
        rig.breaks(BreakCause(how))
    else:
        rig.finish(how)


CUTS = ["dropped", "stalled", "ended_early", "error_in_stream", "length", "fin", "OTHER", "error"]


@pytest.mark.parametrize(
    "said",
    [
        "",
        "DONE",
        "(nothing to add)",
        "My reply was already complete; there is nothing to add.",
        "END",
        WHOLE,
        WHOLE[-40:],
    ],
)
@pytest.mark.parametrize("how", CUTS)
def test_a_model_that_has_nothing_to_add_to_a_whole_text_has_answered(how: str, said: str) -> None:
    rig = Rig()
    cut(rig, WHOLE, how)
    rig.says(said) if said else rig.finish()
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == WHOLE
    assert closed_turn_messages(rig.turn)[-1]["content"] == WHOLE


@pytest.mark.parametrize("how", CUTS)
def test_a_model_that_only_thinks_then_has_answered_as_well(how: str) -> None:
    rig = Rig()
    cut(rig, WHOLE, how)
    rig.feed(ReasoningArrived(at=rig.tick(), text="It was complete."))
    rig.finish()
    assert rig.code is ExitCode.ANSWERED


@pytest.mark.parametrize("how", ["fin", "ended_early", "dropped", "stalled"])
def test_a_text_that_comes_to_the_same_end_twice_is_whole_however_it_ends(how: str) -> None:
    rig = Rig()
    cut(rig, WHOLE, how)
    cut(rig, WHOLE, how)
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == WHOLE


@pytest.mark.parametrize("text", [HALF, WHOLE + "\n\n", WHOLE + " And", "```python\nprint(1)\n", "First of all,"])
def test_where_the_form_says_otherwise_silence_is_no_proof(text: str) -> None:
    rig = Rig()
    cut(rig, text, "dropped")
    rig.finish()
    assert rig.turn.exit is None
    rig.says("ves at ten.")
    assert rig.code is ExitCode.ANSWERED


def test_a_whole_text_that_promises_is_still_a_promise() -> None:
    rig = Rig()
    cut(rig, "I have read it. I'll write the summary into the file now.", "dropped")
    rig.finish()
    assert rig.turn.exit is None
    assert rig.turn.promised


def test_what_stays_unclear_is_told_so_with_what_had_cut_it() -> None:
    rig = Rig()
    cut(rig, HALF, "dropped")
    while rig.turn.exit is None:
        rig.finish()
    assert rig.code is ExitCode.BROKEN_IN_TEXT
    assert notice(rig).startswith("Whether the reply above is complete is not clear: the connection was lost,")
    assert "cut short" not in notice(rig)


def test_a_whole_text_after_which_nobody_answers_is_told_as_unclear() -> None:
    rig = Rig()
    cut(rig, WHOLE, "dropped")
    while rig.turn.exit is None:
        rig.breaks(BreakCause.NO_CONTENT)
    assert "is not clear: the connection was lost" in notice(rig)


def test_a_half_text_after_which_nobody_answers_is_cut() -> None:
    rig = Rig()
    cut(rig, HALF, "dropped")
    while rig.turn.exit is None:
        rig.breaks(BreakCause.NO_CONTENT)
    assert notice(rig).startswith("The reply above is cut short: the connection was lost")


def test_of_a_text_at_the_limit_the_limit_is_named() -> None:
    rig = Rig()
    cut(rig, HALF, "length")
    while rig.turn.exit is None:
        rig.finish()
    assert rig.code is ExitCode.CUT_BY_LENGTH
    assert "the model reached its output limit" in notice(rig)


@pytest.mark.parametrize("reason", ["tool_calls", "function_call"])
def test_a_text_with_a_reason_of_calls_and_no_call_is_an_answer(reason: str) -> None:
    rig = Rig(settings=NO_QUESTIONS)
    rig.says(WHOLE, reason)
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == WHOLE


def test_the_model_is_asked_once_whether_such_a_text_is_finished() -> None:
    rig = Rig()
    rig.says(WHOLE, "tool_calls")
    assert isinstance(rig.wanted[0], AskDone)
    rig.feed(DoneSaid(at=rig.tick(), finished=None))
    assert rig.code is ExitCode.ANSWERED


@pytest.mark.parametrize("then", ["", LINE, "DONE"])
def test_a_line_that_may_stand_beside_a_call_is_asked_for_again_once(then: str) -> None:
    rig = Rig()
    rig.says(LINE, "tool_calls")
    assert rig.turn.exit is None
    rig.says(then, "tool_calls" if then == LINE else "stop") if then else rig.finish()
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == LINE
    assert [e.visible for e in rig.turn.timeline if isinstance(e, Segment) and e.visible] == [LINE]
    assert str(closed_turn_messages(rig.turn)[-1]["content"]).strip().startswith(LINE)


def test_and_a_call_that_comes_then_is_run() -> None:
    rig = Rig()
    rig.says(LINE, "tool_calls")
    rig.calls_tool("read", text=LINE)
    assert [each.name for each in rig.tools_run] == ["read"]


def test_a_reason_of_calls_with_nothing_at_all_is_an_empty_reply() -> None:
    rig = Rig()
    while rig.turn.exit is None:
        rig.finish("tool_calls")
    assert rig.code is ExitCode.EMPTY_REPLY
    assert "unnamed" not in notice(rig)


def test_of_a_word_in_place_of_going_on_nothing_is_seen_while_it_comes() -> None:
    rig = Rig()
    cut(rig, WHOLE, "dropped")
    for piece in ("D", "ON", "E", "."):
        rig.feed(TextArrived(at=rig.tick(), text=piece))
        assert rig.turn.draft.segment.visible == WHOLE
    rig.feed(TextArrived(at=rig.tick(), text=" is what the sign says. " + "And so on, and on. " * 10))
    assert rig.turn.draft.segment.visible.startswith(WHOLE + "DONE. is what")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("It is so.", TextForm.CLOSED),
        ("**Done.**", TextForm.CLOSED),
        ("She said “yes.”", TextForm.CLOSED),
        ("完成。", TextForm.CLOSED),
        ("क्या यह ठीक है?", TextForm.CLOSED),
        ("```\na\n```", TextForm.CLOSED),
        ("| a | b |\n", TextForm.CLOSED),
        ("Fine 👍", TextForm.CLOSED),
        ("- eggs", TextForm.BARE),
        ("the ferry lea", TextForm.BARE),
        ("is (see below)", TextForm.BARE),
        ("It is so. ", TextForm.OPEN),
        ("It is so.\n\n", TextForm.OPEN),
        ("First of all,", TextForm.OPEN),
        ("As follows:", TextForm.OPEN),
        ("```\na", TextForm.OPEN),
        ("", TextForm.OPEN),
    ],
)  # fmt: skip
def test_forms(text: str, form: TextForm) -> None:
    assert form_of(text) is form


@pytest.mark.parametrize(
    "said",
    [
        "DONE", "done.", "**DONE**", "END", "[END]", "(end of reply)", "Nothing to add.", "That was everything.", "That's all.",
        "There is nothing more to add.", "I have nothing more to add.", "My previous response was already complete.",
        "The reply was complete; nothing was missing.", "Das war alles.", "Meine Antwort war bereits vollständig.", "Rien à ajouter.",
        "没有更多内容了", "以上です。", "No continuation needed.",
    ],
)  # fmt: skip
def test_words_that_say_that_this_was_all(said: str) -> None:
    assert says_nothing_more(said, "It is so.")
    assert all(may_say_nothing_more(said[:n], "It is so.") for n in range(len(said)))


@pytest.mark.parametrize(
    ("said", "before"),
    [
        (" done.", "When this is"), (" complete", "Your order is"), ("That is all there is to it, and more to come.", "It is so."),
        ("Nothing else matters, says the song.", "It is so."), ("He was done. Then he left.", "It is so."), (" all.", "And that's"),
        ("I have nothing more to add to the soup but salt.", "It is so."), ("USA", "I live in the"), (" Done.", "I write it."), ("", "It is so."),
    ],
)  # fmt: skip
def test_words_that_go_on(said: str, before: str) -> None:
    assert not says_nothing_more(said, before)


@given(st.text(max_size=300), st.text(max_size=60))
def test_what_says_that_this_was_all_was_held_back_all_along(said: str, before: str) -> None:
    if says_nothing_more(said, before):
        assert all(may_say_nothing_more(said[:n], before) for n in range(len(said)))


@pytest.mark.parametrize("then", ["", "\u200b\u2060", "\u200b"])
def test_a_text_of_which_nothing_is_seen_is_not_whole(then: str) -> None:
    rig = Rig()
    cut(rig, "\u200b\u2060", "dropped")
    rig.says(then) if then else rig.finish()
    assert rig.turn.exit is None


def test_what_was_left_out_is_not_told_in_the_middle_of_the_text_that_goes_on() -> None:
    rig = Rig()
    cut(rig, HALF, "dropped")
    mine = Suspect("k", LeftOutKind.MESSAGE, "assistant", now=True)
    rig.feed(CallBroke(at=rig.tick(), cause=BreakCause.BAD_REQUEST, status=400, suspects=(mine,)))
    assert rig.last_call.left_out == (mine,)
    rig.text("ves at ten past.")
    assert [type(entry) for entry in rig.turn.timeline] == [Segment, Remark]
    rig.finish()
    assert answer(rig) == HALF + "ves at ten past."


def test_a_reply_in_the_usual_words_of_its_endpoint_is_finished() -> None:
    rig = Rig()
    rig.text(WHOLE)
    rig.feed(ReplyFinished(at=rig.tick(), reason="[usual] fin"))
    assert rig.code is ExitCode.ANSWERED
