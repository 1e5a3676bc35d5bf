"""A reply that is taken for a promise may have been the answer. What was shown is not shown again, and is the answer if nothing was left to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.failures.exits import ExitCode
from agent_core.failures.remedies import Advice, advice_words
from agent_core.rules.promises import SHORT_REPLY_CHARS, PromiseSign, sign_words
from agent_core.rules.promising.done import FEW_CHARS, done_question, read_done, says_done
from agent_core.settings import LadderCounts, ToolFacts
from agent_core.tools.base import EffectClass
from agent_core.turn.effects import AskDone
from agent_core.turn.events import DoneSaid, ReplyJudged, StopRequested, TakenOver, TextArrived
from agent_core.turn.state import Segment, SegmentKind
from agent_core.turn.view import BubbleKind
from tests.agent_core.turns import SETTINGS, Rig

REPORT = "The three files are in place. I'll have the summary ready."
LONG = "Paris has about two million inhabitants within its limits. " * 8 + "I'll go through the rest of it now."
REMINDERS = replace(SETTINGS, tools=(*SETTINGS.tools, ToolFacts("create_reminder", EffectClass.EFFECT)))


def shown(rig: Rig) -> list[str]:
    return [entry.visible for entry in rig.turn.timeline if isinstance(entry, Segment) and entry.visible]


def answer(rig: Rig) -> str:
    return next(e.visible for e in rig.turn.timeline if isinstance(e, Segment) and e.kind is SegmentKind.ANSWER)


@pytest.mark.parametrize("word", ["DONE", "DONE.", " DONE\n"])
def test_a_model_that_had_nothing_left_to_do_has_answered_with_what_it_said_before(word: str) -> None:
    rig = Rig()
    rig.says(REPORT)
    assert rig.last_call.advice is Advice.ACT_NOW
    rig.says(word)
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == REPORT
    assert shown(rig) == [REPORT]


def test_of_the_word_that_says_so_nothing_is_seen_while_it_comes() -> None:
    rig = Rig()
    rig.says(REPORT)
    for piece in ("D", "ON", "E", "."):
        rig.feed(TextArrived(at=rig.tick(), text=piece))
        assert shown(rig) == [REPORT]
    rig.feed(TextArrived(at=rig.tick(), text=" Here it is."))
    assert shown(rig) == [REPORT, "DONE. Here it is."]


@pytest.mark.parametrize(
    "words", ["That was all.", "Done!", "Fertig.", "C'est tout.", "以上です。", "完成了。", "Nothing else to do."]
)
def test_other_words_for_it_count_as_well(words: str) -> None:
    rig = Rig()
    rig.says(REPORT)
    rig.says(words)
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == REPORT


def test_a_long_answer_that_is_said_again_is_shown_once_and_not_denied() -> None:
    assert len(LONG) > SHORT_REPLY_CHARS
    rig = Rig()
    rig.says(LONG)
    rig.says(LONG)
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == LONG
    assert shown(rig) == [LONG]


def test_a_mere_announcement_that_is_said_again_is_still_no_answer() -> None:
    rig = Rig()
    rig.says("Now dispatching task 5:")
    rig.says("Now dispatching task 5:")
    assert rig.code is ExitCode.PROMISED_WITHOUT_ACTING
    assert shown(rig) == ["Now dispatching task 5:"]


def test_something_new_after_a_doubt_is_the_answer() -> None:
    rig = Rig()
    rig.says(REPORT)
    rig.says("Here is the summary: all is well.")
    assert answer(rig) == "Here is the summary: all is well."


def test_later_turns_are_not_told_the_word() -> None:
    rig = Rig()
    rig.says(REPORT)
    rig.says("DONE")
    assert "DONE" not in str(rig.turn.items)


def test_a_reminder_that_is_promised_and_not_set_is_a_promise() -> None:
    rig = Rig(REMINDERS)
    rig.says("Sure! I'll remind you at 5 to call the bank.")
    assert rig.last_call.advice is Advice.ACT_NOW
    rig.says("I can't wake up later, so please set an alarm yourself.")
    assert rig.code is ExitCode.ANSWERED


def test_a_reminder_that_a_tool_has_set_is_an_answer() -> None:
    rig = Rig(REMINDERS)
    rig.calls_tool("create_reminder", '{"at": "17:00"}')
    rig.returns()
    rig.says("Sure! I'll remind you at 5 to call the bank.")
    assert rig.code is ExitCode.ANSWERED


def test_the_end_of_a_doubt_leaves_one_bubble_and_no_notice() -> None:
    rig = Rig()
    rig.says(REPORT)
    rig.says("DONE")
    kinds = [bubble.kind for bubble in rig.view().bubbles]
    assert kinds.count(BubbleKind.ANSWER) == 1
    assert BubbleKind.NOTICE not in kinds


def test_a_model_is_told_the_word_that_says_that_nothing_is_left() -> None:
    assert "the one word DONE" in advice_words(Advice.ACT_NOW, "I'll check it.")


UNCLEAR = "The rest of it…"


def test_a_reply_that_may_only_promise_something_is_asked_about_and_nobody_sees_it() -> None:
    rig = Rig()
    rig.says(UNCLEAR)
    assert isinstance(rig.wanted[-1], AskDone)
    assert rig.wanted[-1].text == UNCLEAR
    assert rig.turn.exit is None
    assert shown(rig) == [UNCLEAR]
    assert all(bubble.text in ("", UNCLEAR) for bubble in rig.view().bubbles)


@pytest.mark.parametrize("finished", [True, None])
def test_a_reply_that_is_finished_or_of_which_nothing_is_said_is_the_answer(finished: bool | None) -> None:
    rig = Rig()
    rig.says(UNCLEAR)
    rig.feed(DoneSaid(at=rig.tick(), finished=finished, input_tokens=90, output_tokens=3))
    assert rig.code is ExitCode.ANSWERED
    assert answer(rig) == UNCLEAR
    assert (rig.turn.input_tokens, rig.turn.output_tokens) == (90, 3)


def test_a_reply_that_the_model_says_is_not_finished_is_a_promise_and_is_asked_about_once_a_turn() -> None:
    rig = Rig()
    rig.says(UNCLEAR)
    rig.feed(DoneSaid(at=rig.tick(), finished=False))
    assert rig.last_call.advice is Advice.ACT_NOW
    rig.says("And the rest of that…")
    assert rig.code is ExitCode.ANSWERED


def test_the_question_can_be_switched_off() -> None:
    rig = Rig(replace(SETTINGS, ladder=LadderCounts(promise_question=0)))
    rig.says(UNCLEAR)
    assert rig.code is ExitCode.ANSWERED


def test_a_stop_while_the_model_is_asked_ends_the_turn_and_what_it_says_then_is_late() -> None:
    rig = Rig()
    rig.says(UNCLEAR)
    rig.feed(StopRequested(at=rig.tick()))
    assert rig.code is ExitCode.STOPPED
    rig.feed(DoneSaid(at=rig.tick(), finished=False))
    assert rig.code is ExitCode.STOPPED


def test_a_restart_while_the_model_is_asked_asks_again() -> None:
    rig = Rig()
    rig.says(UNCLEAR)
    rig.feed(TakenOver(at=rig.tick(), epoch=2))
    assert isinstance(rig.wanted[-1], AskDone)
    rig.feed(DoneSaid(at=rig.tick(), finished=True))
    assert rig.code is ExitCode.ANSWERED


def test_what_the_model_says_is_one_word_or_it_is_nothing() -> None:
    assert read_done("FINISHED") is True
    assert read_done("**Announces.**") is False
    assert read_done("I think it's finished.") is True
    assert read_done("FINISHED or ANNOUNCES") is None
    assert read_done("") is None
    assert "The rest of it…" in done_question(UNCLEAR)


@pytest.mark.parametrize(
    ("text", "sign", "words"),
    [
        ("Now dispatching task 5:", PromiseSign.ACT, "says what the model does next"),
        ("Sada provjeravam datoteku:", PromiseSign.LEADS_ON, "ended in a colon"),
        ("One moment please.", PromiseSign.PATIENCE, "asking for patience"),
    ],
)
def test_by_what_a_reply_was_taken_for_a_promise_stands_in_the_journal_and_is_told(
    text: str, sign: PromiseSign, words: str
) -> None:
    rig = Rig()
    rig.says(text)
    judged = [event for event in rig.fed if isinstance(event, ReplyJudged)]
    assert [event.sign for event in judged] == [sign]
    assert words in sign_words(judged[0].sign)


def test_words_that_say_more_than_done_are_an_answer_of_their_own() -> None:
    assert says_done("Done.")
    assert says_done("**All done!** ✅")
    assert not says_done("Done: the file has 12 lines.")
    assert not says_done("")
    assert not says_done("done " * FEW_CHARS)
