"""A turn decided again from its journal: what a driver wrote agrees, what was changed does not, and other settings part where they matter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.journal.replay import DECIDED, Mismatch, parting, replay
from agent_core.journal.replaywords import difference_words, lines_of, parting_words, verdict
from agent_core.journal.rows import merged
from agent_core.machine.turn import Turn
from agent_core.settings import GuardCounts, LadderCounts, Route
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import CallModel, EndTurn
from agent_core.turn.events import (
    CallBroke,
    DeadlinePassed,
    DrainEnded,
    DriverFailed,
    Event,
    ReasoningArrived,
    RemedyChosen,
    RemedyJudged,
    ReplyFinished,
    Steered,
    StopRequested,
    Superseded,
    TakenOver,
    TextArrived,
    ToolArgumentsArrived,
    ToolStarted,
    TurnEnded,
    TurnLeft,
    WaitEnded,
)
from tests import examples
from tests.agent_core.journals import Writer, journals, rows_of
from tests.agent_core.turns import SETTINGS, Rig
from tests.examples import MANY

BASE = replace(SETTINGS, routes=(Route("m1", "h", "k1"), Route("m2", "h2", "k2")), max_steps=5)


@MANY
@given(journals(BASE))
def test_what_a_driver_wrote_replays_without_a_difference(writer: Writer):
    found = replay(writer.rows())
    assert found.differences == [], [difference_words(one) for one in found.differences]
    assert found.turn.exit == writer.turn.exit
    assert found.ended
    assert found.decisions == sum(isinstance(event, DECIDED) for event in writer.events)
    assert verdict(found) == "The replay agrees with what was recorded."


@MANY
@given(journals(BASE, ended=False))
def test_a_turn_that_is_still_open_replays_too(writer: Writer):
    found = replay(writer.rows())
    assert found.differences == []
    assert found.turn.exit == writer.turn.exit


@MANY
@given(journals(BASE), st.data())
def test_an_event_that_was_taken_out_is_found_wherever_a_decision_rests_on_it(writer: Writer, data: st.DataObject):
    events = merged(writer.events)
    where = data.draw(st.integers(1, len(events) - 1))
    gone, rest = events[where], [*events[:where], *events[where + 1 :]]
    differs = bool(replay(rows_of(rest)).differences)
    match gone:
        case RemedyChosen() | RemedyJudged():
            assert differs or _from_a_take_over(events, where)
        case ReplyFinished() | CallBroke():
            assert differs, "an end of a call was taken out, and nobody noticed"
        case WaitEnded():
            assert differs or _over_anyway(events, where), "an end of a pause was taken out, and nobody noticed"
        case _:
            pass
    if _decisions(events) != _decisions(rest) and not isinstance(gone, TakenOver):
        assert differs, "without this event the machine decides otherwise, and nobody noticed"


def _over_anyway(events: list[Event], where: int) -> bool:
    """What came next ends or leaves a turn that pauses as well as one that calls: nothing rests on the pause's end."""
    following = (event for event in events[where + 1 :] if not isinstance(event, RemedyChosen | RemedyJudged | Steered))
    return isinstance(next(following), _ENDS)


_ENDS = DeadlinePassed | StopRequested | Superseded | DriverFailed | DrainEnded | TurnLeft | TakenOver | TurnEnded


def _from_a_take_over(events: list[Event], where: int) -> bool:
    """What a take-over decided may be missing: that process may have died before it wrote."""
    led = [e for e in events[:where] if not isinstance(e, RemedyChosen | RemedyJudged | ToolStarted | Steered)]
    return isinstance(led[-1], TakenOver)


def _decisions(events: list[Event]) -> tuple[object, ...]:
    """The end and the remedies as the machine makes them, whatever was recorded."""
    turn = Turn()
    for event in events:
        if not isinstance(event, TurnEnded):
            turn.feed(event)
    return (turn.exit, tuple(turn.remedies))


@MANY
@given(journals(BASE), st.sampled_from(["exit", "answer", "remedy", "cause", "row"]))
def test_a_changed_row_is_found(writer: Writer, what: str):
    events = merged(writer.events)
    rows = rows_of(events)
    match what:
        case "exit":
            ended = events[-1]
            assert isinstance(ended, TurnEnded)
            other = replace(ended.exit, steps=ended.exit.steps + 1)
            rows = rows_of([*events[:-1], replace(ended, exit=other)])
        case "answer":
            ended = events[-1]
            assert isinstance(ended, TurnEnded)
            rows = rows_of([*events[:-1], replace(ended, answer=f"{ended.answer}x")])
        case "remedy":
            at = next((i for i, event in enumerate(events) if isinstance(event, RemedyChosen)), None)
            if at is None:
                return
            chosen = events[at]
            assert isinstance(chosen, RemedyChosen)
            rows = rows_of([*events[:at], replace(chosen, number=chosen.number + 1), *events[at + 1 :]])
        case "cause":
            at = next((i for i, event in enumerate(events) if isinstance(event, RemedyChosen) and event.cause), None)
            broke = next((i for i, event in enumerate(events[:at]) if isinstance(event, CallBroke)), None)
            if at is None or broke is None:
                return
            event = events[broke]
            assert isinstance(event, CallBroke)
            other = BreakCause.DROPPED if event.cause is not BreakCause.DROPPED else BreakCause.STALLED
            rows = rows_of([*events[:broke], replace(event, cause=other), *events[broke + 1 :]])
        case _:
            rows = [*rows[:1], *rows[2:]]
    found = replay(rows)
    assert found.differences
    assert verdict(found).startswith("The replay DIFFERS")
    assert all(difference_words(one) for one in found.differences)


def test_a_row_that_cannot_be_read_is_said_and_nothing_is_guessed():
    rows = rows_of(Rig().fed)
    found = replay([*rows, replace(rows[0], seq=1, kind="FutureEvent")])
    assert [one.about for one in found.differences] == [Mismatch.ROWS]
    assert "FutureEvent" in difference_words(found.differences[0])


def test_a_row_whose_time_was_changed_is_found():
    rows = rows_of(Rig().fed)
    assert replay([replace(rows[0], at=5)]).differences[0].about is Mismatch.ROWS


def test_text_that_came_while_nobody_called_the_model_is_out_of_place():
    rig = Rig()
    rig.calls_tool("read")
    found = replay(rows_of([*rig.fed, TextArrived(at=2_000, text="x")]))
    assert [one.about for one in found.differences] == [Mismatch.PLACE]


def test_a_failure_of_the_gateway_itself_is_no_difference_but_is_said():
    rig = Rig()
    rig.text("half")
    ended = TurnEnded(at=2_000, exit=exits.InternalError(reference="err_1"))
    found = replay(rows_of([*rig.fed, ended]))
    assert found.differences == []
    assert "err_1" in found.notes[0]
    assert verdict(found) == "As far as it can be compared, the replay agrees."


# ---------------------------------------------------------------------- other settings


@MANY
@given(journals(BASE))
def test_the_same_settings_never_part(writer: Writer):
    found = replay(writer.rows())
    assert parting(found.moments, BASE) is None


@MANY
@given(journals(BASE), st.sampled_from(["max_steps", "empty_retry", "retry", "failing", "nudge"]))
def test_up_to_the_parting_both_decide_alike_and_there_they_differ(writer: Writer, key: str):
    changed = {
        "max_steps": replace(BASE, max_steps=1),
        "empty_retry": replace(BASE, ladder=LadderCounts(empty_retry=0)),
        "retry": replace(BASE, ladder=LadderCounts(retry=0)),
        "failing": replace(BASE, guards=GuardCounts(failing_tool_warn=1, failing_tool_stop=2)),
        "nudge": replace(BASE, ladder=LadderCounts(promise_nudge=0)),
    }[key]
    found = replay(writer.rows())
    parted = parting(found.moments, changed)
    one, other = Turn(), Turn()
    for moment in found.moments:
        if isinstance(moment.event, DECIDED):
            continue
        event = moment.event
        mine = one.feed(event)
        theirs = other.feed(replace(event, settings=changed) if moment.seq == 0 else event)
        if parted is not None and moment.seq == parted.seq:
            assert mine != theirs or one.items != other.items
            words = parting_words(parted, 1_000)
            assert len(words) == 4
            assert ("the recorded turn was over" in words[3]) is any(
                isinstance(one, EndTurn) for one in parted.recorded
            )
            return
        assert mine == theirs
        assert one.items == other.items
    assert parted is None


def test_a_lower_step_limit_parts_where_it_would_have_been_reached():
    writer = Rig(BASE)
    for _ in range(3):
        writer.calls_tool("read", f'{{"n": {writer.now}}}')
        writer.returns(f"result {writer.now}")
    writer.says("Done.")
    found = replay(rows_of(writer.fed))
    parted = parting(found.moments, replace(BASE, max_steps=2))
    assert parted is not None
    recorded, other = parted.recorded[-1], parted.other[-1]
    assert isinstance(recorded, CallModel)
    assert isinstance(other, CallModel)
    assert (recorded.offer_tools, other.offer_tools) == (True, False)
    words = parting_words(parted, 1_000)
    assert "without tools" in words[2]
    assert "without tools" not in words[1]


def test_a_warning_that_only_the_model_would_read_is_a_parting_too():
    rig = Rig(BASE)
    for _ in range(2):
        rig.calls_tool("read")
        rig.returns("same", status=ToolStatus.FAILED)
    found = replay(rows_of(rig.fed))
    parted = parting(found.moments, replace(BASE, guards=GuardCounts(repeating_failing_warn=3)))
    assert parted is not None
    assert "failed 2 times" in parted.told[0]
    assert "failed" not in parted.told[1]
    assert "the model is told: nothing" in parting_words(parted, 1_000)[2]


def test_a_shorter_turn_ends_before_the_first_event_that_came_too_late():
    rig = Rig(BASE)
    rig.calls_tool("read")
    rig.tick(20_000)
    rig.returns("late")
    found = replay(rows_of(rig.fed))
    parted = parting(found.moments, replace(BASE, turn_seconds=10))
    assert parted is not None
    ended = parted.other[-1]
    assert isinstance(ended, EndTurn)
    assert ended.exit.code is ExitCode.TIME_LIMIT
    words = parting_words(parted, 1_000)
    assert "would have been up" in words[0]
    assert "The rows after it tell what followed from the recorded decision" in words[3]


def test_a_longer_turn_does_not_end_at_the_recorded_deadline():
    rig = Rig(replace(BASE, turn_seconds=10))
    rig.feed(DeadlinePassed(at=11_000))
    found = replay(rows_of([*rig.fed, TurnEnded(at=11_000, exit=rig.exit)]))
    assert found.differences == []
    parted = parting(found.moments, replace(BASE, turn_seconds=20))
    assert parted is not None
    assert parted.other == ()
    words = parting_words(parted, 1_000)
    assert "would not have been up" in words[0]
    assert "goes on" in words[2]
    assert "There the recorded turn was over" in words[3]


# ---------------------------------------------------------------------- words


@examples.MANY
@given(journals(BASE))
def test_the_timeline_has_every_row_and_no_words_of_anybody(writer: Writer):
    found = replay(writer.rows())
    shown = "\n".join(lines_of(found, show_text=False, most=10_000))
    for secret in ("Hello", "Ann", "dispatching", "Größe", "检查"):
        assert secret not in shown
    assert "began" in shown


def test_text_is_shown_when_it_is_asked_for():
    rig = Rig(BASE)
    rig.feed(ReasoningArrived(at=rig.tick(), text="Hm."))
    rig.begins_call("write", "")
    rig.feed(ToolArgumentsArrived(at=rig.tick(), index=0, text='{"path": "a.txt"}'))
    rig.finish("tool_calls")
    shown = "\n".join(lines_of(replay(rows_of(rig.fed)), show_text=True, most=100))
    assert "Hm." in shown
    assert "a.txt" in shown
    assert "runs write" in shown


def test_a_long_timeline_keeps_its_beginning_and_its_end():
    rig = Rig(replace(BASE, max_steps=100))
    for number in range(30):
        rig.calls_tool("read", f'{{"n": {number}}}')
        rig.returns(f"result {number}")
    lines = lines_of(replay(rows_of(rig.fed)), show_text=False, most=20)
    assert len(lines) == 21
    assert "more" in lines[10]


def test_a_hole_in_the_numbers_of_the_rows_is_found_and_said_once():
    rig = Rig()
    rig.says("Hello.")
    whole = rows_of(rig.fed)
    assert replay(whole).differences == replay(whole[:1]).differences == []
    later = [replace(row, seq=row.seq + (row.seq > 0)) for row in whole]
    found = [one for one in replay(later).differences if one.about is Mismatch.ROWS]
    assert [(one.seq, one.recorded, one.replayed) for one in found] == [(2, "row 2", "row 1")]


@pytest.mark.parametrize("by", [-1, 1])
def test_a_row_whose_time_is_not_that_of_its_event_is_found(by: int):
    rig = Rig()
    rig.text("Hello.")
    first, *others = rows_of(rig.fed)
    found = replay([replace(first, at=first.at + by), *others]).differences
    assert [one.about for one in found] == [Mismatch.ROWS]
