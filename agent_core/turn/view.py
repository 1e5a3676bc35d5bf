"""What people should see of a turn right now: `view(turn, now)` gives its bubbles.

Theory. Showing is level-triggered: every surface compares this with what it has delivered and makes up the difference. No
code path "sends" a notice or a status; they are part of the view. Bubbles keep their keys; the text of a text bubble only
grows; order is the order of the conversation, with the status last while the turn is open and the notice last when it is over.

Laws (tests/agent_core/test_view.py): a closed turn has no status and exactly one of answer, hand-over or notice; a text bubble
never shrinks from one view to the next; replaying a journal gives the same view.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import assert_never

from agent_core.causes import BreakCause, cause_words
from agent_core.failures.exits import Exit
from agent_core.failures.leftout import left_out_words
from agent_core.failures.notices import Action
from agent_core.limits.quotas import QuotaKind, for_person
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting, kind_of
from agent_core.rules.taint import AskedWhy, not_run_words, why_words
from agent_core.text.durations import duration
from agent_core.text.shown import plain
from agent_core.text.tongue import beginning, sentence, speak, speaking, spelled, spoken_now
from agent_core.tools.asked import changed, deed, question, whole
from agent_core.tools.asking import shown_step, steps_of
from agent_core.tools.base import DoubtCause, ToolStatus
from agent_core.turn.standing import Silence, Standing
from agent_core.turn.state import (
    Activity,
    ActivityState,
    Decided,
    MadeFile,
    Mended,
    Phase,
    Remark,
    Segment,
    SegmentKind,
    mended_words,
)

LEFT_WORDS = sentence("The gateway is interrupted; this goes on afterwards")
STATUS_AFTER_SECONDS, STATUS_SOON_SECONDS = 20, 4
"""Silence after which a status appears."""
QUIET_SECONDS = 3
"""So long nothing new has come, and a status that is shown says so."""


class BubbleKind(StrEnum):
    """What a bubble is. A surface may show some kinds in its own way, or only while they matter."""

    INTERIM = "interim"
    PARTIAL = "partial"
    ANSWER = "answer"
    ACTIVITY = "activity"
    APPROVAL = "approval"
    QUESTION = "question"
    """A running tool asks something."""
    DECIDED = "decided"
    """What somebody said to a request for approval; it stands where that stood."""
    STATUS = "status"
    NOTICE = "notice"
    FILE = "file"
    NOTE = "note"
    """The gateway says something while the turn goes on."""
    MENDED = "mended"
    """What had gone wrong for some time, and was mended. It is a status that stays, and no part of the conversation."""


ASKED = ".asked"
"""How the keys of requests for approval end, behind that of the call."""
TEXTS = frozenset({BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER})
"""What the model says."""


@dataclass(slots=True)  # not frozen: one is made for every frame of a text, and that costs a third
class Bubble:
    """One visible piece of a turn."""

    key: str
    """Stable within the turn."""
    kind: BubbleKind
    text: str
    final: bool
    """It will not change any more."""
    tool: str = ""
    state: str = ""
    """For activities: an `ActivityState`."""
    seconds: int = 0
    call: str = ""
    """For activities and approvals: the call's id."""
    actions: tuple[Action, ...] = ()
    options: tuple[str, ...] = ()
    """For questions that are open: answers that can be pressed."""
    whole: str = ""
    """For approvals: the question with all of the arguments, if they are too long for the text."""
    change: str = ""
    """For approvals: the lines of the text that say what becomes of a file, the last ones of them a diff."""
    limit: str = ""
    """For approvals: how long somebody has to decide, where what is shown stands still."""
    left: str = ""
    """For approvals: how long is left, where what is shown is drawn anew; one of both stands below the text."""
    offers: tuple[Lasting, ...] = ()
    """For approvals: for how long somebody may agree."""
    refusal: bool = False
    """For texts: the model refuses."""
    path: str = ""
    """For files: where the one that was sent lies."""
    arguments: str = ""
    """For activities and approvals: all of them, as the model wrote them."""
    result: str = ""
    """For activities: what the call gave, as the model read it."""


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A call that is back: it stays as it is, and is drawn once. A turn may have a hundred of them, and is looked at in each round."""

    language: str
    bubble: Bubble
    alone: bool
    """Nothing else is seen of it."""


def call_key(bubble: Bubble) -> str:
    """The key of the call that it is about."""
    return bubble.key.removesuffix(ASKED)


@dataclass(frozen=True, slots=True)
class View:
    """Everything there is to see of a turn."""

    bubbles: tuple[Bubble, ...]
    open: bool
    exit_code: str = ""
    language: str = ""
    """In which it is said."""

    @property
    def text(self) -> str:
        """All text for people that is neither status nor activity, as one text."""
        kinds = (BubbleKind.INTERIM, BubbleKind.PARTIAL, BubbleKind.ANSWER, BubbleKind.NOTE, BubbleKind.NOTICE)
        return "\n\n".join(bubble.text for bubble in self.bubbles if bubble.kind in kinds)


def spelled_view(shown: View, prefix: str) -> View:
    """The same with commands as they are written where this prefix stands before them; what the model says stays as it is."""
    if not any("{/" in one.text for one in shown.bubbles):
        return shown
    bubbles = tuple(one if one.kind in TEXTS else replace(one, text=spelled(one.text, prefix)) for one in shown.bubbles)
    return replace(shown, bubbles=bubbles)


def view(turn: Standing, now: int, silence: Silence | None = None) -> View:
    """The bubbles of `turn` at `now` (ms), in the language of its person. Pure; the same turn and time give the same view.

    `silence`: how long the call that is under way may say nothing, where its maker can be asked; else what is configured for a short prompt.
    """
    language = turn.language
    if language == spoken_now():  # each token comes by here
        return _view(turn, now, language, silence)
    with speaking(language):
        return _view(turn, now, spoken_now(), silence)


def _view(turn: Standing, now: int, language: str, silence: Silence | None) -> View:
    bubbles = _came(turn)
    told: set[QuotaKind] = set()
    for entry in turn.timeline:
        match entry:
            case Remark():
                bubbles.append(Bubble(entry.key, BubbleKind.NOTE, remark_words(entry), final=True))
            case Segment():
                visible = entry.visible
                if visible:
                    bubbles.append(Bubble(entry.key, _kind(entry.kind), visible, entry.final, refusal=entry.refusal))
            case Activity():
                if isinstance(drawn := entry.drawn, _Drawn) and drawn.alone and drawn.language == language:
                    bubbles.append(drawn.bubble)
                    continue
                if entry.state is ActivityState.APPROVAL:
                    bubbles.append(_approval(entry, now))
                    continue
                if entry.decided is not None:
                    words = decided_words(entry.name, entry.arguments, entry.decided)
                    bubbles.append(
                        Bubble(f"{entry.key}{ASKED}", BubbleKind.DECIDED, words, final=True, tool=entry.name)
                    )
                bubbles.append(_activity(entry, now, language))
                if entry.intention is not None:
                    bubbles += _questions(entry)
                if entry.status is not None and entry.state is ActivityState.UNSURE:
                    words = unsure_words(entry.name, entry.status, entry.doubt)
                    bubbles.append(Bubble(f"{entry.key}.unsure", BubbleKind.NOTE, words, final=True))
                if entry.state is ActivityState.NOT_RUN and entry.why is not AskedWhy.ALWAYS and entry.decided is None:
                    words = not_run_words(entry.name, entry.why, entry.sources)
                    bubbles.append(Bubble(f"{entry.key}.held", BubbleKind.NOTE, words, final=True))
                if entry.full is not None and entry.full.kind not in told:  # once, however often it is tried
                    told.add(entry.full.kind)
                    words = for_person(entry.full)
                    bubbles.append(Bubble(f"{entry.key}.full", BubbleKind.NOTE, words, final=True))
                if entry.file:
                    name = entry.file.rpartition("/")[2]
                    bubbles.append(Bubble(f"{entry.key}.file", BubbleKind.FILE, name, final=True, path=entry.file))
            case MadeFile():
                bubbles.append(_made(entry))
            case Mended():
                if entry.seconds >= _status_after(turn):
                    bubbles.append(Bubble(entry.key, BubbleKind.MENDED, mended_words(entry), final=True))
    if turn.exit is None:
        status = speak(LEFT_WORDS) if turn.left else status_words(turn, now, silence)
        if status:
            bubbles.append(Bubble("status", BubbleKind.STATUS, status, final=False))
        return View(tuple(bubbles), open=turn.opened is not None, language=language)
    ending = exit_view(turn.exit)
    return View((*bubbles, *ending.bubbles), open=False, exit_code=ending.exit_code, language=language)


def _came(turn: Standing) -> list[Bubble]:
    """What could not be taken of what the person sent."""
    bubbles: list[Bubble] = []
    if turn.opened is not None:
        for one in turn.opened.input:
            for words in one.told:  # hardly ever any, and this is asked for each token
                if all(words != bubble.text for bubble in bubbles):
                    bubbles.append(Bubble(f"came{len(bubbles)}", BubbleKind.NOTE, words, final=True))
    return bubbles


def _made(made: MadeFile) -> Bubble:
    if made.path:
        return Bubble(made.key, BubbleKind.FILE, made.path.rpartition("/")[2], final=True, path=made.path)
    what = speak("a picture") if made.kind == "image" else speak("sound")
    words = (
        speak("The model made {what}: {url}", what=what, url=plain(made.url))
        if made.url
        else speak("The model made {what}, which could not be kept.", what=what)
    )
    return Bubble(made.key, BubbleKind.NOTE, words, final=True)


def remark_words(remark: Remark) -> str:
    """What people read of what was left out."""
    if remark.toolless:
        return speak(
            "The provider takes no tools for {model} with this request: what follows was said without them.",
            model=remark.model,
        )
    return left_out_words(remark.left_out, remark.model, remark.endpoint, remark.cause)


def exit_view(ending: Exit) -> View:
    """What an exit alone shows: its notice, if it has one."""
    notice = ending.notice()
    if notice is None:
        return View((), open=False, exit_code=ending.code.value)
    bubble = Bubble("notice", BubbleKind.NOTICE, notice.text, final=True, actions=notice.actions)
    return View((bubble,), open=False, exit_code=ending.code.value)


def _kind(kind: SegmentKind) -> BubbleKind:
    match kind:
        case SegmentKind.PARTIAL:
            return BubbleKind.PARTIAL
        case SegmentKind.INTERIM:
            return BubbleKind.INTERIM
        case SegmentKind.ANSWER:
            return BubbleKind.ANSWER


def _activity(activity: Activity, now: int, language: str) -> Bubble:
    drawn = activity.drawn
    if isinstance(drawn, _Drawn) and drawn.language == language:
        return drawn.bubble
    running = activity.state is ActivityState.RUNNING
    bubble = Bubble(
        activity.key,
        BubbleKind.ACTIVITY,
        f"{plain(activity.name)} {_short(activity.arguments)}".rstrip(),
        final=activity.returned,
        tool=activity.name,
        state=activity.state.value,
        seconds=max(0, (now - activity.since) // 1000) if running else round(activity.seconds),
        call=activity.call,
        arguments=activity.arguments,
        result=activity.result,
    )
    if bubble.final:
        beside = activity.intention, activity.decided, activity.full, activity.file or None
        alone = activity.state in (ActivityState.DONE, ActivityState.FAILED) and beside == (None, None, None, None)
        activity.drawn = _Drawn(language, bubble, alone)
    return bubble


def _questions(activity: Activity) -> list[Bubble]:
    """What the call has asked the person."""
    running = activity.state is ActivityState.RUNNING
    return [
        Bubble(
            f"{activity.key}.ask{number}", BubbleKind.QUESTION, shown_step(step), final=not (step.open and running),
            tool=activity.name, state="open" if step.open and running else "over", call=activity.call,
            options=step.options if step.open and running else (),
        )
        for number, step in enumerate(steps_of(activity.intention))
    ]  # fmt: skip


def _approval(activity: Activity, now: int) -> Bubble:
    asked_at = activity.since
    left = max(0, (activity.approval_deadline - max(now, asked_at)) // 1000)
    limit = max(0, (activity.approval_deadline - asked_at) // 1000)
    change = changed(activity.name, activity.arguments, activity.change)
    lines = [
        question(activity.name, activity.arguments, activity.change),
        change,
        why_words(activity.why, activity.sources),
        lasting_words(activity),
    ]
    return Bubble(
        f"{activity.key}{ASKED}", BubbleKind.APPROVAL, "\n".join(filter(None, lines)), final=False, tool=activity.name,
        state=activity.state.value, seconds=max(0, (now - asked_at) // 1000), call=activity.call,
        whole=whole(activity.name, activity.arguments, activity.change), arguments=activity.arguments, offers=activity.offers,
        change=change,
        limit=speak("(Decide within {duration}; then the answer ends without it.)", duration=duration(limit)),
        left=speak("({duration} left to decide; then the answer ends without it.)", duration=duration(left)),
    )  # fmt: skip


def lasting_words(activity: Activity) -> str:
    """What is agreed to by more than once."""
    kind = kind_of(activity.name, activity.arguments) if len(activity.offers) > 1 else None
    return speak("A lasting approval covers: {what}.", what=kind.shown()) if kind is not None else ""


def decided_words(tool: str, arguments: str, decided: Decided) -> str:
    """What somebody decided about a call, for people."""
    what = deed(tool, arguments) or plain(tool)
    if not decided.given:
        said = speak("Not approved: {what}", what=what)
        return f"⛔ {said}"
    match decided.lasts:
        case Lasting.ONCE:
            said = speak("Approved: {what}", what=what)
        case Lasting.CONVERSATION:
            said = speak("Approved for this conversation: {what}", what=what)
        case Lasting.ALWAYS:
            said = speak("Approved always for such calls: {what}", what=what)
    return f"✅ {said}"


def _short(arguments: str) -> str:
    """Arguments on one line, at most 120 characters; what asks a person shows them all (`asked`)."""
    line = " ".join(arguments.split())
    if line in ("", "{}"):
        return ""
    return (
        plain(line)
        if len(line) <= 120
        else speak("{text} … ({count} characters)", text=plain(line[:100]), count=len(arguments))
    )


def status_words(turn: Standing, now: int, silence: Silence | None = None) -> str:
    """What an open turn is waiting for, once that takes long enough to be worth a word; else an empty text."""
    waited = max(0, (now - turn.life_at) // 1000)
    in_phase = max(0, (now - turn.phase_since) // 1000)
    match turn.phase:
        case Phase.CALLING:
            return _calling_words(turn, waited, in_phase, silence)
        case Phase.WAITING:
            left = max(0, -(-(turn.wait_until - now) // 1000))
            if turn.wait_until - turn.phase_since < 2000:
                return ""
            broke = turn.last_break
            cause = cause_words(broke.cause, seconds=broke.waited_seconds) if broke else speak("it failed")
            return speak(
                "{cause}; trying again in {left} s (attempt {attempt})",
                cause=beginning(cause),
                left=left,
                attempt=turn.attempts + 1,
            )
        case Phase.ACTING:
            running = [e for e in turn.timeline if isinstance(e, Activity) and e.state is ActivityState.RUNNING]
            # Not since the round began: a person may have been asked first, and that is told as a wait of its own.
            seconds = max(((now - each.since) // 1000 for each in running), default=0)
            if not running or seconds < _status_after(turn):
                return ""
            return speak(
                "Running {tools}, {seconds} s",
                tools=", ".join(dict.fromkeys(each.name for each in running)),
                seconds=seconds,
            )
        case Phase.COMPACTING:
            return speak("The conversation has become long; shortening it")
        case Phase.NEW | Phase.ASKING | Phase.ENDED:
            return ""
        case _:
            assert_never(turn.phase)


def _status_after(turn: Standing) -> int:
    """Seconds. Where a stall is noticed soon, people hear of it before it is."""
    return min(STATUS_AFTER_SECONDS, max(STATUS_SOON_SECONDS, round(turn.settings.stall_seconds / 2) - 1))


def _calling_words(turn: Standing, waited: int, in_phase: int, silence: Silence | None) -> str:
    if max(waited, in_phase) < STATUS_SOON_SECONDS and not turn.attempts:
        return ""
    again, after = _again_words(turn), _status_after(turn)
    if (in_phase >= after or waited >= after) and turn.naming:
        quiet = speak(", nothing new for {waited} s", waited=waited) if waited >= QUIET_SECONDS else ""
        return speak(
            "The model is writing a call of {naming} ({arriving_chars} characters, {in_phase} s{quiet})",
            naming=turn.naming,
            arriving_chars=turn.arriving_chars,
            in_phase=in_phase,
            quiet=quiet,
        )
    if waited >= after:
        first, between = silence or turn.may_be_silent()
        limit = round(between if turn.life_at > turn.phase_since else first)
        return speak(
            "Waiting for the model, {waited} s{again} (gives up at about {limit} s)",
            waited=waited,
            again=again,
            limit=limit,
        )
    if in_phase >= after and turn.thinking:
        return speak("The model is thinking, {in_phase} s{again}", in_phase=in_phase, again=again)
    return speak("Trying again{again}", again=again) if again and turn.life_at == turn.phase_since else ""


def _again_words(turn: Standing) -> str:
    if turn.last_break is None or turn.attempts == 0:
        return ""
    cause = turn.last_break.cause
    if cause is BreakCause.ENDED_EARLY and not turn.last_break.waited_seconds:
        return speak(" (attempt {attempt})", attempt=turn.attempts + 1)
    return speak(
        " (attempt {attempt}: {cause})",
        attempt=turn.attempts + 1,
        cause=cause_words(cause, seconds=turn.last_break.waited_seconds),
    )


# ---------------------------------------------------------------------- what is told while a turn goes on


def unsure_words(tool: str, status: ToolStatus, doubt: DoubtCause = DoubtCause.UNSAID) -> str:
    """What people read about a call whose outcome nobody knows, while the turn goes on."""
    return speak(
        "{tool} may or may not have been done: {why}. The reply goes on from there; check before it is repeated.",
        tool=tool,
        why=doubt_words(status, doubt),
    )


def doubt_words(status: ToolStatus, doubt: DoubtCause) -> str:
    """Why nobody knows how a call ended; journals of before say it by its status alone."""
    match doubt:
        case DoubtCause.WENT_AWAY:
            return speak("what carries it out ended, or was lost, while it ran")
        case DoubtCause.NO_RESULT:
            return speak("the answer that came is no result")
        case DoubtCause.SLOW:
            return speak("it did not finish in time")
        case DoubtCause.RESTARTED:
            return speak("the gateway was restarted while it ran")
        case DoubtCause.UNSAID:
            return doubt_words(status, DoubtCause.SLOW if status is ToolStatus.TIMED_OUT else DoubtCause.RESTARTED)
