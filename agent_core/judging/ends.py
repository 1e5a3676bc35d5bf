"""What is said of an end, put together from where a turn stands: the exit's own facts, and what had run, what had not, what may have. Pure.

Beside `judge`, because it asks no rule: that a turn ends, and by which exit, is decided there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.leftout import LeftOutKind
from agent_core.failures.remedies import DOUBTING, Failure, Remedy
from agent_core.rules.whole import TextForm, form_of
from agent_core.text.tongue import clause, sentence
from agent_core.turn.events import CallBroke, TurnEnded
from agent_core.turn.standing import Standing
from agent_core.turn.state import Phase, Segment, SegmentKind

NO_MORE = (Failure.NOTHING_MORE, Failure.THOUGHT_MORE)
"""Asked to go on from a text, the model brought nothing."""
_SILENT = (BreakCause.NO_CONTENT, BreakCause.STALLED)
_Troubled = TypeVar("_Troubled", bound=exits.Troubled)


def ended(turn: Standing, at: int, ending: exits.Exit, *, dropped: tuple[str, ...] = ()) -> TurnEnded:
    """The end, with what had run, what had not, what may have."""
    lost, unsure = turn.round.left() if turn.phase is Phase.ACTING else ((), ())
    arriving = turn.draft.call_names if turn.phase is Phase.CALLING else ()
    progress = isinstance(ending, exits.EmptyAfterTools) and any(
        isinstance(entry, Segment) and entry.visible for entry in turn.timeline
    )
    told = replace(
        ending,
        model=turn.route.model,
        steps=turn.steps_done,
        tools_done=tuple(turn.round.tools_done),
        tools_dropped=dropped or (*arriving, *lost),
        tools_unsure=(*turn.round.tools_unsure, *unsure),
        text_shown=is_cut(turn) or progress,
    )
    return TurnEnded(at=at, exit=told)


def answered(turn: Standing, at: int, answer: Segment | None, *, steps: int, text_shown: bool) -> TurnEnded:
    """The end of a turn that was answered; the answer is `answer`, or the last text."""
    ending = exits.Answered(
        model=turn.route.model,
        steps=steps,
        tools_done=tuple(turn.round.tools_done),
        tools_unsure=tuple(turn.round.tools_unsure),
        text_shown=text_shown,
    )
    return TurnEnded(at=at, exit=ending, answer=answer.key if answer is not None else "")


def failed(turn: Standing, failure: Failure, broke: CallBroke) -> TurnEnded:
    """No remedy is left: the exit that the failure leads to."""
    names = turn.draft.call_names
    names = names or (("",) if failure in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL) else ())
    last = "".join(turn.round.tools_run[-1:])
    record: type[exits.Failed] = exits.ending(turn.troubles.found[-1].code, exits.Failed)
    if stalls_again(turn, failure):
        record = exits.SameStallAgain
    cause, seconds = broke.cause, broke.waited_seconds if broke.cause in _SILENT else turn.failed_seconds
    cut_by = turn.ask.cut_by if failure in NO_MORE else None
    if cut_by not in (None, cause):  # what had cut the text is the cause, not what came of going on from it
        cause, seconds = cut_by, 0
    ending = record(
        cause=cause,
        seconds=round(seconds),
        attempts=turn.attempts,
        status=broke.status,
        retry_after_seconds=round(broke.retry_after_seconds),
        detail=broke.detail,
        tool=names[0] if names else last,
    )
    return ended(turn, broke.at, _with_its_own(turn, failure, broke, names, ending), dropped=names)


def _with_its_own(
    turn: Standing, failure: Failure, broke: CallBroke, names: Sequence[str], ending: exits.Failed
) -> exits.Failed:
    """`ending` with the facts that only an exit of its kind has. `names`: the tools whose call was arriving."""
    match ending:
        case exits.SameStallAgain():
            troubles, chars = turn.troubles, turn.arriving_chars
            tool = max(names, key=lambda name: troubles.rounds_of([name], chars))
            return replace(
                ending,
                tool=tool,
                pattern=exits.BREAKS_OFF.format(tool=tool),
                count=troubles.rounds_of([tool], chars),
                tried=troubles.tried(tool, turn.remedies),
            )
        case exits.BrokenInToolCall():
            return replace(ending, chars=turn.arriving_chars)
        case exits.BrokenInText() | exits.CutByLength() if failure in (Failure.IN_TEXT, *NO_MORE):
            nothing = failure in NO_MORE and not broke.status and not broke.waited_seconds
            return replace(ending, unclear=nothing or form_of(turn.reply_text) is TextForm.CLOSED)
        case exits.PromisedWithoutActing():
            return replace(ending, announced=turn.promised)
        case exits.TooMuch() if turn.settings.leaves_out:
            left = {(part.key, part.kind) for part in turn.leaving.parts}
            found = turn.leaving.first or broke.suspects
            return replace(ending, alone=all(one.now or (one.key, one.kind) in left for one in found))
        case exits.Doubted() if failure in DOUBTING and turn.chosen.get((failure, Remedy.LEAVE_OUT)):
            words = any(part.kind in (LeftOutKind.MESSAGE, LeftOutKind.THOUGHTS) for part in turn.leaving.parts)
            return replace(ending, without=sentence("the earlier messages") if words else sentence("what you attached"))
        case _:
            return ending


def stalls_again(turn: Standing, failure: Failure) -> bool:
    """A tool's calls have broken off so often that this has a name."""
    rounds = turn.troubles.rounds_of(turn.draft.call_names, turn.arriving_chars)
    return failure is Failure.IN_TOOL_CALL and rounds >= turn.settings.ladder.same_stall_rounds


def meanwhile(turn: Standing, ending: _Troubled) -> _Troubled:
    """A limit came; if a model call was failing, that is why nothing came of the turn."""
    broke = turn.last_break
    if broke is None:
        return ending
    return replace(
        ending,
        cause=broke.cause,
        seconds=round(broke.waited_seconds) if broke.cause in _SILENT else 0,
        attempts=turn.attempts,
        status=broke.status,
        detail=broke.detail,
    )


def is_cut(turn: Standing) -> bool:
    """Part of a reply is on screen that is not finished."""
    segment = turn.draft.segment
    return turn.closing is None and segment.kind is SegmentKind.PARTIAL and bool(segment.visible)


WAITS_FOR_MODEL = clause("waiting for the model")
REPLY_ARRIVES = clause("the reply that was arriving")
CALL_ARRIVES = clause("the call of {tool} that was arriving")
NEXT_TRY = clause("the next try")
SHORTENS = clause("shortening the conversation")
MAKES_SURE = clause("making sure that the reply is finished")


def doing(turn: Standing) -> str:
    """What a turn is at, for the notice of a stop: in English, said in the person's language when it is shown."""
    match turn.phase:
        case Phase.CALLING if turn.naming:
            return CALL_ARRIVES.format(tool=turn.naming)
        case Phase.CALLING:
            return REPLY_ARRIVES if is_cut(turn) else WAITS_FOR_MODEL
        case Phase.WAITING:
            return NEXT_TRY
        case Phase.COMPACTING:
            return SHORTENS
        case Phase.ACTING:
            return ", ".join(activity.name for activity in turn.round.unfinished)
        case Phase.ASKING:
            return MAKES_SURE
        case Phase.NEW | Phase.ENDED:
            return ""
