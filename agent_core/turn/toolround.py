"""The tool half of a step: the calls of one reply, until the last of them is back. Only state; driven by `taking` alone.

Calls are answered in the order in which the model asked. What becomes of those that wait (they run, somebody is asked, they are not run), and what
a result says about loops, is judged in `judging`; what is here only takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agent_core.failures.exits import Exit, Looped, ending
from agent_core.limits.quotas import read_full
from agent_core.records import NONE
from agent_core.rules.consents import Kind, Lasting, covered, kind_of
from agent_core.rules.loops import LoopFinding, Loops
from agent_core.rules.taint import addresses_in
from agent_core.settings import ToolFacts, TurnSettings
from agent_core.tools.arguments import parsed
from agent_core.tools.base import FULL, EffectClass, Reach, ToolStatus
from agent_core.turn.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallSettled,
    ChangeShown,
    LoopFound,
    OfCall,
    Refusal,
    ToolReturned,
    ToolStarted,
)
from agent_core.turn.state import Activity, ActivityState, ConsentGiven, Decided, Item, ToolItem

UNDER_WAY = (ActivityState.RUNNING, ActivityState.APPROVAL)
DOUBTFUL = (ToolStatus.TIMED_OUT, ToolStatus.UNKNOWN)
"""A call that is no mere look may or may not have been done, in whole or in part."""


def gives_links(facts: ToolFacts, arguments: str) -> bool:
    """Whether the addresses in a call's result were written elsewhere: what searches may give back an address that stood in the question, and the
    model may have put that one together. Pure."""
    if not facts.links or facts.reach is Reach.ADDRESS:
        return facts.links
    found = parsed(arguments)
    return not isinstance(found, str) and not addresses_in(found)


class ToolRound:
    """The calls of the current step, and what is remembered of earlier ones to judge them. One a turn."""

    __slots__ = (
        "_by_call",
        "_complained",
        "_finding",
        "_items",
        "_loops",
        "_passed",
        "_reply",
        "_seen",
        "_settings",
        "activities",
        "consents",
        "denied",
        "foreign",
        "in_doubt",
        "links",
        "refusal",
        "stopping",
        "tools_done",
        "tools_run",
        "tools_unsure",
        "unknown_tools",
        "unreadable",
    )

    def __init__(self, settings: TurnSettings, items: list[Item]) -> None:
        self._settings = settings
        self._items = items
        self._passed: tuple[tuple[int, str, str, str, bool], ...] = ()
        """All calls of the turn that came back: number of their reply, tool, arguments, result, and whether it did what was asked."""
        self._reply = 0
        self._loops: Loops | None = None
        self._complained: frozenset[Refusal] = NONE
        """What calls of the current reply were refused for: several side by side are one failure."""
        self._seen = 0
        """How many of them `_loops` was told."""
        self._finding: LoopFinding | None = None
        self.refusal = Refusal.NONE
        """Why the latest call to come back was not even started."""
        self.unknown_tools = 0  # such calls in a row
        self.unreadable = 0
        self.foreign: tuple[str, ...] = ()
        """Names of the tools whose results held words of others."""
        self.links: tuple[str, ...] = ()
        """Results in which every address was written elsewhere."""
        self.consents: dict[Kind, ConsentGiven] = {}
        """What was agreed to in this turn for longer than once."""
        self.in_doubt: tuple[tuple[str, Kind | None], ...] = ()
        """Effects of which nobody knows whether they were done, and that were not done anew since: tool and kind."""
        self.denied: frozenset[str] = NONE
        """Names of tools that were not approved."""
        self.activities: Sequence[Activity] = ()
        self._by_call: dict[str, Activity] = {}
        self.tools_run: tuple[str, ...] = ()
        """Names of all tools of the turn that came back, in order, also those that failed."""
        self.tools_done: tuple[str, ...] = ()
        """Names of those that did what was asked."""
        self.tools_unsure: tuple[str, ...] = ()
        """Names of those that may or may not have done it."""
        self.stopping: Exit | None = None
        """A guardrail wants the turn to end so, after one tool-less step."""

    # ------------------------------------------------------------------ how it stands

    @property
    def unfinished(self) -> list[Activity]:
        return [activity for activity in self.activities if not activity.returned]

    @property
    def waiting(self) -> list[Activity]:
        """The calls that somebody has to decide about; none while one runs, or while somebody is asked."""
        return [] if self.under_way else self.unfinished

    @property
    def under_way(self) -> bool:
        """A call runs, or somebody is asked about it. Asked after every event, so the first one found is enough."""
        return any(one.status is None and one.state in UNDER_WAY for one in self.activities)

    @property
    def only_asked(self) -> bool:
        """Somebody is asked about a call, and none runs."""
        going_on = {one.state for one in self.unfinished} - {ActivityState.WAITING}
        return going_on == {ActivityState.APPROVAL}

    @property
    def unsure(self) -> list[Activity]:
        """Calls that may or may not have had their effect."""
        return [a for a in self.unfinished if a.started and self.effect_class(a.name) is not EffectClass.PURE]

    @property
    def unrepeatable(self) -> bool:
        """A call is under way that must not be run again."""
        return any(self.effect_class(activity.name) is EffectClass.EFFECT for activity in self.unsure)

    @property
    def over(self) -> bool:
        """Every call has its result."""
        return not [one for one in self.activities if one.status is None]

    def effect_class(self, name: str) -> EffectClass:
        tool = self._settings.tool(name)
        return tool.effect if tool is not None else EffectClass.PURE  # an unknown tool is refused: that changes nothing

    def activity(self, call: str) -> Activity | None:
        """A call of this round that is not back."""
        found = self._by_call.get(call)
        return found if found is not None and not found.returned else None

    def named(self, call: str) -> str:
        return self._by_call[call].name

    def doubted(self, activity: Activity) -> bool:
        """It would do anew what may have been done already."""
        if not self.in_doubt or self.effect_class(activity.name) is not EffectClass.EFFECT:
            return False
        kind = kind_of(activity.name, activity.arguments)
        return any(name == activity.name and (None in (kind, other) or kind == other) for name, other in self.in_doubt)

    def consented(self, activity: Activity, before: Sequence[Kind], *, tainted: bool) -> bool:
        """Somebody has agreed to such calls, in this turn or `before`; `tainted`: also after words of others had been read."""
        given = (*self.consents, *before)
        return covered(given, activity.name, activity.arguments, tainted=tainted) is not None

    def misfit(self, event: OfCall) -> str:
        """What speaks against this event now, in words; empty if it fits."""
        activity = self.activity(event.call)
        if activity is None:
            return "this tool call was not wanted"
        match event:
            case ToolStarted():
                fits = activity.state in (ActivityState.WAITING, ActivityState.RUNNING)
                return "" if fits else "this tool call was not wanted"
            case ToolReturned():
                # Not even begun
                refused = event.refusal is not Refusal.NONE and activity.state is ActivityState.WAITING
                fits = activity.state is ActivityState.RUNNING or refused
                return "" if fits else "this tool call was not begun"
            case ApprovalAnswered() | ChangeShown():
                return "" if activity.state is ActivityState.APPROVAL else "no approval was asked for this call"

    def finding(self) -> LoopFinding | None:
        """What today's rules of loops find in the latest result. They are told of earlier ones as far as they were not asked then."""
        by_reply = self._settings.counts_failures_by_reply
        loops = self._loops = self._loops or Loops(self._settings.guards)
        for reply, tool, arguments, text, ok in self._passed[self._seen :]:
            read_only = self.effect_class(tool) is EffectClass.PURE
            self._finding = loops.observe(
                tool, arguments, text, ok=ok, read_only=read_only, reply=reply if by_reply else None
            )
        self._seen = len(self._passed)
        return self._finding

    # ------------------------------------------------------------------ what happens

    def begin(self, activities: list[Activity]) -> None:
        """A reply asked for these calls."""
        self._reply += 1
        self._complained = NONE
        self.activities = activities
        self._by_call = {activity.call: activity for activity in activities}

    def resume(self) -> None:
        """Another process takes over: nothing runs any more."""
        for activity in self.unfinished:
            activity.state = ActivityState.WAITING

    def running(self, call: str, at: int) -> None:
        activity = self._by_call[call]
        activity.state, activity.since = ActivityState.RUNNING, at

    def started(self, event: ToolStarted) -> None:
        activity = self._by_call[event.call]
        if not activity.started or event.intention is None:  # else a call that runs puts down what it asks
            activity.since = event.at
        activity.state, activity.started = ActivityState.RUNNING, True
        activity.intention = activity.intention if event.intention is None else event.intention

    def returned(self, event: ToolReturned) -> None:
        activity = self._by_call[event.call]
        activity.status, activity.since, activity.seconds = event.status, event.at, event.seconds
        activity.result, activity.doubt = event.text, event.doubt
        sent = event.facts.get("sent_file")
        activity.file = sent if isinstance(sent, str) else ""
        activity.full = read_full(event.facts.get(FULL))
        self._items.append(ToolItem(activity.call, activity.name, event.text))
        if event.foreign:
            self.foreign += (activity.name,)
        self.refusal = event.refusal
        match event.refusal:
            case Refusal.NONE:
                self._ran(activity, event)
                return
            case Refusal.UNKNOWN_TOOL:
                self.unknown_tools += event.refusal not in self._complained
            case Refusal.UNREADABLE_ARGUMENTS:
                self.unreadable += event.refusal not in self._complained
        self._complained |= {event.refusal}
        activity.state = ActivityState.NOT_RUN

    def _ran(self, activity: Activity, event: ToolReturned) -> None:
        self.unknown_tools = self.unreadable = 0
        self.tools_run += (activity.name,)
        ok = event.status is ToolStatus.OK
        if ok:
            self.tools_done += (activity.name,)
        activity.state = ActivityState.DONE if ok else ActivityState.FAILED
        facts = self._settings.tool(activity.name)
        if ok and event.foreign and facts is not None and gives_links(facts, activity.arguments):
            self.links += (event.text,)
        doubtful = self._settings.goes_on and event.status in DOUBTFUL
        if doubtful and self.effect_class(activity.name) is not EffectClass.PURE:
            self._not_known(activity)
        elif self.in_doubt and not doubtful:
            kind = kind_of(activity.name, activity.arguments)
            self.in_doubt = tuple(one for one in self.in_doubt if one != (activity.name, kind))
        self._passed += ((self._reply, activity.name, activity.arguments, event.text, ok),)

    def found(self, event: LoopFound) -> None:
        """The model reads a warning with the result; or the round is the last one."""
        item = self._items[-1]
        assert isinstance(item, ToolItem)
        if event.words:
            self._items[-1] = ToolItem(item.call, item.name, f"{item.text}\n\n[Note from the gateway: {event.words}]")
        if event.stop and self.stopping is None:
            self.stopping = ending(event.code, Looped)(tool=event.tool, count=event.count)

    def asked(self, event: ApprovalAsked, foreign: tuple[str, ...]) -> None:
        """`foreign`: where words of others stand that the model has read; whoever decides is told."""
        activity = self._by_call[event.call]
        activity.state, activity.since = ActivityState.APPROVAL, event.at
        activity.approval_deadline = event.at + event.seconds * 1000
        activity.why, activity.sources, activity.change = event.why, event.sources or foreign, None

    def shown(self, event: ChangeShown) -> None:
        self._by_call[event.call].change = event.change

    def approved(self, event: ApprovalAnswered, asker: str) -> None:
        """`asker` is whose turn it is, where several people share a conversation."""
        activity = self._by_call[event.call]
        lasts = event.lasts
        activity.decided = Decided(given=True, by=event.by, lasts=lasts)
        kind = kind_of(activity.name, activity.arguments) if lasts is not Lasting.ONCE else None
        if kind is not None and not activity.why.once:
            kind = replace(kind, tainted=bool(activity.sources), asker=asker)
            self.consents[kind] = ConsentGiven(lasts, event.by, event.at)
        activity.approved, activity.state = True, ActivityState.WAITING

    def refused(self, call: str, by: str) -> None:
        self._by_call[call].decided = Decided(given=False, by=by)

    def settled(self, event: CallSettled) -> None:
        activity = self._by_call[event.call]
        activity.since = event.at
        activity.why, activity.sources = event.why, event.sources
        if event.unsure:
            activity.status = ToolStatus.UNKNOWN
            self.tools_run += (activity.name,)
            self._not_known(activity)
        else:
            activity.state, activity.status = ActivityState.NOT_RUN, ToolStatus.REFUSED
        if event.denied:
            self.denied |= {activity.name}
        self._items.append(ToolItem(activity.call, activity.name, event.words))

    def _not_known(self, activity: Activity) -> None:
        activity.state = ActivityState.UNSURE
        self.tools_unsure += (activity.name,)
        if self.effect_class(activity.name) is EffectClass.EFFECT:
            self.in_doubt += ((activity.name, kind_of(activity.name, activity.arguments)),)

    # ------------------------------------------------------------------ the end

    def left(self) -> tuple[Sequence[str], Sequence[str]]:
        """What an end leaves: (names of calls that were not executed, names of those that may or may not have been)."""
        unsure = self.unsure
        lost = [activity.name for activity in self.unfinished if activity not in unsure]
        return lost, [activity.name for activity in unsure]

    def close(self) -> None:
        """The turn ends."""
        unsure = self.unsure
        for activity in self.unfinished:
            activity.state = ActivityState.UNSURE if activity in unsure else ActivityState.NOT_RUN
