"""What each event changes in a turn: one function an event, named in the tables of `agent_core.machine.turn`.

Why apart from the machine: which event may come when, and who is asked about it, is one thing to read (`turn`, beside this), what it does is another.

Rules for this file: everything that changes a turn's state is here (and in `toolround`, for the calls of a step); nothing here knows words for
people (`notices`), words for the model (`transcript`), how things look (`view`) or how anything is judged (`judging`). A judgement changes the
state by its own fields only, so that any version reads it alike.

Known to be weak: a new piece of text always begins where one is settled, so an empty one stands at the end of most timelines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.failures.leftout import Leaving, LeftOut
from agent_core.failures.remedies import NOTHING_TO_ADD, Advice, Asks, Does, Failure, Remedy, offered_again
from agent_core.failures.troubles import Trouble, TurnTroubles, is_trouble
from agent_core.jsonvalue import Json
from agent_core.messages import carried_thoughts
from agent_core.model.made import FILES
from agent_core.turn.effects import (
    AskApproval,
    AskDone,
    CallModel,
    Compact,
    Effect,
    SetAside,
    Wait,
)
from agent_core.turn.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBroke,
    CallSettled,
    ChangeShown,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    DrainEnded,
    DriverFailed,
    FailureJudged,
    LoopFound,
    OverlapFound,
    ReasoningArrived,
    RefusalBegan,
    RemedyChosen,
    RemedyJudged,
    Reply,
    ReplyFinished,
    ReplyJudged,
    Resume,
    SpendRefused,
    Steered,
    StopRequested,
    SummaryAsked,
    Superseded,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolsRefused,
    ToolStarted,
    TurnBegun,
    TurnEnded,
    TurnLeft,
    TurnOpened,
    TurnResumed,
    Verdict,
    WaitEnded,
)
from agent_core.turn.questions import (
    Beginning,
    CallOver,
    CallRefused,
    End,
    NextStep,
    Overlap,
    PendingCalls,
    Promised,
    Question,
    RemedyWanted,
    Restart,
    Result,
)
from agent_core.turn.standing import Standing
from agent_core.turn.state import (
    Activity,
    AdviceItem,
    Ask,
    AssistantItem,
    CallItem,
    Draft,
    PersonItem,
    Phase,
    Segment,
    SegmentKind,
    ToolItem,
    ask_after,
    of_the_start,
)
from agent_core.turn.timeline import made_files, remark, tell_mended, toolless
from agent_core.turn.toolround import ToolRound

SHOWS_THOUGHTS = frozenset({"api", "web"})
"""Surfaces that may show what a model thinks; for others it is not kept once it was thought."""


# ---------------------------------------------------------------------- what the model says


def _behind(turn: Standing) -> str:
    """The bubble that is the latest now: a text of which there is something to see, or a call of a tool."""
    for entry in reversed(turn.timeline):
        if isinstance(entry, Activity) or (isinstance(entry, Segment) and entry.pieces and entry.visible):
            return entry.key
    return ""


def take_content(
    turn: Standing, event: TextArrived | ReasoningArrived | ToolCallNamed | ToolArgumentsArrived | ToolCallCut
) -> list[Effect]:
    turn.life_at = event.at
    if isinstance(event, ReasoningArrived) and turn.opened is not None and turn.opened.surface in SHOWS_THOUGHTS:
        turn.thoughts.add(event.text, _behind(turn))
    if not turn.draft.begun and turn.left_out:
        told = remark(turn.timeline, turn.left_out, turn.leaving.parts, turn.route, turn.last_break)
        here = len(turn.timeline) - (not turn.draft.went_on.strip())  # never in the middle of a text
        turn.timeline[here:here] = told
    turn.draft.take(event, turn.ids)
    return []


def hear_refusal(turn: Standing, event: RefusalBegan) -> list[Effect]:
    turn.life_at = event.at
    turn.draft.segment.refusal = True
    return []


def say_toolless(turn: Standing, _: ToolsRefused) -> list[Effect]:
    turn.timeline[-1:-1] = toolless(turn.timeline, turn.route)
    return []


def end_call(turn: Standing, event: ReplyFinished | CallBroke | SpendRefused) -> list[Effect]:
    if not isinstance(event, SpendRefused):
        turn.input_tokens += event.input_tokens
        turn.output_tokens += event.output_tokens
        turn.cached_tokens += event.cached_tokens
    if isinstance(event, ReplyFinished):
        turn.reasoning_tokens += event.reasoning_tokens
        turn.unsent = tuple(dict.fromkeys((*turn.unsent, *event.unsent)))
        if event.made:
            turn.made = event.made
            turn.timeline[-1:-1] = made_files(turn.timeline, event.made.get(FILES))
    return _over(turn, CallOver(event))


def settle_overlap(turn: Standing, event: OverlapFound, _: Question | None) -> list[Effect]:
    turn.draft.settle(event.text + turn.draft.own_text[event.dropped :])
    return []


def call_again(turn: Standing, event: WaitEnded) -> list[Effect]:
    return call_model(turn, event.at)


def note_compacted(turn: Standing, event: Compacted) -> list[Effect]:
    turn.compacted = event  # also if little could be left out: the provider has the last word on what fits
    return call_model(turn, event.at)


def judge_remedy(turn: Standing, event: RemedyJudged, _: Question | None) -> list[Effect]:
    turn.troubles.judge(helped=event.helped)
    about = (turn.failed_seconds, turn.troubles.found[-1].tool, turn.route.model)
    tell_mended(turn.timeline, turn.draft, event, *about)
    return []


def sum_up(turn: Standing, event: SummaryAsked, _: Question | None) -> list[Effect]:
    """Last words, then the end."""
    hear_steers(turn)
    turn.closing, turn.ask = event.exit, Ask(event.advice)
    return call_model(turn, event.at)


# ---------------------------------------------------------------------- what tools and people do


def start_tool(turn: Standing, event: ToolStarted) -> list[Effect]:
    turn.round.started(event)
    return []


def take_result(turn: Standing, event: ToolReturned) -> list[Effect]:
    turn.round.returned(event)
    turn.questions.insert(0, Result(event.at, event.call))
    return []


def warn_of_loop(turn: Standing, event: LoopFound, _: Question | None) -> list[Effect]:
    turn.round.found(event)
    return go_on(turn, event.at)


def ask_approval(turn: Standing, event: ApprovalAsked, _: Question | None) -> list[Effect]:
    turn.round.asked(event, turn.foreign)
    activity = turn.round.activity(event.call)
    assert activity is not None
    return [AskApproval(event.call, activity.name, activity.arguments, event.seconds)]


def settle_call(turn: Standing, event: CallSettled, _: Question | None) -> list[Effect]:
    turn.round.settled(event)
    return go_on(turn, event.at)


def keep_steer(turn: Standing, event: Steered) -> list[Effect]:
    turn.steers += (PersonItem(event.input, event.inbox),)
    return []


# ---------------------------------------------------------------------- what ends a turn


def stop(turn: Standing, event: StopRequested) -> list[Effect]:
    return _over(turn, End(event.at, exits.Stopped(forgotten=event.forgotten)))


def supersede(turn: Standing, event: Superseded) -> list[Effect]:
    return _over(turn, End(event.at, exits.SupersededFacts()))


def time_out(turn: Standing, event: DeadlinePassed) -> list[Effect]:
    return _over(turn, End(event.at, exits.TimeLimit(limit=turn.settings.turn_seconds)))


def interrupt(turn: Standing, event: DrainEnded) -> list[Effect]:
    return _over(turn, End(event.at, exits.InterruptedByRestart()))


def fail(turn: Standing, event: DriverFailed) -> list[Effect]:
    return _over(turn, End(event.at, exits.InternalError(reference=event.reference, detail=event.why)))


def leave(turn: Standing, _: TurnLeft) -> list[Effect]:
    turn.left = True
    return []


# ---------------------------------------------------------------------- silence


def next_step(turn: Standing, question: NextStep) -> list[Effect]:
    hear_steers(turn)
    turn.step += 1
    return call_model(turn, question.at)


# ---------------------------------------------------------------------- beginning, calling


def open_turn(turn: Standing, event: TurnOpened) -> list[Effect]:
    turn.opened = event
    turn.round = ToolRound(event.settings, turn.items)
    turn.troubles = TurnTroubles(event.known)
    turn.step = 1
    _new_segment(turn)
    _enter(turn, Phase.CALLING, event.at)
    turn.questions.append(Beginning(event.at))
    return []


def begin(turn: Standing, event: TurnBegun, _: Question | None) -> list[Effect]:
    turn.route_index = event.route
    turn.items += event.advice
    turn.troubles.advised = turn.troubles.warned = bool(event.advice)
    turn.trying = bool(event.route or event.advice)
    turn.withheld = frozenset(event.withheld)
    return call_model(turn, event.at)


def _new_segment(turn: Standing) -> None:
    segment = Segment(f"text{sum(isinstance(entry, Segment) for entry in turn.timeline)}")
    turn.timeline.append(segment)
    turn.draft = Draft(segment)


def call_model(turn: Standing, at: int) -> list[Effect]:
    """Ask the model, in the way that `ask` says."""
    turn.done_said = turn.doubted = None
    turn.thoughts.pause()
    segment = turn.draft.segment
    partial = segment.text if turn.ask.continues else ""
    segment.refusal = segment.refusal and bool(partial)
    route = turn.route
    turn.draft = turn.draft.after(partial, (route.endpoint, route.model))
    turn.calls_made += 1
    _enter(turn, Phase.CALLING, at)
    turn.life_at = turn.phase_since
    return [
        CallModel(
            number=turn.calls_made,
            route=route,
            offer_tools=turn.closing is None,
            partial=partial,
            advice=turn.ask.advice,
            reasoning=turn.ask.reasoning,
            detail=turn.ask.detail,
            left_out=turn.left_out,
        )
    ]


def _enter(turn: Standing, phase: Phase, at: int) -> None:
    """The time of a turn does not go back, whoever's clock it is told by."""
    turn.phase = phase
    turn.phase_since = max(turn.phase_since, at)


def take_back(turn: Standing, event: TextTakenBack) -> list[Effect]:
    """What the call said so far was a thought: it vanishes from the screen."""
    turn.life_at = event.at
    draft = turn.draft
    _new_segment(turn)
    draft.take_back(turn.draft.segment, earlier=event.earlier)
    turn.draft = draft
    return []


# ---------------------------------------------------------------------- a call is over


def _over(turn: Standing, question: CallOver | End) -> list[Effect]:
    """A model call, or the turn with it, is over: what it said again comes first."""
    turn.questions.insert(0, question)
    _ask_overlap(turn, question.at)
    return []


def _ask_overlap(turn: Standing, at: int) -> None:
    if turn.phase is Phase.CALLING and turn.draft.partial:
        if turn.draft.text_pieces:
            turn.questions.insert(0, Overlap(at))
        else:
            turn.draft.settle()


def _thoughts(turn: Standing, question: Question | None) -> Mapping[str, Json]:
    """What the model of the reply that is over wants back of its thoughts."""
    finished = question.event if isinstance(question, CallOver) else None
    if not isinstance(finished, ReplyFinished):
        return {}
    calls = {index: call.call for index, call in turn.draft.calls.items()}
    reasoning, route = "".join(turn.draft.reasoning), turn.route
    return carried_thoughts(route.endpoint, route.model, reasoning, finished.thoughts, calls)


def take_reply(turn: Standing, event: ReplyJudged, question: Question | None) -> list[Effect]:
    text, thoughts = turn.reply_text, _thoughts(turn, question)
    match event.reply:
        case Reply.TOOLS | Reply.HANDED:
            _succeeded(turn)
            return _act(turn, text, event, thoughts)
        case Reply.SAID:
            turn.items.append(AssistantItem(text, thoughts=thoughts))
            _succeeded(turn)
            _settle_segment(turn, SegmentKind.INTERIM)
            turn.questions.insert(0, NextStep(event.at))
        case Reply.PROMISED if not text.strip():
            turn.promised = event.promised
            turn.questions.insert(0, Promised(event.at))
        case Reply.PROMISED:
            turn.items.append(AssistantItem(text, thoughts=thoughts))
            reminded = (Failure.PROMISED, Remedy.NUDGE)
            turn.chosen = {reminded: turn.chosen.get(reminded, 0)}
            turn.promised = event.promised
            if turn.settings.keeps_the_doubted:
                _doubt_segment(turn)
            else:
                _settle_segment(turn, SegmentKind.INTERIM)
            turn.questions.insert(0, Promised(event.at))
        case Reply.UNCLEAR:
            assert isinstance(question, CallOver)
            turn.doubted = question
            turn.done_asked += 1
            _enter(turn, Phase.ASKING, event.at)
            return [AskDone(turn.route, turn.reply_text)]
        case Reply.SUMMARY:
            assert turn.closing is not None
            turn.items.append(AssistantItem(turn.draft.own_text))
            _settle_segment(turn, SegmentKind.INTERIM)
            turn.questions.insert(0, End(event.at, turn.closing))
        case _:
            assert_never(event.reply)
    return []


def _succeeded(turn: Standing) -> None:
    """A reply came to a good end: the step's counts are cleared."""
    turn.withheld = offered_again(turn.remedies, turn.withheld)
    turn.chosen = {}
    turn.promised = ""
    turn.attempts = turn.restarts = 0
    turn.last_break = None
    turn.failing = None
    turn.failed_seconds = 0.0
    turn.troubles.step_over()
    if turn.leaving.parts:
        turn.kept_out += (LeftOut(turn.route.endpoint, turn.route.model, turn.leaving.parts),)
    turn.leaving = Leaving()
    turn.ask = Ask()


def _settle_segment(turn: Standing, kind: SegmentKind) -> None:
    """The current segment is complete; what comes next is a new one."""
    segment = turn.draft.segment
    if segment.text.strip():
        segment.kind, segment.final = kind, True
        _new_segment(turn)
    else:
        segment.pieces.clear()
        turn.draft = Draft(segment)


def hear_whether_done(turn: Standing, event: DoneSaid) -> list[Effect]:
    """The model was asked whether its reply is finished: now it is judged again."""
    assert turn.doubted is not None
    turn.input_tokens += event.input_tokens
    turn.output_tokens += event.output_tokens
    turn.done_said = event
    _enter(turn, Phase.CALLING, event.at)
    turn.questions.insert(0, replace(turn.doubted))  # the same question, asked anew
    return []


def _doubt_segment(turn: Standing) -> None:
    """What was said may be the answer after all: it stays on screen, and neither its repetition nor a mere "done" is shown."""
    shown = (turn.draft.segment.visible or turn.draft.segment.repeats).strip()
    _settle_segment(turn, SegmentKind.INTERIM)
    turn.draft.segment.repeats, turn.draft.segment.unsaid = shown, NOTHING_TO_ADD


# ---------------------------------------------------------------------- recovering


def note_failure(turn: Standing, event: FailureJudged, question: Question | None) -> list[Effect]:
    broke = CallBroke(at=event.at, cause=event.cause, detail=event.detail)
    match question:
        case CallOver(event=ReplyFinished(suspects=found)):
            broke = replace(broke, suspects=found)
        case CallOver(event=CallBroke() as came):
            broke = replace(came, cause=event.cause)
        case _:
            pass
    turn.attempts += 1
    turn.last_break = broke
    turn.failing = event.failure
    turn.failed_seconds += broke.waited_seconds
    names = turn.draft.call_names
    route = turn.route
    tool = "".join(names[:1])
    turn.troubles.note(Trouble(event.code, event.cause, route.endpoint, route.model, tool, turn.arriving_chars))
    if event.failure is Failure.IN_TOOL_CALL:
        turn.troubles.broke_off(names, turn.arriving_chars)
    turn.questions.insert(0, RemedyWanted(event.failure, broke))
    return [SetAside(route.credential, event.aside_seconds, event.cause.value)] if event.aside_seconds else []


def escalate(turn: Standing, event: RemedyChosen, _: Question | None) -> list[Effect]:
    """Do what a remedy says (its `Recipe`)."""
    turn.withheld = offered_again(turn.remedies, turn.withheld)
    failure = event.failure
    turn.chosen[failure, event.remedy] = event.number
    turn.troubles.chose(failure, event.remedy)
    turn.remedies += ((failure, event.remedy),)
    if event.route >= 0:
        turn.route_index = event.route
    turn.ask = ask_after(event, turn.ask, "".join(turn.draft.reasoning))
    recipe = event.remedy.recipe
    if recipe.asks is not Asks.SAME:
        turn.leaving = Leaving()
    match recipe.does:
        case Does.NOTHING:
            pass
        case Does.LEAVE_OUT:
            assert turn.last_break is not None
            turn.leaving = Leaving(event.left_out, turn.leaving.first or turn.last_break.suspects, event.tried)
        case Does.FORGET:
            turn.trying = turn.troubles.advised = False
            turn.items[:] = [item for item in turn.items if not of_the_start(item)]
        case Does.WITHHOLD:
            turn.withheld |= {event.detail}
        case Does.KEEP_ADVICE:
            turn.items.append(AdviceItem(event.advice or Advice.SMALLER_PIECES, event.detail))
        case Does.COMPACT:
            _enter(turn, Phase.COMPACTING, event.at)
            return [Compact()]
        case _:
            assert_never(recipe.does)
    if failure in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL) and not turn.ask.continues:
        _keep_preamble(turn)
    if not event.pause_ms:
        return call_model(turn, event.at)
    _enter(turn, Phase.WAITING, event.at)
    turn.wait_until = event.at + event.pause_ms
    return [Wait(event.pause_ms / 1000)]


def _keep_preamble(turn: Standing) -> None:
    """The call is repeated: what it had said stays on screen, and is not shown a second time."""
    segment = turn.draft.segment
    kept = (segment.visible or segment.repeats).strip()
    if segment.visible:
        _settle_segment(turn, SegmentKind.INTERIM)
    else:
        segment.pieces.clear()
    turn.draft = Draft(turn.draft.segment)
    turn.draft.segment.repeats = kept
    if turn.last_break is not None and turn.last_break.cause is BreakCause.NO_CALL:
        turn.draft.segment.unsaid = NOTHING_TO_ADD


# ---------------------------------------------------------------------- acting


def _act(turn: Standing, text: str, event: ReplyJudged, thoughts: Mapping[str, Json]) -> list[Effect]:
    """The model asked for tools."""
    calls = turn.reply_calls
    turn.items.append(AssistantItem(text, tuple(CallItem(c.call, c.name, c.arguments) for c in calls), thoughts))
    turn.troubles.solved += event.solved
    _settle_segment(turn, SegmentKind.INTERIM)
    if event.reply is Reply.HANDED:
        turn.questions.insert(0, End(event.at, exits.HandedToClient()))
        return []
    if event.taken >= 0:
        turn.items += [ToolItem(call.call, call.name, event.words) for call in calls[event.taken :]]
        calls = calls[: event.taken]
    turn.to_hand = event.handed
    calls = [call for call in calls if call.call not in event.handed]
    activities = [Activity(c.call, c.call, c.name, c.arguments, since=event.at) for c in calls]
    # The screen shows activities before the (still empty) segment of the next reply.
    turn.timeline = [e for e in turn.timeline if e is not turn.draft.segment]
    turn.timeline += [*activities, turn.draft.segment]
    _enter(turn, Phase.ACTING, event.at)
    turn.round.begin(activities)
    return go_on(turn, event.at)


def go_on(turn: Standing, at: int) -> list[Effect]:
    """Something in the round of tools has changed."""
    if turn.round.over and turn.to_hand and turn.round.stopping is None:
        turn.questions.insert(0, End(at, exits.HandedToClient()))
    elif turn.round.over:
        turn.questions.insert(0, NextStep(at))
    elif not turn.round.under_way:
        turn.questions.insert(0, PendingCalls(at))
    return []


def show_change(turn: Standing, event: ChangeShown) -> list[Effect]:
    turn.round.shown(event)
    return []


def take_approval(turn: Standing, event: ApprovalAnswered) -> list[Effect]:
    if event.verdict is Verdict.GIVEN:
        turn.round.approved(event, turn.opened.asker if turn.opened is not None else "")
        return go_on(turn, event.at)
    turn.round.refused(event.call, event.by)
    turn.questions.insert(0, CallRefused(event.at, event.call, event.verdict))
    return []


def hear_steers(turn: Standing) -> None:
    """The next call tells the model what the person has added."""
    turn.items += turn.steers
    turn.steers = ()


# ---------------------------------------------------------------------- coming back, and ending


def restart(turn: Standing, event: TakenOver) -> list[Effect]:
    """Another process begins where the old one stopped."""
    left, turn.left = turn.left, False
    turn.restarts += not left  # an orderly stop is none
    if any(isinstance(question, End) for question in turn.questions):
        return []
    undecided = bool(turn.questions)
    turn.questions.append(Restart(event, left))
    if not undecided:
        _ask_overlap(turn, event.at)
    return []


def resume(turn: Standing, event: TurnResumed, _: Question | None) -> list[Effect]:
    match event.how:
        case Resume.CALL:
            pass
        case Resume.GO_ON:
            turn.ask = Ask(Advice.CONTINUE, continues=Failure.IN_TEXT, cut_by=BreakCause.RESTARTED)
        case Resume.ANEW:
            _keep_preamble(turn)
        case Resume.COMPACT:
            return [Compact()]
        case Resume.ASK:
            return [AskDone(turn.route, turn.reply_text)]
        case Resume.ACT:
            turn.round.resume()
            return go_on(turn, event.at)
        case _:
            assert_never(event.how)
    return call_model(turn, event.at)


def close(turn: Standing, event: TurnEnded, _: Question | None = None) -> list[Effect]:
    """The one place that ends a turn."""
    ending = event.exit
    over = next((question for question in turn.questions if isinstance(question, CallOver)), None)
    turn.questions.clear()
    if turn.exit is not None:
        turn.exit = ending
        return []
    if turn.phase is Phase.ACTING:
        turn.round.close()
    turn.draft.settle()
    if ending.code is ExitCode.ANSWERED:
        _answer(turn, event.answer, _thoughts(turn, over))
    turn.draft.segment.final = True
    if is_trouble(ending):
        turn.troubles.ended_by(Trouble(ending.code, None, turn.route.endpoint, turn.route.model, ending.tool))
    turn.exit = ending
    _enter(turn, Phase.ENDED, event.at)
    return []


def _answer(turn: Standing, key: str, thoughts: Mapping[str, Json]) -> None:
    """The last reply, or the piece of text that is named, is the answer."""
    said = turn.reply_text if turn.draft.own_text.strip() or not key else ""
    if said.strip() and not turn.draft.segment.adds_nothing:
        turn.items.append(AssistantItem(said, thoughts=thoughts))
    _succeeded(turn)
    segment = turn.draft.segment
    for entry in turn.timeline:
        if isinstance(entry, Segment) and entry.key == key:
            segment = entry
    if segment is turn.draft.segment:
        segment.repeats = ""
    else:
        turn.draft.segment.kind = SegmentKind.INTERIM
    segment.kind, segment.final = SegmentKind.ANSWER, True
