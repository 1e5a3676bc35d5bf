"""The turn: a pure machine that turns events into effects, and the one place that ends a turn.

Theory. A turn is the fold of its events, and the machine has two halves. `apply` takes what the journal holds: facts, and what was judged of
them; it changes the state by nothing else, and never asks a rule. A fact that rules have something to say about leaves a *question* open
(`questions`). `feed` is for what happens now: it takes the fact, and as long as a question is open asks today's rules (`judging.decide`),
takes the judgement, and wants it journalled in the fact's commit (`Record`; the end is wanted by `EndTurn`). A fold answers the question by
what follows in the journal. So a journal that one version wrote is read by any other to the same state; rules are asked only for what is new.

There is no clock (time is in the events), no randomness (jitter comes from the seed in `TurnOpened`) and no I/O. The driver, a crash
recovery, a replay and the simulation all drive this same class.

The machine waits for one thing at a time (`Phase`). In CALLING, stream events fill a `Draft`; when the stream ends, well or not, it is judged
what the call amounts to, and either the turn goes on (tools, the next step), or a failure gets a remedy, or the turn ends. In ACTING, tools
come back one by one; when the last is back (`toolround`) the next step begins.

Rules for this file: everything that changes a turn's state is here; nothing here knows words for people (`notices`), words for the model
(`transcript`), how things look (`view`) or how anything is judged (`judging`). An event that does not fit raises in `apply`; in `feed`,
where it is only late, it changes nothing.

Laws (tests): any interleaving of events leads to at most one `EndTurn`, and from every state a deadline ends it; merging adjacent text
events gives the same state; no `RunTool` comes twice for an `effect` tool; what `feed` was given and wanted recorded, applied, gives
the state that `feed` left, whatever the rules are by then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from agent_core.judging.judge import decide
from agent_core.judging.leftout import Leaving, LeftOut
from agent_core.judging.questions import (
    MUST_BE_ANSWERED,
    Beginning,
    CallOver,
    Calls,
    End,
    Failed,
    NextStep,
    Overlap,
    Promised,
    Question,
    Refused,
    Restart,
    Result,
    answers,
)
from agent_core.judging.remedies import NOTHING_TO_ADD, Advice, Asks, Does, Failure, Remedy, offered_again
from agent_core.learning.troubles import Trouble, Troubles, is_trouble
from agent_core.messages import carried_thoughts
from agent_core.tools.base import Json
from agent_core.turn import exits
from agent_core.turn.causes import BreakCause
from agent_core.turn.effects import (
    AskApproval,
    AskDone,
    CallModel,
    Compact,
    Effect,
    EndTurn,
    Record,
    RunTool,
    SetAside,
    Wait,
)
from agent_core.turn.errors import ProtocolError
from agent_core.turn.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBroke,
    CallSettled,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    DrainEnded,
    DriverFailed,
    Event,
    FailureJudged,
    LoopFound,
    OverlapFound,
    ReasoningArrived,
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
from agent_core.turn.exits import Exit, ExitCode
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
from agent_core.turn.timeline import remark, tell_mended, toolless
from agent_core.turn.toolround import ToolRound

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

    def feed(self, event: Event) -> list[Effect]:
        """Take what happens now, and judge it; what is wanted next, in order. What comes late (`misfit` says so) changes nothing.

        Raises `ProtocolError` if the first event is not `TurnOpened`, or if it comes twice.
        """
        if isinstance(event, TurnEnded):  # somebody else ended it, or it could not be ended as it had decided
            self._close(event)
            return []
        effects = self._unasked(event)
        problem = self.misfit(event)
        if problem and (self.opened is None or isinstance(event, TurnOpened)):
            raise ProtocolError(problem)
        if problem:
            return effects
        effects += self._take(event)
        self.draft.show()
        return self._judged(effects)

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
                self.questions.popleft()
                return self._call(question.at)
            case Overlap():
                self.questions.popleft()
                self.draft.settle()
                return []
            case Result():
                self.questions.popleft()
                return self._go_on(question.at)
            case Calls():
                self.questions.popleft()
                return []
            case NextStep():
                self.questions.popleft()
                self._hear()
                self.step += 1
                return self._call(question.at)
            case CallOver() | Promised() | Failed() | Refused() | Restart() | End():
                came = f"{type(event).__name__} came instead" if event is not None else "there is none"
                raise ProtocolError(f"a judgement was due here ({type(question).__name__}), and {came}")
            case _:
                assert_never(question)

    def misfit(self, event: Event) -> str:
        """What speaks against this event now, in words; empty if it fits."""
        if isinstance(event, TurnOpened):
            if self.opened is not None:
                return "TurnOpened came twice"
            return "" if event.settings.routes else "a turn needs at least one route to a model"
        if self.opened is None:
            return f"the first event of a turn must be TurnOpened, not {type(event).__name__}"
        if self.phase is Phase.ENDED:
            return "the turn had ended by then"
        match event:
            case (
                TextArrived()
                | ReasoningArrived()
                | TextTakenBack()
                | ToolsRefused()
                | ToolCallNamed()
                | ToolArgumentsArrived()
                | ToolCallCut()
                | ReplyFinished()
                | CallBroke()
                | SpendRefused()
            ):
                return "" if self.phase is Phase.CALLING else "the model was not being called"
            case WaitEnded():
                return "" if self.phase is Phase.WAITING else "the turn was not waiting for a retry"
            case Compacted():
                return "" if self.phase is Phase.COMPACTING else "no shortening was wanted"
            case DoneSaid():
                return "" if self.phase is Phase.ASKING else "the model was not asked whether it is done"
            case ToolStarted() | ToolReturned() | ApprovalAnswered():
                return self.round.misfit(event) if self.phase is Phase.ACTING else "no tools were wanted"
            case (
                Steered()
                | StopRequested()
                | Superseded()
                | DeadlinePassed()
                | DrainEnded()
                | TurnLeft()
                | TakenOver()
                | DriverFailed()
            ):
                return ""  # what people, the clock and the process do comes at any time
            case _:
                return self._misfit_judgement(event)

    def _misfit_judgement(self, event: Event) -> str:
        question = self.questions[0] if self.questions else None
        match event:
            case RemedyJudged():
                judged = (event.failure, event.remedy)
                return "" if self.troubles.judging == judged else "this remedy was not at work"
            case TurnEnded(exit=ending):
                return self._misfit_end(ending, question)
            case RemedyChosen() if isinstance(question, Failed):
                return "" if event.failure is question.failure else f"the failure was {question.failure.value}"
            case ReplyJudged(reply=Reply.TOOLS | Reply.HANDED) if isinstance(question, CallOver):
                return "" if self.draft.calls else "the reply asks for no tools"
            case ReplyJudged(reply=Reply.SUMMARY) if isinstance(question, CallOver | Restart):
                return "" if self.closing is not None else "these were not to be the last words"
            case LoopFound() if isinstance(question, Result):
                return "" if event.call == question.call else "another call came back"
            case CallSettled() | ApprovalAsked():
                fits = question is not None and self.round.activity(event.call) is not None
                return "" if fits else "nothing was to be decided about this call"
            case _:
                fits = question is not None and answers(event, question)
                return "" if fits else "nothing was to be judged"

    def _misfit_end(self, ending: Exit, question: Question | None) -> str:
        if ending.code in OUTSIDE or not self.settings.judged:
            return ""
        match question:
            case End():
                return (
                    "" if question.exit.code is ending.code else f"the turn was to end with {question.exit.code.value}"
                )
            case CallOver():
                return ""
            case Failed() | Result() | Refused() | Restart() | Calls():
                wrong = ending.code in (ExitCode.ANSWERED, ExitCode.HANDED_TO_CLIENT)
                return "no reply was over that could be the answer" if wrong else ""
            case _:
                return "nothing led to this end"

    def _take(self, event: Event) -> list[Effect]:
        """Change the state by an event that fits."""
        match event:
            case TurnOpened():
                return self._open(event)
            case TextArrived() | ReasoningArrived() | ToolCallNamed() | ToolArgumentsArrived() | ToolCallCut():
                self.life_at = event.at
                if self.left_out and not self.draft.begun:
                    told = remark(self.timeline, self.left_out, self.leaving.parts, self.route, self.last_break)
                    here = len(self.timeline) - (not self.draft.went_on.strip())  # never in the middle of a text
                    self.timeline[here:here] = told
                self.draft.take(event, self._ids)
            case TextTakenBack():
                self._take_back(event)
            case ToolsRefused():
                self.timeline[-1:-1] = toolless(self.timeline, self.route)
            case ReplyFinished() | CallBroke():
                self.input_tokens += event.input_tokens
                self.output_tokens += event.output_tokens
                self._over(CallOver(event))
            case SpendRefused():
                self._over(CallOver(event))
            case WaitEnded():
                return self._call(event.at)
            case ToolStarted():
                self.round.started(event)
            case ToolReturned():
                self.round.returned(event)
                self.questions.appendleft(Result(event.at, event.call))
            case ApprovalAnswered():
                return self._approval_answered(event)
            case Steered():
                self.steers.append(PersonItem(event.input, event.inbox))
            case Compacted():
                self.compacted = event  # also if little could be left out: the provider has the last word on what fits
                return self._call(event.at)
            case DoneSaid():
                self._done_said(event)
            case TakenOver():
                self._taken_over(event)
            case StopRequested():
                self._over(End(event.at, exits.Stopped(forgotten=event.forgotten)))
            case Superseded():
                self._over(End(event.at, exits.Superseded()))
            case DeadlinePassed():
                self._over(End(event.at, exits.TimeLimit(limit=self.settings.turn_seconds)))
            case TurnLeft():
                self.left = True
            case DrainEnded():
                self._over(End(event.at, exits.InterruptedByRestart()))
            case DriverFailed():
                self._over(End(event.at, exits.InternalError(reference=event.reference, detail=event.why)))
            case _:
                return self._take_judgement(event)
        return []

    def _take_judgement(self, event: Event) -> list[Effect]:
        question = self.questions[0] if self.questions else None
        if question is not None and not isinstance(event, RemedyJudged | TurnEnded):
            self.questions.popleft()
        match event:
            case TurnBegun():
                return self._begun(event)
            case OverlapFound():
                self.draft.settle(event.text + self.draft.own_text[event.dropped :])
            case ReplyJudged():
                return self._reply_judged(event, question)
            case FailureJudged():
                return self._failed(event, question)
            case RemedyChosen():
                return self._escalate(event)
            case RemedyJudged():
                self.troubles.judge(helped=event.helped)
                about = (self.failed_seconds, self.troubles.found[-1].tool, self.route.model)
                tell_mended(self.timeline, self.draft, event, *about)
            case LoopFound():
                self.round.found(event)
                return self._go_on(event.at)
            case ApprovalAsked():
                self.round.asked(event)
                activity = self.round.activity(event.call)
                assert activity is not None
                return [AskApproval(event.call, activity.name, activity.arguments, event.seconds)]
            case CallSettled():
                self.round.settled(event)
                return self._go_on(event.at)
            case SummaryAsked():
                self._hear()
                self.closing, self.ask = event.exit, Ask(event.advice)
                return self._call(event.at)
            case TurnResumed():
                return self._resume(event)
            case TurnEnded():
                self._close(event)
            case _:
                raise AssertionError(event)
        return []

    # ------------------------------------------------------------------ beginning, calling

    def _open(self, event: TurnOpened) -> list[Effect]:
        self.opened = event
        self.round = ToolRound(event.settings, self.items)
        self.troubles = Troubles(event.known)
        self.step = 1
        self._new_segment()
        self._enter(Phase.CALLING, event.at)
        self.questions.append(Beginning(event.at))
        return []

    def _begun(self, event: TurnBegun) -> list[Effect]:
        self.route_index = event.route
        self.items += event.advice
        self.troubles.advised = self.troubles.warned = bool(event.advice)
        self.trying = bool(event.route or event.advice)
        self.withheld = frozenset(event.withheld)
        return self._call(event.at)

    def _new_segment(self) -> None:
        segment = Segment(f"text{sum(isinstance(entry, Segment) for entry in self.timeline)}")
        self.timeline.append(segment)
        self.draft = Draft(segment)

    def _call(self, at: int) -> list[Effect]:
        """Ask the model, in the way that `ask` says."""
        self.done_said = self.doubted = None
        segment = self.draft.segment
        partial = segment.text if self.ask.continues else ""
        self.draft = self.draft.after(partial, (self.route.endpoint, self.route.model))
        self.calls_made += 1
        self._enter(Phase.CALLING, at)
        self.life_at = at
        return [
            CallModel(
                number=self.calls_made,
                route=self.route,
                offer_tools=self.closing is None,
                partial=partial,
                advice=self.ask.advice,
                reasoning=self.ask.reasoning,
                detail=self.ask.detail,
                left_out=self.left_out,
            )
        ]

    def _enter(self, phase: Phase, at: int) -> None:
        self.phase = phase
        self.phase_since = at

    def _take_back(self, event: TextTakenBack) -> None:
        """What the call said so far was a thought: it vanishes from the screen."""
        self.life_at = event.at
        draft = self.draft
        self._new_segment()
        draft.take_back(self.draft.segment, earlier=event.earlier)
        self.draft = draft

    # ------------------------------------------------------------------ a call is over

    def _over(self, question: CallOver | End) -> None:
        """A model call, or the turn with it, is over: what it said again comes first."""
        self.questions.appendleft(question)
        self._ask_overlap(question.at)

    def _ask_overlap(self, at: int) -> None:
        if self.phase is Phase.CALLING and self.draft.partial:
            if self.draft.text_pieces:
                self.questions.appendleft(Overlap(at))
            else:
                self.draft.settle()

    def _thoughts(self, question: Question | None) -> Mapping[str, Json]:
        """What the model of the reply that is over wants back of its thoughts."""
        finished = question.event if isinstance(question, CallOver) else None
        if not isinstance(finished, ReplyFinished):
            return {}
        calls = {index: call.call for index, call in self.draft.calls.items()}
        reasoning, route = "".join(self.draft.reasoning), self.route
        return carried_thoughts(route.endpoint, route.model, reasoning, finished.thoughts, calls)

    def _reply_judged(self, event: ReplyJudged, question: Question | None) -> list[Effect]:
        text, thoughts = self.reply_text, self._thoughts(question)
        match event.reply:
            case Reply.TOOLS | Reply.HANDED:
                self._succeeded()
                return self._act(text, event, thoughts)
            case Reply.SAID:
                self.items.append(AssistantItem(text, thoughts=thoughts))
                self._succeeded()
                self._settle_segment(SegmentKind.INTERIM)
                self.questions.appendleft(NextStep(event.at))
            case Reply.PROMISED if not text.strip():
                self.promised = event.promised
                self.questions.appendleft(Promised(event.at))
            case Reply.PROMISED:
                self.items.append(AssistantItem(text, thoughts=thoughts))
                used = self.chosen[Failure.PROMISED, Remedy.NUDGE]
                self.chosen.clear()
                self.chosen[Failure.PROMISED, Remedy.NUDGE] = used
                self.promised = event.promised
                if self.settings.keeps_the_doubted:
                    self._doubt_segment()
                else:
                    self._settle_segment(SegmentKind.INTERIM)
                self.questions.appendleft(Promised(event.at))
            case Reply.UNCLEAR:
                assert isinstance(question, CallOver)
                self.doubted = question
                self.done_asked += 1
                self._enter(Phase.ASKING, event.at)
                return [AskDone(self.route, self.reply_text)]
            case Reply.SUMMARY:
                assert self.closing is not None
                self.items.append(AssistantItem(self.draft.own_text))
                self._settle_segment(SegmentKind.INTERIM)
                self.questions.appendleft(End(event.at, self.closing))
            case _:
                assert_never(event.reply)
        return []

    def _succeeded(self) -> None:
        """A reply came to a good end: the step's counts are cleared."""
        self.withheld = offered_again(self.remedies, self.withheld)
        self.chosen.clear()
        self.promised = ""
        self.attempts = self.restarts = 0
        self.last_break = None
        self.failing = None
        self.failed_seconds = 0.0
        self.troubles.step_over()
        if self.leaving.parts:
            self.kept_out.append(LeftOut(self.route.endpoint, self.route.model, self.leaving.parts))
        self.leaving = Leaving()
        self.ask = Ask()

    def _settle_segment(self, kind: SegmentKind) -> None:
        """The current segment is complete; what comes next is a new one."""
        segment = self.draft.segment
        if segment.text.strip():
            segment.kind, segment.final = kind, True
            self._new_segment()
        else:
            segment.pieces.clear()
            self.draft = Draft(segment)

    def _done_said(self, event: DoneSaid) -> None:
        """The model was asked whether its reply is finished: now it is judged again."""
        assert self.doubted is not None
        self.input_tokens += event.input_tokens
        self.output_tokens += event.output_tokens
        self.done_said = event
        self._enter(Phase.CALLING, event.at)
        self.questions.appendleft(replace(self.doubted))  # the same question, asked anew

    def _doubt_segment(self) -> None:
        """What was said may be the answer after all: it stays on screen, and neither its repetition nor a mere "done" is shown."""
        shown = (self.draft.segment.visible or self.draft.segment.repeats).strip()
        self._settle_segment(SegmentKind.INTERIM)
        self.draft.segment.repeats, self.draft.segment.unsaid = shown, NOTHING_TO_ADD

    # ------------------------------------------------------------------ recovering

    def _failed(self, event: FailureJudged, question: Question | None) -> list[Effect]:
        broke = CallBroke(at=event.at, cause=event.cause, detail=event.detail)
        match question:
            case CallOver(event=ReplyFinished(suspects=found)):
                broke = replace(broke, suspects=found)
            case CallOver(event=CallBroke() as came):
                broke = replace(came, cause=event.cause)
            case _:
                pass
        self.attempts += 1
        self.attempts_in_all += 1
        self.last_break = broke
        self.failing = event.failure
        self.failed_seconds += broke.waited_seconds
        names = self.draft.call_names
        route = self.route
        tool = "".join(names[:1])
        self.troubles.note(Trouble(event.code, event.cause, route.endpoint, route.model, tool, self.arriving_chars))
        if event.failure is Failure.IN_TOOL_CALL:
            self.troubles.broke_off(names, self.arriving_chars)
        self.questions.appendleft(Failed(event.failure, broke))
        return [SetAside(route.credential, event.aside_seconds, event.cause.value)] if event.aside_seconds else []

    def _escalate(self, event: RemedyChosen) -> list[Effect]:
        """Do what a remedy says (its `Recipe`)."""
        self.withheld = offered_again(self.remedies, self.withheld)
        failure = event.failure
        self.chosen[failure, event.remedy] = event.number
        self.troubles.chose(failure, event.remedy)
        self.remedies.append((failure, event.remedy))
        if event.route >= 0:
            self.route_index = event.route
        self.ask = ask_after(event, self.ask, "".join(self.draft.reasoning))
        recipe = event.remedy.recipe
        if recipe.asks is not Asks.SAME:
            self.leaving = Leaving()
        match recipe.does:
            case Does.NOTHING:
                pass
            case Does.LEAVE_OUT:
                assert self.last_break is not None
                self.leaving = Leaving(event.left_out, self.leaving.first or self.last_break.suspects, event.tried)
            case Does.FORGET:
                self.trying = self.troubles.advised = False
                self.items[:] = [item for item in self.items if not of_the_start(item)]
            case Does.WITHHOLD:
                self.withheld |= {event.detail}
            case Does.KEEP_ADVICE:
                self.items.append(AdviceItem(event.advice or Advice.SMALLER_PIECES, event.detail))
            case Does.COMPACT:
                self._enter(Phase.COMPACTING, event.at)
                return [Compact()]
            case _:
                assert_never(recipe.does)
        if failure in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL) and not self.ask.continues:
            self._keep_preamble()
        if not event.pause_ms:
            return self._call(event.at)
        self._enter(Phase.WAITING, event.at)
        self.wait_until = event.at + event.pause_ms
        return [Wait(event.pause_ms / 1000)]

    def _keep_preamble(self) -> None:
        """The call is repeated: what it had said stays on screen, and is not shown a second time."""
        segment = self.draft.segment
        kept = (segment.visible or segment.repeats).strip()
        if segment.visible:
            self._settle_segment(SegmentKind.INTERIM)
        else:
            segment.pieces.clear()
        self.draft = Draft(self.draft.segment)
        self.draft.segment.repeats = kept
        if self.last_break is not None and self.last_break.cause is BreakCause.NO_CALL:
            self.draft.segment.unsaid = NOTHING_TO_ADD

    # ------------------------------------------------------------------ acting

    def _act(self, text: str, event: ReplyJudged, thoughts: Mapping[str, Json]) -> list[Effect]:
        """The model asked for tools."""
        calls = self.reply_calls
        self.items.append(AssistantItem(text, tuple(CallItem(c.call, c.name, c.arguments) for c in calls), thoughts))
        self.troubles.solved += event.solved
        self._settle_segment(SegmentKind.INTERIM)
        if event.reply is Reply.HANDED:
            self.questions.appendleft(End(event.at, exits.HandedToClient()))
            return []
        if event.taken >= 0:
            self.items += [ToolItem(call.call, call.name, event.words) for call in calls[event.taken :]]
            calls = calls[: event.taken]
        activities = [Activity(c.call, c.call, c.name, c.arguments, since=event.at) for c in calls]
        # The screen shows activities before the (still empty) segment of the next reply.
        self.timeline = [e for e in self.timeline if e is not self.draft.segment]
        self.timeline += [*activities, self.draft.segment]
        self._enter(Phase.ACTING, event.at)
        self.round.begin(activities)
        return self._go_on(event.at)

    def _go_on(self, at: int) -> list[Effect]:
        """Something in the round of tools has changed."""
        if self.round.over:
            self.questions.appendleft(NextStep(at))
        elif not self.round.under_way:
            self.questions.appendleft(Calls(at))
        return []

    def _approval_answered(self, event: ApprovalAnswered) -> list[Effect]:
        if event.verdict is Verdict.GIVEN:
            self.round.approved(event.call)
            return self._go_on(event.at)
        self.questions.appendleft(Refused(event.at, event.call, event.verdict))
        return []

    def _hear(self) -> None:
        """The next call tells the model what the person has added."""
        self.items += self.steers
        self.steers = []

    # ------------------------------------------------------------------ coming back, and ending

    def _taken_over(self, event: TakenOver) -> None:
        """Another process begins where the old one stopped."""
        left, self.left = self.left, False
        self.restarts += not left  # an orderly stop is none
        if any(isinstance(question, End) for question in self.questions):
            return
        undecided = bool(self.questions)
        self.questions.append(Restart(event, left))
        if not undecided:
            self._ask_overlap(event.at)

    def _resume(self, event: TurnResumed) -> list[Effect]:
        match event.how:
            case Resume.CALL:
                pass
            case Resume.GO_ON:
                self.ask = Ask(Advice.CONTINUE, continues=Failure.IN_TEXT)
            case Resume.ANEW:
                self._keep_preamble()
            case Resume.COMPACT:
                return [Compact()]
            case Resume.ASK:
                return [AskDone(self.route, self.reply_text)]
            case Resume.ACT:
                self.round.resume()
                return self._go_on(event.at)
            case _:
                assert_never(event.how)
        return self._call(event.at)

    def _close(self, event: TurnEnded) -> None:
        """The only place that ends a turn."""
        ending = event.exit
        over = next((question for question in self.questions if isinstance(question, CallOver)), None)
        self.questions.clear()
        if self.exit is not None:
            self.exit = ending
            return
        if self.phase is Phase.ACTING:
            self.round.close()
        self.draft.settle()
        if ending.code is ExitCode.ANSWERED:
            self._answer(event.answer, self._thoughts(over))
        self.draft.segment.final = True
        if is_trouble(ending):
            self.troubles.ended_by(Trouble(ending.code, None, self.route.endpoint, self.route.model, ending.tool))
        self.exit = ending
        self._enter(Phase.ENDED, event.at)

    def _answer(self, key: str, thoughts: Mapping[str, Json]) -> None:
        """The last reply, or the piece of text that is named, is the answer."""
        said = self.reply_text if self.draft.own_text.strip() or not key else ""
        if said.strip() and not self.draft.segment.adds_nothing:
            self.items.append(AssistantItem(said, thoughts=thoughts))
        self._succeeded()
        segment = self.draft.segment
        for entry in self.timeline:
            if isinstance(entry, Segment) and entry.key == key:
                segment = entry
        if segment is self.draft.segment:
            segment.repeats = ""
        else:
            self.draft.segment.kind = SegmentKind.INTERIM
        segment.kind, segment.final = SegmentKind.ANSWER, True
