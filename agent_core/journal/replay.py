"""A turn read from its journal, and compared with what today's rules say. Pure.

Theory. The turn is folded as anywhere: what was judged is taken from the journal. Beside that, `replay` asks today's rules each question that the
turn was asked, and compares what they say with what stands there, byte by byte in today's encoding. So a difference does not lead to
others: the state is the recorded one. An event that nothing before it led to is *out of place*; behind it nothing can be read.

Of a journal from before judgements were journalled (`agent_core.journal.old`), only what was recorded or can be inferred is compared.

Of a redacted journal the words are gone. How a reply ends is told by words, so there it is taken from the journal
(`_Replaying._read`); whatever else is decided by it is compared as always.

`parting` asks the rules each question twice, with the turn's own settings and with others, up to the first at which they part. Behind it the
recorded events tell what followed from the other decision, so it looks no further.

Laws (tests/agent_core/test_replay.py): a journal that a driver wrote from the machine's decisions replays without a difference; one
in which a judgement, or an event that one rests on, was taken out or changed does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import cast, get_args

from agent_core import storedjson
from agent_core.failures.errors import ProtocolError, UnreadableJournal
from agent_core.failures.exits import Exit, InternalError, TimeLimit
from agent_core.journal.rows import completed, decode, encode, merged, turn_of
from agent_core.judging.judge import decide
from agent_core.machine.turn import Turn
from agent_core.records import dataclass
from agent_core.rules.promises import ANSWERED, Ending, PromiseSign, Reading
from agent_core.settings import TurnSettings
from agent_core.store.turns.rows import JournalRow
from agent_core.turn import effects as fx
from agent_core.turn import events as ev
from agent_core.turn.invariants import broken_laws
from agent_core.turn.questions import MUST_BE_ANSWERED, End, PendingCalls, Question, Restart
from agent_core.turn.state import Phase
from agent_core.turn.view import View, view

CONTENT = (
    ev.TextArrived,
    ev.ReasoningArrived,
    ev.TextTakenBack,
    ev.ToolCallNamed,
    ev.ToolArgumentsArrived,
    ev.ToolCallCut,
)
DECIDED: tuple[type[ev.Event], ...] = get_args(ev.Judgement)
"""Rows that record what was judged."""


_READINGS = {ev.Reply.PROMISED: Reading.PROMISE, ev.Reply.UNCLEAR: Reading.UNCLEAR}


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
    event: ev.Event
    effects: tuple[fx.Effect, ...] = ()


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
    def events(self) -> list[ev.Event]:
        return [moment.event for moment in self.moments]

    @property
    def ended(self) -> bool:
        """The journal holds the turn's end."""
        return bool(self.moments) and isinstance(self.moments[-1].event, ev.TurnEnded)

    @property
    def view(self) -> View:
        """What there is to see at the end of the journal."""
        return view(self.turn, self.moments[-1].event.at if self.moments else 0)

    @property
    def view_bytes(self) -> bytes:
        return storedjson.dumps(self.view)


def replay(rows: Sequence[JournalRow], *, redacted: bool = False) -> Replay:
    """Fold the turn of `rows` (all of its journal, in order), and compare. Never raises for what the rows hold."""
    work = _Replaying(redacted=redacted)
    events: list[ev.Event] = []
    told_at = 0
    for expected, row in enumerate(rows):
        if row.seq != expected and not work.found.differences:
            work.differs(row.seq, Mismatch.ROWS, f"row {row.seq}", f"row {expected}")
        try:
            events.append(decode(row.kind, row.body))
        except UnreadableJournal as error:
            work.differs(row.seq, Mismatch.ROWS, str(error), "")
            break
        if events[-1].at != row.at:
            work.differs(row.seq, Mismatch.ROWS, f"the time {row.at}", f"the event's own time {events[-1].at}")
        told_at = max(told_at, row.at)
        if isinstance(events[-1], ev.TakenOver):  # by a clock that may be behind: `agent_core.driver.turntime`
            events[-1] = replace(events[-1], at=told_at)
    work.all(events, [row.seq for row in rows])
    return work.found


def _numbered(events: Sequence[ev.Event], numbers: Sequence[int]) -> list[tuple[int, ev.Event]]:
    """The events with what was judged of them, each with its row. What no row holds has the one before."""
    written = {id(event): number for event, number in zip(events, numbers, strict=False)}
    found: list[tuple[int, ev.Event]] = []
    last = 0
    for event in completed(events):
        last = written.get(id(event), last)
        if isinstance(event, ev.TurnEnded):
            last = max(last, numbers[len(events) - 1])
        found.append((last, event))
    return found


@dataclass(slots=True)
class _Replaying:
    """The state of one replay."""

    found: Replay = field(default_factory=Replay)
    redacted: bool = False
    events: Sequence[ev.Event] = ()
    """The whole turn, with what was judged."""
    settings: TurnSettings | None = None
    other: Turn | None = None
    """The same turn with these settings, as long as they decide alike."""
    parted: Parting | None = None
    asked: Question | None = None
    due: deque[ev.Judgement] = field(default_factory=deque[ev.Judgement])
    """What today's rules say to `asked`, as far as it was not compared yet."""
    wanted: set[str] = field(default_factory=set[str])
    """Calls that are to run."""
    begun: set[str] = field(default_factory=set[str])
    fact: int = 0
    """Which moment is the latest fact."""

    @property
    def old(self) -> bool:
        opened = self.found.turn.opened
        return opened is not None and not opened.settings.judged

    def differs(self, seq: int, about: Mismatch, recorded: str, replayed: str) -> None:
        self.found.differences.append(Difference(seq, about, recorded, replayed))

    def all(self, events: Sequence[ev.Event], numbers: Sequence[int]) -> None:
        try:
            numbered = _numbered(events, numbers) if events else []
        except ProtocolError as error:
            self.differs(numbers[0], Mismatch.PLACE, "the journal", str(error))
            return
        self.events = [event for _, event in numbered]
        for seq, event in numbered:
            try:
                self.take(seq, event)
            except ProtocolError as error:
                self.differs(seq, Mismatch.PLACE, event.kind(), str(error).partition(": ")[2])
                return
        self.finish(events)

    def take(self, seq: int, event: ev.Event) -> None:
        turn, found = self.found.turn, self.found
        before = len(found.differences)
        self._silent(seq, event)
        effects: list[fx.Effect] = []
        match event:
            case ev.TurnEnded():
                found.decisions += 1
                self._ended(seq, event)
                effects.append(fx.EndTurn(event.exit, event.answer))
            case _ if isinstance(event, DECIDED):
                found.decisions += 1
                self._compare(seq, event)
                effects.append(fx.Record(cast("ev.Judgement", event)))
            case _:
                if isinstance(event, ev.ToolStarted):
                    self._started(seq, event)
                self.fact = len(found.moments)
        found.moments.append(Moment(seq, event))
        effects += turn.apply(event)
        if self.other is not None:
            theirs = replace(event, settings=self.settings) if isinstance(event, ev.TurnOpened) else event
            self.other.apply(theirs)
        self._wants(effects)
        if not turn.questions and turn.phase is not Phase.ACTING and len(found.differences) == before:
            wanted = found.moments[self.fact].effects
            for law in broken_laws(turn, wanted, self.begun) if wanted else ():
                self.differs(seq, Mismatch.LAW, "", law)

    def _started(self, seq: int, event: ev.ToolStarted) -> None:
        if event.call not in self.wanted and self.found.turn.round.activity(event.call) is not None:
            self.differs(seq, Mismatch.PLACE, type(event).__name__, "this tool call was not wanted")
        self.begun.add(event.call)

    def _wants(self, effects: Sequence[fx.Effect]) -> None:
        """Decisions stand with the fact that led to them."""
        if effects:
            moment = self.found.moments[self.fact]
            self.found.moments[self.fact] = replace(moment, effects=(*moment.effects, *effects))

    def _silent(self, seq: int, event: ev.Event | None) -> None:
        """What is open before `event` and not answered by it was answered by silence: do the rules say so?"""
        turn = self.found.turn
        while turn.questions and not (event is not None and turn.answered_by(event)):
            question = turn.questions[0]
            if isinstance(question, MUST_BE_ANSWERED) or (event is None and isinstance(turn.questions[-1], Restart)):
                return  # nobody has said yet how it goes on, nor what comes before that
            self._ask(question)
            for one in self.due:
                if not (self.old and isinstance(one, ev.LoopFound | ev.ApprovalAsked | ev.CallSettled)):
                    self.differs(seq, Mismatch.DECISION, "", decided(one))
            self.due.clear()
            self._wants(turn.silence())
            if self.other is not None:
                self.other.silence()

    def _ask(self, question: Question) -> None:
        """What today's rules say."""
        if self.asked is question:
            return
        turn = self.found.turn
        decisions = decide(question, turn, self._read if self.redacted else None)
        self.asked = question
        self.due = deque(one for one in decisions if not isinstance(one, fx.RunTool))
        runs = [one for one in decisions if isinstance(one, fx.RunTool)]
        if isinstance(question, PendingCalls):
            self.wanted = {one.call for one in runs}
        self._wants(runs)
        if self.other is not None and self.parted is None:
            self._shadow(decisions)

    def _read(self, _text: str, _tools_run: Sequence[str]) -> Ending:
        """How a redacted reply ends. Its letters say nothing of that: what it was judged to be then does."""
        following = self.events[len(self.found.moments) :]
        judged = next(
            (one for one in following if isinstance(one, ev.ReplyJudged | ev.FailureJudged | ev.TurnEnded)), None
        )
        reading = _READINGS.get(judged.reply) if isinstance(judged, ev.ReplyJudged) else None
        if reading is None or not isinstance(judged, ev.ReplyJudged):
            return replace(ANSWERED, done=isinstance(judged, ev.TurnEnded) and bool(judged.answer))
        return Ending(
            reading,
            PromiseSign(judged.sign) if judged.sign in set(PromiseSign) else PromiseSign.NOTHING,
            judged.promised,
        )

    def _shadow(self, decisions: Sequence[ev.Judgement | fx.RunTool]) -> None:
        other = self.other
        assert other is not None
        theirs = decide(other.questions[0], other, self._read if self.redacted else None)
        if list(theirs) == list(decisions):
            return
        moment = self.found.moments[self.fact]
        told = (_told(decisions), _told(theirs))
        self.parted = Parting(moment.seq, moment.event, moment.effects, tuple(other.go_on()), told)
        self.other = None

    def _compare(self, seq: int, event: ev.Event) -> None:
        """A recorded judgement against that of today's rules."""
        turn = self.found.turn
        if isinstance(event, ev.TurnEnded):
            self._ended(seq, event)
            return
        if not turn.questions or turn.misfit(event):
            return  # it is out of place, and said to be so
        self._ask(turn.questions[0])
        mine = self.due.popleft() if self.due else None
        if mine is None or not self._same(mine, event):
            self.due.clear()
            self.differs(seq, Mismatch.DECISION, decided(event), decided(mine) if mine is not None else "")

    def _same(self, mine: ev.Judgement, recorded: ev.Event) -> bool:
        if not self.old:
            return encode(mine) == encode(recorded)
        return outline(mine) == outline(recorded)

    def _ended(self, seq: int, event: ev.TurnEnded) -> None:
        turn = self.found.turn
        if turn.questions:
            self._ask(turn.questions[0])
        while self.due and not isinstance(self.due[0], ev.TurnEnded):
            self.differs(seq, Mismatch.DECISION, "", decided(self.due.popleft()))
        mine = self.due.popleft() if self.due else None
        mine = mine if isinstance(mine, ev.TurnEnded) else None
        if mine is not None and storedjson.dumps(mine.exit) == storedjson.dumps(event.exit):
            if self.old or mine.answer == event.answer:
                return
            self.differs(
                seq, Mismatch.EXIT, f"the answer is {event.answer or 'the last text'}", mine.answer or "the last text"
            )
            return
        if isinstance(event.exit, InternalError):  # the driver's own failure: it drops what it had not written
            self.found.notes.append(
                f"The gateway itself failed here (reference {event.exit.reference}); what it had not written then is not "
                "in the journal, so the end cannot be compared."
            )
            return
        recorded, replayed = exit_words(event.exit), exit_words(mine.exit) if mine is not None else ""
        if mine is not None and recorded == replayed:
            recorded, replayed = (
                f"{words}, with another {_unlike(mine.exit, event.exit)}" for words in (recorded, replayed)
            )
        self.differs(seq, Mismatch.EXIT, recorded, replayed)

    def finish(self, events: Sequence[ev.Event]) -> None:
        found = self.found
        if not found.moments:
            return
        last = found.moments[-1].seq
        if not self.old:
            self._silent(last, None)
        if any(isinstance(question, End) for question in found.turn.questions):
            found.notes.append("The turn has decided to end, and that end is not stored yet.")
        found.turn.draft.show()
        if found.differences:
            return
        again = turn_of(completed(merged(events)))
        if storedjson.dumps(view(again, found.moments[-1].event.at)) != found.view_bytes:
            self.differs(
                last, Mismatch.VIEW, "the view of the journal as it is stored", "the view of the joined journal"
            )


def outline(event: ev.Event) -> object:
    """What a judgement comes to, without words, times and what follows from it."""
    match event:
        case ev.ReplyJudged():
            return (event.reply, event.taken)
        case ev.FailureJudged():
            return (event.failure, event.cause)
        case ev.RemedyChosen():
            return (event.failure, event.remedy, event.number, event.cause)
        case ev.CallSettled():
            return (event.call, event.denied, event.unsure)
        case ev.LoopFound():
            return (event.call, event.code, event.stop)
        case ev.SummaryAsked():
            return (event.exit.code, event.advice)
        case _:
            return event


# ---------------------------------------------------------------------- other settings


@dataclass(frozen=True, slots=True)
class Parting:
    """The first event at which other settings decide otherwise."""

    seq: int
    event: ev.Event
    recorded: tuple[fx.Effect, ...]
    """What the turn's own settings decide there."""
    other: tuple[fx.Effect, ...]
    told: tuple[str, str] = ("", "")
    """If what the model is told differs, the two texts (of the gateway's own words)."""
    time_is_up: bool = False
    """The other settings end the turn by its deadline before this event."""


def parting(moments: Sequence[Moment], settings: TurnSettings, *, redacted: bool = False) -> Parting | None:
    """Where a turn with `settings` would have decided otherwise than with its own; None if nowhere in its journal."""
    if not moments or not isinstance(moments[0].event, ev.TurnOpened):
        return None
    own = moments[0].event
    work = _Replaying(redacted=redacted, events=[one.event for one in moments], settings=settings, other=Turn())
    for moment in moments:
        late = _late(moment, own, settings) if moment.event is not own else None
        if late is not None:
            return late
        before = work.fact
        work.take(moment.seq, moment.event)
        if work.parted is not None:
            return replace(work.parted, recorded=moments[before].effects)
    return None


def _late(moment: Moment, own: ev.TurnOpened, settings: TurnSettings) -> Parting | None:
    """The turn's time would have been up before, or not yet."""
    mine, theirs = (own.at + one.turn_seconds * 1000 for one in (own.settings, settings))
    event = moment.event
    if event.at > theirs and theirs < mine:
        ending = fx.EndTurn(TimeLimit(limit=settings.turn_seconds))
        return Parting(moment.seq, event, moment.effects, (ending,), time_is_up=True)
    if isinstance(event, ev.DeadlinePassed) and theirs > mine:
        return Parting(moment.seq, event, _lasting(moment.effects), ())
    return None


def _told(decisions: Sequence[ev.Judgement | fx.RunTool]) -> str:
    """What the gateway puts before the model with these."""
    return " ".join(one.words for one in decisions if isinstance(one, ev.LoopFound | ev.CallSettled))


def _lasting(effects: Sequence[fx.Effect]) -> tuple[fx.Effect, ...]:
    return tuple(effect for effect in effects if not isinstance(effect, fx.Record))


# ---------------------------------------------------------------------- words for what is compared


def decided(event: ev.Event) -> str:
    """A judgement, for comparing by eye; no word of a person's, a model's or a provider's."""
    match event:
        case ev.RemedyChosen():
            cause = f", {_plain(event.cause)}" if event.cause is not None else ""
            follows = [f"route {event.route}"] if event.route >= 0 else []
            follows += [f"advice {_plain(event.advice)}"] if event.advice is not None else []
            follows += [f"after {event.pause_ms} ms"] if event.pause_ms else []
            rest = f" ({', '.join(follows)})" if follows else ""
            return f"remedy for “{_plain(event.failure)}”: {_plain(event.remedy)}, number {event.number}{cause}{rest}"
        case ev.RemedyJudged():
            helped = "helped" if event.helped else "did not help"
            return f"remedy for “{_plain(event.failure)}”: {_plain(event.remedy)} {helped}"
        case ev.TurnBegun():
            advice = ", ".join(_plain(item.advice) for item in event.advice) or "none"
            return f"beginning at route {event.route}, advice: {advice}"
        case ev.OverlapFound():
            return f"said again: {event.dropped} characters"
        case ev.ReplyJudged():
            promised = f", {len(event.promised)} characters" if event.promised else ""
            taken = f", {event.taken} calls of it" if event.taken >= 0 else ""
            return f"the reply: {_plain(event.reply)}{promised}{taken}"
        case ev.FailureJudged():
            aside = f", its key set aside for {event.aside_seconds:.0f} s" if event.aside_seconds else ""
            return f"failure “{_plain(event.failure)}”, {_plain(event.cause)}, leads to “{_plain(event.code)}”{aside}"
        case ev.LoopFound():
            return f"{_plain(event.code)} of {event.tool}, {event.count} times: {'stop' if event.stop else 'warning'}"
        case ev.ApprovalAsked():
            return f"approval asked for {event.call}, {event.seconds} s"
        case ev.CallSettled():
            how = "denied" if event.denied else "outcome unknown" if event.unsure else "not run"
            return f"the call {event.call}: {how}"
        case ev.SummaryAsked():
            return f"last words asked for, then {exit_words(event.exit)}"
        case ev.TurnResumed():
            return f"goes on: {_plain(event.how)}"
        case _:
            return event.kind()


def _plain(value: StrEnum) -> str:
    return value.value.replace("_", " ")


def exit_words(ending: Exit) -> str:
    """An exit with those of its facts that hold no words of a person, a model or a provider."""
    facts = ending.facts()
    said = [f"{name.replace('_', ' ')} {_fact(facts[name])}" for name in _TOLD if facts.get(name)]
    return f"{_plain(ending.code)} ({'; '.join(said)})" if said else _plain(ending.code)


_TOLD = (
    "cause", "seconds", "attempts", "steps", "tool", "count", "limit", "status", "retry_after_seconds", "reference", "tried",
    "tools_done", "tools_dropped", "tools_unsure",
)  # fmt: skip


def _fact(value: object) -> str:
    match value:
        case StrEnum():
            return _plain(value)
        case tuple():
            return ", ".join(cast("tuple[str, ...]", value))
        case _:
            return str(value)


def _unlike(one: Exit, other: Exit) -> str:
    """The names of the facts in which two exits differ."""
    mine, theirs = one.facts(), other.facts()
    return ", ".join(name.replace("_", " ") for name in mine | theirs if mine.get(name) != theirs.get(name))
