"""A turn decided again from its journal, and compared with what was recorded. Pure.

Theory. The journal holds two kinds of rows: what happened to the turn, and what the machine decided (`RungClimbed`, `RungJudged`,
`TurnEnded`). `replay` feeds the first kind to a new machine and compares the second with what that one decides, byte by byte in
today's encoding. Decisions without a row of their own (to call the model, to wait, to run a tool) show in what follows them: a
tool's result comes only after the tool was wanted, text only while the model is being called. An event that nothing before it
led to is *out of place*.

Rows of decisions stand behind the events of the batch in which they were made, so they are compared in order, not by position.
What a take-over decided may be missing, if that process died too before it wrote anything.

`parting` feeds the same events to two machines with different settings, up to the first event at which their decisions part.
Behind it the recorded events tell what followed from the other decision, so it looks no further.

Laws (tests/agent_core/test_replay.py): a journal that a driver wrote from the machine's decisions replays without a difference; one
in which a decision, or an event that a decision rests on, was taken out or changed does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum

from agent_core import slim
from agent_core.effects import AskApproval, CallModel, Effect, EndTurn, Record, RunTool, SetAside, Wait
from agent_core.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    DeadlinePassed,
    Event,
    ReasoningArrived,
    ReplyFinished,
    RungClimbed,
    RungJudged,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnOpened,
    WaitEnded,
)
from agent_core.exits import Exit, ExitCode, Facts
from agent_core.invariants import broken_laws
from agent_core.journal import UnreadableJournal, Written, decode, encode, merged
from agent_core.settings import TurnSettings
from agent_core.store.rows import JournalRow
from agent_core.turn import ProtocolError, Turn
from agent_core.turnstate import ActivityState, Item, Phase
from agent_core.view import View, view

CONTENT = (TextArrived, ReasoningArrived, TextTakenBack, ToolCallNamed, ToolArgumentsArrived, ToolCallCut)
DECIDED = (RungClimbed, RungJudged, TurnEnded)
"""Rows that record a decision of the machine."""


class Mismatch(StrEnum):
    """What a difference is about."""

    ROWS = "rows"
    """The journal itself is not whole: rows are missing, out of order or cannot be read."""
    DECISION = "decision"
    """The machine decides otherwise than was recorded."""
    PLACE = "place"
    """An event that nothing before it led to."""
    EXIT = "exit"
    """The turn ends otherwise than was recorded."""
    LAW = "law"
    """The machine breaks one of its laws."""
    VIEW = "view"
    """What there is to see depends on how the journal was cut, or is not what was delivered."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that does not agree."""

    seq: int
    """The row at which it was found."""
    about: Mismatch
    recorded: str
    """As the journal (or the database) has it; empty if it has nothing."""
    replayed: str
    """As it is by this replay; empty if it decides nothing there."""


@dataclass(frozen=True, slots=True)
class Moment:
    """One row of the journal, and what the machine wants after it."""

    seq: int
    event: Event
    effects: tuple[Effect, ...] = ()


@dataclass(slots=True)
class Replay:
    """What came of it."""

    turn: Turn = field(default_factory=Turn)
    moments: list[Moment] = field(default_factory=list[Moment])
    differences: list[Difference] = field(default_factory=list[Difference])
    notes: list[str] = field(default_factory=list[str])
    """What could not be compared, and why, in sentences."""
    decisions: int = 0
    """How many recorded decisions were compared."""

    @property
    def events(self) -> list[Event]:
        return [moment.event for moment in self.moments]

    @property
    def ended(self) -> bool:
        """The journal holds the turn's end."""
        return bool(self.moments) and isinstance(self.moments[-1].event, TurnEnded)

    @property
    def view(self) -> View:
        """What there is to see at the end of the journal."""
        return view(self.turn, self.moments[-1].event.at if self.moments else 0)

    @property
    def view_bytes(self) -> bytes:
        return slim.dumps(self.view)


def replay(rows: Sequence[JournalRow]) -> Replay:
    """Decide the turn of `rows` (all of its journal, in order) again, and compare. Never raises for what the rows hold."""
    work = _Replaying()
    for expected, row in enumerate(rows):
        if row.seq != expected and not work.found.differences:
            work.differs(row.seq, Mismatch.ROWS, f"row {row.seq}", f"row {expected}")
        try:
            event = decode(row.kind, row.body)
            work.take(row.seq, event)
        except (UnreadableJournal, ProtocolError) as error:
            work.differs(row.seq, Mismatch.ROWS, str(error), "")
            break
        if event.at != row.at:
            work.differs(row.seq, Mismatch.ROWS, f"the time {row.at}", f"the event's own time {event.at}")
    work.finish()
    return work.found


@dataclass(slots=True)
class _Due:
    """A decision that has to be in the journal."""

    written: Written
    event: RungClimbed | RungJudged
    after_take_over: bool


@dataclass(slots=True)
class _Replaying:
    """The state of one replay."""

    found: Replay = field(default_factory=Replay)
    due: deque[_Due] = field(default_factory=deque[_Due])
    begun: set[str] = field(default_factory=set[str])
    asked: set[str] = field(default_factory=set[str])
    """Calls for which approval was asked at some time."""

    def differs(self, seq: int, about: Mismatch, recorded: str, replayed: str) -> None:
        self.found.differences.append(Difference(seq, about, recorded, replayed))

    def take(self, seq: int, event: Event) -> None:
        match event:
            case RungClimbed() | RungJudged():
                self._recorded(seq, event)
                self.found.moments.append(Moment(seq, event))
            case TurnEnded():
                self._ended(seq, event)
                self.found.turn.feed(event)
                self.found.moments.append(Moment(seq, event))
            case _:
                self._happened(seq, event)

    def _happened(self, seq: int, event: Event) -> None:
        turn = self.found.turn
        problem = misplaced(turn, event, self.asked)
        if problem:
            self.differs(seq, Mismatch.PLACE, type(event).__name__, problem)
        if isinstance(event, TakenOver):
            self.due = deque(due for due in self.due if not due.after_take_over)
        effects = turn.feed(event)
        for effect in effects:
            if isinstance(effect, Record):
                self.due.append(_Due(encode(effect.event), effect.event, isinstance(event, TakenOver)))
            if isinstance(effect, AskApproval):
                self.asked.add(effect.call)
        if not isinstance(event, CONTENT) and not problem:
            for law in broken_laws(turn, effects, self.begun):
                self.differs(seq, Mismatch.LAW, "", law)
        if isinstance(event, ToolStarted):
            self.begun.add(event.call)
        self.found.moments.append(Moment(seq, event, tuple(effects)))

    def _recorded(self, seq: int, event: RungClimbed | RungJudged) -> None:
        self.found.decisions += 1
        if not self.due:
            self.differs(seq, Mismatch.DECISION, decided(event), "")
            return
        due = self.due.popleft()
        if encode(event) != due.written:
            self.differs(seq, Mismatch.DECISION, decided(event), decided(due.event))

    def _ended(self, seq: int, event: TurnEnded) -> None:
        self.found.decisions += 1
        self._all_recorded(seq)
        mine = self.found.turn.exit
        if mine is not None and slim.dumps(mine) == slim.dumps(event.exit):
            return
        if event.exit.code is ExitCode.INTERNAL_ERROR:  # the driver's own failure: it drops what it had not written
            self.found.notes.append(
                f"The gateway itself failed here (reference {event.exit.facts.reference}); what it had not written then is not "
                "in the journal, so the end cannot be compared."
            )
            return
        recorded, replayed = exit_words(event.exit), exit_words(mine) if mine is not None else ""
        if mine is not None and recorded == replayed:
            recorded, replayed = (
                f"{words}, with another {_unlike(mine, event.exit)}" for words in (recorded, replayed)
            )
        self.differs(seq, Mismatch.EXIT, recorded, replayed)

    def _all_recorded(self, seq: int) -> None:
        for due in self.due:
            if not due.after_take_over:
                self.differs(seq, Mismatch.DECISION, "", decided(due.event))
        self.due.clear()

    def finish(self) -> None:
        found = self.found
        if not found.moments:
            return
        last = found.moments[-1].seq
        self._all_recorded(last)
        if found.turn.exit is not None and not found.ended and not found.differences:
            found.notes.append("The turn has decided to end, and that end is not stored yet.")
        if found.differences:
            return
        again = Turn()
        for event in merged(event for event in found.events if not isinstance(event, RungClimbed | RungJudged)):
            again.feed(event)
        if slim.dumps(view(again, found.moments[-1].event.at)) != found.view_bytes:
            self.differs(
                last, Mismatch.VIEW, "the view of the journal as it is stored", "the view of the joined journal"
            )


def misplaced(turn: Turn, event: Event, asked: set[str] | None = None) -> str:
    """Why nothing before `event` led to it, in words; empty if all is well. `asked` are calls that approval was asked for."""
    if isinstance(event, TurnOpened) or turn.opened is None:
        return ""
    if turn.phase is Phase.ENDED:
        return "" if isinstance(event, TakenOver) else "the turn had ended by then"
    match event:
        case (
            TextArrived()
            | ReasoningArrived()
            | TextTakenBack()
            | ToolCallNamed()
            | ToolArgumentsArrived()
            | ToolCallCut()
        ):
            return _unless(turn, Phase.CALLING, "the model was not being called")
        case ReplyFinished() | CallBroke():
            return _unless(turn, Phase.CALLING, "the model was not being called")
        case WaitEnded():
            return _unless(turn, Phase.WAITING, "the turn was not waiting for a retry")
        case Compacted():
            return _unless(turn, Phase.COMPACTING, "no shortening was wanted")
        case ToolStarted(call=call) | ToolReturned(call=call):
            running = {a.call for a in turn.round.unfinished if a.state is ActivityState.RUNNING}
            return "" if turn.phase is Phase.ACTING and call in running else "this tool call was not wanted"
        case ApprovalAnswered(call=call):
            return "" if asked is None or call in asked else "no approval was asked for this call"
        case _:
            return ""  # what people, the clock and the process do comes at any time


def _unless(turn: Turn, phase: Phase, words: str) -> str:
    return "" if turn.phase is phase else words


# ---------------------------------------------------------------------- other settings


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event at which other settings decide otherwise."""

    seq: int
    event: Event
    recorded: tuple[Effect, ...]
    """What the turn's own settings decide there."""
    other: tuple[Effect, ...]
    told: tuple[str, str] = ("", "")
    """If what the model is told differs, the two texts (of the gateway's own words)."""
    time_is_up: bool = False
    """The other settings end the turn by its deadline before this event."""


def parting(moments: Sequence[Moment], settings: TurnSettings) -> Parting | None:
    """Where a turn with `settings` would have decided otherwise than with its own; None if nowhere in its journal."""
    mine, other = Turn(), Turn()
    for moment in moments:
        event = moment.event
        if isinstance(event, RungClimbed | RungJudged):
            continue
        if isinstance(event, TurnEnded):
            return None
        late = other.opened is not None and event.at > other.deadline_at > 0
        if late and other.deadline_at < mine.deadline_at:
            passed = DeadlinePassed(at=other.deadline_at)
            return Parting(
                moment.seq, event, tuple(mine.feed(event)), tuple(_lasting(other.feed(passed))), time_is_up=True
            )
        if isinstance(event, DeadlinePassed) and other.deadline_at > mine.deadline_at:
            return Parting(moment.seq, event, tuple(_lasting(mine.feed(event))), ())
        before = (len(mine.items), len(other.items))
        own = mine.feed(event)
        changed = replace(event, settings=settings) if isinstance(event, TurnOpened) else event
        theirs = other.feed(changed)
        told = (_told(mine.items[before[0] :]), _told(other.items[before[1] :]))
        same = own == theirs and mine.items[before[0] :] == other.items[before[1] :] and mine.phase is other.phase
        if not same:
            return Parting(moment.seq, event, tuple(own), tuple(theirs), told if told[0] != told[1] else ("", ""))
    return None


_NOTE = "[Note from the gateway: "


def _told(items: Sequence[Item]) -> str:
    """What the gateway itself put before the model with these items."""
    words: list[str] = []
    for item in items:
        text = getattr(item, "text", "")
        if isinstance(text, str) and _NOTE in text:
            words.append(text.rpartition(_NOTE)[2].rstrip("]"))
    return " ".join(words)


def _lasting(effects: Sequence[Effect]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, Record)]


def skeleton(effects: Sequence[Effect]) -> tuple[object, ...]:
    """Decisions without the texts in them: what two replays of one turn are compared by when one of them is redacted."""
    return tuple(_bare(effect) for effect in effects)


def _bare(effect: Effect) -> object:
    match effect:
        case CallModel():
            return (
                effect.number,
                effect.route,
                effect.offer_tools,
                len(effect.partial),
                effect.advice,
                bool(effect.reasoning),
            )
        case EndTurn(exit=ending):
            return (
                ending.code,
                ending.facts.cause,
                ending.facts.count,
                ending.facts.limit,
                len(ending.facts.tools_done),
            )
        case RunTool(call=call) | AskApproval(call=call):
            return (type(effect).__name__, call)
        case Record() | SetAside() | Wait():
            return effect
        case _:
            return type(effect).__name__


# ---------------------------------------------------------------------- words for what is compared


def decided(event: RungClimbed | RungJudged) -> str:
    """A recorded decision, for comparing by eye."""
    failure, rung = event.failure.value.replace("_", " "), event.rung.value.replace("_", " ")
    if isinstance(event, RungClimbed):
        cause = f", {event.cause.value.replace('_', ' ')}" if event.cause is not None else ""
        return f"remedy for “{failure}”: {rung}, number {event.number}{cause}"
    return f"remedy for “{failure}”: {rung} {'helped' if event.helped else 'did not help'}"


def exit_words(ending: Exit) -> str:
    """An exit with those of its facts that hold no words of a person, a model or a provider."""
    facts = ending.facts
    named = {
        "cause": facts.cause.value.replace("_", " ") if facts.cause is not None else "",
        "seconds": facts.seconds,
        "attempts": facts.attempts,
        "steps": facts.steps,
        "tool": facts.tool,
        "count": facts.count,
        "limit": facts.limit,
        "status": facts.status,
        "retry after seconds": facts.retry_after_seconds,
        "reference": facts.reference,
        "tried": ", ".join(facts.tried),
        "tools done": ", ".join(facts.tools_done),
        "tools dropped": ", ".join(facts.tools_dropped),
        "tools unsure": ", ".join(facts.tools_unsure),
    }
    said = [f"{name} {value}" for name, value in named.items() if value]
    code = ending.code.value.replace("_", " ")
    return f"{code} ({'; '.join(said)})" if said else code


def _unlike(one: Exit, other: Exit) -> str:
    """The names of the facts in which two exits differ."""
    names = [f.name for f in fields(Facts) if getattr(one.facts, f.name) != getattr(other.facts, f.name)]
    return ", ".join(name.replace("_", " ") for name in names)
