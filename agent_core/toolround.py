"""The tool half of a step: the calls of one reply, until the last of them is back. Pure; driven by `turn` alone.

Theory. Calls are answered in the order in which the model asked. Neighbouring *pure* calls run together, any other runs alone.
A call that needs approval is asked for first. A call that cannot be started (unknown tool, unreadable arguments) is
answered with the complaint. `guardrails` watches what comes back; a stop lets what runs come back and gives up the rest.

What follows is said by an `Outcome`: effects to wait for, the round being over, or the turn having to end. Only `turn` acts on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from agent_core.asked import unasked
from agent_core.effects import AskApproval, Effect, RunTool
from agent_core.events import ApprovalAnswered, Refusal, ToolReturned, ToolStarted, Verdict
from agent_core.exits import Exit, ExitCode, Facts
from agent_core.guardrails import Loops
from agent_core.quotas import read_full
from agent_core.settings import TurnSettings
from agent_core.tools.base import FULL, EffectClass, ToolStatus
from agent_core.turnstate import Activity, ActivityState, DraftCall, Item, ToolItem


@dataclass(frozen=True, slots=True)
class Waiting:
    """These effects are wanted (none: something still runs)."""

    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundOver:
    """Every call has its result."""


@dataclass(frozen=True, slots=True)
class MustEnd:
    """The turn cannot go on."""

    exit: Exit


Outcome: TypeAlias = Waiting | RoundOver | MustEnd
DOUBTFUL = (ToolStatus.TIMED_OUT, ToolStatus.UNKNOWN)
"""A call that is no mere look may or may not have been done, in whole or in part."""


def unknown_words(name: str) -> str:
    """What the model reads in place of a result that nobody knows."""
    return (
        f"{name} was started, and the gateway was restarted before it came back: it may have been done, in whole or in part, or "
        "not at all. Do not simply repeat it: check first whether it was done, or ask the person."
    )


class ToolRound:
    """The calls of the current step, and what is remembered of earlier ones to judge them. One a turn."""

    __slots__ = (
        "_by_call",
        "_denied",
        "_items",
        "_loops",
        "_round",
        "_settings",
        "_unknown_tools",
        "_unreadable",
        "activities",
        "stopping",
        "tools_done",
        "tools_run",
        "tools_unsure",
    )

    def __init__(self, settings: TurnSettings, items: list[Item]) -> None:
        self._settings = settings
        self._items = items
        self._loops = Loops(settings.guards)
        self._round = 0  # counts replies with calls
        self._unknown_tools = 0
        self._unreadable = 0
        self._denied: set[str] = set()
        self.activities: list[Activity] = []
        self._by_call: dict[str, Activity] = {}
        self.tools_run: list[str] = []
        """Names of all tools of the turn that came back, in order, also those that failed."""
        self.tools_done: list[str] = []
        """Names of those that did what was asked."""
        self.tools_unsure: list[str] = []
        """Names of those that may or may not have done it."""
        self.stopping: Exit | None = None
        """A guardrail wants the turn to end so, after one tool-less step."""

    # ------------------------------------------------------------------ beginning and going on

    def taken(self, calls: Sequence[DraftCall]) -> Sequence[DraftCall]:
        """Those of a reply's calls that are run. Each of the others is answered at once: not run, and why."""
        limit = self._settings.calls_a_reply
        if limit is None or len(calls) <= limit:
            return calls
        words = f"Not run: a reply may ask for at most {limit} calls at once. Ask for it again in a later reply if it is still needed."
        self._items += [ToolItem(call.call, call.name, words) for call in calls[limit:]]
        return calls[:limit]

    def begin(self, activities: list[Activity], at: int) -> Outcome:
        """A reply asked for these calls."""
        self._round += 1
        self.activities = activities
        self._by_call = {activity.call: activity for activity in activities}
        return self._advance(at)

    def resume(self, at: int) -> Outcome:
        """Another process takes over. What may run again does; of what may not, nobody knows how it ended."""
        for activity in self.unfinished:
            if activity.started and self._effect_class(activity.name) is EffectClass.EFFECT:
                activity.status, activity.since = ToolStatus.UNKNOWN, at
                self.tools_run.append(activity.name)
                self._not_known(activity)
                self._items.append(ToolItem(activity.call, activity.name, unknown_words(activity.name)))
            else:
                activity.state = ActivityState.WAITING
        return self._advance(at)

    @property
    def unfinished(self) -> list[Activity]:
        return [activity for activity in self.activities if not activity.returned]

    @property
    def under_way(self) -> bool:
        """A call runs, or somebody is asked about it. Asked after every event, so the first one found is enough."""
        return any(
            activity.state in (ActivityState.RUNNING, ActivityState.APPROVAL) and not activity.returned
            for activity in self.activities
        )

    @property
    def unsure(self) -> list[Activity]:
        """Calls that may or may not have had their effect."""
        return [a for a in self.unfinished if a.started and self._effect_class(a.name) is not EffectClass.PURE]

    @property
    def unrepeatable(self) -> bool:
        """A call is under way that must not be run again."""
        return any(self._effect_class(activity.name) is EffectClass.EFFECT for activity in self.unsure)

    def _advance(self, at: int) -> Outcome:
        """The next calls that may run now."""
        if self.under_way:
            return Waiting()
        waiting = self.unfinished
        if self.stopping is not None:
            for activity in waiting:
                self._give_up(activity, at, "Not run: the turn is being stopped.")
            return RoundOver()
        if not waiting:
            return RoundOver()
        first = waiting[0]
        if self._needs_approval(first):
            return self._ask_approval(first, at)
        batch = [first]
        if self._effect_class(first.name) is EffectClass.PURE:
            for activity in waiting[1:]:
                if self._effect_class(activity.name) is not EffectClass.PURE or self._needs_approval(activity):
                    break
                batch.append(activity)
        for activity in batch:
            activity.state, activity.since = ActivityState.RUNNING, at
        return Waiting(tuple(RunTool(a.call, a.name, a.arguments, a.intention, a.started) for a in batch))

    def _effect_class(self, name: str) -> EffectClass:
        tool = self._settings.tool(name)
        return tool.effect if tool is not None else EffectClass.PURE  # an unknown tool is refused: that changes nothing

    def _find(self, call: str, state: ActivityState) -> Activity | None:
        found = self._by_call.get(call)
        return found if found is not None and found.state is state and not found.returned else None

    def _not_known(self, activity: Activity) -> None:
        activity.state = ActivityState.UNSURE
        self.tools_unsure.append(activity.name)

    def _give_up(self, activity: Activity, at: int, words: str) -> None:
        activity.state, activity.status, activity.since = ActivityState.NOT_RUN, ToolStatus.REFUSED, at
        self._items.append(ToolItem(activity.call, activity.name, words))

    # ------------------------------------------------------------------ approval

    def _needs_approval(self, activity: Activity) -> bool:
        tool = self._settings.tool(activity.name)
        return tool is not None and tool.needs_approval and not activity.approved

    def _ask_approval(self, activity: Activity, at: int) -> Outcome:
        if not self._settings.can_approve:
            return self._deny(activity, at, "Not run: it needs a person's approval, and nobody can give it here.")
        if self._settings.asks_only_what_is_shown and (why := unasked(activity.arguments)):
            self._give_up(activity, at, f"Not run: {why}.")
            return self._advance(at)
        seconds = self._settings.approval_seconds
        activity.state, activity.since = ActivityState.APPROVAL, at
        activity.approval_deadline = at + seconds * 1000
        return Waiting((AskApproval(activity.call, activity.name, activity.arguments, seconds),))

    def approval_answered(self, event: ApprovalAnswered) -> Outcome:
        activity = self._find(event.call, ActivityState.APPROVAL)
        if activity is None:
            return Waiting()
        match event.verdict:
            case Verdict.GIVEN:
                activity.approved = True
                activity.state = ActivityState.WAITING
                return self._advance(event.at)
            case Verdict.DENIED:
                return self._deny(activity, event.at, "Not run: the person did not approve this call.")
            case Verdict.EXPIRED:
                facts = Facts(tool=activity.name, limit=self._settings.approval_seconds)
                return MustEnd(Exit(ExitCode.APPROVAL_EXPIRED, facts))
            case _:
                assert_never(event.verdict)

    def _deny(self, activity: Activity, at: int, words: str) -> Outcome:
        """Denied once, the model hears of it; denied again, the turn cannot go on without it."""
        if activity.name in self._denied:
            return MustEnd(Exit(ExitCode.APPROVAL_DENIED, Facts(tool=activity.name)))
        self._denied.add(activity.name)
        self._give_up(activity, at, f"{words} Do not ask for it again; go on without it or say what is needed.")
        return self._advance(at)

    # ------------------------------------------------------------------ results

    def started(self, event: ToolStarted) -> None:
        activity = self._find(event.call, ActivityState.RUNNING)
        if activity is not None:
            activity.started, activity.since = True, event.at
            activity.intention = activity.intention if event.intention is None else event.intention

    def returned(self, event: ToolReturned) -> Outcome:
        activity = self._find(event.call, ActivityState.RUNNING)
        if activity is None:
            return Waiting()
        activity.status, activity.since, activity.seconds = event.status, event.at, event.seconds
        sent = event.facts.get("sent_file")
        activity.file = sent if isinstance(sent, str) else ""
        activity.full = read_full(event.facts.get(FULL))
        if event.refusal is not Refusal.NONE:
            activity.state = ActivityState.NOT_RUN
            self._items.append(ToolItem(activity.call, activity.name, event.text))
            ending = self._refused_too_often(activity.name, event.refusal)
            return MustEnd(ending) if ending is not None else self._advance(event.at)
        self._unknown_tools = self._unreadable = 0
        self.tools_run.append(activity.name)
        ok = event.status is ToolStatus.OK
        if ok:
            self.tools_done.append(activity.name)
        activity.state = ActivityState.DONE if ok else ActivityState.FAILED
        if (
            self._settings.goes_on
            and event.status in DOUBTFUL
            and self._effect_class(activity.name) is not EffectClass.PURE
        ):
            self._not_known(activity)
        self._items.append(ToolItem(activity.call, activity.name, self._watched(activity, event.text, ok=ok)))
        return self._advance(event.at)

    def _watched(self, activity: Activity, text: str, *, ok: bool) -> str:
        """The result as the model reads it: with a warning, if the guardrails have one."""
        read_only = self._effect_class(activity.name) is EffectClass.PURE
        reply = self._round if self._settings.counts_failures_by_reply else None
        finding = self._loops.observe(activity.name, activity.arguments, text, ok=ok, read_only=read_only, reply=reply)
        if finding is None:
            return text
        if finding.stop and self.stopping is None:
            self.stopping = Exit(finding.code, Facts(tool=finding.tool, count=finding.count))
        return f"{text}\n\n[Note from the gateway: {finding.words}]"

    def _refused_too_often(self, tool: str, refusal: Refusal) -> Exit | None:
        """Calls that cannot be started are complained of a few times in a row; then the turn ends."""
        ladder = self._settings.ladder
        if refusal is Refusal.UNKNOWN_TOOL:
            self._unknown_tools += 1
            if self._unknown_tools > ladder.unknown_tool:
                return Exit(ExitCode.UNKNOWN_TOOL, Facts(tool=tool, count=self._unknown_tools))
            return None
        self._unreadable += 1
        if self._unreadable > ladder.unreadable_arguments:
            return Exit(ExitCode.UNREADABLE_ARGUMENTS, Facts(tool=tool, count=self._unreadable))
        return None

    def close(self) -> tuple[Sequence[str], Sequence[str]]:
        """The turn ends: (names of calls that were not executed, names of those that may or may not have been)."""
        unsure = self.unsure
        lost = [activity for activity in self.unfinished if activity not in unsure]
        for activity in unsure:
            activity.state = ActivityState.UNSURE
        for activity in lost:
            activity.state = ActivityState.NOT_RUN
        return [activity.name for activity in lost], [activity.name for activity in unsure]
