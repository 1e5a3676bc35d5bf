"""Journals from before what was judged stood in them (rules 1 to 6), read as if it did. Pure.

Theory. Such a journal holds what happened, the remedies, whether they helped, and the end. What a reply amounted to shows in what followed: tools
that were begun, a remedy, the next call, the end. So `judged` walks through the events with a machine, and puts a judgement in for each
question that the machine leaves open, by what comes behind it. No rule of today is asked about what was decided then. What nothing
followed is left open, as in any journal: whoever goes on with the turn decides it.

What cannot be known any more: a loop's warning in a tool's result is not told again; what was said twice where a call went on from a text is
told by today's `overlap`. How a turn began is decided by a copy of the rule of then (`_beginning`).

Rows of remedies stood behind all facts of their batch; here they come behind their own. An answer of a person that came too late was
journalled then; it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from agent_core.causes import BreakCause
from agent_core.failures.exits import Cut, Exit, ExitCode, Looped, StepLimit, Troubled, ending
from agent_core.failures.remedies import Advice, AdviceItem, Failure, Remedy
from agent_core.machine.turn import Turn
from agent_core.records import dataclass
from agent_core.rules.overlap import OverlapRemover
from agent_core.tools.base import EffectClass
from agent_core.turn import events as ev
from agent_core.turn import questions as ask
from agent_core.turn.state import Phase, Segment, SegmentKind

_BETWEEN = ev.Steered | ev.RemedyJudged | ev.TurnLeft | ev.TakenOver
"""What may stand between a fact and what tells how it was judged."""
_ENDING = ev.StopRequested | ev.Superseded | ev.DeadlinePassed | ev.DrainEnded | ev.DriverFailed
_WRITTEN = (
    ev.TurnBegun
    | ev.OverlapFound
    | ev.ReplyJudged
    | ev.FailureJudged
    | ev.LoopFound
    | ev.ApprovalAsked
    | ev.CallSettled
    | ev.SummaryAsked
    | ev.TurnResumed
)
_LATE = ev.ApprovalAnswered | ev.WaitEnded
"""What was journalled also when it came too late."""
_LOOPS = (ExitCode.REPEATING_FAILING_CALL, ExitCode.FAILING_TOOL, ExitCode.NO_PROGRESS, ExitCode.GOING_IN_CIRCLES)
_PAUSED = ((Failure.BEFORE_CONTENT, Remedy.RETRY), (Failure.EMPTY, Remedy.RETRY), (Failure.EMPTY, Remedy.NUDGE))
_FAILURES: Mapping[ExitCode, Failure] = {
    ExitCode.BROKEN_IN_TEXT: Failure.IN_TEXT,
    ExitCode.BROKEN_IN_TOOL_CALL: Failure.IN_TOOL_CALL,
    ExitCode.SAME_STALL_AGAIN: Failure.IN_TOOL_CALL,
    ExitCode.EMPTY_REPLY: Failure.EMPTY,
    ExitCode.EMPTY_AFTER_TOOLS: Failure.EMPTY,
    ExitCode.THINKING_ONLY: Failure.THINKING_ONLY,
    ExitCode.PROMISED_WITHOUT_ACTING: Failure.PROMISED,
    ExitCode.CUT_BY_LENGTH: Failure.LENGTH,
    ExitCode.TOOL_CALL_CUT_BY_LENGTH: Failure.LENGTH_IN_TOOL_CALL,
    ExitCode.CONTEXT_OVERFLOW: Failure.OVERFLOW,
    ExitCode.REQUEST_TOO_LARGE: Failure.TOO_LARGE,
    ExitCode.NOT_AUTHORISED: Failure.CREDENTIAL,
    ExitCode.PAYMENT_REQUIRED: Failure.CREDENTIAL,
    ExitCode.MODEL_NOT_FOUND: Failure.REQUEST,
    ExitCode.BAD_REQUEST: Failure.REQUEST,
    ExitCode.REFUSED: Failure.REQUEST,
}
"""By the exit that a failure led to; any other led there before content."""
_WHATEVER_CAUSE: Mapping[Failure, ExitCode] = {
    Failure.IN_TEXT: ExitCode.BROKEN_IN_TEXT,
    Failure.IN_TOOL_CALL: ExitCode.BROKEN_IN_TOOL_CALL,
    Failure.EMPTY: ExitCode.EMPTY_REPLY,
    Failure.THINKING_ONLY: ExitCode.THINKING_ONLY,
    Failure.PROMISED: ExitCode.PROMISED_WITHOUT_ACTING,
    Failure.LENGTH: ExitCode.CUT_BY_LENGTH,
    Failure.LENGTH_IN_TOOL_CALL: ExitCode.TOOL_CALL_CUT_BY_LENGTH,
}
_REQUESTS = (
    BreakCause.BAD_CERTIFICATE,
    BreakCause.NOT_TLS,
    BreakCause.WANTS_TLS,
    BreakCause.REGION,
    BreakCause.NO_ROUTE,
)
_DENIED = (
    "Not run: the person did not approve this call. Do not ask for it again; go on without it or say what is needed."
)
_NOBODY = "Not run: it needs a person's approval, and nobody can give it here. Do not ask for it again; go on without it or say what is needed."
_NOT_SHOWN = "Not run: something of it that decides cannot be shown whole to the person who has to agree."
_NOT_RUN = "Not run: the turn is being stopped."
PROMISED_CHARS = 400


def judged(events: Sequence[ev.Event]) -> list[ev.Event]:
    """The events of a journal, with the judgements that it does not hold. Raises `agent_core.failures.errors.ProtocolError`."""
    return _WalkThrough(events).all()


@dataclass(slots=True)
class _WalkThrough:
    events: Sequence[ev.Event]
    turn: Turn = field(default_factory=Turn)
    out: list[ev.Event] = field(default_factory=list[ev.Event])
    used: set[int] = field(default_factory=set[int])
    """Events that were put further in front."""
    last_tool: int = -1
    """Where the last event about a tool stands."""
    ended: ev.TurnEnded | None = None

    def all(self) -> list[ev.Event]:
        for at, event in enumerate(self.events):
            if isinstance(event, ev.ToolStarted | ev.ToolReturned):
                self.last_tool = at
            if isinstance(event, ev.TurnEnded):
                self.ended = event
        for at, event in enumerate(self.events):
            if at in self.used:
                continue
            self._settle(at)
            if at in self.used:
                continue
            if not (isinstance(event, _LATE | ev.RemedyJudged) and self.turn.misfit(event)):
                self._put(self._end(event) if isinstance(event, ev.TurnEnded) else event)
        return self.out

    def _put(self, event: ev.Event) -> None:
        self.turn.apply(event)
        self.out.append(event)

    def _settle(self, at: int) -> None:
        """Answer what is open before the event `at`, as far as what follows tells."""
        while self.turn.questions:
            question = self.turn.questions[0]
            found = self._answer(question, at)
            if found is None:
                return
            for event in found:
                self._put(event)
            if not found:
                self.turn.silence()

    def _following(self, at: int) -> Iterator[tuple[int, ev.Event]]:
        for where in range(at, len(self.events)):
            if where not in self.used:
                yield where, self.events[where]

    def _telling(self, at: int) -> tuple[int, ev.Event | None]:
        """The first event from `at` on that tells what was judged: beyond people's words, and, for a remedy, beyond an end."""
        first: tuple[int, ev.Event] | None = None
        for where, event in self._following(at):
            if isinstance(event, _BETWEEN):
                continue
            if isinstance(event, _ENDING):
                first = first or (where, event)
                continue
            return (where, event) if first is None or isinstance(event, ev.RemedyChosen) else first
        return first or (len(self.events), None)

    def _helped(self, at: int, until: int) -> list[ev.Event]:
        """Whether the remedy before had helped, as it is recorded before `until`; from here on it stands in front."""
        found: list[ev.Event] = []
        for where, event in self._following(at):
            if where >= until or isinstance(event, ev.TakenOver):
                break
            if isinstance(event, ev.RemedyJudged) and not found and not self.turn.misfit(event):
                self.used.add(where)
                found.append(event)
        return found

    # ------------------------------------------------------------------ what was judged

    def _answer(self, question: ask.Question, at: int) -> list[ev.Event] | None:
        """The judgements; empty: the ordinary; None: nothing followed, or what follows answers itself."""
        _, telling = self._telling(at)
        if isinstance(telling, _WRITTEN) and ask.answers(telling, question):
            return None  # a later version went on with the turn
        match question:
            case ask.Beginning():
                return _beginning(self.turn)
            case ask.Overlap():
                return _overlap(self.turn, question.at)
            case ask.CallOver():
                return self._call_over(question, at)
            case ask.Promised():
                return [self._failure(question.at, Failure.PROMISED, BreakCause.ENDED_EARLY)]
            case ask.RemedyWanted():
                return self._remedy(question, at)
            case ask.Result():
                return self._result(question, at)
            case ask.CallRefused():
                return self._refused(question, at)
            case ask.PendingCalls():
                return self._calls(question, at)
            case ask.NextStep():
                return self._next_step(question, at)
            case ask.Restart():
                return self._restart(question, at)
            case ask.End():
                return None

    def _call_over(self, question: ask.CallOver, at: int) -> list[ev.Event] | None:
        until, telling = self._telling(at)
        turn, when = self.turn, question.at
        helped = self._helped(at, until)
        if turn.closing is not None:
            return [*helped, ev.ReplyJudged(at=when, reply=ev.Reply.SUMMARY)] if turn.draft.said else helped or None
        match telling:
            case None:
                return None
            case ev.RemedyChosen():
                return [*helped, *self._fell(question, telling.failure, telling.cause)]
            case ev.TurnEnded():
                return self._ended_by(question, telling, helped)
            case _ if isinstance(telling, _ENDING):
                if turn.draft.calls and not turn.draft.cut and isinstance(question.event, ev.ReplyFinished):
                    return [*helped, self._tools(when)]
                if turn.steers and turn.draft.said and isinstance(question.event, ev.ReplyFinished):
                    return [*helped, ev.ReplyJudged(at=when, reply=ev.Reply.SAID)]
                return helped or None
            case _ if turn.draft.calls:
                return [*helped, self._tools(when)]
            case _:
                return [*helped, ev.ReplyJudged(at=when, reply=ev.Reply.SAID)]

    def _fell(
        self, question: ask.CallOver, failure: Failure, cause: BreakCause | None, announced: str = ""
    ) -> list[ev.Event]:
        event, draft = question.event, self.turn.draft
        if isinstance(event, ev.CallBroke):
            return [self._failure(event.at, failure, event.cause)]
        if failure is Failure.PROMISED and draft.said and not draft.in_tool_call:
            words = announced or self.turn.reply_text.strip().rpartition("\n")[2][-PROMISED_CHARS:]
            return [ev.ReplyJudged(at=event.at, reply=ev.Reply.PROMISED, promised=words)]
        if failure is Failure.PROMISED and not self.turn.promised:
            shown = [entry for entry in self.turn.timeline if isinstance(entry, Segment) and entry.visible]
            words = (
                announced or "".join(entry.text for entry in shown[-1:]).strip().rpartition("\n")[2][-PROMISED_CHARS:]
            )
            return [ev.ReplyJudged(at=event.at, reply=ev.Reply.PROMISED, promised=words)]
        named = failure is Failure.IN_TOOL_CALL or cause is BreakCause.ERROR_IN_STREAM
        detail = event.reason[:40] if isinstance(event, ev.ReplyFinished) and named else ""
        return [replace(self._failure(event.at, failure, cause or BreakCause.ENDED_EARLY), detail=detail)]

    def _failure(self, at: int, failure: Failure, cause: BreakCause) -> ev.FailureJudged:
        code = _BY_CAUSE.get(cause, ExitCode.BROKEN_BEFORE_TEXT)
        if failure in _WHATEVER_CAUSE and cause is not BreakCause.RESTARTED:
            code = _WHATEVER_CAUSE[failure]
        if code is ExitCode.EMPTY_REPLY and self.turn.round.tools_run:
            code = ExitCode.EMPTY_AFTER_TOOLS
        return ev.FailureJudged(at=at, failure=failure, cause=cause, code=code)

    def _ended_by(self, question: ask.CallOver, ended: ev.TurnEnded, helped: list[ev.Event]) -> list[ev.Event] | None:
        code = ended.exit.code
        cause = ended.exit.cause if isinstance(ended.exit, Troubled) else None
        event = question.event
        direct = (ExitCode.ANSWERED, ExitCode.REFUSED_MIDWAY, ExitCode.SPEND_LIMIT, ExitCode.INTERNAL_ERROR)
        if code is ExitCode.HANDED_TO_CLIENT:
            return [*helped, ev.ReplyJudged(at=event.at, reply=ev.Reply.HANDED)]
        if (
            code in direct
            or (isinstance(ended.exit, Cut) and ended.exit.limit_was_asked)
            or cause is BreakCause.TOO_LONG
            or isinstance(event, ev.SpendRefused)
        ):
            return helped or None
        if self.turn.draft.calls and code in (ExitCode.APPROVAL_DENIED, *_LOOPS, ExitCode.STEP_LIMIT):
            return [*helped, self._tools(event.at)]
        failure = _FAILURES.get(code, Failure.BEFORE_CONTENT)
        if code not in _WHATEVER_CAUSE.values() and cause in _REQUESTS:
            failure = Failure.REQUEST
        return [*helped, *self._fell(question, failure, cause, ended.exit.facts().get("announced", ""))]

    def _tools(self, at: int) -> ev.ReplyJudged:
        limit, calls = self.turn.settings.calls_a_reply, self.turn.reply_calls
        if limit is None or len(calls) <= limit:
            return ev.ReplyJudged(at=at)
        words = f"Not run: a reply may ask for at most {limit} calls at once. Ask for it again in a later reply if it is still needed."
        return ev.ReplyJudged(at=at, taken=limit, words=words)

    def _remedy(self, question: ask.RemedyWanted, at: int) -> list[ev.Event] | None:
        until, telling = self._telling(at)
        if not isinstance(telling, ev.RemedyChosen):
            return None
        if self.turn.misfit(telling):
            telling = replace(telling, failure=question.failure)
        self.used.add(until)
        return [*self._helped(at, until), self._filled(telling, until)]

    def _filled(self, chosen: ev.RemedyChosen, at: int) -> ev.RemedyChosen:
        """A remedy with what followed from it; one that says so itself as it is."""
        if chosen.advice is not None or chosen.pause_ms or chosen.route >= 0:
            return chosen
        turn, failure = self.turn, chosen.failure
        route, advice, detail = -1, None, ""
        match chosen.remedy:
            case Remedy.NEXT_ROUTE:
                route = _next_route(turn, failure)
            case Remedy.CONTINUE:
                advice = Advice.REPEATED if chosen.cause is BreakCause.REPEATING else Advice.CONTINUE
            case Remedy.ADVISE_SMALLER:
                advice, detail = Advice.SMALLER_PIECES, "".join(turn.draft.call_names[:1])
            case Remedy.NUDGE:
                promised = failure is Failure.PROMISED
                advice, detail = Advice.ACT_NOW if promised else Advice.RETURNED_NOTHING, turn.promised
            case Remedy.CONTINUE_THINKING:
                advice = Advice.THOUGHT_ONLY
            case _:
                pass  # it is told nothing, or did not exist then
        pause = self._pause(chosen, at + 1) if chosen.remedy is not Remedy.COMPACT else 0
        return replace(chosen, route=route, advice=advice, detail=detail, pause_ms=pause)

    def _pause(self, chosen: ev.RemedyChosen, at: int) -> int:
        for _, event in self._following(at):
            if isinstance(event, ev.Steered | ev.RemedyJudged):
                continue
            if isinstance(event, ev.WaitEnded):
                return max(1, event.at - chosen.at)
            if not isinstance(event, _ENDING | ev.TurnLeft | ev.TakenOver | ev.TurnEnded):
                return 0
            break
        return 1_000 if (chosen.failure, chosen.remedy) in _PAUSED else 0

    # ------------------------------------------------------------------ tools

    def _result(self, question: ask.Result, at: int) -> list[ev.Event] | None:
        _until, telling = self._telling(at)
        if isinstance(telling, ev.TurnEnded) and not self.turn.round.over:
            return None
        ended = self.ended.exit if self.ended is not None else None
        looped = _looped(ended)
        if telling is None or (isinstance(telling, ev.TurnEnded) and ended is not None and looped is None):
            return None
        if looped is None or self.last_tool >= at or self.turn.round.stopping is not None:
            return []
        call = question.call
        return [
            ev.LoopFound(at=question.at, call=call, code=looped.code, tool=looped.tool, count=looped.count, stop=True)
        ]

    def _refused(self, question: ask.CallRefused, at: int) -> list[ev.Event] | None:
        _, telling = self._telling(at)
        if telling is None or isinstance(telling, ev.TurnEnded) or question.verdict is ev.Verdict.EXPIRED:
            return None
        return [ev.CallSettled(at=question.at, call=question.call, words=_DENIED, denied=True)]

    def _calls(self, question: ask.PendingCalls, at: int) -> list[ev.Event] | None:
        turn = self.turn
        first, when = turn.round.unfinished[0], question.at
        if first.started and turn.round.effect_class(first.name) is EffectClass.EFFECT:
            return [ev.CallSettled(at=when, call=first.call, words=_unknown(first.name), unsure=True)]
        _, telling = self._telling(at)
        match telling:
            case None:
                return None
            case ev.ApprovalAnswered(call=call) if call == first.call:
                return [ev.ApprovalAsked(at=when, call=call, seconds=turn.settings.approval_seconds)]
            case ev.ToolStarted(call=call) | ev.ToolReturned(call=call) | ev.ApprovalAnswered(call=call) if (
                turn.round.activity(call) is not None
            ):
                if call == first.call or self._begun_next(first.call, at):
                    return []
            case _ if isinstance(telling, _ENDING | ev.TurnEnded):
                return []
            case _:
                pass
        tool = turn.settings.tool(first.name)
        if tool is None or not tool.needs_approval or turn.round.stopping is not None:
            return [ev.CallSettled(at=when, call=first.call, words=_NOT_RUN)]
        if turn.settings.can_approve:
            return [ev.CallSettled(at=when, call=first.call, words=_NOT_SHOWN)]
        return [ev.CallSettled(at=when, call=first.call, words=_NOBODY, denied=True)]

    def _begun_next(self, call: str, at: int) -> bool:
        """Whether this call, too, was begun or answered by what follows."""
        return any(
            isinstance(event, ev.ToolStarted | ev.ToolReturned | ev.ApprovalAnswered) and event.call == call
            for _, event in self._following(at)
        )

    def _next_step(self, question: ask.NextStep, at: int) -> list[ev.Event] | None:
        _, telling = self._telling(at)
        if telling is None:
            return None
        looped = _looped(self.ended.exit) if self.ended is not None else None
        if looped is not None and self.last_tool < at:
            last = ending(looped.code, Looped)(tool=looped.tool, count=looped.count)
            return [ev.SummaryAsked(at=question.at, exit=last, advice=Advice.SUM_UP_LOOP)]
        most = self.turn.settings.max_steps
        if self.turn.step >= most and self.last_tool < at:
            last = StepLimit(limit=most)
            return [ev.SummaryAsked(at=question.at, exit=last, advice=Advice.SUM_UP_LIMIT)]
        return []

    # ------------------------------------------------------------------ restarts and the end

    def _restart(self, question: ask.Restart, at: int) -> list[ev.Event] | None:
        following = next(
            (event for _, event in self._following(at) if not isinstance(event, ev.Steered | ev.RemedyJudged)), None
        )
        turn, when, draft = self.turn, question.at, self.turn.draft
        match following:
            case None:
                return None
            case ev.TurnEnded() if turn.closing is None or not draft.said:
                return None
            case ev.RemedyChosen(failure=failure, cause=cause) if not turn.settings.goes_on:
                return [
                    *self._helped(at, len(self.events)),
                    self._failure(when, failure, cause or BreakCause.RESTARTED),
                ]
            case _:
                pass
        match turn.phase:
            case Phase.CALLING if question.left and not draft.said and not draft.in_tool_call:
                how = ev.Resume.CALL
            case Phase.CALLING if turn.closing is not None:
                return [ev.ReplyJudged(at=when, reply=ev.Reply.SUMMARY)] if draft.said else None
            case Phase.CALLING if turn.ask.continues is None and draft.in_tool_call:
                how = ev.Resume.ANEW
            case Phase.CALLING if turn.ask.continues is None and draft.said:
                how = ev.Resume.GO_ON
            case Phase.COMPACTING:
                how = ev.Resume.COMPACT
            case Phase.ACTING:
                how = ev.Resume.ACT
            case _:
                how = ev.Resume.CALL
        return [ev.TurnResumed(at=when, how=how)]

    def _end(self, event: ev.TurnEnded) -> ev.TurnEnded:
        """The end, with the piece of text that people saw as the answer."""
        segment = self.turn.draft.segment
        if event.exit.code is not ExitCode.ANSWERED or event.answer:
            return event
        if self.turn.draft.said and segment.visible:
            return event
        shown = [entry for entry in self.turn.timeline if isinstance(entry, Segment) and entry.visible]
        if not self.turn.draft.said:  # nothing came, and what was said beside tools had been the answer
            shown = [entry for entry in shown if entry.kind is SegmentKind.INTERIM] or shown
            return replace(event, answer=shown[-1].key) if shown else event
        again = [entry for entry in shown if entry.visible.strip().startswith(segment.text.strip())]
        return replace(event, answer=(again or shown)[-1].key) if shown else event


def _looped(ended: Exit | None) -> Looped | None:
    """An end by what a tool's results showed."""
    return ended if isinstance(ended, Looped) and ended.code in _LOOPS else None


_BY_CAUSE: Mapping[BreakCause, ExitCode] = {
    BreakCause.GARBAGE: ExitCode.PROVIDER_GARBAGE,
    BreakCause.UNREACHABLE: ExitCode.PROVIDER_DOWN,
    BreakCause.RATE_LIMITED: ExitCode.RATE_LIMITED,
    BreakCause.SERVER_ERROR: ExitCode.PROVIDER_DOWN,
    BreakCause.RESTARTED: ExitCode.INTERRUPTED_BY_RESTART,
    BreakCause.UNAUTHORISED: ExitCode.NOT_AUTHORISED,
    BreakCause.FORBIDDEN: ExitCode.NOT_AUTHORISED,
    BreakCause.PAYMENT_REQUIRED: ExitCode.PAYMENT_REQUIRED,
    BreakCause.NOT_FOUND: ExitCode.MODEL_NOT_FOUND,
    BreakCause.BAD_REQUEST: ExitCode.BAD_REQUEST,
    BreakCause.REFUSED: ExitCode.REFUSED,
    BreakCause.CONTEXT_OVERFLOW: ExitCode.CONTEXT_OVERFLOW,
    BreakCause.TOO_LARGE: ExitCode.REQUEST_TOO_LARGE,
    BreakCause.CONNECTION_REFUSED: ExitCode.PROVIDER_DOWN,
    BreakCause.UNKNOWN_NAME: ExitCode.PROVIDER_DOWN,
    BreakCause.NOT_CONNECTED: ExitCode.PROVIDER_DOWN,
    BreakCause.BY_PROXY: ExitCode.PROVIDER_DOWN,
    BreakCause.BAD_CERTIFICATE: ExitCode.PROVIDER_DOWN,
    BreakCause.NOT_TLS: ExitCode.PROVIDER_DOWN,
    BreakCause.WANTS_TLS: ExitCode.PROVIDER_DOWN,
    BreakCause.REGION: ExitCode.NOT_AUTHORISED,
    BreakCause.NO_ROUTE: ExitCode.MODEL_NOT_FOUND,
}


def _overlap(turn: Turn, at: int) -> list[ev.Event]:
    own = turn.draft.own_text
    remover = OverlapRemover(turn.draft.partial)
    shown = remover.feed(own) + remover.finish()
    return [ev.OverlapFound(at=at, dropped=len(own), text=shown)] if shown != own else []


def _next_route(turn: Turn, failure: Failure) -> int:
    """The rule of then."""
    routes, here = turn.settings.routes, turn.route
    for index in range(turn.route_index + 1, len(routes)):
        there = routes[index]
        if failure is Failure.CREDENTIAL and there.credential == here.credential:
            continue
        if failure is Failure.REQUEST and (there.endpoint, there.model) == (here.endpoint, here.model):
            continue
        return index
    return turn.route_index


def _beginning(turn: Turn) -> list[ev.Event]:
    """The rule of then: advice about calls that had broken off, the next model from the second such turn on, tools that are withheld."""
    opened = turn.opened
    assert opened is not None
    settings, known = opened.settings, opened.known
    if not (known.stalls or known.incidents):
        return []
    offered = {*settings.client_tools, *(tool.name for tool in settings.tools)}
    stalls = [stall for stall in known.stalls if stall.tool in offered]
    first = settings.routes[0]
    calls = (ExitCode.BROKEN_IN_TOOL_CALL, ExitCode.TOOL_CALL_CUT_BY_LENGTH)
    incidents = [
        one
        for one in known.incidents
        if one.code in calls and (one.endpoint, one.model) == (first.endpoint, first.model) and one.tool in offered
    ]
    withheld = tuple(sorted(s.tool for s in stalls if s.withheld and s.tool not in settings.client_tools))
    advised = sorted({*(s.tool for s in stalls), *(one.tool for one in incidents)} - {*withheld})
    advice = [AdviceItem(Advice.SMALLER_FROM_START, " and ".join(advised))] if advised else []
    advice += [AdviceItem(Advice.WITHHELD, tool) for tool in withheld]
    passed = any(s.ended >= 2 for s in stalls) or any(one.remedy is Remedy.NEXT_ROUTE for one in incidents)
    route = _next_route(turn, Failure.REQUEST) if passed else 0
    if not (route or advice):
        return []
    return [ev.TurnBegun(at=opened.at, route=route, advice=tuple(advice), withheld=withheld)]


def _unknown(name: str) -> str:
    return (
        f"{name} was started, and the gateway was restarted before it came back: it may have been done, in whole or in part, or "
        "not at all. Do not simply repeat it: check first whether it was done, or ask the person."
    )
