"""The laws of the turn machine, for any interleaving of events, any cutting of a stream, any journal."""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.journal.rows import decode, encode, fold, merged, recorded
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.machine.turn import Turn
from agent_core.messages import InputMessage
from agent_core.settings import Route
from agent_core.tools.base import EffectClass, ToolStatus
from agent_core.turn.effects import AskApproval, AskDone, CallModel, Compact, Effect, EndTurn, RunTool, Wait
from agent_core.turn.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    DrainEnded,
    DriverFailed,
    Event,
    ReasoningArrived,
    Refusal,
    ReplyFinished,
    SpendRefused,
    Steered,
    StopRequested,
    Superseded,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    Verdict,
    WaitEnded,
)
from agent_core.turn.transcript import closed_turn_messages, problems, repaired, request_messages
from agent_core.turn.view import BubbleKind, view
from tests.agent_core.turns import SETTINGS, opened
from tests.examples import MANY

ROUTES = (Route("m1", "h", "k1"), Route("m1", "h", "k2"), Route("m2", "h2", "k3"))
BASE = replace(SETTINGS, routes=ROUTES, max_steps=6)
EFFECTS = {tool.name: tool.effect for tool in BASE.tools}

SPEND = Spend(budget=Budget.DAY, measure=Measure.TOKENS, limit=100, used=120)
texts = st.sampled_from(["a", "Hello ", "world. ", "\n", "Now dispatching task 5:", "x" * 30, "é😀"])
names = st.sampled_from(["read", "write", "send", "todo", "danger", "nonsense"])
calls = st.sampled_from([f"c{n}" for n in range(4)])
arguments = st.sampled_from(["{}", '{"a": 1}', '{"a": "cut', "", "not json", '"', "}"])
reasons = st.sampled_from(["stop", "tool_calls", "length", "content_filter", "error", "eos", ""])
at = st.integers(1_000, 60_000)
paid = st.integers(0, 9)


def _events() -> st.SearchStrategy[Event]:
    return st.one_of(
        st.builds(TextArrived, at=at, text=texts),
        st.builds(ReasoningArrived, at=at, text=texts),
        st.builds(TextTakenBack, at=at),
        st.builds(ToolCallNamed, at=at, index=st.integers(0, 3), call=calls, name=names),
        st.builds(ToolArgumentsArrived, at=at, index=st.integers(0, 3), text=arguments),
        st.builds(ToolCallCut, at=at, name=names),
        st.builds(ReplyFinished, at=at, reason=reasons, input_tokens=paid, output_tokens=paid),
        st.builds(
            CallBroke,
            at=at,
            cause=st.sampled_from(list(BreakCause)),
            status=st.sampled_from([0, 429, 500]),
            retry_after_seconds=st.sampled_from([0.0, 5.0, 600.0]),
            waited_seconds=st.sampled_from([0.0, 3.0]),
            input_tokens=paid,
            output_tokens=paid,
        ),
        st.builds(SpendRefused, at=at, spend=st.just(SPEND)),
        st.builds(WaitEnded, at=at),
        st.builds(ToolStarted, at=at, call=calls),
        st.builds(
            ToolReturned,
            at=at,
            call=calls,
            status=st.sampled_from(list(ToolStatus)),
            text=texts,
            refusal=st.sampled_from(list(Refusal)),
        ),
        st.builds(ApprovalAnswered, at=at, call=calls, verdict=st.sampled_from(list(Verdict))),
        st.builds(Steered, at=at, input=st.just(InputMessage("more"))),
        st.builds(
            DoneSaid, at=at, finished=st.sampled_from([True, False, None]), input_tokens=paid, output_tokens=paid
        ),
        st.builds(Compacted, at=at, summary=st.just("short"), helped=st.booleans()),
        st.builds(TakenOver, at=at, epoch=st.integers(1, 9)),
    )


def _last_events() -> st.SearchStrategy[Event]:
    return st.one_of(
        st.builds(StopRequested, at=at),
        st.builds(Superseded, at=at),
        st.builds(DeadlinePassed, at=at),
        st.builds(DrainEnded, at=at),
        st.builds(DriverFailed, at=at, reference=st.just("err_1")),
    )


def plausible(effects: list[Effect], fitting: st.DataObject, now: int) -> list[Event]:
    """Events that answer what the turn wants, so that runs get deep."""
    events: list[Event] = []
    for effect in effects:
        match effect:
            case CallModel():
                reply = fitting.draw(st.sampled_from(["text", "tools", "empty", "break", "cut", "think", "no money"]))
                events += _reply(reply, effect.number, fitting, now)
            case RunTool():
                events.append(ToolStarted(at=now, call=effect.call))
                if fitting.draw(st.integers(0, 5)) == 0:
                    events.append(TakenOver(at=now, epoch=2))
                status = fitting.draw(st.sampled_from([ToolStatus.OK, ToolStatus.FAILED]))
                events.append(ToolReturned(at=now, call=effect.call, status=status, text="result"))
            case Wait():
                events.append(WaitEnded(at=now))
            case Compact():
                events.append(Compacted(at=now, summary="s", helped=True))
            case AskDone():
                finished = fitting.draw(st.sampled_from([True, False, None]))
                events.append(DoneSaid(at=now, finished=finished, input_tokens=3, output_tokens=1))
            case AskApproval():
                events.append(
                    ApprovalAnswered(at=now, call=effect.call, verdict=fitting.draw(st.sampled_from(list(Verdict))))
                )
            case _:
                pass
    return events


def _reply(kind: str, number: int, fitting: st.DataObject, now: int) -> list[Event]:
    text = fitting.draw(texts)
    if kind == "text":
        return [TextArrived(at=now, text=text), ReplyFinished(at=now, reason="stop")]
    if kind == "tools":
        name = fitting.draw(names)
        return [
            TextArrived(at=now, text=text),
            ToolCallNamed(at=now, index=0, call=f"k{number}", name=name),
            ToolArgumentsArrived(at=now, index=0, text=fitting.draw(arguments)),
            ReplyFinished(at=now, reason="tool_calls"),
        ]
    if kind == "no money":
        return [SpendRefused(at=now, spend=SPEND)]
    if kind == "think":
        return [ReasoningArrived(at=now, text=text), ReplyFinished(at=now, reason="stop")]
    if kind == "cut":
        return [TextArrived(at=now, text=text), ReplyFinished(at=now, reason="length")]
    if kind == "break":
        return [
            TextArrived(at=now, text=text),
            CallBroke(
                at=now,
                cause=fitting.draw(st.sampled_from(list(BreakCause))),
                waited_seconds=3,
                input_tokens=5,
                output_tokens=2,
            ),
        ]
    return [ReplyFinished(at=now, reason="stop")]


def _checked(turn: Turn, ends: int) -> None:
    """What must hold after every event."""
    assert ends == (1 if turn.exit is not None else 0)
    shown = view(turn, 70_000)
    kinds = [bubble.kind for bubble in shown.bubbles]
    if turn.exit is None:
        assert BubbleKind.NOTICE not in kinds
        return
    assert not shown.open
    assert BubbleKind.STATUS not in kinds
    assert all(bubble.final or bubble.kind is BubbleKind.ACTIVITY for bubble in shown.bubbles)
    match turn.exit.code:
        case ExitCode.ANSWERED:
            assert kinds.count(BubbleKind.ANSWER) == 1
            assert BubbleKind.NOTICE not in kinds
        case ExitCode.HANDED_TO_CLIENT:
            assert turn.handed_calls
        case _:
            assert kinds.count(BubbleKind.NOTICE) == 1
            assert shown.bubbles[-1].text.strip()


@MANY
@given(st.data(), st.lists(st.one_of(st.none(), _events()), max_size=60), _last_events())
def test_any_interleaving_ends_in_exactly_one_visible_exit(
    fitting: st.DataObject, script: list[Event | None], last: Event
):
    turn = Turn()
    effects = turn.feed(opened(BASE))
    ends = 0
    started: set[str] = set()
    grown: dict[str, str] = {}
    used = [0, 0]
    for entry in [*script, last]:
        for event in [entry] if entry is not None else plausible(effects, fitting, 2_000):
            if isinstance(event, ReplyFinished | CallBroke | DoneSaid) and turn.exit is None and not turn.misfit(event):
                used = [used[0] + event.input_tokens, used[1] + event.output_tokens]
            since = turn.phase_since
            now_wanted = turn.feed(event)
            assert turn.phase_since >= since, "time does not go back"
            for effect in now_wanted:
                assert not isinstance(effect, Wait) or round(effect.seconds * 1000) == turn.wait_until - event.at
            assert [turn.input_tokens, turn.output_tokens] == used, "what a call used is counted, however it ended"
            ends += sum(isinstance(effect, EndTurn) for effect in now_wanted)
            if isinstance(event, ToolStarted) and event.call.startswith("k"):
                started.add(event.call)
            for effect in now_wanted:  # ids that begin with k belong to one call only
                if isinstance(effect, RunTool) and EFFECTS.get(effect.name) is EffectClass.EFFECT:
                    assert effect.call not in started, "a tool with effects was wanted again after it had been started"
            lasting: list[Effect] = [effect for effect in now_wanted if not isinstance(effect, EndTurn)]
            effects = lasting or effects
            _checked(turn, ends)
            _only_grows(turn, grown)
            if turn.opened is not None and turn.exit is None:
                probe = CallModel(number=1, route=ROUTES[0], offer_tools=True)
                assert problems(request_messages("sys", [], turn, probe)) == []
    assert turn.exit is not None
    history = repaired(
        [{"role": "user", "content": "before"}, {"role": "assistant", "content": "x"}, *closed_turn_messages(turn)]
    )
    assert problems(history) == []
    assert history[-1]["role"] in ("assistant", "tool")


def _only_grows(turn: Turn, grown: dict[str, str]) -> None:
    kinds = (BubbleKind.PARTIAL, BubbleKind.INTERIM, BubbleKind.ANSWER)
    for bubble in view(turn, 70_000).bubbles:
        if bubble.kind in kinds:
            assert bubble.text.startswith(grown.get(bubble.key, "")), "visible text was taken back"
            grown[bubble.key] = bubble.text


def _state(turn: Turn) -> object:
    """Everything that later decisions and views depend on, in comparable form."""
    other = copy.deepcopy(turn)
    return (
        view(other, 99_000),
        other.phase,
        other.exit,
        other.items,
        other.step,
        other.route_index,
        other.remedies,
        other.attempts,
        request_messages("", [], other, CallModel(number=1, route=ROUTES[0], offer_tools=True)),
    )


@MANY
@given(st.lists(_events(), max_size=40), st.data())
def test_how_a_stream_was_cut_never_matters(script: list[Event], data: st.DataObject):
    whole = Turn()
    whole.feed(opened(BASE))
    for event in merged(script):
        whole.feed(event)
    cut = Turn()
    cut.feed(opened(BASE))
    for event in merged(script):
        for piece in _cut(event, data):
            cut.feed(piece)
    assert _state(cut) == _state(whole)


def _cut(event: Event, data: st.DataObject) -> list[Event]:
    if not isinstance(event, TextArrived | ReasoningArrived | ToolArgumentsArrived) or len(event.text) < 2:
        return [event]
    where = data.draw(st.integers(1, len(event.text) - 1))
    return [replace(event, text=event.text[:where]), replace(event, text=event.text[where:])]


@MANY
@given(st.lists(_events(), max_size=40), _last_events())
def test_replaying_a_journal_gives_the_same_view(script: list[Event], last: Event):
    live = Turn()
    journal: list[Event] = [opened(BASE)]
    live.feed(journal[0])
    for event in [*script, last]:
        if live.exit is not None:
            break
        if live.misfit(event):
            continue
        effects = live.feed(event)
        journal += recorded(event, effects)
        journal += [
            TurnEnded(at=event.at, exit=effect.exit, answer=effect.answer)
            for effect in effects
            if isinstance(effect, EndTurn)
        ]
    rows = [encode(event) for event in merged(journal)]
    assert [decode(row.kind, row.body) for row in rows] == merged(journal)
    replayed = fold((row.kind, row.body) for row in rows)
    assert _state(replayed) == _state(live)
