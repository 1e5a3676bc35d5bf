"""The turn: a pure machine that turns events into effects.

Why a fold: a journal that one version wrote has to be read by any other to the same state, after a crash as years later. So the machine has two
halves. `apply` takes what the journal holds: facts, and what was judged of them; it changes the state by nothing else, and never asks a rule. A
fact that rules have something to say about leaves a *question* open (`questions`). `feed` is for what happens now: it takes the fact, and as long
as a question is open asks today's rules (`judging.decide`), takes the judgement, and wants it journalled in the fact's commit (`Record`; the end
is wanted by `EndTurn`). A fold answers the question by what follows in the journal. Rules are asked only for what is new.

There is no clock (time is in the events), no randomness (jitter comes from the seed in `TurnOpened`) and no I/O. The driver, a crash
recovery, a replay and the simulation all drive this same class.

The machine waits for one thing at a time (`Phase`). Which fact can come in which phase, and what takes it, is the table `FACTS`; which judgement
answers which question, `questions.ANSWERS`; what takes it, `JUDGEMENTS`. The tables are the dispatch, and are printed as docs/turn.md. What an
event changes is in `taking`.

An event that does not fit raises in `apply`; in `feed`, where it is only late, it changes nothing. `misfit` says why.

Laws (tests): any interleaving of events leads to at most one `EndTurn`, and from every state a deadline ends it; merging adjacent text
events gives the same state; no `RunTool` comes twice for an `effect` tool; what `feed` was given and wanted recorded, applied, gives
the state that `feed` left, whatever the rules are by then; every event in every phase is taken or refused as the tables say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar, assert_never, cast

from agent_core.failures.errors import ProtocolError
from agent_core.failures.exits import Exit, ExitCode
from agent_core.judging.judge import decide
from agent_core.machine import taking
from agent_core.records import dataclass
from agent_core.turn.effects import (
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
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
    Event,
    FailureJudged,
    Happened,
    LoopFound,
    OfCall,
    OverlapFound,
    ReasoningArrived,
    RefusalBegan,
    RemedyChosen,
    RemedyJudged,
    Reply,
    ReplyFinished,
    ReplyJudged,
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
    WaitEnded,
)
from agent_core.turn.questions import (
    MUST_BE_ANSWERED,
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
    answers,
)
from agent_core.turn.standing import Standing
from agent_core.turn.state import (
    Phase,
)

ENDING = StopRequested | Superseded | DeadlinePassed | DrainEnded | DriverFailed
"""What ends every turn at once."""


OUTSIDE = (ExitCode.INTERNAL_ERROR, ExitCode.INTERRUPTED_BY_RESTART)
"""The ends of turns that somebody ends without looking into them."""


class Turn(Standing):
    """One turn. Create it, feed it `TurnOpened`, then whatever happens, until `exit` is set.

    Where it stands is for reading (see `Standing`); only `feed` and `apply` change it.
    """

    __slots__ = ()

    # ------------------------------------------------------------------ the two doors

    def feed(self, event: Event, *, fits: bool = False) -> list[Effect]:
        """Take what happens now, and judge it; what is wanted next, in order. What comes late (`misfit` says so) changes nothing.
        `fits`: it has just been asked, and says nothing against it.

        Raises `ProtocolError` if the first event is not `TurnOpened`, or if it comes twice.
        """
        if isinstance(event, TurnEnded):  # somebody else ended it, or it could not be ended as it had decided
            return taking.close(self, event)
        row = FACTS.get(type(event))
        if row is not None and row.phases is _CALLING[0] and self.phase is Phase.CALLING and not self.questions:
            effects = row.takes(self, event)  # what a model says comes by here all the time, and fits
        else:
            fits = fits and not self.questions
            effects = self._unasked(event)
            problem = "" if fits else self.misfit(event)
            if problem and (self.opened is None or isinstance(event, TurnOpened)):
                raise ProtocolError(problem)
            if problem:
                return effects
            effects += self._take(event)
        self.draft.show()
        return self._judged(effects) if self.questions else effects

    def apply(self, event: Event) -> list[Effect]:
        """Take what the journal holds. No rule is asked. Raises `ProtocolError` if the event does not fit what stands before it."""
        effects = self._unasked(event)
        problem = self.misfit(event)
        if problem:
            raise ProtocolError(f"{type(event).__name__}: {problem}")
        return effects + self._take(event)

    def _judged(self, effects: list[Effect]) -> list[Effect]:
        """Ask today's rules until no question is open."""
        while self.questions:
            question = self.questions[0]
            if isinstance(question, Restart):  # nothing that was wanted before has been begun
                effects = [effect for effect in effects if isinstance(effect, Record | SetAside)]
            decisions = decide(question, self)
            if not decisions or isinstance(decisions[0], RunTool):
                effects += self._ordinarily()
            for decision in decisions:
                match decision:
                    case RunTool():
                        self.round.running(decision.call, question.at)
                        effects.append(decision)
                    case TurnEnded():
                        self._take(decision)
                        effects.append(EndTurn(decision.exit, decision.answer))
                    case _:
                        effects += [Record(decision), *self._take(decision)]
        return effects

    def _unasked(self, event: Event) -> list[Effect]:
        """What is open and not answered by `event` was judged the ordinary way, or, if that cannot be, not at all."""
        effects: list[Effect] = []
        while self.questions and not self.answered_by(event):
            effects += self._ordinarily(event)
        if self.questions and self._void(event, self.questions[0]):
            self.questions.clear()
        return effects

    def answered_by(self, event: Event) -> bool:
        """Whether `event` answers what is open, or leaves it open, or void."""
        head = self.questions[0]
        if isinstance(event, TurnEnded):
            return not isinstance(head, Overlap)
        if isinstance(event, TakenOver) and (isinstance(head, End) or not self.settings.judged):
            return True
        return answers(event, head) or self._void(event, head)

    def _void(self, event: Event, head: Question) -> bool:
        """Nobody will answer any more: a process was gone before it could say how it goes on; or, as older journals have it, before
        it could say anything. What the broken call had said again is asked anew with that."""
        restart = self.questions[1] if isinstance(head, Overlap) and len(self.questions) > 1 else head
        if isinstance(event, ENDING | TakenOver) and isinstance(restart, Restart):
            return True
        return isinstance(event, ENDING) and isinstance(head, MUST_BE_ANSWERED) and not self.settings.judged

    def silence(self) -> list[Effect]:
        """For whoever reads a journal: the next question was answered the ordinary way."""
        return self._ordinarily()

    def go_on(self) -> list[Effect]:
        """Judge what a journal left open, by today's rules."""
        return self._judged([])

    def _ordinarily(self, event: Event | None = None) -> list[Effect]:
        """The next question is answered by silence."""
        question = self.questions[0]
        match question:
            case Beginning():
                self.questions.pop(0)
                return taking.call_model(self, question.at)
            case Overlap():
                self.questions.pop(0)
                self.draft.settle()
                return []
            case Result():
                self.questions.pop(0)
                return taking.go_on(self, question.at)
            case PendingCalls():
                self.questions.pop(0)
                return []
            case NextStep():
                self.questions.pop(0)
                return taking.next_step(self, question)
            case CallOver() | Promised() | RemedyWanted() | CallRefused() | Restart() | End():
                came = f"{type(event).__name__} came instead" if event is not None else "there is none"
                raise ProtocolError(f"a judgement was due here ({type(question).__name__}), and {came}")
            case _:
                assert_never(question)

    def misfit(self, event: Event) -> str:
        """What speaks against this event now, in words; empty if it fits."""
        if isinstance(event, TurnOpened):
            if self.phase is not Phase.NEW:
                return FACTS[TurnOpened].otherwise
            return "" if event.settings.routes else "a turn needs at least one route to a model"
        if self.phase is Phase.NEW:
            return f"the first event of a turn must be TurnOpened, not {event.kind()}"
        if self.phase is Phase.ENDED:
            return HAD_ENDED
        row = FACTS.get(type(event))
        if row is None:
            return _misfit_judgement(self, event)
        if self.phase not in row.phases:
            return row.otherwise
        return self.round.misfit(event) if isinstance(event, OfCall) else ""

    def _take(self, event: Event) -> list[Effect]:
        """Change the state by an event that fits."""
        row = FACTS.get(type(event))
        if row is not None:
            return row.takes(self, event)
        question = self.questions[0] if self.questions else None
        if question is not None and not isinstance(event, RemedyJudged | TurnEnded):
            self.questions.pop(0)
        return JUDGEMENTS[type(event)](self, event, question)


def _misfit_judgement(turn: Standing, event: Event) -> str:
    question = turn.questions[0] if turn.questions else None
    match event:
        case RemedyJudged():
            judged = (event.failure, event.remedy)
            return "" if turn.troubles.judging == judged else "this remedy was not at work"
        case TurnEnded(exit=ending):
            return _misfit_end(turn, ending, question)
        case RemedyChosen() if isinstance(question, RemedyWanted):
            return "" if event.failure is question.failure else f"the failure was {question.failure.value}"
        case ReplyJudged(reply=Reply.TOOLS | Reply.HANDED) if isinstance(question, CallOver):
            return "" if turn.draft.calls else "the reply asks for no tools"
        case ReplyJudged(reply=Reply.SUMMARY) if isinstance(question, CallOver | Restart):
            return "" if turn.closing is not None else "these were not to be the last words"
        case LoopFound() if isinstance(question, Result):
            return "" if event.call == question.call else "another call came back"
        case CallSettled() | ApprovalAsked():
            fits = question is not None and turn.round.activity(event.call) is not None
            return "" if fits else "nothing was to be decided about this call"
        case _:
            fits = question is not None and answers(event, question)
            return "" if fits else "nothing was to be judged"


def _misfit_end(turn: Standing, ending: Exit, question: Question | None) -> str:
    if ending.code in OUTSIDE or not turn.settings.judged:
        return ""
    match question:
        case End():
            wanted = question.exit.code
            return "" if wanted is ending.code else f"the turn was to end with {wanted.value}"
        case CallOver():
            return ""
        case RemedyWanted() | Result() | CallRefused() | Restart() | PendingCalls():
            # The client's calls wait until ours are over.
            hands = ending.code is ExitCode.HANDED_TO_CLIENT and not turn.to_hand
            wrong = hands or ending.code is ExitCode.ANSWERED
            return "no reply was over that could be the answer" if wrong else ""
        case _:
            return "nothing led to this end"


# ---------------------------------------------------------------------- the tables


_E = TypeVar("_E", bound=Happened)
TakesJudgement: TypeAlias = Callable[[Standing, Event, Question | None], list[Effect]]


@dataclass(frozen=True, slots=True)
class Row:
    """When a fact can come, what takes it, and what is said of it where it cannot come."""

    phases: frozenset[Phase]
    takes: Callable[[Standing, Event], list[Effect]]
    otherwise: str


def _fact(
    kind: type[_E], takes: Callable[[Standing, _E], list[Effect]], phases: frozenset[Phase], otherwise: str
) -> tuple[type[Happened], Row]:
    return kind, Row(phases, cast("Callable[[Standing, Event], list[Effect]]", takes), otherwise)


def _judgement(
    kind: type[_E], takes: Callable[[Standing, _E, Question | None], list[Effect]]
) -> tuple[type[Happened], TakesJudgement]:
    return kind, cast("TakesJudgement", takes)


_CALLING = (frozenset({Phase.CALLING}), "the model was not being called")
_WAITING = (frozenset({Phase.WAITING}), "the turn was not waiting for a retry")
_ACTING = (frozenset({Phase.ACTING}), "no tools were wanted")
_COMPACTING = (frozenset({Phase.COMPACTING}), "no shortening was wanted")
_ASKING = (frozenset({Phase.ASKING}), "the model was not asked whether it is done")
HAD_ENDED = "the turn had ended by then"
_OPEN = (frozenset(set(Phase) - {Phase.NEW, Phase.ENDED}), HAD_ENDED)
"""What people, the clock and the process do comes at any time."""

FACTS: Mapping[type[Happened], Row] = dict((
    _fact(TurnOpened, taking.open_turn, frozenset({Phase.NEW}), "TurnOpened came twice"),
    _fact(TextArrived, taking.take_content, *_CALLING),
    _fact(ReasoningArrived, taking.take_content, *_CALLING),
    _fact(ToolCallNamed, taking.take_content, *_CALLING),
    _fact(ToolArgumentsArrived, taking.take_content, *_CALLING),
    _fact(ToolCallCut, taking.take_content, *_CALLING),
    _fact(TextTakenBack, taking.take_back, *_CALLING),
    _fact(RefusalBegan, taking.hear_refusal, *_CALLING),
    _fact(ToolsRefused, taking.say_toolless, *_CALLING),
    _fact(ReplyFinished, taking.end_call, *_CALLING),
    _fact(CallBroke, taking.end_call, *_CALLING),
    _fact(SpendRefused, taking.end_call, *_CALLING),
    _fact(WaitEnded, taking.call_again, *_WAITING),
    _fact(Compacted, taking.note_compacted, *_COMPACTING),
    _fact(DoneSaid, taking.hear_whether_done, *_ASKING),
    _fact(ToolStarted, taking.start_tool, *_ACTING),
    _fact(ToolReturned, taking.take_result, *_ACTING),
    _fact(ChangeShown, taking.show_change, *_ACTING),
    _fact(ApprovalAnswered, taking.take_approval, *_ACTING),
    _fact(Steered, taking.keep_steer, *_OPEN),
    _fact(TakenOver, taking.restart, *_OPEN),
    _fact(TurnLeft, taking.leave, *_OPEN),
    _fact(StopRequested, taking.stop, *_OPEN),
    _fact(Superseded, taking.supersede, *_OPEN),
    _fact(DeadlinePassed, taking.time_out, *_OPEN),
    _fact(DrainEnded, taking.interrupt, *_OPEN),
    _fact(DriverFailed, taking.fail, *_OPEN),
))  # fmt: skip
"""Which fact can come in which phase, and what takes it. In any other phase it changes nothing in `feed`, and in a journal it is refused."""

JUDGEMENTS: Mapping[type[Happened], TakesJudgement] = dict((
    _judgement(TurnBegun, taking.begin),
    _judgement(OverlapFound, taking.settle_overlap),
    _judgement(ReplyJudged, taking.take_reply),
    _judgement(FailureJudged, taking.note_failure),
    _judgement(RemedyChosen, taking.escalate),
    _judgement(RemedyJudged, taking.judge_remedy),
    _judgement(LoopFound, taking.warn_of_loop),
    _judgement(ApprovalAsked, taking.ask_approval),
    _judgement(CallSettled, taking.settle_call),
    _judgement(SummaryAsked, taking.sum_up),
    _judgement(TurnResumed, taking.resume),
    _judgement(TurnEnded, taking.close),
))  # fmt: skip
"""What takes a judgement. Which question it answers: `questions.ANSWERS`."""

LEADS: Mapping[Phase, Mapping[Phase, str]] = {
    Phase.NEW: {Phase.CALLING: "TurnOpened"},
    Phase.CALLING: {
        Phase.CALLING: "another call: a remedy, a message in between, a restart",
        Phase.WAITING: "a remedy that waits",
        Phase.COMPACTING: "the remedy that shortens",
        Phase.ASKING: "a reply that may be a promise",
        Phase.ACTING: "a reply that asks for tools",
        Phase.ENDED: "the answer, or no remedy left",
    },
    Phase.WAITING: {Phase.CALLING: "WaitEnded", Phase.ENDED: "stopped"},
    Phase.COMPACTING: {Phase.CALLING: "Compacted", Phase.ENDED: "stopped"},
    Phase.ASKING: {Phase.CALLING: "DoneSaid", Phase.ENDED: "stopped"},
    Phase.ACTING: {Phase.CALLING: "all tools are back", Phase.ENDED: "a loop, a refusal, stopped"},
    Phase.ENDED: {},
}
"""From which phase a turn gets into which, and by what. For the drawing; a test compares it with what turns do."""
