"""What today's rules say to what is not judged yet. The other half of the machine; see `turn`. Pure: it reads a turn and changes nothing.

`decide` answers a question (`questions`) with judgements, the last of which is the answer; nothing at all is the ordinary answer. A call that
is to run is the one thing that is wanted without a row of its own: that it was begun is a fact.

Rules for this file: nothing here changes a turn. What it says is journalled, so a later version with other rules reads it all the same, and
whatever a judgement leads to has to stand in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, assert_never

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.failures.leftout import ALL_OF_KIND, Leaving
from agent_core.failures.remedies import (
    CAUSE_TO_FAILURE,
    DOUBTING,
    LADDERS,
    SET_ASIDE_SECONDS,
    Advice,
    Asks,
    Case,
    Does,
    Failure,
    Pause,
    Remedy,
    Use,
    exit_for,
    next_remedy,
    next_route,
    pause_seconds,
)
from agent_core.judging.ends import NO_MORE, answered, doing, ended, failed, is_cut, meanwhile, stalls_again
from agent_core.learning.prevention import AS_USUAL, prevention
from agent_core.messages import text_of
from agent_core.rules.overlap import OverlapRemover
from agent_core.rules.promises import ANSWERED, SHORT_REPLY_CHARS, Ending, PromiseSign, Reading, read_ending
from agent_core.rules.promising.done import says_done
from agent_core.rules.replies import DONE_ONLY, ReplyKind, judge
from agent_core.rules.taint import FORWARDED, AskedWhy, reaches_outside, sources_words
from agent_core.rules.whole import TextForm, form_of, is_preamble, says_nothing_more, sees_nothing
from agent_core.settings import REPLY_CHARS, ToolFacts
from agent_core.text.shown import something_to_see
from agent_core.tools.arguments import parsed
from agent_core.tools.asked import unasked
from agent_core.tools.base import EffectClass, Reach, WhenTainted
from agent_core.turn.effects import RunTool
from agent_core.turn.events import (
    ApprovalAsked,
    CallBroke,
    CallSettled,
    FailureJudged,
    Judgement,
    LoopFound,
    OverlapFound,
    Refusal,
    RemedyChosen,
    RemedyJudged,
    Reply,
    ReplyFinished,
    ReplyJudged,
    Resume,
    SpendRefused,
    SummaryAsked,
    TurnBegun,
    TurnResumed,
    Verdict,
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
from agent_core.turn.state import Activity, MadeFile, Phase
from agent_core.turn.timeline import housekeeping_answer, said_again, said_last

Decision: TypeAlias = Judgement | RunTool
Decisions: TypeAlias = Sequence[Decision]
Reads: TypeAlias = Callable[[str, Sequence[str]], Ending]
"""How a reply ends, from its words and the tools that ran."""


def decide(question: Question, turn: Standing, reads: Reads | None = None) -> Decisions:
    """What is judged by today's rules; empty: the ordinary. `reads` says how a reply ends where its words are gone."""
    match question:
        case Beginning():
            return _beginning(turn, question.at)
        case CallOver():
            return _call_over(turn, question.event, reads)
        case PendingCalls():
            return _calls(turn, question.at)
        case Result():
            return _result(turn, question)
        case NextStep():
            return _next_step(turn, question.at)
        case Overlap():
            return _overlap(turn, question.at)
        case Promised(at=at):
            broke = CallBroke(at=at, cause=BreakCause.ENDED_EARLY)
            return _failed(turn, Failure.PROMISED, broke)
        case RemedyWanted():
            return _remedy(turn, question.failure, question.broke)
        case CallRefused():
            return _refused(turn, question)
        case Restart():
            return _restart(turn, question)
        case End(at=at, exit=ending):
            if isinstance(ending, exits.TimeLimit):
                ending = meanwhile(turn, ending)
            if isinstance(ending, exits.Stopped):
                ending = replace(ending, detail=doing(turn))
            return [ended(turn, at, ending)]
        case _:
            assert_never(question)


def _beginning(turn: Standing, at: int) -> Decisions:
    assert turn.opened is not None
    start = prevention(turn.settings, turn.opened.known)
    return [TurnBegun(at=at, route=start.route, advice=start.advice)] if start != AS_USUAL else ()


# ---------------------------------------------------------------------- a model call is over


def _overlap(turn: Standing, at: int) -> Decisions:
    own = turn.draft.own_text
    if turn.settings.takes_nothing_for_an_end and says_nothing_more(own, turn.draft.partial):
        return [OverlapFound(at=at, dropped=len(own))]
    remover = OverlapRemover(turn.draft.partial)
    shown = remover.feed(own) + remover.finish(cut=_breaks_off(turn))
    if shown == own:
        return ()
    kept = next((n for n in range(min(len(own), len(shown)), 0, -1) if own.endswith(shown[len(shown) - n :])), 0)
    return [OverlapFound(at=at, dropped=len(own) - kept, text=shown[: len(shown) - kept])]


def _breaks_off(turn: Standing) -> bool:
    """The call whose overlap is asked for did not come to its end, and the model is asked again."""
    match turn.questions[1:2]:
        case [CallOver(event=CallBroke()) | Restart()]:
            return True
        case _:
            return False


def _call_over(turn: Standing, event: ReplyFinished | CallBroke | SpendRefused, reads: Reads | None) -> Decisions:
    if turn.closing is not None:
        return _last_words(turn, event.at)
    match event:
        case ReplyFinished():
            return _reply(turn, event, reads)
        case CallBroke():
            return _broke(turn, event, reads, said_before=True)
        case SpendRefused(spend=spend):
            return [ended(turn, event.at, meanwhile(turn, exits.SpendLimit(spend=spend)))]


def _last_words(turn: Standing, at: int) -> Decisions:
    """What the last step said stays on screen, and the turn ends as it had to."""
    assert turn.closing is not None
    if turn.draft.said:
        return [ReplyJudged(at=at, reply=Reply.SUMMARY)]
    return [ended(turn, at, turn.closing)]


def _reply(turn: Standing, event: ReplyFinished, reads: Reads | None) -> Decisions:
    draft, at = turn.draft, event.at
    arguments = [call.arguments for call in turn.reply_calls]
    kind = judge(
        event.reason,
        draft.own_text,
        "".join(draft.reasoning),
        arguments,
        cut_calls=bool(draft.cut),
        doubting=turn.settings.doubts_the_finish,
        content_counts=turn.settings.takes_nothing_for_an_end,
    )

    def broke(cause: BreakCause = BreakCause.ENDED_EARLY, detail: str = "") -> CallBroke:
        return CallBroke(at=at, cause=cause, detail=detail)

    if kind in _ENDED_WELL and _was_whole(turn, well=True):
        return _text(turn, at, reads)
    if (
        kind is ReplyKind.TEXT
        and turn.ask.continues is not None
        and not draft.added.strip()
        and turn.settings.takes_nothing_for_an_end
        and sees_nothing(draft.own_text)
    ):
        return _nothing(turn, Failure.EMPTY, broke(), reads)
    match kind:
        case ReplyKind.TEXT:
            return _text(turn, at, reads)
        case ReplyKind.TOOLS if _not_for_programs(turn):
            return _failed(turn, Failure.IN_TOOL_CALL, broke(BreakCause.UNREADABLE_CALL, event.reason[:40]))
        case ReplyKind.TOOLS:
            return [*_helped(turn), _tools(turn, at)]
        case ReplyKind.EMPTY | ReplyKind.THINKING_ONLY:
            failure = Failure.EMPTY if kind is ReplyKind.EMPTY else Failure.THINKING_ONLY
            return _nothing(turn, failure, broke(), reads)
        case ReplyKind.LENGTH | ReplyKind.LENGTH_IN_TOOL_CALL:
            in_call = kind is ReplyKind.LENGTH_IN_TOOL_CALL
            if turn.settings.client_output_limit:
                record = exits.ToolCallCutByLength if in_call else exits.CutByLength
                return [ended(turn, at, record(limit_was_asked=True), dropped=draft.call_names)]
            return _failed(turn, Failure.LENGTH_IN_TOOL_CALL if in_call else Failure.LENGTH, broke())
        case ReplyKind.FILTERED:
            return _filtered_midway(turn, at) or _failed(turn, Failure.REQUEST, broke(BreakCause.REFUSED))
        case ReplyKind.CALL_MISSING:
            return _call_missing(turn, broke(), reads)
        case ReplyKind.CONTRADICTED:
            return _failed(turn, Failure.IN_TOOL_CALL, broke(BreakCause.UNREADABLE_CALL, event.reason[:40]))
        case ReplyKind.UNCERTAIN:
            return _broke(turn, broke(detail=event.reason[:40]), reads)
        case ReplyKind.ERROR:
            return _broke(turn, broke(BreakCause.ERROR_IN_STREAM, event.reason[:40]), reads)
        case _:
            assert_never(kind)


_ENDED_WELL = frozenset(
    {ReplyKind.TEXT, ReplyKind.EMPTY, ReplyKind.THINKING_ONLY, ReplyKind.UNCERTAIN, ReplyKind.CALL_MISSING}
)
"""The stream came to an end of its own, and says of no limit, filter or failure."""


def _was_whole(turn: Standing, *, well: bool) -> bool:
    """The model was to go on from a text, and has nothing to add to it: so the text was whole, if its form says so too. `well`: this reply
    itself came to an end; of one that broke off, only its saying all again up to the same end counts."""
    draft = turn.draft
    if not turn.settings.takes_nothing_for_an_end or turn.ask.continues is None:
        return False
    if draft.in_tool_call or draft.added.strip() or not something_to_see(turn.reply_text):
        return False
    if well and draft.said and not says_nothing_more(draft.own_text, draft.went_on):
        return True  # it said the same again, and ended there
    return (well or draft.said) and form_of(draft.went_on) is TextForm.CLOSED


def _call_missing(turn: Standing, broke: CallBroke, reads: Reads | None) -> Decisions:
    """A text with a finish reason that speaks of a call, and there is none. What may have been said beside one is asked for again, once; else
    the text counts, and the model is asked whether it is finished."""
    retried = bool(turn.promised) or _asked_for_call(turn)
    if turn.ask.continues is None and not retried and _can_act(turn) and is_preamble(turn.reply_text):
        return _failed(turn, Failure.IN_TOOL_CALL, replace(broke, cause=BreakCause.NO_CALL))
    return _text(turn, broke.at, reads, call_missing=not retried)


def _can_act(turn: Standing) -> bool:
    return bool(turn.settings.tools or turn.settings.client_tools)


def _broke(turn: Standing, broke: CallBroke, reads: Reads | None = None, *, said_before: bool = False) -> Decisions:
    """A break: what it is depends on how far the reply had come."""
    draft = turn.draft
    if broke.cause in _CUTS and _was_whole(turn, well=broke.detail == DONE_ONLY):
        return _text(turn, broke.at, reads)
    if broke.cause is BreakCause.TOO_LONG:
        record = exits.ToolCallCutByLength if draft.in_tool_call else exits.CutByLength
        ending = record(cause=broke.cause, limit=REPLY_CHARS)
        return [ended(turn, broke.at, ending, dropped=draft.call_names)]
    if broke.cause is BreakCause.REFUSED and (midway := _filtered_midway(turn, broke.at)):
        return midway
    failure = CAUSE_TO_FAILURE[broke.cause]
    if draft.in_tool_call:
        failure = Failure.IN_TOOL_CALL
    elif draft.said:
        failure = Failure.IN_TEXT
    elif failure is Failure.BEFORE_CONTENT and turn.ask.continues is not None and not broke.status:
        failure = Failure.NOTHING_MORE
    return _failed(turn, failure, broke, said_before=said_before)


def _filtered_midway(turn: Standing, at: int) -> Decisions:
    """A filter has cut a reply of which people have read something; however it says so, nobody goes on from there."""
    draft = turn.draft
    if not (draft.said and draft.segment.visible.strip()):
        return []
    return [ended(turn, at, exits.RefusedMidway(), dropped=draft.call_names)]


_CUTS = frozenset(
    {
        BreakCause.ENDED_EARLY,
        BreakCause.DROPPED,
        BreakCause.STALLED,
        BreakCause.ERROR_IN_STREAM,
        BreakCause.GARBAGE,
        BreakCause.BAD_PIECE,
    }
)


def _text(turn: Standing, at: int, reads: Reads | None, *, call_missing: bool = False) -> Decisions:
    """The model finished a reply with text and without a call."""
    text = turn.reply_text
    again = said_again(turn.timeline, turn.draft.segment)
    if again is None and (turn.promised or _asked_for_call(turn)) and _says_done(turn, text, reads):
        again = said_last(turn.timeline)
    insists = again is not None and len(text) > SHORT_REPLY_CHARS
    ending = ANSWERED if insists else _ending(turn, text, reads)
    if call_missing and ending.reading is Reading.ANSWER and not insists and _can_act(turn):
        ending = Ending(Reading.UNCLEAR, PromiseSign.NO_CALL, text.strip()[-_QUOTED_CHARS:])
    sure, said = ending.reading, turn.done_said
    if sure is Reading.UNCLEAR and said is None and turn.done_asked < turn.settings.questions_a_turn:
        return [ReplyJudged(at=at, reply=Reply.UNCLEAR, promised=ending.sentence, sign=ending.sign.value)]
    if sure is Reading.PROMISE or (sure is Reading.UNCLEAR and said is not None and said.finished is False):
        helped = [] if turn.troubles.nudged else _helped(turn)
        return [*helped, ReplyJudged(at=at, reply=Reply.PROMISED, promised=ending.sentence, sign=ending.sign.value)]
    if turn.steers:
        return [*_helped(turn), ReplyJudged(at=at, reply=Reply.SAID)]
    return [*_helped(turn), answered(turn, at, again, steps=turn.steps_done + 1, text_shown=False)]


def _says_done(turn: Standing, text: str, reads: Reads | None) -> bool:
    """It says no more than that nothing is left to do."""
    return says_done(text) if reads is None else reads(text, turn.round.tools_done).done


def _ending(turn: Standing, text: str, reads: Reads | None) -> Ending:
    """How the reply ends. With nothing to act with, whatever it says is the answer; what is unclear is the answer as well. So it is where what it
    announces came with it: a picture."""
    if not _can_act(turn) or any(isinstance(entry, MadeFile) for entry in turn.timeline[-2:-1]):
        return ANSWERED
    return (reads or read_ending)(text, turn.round.tools_done)


def _not_for_programs(turn: Standing) -> bool:
    """A call for the client's program was meant to be an object and is none, so that its program would break on it. (The gateway's own tools tell
    their model; text that is no object at all may be what a tool of the client's takes.)"""
    theirs = turn.settings.client_tools if turn.settings.hands_what_can_be_read else ()
    calls = [call.arguments for call in turn.reply_calls if call.name in theirs]
    return any(text.lstrip().startswith("{") and isinstance(parsed(text), str) for text in calls)


def _tools(turn: Standing, at: int) -> ReplyJudged:
    calls = turn.reply_calls
    solved = turn.troubles.came_whole((call.name, len(call.arguments)) for call in calls)
    theirs = turn.settings.client_tools
    if calls and all(call.name in theirs for call in calls):
        return ReplyJudged(at=at, reply=Reply.HANDED, solved=solved)
    limit = turn.settings.calls_a_reply
    handed = tuple(call.call for call in calls[:limit] if call.name in theirs)
    allowed = _allowed(turn, [call.name in theirs for call in calls])
    if allowed is not None and (limit is None or allowed < limit):
        most = turn.settings.most_tool_calls
        words = f"Not run: this request allows at most {most} calls of these tools. Answer now, with what there is."
        handed = tuple(call for call in handed if call in {each.call for each in calls[:allowed]})
        return ReplyJudged(at=at, solved=solved, taken=allowed, words=words, handed=handed)
    if limit is None or len(calls) <= limit:
        return ReplyJudged(at=at, solved=solved, handed=handed)
    words = f"Not run: a reply may ask for at most {limit} calls at once. Ask for it again in a later reply if it is still needed."
    return ReplyJudged(at=at, solved=solved, taken=limit, words=words, handed=handed)


def _allowed(turn: Standing, theirs: Sequence[bool]) -> int | None:
    """How many of a reply's calls its client allows, which counts those of the gateway's tools in the whole turn; None: all."""
    most = turn.settings.most_tool_calls
    if not most:
        return None
    left = most - len(turn.round.tools_run)
    for place, is_theirs in enumerate(theirs):
        left -= not is_theirs
        if left < 0:
            return place
    return None


def _nothing(turn: Standing, failure: Failure, broke: CallBroke, reads: Reads | None) -> Decisions:
    """No text and no call. Beside housekeeping tools only, the interim text had been the answer."""
    answer = housekeeping_answer(turn.timeline, turn.settings) if not turn.promised else None
    if answer is not None and failure is Failure.EMPTY:
        doubted = turn.settings.doubts_housekeeping and turn.ask.continues is None
        ending = _ending(turn, answer.text, reads) if doubted else ANSWERED
        if ending.reading is Reading.PROMISE:
            words, sign = ending.sentence, ending.sign.value
            return [ReplyJudged(at=broke.at, reply=Reply.PROMISED, promised=words, sign=sign)]
        return [*_helped(turn), answered(turn, broke.at, answer, steps=turn.steps_done, text_shown=is_cut(turn))]
    if turn.ask.continues is not None:
        failure = Failure.NOTHING_MORE if failure is Failure.EMPTY else Failure.THOUGHT_MORE
    kept = said_last(turn.timeline) if _asked_for_call(turn) else None
    if kept is not None:  # no call was missing: what it had said was all
        return [*_helped(turn), answered(turn, broke.at, kept, steps=turn.steps_done + 1, text_shown=False)]
    return _failed(turn, failure, broke)


def _asked_for_call(turn: Standing) -> bool:
    """The model was asked again because a call seemed to be missing behind its text."""
    return turn.ask.continues is None and turn.last_break is not None and turn.last_break.cause is BreakCause.NO_CALL


_QUOTED_CHARS = 120


# ---------------------------------------------------------------------- failures and remedies


def _helped(turn: Standing) -> list[RemedyJudged]:
    return _remedy_judged(turn, helped=True)


def _remedy_judged(turn: Standing, *, helped: bool) -> list[RemedyJudged]:
    """Whether the remedy at work helped is known now, if there was one."""
    judging = turn.troubles.judging
    return [RemedyJudged(at=turn.life_at, failure=judging[0], remedy=judging[1], helped=helped)] if judging else []


def _failed(turn: Standing, failure: Failure, broke: CallBroke, *, said_before: bool = False) -> Decisions:
    """`said_before`: `broke` is in the journal itself."""
    code = exit_for(failure, broke.cause, tools_ran=bool(turn.round.tools_run))
    if turn.promised and failure in (Failure.EMPTY, Failure.THINKING_ONLY):
        code = ExitCode.PROMISED_WITHOUT_ACTING
    if turn.ask.by_length and failure in NO_MORE:
        code = ExitCode.CUT_BY_LENGTH
    aside = 0.0
    if broke.cause in SET_ASIDE_SECONDS and turn.route.credential:
        aside = float(max(SET_ASIDE_SECONDS[broke.cause], broke.retry_after_seconds))
    detail = "" if said_before else broke.detail
    judged = FailureJudged(
        at=broke.at, failure=failure, cause=broke.cause, code=code, detail=detail, aside_seconds=aside
    )
    return [*_remedy_judged(turn, helped=False), judged]


def _remedy(turn: Standing, failure: Failure, broke: CallBroke) -> Decisions:
    """The next remedy for a failure; if none is left, the turn ends."""
    case = _case(turn, failure, broke)
    spent = 0 < turn.settings.most_calls <= turn.calls_made
    found = None if spent else next_remedy(case, turn.chosen)
    if found is None:
        return [failed(turn, failure, broke)]
    remedy, use = found
    number = turn.chosen.get((failure, remedy), 0) + 1
    advice, detail = remedy.recipe.advises(case)
    route = {Asks.SAME: None, Asks.FIRST: 0, Asks.NEXT: next_route(case.routes, case.current, use.helps)}
    going = route[remedy.recipe.asks]
    chosen = RemedyChosen(
        at=broke.at,
        failure=failure,
        remedy=remedy,
        number=number,
        cause=broke.cause,
        route=-1 if going is None else going,
        advice=advice,
        detail=detail,
        pause_ms=_pause(turn, remedy, use, failure, number, broke),
    )
    further = _leaving(turn, failure, broke) if remedy.recipe.does is Does.LEAVE_OUT else None
    return [chosen if further is None else replace(chosen, left_out=further.parts, tried=further.tried)]


def _case(turn: Standing, failure: Failure, broke: CallBroke) -> Case:
    """What the choice of a remedy depends on."""
    settings, names = turn.settings, turn.draft.call_names
    further = _leaving(turn, failure, broke) if settings.leaves_out else None
    named = failure not in DOUBTING and broke.complaint.concern not in ALL_OF_KIND
    again = names[0] if stalls_again(turn, failure) else ""
    return Case(
        failure=failure,
        cause=broke.cause,
        routes=settings.routes,
        current=turn.route_index,
        counts=settings.ladder,
        tools=names,
        promised=turn.promised,
        goes_on=turn.ask.continues is not None,
        trying=turn.trying,
        too_long=broke.retry_after_seconds > settings.retry_after_max_seconds,
        left=further is not None,
        named=named and further is not None and any(suspect.named for suspect in broke.suspects),
        breaks_off=again if settings.tool(again) is not None else "",
    )


def _leaving(turn: Standing, failure: Failure, broke: CallBroke) -> Leaving | None:
    """What is left out next, if there is anything."""
    if failure in DOUBTING:
        return turn.leaving.next_doubted(broke.suspects)
    return turn.leaving.next(broke.suspects)


def _pause(turn: Standing, remedy: Remedy, use: Use, failure: Failure, number: int, broke: CallBroke) -> int:
    """Before the remedy, ms. Another route is asked at once; the same one as if it had been asked the ordinary way."""
    settings, asks, kind = turn.settings, remedy.recipe.asks, use.pause
    if asks is Asks.FIRST and turn.route_index == 0:
        kind = LADDERS[failure][0][1].pause
    if asks is not Asks.SAME and kind is Pause.NONE:
        return 0
    seed = (turn.opened.seed if turn.opened else 0) + turn.calls_made
    pause = pause_seconds(kind, number, seed, settings.retry_min_seconds, settings.retry_max_seconds)
    pause = max(pause, min(broke.retry_after_seconds, settings.retry_after_max_seconds))
    return max(1, round(pause * 1000)) if pause else 0


# ---------------------------------------------------------------------- tools


def _result(turn: Standing, question: Result) -> Decisions:
    round_, ladder = turn.round, turn.settings.ladder
    match round_.refusal:  # what could not be started is complained of a few times in a row
        case Refusal.UNKNOWN_TOOL:
            record, count, most = exits.UnknownTool, round_.unknown_tools, ladder.unknown_tool
        case Refusal.UNREADABLE_ARGUMENTS:
            record, count, most = exits.UnreadableArguments, round_.unreadable, ladder.unreadable_arguments
        case Refusal.NONE:
            return _loops(turn, question)
    ending = record(tool=round_.named(question.call), count=count)
    return [ended(turn, question.at, ending)] if count > most else ()


def _loops(turn: Standing, question: Result) -> Decisions:
    finding = turn.round.finding()
    if finding is None:
        return ()
    found = LoopFound(
        at=question.at,
        call=question.call,
        code=finding.code,
        tool=finding.tool,
        count=finding.count,
        stop=finding.stop,
        words=finding.words,
    )
    return [found]


def _calls(turn: Standing, at: int) -> Decisions:
    """The next calls: neighbouring *pure* ones run together, any other runs alone; some need approval first."""
    round_ = turn.round
    waiting = round_.waiting
    for activity in waiting:
        if activity.started and round_.effect_class(activity.name) is EffectClass.EFFECT:
            return [CallSettled(at=at, call=activity.call, words=unknown_words(activity.name), unsure=True)]
    if not waiting:
        return ()
    first = waiting[0]
    if round_.stopping is not None:
        return [CallSettled(at=at, call=first.call, words="Not run: the turn is being stopped.")]
    if (why := _wants_approval(turn, first)) is not None:
        return _approval(turn, first, why, at)
    batch = [first]
    if round_.effect_class(first.name) is EffectClass.PURE:
        for activity in waiting[1:]:
            if (
                round_.effect_class(activity.name) is not EffectClass.PURE
                or _wants_approval(turn, activity) is not None
            ):
                break
            batch.append(activity)
    return [RunTool(a.call, a.name, a.arguments, a.intention, a.started) for a in batch]


def unknown_words(name: str) -> str:
    """What the model reads in place of a result that nobody knows."""
    return (
        f"{name} was started, and the gateway was restarted before it came back: it may have been done, in whole or in part, or "
        "not at all. Do not simply repeat it: check first whether it was done, or ask the person."
    )


def _wants_approval(turn: Standing, activity: Activity) -> AskedWhy | None:
    """Why somebody has to agree to this call first; None if nobody has to."""
    settings, tool = turn.settings, turn.settings.tool(activity.name)
    if tool is None or activity.approved or turn.opened is None:
        return None
    if settings.contains and turn.round.doubted(activity):
        return AskedWhy.REPEATED
    why = AskedWhy.ALWAYS if tool.needs_approval else AskedWhy.TAINTED if _carries_out(turn, tool, activity) else None
    if why is None or turn.round.consented(activity, turn.opened.consents, tainted=bool(turn.foreign)):
        return None
    return why


def _carries_out(turn: Standing, tool: ToolFacts, activity: Activity) -> bool:
    """Others would see something of the call, and the model has read words of others."""
    if not turn.settings.contains or tool.reach is Reach.HERE or tool.tainted is WhenTainted.ALLOW or not turn.foreign:
        return False
    read = (*turn.round.links, *(text_of(one.content) for one in turn.input_of_others if one.foreign == FORWARDED))
    return reaches_outside(tool.reach, activity.arguments, turn.said, read)


def _approval(turn: Standing, activity: Activity, why: AskedWhy, at: int) -> Decisions:
    settings, tool = turn.settings, turn.settings.tool(activity.name)
    sources = turn.foreign if why is AskedWhy.TAINTED else ()
    refuses = why is AskedWhy.TAINTED and tool is not None and tool.tainted is WhenTainted.REFUSE
    if refuses:
        words = f"Not run: others would see it, and you have read words that are not the person's ({sources_words(sources)})."
        return _deny(turn, activity, at, words, why, sources)
    if not settings.can_approve:
        words = f"Not run: {_reason(why, sources)}it needs a person's approval, and nobody can give it here."
        return _deny(turn, activity, at, words, why, sources)
    if settings.asks_only_what_is_shown and (hidden := unasked(activity.arguments)):
        return [CallSettled(at=at, call=activity.call, words=f"Not run: {hidden}.")]
    return [ApprovalAsked(at=at, call=activity.call, seconds=settings.approval_seconds, why=why, sources=sources)]


def _reason(why: AskedWhy, sources: Sequence[str]) -> str:
    """Why a call needs a person's word, for the model."""
    match why:
        case AskedWhy.ALWAYS:
            return ""
        case AskedWhy.TAINTED:
            return f"others would see it, and you have read words that are not the person's ({sources_words(sources)}), so "
        case AskedWhy.REPEATED:
            return "an earlier call of it may have been done, so "


def _refused(turn: Standing, question: CallRefused) -> Decisions:
    activity = turn.round.activity(question.call)
    assert activity is not None
    match question.verdict:
        case Verdict.EXPIRED:
            ending = exits.ApprovalExpired(tool=activity.name, limit=turn.settings.approval_seconds)
            return [ended(turn, question.at, ending)]
        case _:
            return _deny(turn, activity, question.at, "Not run: the person did not approve this call.")


def _deny(
    turn: Standing,
    activity: Activity,
    at: int,
    words: str,
    why: AskedWhy = AskedWhy.ALWAYS,
    sources: tuple[str, ...] = (),
) -> Decisions:
    """Denied once, the model hears of it; denied again, the turn cannot go on without it."""
    if activity.name in turn.round.denied:
        return [ended(turn, at, exits.ApprovalDenied(tool=activity.name))]
    told = f"{words} Do not ask for it again; go on without it or say what is needed."
    return [CallSettled(at=at, call=activity.call, words=told, denied=True, why=why, sources=sources)]


def _next_step(turn: Standing, at: int) -> Decisions:
    """All tools are back: the model's turn again, unless a limit says otherwise."""
    if turn.round.stopping is not None:
        return [SummaryAsked(at=at, exit=turn.round.stopping, advice=Advice.SUM_UP_LOOP)]
    most = turn.settings.max_steps
    if turn.step >= most:
        return [SummaryAsked(at=at, exit=exits.StepLimit(limit=most), advice=Advice.SUM_UP_LIMIT)]
    return ()


# ---------------------------------------------------------------------- restarts and ends


def _restart(turn: Standing, question: Restart) -> Decisions:
    """What is safe goes on, and what nobody knows is said to be so."""
    at, settings, draft = question.at, turn.settings, turn.draft
    if at >= turn.deadline_at or (settings.goes_on and turn.restarts > settings.restarts_a_step):
        return [ended(turn, at, exits.InterruptedByRestart())]
    match turn.phase:
        case Phase.CALLING if question.left and not draft.said and not draft.in_tool_call:
            how = Resume.CALL  # a call that the gateway itself broke off in order is no failure
        case Phase.CALLING if turn.closing is not None:
            return _last_words(turn, at)
        case Phase.CALLING if not settings.goes_on:
            return _broke(turn, CallBroke(at=at, cause=BreakCause.RESTARTED))
        case Phase.CALLING:  # that the process died is no failure of the model: it gets no remedy
            how = Resume.CALL
            if turn.ask.continues is None:
                how = Resume.ANEW if draft.in_tool_call else Resume.GO_ON if draft.said else Resume.CALL
        case Phase.WAITING:
            how = Resume.CALL
        case Phase.COMPACTING:
            how = Resume.COMPACT
        case Phase.ASKING:
            how = Resume.ASK
        case Phase.ACTING:
            if turn.round.unrepeatable and not settings.goes_on:
                return [ended(turn, at, exits.InterruptedByRestart())]
            how = Resume.ACT
        case Phase.NEW | Phase.ENDED:
            raise AssertionError(turn.phase)
    return [TurnResumed(at=at, how=how)]
