"""The turn: a pure machine that turns events into effects, and the one place that ends a turn.

Theory. A turn is the fold of its events. `Turn.feed` takes what happened and answers what is wanted next; it has no clock
(time is in the events), no randomness (jitter comes from the seed in `TurnOpened`) and no I/O. The driver, a crash recovery,
a replay and the simulation all drive this same class.

The machine waits for one thing at a time (`Phase`). In CALLING, stream events fill a `Draft`; when the stream ends, well
or not, `replies.judge` and the break's cause say what it amounts to, and either the turn goes on (tools, the next step), or a
failure climbs its ladder in `recovery`, or the turn ends. In ACTING, tools come back one by one, watched by `guardrails`; when
the last is back (`toolround`) the next step begins.

Rules for this file: everything that changes a turn's state is here; nothing here knows words for people (`notices`), words
for the model (`transcript`) or how things look (`view`). An event that does not fit the phase changes nothing.

Laws (tests): any interleaving of events leads to at most one `EndTurn`, and from every state a deadline ends it; merging
adjacent text events gives the same state; no `RunTool` comes twice for an `effect` tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from agent_core.effects import CallModel, Compact, Effect, EndTurn, Record, SetAside, Wait
from agent_core.endings import again_facts, doing, end_facts, failed_facts
from agent_core.events import (
    ApprovalAnswered,
    CallBroke,
    Compacted,
    DeadlinePassed,
    DrainEnded,
    DriverFailed,
    Event,
    ReasoningArrived,
    ReplyFinished,
    RungClimbed,
    RungJudged,
    SpendRefused,
    Steered,
    StopRequested,
    Superseded,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolStarted,
    TurnEnded,
    TurnLeft,
    TurnOpened,
    WaitEnded,
)
from agent_core.exits import BreakCause, Exit, ExitClass, ExitCode, Facts, exit_class
from agent_core.leftout import LeftOut
from agent_core.messages import carried_thoughts
from agent_core.overlap import OverlapRemover
from agent_core.prevention import prevention
from agent_core.promises import announced_action
from agent_core.recovery import (
    CAUSE_TO_FAILURE,
    SET_ASIDE_SECONDS,
    Advice,
    Failure,
    LadderStep,
    Rung,
    backoff_seconds,
    exit_for,
    next_route,
    next_rung,
)
from agent_core.replies import ReplyKind, judge
from agent_core.settings import REPLY_CHARS, Route, TurnSettings
from agent_core.timeline import adopt_answer, answered_after_all, housekeeping_answer, left_open
from agent_core.toolround import MustEnd, Outcome, RoundOver, ToolRound, Waiting
from agent_core.tools.base import Json
from agent_core.troubles import Trouble, Troubles
from agent_core.turnstate import (
    Activity,
    AdviceItem,
    Ask,
    AssistantItem,
    CallItem,
    Draft,
    DraftCall,
    Item,
    PersonItem,
    Phase,
    Segment,
    SegmentKind,
    TimelineEntry,
)


class ProtocolError(Exception):
    """A bug of the caller, with the rule that it broke."""


class Turn:
    """One turn. Create it, feed it `TurnOpened`, then whatever happens, until `exit` is set.

    The attributes are for reading (`view`, `transcript`, the driver's log); only `feed` changes them.
    """

    __slots__ = (
        "_ask", "_climbed", "_closing", "_draft", "_failed_seconds", "_ids", "_promised", "_steers",
        "attempts", "attempts_in_all", "calls_made", "compacted", "exit", "failing", "input_tokens", "items", "kept_out",
        "last_break", "left", "life_at", "opened", "output_tokens", "phase", "phase_since", "restarts", "round", "route_index",
        "rungs", "step", "timeline", "troubles", "wait_until",
    )  # fmt: skip

    def __init__(self) -> None:
        self.opened: TurnOpened | None = None
        self.phase = Phase.NEW
        self.exit: Exit | None = None
        self.timeline: list[TimelineEntry] = []
        self.items: list[Item] = []
        self.step = 0
        self.calls_made = 0
        self.route_index = 0
        self.phase_since = 0
        """When the current phase began, ms."""
        self.life_at = 0  # when the last content came from the model, or the call began, ms
        self.wait_until = 0
        self.last_break: CallBroke | None = None
        """Why the current step's last call failed, until one succeeds."""
        self.failing: Failure | None = None
        self.attempts = 0  # failed calls of the current step
        self.attempts_in_all = 0
        self.restarts = 0  # that broke off the current step
        self.left = False
        """The process that ran it has ended in order, and no other has taken it over yet."""
        self.rungs: list[tuple[Failure, Rung]] = []
        self.input_tokens = 0
        self.output_tokens = 0
        self.round = ToolRound(TurnSettings(routes=()), self.items)  # the tools of the current step
        self.compacted: Compacted | None = None
        self.kept_out: list[LeftOut] = []
        """What providers have refused of the conversation in this turn, and was left out with success."""
        self._draft = Draft(Segment("s0"))
        self._ask = Ask()
        self._climbed: Counter[tuple[Failure, Rung]] = Counter()
        self.troubles = Troubles()
        self._closing: Exit | None = None
        self._ids: set[str] = set()  # of all tool calls of the turn
        self._steers: list[PersonItem] = []
        self._promised = ""
        self._failed_seconds = 0.0

    # ------------------------------------------------------------------ the front door

    def feed(self, event: Event) -> list[Effect]:
        """Take note of what happened; what is wanted next, in order.

        Raises `ProtocolError` if the first event is not `TurnOpened`, or if it comes twice.
        """
        if isinstance(event, TurnOpened):
            return self._open(event)
        if self.opened is None:
            raise ProtocolError(f"the first event of a turn must be TurnOpened, not {type(event).__name__}")
        if isinstance(event, TurnEnded):
            return self._adopt_end(event)
        if self.phase is Phase.ENDED:
            return []
        match event:
            case TextArrived() | ReasoningArrived() | ToolCallNamed() | ToolArgumentsArrived() | ToolCallCut():
                if self.phase is Phase.CALLING:
                    self._content(event)
                return []
            case TextTakenBack():
                if self.phase is Phase.CALLING:
                    self._take_back(event)
                return []
            case ReplyFinished():
                return self._reply_finished(event) if self.phase is Phase.CALLING else []
            case CallBroke():
                return self._call_broke(event) if self.phase is Phase.CALLING else []
            case SpendRefused(spend=spend):
                spent = Exit(ExitCode.SPEND_LIMIT, Facts(spend=spend))
                return self._close_summary(event.at, spent) if self.phase is Phase.CALLING else []
            case WaitEnded():
                return self._call(event.at) if self.phase is Phase.WAITING else []
            case ToolStarted():
                if self.phase is Phase.ACTING:
                    self.round.started(event)
                return []
            case ToolReturned():
                return self._after(self.round.returned(event), event.at) if self.phase is Phase.ACTING else []
            case ApprovalAnswered():
                return self._after(self.round.approval_answered(event), event.at) if self.phase is Phase.ACTING else []
            case Steered():
                self._steers.append(PersonItem(event.input, event.inbox))
                return []
            case Compacted():
                return self._compaction_done(event) if self.phase is Phase.COMPACTING else []
            case TakenOver():
                return self._taken_over(event)
            case StopRequested():
                detail = doing(self.phase, self.naming, self.round.unfinished)
                return self._end(event.at, ExitCode.STOPPED, Facts(detail=detail, forgotten=event.forgotten))
            case Superseded():
                return self._end(event.at, ExitCode.SUPERSEDED)
            case DeadlinePassed():
                return self._end(event.at, ExitCode.TIME_LIMIT, Facts(limit=self.settings.turn_seconds))
            case TurnLeft():
                self.left = True
                return []
            case DrainEnded():
                return self._end(event.at, ExitCode.INTERRUPTED_BY_RESTART)
            case DriverFailed():
                facts = Facts(reference=event.reference, detail=event.why)
                return self._end(event.at, ExitCode.INTERNAL_ERROR, facts)
            case RungClimbed() | RungJudged():
                return []  # records of what this machine decided; the decisions are made again by the fold
            case _:
                assert_never(event)

    @property
    def settings(self) -> TurnSettings:
        if self.opened is None:
            raise ProtocolError("the turn is not open")
        return self.opened.settings

    @property
    def deadline_at(self) -> int:
        """When the turn's own time is up, ms."""
        return (self.opened.at if self.opened else 0) + self.settings.turn_seconds * 1000

    @property
    def route(self) -> Route:
        return self.settings.routes[self.route_index]

    @property
    def steps_done(self) -> int:
        """Model steps that came to a good end."""
        return sum(isinstance(item, AssistantItem) for item in self.items)

    @property
    def thinking(self) -> bool:
        """The model is reasoning, and has not begun to reply."""
        return self.phase is Phase.CALLING and bool(self._draft.reasoning) and not self._draft.said

    @property
    def naming(self) -> str:
        """The tool whose call is arriving right now, or an empty string."""
        names = self._draft.call_names
        return names[-1] if self.phase is Phase.CALLING and names else ""

    @property
    def arriving_chars(self) -> int:
        """How many characters of tool-call arguments have arrived in the current call."""
        return sum(len(piece) for call in self._draft.calls.values() for piece in call.pieces)

    @property
    def handed_calls(self) -> tuple[CallItem, ...]:
        """The calls that were handed to the API client, if the turn ended so."""
        if self.exit is None or self.exit.code is not ExitCode.HANDED_TO_CLIENT:
            return ()
        last = self.items[-1]
        return last.calls if isinstance(last, AssistantItem) else ()

    @property
    def withheld(self) -> frozenset[str]:
        """Own tools that are not offered, because their calls broke off too often."""
        return self.troubles.withheld - {*self.settings.client_tools}

    @property
    def steers(self) -> tuple[PersonItem, ...]:
        """What the person added during the turn and the model has not been told; it must become a turn of its own."""
        return tuple(self._steers)

    # ------------------------------------------------------------------ beginning, calling

    def _open(self, event: TurnOpened) -> list[Effect]:
        if self.opened is not None:
            raise ProtocolError("TurnOpened came twice")
        if not event.settings.routes:
            raise ProtocolError("a turn needs at least one route to a model")
        self.opened = event
        self.round = ToolRound(event.settings, self.items)
        self.troubles = Troubles(event.known)
        start = prevention(event.settings, event.known)
        self.route_index = start.route
        self.items += start.advice
        self.troubles.advised = bool(start.advice)
        self.step = 1
        self._new_segment()
        return self._call(event.at)

    def _new_segment(self) -> None:
        segment = Segment(f"text{sum(isinstance(entry, Segment) for entry in self.timeline)}")
        self.timeline.append(segment)
        self._draft = Draft(segment)

    def _call(self, at: int) -> list[Effect]:
        """Ask the model, in the way that `_ask` says."""
        segment = self._draft.segment
        partial = segment.text if self._ask.continues else ""
        self._draft = Draft(segment, OverlapRemover(partial) if partial else None, partial)
        self.calls_made += 1
        self._enter(Phase.CALLING, at)
        self.life_at = at
        return [
            CallModel(
                number=self.calls_made,
                route=self.route,
                offer_tools=self._closing is None,
                partial=partial,
                advice=self._ask.advice,
                reasoning=self._ask.reasoning,
                detail=self._ask.detail,
            )
        ]

    def _enter(self, phase: Phase, at: int) -> None:
        self.phase = phase
        self.phase_since = at

    # ------------------------------------------------------------------ listening

    def _content(
        self, event: TextArrived | ReasoningArrived | ToolCallNamed | ToolArgumentsArrived | ToolCallCut
    ) -> None:
        self.life_at = event.at
        self._draft.take(event, self._ids)

    def _take_back(self, event: TextTakenBack) -> None:
        """What the call said so far was a thought: it vanishes from the screen."""
        self.life_at = event.at
        draft = self._draft
        self._new_segment()
        draft.take_back(self._draft.segment)
        self._draft = draft

    def _call_over(self, event: ReplyFinished | CallBroke) -> None:
        self.input_tokens += event.input_tokens
        self.output_tokens += event.output_tokens
        self._draft.settle_overlap()

    def _reply_finished(self, event: ReplyFinished) -> list[Effect]:
        self._call_over(event)
        if self._closing is not None:
            return self._close_summary(event.at)
        draft = self._draft
        text = draft.segment.text if self._ask.continues else "".join(draft.text_pieces)
        calls = [call for _, call in sorted(draft.calls.items())]
        kind = judge(
            event.reason,
            "".join(draft.text_pieces),
            "".join(draft.reasoning),
            [call.arguments for call in calls],
            cut_calls=bool(draft.cut),
            doubting=self.settings.doubts_the_finish,
        )
        broke = CallBroke(at=event.at, cause=BreakCause.ENDED_EARLY, detail=event.reason[:40])
        match kind:
            case ReplyKind.TEXT:
                return self._said(text, event.at, self._thoughts(event))
            case ReplyKind.TOOLS:
                return self._succeeded() + self._act(text, calls, event.at, self._thoughts(event))
            case ReplyKind.EMPTY:
                return self._nothing_came(Failure.EMPTY, event.at)
            case ReplyKind.THINKING_ONLY:
                return self._nothing_came(Failure.THINKING_ONLY, event.at)
            case ReplyKind.LENGTH:
                return self._cut_by_length(Failure.LENGTH, event.at)
            case ReplyKind.LENGTH_IN_TOOL_CALL:
                return self._cut_by_length(Failure.LENGTH_IN_TOOL_CALL, event.at)
            case ReplyKind.FILTERED:
                return self._filtered(event.at)
            case ReplyKind.CONTRADICTED:
                return self._fail(Failure.IN_TOOL_CALL, broke)
            case ReplyKind.UNCERTAIN:
                return self._broke_somewhere(broke)
            case ReplyKind.ERROR:
                return self._broke_somewhere(replace(broke, cause=BreakCause.ERROR_IN_STREAM))
            case _:
                assert_never(kind)

    def _call_broke(self, event: CallBroke) -> list[Effect]:
        self._call_over(event)
        if self._closing is not None:
            return self._close_summary(event.at)
        return self._broke_somewhere(event)

    def _broke_somewhere(self, event: CallBroke) -> list[Effect]:
        """A break: what it is depends on how far the reply had come."""
        if event.cause is BreakCause.TOO_LONG:
            code = ExitCode.TOOL_CALL_CUT_BY_LENGTH if self._draft.in_tool_call else ExitCode.CUT_BY_LENGTH
            return self._end(
                event.at, code, Facts(cause=event.cause, limit=REPLY_CHARS), dropped=self._draft.call_names
            )
        if self._draft.in_tool_call:
            return self._fail(Failure.IN_TOOL_CALL, event)
        if self._draft.said:
            return self._fail(Failure.IN_TEXT, event)
        failure = CAUSE_TO_FAILURE[event.cause]
        if failure is Failure.BEFORE_CONTENT and self._ask.continues is not None and not event.status:
            return self._fail(self._ask.continues, event)
        return self._fail(failure, event)

    def _thoughts(self, event: ReplyFinished) -> Mapping[str, Json]:
        """What this reply's model wants back of its thoughts."""
        calls = {index: call.call for index, call in self._draft.calls.items()}
        route = self.route
        return carried_thoughts(route.endpoint, route.model, "".join(self._draft.reasoning), event.thoughts, calls)

    def _said(self, text: str, at: int, thoughts: Mapping[str, Json]) -> list[Effect]:
        """The model finished a reply with text and without a call."""
        self.items.append(AssistantItem(text, thoughts=thoughts))
        promised = announced_action(text) if self.settings.tools or self.settings.client_tools else None
        if promised is not None:
            return self._announced(promised, at)
        effects = self._succeeded()
        if self._steers:
            self._settle_segment(SegmentKind.INTERIM)
            return effects + self._next_step(at)
        adopt_answer(self.timeline, self._draft.segment)
        return effects + self._end(at, ExitCode.ANSWERED)

    def _announced(self, promised: str, at: int) -> list[Effect]:
        """The reply only announces an action. What it says is progress; the model is asked to act."""
        nudged = self.troubles.judging is Failure.PROMISED
        effects = [] if nudged else self._judge_rung(helped=True)
        used = self._climbed[Failure.PROMISED, Rung.NUDGE]
        self._climbed.clear()
        self._climbed[Failure.PROMISED, Rung.NUDGE] = used
        self._promised = promised
        self._settle_segment(SegmentKind.INTERIM)
        return effects + self._fail(Failure.PROMISED, CallBroke(at=at, cause=BreakCause.ENDED_EARLY))

    def _nothing_came(self, failure: Failure, at: int) -> list[Effect]:
        """No text and no call. Beside housekeeping tools only, the interim text had been the answer."""
        answer = housekeeping_answer(self.timeline, self.settings) if not self._promised else None
        if answer is not None and failure is Failure.EMPTY and self.settings.doubts_housekeeping:
            self._promised = announced_action(answer.text) or left_open(answer.text)
        if answer is not None and failure is Failure.EMPTY and not self._promised:
            answer.kind = SegmentKind.ANSWER
            return [*self._succeeded(), *self._end(at, ExitCode.ANSWERED)]
        broke = CallBroke(at=at, cause=BreakCause.ENDED_EARLY)
        if self._ask.continues is not None:
            return self._fail(self._ask.continues, broke)
        return self._fail(Failure.PROMISED if self._promised else failure, broke)

    def _cut_by_length(self, failure: Failure, at: int) -> list[Effect]:
        broke = CallBroke(at=at, cause=BreakCause.ENDED_EARLY)
        if self.settings.client_output_limit:
            code = ExitCode.CUT_BY_LENGTH if failure is Failure.LENGTH else ExitCode.TOOL_CALL_CUT_BY_LENGTH
            return self._end(at, code, Facts(limit_was_asked=True), dropped=self._draft.call_names)
        return self._fail(failure, broke)

    def _filtered(self, at: int) -> list[Effect]:
        if self._draft.segment.visible.strip():
            return self._end(at, ExitCode.REFUSED_MIDWAY, dropped=self._draft.call_names)
        return self._fail(Failure.REQUEST, CallBroke(at=at, cause=BreakCause.REFUSED))

    # ------------------------------------------------------------------ recovering

    def _succeeded(self) -> list[Effect]:
        """A reply came to a good end: the step's counts are cleared, and the last remedy has helped."""
        effects = self._judge_rung(helped=True)
        self._climbed.clear()
        self._promised = ""
        self.attempts = self.restarts = 0
        self.last_break = None
        self.failing = None
        self._failed_seconds = 0.0
        self.troubles.step_over()
        self._ask = Ask()
        return effects

    def _judge_rung(self, *, helped: bool) -> list[Effect]:
        judged = self.troubles.judge(helped=helped)
        if judged is None:
            return []
        return [Record(RungJudged(at=self.life_at, failure=judged[0], rung=judged[1], helped=helped))]

    def _fail(self, failure: Failure, broke: CallBroke) -> list[Effect]:
        """A failure climbs its ladder; if no rung is left, the turn ends."""
        effects = self._judge_rung(helped=False)
        self.attempts += 1
        self.attempts_in_all += 1
        self.last_break = broke
        self.failing = failure
        self._failed_seconds += broke.waited_seconds
        if broke.cause in SET_ASIDE_SECONDS and self.route.credential:
            seconds = max(SET_ASIDE_SECONDS[broke.cause], broke.retry_after_seconds)
            effects.append(SetAside(self.route.credential, seconds, broke.cause.value))
        trouble = self._trouble(failure, broke)
        self.troubles.note(trouble)
        settings = self.settings
        if failure is Failure.IN_TOOL_CALL:
            rounds = self.troubles.broke_off(self._draft.call_names)
            if rounds >= settings.ladder.same_stall_rounds:
                return effects + self._end_failed(failure, broke, again=True)
        ladder = next_rung(
            failure,
            self._climbed,
            settings.ladder,
            settings.routes,
            self.route_index,
            skip=self.troubles.useless(
                failure, trouble.tool, long_pause=broke.retry_after_seconds > settings.retry_after_max_seconds
            ),
            first=self.troubles.known.remedy(trouble.code, trouble.endpoint, trouble.model, trouble.tool),
        )
        if ladder is None:
            return effects + self._end_failed(failure, broke)
        number = self._climbed[failure, ladder.rung] = self._climbed[failure, ladder.rung] + 1
        self.troubles.chose(failure, ladder.rung)
        self.rungs.append((failure, ladder.rung))
        climbed = RungClimbed(at=broke.at, failure=failure, rung=ladder.rung, number=number, cause=broke.cause)
        return [*effects, Record(climbed), *self._climb(ladder, failure, broke, number)]

    def _trouble(self, failure: Failure, broke: CallBroke) -> Trouble:
        code = exit_for(failure, broke.cause, tools_ran=bool(self.round.tools_run))
        tool = "".join(self._draft.call_names[:1])
        return Trouble(code, broke.cause, self.route.endpoint, self.route.model, tool, self.arriving_chars)

    def _climb(self, ladder: LadderStep, failure: Failure, broke: CallBroke, number: int) -> list[Effect]:
        """Do what a rung says."""
        match ladder.rung:
            case Rung.RETRY:
                pass
            case Rung.NEXT_ROUTE:
                following = next_route(self.settings.routes, self.route_index, ladder.helps)
                self.route_index = self.route_index if following is None else following
            case Rung.CONTINUE:
                repeated = broke.cause is BreakCause.REPEATING
                self._ask = Ask(Advice.REPEATED if repeated else Advice.CONTINUE, continues=failure)
            case Rung.ADVISE_SMALLER:
                names = self._draft.call_names
                self.items.append(AdviceItem(Advice.SMALLER_PIECES, names[0] if names else ""))
            case Rung.NUDGE:
                promised = failure is Failure.PROMISED
                self._ask = Ask(Advice.ACT_NOW if promised else Advice.RETURNED_NOTHING, detail=self._promised)
            case Rung.CONTINUE_THINKING:
                self._ask = Ask(Advice.THOUGHT_ONLY, reasoning="".join(self._draft.reasoning))
            case Rung.COMPACT:
                self._enter(Phase.COMPACTING, broke.at)
                return [Compact()]
            case _:
                assert_never(ladder.rung)
        if failure in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL) and not self._ask.continues:
            self._keep_preamble()
        return self._pause(number, broke) if ladder.pause else self._call(broke.at)

    def _keep_preamble(self) -> None:
        """The call is repeated: what it had said stays on screen, and is not shown a second time."""
        segment = self._draft.segment
        kept = (segment.visible or segment.repeats).strip()
        if segment.visible:
            self._settle_segment(SegmentKind.INTERIM)
        else:
            segment.pieces.clear()
        self._draft = Draft(self._draft.segment)
        self._draft.segment.repeats = kept

    def _pause(self, number: int, broke: CallBroke) -> list[Effect]:
        settings = self.settings
        seed = (self.opened.seed if self.opened else 0) + self.calls_made
        pause = backoff_seconds(number, seed, settings.retry_min_seconds, settings.retry_max_seconds)
        pause = max(pause, broke.retry_after_seconds)
        self._enter(Phase.WAITING, broke.at)
        self.wait_until = broke.at + round(pause * 1000)
        return [Wait(pause)]

    def _compaction_done(self, event: Compacted) -> list[Effect]:
        self.compacted = event  # also if little could be left out: the provider has the last word on what fits
        return self._call(event.at)

    def _end_failed(self, failure: Failure, broke: CallBroke, *, again: bool = False) -> list[Effect]:
        """No rung is left: the exit that the failure leads to, with the facts for its notice."""
        names = self._draft.call_names
        names = names or (("",) if failure in (Failure.IN_TOOL_CALL, Failure.LENGTH_IN_TOOL_CALL) else ())
        last = "".join(self.round.tools_run[-1:])
        facts = failed_facts(broke, names, last, self.attempts, self._failed_seconds, self._promised)
        if not again:
            code = exit_for(failure, broke.cause, tools_ran=bool(self.round.tools_run))
            return self._end(broke.at, code, facts, dropped=names)
        facts = again_facts(facts, names, self.troubles, self.rungs)
        return self._end(broke.at, ExitCode.SAME_STALL_AGAIN, facts, dropped=names)

    # ------------------------------------------------------------------ acting

    def _settle_segment(self, kind: SegmentKind) -> None:
        """The current segment is complete; what comes next is a new one."""
        segment = self._draft.segment
        if segment.text.strip():
            segment.kind, segment.final = kind, True
            self._new_segment()
        else:
            segment.pieces.clear()
            self._draft = Draft(segment)

    def _act(self, text: str, calls: list[DraftCall], at: int, thoughts: Mapping[str, Json]) -> list[Effect]:
        """The model asked for tools."""
        self.items.append(AssistantItem(text, tuple(CallItem(c.call, c.name, c.arguments) for c in calls), thoughts))
        self.troubles.came_whole((c.name, len(c.arguments)) for c in calls)
        self._settle_segment(SegmentKind.INTERIM)
        if calls and all(call.name in self.settings.client_tools for call in calls):
            return self._end(at, ExitCode.HANDED_TO_CLIENT)
        activities = [Activity(c.call, c.call, c.name, c.arguments, since=at) for c in self.round.taken(calls)]
        # The screen shows activities before the (still empty) segment of the next reply.
        self.timeline = [e for e in self.timeline if e is not self._draft.segment]
        self.timeline += [*activities, self._draft.segment]
        self._enter(Phase.ACTING, at)
        return self._after(self.round.begin(activities, at), at)

    def _after(self, outcome: Outcome, at: int) -> list[Effect]:
        """What a tool round's outcome leads to."""
        match outcome:
            case Waiting():
                return list(outcome.effects)
            case RoundOver():
                self._closing = self._closing or self.round.stopping
                return self._next_step(at)
            case MustEnd():
                return self._end(at, outcome.exit.code, outcome.exit.facts)
            case _:
                assert_never(outcome)

    def _next_step(self, at: int) -> list[Effect]:
        """All tools are back: the model's turn again, unless a limit says otherwise."""
        settings = self.settings
        self.items += self._steers
        self._steers = []
        if self._closing is not None:
            self._ask = Ask(Advice.SUM_UP_LOOP)
            return self._call(at)
        self.step += 1
        if self.step > settings.max_steps:
            self._closing = Exit(ExitCode.STEP_LIMIT, Facts(limit=settings.max_steps))
            self._ask = Ask(Advice.SUM_UP_LIMIT)
        return self._call(at)

    def _close_summary(self, at: int, otherwise: Exit | None = None) -> list[Effect]:
        """The last step is over, or could not be paid for; what it said stays on screen, and the turn ends as it had to."""
        closing = self._closing or otherwise
        assert closing is not None
        text = "".join(self._draft.text_pieces)
        if text.strip():
            self.items.append(AssistantItem(text))
            self._settle_segment(SegmentKind.INTERIM)
        return self._end(at, closing.code, closing.facts)

    # ------------------------------------------------------------------ ending, and coming back

    def _taken_over(self, event: TakenOver) -> list[Effect]:
        """Another process begins where the old one stopped: what is safe goes on, and what nobody knows is said to be so."""
        goes_on, left = self.settings.goes_on, self.left
        self.left = False
        self.restarts += not left  # an orderly stop is none
        if event.at >= self.deadline_at or (goes_on and self.restarts > self.settings.restarts_a_step):
            return self._end(event.at, ExitCode.INTERRUPTED_BY_RESTART)
        match self.phase:
            case Phase.CALLING if left and not self._draft.said and not self._draft.in_tool_call:
                return self._call(event.at)  # a call that the gateway itself broke off in order is no failure
            case Phase.CALLING:
                broke = CallBroke(at=event.at, cause=BreakCause.RESTARTED)
                return self._ask_again(event.at) if goes_on else self._call_broke(broke)
            case Phase.WAITING:
                return self._call(event.at)
            case Phase.COMPACTING:
                return [Compact()]
            case Phase.ACTING:
                if self.round.unrepeatable and not goes_on:
                    return self._end(event.at, ExitCode.INTERRUPTED_BY_RESTART)
                return self._after(self.round.resume(event.at), event.at)
            case Phase.NEW | Phase.ENDED:
                return []

    def _ask_again(self, at: int) -> list[Effect]:
        """The process died while the model was being asked. That is no failure of the model: no ladder is climbed for it."""
        self._draft.settle_overlap()
        if self._closing is not None:
            return self._close_summary(at)
        if self._draft.in_tool_call:
            if self._ask.continues is None:
                self._keep_preamble()
        elif self._draft.said and self._ask.continues is None:
            self._ask = Ask(Advice.CONTINUE, continues=Failure.IN_TEXT)
        return self._call(at)

    def _end(
        self, at: int, code: ExitCode, facts: Facts | None = None, *, dropped: tuple[str, ...] = ()
    ) -> list[Effect]:
        """End the turn: the only place that decides it. Adds to the facts what had run, what had not, what may have."""
        lost, unsure = self.round.close() if self.phase is Phase.ACTING else ((), ())
        arriving = self._draft.call_names if self.phase is Phase.CALLING else ()
        self._draft.settle_overlap()
        segment = self._draft.segment
        cut = self._closing is None and segment.kind is SegmentKind.PARTIAL and bool(segment.visible)
        progress = code is ExitCode.EMPTY_AFTER_TOOLS and any(
            isinstance(e, Segment) and e.visible for e in self.timeline
        )
        segment.final = True
        if exit_class(code) not in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED):
            tool = facts.tool if facts else ""
            self.troubles.ended_by(Trouble(code, None, self.route.endpoint, self.route.model, tool))
        self.exit = Exit(
            code,
            end_facts(
                facts or Facts(),
                model=self.route.model,
                steps=self.steps_done,
                tools=self.round,
                dropped=dropped or (*arriving, *lost),
                unsure=unsure,
                text_shown=cut or progress,
            ),
        )
        self._enter(Phase.ENDED, at)
        return [EndTurn(self.exit)]

    def _adopt_end(self, event: TurnEnded) -> list[Effect]:
        """The journal says that the turn ended here. Only an older version's decisions can differ from ours; they stand."""
        self.exit = event.exit
        if event.exit.code is ExitCode.ANSWERED:
            answered_after_all(self.timeline)
        self._enter(Phase.ENDED, event.at)
        return []
