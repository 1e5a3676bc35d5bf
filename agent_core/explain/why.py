"""Why a message or a turn went as it did, in plain sentences: from the rows of the store and the turn's events alone. Pure.

`/why`, `outspoken explain` and the console say these words. A story has at most `MOST_LINES` lines; what frames it (what was asked,
the exit, the deliveries) always stays, and of what happened in between the beginning and the end.

What `/why` can tell is spoken in the language of whoever asks (tests/agent_core/test_tongue_everywhere.py); what only operators are told is English.

Law: without `show_text` no word of a person, a model, a tool or a provider is in it; names of tools, models and exits are.

Known to be weak: it tells what is stored. What a client of the API has received of a stream is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from enum import StrEnum
from itertools import islice
from typing import assert_never

from agent_core.causes import cause_words
from agent_core.failures import exits
from agent_core.failures.exits import Exit
from agent_core.failures.notices import RESTORED
from agent_core.failures.remedies import Advice, Does
from agent_core.learning.incidents import exit_title
from agent_core.limits.spend import spent_words
from agent_core.records import dataclass
from agent_core.rules.consents import Lasting
from agent_core.rules.promises import sign_words
from agent_core.rules.taint import AskedWhy, not_run_words, sources_words, why_words
from agent_core.store.deliveries.rows import BY_HAND, INSTEAD, AdapterStateRow, DeliveryRow, DeliveryState
from agent_core.store.inbox.rows import InboxState
from agent_core.store.turns.rows import TurnRow, TurnState
from agent_core.text.durations import at_time, duration
from agent_core.text.shown import quoted
from agent_core.text.tongue import known_sentence, number, sentence, speak, speak_many, spoken_now
from agent_core.tools.base import DoubtCause, EffectClass, ToolStatus
from agent_core.turn import events as ev
from agent_core.turn.view import doubt_words

MOST_LINES = 15
COMMANDS, REFUSED = "command", "refused"
"""Lanes of messages that are no turn's."""
HELD, POST = "hold", "post"
"""The commands as which are stored: a message that cannot be put into its queue yet; what the gateway, or whoever runs it, says in a chat."""
ON_TIME_MS = 60_000
"""What was due is on time for so long."""
WORTH_TELLING_MS = 300
"""A shorter wait before a turn is none."""
UP, NEEDS_A_PERSON = "up", "needs a person"
FINISH_REASONS = frozenset(
    {"stop", "length", "tool_calls", "function_call", "content_filter", "end_turn", "eos", "error"}
)
"""What providers say at a reply's end; anything else is words of their own."""

REASONS = {
    "not allowed to talk": "its person may not talk to the bot here",
    "too many messages": "its person had sent too many messages within a minute",
    "nothing in it can be taken": "it held nothing that can be read, such as a voice message",
    "queue_full": "too many messages were waiting in this conversation",
    "gateway_full": "too many messages were waiting in the whole gateway",
    "too_old": "it came too late to act on it",
    "quota": "the quota was used up",
    "quarantined": "the conversation is set aside after repeated failures",
    "shutting_down": "the gateway was shutting down",
    "its turn could not be opened": "its turn could not be opened because of a mistake of ours; the log has the details",
    "no model that may answer it is there": "its agent or its key names models, and none of them is there",
    "unknown_model": "it named a model that is not configured",
    "model_not_found": "it named a model that is not configured",
    "other_content": "its key was used before, for another request",
    "idempotency_key_reused": "its key was used before, for another request",
    "insufficient_quota": "a budget was used up",
    "invalid_request": "something in it is not as it must be",
    "invalid_json": "its body is no JSON",
    "request_too_large": "it was larger than max_body_bytes",
    "storage_unavailable": "nothing could be stored just then",
    "withdrawn by the client": "the client took it back before its turn",
    "withdrawn by the person": "the person took it back before its turn",
}
"""Why a message was not run, by the reason that is stored with it."""


class StoryEnd(StrEnum):
    """What a message or a turn has come to."""

    ENDED = "ended"
    """Its turn is closed; the exit says how."""
    RUNNING = "running"
    WAITING = "waiting"
    """For its turn, or for being carried out."""
    COMMAND = "command"
    """A command or a button, carried out."""
    STEERED = "steered"
    """It went into a turn that was running."""
    REFUSED = "refused"
    """Not taken, and stored with the reason."""
    DROPPED = "dropped"
    """Taken, and taken back or given up before its turn."""
    FORGOTTEN = "forgotten"
    """It is done, and what it led to is not stored any more."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a story."""

    at: int
    """When, ms."""
    words: str
    frame: bool = False
    """It stays, however short the story has to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """An occurrence of a schedule: what is stored instead of a person's message."""

    kind: str
    """``reminder`` or ``prompt``; empty for the prompt itself, as it is put to the model."""
    schedule: str
    missed: bool = False
    count: int = 1
    late_ms: int = 0
    """How late it was when the gateway came to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A stored message, as far as it is told."""

    number: int
    key: str
    """The platform's own id of it."""
    where: str
    lane: str
    state: InboxState
    at: int
    reason: str = ""
    chars: int = 0
    words: str = ""
    """What it says; empty if that is not to be shown."""
    command: str = ""
    occasion: Occasion | None = None
    request: bool = False
    """It came as a request of the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryCase:
    """All that is stored about a message or a turn."""

    now: int
    messages: tuple[Asked, ...] = ()
    """Those that the turn answers, in order; or the one that is asked about."""
    about: int = 0
    """The number of the message that is asked about; 0: the turn as a whole."""
    turn: TurnRow | None = None
    events: Sequence[ev.Event] = ()
    before: Sequence[TurnRow] = ()
    """Turns of the conversation that ran while the message waited."""
    ahead: int = 0
    """Messages that wait before it."""
    deliveries: Sequence[DeliveryRow] = ()
    """What is shown for the turn, or as the answer to a command."""
    adapters: Sequence[AdapterStateRow] = ()
    """The states that the adapter of the chat went through since the message came."""
    show_text: bool = False


def ending_of(case: StoryCase) -> StoryEnd:
    """What it has come to."""
    asked = next((m for m in case.messages if m.number == case.about), None) if case.about else None
    if asked is not None and asked.lane == REFUSED:
        return StoryEnd.REFUSED
    if asked is not None and asked.state is InboxState.DROPPED:
        return StoryEnd.DROPPED
    if case.turn is not None and (asked is None or asked.lane != COMMANDS):
        if asked is not None and _steered(case, asked):
            return StoryEnd.STEERED
        return StoryEnd.ENDED if case.turn.state is TurnState.CLOSED else StoryEnd.RUNNING
    if asked is None:
        return StoryEnd.FORGOTTEN
    if asked.state is InboxState.DONE:
        return StoryEnd.COMMAND if asked.lane == COMMANDS else StoryEnd.FORGOTTEN
    return StoryEnd.WAITING


def story_of(case: StoryCase) -> list[Sentence]:
    """What happened, in order: at most `MOST_LINES` - 1 lines."""
    now = case.now if case.turn is not None and case.turn.state is TurnState.OPEN else None
    lines = [*_asked_lines(case), *turn_lines(case.events, show_text=case.show_text, now=now), *_delivery_lines(case)]
    return fitted(sorted(lines, key=lambda line: line.at), MOST_LINES - 1)


def story(events: Sequence[ev.Event]) -> tuple[str, ...]:
    """A turn by its events alone: at most 15 lines, with times in UTC."""
    opened = next((event for event in events if isinstance(event, ev.TurnOpened)), None)
    if opened is None:
        return ()
    lines = fitted(turn_lines(events, show_text=True), MOST_LINES - 1)
    return told(speak("Turn on {surface}.", surface=opened.surface or speak("an unknown surface")), lines, UTC)


def told(head: str, lines: Sequence[Sentence], zone: tzinfo) -> tuple[str, ...]:
    """The lines as they are shown, behind a first one that says what it is about and which zone the times are in."""
    if not lines:
        return (head,)
    first = at_time(lines[0].at, zone)
    named, offset = first.strftime("%Z"), first.strftime("%z")
    shown = (
        f"{named} ({offset[:3]}:{offset[3:5]})"
        if not named.startswith(("+", "-", "UTC"))
        else f"UTC{offset[:3]}:{offset[3:5]}"
    )
    shown = "UTC" if shown == "UTC+00:00" else shown
    out = [speak("{head} Times are {zone}, {day}.", head=head, zone=shown, day=f"{first:%Y-%m-%d}")]
    for line in lines:
        when = at_time(line.at, zone)
        day = "" if when.date() == first.date() else f"{when:%m-%d} "
        out.append(f"{day}{when:%H:%M:%S}.{when.microsecond // 100_000}  {line.words}")
    return tuple(out)


def fitted(lines: Sequence[Sentence], most: int) -> list[Sentence]:
    """At most `most` of the lines, in order; what is left out is said to be."""
    if len(lines) <= most:
        return list(lines)
    room = most - 1
    frames = [i for i, line in enumerate(lines) if line.frame]
    if len(frames) > room:
        keep = {*frames[: room // 2], *frames[-(room - room // 2) :]}
    else:
        others = [i for i, line in enumerate(lines) if not line.frame]
        free = room - len(frames)
        keep = {*frames, *others[: (free + 1) // 2], *(others[-(free // 2) :] if free // 2 else ())}
    gone = [i for i in range(len(lines)) if i not in keep]
    out: list[Sentence] = []
    for i, line in enumerate(lines):
        if i == gone[0]:
            out.append(Sentence(line.at, speak_many("… {count} more event …", "… {count} more events …", len(gone))))
        if i in keep:
            out.append(line)
    return out


# ---------------------------------------------------------------------- what was asked


def _steered(case: StoryCase, asked: Asked) -> bool:
    return any(isinstance(event, ev.Steered) and event.inbox == asked.number for event in case.events)


def _asked_lines(case: StoryCase) -> list[Sentence]:
    asked = next((m for m in case.messages if m.number == case.about), None) or next(iter(case.messages), None)
    if asked is None:
        return []
    lines = [_arrival(asked)]
    others = [m.number for m in case.messages if m.number != asked.number]
    if others and case.turn is not None:
        numbers = ", ".join(map(str, others[:6]))
        if len(others) > 6:
            numbers = speak("{these} and others", these=numbers)
        words = speak("It was taken together with message {numbers}: pieces of one, answered as one.", numbers=numbers)
        lines.append(Sentence(asked.at, words, frame=True))
    ending = ending_of(case) if case.about else StoryEnd.ENDED
    match ending:
        case StoryEnd.REFUSED:
            lines.append(Sentence(asked.at, f"It was refused: {_reason(asked)}.", frame=True))
        case StoryEnd.DROPPED:
            how = "set aside" if asked.reason == RESTORED else "never run"
            lines.append(Sentence(asked.at, f"It was {how}: {_reason(asked)}.", frame=True))
        case StoryEnd.WAITING:
            lines.append(Sentence(case.now, _waiting(case, asked), frame=True))
        case StoryEnd.COMMAND:
            lines.append(Sentence(asked.at, _carried_out(asked), frame=True))
        case StoryEnd.STEERED:
            heard = next(e.at for e in case.events if isinstance(e, ev.Steered) and e.inbox == asked.number)
            turn = case.turn.turn if case.turn is not None else ""
            words = f"It went into the turn {turn}, which was running, and is answered there."
            lines.append(Sentence(heard, words, frame=True))
        case StoryEnd.FORGOTTEN:
            lines.append(Sentence(asked.at, "It is done; what it led to is not stored any more.", frame=True))
        case StoryEnd.ENDED | StoryEnd.RUNNING:
            lines += _waited(case, asked)
        case _:
            assert_never(ending)
    return lines


def _carried_out(asked: Asked) -> str:
    occasion = asked.occasion
    if asked.command == HELD:
        return "It came too fast, or there was no room for it: it was kept, and run later as a message of its own unless it was taken out."
    if asked.command == POST:
        return "It was said at once; that waits for no turn."
    if occasion is None:
        return "It is a command and was carried out at once; commands wait for no turn."
    if occasion.missed:
        return "It was not done any more, and the chat was told that it was missed."
    if occasion.kind == "reminder":
        return "The chat was reminded at once; reminders wait for no turn."
    return "Its prompt was put into the conversation's queue, if there was room; else the chat was told that there was none."


def _occurred(asked: Asked, occasion: Occasion) -> Sentence:
    named = speak("(number {number}, id {id})", number=asked.number, id=asked.key)
    if not occasion.kind:
        words = speak(
            "The schedule {schedule} put its prompt into {where} {named}; no person wrote it.",
            schedule=occasion.schedule, where=asked.where, named=named,
        )  # fmt: skip
        return Sentence(asked.at, words, frame=True)
    what = "The reminder" if occasion.kind == "reminder" else "The prompt"
    late = duration(occasion.late_ms // 1000)
    if occasion.missed:
        times = f"{occasion.count} times, the first time" if occasion.count > 1 else "once,"
        words = f"{what} of {occasion.schedule} for {asked.where} had been missed {times} {late} before {named}."
    else:
        behind = occasion.late_ms > ON_TIME_MS
        since = f"had been due for {late}: the gateway was stopped, or busy" if behind else "was due"
        words = f"{what} of {occasion.schedule} for {asked.where} {since} {named}."
    return Sentence(asked.at, words, frame=True)


def _arrival(asked: Asked) -> Sentence:
    if asked.occasion is not None:
        return _occurred(asked, asked.occasion)
    if asked.words:
        size = f": {quoted(_short(asked.words))}"
    elif asked.chars and asked.command in ("", HELD):
        size = speak_many(", {count} character", ", {count} characters", asked.chars)
    else:
        size = ""
    if asked.request:
        words = sentence("A request came from {where} (number {number}, id {id}{size}).")
    elif asked.command == POST:
        words = "The gateway, or whoever runs it, had something to say in {where} (number {number}, id {id}{size})."
    elif asked.command not in ("", HELD):
        words = f"The command /{asked.command} came from {{where}} (number {{number}}, id {{id}}{{size}})."
    else:
        words = sentence("A message came from {where} (number {number}, id {id}{size}).")
    said = speak(words, where=asked.where, number=asked.number, id=asked.key, size=size)
    return Sentence(asked.at, said, frame=True)


_OF_REQUEST = re.compile(r"(\w+)((?: at \S+)? \(HTTP \d+\))")


def _reason(asked: Asked) -> str:
    request = _OF_REQUEST.fullmatch(asked.reason)
    if request is not None:
        return f"{REASONS.get(request[1], request[1].replace('_', ' '))}{request[2]}"
    return REASONS.get(asked.reason, asked.reason.replace("_", " ") or "no reason is stored")


def _waiting(case: StoryCase, asked: Asked) -> str:
    since = duration((case.now - asked.at) // 1000)
    if asked.command == HELD:
        return f"It has waited for {since}: it came too fast, or there is no room for it yet. It is kept, and runs when its time comes."
    if asked.lane == COMMANDS:
        return f"It has waited for {since} and is not carried out yet; a gateway that starts takes it up."
    parts = [f"{case.ahead} earlier messages" if case.ahead > 1 else "an earlier message"] if case.ahead else []
    running = next((t for t in reversed(case.before) if t.state is TurnState.OPEN), None)
    if running is not None:
        parts.append(
            f"the turn {running.turn}, which has been running for {duration((case.now - running.opened_at) // 1000)}"
        )
    behind = (
        f"behind {' and '.join(parts)}"
        if parts
        else "and nothing runs in its conversation: a gateway that starts takes it up"
    )
    return f"It has waited for {since}, {behind}."


def _waited(case: StoryCase, asked: Asked) -> list[Sentence]:
    """How long it waited for its turn, and behind what."""
    if case.turn is None or case.turn.opened_at - asked.at < WORTH_TELLING_MS:
        return []
    time = _seconds((case.turn.opened_at - asked.at) / 1000)
    earlier = [t for t in case.before if t.turn != case.turn.turn]
    if earlier:
        shown = ", ".join(f"{t.turn} ({_ending_name(t.exit or '')})" for t in earlier[-3:])
        words = speak_many(
            "It had waited for {time}, behind {count} earlier turn: {turns}.",
            "It had waited for {time}, behind {count} earlier turns: {turns}.",
            len(earlier), time=time, turns=shown,
        )  # fmt: skip
    elif len(case.messages) > 1:
        words = speak("It had waited for {time}, for its other pieces.", time=time)
    else:
        words = speak(
            "It had waited for {time}, and no turn of its conversation ran meanwhile: the gateway was busy, or stopped.",
            time=time,
        )
    return [Sentence(case.turn.opened_at, words, frame=True)]


def _seconds(seconds: float) -> str:
    return speak("{count} s", count=number(seconds, 1))


def _ending_name(code: str) -> str:
    """An exit by its name, or in the reader's language by what happens; empty: there is none yet."""
    if not code:
        return speak("running")
    return speak(exit_title(code)) if spoken_now() else code.replace("_", " ")


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 120 else f"{flat[:117]}…"


# ---------------------------------------------------------------------- what the turn did


def turn_lines(events: Sequence[ev.Event], *, show_text: bool, now: int | None = None) -> list[Sentence]:
    """What a turn did, a line for each thing worth one. A clock that was set back does not turn the order round.

    Of a turn that is open `now` (ms), the last lines say since when it waits, and for what.
    """
    teller = _Teller(show_text)
    lines: list[Sentence] = []
    at = 0
    for place, event in enumerate(events):
        at = max(at, event.at)
        words = teller.words(event, islice(events, place + 1, None))
        if words:
            frame = isinstance(event, ev.TurnOpened | ev.TurnEnded)
            lines.append(Sentence(at, words, frame))
            if isinstance(event, ev.TurnOpened):
                lines += [Sentence(at, known) for known in _known_words(event)]
    if now is not None and events:
        lines += [Sentence(at, words, frame=True) for words in teller.open_words(events, now)]
    return lines


_MODEL_IS_ASKED = (
    ev.TurnOpened | ev.TurnBegun | ev.TurnResumed | ev.WaitEnded | ev.ToolReturned | ev.LoopFound | ev.CallSettled | ev.SummaryAsked | ev.Compacted
    | ev.TextArrived | ev.ReasoningArrived | ev.TextTakenBack | ev.RefusalBegan | ev.ToolsRefused | ev.ToolCallNamed | ev.ToolArgumentsArrived
    | ev.ToolCallCut
)  # fmt: skip
"""Behind these a reply of the model is under way, unless a tool is."""


def _model_is_asked(events: Sequence[ev.Event]) -> bool:
    """Whether a reply of the model is under way behind these, unless a tool is. What people add at any time changes nothing about it."""
    match next((event for event in reversed(events) if not isinstance(event, ev.Steered)), None):
        case ev.RemedyChosen(pause_ms=pause, remedy=remedy):
            return not pause and remedy.recipe.does is not Does.COMPACT
        case ev.ReplyJudged(reply=reply, taken=taken):
            return reply is ev.Reply.SAID or taken == 0
        case last:
            return isinstance(last, _MODEL_IS_ASKED)


class _Teller:
    """Goes through the events and remembers what later ones refer to."""

    def __init__(self, show_text: bool) -> None:
        self._show_text = show_text
        self._tools: dict[str, str] = {}
        self._models: list[str] = []
        self._effects: frozenset[str] = frozenset()
        self._begun: dict[str, int] = {}
        """Calls that have not come back, with when they began."""
        self._offered: frozenset[str] = frozenset()
        self._called_at = 0
        self._content_at = 0

    def words(self, event: ev.Event, later: Iterable[ev.Event]) -> str:
        """The sentence for an event; empty if it is worth none."""
        match event:
            case ev.TextArrived() | ev.ReasoningArrived() | ev.TextTakenBack():
                self._content_at = self._content_at or event.at
                return ""
            case ev.RefusalBegan():
                return speak("The model refused.")
            case ev.ToolsRefused():
                return speak(
                    "The provider refused to take tools with this request, so the model was asked without any."
                )
            case ev.ToolCallNamed():
                self._content_at = self._content_at or event.at
                self._tools[ev.call_id(event.call, self._tools)] = self._tool_name(event.name)
                return ""
            case ev.TurnOpened():
                return self._opened(event)
            case ev.CallBroke():
                facts = [self._cause(event), self._first()]
                self._calls(event.at)
                return speak("The model call failed: {facts}.", facts=", ".join(filter(None, facts)))
            case ev.ReplyFinished():
                return self._finished(event)
            case ev.ReplyJudged(sign=sign) if sign_words(sign):
                return speak("The reply was taken for a promise: {why}.", why=sign_words(sign))
            case ev.RemedyChosen():
                self._calls(event.at)
                return self._remedy(event, later)
            case ev.WaitEnded():
                self._calls(event.at)
                return ""
            case ev.TurnBegun():
                return begun_words(event, self._models[event.route] if event.route < len(self._models) else "")
            case ev.ToolStarted():
                self._begun.setdefault(event.call, event.at)  # it may put down more than once what it is about
                return ""
            case ev.ToolReturned():
                self._begun.pop(event.call, None)
                self._calls(event.at)
                return self._tool(event)
            case _:
                return self._rest(event)

    def open_words(self, events: Sequence[ev.Event], now: int) -> list[str]:
        """What has not come back: true of a turn that runs, and of one whose process is dead."""
        if not self._begun and _model_is_asked(events):
            time = duration((now - self._called_at) // 1000)
            return [speak("The model was asked {time} ago, and its reply is not over yet.", time=time)]
        return [
            speak("{tool} was begun {time} ago, and has not come back yet.", tool=self._named(call), time=duration((now - at) // 1000))
            for call, at in self._begun.items()
        ]  # fmt: skip

    def _opened(self, event: ev.TurnOpened) -> str:
        self._calls(event.at)
        route = event.settings.routes[0]
        self._models = [one.model for one in event.settings.routes]
        if event.settings.goes_on:
            self._effects = frozenset(t.name for t in event.settings.tools if t.effect is EffectClass.EFFECT)
        self._offered = frozenset((*(tool.name for tool in event.settings.tools), *event.settings.client_tools))
        facts = [
            _agent(event),
            speak("model {model} at {endpoint}", model=route.model, endpoint=route.endpoint),
            speak("with the API key {name}", name=event.key) if event.key else "",
        ]
        said = [speak("The turn began: {facts}.", facts=", ".join(filter(None, facts)))]
        sources = (*event.foreign, *(one.foreign for one in event.input if one.foreign))
        if sources:
            said.append(speak("Words of others stand in what it reads: {sources}.", sources=sources_words(sources)))
        kinds = [k.words() if self._show_text else self._tool_name(k.tool) for k in event.consents]
        if kinds:
            said.append(speak("Approved before: {what}.", what="; ".join(dict.fromkeys(kinds))))
        return " ".join(said)

    def _finished(self, event: ev.ReplyFinished) -> str:
        time = _seconds(max(0, event.at - self._called_at) / 1000)
        used = event.output_tokens
        tokens = speak_many("{count} token", "{count} tokens", used, count=number(used)) if used else ""
        facts = [self._reason(event.reason), tokens, self._first()]
        self._calls(event.at)
        return speak(
            "The model's reply was over after {time} ({facts}).", time=time, facts=", ".join(filter(None, facts))
        )

    def _rest(self, event: ev.Event) -> str:
        match event:
            case ev.TakenOver():
                return self._taken_over(event)
            case ev.StopRequested():
                return speak("Its person is being forgotten.") if event.forgotten else speak("A person said stop.")
            case ev.Superseded():
                return speak("A newer message took its place.")
            case ev.Steered() if event.inbox:
                return speak("The person added something (message {number}).", number=event.inbox)
            case ev.Steered():
                return speak("The person added something.")
            case ev.DeadlinePassed():
                return speak("The turn's time was up.")
            case ev.TurnLeft():
                return speak("The gateway was shut down in order, and left the turn open.")
            case ev.DrainEnded():
                return speak("The gateway was shut down and could wait no longer.")
            case ev.Compacted():
                self._calls(event.at)
                if event.helped:
                    return speak("The conversation was shortened.")
                return speak("The conversation could not be shortened.")
            case ev.DoneSaid(finished=finished):
                return _asked_whether_done(finished)
            case ev.ChangeShown(change=change):
                return speak(
                    "What it would change was shown (lines added: {added}, removed: {removed}).",
                    added=change.added, removed=change.removed,
                )  # fmt: skip
            case ev.ApprovalAnswered():
                who = speak(" by {who}", who=event.by) if event.by and self._show_text else ""
                return speak(_answered_words(event), tool=self._named(event.call), who=who)
            case ev.ApprovalAsked():
                asked = speak("A person was asked whether {tool} may run.", tool=self._named(event.call))
                return f"{asked} {why_words(event.why, event.sources)}".rstrip()
            case ev.CallSettled(why=why) if why is not AskedWhy.ALWAYS:
                return not_run_words(self._named(event.call), why, event.sources)
            case ev.SpendRefused():
                unasked = speak("The model was not asked.")
                return f"{unasked} {spent_words(event.spend)}"
            case ev.DriverFailed():
                return speak("A mistake of ours ended it; the log has it under {reference}.", reference=event.reference)
            case ev.TurnEnded():
                return exit_words(event.exit, self._tool_name(event.exit.tool), show_text=self._show_text)
            case _:
                return ""

    def _taken_over(self, event: ev.TakenOver) -> str:
        self._calls(event.at)
        begun, self._begun = [self._named(call) for call in self._begun], {}
        unsure = ", ".join(name for name in begun if name in self._effects)
        taken = speak("The gateway had been restarted; the turn was taken up again.")
        if not unsure:
            return taken
        doubt = speak("It is not known whether this was done: {tools}.", tools=unsure)
        return f"{taken} {doubt}"

    def _calls(self, at: int) -> None:
        self._called_at, self._content_at = at, 0

    def _first(self) -> str:
        """When its first content came; a reply that came at once needs no such word."""
        if not self._content_at or self._content_at - self._called_at < 1_000:
            return ""
        return speak("first content after {time}", time=_seconds((self._content_at - self._called_at) / 1000))

    def _cause(self, event: ev.CallBroke) -> str:
        detail = event.detail if self._show_text else ""
        words = cause_words(event.cause, seconds=event.waited_seconds, status=event.status, detail=detail)
        return words if not detail or detail in words else f"{words}; it said: {_short(detail).rstrip('.')}"

    def _reason(self, reason: str) -> str:
        shown = self._show_text or reason in FINISH_REASONS
        return quoted(reason[:40]) if shown else speak("a finish reason of its own")

    def _tool_name(self, name: str) -> str:
        """A name that is not on offer was made up by the model, and so is a word of its."""
        known = self._show_text or name in self._offered or not name
        return name if known else speak("a tool that there is not")

    def _named(self, call: str) -> str:
        return self._tools.get(call) or speak("a tool")

    def _tool(self, event: ev.ToolReturned) -> str:
        name, time = self._named(event.call), _seconds(event.seconds)
        match event.refusal:
            case ev.Refusal.UNKNOWN_TOOL:
                return speak("{tool} was not run: there is no such tool.", tool=name)
            case ev.Refusal.UNREADABLE_ARGUMENTS:
                return speak("{tool} was not run: its arguments could not be read.", tool=name)
            case ev.Refusal.NONE:
                because = doubt_words(event.status, event.doubt) if event.status is ToolStatus.UNKNOWN else ""
                return speak(_returned_words(event), tool=name, why=because, time=time)
            case _:
                assert_never(event.refusal)

    def _remedy(self, event: ev.RemedyChosen, later: Iterable[ev.Event]) -> str:
        pause = helped = ""
        for one in later:
            if isinstance(one, ev.WaitEnded) and not pause:
                pause = speak("after {time}", time=_seconds(max(0, one.at - event.at) / 1000))
            if isinstance(one, ev.RemedyJudged):
                helped = speak(" That helped.") if one.helped else speak(" That did not help.")
            if isinstance(one, ev.RemedyJudged | ev.RemedyChosen | ev.TurnEnded):
                break
        again = speak("number {number}", number=event.number) if event.number > 1 else ""
        facts = ", ".join(filter(None, (again, pause)))
        return speak(event.remedy.recipe.story, more=f" ({facts})" if facts else "") + helped


def _returned_words(event: ev.ToolReturned) -> str:
    """What a call that was run has come to."""
    match event.status:
        case ToolStatus.OK:
            return sentence("{tool}: done after {time}.")
        case ToolStatus.FAILED:
            return sentence("{tool}: failed after {time}.")
        case ToolStatus.TIMED_OUT:
            return sentence("{tool}: timed out after {time}.")
        case ToolStatus.REFUSED:
            return sentence("{tool}: refused after {time}.")
        case ToolStatus.UNKNOWN if event.doubt is DoubtCause.UNSAID:  # files and notes
            return sentence("{tool}: it is not known whether it was done; others have changed the same since.")
        case ToolStatus.UNKNOWN:
            return sentence("{tool}: it is not known whether it was done: {why} (after {time}).")
        case _:
            assert_never(event.status)


def _answered_words(event: ev.ApprovalAnswered) -> str:
    match event.verdict:
        case ev.Verdict.EXPIRED:
            return sentence("{tool}: approval expired.")
        case ev.Verdict.DENIED:
            return sentence("{tool}: approval denied{who}.")
        case ev.Verdict.GIVEN:
            return _LASTS[event.lasts]
        case _:
            assert_never(event.verdict)


_LASTS = {
    Lasting.ONCE: sentence("{tool}: approval given{who}."),
    Lasting.CONVERSATION: sentence("{tool}: approval given for this conversation{who}."),
    Lasting.ALWAYS: sentence("{tool}: approval given for all such calls{who}."),
}


def _asked_whether_done(finished: bool | None) -> str:
    asked = speak(
        "It was unclear whether the reply only promises something, so the model was asked whether it is finished."
    )
    said = {True: sentence("It said that it is."), False: sentence("It said that it is not."), None: sentence("It did not say in time.")}[finished]  # fmt: skip
    return f"{asked} {speak(said)}"


def _known_words(event: ev.TurnOpened) -> list[str]:
    words: list[str] = []
    if event.known.stalls:
        tools = ", ".join(stall.tool for stall in event.known.stalls)
        words.append(speak("Calls of {tools} had broken off in earlier turns of this conversation.", tools=tools))
    if event.known.incidents:
        words.append(
            speak_many(
                "{count} incident was open about this gateway's models.",
                "{count} incidents were open about this gateway's models.",
                len(event.known.incidents),
            )
        )
    return words


def begun_words(event: ev.TurnBegun, model: str) -> str:
    """What was tried from the first call on, because of earlier failures. `model` is the one that was asked first."""
    tried = [
        speak("calls of {tool} in smaller pieces were advised", tool=item.detail)
        if item.advice is Advice.SMALLER_FROM_START
        else speak("{tool} was not offered", tool=item.detail)
        for item in event.advice
    ]
    tried += [speak("{model} was asked instead of the first model", model=model)] if event.route else []
    if not tried:
        return ""
    return speak("Because of earlier failures the turn began otherwise: {what}.", what=", ".join(tried))


def exit_words(ending: Exit, tool: str, *, show_text: bool) -> str:
    """How a turn ended, in one sentence."""
    if isinstance(ending, exits.Answered):
        return speak("The turn was answered.")
    if isinstance(ending, exits.HandedToClient):
        return speak("The model's tool calls were handed to the client.")
    facts = ending.facts()
    if facts.get("detail") == RESTORED:
        return speak("The turn was set aside: {why}. Nobody was told so.", why=speak(RESTORED))
    parts: list[str] = []
    if isinstance(ending, exits.Troubled) and ending.cause is not None:
        parts.append((ending if show_text else replace(ending, detail="")).why())
    parts += [speak("about {tool}", tool=tool)] if tool else []
    attempts = facts.get("attempts", 0)
    parts += [speak_many("after {count} attempt", "after {count} attempts", attempts)] if attempts > 1 else []
    if ending.tools_unsure:
        parts.append(speak("may or may not have run: {tools}", tools=", ".join(ending.tools_unsure)))
    parts += [speak("reference {reference}", reference=facts["reference"])] if facts.get("reference") else []
    return speak(
        "The turn ended without an answer: {exit}{why}. The person was told so.",
        exit=_ending_name(ending.code.value), why=f" ({'; '.join(parts)})" if parts else "",
    )  # fmt: skip


# ---------------------------------------------------------------------- what was shown


_QUOTED = re.compile(r"""(["“«'‘`]).*(["”»'’`])""", re.DOTALL)


def unquoted(words: str, *, show_text: bool) -> str:
    """What a platform said about a failure; it may quote the message, so what is in quotes is left out."""
    return words if show_text else _QUOTED.sub("“…”", words)


def _delivery_lines(case: StoryCase) -> list[Sentence]:
    rows = [
        row
        for row in case.deliveries
        if row.cause.startswith((BY_HAND, INSTEAD)) or not (row.gone or row.state is DeliveryState.SKIPPED)
    ]
    plain = [row for row in rows if row.delivered and not row.failures and not row.labelled and not row.plain]
    lines: list[Sentence] = []
    if len(plain) > 2:
        words = speak_many(
            "{count} part was delivered to {surface} (the first is the platform's message {first}, the last {last}).",
            "{count} parts were delivered to {surface} (the first is the platform's message {first}, the last {last}).",
            len(plain), surface=plain[0].surface, first=plain[0].platform_id, last=plain[-1].platform_id,
        )  # fmt: skip
        lines.append(Sentence(max(row.at for row in plain), words, frame=True))
        rows = [row for row in rows if row not in plain]
    lines += [_delivery_line(case, row) for row in rows]
    settled = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.SKIPPED)
    waiting = [row for row in rows if row.state not in settled]
    if waiting and case.adapters and case.adapters[-1].state != UP:
        lines.append(Sentence(case.now, adapter_words(case.adapters[-1], show_text=case.show_text), frame=True))
    unaddressed = case.events and case.messages and not case.deliveries
    if unaddressed and case.turn is not None and case.turn.state is TurnState.CLOSED:
        where = case.messages[0].where
        if "/" not in where:
            at = case.turn.closed_at or case.now
            words = speak(
                "It was shown on {where} as it came; what a client there has received is not recorded.", where=where
            )
            lines.append(Sentence(at, words))
    return lines


def _delivery_line(case: StoryCase, row: DeliveryRow) -> Sentence:
    trouble = unquoted(known_sentence(row.trouble or row.cause), show_text=case.show_text).rstrip(".")
    facts = {
        "surface": row.surface,
        "what": speak("{bubble}, part {number}", bubble=row.bubble, number=row.part + 1),
        "message": row.platform_id,
        "failed": speak_many(
            ", after {count} failed call (the last: {trouble})",
            ", after {count} failed calls (the last: {trouble})",
            row.failures, trouble=trouble,
        ) if row.failures else "",
        "marks": (speak(", marked as possibly there twice") if row.labelled else "")
        + (speak(", without its form, which the platform had refused") if row.plain else ""),
        "time": duration(max(0, (row.retry_at or 0) - case.now) // 1000),
        "why": trouble or speak("no reason is stored"),
    }  # fmt: skip
    match row.state:
        case DeliveryState.SENT if not row.delivered:
            at, words = row.at, sentence("Shown at {surface} as far as it was then ({what}){failed}.")
        case DeliveryState.SENT:
            at, words = row.at, sentence("Delivered to {surface} as message {message} ({what}){failed}{marks}.")
        case DeliveryState.WANTED if row.platform_id is not None:
            at = case.now
            words = sentence("Message {message} at {surface} has yet to be changed ({what}){failed}.")
        case DeliveryState.WANTED if row.retry_at:
            at = case.now
            words = sentence("Not delivered to {surface} yet ({what}){failed}; the next try comes in {time}.")
        case DeliveryState.WANTED:
            at, words = case.now, sentence("Not delivered to {surface} yet ({what}){failed}.")
        case DeliveryState.SENDING:
            at, words = row.sending_at or row.at, sentence("It is being sent to {surface} ({what}){failed}.")
        case DeliveryState.UNKNOWN:
            at = row.at
            words = sentence("Sent to {surface}, and not known yet whether it came through ({what}){failed}.")
        case DeliveryState.FAILED if row.cause == RESTORED:
            at, words, facts["why"] = row.at, sentence("Set aside for {surface} ({what}): {why}."), speak(RESTORED)
        case DeliveryState.FAILED:
            at, words = row.at, sentence("Refused for good by {surface} ({what}): {why}.")
        case DeliveryState.SKIPPED if row.cause.startswith(BY_HAND):
            at, facts["why"] = row.at, row.cause.removeprefix(BY_HAND)
            words = sentence("Taken out of the outbox for {surface} by hand ({what}){failed}: {why}.")
        case DeliveryState.SKIPPED if row.cause.startswith(INSTEAD):
            how = known_sentence(row.cause.removeprefix(INSTEAD))
            at, facts["why"] = row.at, unquoted(how, show_text=case.show_text).rstrip(".")
            words = sentence("Sent to {surface} in another form ({what}): {why}.")
        case DeliveryState.SKIPPED:
            at, words = row.at, sentence("Not needed any more at {surface} ({what}).")
        case _:
            assert_never(row.state)
    return Sentence(
        at,
        speak(words, **facts),
        frame=row.state is not DeliveryState.SKIPPED or row.cause.startswith((BY_HAND, INSTEAD)),
    )


def adapter_words(row: AdapterStateRow, *, show_text: bool) -> str:
    """What a change of an adapter's state says."""
    words = known_sentence(row.words)
    if spoken_now() and words == row.words:
        words = ""  # what operators read is English
    why = f": {unquoted(words, show_text=show_text)}" if words else "."
    return speak(_STATES.get(row.state, _IN_STATE), account=row.account, state=row.state, why=why)


_IN_STATE = sentence("The adapter {account} was {state} from then on{why}")
_STATES = {
    UP: sentence("The adapter {account} was up from then on{why}"),
    "down": sentence("The adapter {account} was down from then on{why}"),
    "starting": sentence("The adapter {account} was starting from then on{why}"),
    "stopped": sentence("The adapter {account} was stopped from then on{why}"),
    NEEDS_A_PERSON: sentence("The adapter {account} needed a person from then on{why}"),
}


def _agent(event: ev.TurnOpened) -> str:
    """Which agent answers, and why that one; empty for the gateway's own."""
    if not event.agent:
        return ""
    name = speak("agent {name}", name=event.agent)
    return speak("{agent} ({why})", agent=name, why=speak(event.agent_by.words)) if event.agent_by else name


def asker_words(key: str, agent: str) -> str:
    """Who asked: with which key, and of which agent; empty where there is nothing to say."""
    return ", ".join(words for name, words in ((key, f"key {key}"), (agent, f"agent {agent}")) if name)
