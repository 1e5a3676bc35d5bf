"""The story of any turn is short, ends as the turn did, and says nobody's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC

import pytest
from hypothesis import given

from agent_core.causes import BreakCause
from agent_core.explain.missing import NothingStored, missing_lines
from agent_core.explain.why import (
    MOST_LINES,
    Asked,
    Sentence,
    StoryCase,
    StoryEnd,
    ending_of,
    fitted,
    story,
    story_of,
    told,
    turn_lines,
    unquoted,
)
from agent_core.failures.exits import ExitCode
from agent_core.journal.salvage import Ran, ran
from agent_core.limits.retention import DAY_MS
from agent_core.messages import InputMessage
from agent_core.settings import Route
from agent_core.store.deliveries.rows import AdapterStateRow, DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import InboxState
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import AskApproval, RunTool
from agent_core.turn.events import (
    ApprovalAnswered,
    Event,
    Steered,
    TakenOver,
    TextTakenBack,
    ToolCallNamed,
    ToolReturned,
    ToolsRefused,
    ToolStarted,
    TurnEnded,
    TurnOpened,
    Verdict,
)
from agent_core.turn.state import Phase
from tests.agent_core.journals import Writer, journals
from tests.agent_core.turns import SETTINGS, Rig
from tests.examples import MANY

BASE = replace(SETTINGS, routes=(Route("m1", "h", "k1"), Route("m2", "h2", "k2")), max_steps=5)


@MANY
@given(journals(BASE))
def test_the_story_of_any_turn_is_short_in_order_and_ends_with_its_exit(writer: Writer):
    events = [replace(e, surface="api") if isinstance(e, TurnOpened) else e for e in writer.events]
    assert len(story(events)) <= MOST_LINES
    lines = turn_lines(events, show_text=False)
    assert [line.at for line in lines] == sorted(line.at for line in lines)
    ended = next(event for event in events if isinstance(event, TurnEnded))
    frames = [line.words for line in lines if line.frame]
    assert "The turn began" in frames[0]
    code = ended.exit.code
    clean = {ExitCode.ANSWERED: "was answered", ExitCode.HANDED_TO_CLIENT: "handed to the client"}
    assert clean.get(code, f"ended without an answer: {code.value.replace('_', ' ')}") in frames[-1]


@MANY
@given(journals(BASE))
def test_words_do_not_change_a_story_that_does_not_show_them(writer: Writer):
    """Whatever was said, the story is the same: it depends on when things came, and on how they ended."""
    changed = [replace(e, text="SECRET") if hasattr(e, "text") else e for e in writer.events]
    changed = [replace(e, detail="SECRET") if hasattr(e, "detail") else e for e in changed]
    own = [line.words for line in turn_lines(writer.events, show_text=False)]
    assert [line.words for line in turn_lines(changed, show_text=False)] == own


def test_what_a_platform_quotes_is_left_out():
    assert unquoted('it cannot read "at noon" and "x"', show_text=False) == "it cannot read “…”"
    assert unquoted("it says `secret`", show_text=False) == "it says “…”"
    assert unquoted('it cannot read "at noon"', show_text=True) == 'it cannot read "at noon"'


def row(state: DeliveryState, **more: object) -> DeliveryRow:
    made = DeliveryRow("telegram/1/7/", "t_1", "text-1", 0, 1, b"{}", "h", "k", state=state, at=5_000)
    return replace(made, **more)


def test_every_state_of_a_delivery_is_told():
    told = {
        DeliveryState.SENT: "Delivered to telegram/1/7/ as message 9",
        DeliveryState.WANTED: "Not delivered to telegram/1/7/ yet (text-1, part 1), after 3 failed calls (the last: no line); the next try",
        DeliveryState.SENDING: "It is being sent",
        DeliveryState.UNKNOWN: "not known yet whether it came through",
        DeliveryState.FAILED: "Refused for good by telegram/1/7/ (text-1, part 1): no line",
    }
    for state, words in told.items():
        pid = "9" if state is DeliveryState.SENT else None
        one = row(state, platform_id=pid, failures=3, trouble="no line", retry_at=70_000)
        (line,) = story_of(StoryCase(now=10_000, deliveries=(one,)))
        assert words in line.words
    assert story_of(StoryCase(now=10_000, deliveries=(row(DeliveryState.SKIPPED),))) == []


def test_what_waits_says_that_the_adapter_is_down():
    down = AdapterStateRow("telegram/1", 1_000, "down", "No connection.")
    lines = story_of(StoryCase(now=10_000, deliveries=(row(DeliveryState.WANTED),), adapters=(down,)))
    assert any("The adapter telegram/1 was down from then on: No connection." in line.words for line in lines)


def test_many_parts_are_one_line():
    rows = tuple(row(DeliveryState.SENT, part=n, platform_id=str(n)) for n in range(40))
    (line,) = story_of(StoryCase(now=10_000, deliveries=rows))
    assert "40 parts were delivered to telegram/1/7/ (the first is the platform's message 0, the last 39)" in line.words


def test_a_missing_message_is_told_by_the_state_at_its_time():
    def verdict(*rows: AdapterStateRow) -> str:
        missing = NothingStored(at=5_000, since=0, until=9_000, where="telegram/7", adapters=rows, starts=())
        lines = missing_lines(missing, show_text=False)
        assert all(isinstance(line, Sentence) for line in lines)
        return next(line.words for line in lines if line.words.startswith("No message"))

    up, down = AdapterStateRow("a", 1_000, "up"), AdapterStateRow("a", 4_000, "down")
    assert "so it cannot have come" in verdict(up, down)
    assert "yet in trouble around then" in verdict(down, replace(up, at=4_500))
    assert "it was not meant for the bot" in verdict(up)
    assert "may not have been configured" in verdict()


def _numbering_anew() -> list[Event]:
    """A turn whose provider calls the call of each reply alike; its process dies while the second one runs."""
    rig = Rig(BASE)
    for name in ("read", "send"):
        rig.feed(ToolCallNamed(at=rig.tick(), index=0, call="call_0", name=name))
        (*_, wanted) = rig.finish("tool_calls")
        assert isinstance(wanted, RunTool)
        rig.feed(ToolStarted(at=rig.tick(), call=wanted.call))
        if name == "read":
            rig.feed(ToolReturned(at=rig.tick(), call=wanted.call, status=ToolStatus.OK, text="done"))
    return rig.fed


def test_of_an_open_turn_is_told_what_has_not_come_back_and_since_when():
    events = _numbering_anew()

    def last(count: int) -> str:
        return turn_lines(events[:count], show_text=False, now=events[count - 1].at + 75_000)[-1].words

    begun = [place for place, event in enumerate(events, 1) if isinstance(event, ToolStarted)]
    back = next(place for place, event in enumerate(events, 1) if isinstance(event, ToolReturned))
    assert [last(place) for place in begun] == [
        f"{name} was begun 75 s ago, and has not come back yet." for name in ("read", "send")
    ]
    assert last(1) == last(back) == "The model was asked 75 s ago, and its reply is not over yet."
    assert all(isinstance(event, TurnOpened | ToolReturned) for event in (events[0], events[back - 1]))


def _open_turns() -> list[Rig]:
    """Turns that are open, each at another place."""
    rigs: list[Rig] = []

    def at() -> Rig:
        rigs.append(Rig())
        return rigs[-1]

    at().breaks(BreakCause.STALLED)
    broken = at()
    broken.text("Once upon")
    broken.breaks(BreakCause.DROPPED)
    at().says("Let me look at the file now:")
    looped = at()
    for _ in range(2):
        looped.calls_tool("read")
        looped.returns("the same")
    denied = at()
    (wanted,) = denied.calls_tool("danger")
    assert isinstance(wanted, AskApproval)
    denied.feed(ApprovalAnswered(at=denied.tick(), call=wanted.call, verdict=Verdict.DENIED))
    large = at()
    large.breaks(BreakCause.CONTEXT_OVERFLOW)
    large.compacts()
    added = at()
    added.feed(Steered(at=added.tick(), input=InputMessage("more")))
    toolless = at()
    toolless.feed(ToolsRefused(at=toolless.tick()))
    thought = at()
    thought.text("hm")
    thought.feed(TextTakenBack(at=thought.tick()))
    asked = at()
    asked.calls_tool("danger")
    asked.feed(Steered(at=asked.tick(), input=InputMessage("well?")))
    at().breaks(BreakCause.CONTEXT_OVERFLOW)
    return rigs


def test_of_an_open_turn_it_is_told_that_the_model_is_asked_wherever_it_is_and_nowhere_else():
    phases: set[Phase] = set()
    for rig in _open_turns():
        phases.add(rig.turn.phase)
        said = turn_lines(rig.fed, show_text=False, now=rig.tick())[-1].words
        told = said.startswith("The model was asked") and said.endswith("its reply is not over yet.")
        assert told == (rig.turn.phase is Phase.CALLING), [event.kind() for event in rig.fed]
    assert {Phase.CALLING, Phase.ACTING, Phase.COMPACTING} == phases


def test_what_ran_in_a_process_that_is_dead_is_not_told_as_running():
    events = _numbering_anew()
    lines = turn_lines([*events, TakenOver(at=events[-1].at + 5, epoch=2)], show_text=False, now=events[-1].at + 75_000)
    assert "It is not known whether this was done: send." in lines[-1].words


def test_a_call_has_run_since_it_was_begun_however_often_it_has_asked_somebody_since():
    events = _numbering_anew()
    begun = [event for event in events if isinstance(event, ToolStarted)][-1]
    asked = [replace(begun, at=begun.at + later, intention={}) for later in (30_000, 60_000)]
    said = turn_lines([*events, *asked], show_text=False, now=begun.at + 75_000)[-1].words
    assert said == "send was begun 75 s ago, and has not come back yet."


def test_a_call_is_called_by_its_tool_where_a_provider_numbers_each_replys_calls_anew():
    events = _numbering_anew()
    words = [line.words for line in turn_lines([*events, TakenOver(at=9_000, epoch=2)], show_text=False)]
    assert any(line.startswith("read: done") for line in words), words
    assert "It is not known whether this was done: send." in words[-1], words
    assert ran(events) == Ran(("read",), ("send",))


def turn_row(turn: str, state: TurnState) -> TurnRow:
    return TurnRow(turn, "s", 1, state, None if state is TurnState.OPEN else "answered", 1_000, None, 90_000)


@pytest.mark.parametrize(
    ("before", "ahead", "words"),
    [
        ((), 0, "and nothing runs in its conversation"),
        ((turn_row("t_over", TurnState.CLOSED),), 0, "and nothing runs in its conversation"),
        ((turn_row("t_runs", TurnState.OPEN),), 0, "behind the turn t_runs, which has been running for 59 s"),
        ((turn_row("t_runs", TurnState.OPEN), turn_row("t_over", TurnState.CLOSED)), 1, "behind an earlier message and the turn t_runs"),
        ((), 2, "behind 2 earlier messages"),
    ],
)  # fmt: skip
def test_what_waits_waits_behind_what_is_before_it_and_goes_on(before: Sequence[TurnRow], ahead: int, words: str):
    asked = Asked(number=7, key="k", where="a chat", lane="normal", state=InboxState.NEW, at=30_000)
    case = StoryCase(now=60_000, messages=(asked,), about=7, before=before, ahead=ahead)
    assert ending_of(case) is StoryEnd.WAITING
    assert any(f"It has waited for 30 s, {words}" in one.words for one in story_of(case))


def test_how_something_was_shown_is_told_only_of_a_turn_whose_journal_is_kept():
    """What belonged to somebody who was forgotten names its platform alone, as what comes by the API does, and has no deliveries any more."""
    asked = Asked(number=7, key="k", where="telegram", lane="normal", state=InboxState.DONE, at=30_000)
    gone = StoryCase(now=60_000, messages=(asked,), about=7, turn=turn_row("t_over", TurnState.CLOSED))
    kept = replace(gone, events=_numbering_anew())
    shown = [any("It was shown on telegram" in one.words for one in story_of(case)) for case in (gone, kept)]
    assert shown == [False, True]


def test_a_line_of_another_day_says_which():
    lines = [Sentence(at, "x") for at in (DAY_MS - 1, DAY_MS, 400 * DAY_MS)]
    head, *told_ = told("Head.", lines, UTC)
    assert head == "Head. Times are UTC, 1970-01-01."
    assert told_ == ["23:59:59.9  x", "01-02 00:00:00.0  x", "02-05 00:00:00.0  x"]


@pytest.mark.parametrize(("count", "frames"), [(5, 0), (6, 0), (9, 1), (20, 3), (20, 12), (40, 40)])
def test_a_story_that_is_too_long_keeps_its_ends_and_says_how_much_is_left_out(count: int, frames: int):
    """The beginning and the end above all; a frame before anything else."""
    step = count // frames if frames else count + 1
    lines = [Sentence(n, str(n), frame=frames > 0 and n % step == 0 and n // step < frames) for n in range(count)]
    shown = fitted(lines, 6)
    assert len(shown) <= 6
    kept = [one for one in shown if "more event" not in one.words]
    said = [one.words for one in shown if "more event" in one.words]
    assert said == ([f"… {count - len(kept)} more events …"] if count > 6 else [])
    assert [one.at for one in shown] == sorted(one.at for one in shown)
    framed = [one for one in lines if one.frame]
    if len(framed) <= 5:
        assert all(one in kept for one in framed)
    else:
        assert {framed[0], framed[-1]} <= set(kept)
    if count > 6:
        assert lines[0] in kept
        assert lines[-1] in kept or (lines[-1].frame is False and len(framed) >= 5)


def test_what_the_gateway_says_by_itself_is_told_as_nobodys_command():
    asked = Asked(
        number=4, key="operators:1", where="toy/1", lane="command", state=InboxState.DONE, at=1_000, command="post"
    )
    told = " ".join(line.words for line in story_of(StoryCase(now=10_000, messages=(asked,), about=4)))
    assert "had something to say in toy/1" in told
    assert "command" not in told
