"""A replay in words for an operator: what happened, what was decided, where it parts. Pure.

Texts of people, models, tools and providers are named by their length only, unless `show_text` asks for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from agent_core.causes import cause_words
from agent_core.failures.exits import ExitCode
from agent_core.journal.replay import (
    CONTENT,
    DECIDED,
    Difference,
    Mismatch,
    Moment,
    Parting,
    Replay,
    decided,
    exit_words,
)
from agent_core.records import dataclass
from agent_core.text.durations import at_time
from agent_core.text.tongue import speak
from agent_core.tools.base import ToolStatus
from agent_core.turn import effects as fx
from agent_core.turn import events as ev

SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One line of the timeline: neighbouring pieces of a reply are one."""

    first: int
    last: int
    """Rows."""
    at: int
    event: str
    decisions: tuple[str, ...]


def timeline(moments: Sequence[Moment], *, show_text: bool = False) -> list[TimelineEntry]:
    """Every row of the journal but the recorded decisions, which stand with the events that led to them."""
    lines: list[TimelineEntry] = []
    pieces: list[Moment] = []
    for moment in moments:
        if isinstance(moment.event, CONTENT) and not moment.effects:
            pieces.append(moment)
            continue
        if isinstance(moment.event, DECIDED) and not isinstance(moment.event, ev.TurnEnded):
            continue
        if pieces:
            lines.append(_content_line(pieces, show_text=show_text))
            pieces = []
        decisions = tuple(decision_words(effect, show_text=show_text) for effect in moment.effects)
        words = event_words(moment.event, show_text=show_text)
        lines.append(TimelineEntry(moment.seq, moment.seq, moment.event.at, words, decisions))
    if pieces:
        lines.append(_content_line(pieces, show_text=show_text))
    return lines


def _content_line(pieces: Sequence[Moment], *, show_text: bool) -> TimelineEntry:
    texts: dict[str, str] = {}
    for piece in pieces:
        match piece.event:
            case ev.TextArrived(text=text):
                texts["text"] = texts.get("text", "") + text
            case ev.ReasoningArrived(text=text):
                texts["thoughts"] = texts.get("thoughts", "") + text
            case ev.TextTakenBack():
                texts["thoughts"] = texts.get("thoughts", "") + texts.pop("text", "")
            case ev.ToolCallNamed(name=name, index=index):
                texts[f"a call of {name}\0{index}"] = ""
            case ev.ToolArgumentsArrived(index=index, text=text):
                key = next((key for key in texts if key.endswith(f"\0{index}")), f"arguments\0{index}")
                texts[key] = texts.get(key, "") + text
            case ev.ToolCallCut(name=name):
                texts[f"a call of {name or 'a tool'} that was cut"] = ""
            case _:
                pass
    said = [_sized(key.partition("\0")[0], text, show_text=show_text) for key, text in texts.items()]
    last = pieces[-1]
    return TimelineEntry(pieces[0].seq, last.seq, last.event.at, "; ".join(said), ())


def _sized(what: str, text: str, *, show_text: bool) -> str:
    if not text:
        return what
    return f"{what}, {len(text):,} characters" + _shown(text, show_text=show_text)


def _shown(text: str, *, show_text: bool) -> str:
    if not show_text or not text.strip():
        return ""
    line = " ".join(text.split())
    return f": “{line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + '…'}”"


def event_words(event: ev.Event, *, show_text: bool = False) -> str:
    """What happened."""
    match event:
        case ev.TurnOpened():
            return f"the turn began with {len(event.input)} message{'s' if len(event.input) != 1 else ''}"
        case ev.CallBroke():
            cause = cause_words(event.cause, seconds=event.waited_seconds, status=event.status)
            return f"the model call failed: {cause}" + _shown(event.detail, show_text=show_text)
        case ev.ReplyFinished():
            return f"the reply ended (“{event.reason}”, {event.output_tokens} tokens)"
        case ev.ToolStarted():
            return f"the tool call {event.call} was started"
        case ev.ToolReturned():
            ok = "done" if event.status is ToolStatus.OK else event.status.value.replace("_", " ")
            refused = f", {event.refusal.value.replace('_', ' ')}" if event.refusal else ""
            return _sized(f"the tool call {event.call} returned: {ok}{refused}", event.text, show_text=show_text)
        case ev.ChangeShown(change=change):
            return f"what the call {event.call} would change was shown (+{change.added} −{change.removed})"
        case ev.ApprovalAnswered():
            return f"approval of the call {event.call}: {event.verdict.value}"
        case ev.Steered():
            return "the person added something"
        case ev.StopRequested():
            return "a person said stop"
        case ev.Superseded():
            return "a newer message took its place"
        case ev.DeadlinePassed():
            return "the turn's time was up"
        case ev.Compacted():
            return "the conversation was shortened" if event.helped else "the conversation could not be shortened"
        case ev.DoneSaid():
            return f"the model, asked whether its reply is finished, said {finished_words(event.finished)}"
        case ev.TurnLeft():
            return "the gateway was shut down, and left the turn open"
        case ev.DrainEnded():
            return "the gateway was shut down"
        case ev.TakenOver():
            return "the gateway had been restarted; the turn was taken up again"
        case ev.DriverFailed():
            return f"the gateway itself failed (reference {event.reference})"
        case ev.TurnEnded():
            return f"recorded end: {exit_words(event.exit)}"
        case _ if isinstance(event, DECIDED):
            return f"recorded: {decided(event)}"
        case _:
            words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(event).__name__).strip()
            return {"wait ended": "the pause was over"}.get(words, words)


def finished_words(finished: bool | None) -> str:
    """What a model said when it was asked whether its reply is finished."""
    return {True: "that it is", False: "that it is not", None: "neither, or nothing in time"}[finished]


def decision_words(effect: fx.Effect, *, show_text: bool = False) -> str:
    """What was decided."""
    match effect:
        case fx.CallModel():
            how = [f"asks {effect.route.model} at {effect.route.endpoint} (call {effect.number})"]
            if effect.advice is not None:
                how.append(f"with the advice “{effect.advice.value.replace('_', ' ')}”")
            if effect.partial:
                how.append(f"going on from {len(effect.partial):,} characters")
            if not effect.offer_tools:
                how.append("without tools")
            return ", ".join(how) + _shown(effect.detail, show_text=show_text)
        case fx.Wait():
            return f"waits {effect.seconds:.1f} s"
        case fx.RunTool():
            return _sized(f"runs {effect.name} (call {effect.call})", effect.arguments, show_text=show_text)
        case fx.AskApproval():
            return f"asks for approval of {effect.name}, for {effect.seconds} s"
        case fx.Compact():
            return "shortens the conversation"
        case fx.AskDone():
            return "asks the model whether its reply is finished"
        case fx.SetAside():
            return f"sets the key {effect.credential} aside for {effect.seconds:.0f} s ({effect.why.replace('_', ' ')})"
        case fx.Record(event=event):
            return _record_words(event)
        case fx.EndTurn(exit=ending):
            return f"ends the turn: {exit_words(ending)}" + _shown(
                ending.facts().get("announced", ""), show_text=show_text
            )
        case _:
            assert_never(effect)


def _record_words(event: ev.Judgement) -> str:
    if isinstance(event, ev.RemedyJudged):
        return (
            f"the remedy before ({event.remedy.value.replace('_', ' ')}) {'helped' if event.helped else 'did not help'}"
        )
    if isinstance(event, ev.RemedyChosen):
        why = f" (number {event.number} for {event.failure.value.replace('_', ' ')})"
        return speak(event.remedy.recipe.story, more=why).rstrip(".")
    return decided(event)


def decisions_words(effects: Sequence[fx.Effect], *, show_text: bool = False) -> str:
    """Several decisions as one phrase."""
    return "; ".join(decision_words(effect, show_text=show_text) for effect in effects) or "goes on as before"


def head(found: Replay, name: str) -> str:
    """The first line: which turn, when, how long."""
    opened = found.turn.opened
    if opened is None:
        return f"{name}: no turn can be read from this journal."
    began = at_time(opened.at).strftime("%Y-%m-%d %H:%M:%S UTC")
    route = opened.settings.routes[0]
    state = f"ended: {found.turn.exit.code.value.replace('_', ' ')}" if found.turn.exit is not None else "still open"
    return f"{name} in {len(found.moments)} rows, began {began}, {route.model} at {route.endpoint}; {state}."


def lines_of(found: Replay, *, show_text: bool, most: int) -> list[str]:
    """The timeline, each line with seconds since the beginning; of a long one the beginning and the end."""
    opened_at = found.turn.opened.at if found.turn.opened else 0
    lines: list[str] = []
    for line in timeline(found.moments, show_text=show_text):
        rows = f"#{line.first}" if line.first == line.last else f"#{line.first}–{line.last}"
        decisions = "".join(f"\n{'':>20}→ {words}" for words in line.decisions)
        lines.append(f"{(line.at - opened_at) / 1000:>8.1f} s  {rows:<8}{line.event}{decisions}")
    if len(lines) <= most:
        return lines
    half = most // 2
    return [*lines[:half], f"{'':>20}… {len(lines) - 2 * half} more; --json shows all of them …", *lines[-half:]]


def difference_words(one: Difference) -> str:
    """One difference in a sentence."""
    where = f"At row {one.seq}"
    match one.about:
        case Mismatch.ROWS:
            expected = f", where {one.replayed} should be" if one.replayed else ""
            return f"{where}: the journal is not whole: {one.recorded}{expected}."
        case Mismatch.DECISION if not one.recorded:
            return f"{where}: replayed, the machine decides “{one.replayed}”, and the journal does not have it."
        case Mismatch.DECISION if not one.replayed:
            return f"{where}: the journal has the decision “{one.recorded}”, and replayed the machine does not make it."
        case Mismatch.DECISION:
            return f"{where}: the journal has the decision “{one.recorded}”, replayed it is “{one.replayed}”."
        case Mismatch.PLACE:
            return f"{where}: {one.recorded} is out of place: {one.replayed}."
        case Mismatch.EXIT:
            replayed = f"replayed the end is “{one.replayed}”" if one.replayed else "replayed the turn goes on"
            return f"{where}: the recorded end is “{one.recorded}”, {replayed}."
        case Mismatch.LAW:
            return f"{where}: the machine breaks one of its laws: {one.replayed}."
        case Mismatch.VIEW:
            return f"{where}: what there is to see differs: {one.recorded} is not {one.replayed}."


def compared(found: Replay) -> str:
    """What was compared, in a sentence."""
    end = ", the end with all its facts" if found.ended else ""
    return (
        f"Compared, byte by byte: {found.decisions} recorded decisions{end}, and the view of the journal as it is stored with the "
        f"view of the same journal joined together. Checked: for each of the {len(found.moments)} rows that something before it led "
        "to it, and the laws of a turn."
    )


def parting_words(parted: Parting, opened_at: int, *, show_text: bool = False) -> list[str]:
    """Where another setting would have decided otherwise, and what that means."""
    when = f"{(parted.event.at - opened_at) / 1000:.1f} s"
    recorded = decisions_words(parted.recorded, show_text=show_text)
    other = decisions_words(parted.other, show_text=show_text)
    if parted.told != ("", ""):
        recorded, other = (
            f"{words}; the model is told: {told or 'nothing'}"
            for words, told in zip((recorded, other), parted.told, strict=True)
        )
    if parted.time_is_up:
        first = f"Before row {parted.seq} ({when}: {event_words(parted.event)}) the time would have been up:"
    elif isinstance(parted.event, ev.DeadlinePassed):
        first = f"At row {parted.seq} ({when}) the time would not have been up yet:"
    else:
        first = f"The decisions part at row {parted.seq} ({when}: {event_words(parted.event, show_text=show_text)}):"
    ended = any(isinstance(effect, fx.EndTurn) for effect in parted.recorded)
    rest = (
        "There the recorded turn was over; what would have followed is not known."
        if ended
        else "The rows after it tell what followed from the recorded decision; what would have followed from the other is not known."
    )
    return [first, f"  as recorded:  {recorded}", f"  with this set: {other}", rest]


def verdict(found: Replay) -> str:
    """The last line."""
    if found.differences:
        return (
            "The replay DIFFERS from what was recorded. Either the journal was changed or is damaged, or another version of this "
            "program, with other rules, decided this turn."
        )
    clean = found.turn.exit is not None and found.turn.exit.code is ExitCode.INTERNAL_ERROR and found.notes
    return "As far as it can be compared, the replay agrees." if clean else "The replay agrees with what was recorded."
