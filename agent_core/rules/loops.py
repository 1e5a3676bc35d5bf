"""Loops inside a turn: four rules over the sequence of tool calls and their results.

Theory. `Loops` is told of every call that came back, in order, and answers with a `LoopFinding` when a rule's count reaches
its warning or its stop. Results are compared by `masking`, so that a loop cannot hide behind a clock or another order. A
warning becomes text in the tool's result; a stop ends the turn after one tool-less step.

Progress clears the counts that speak against a call. Reading again is honest once something has been changed; so is a call that fails again
after a change, if it now fails otherwise (tests after an edit). A change is a call with effects that worked and had not been made before.
The same call with an effect, again and again and nothing else between, is no progress either.
Calls side by side are asked for before any result is known: that several of one reply fail is one failure of their tool, and none if
another of them worked.

Laws (tests/agent_core/test_loops.py): a rule never stops before it has warned; different results never count as no progress.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from agent_core.failures.exits import ExitCode
from agent_core.records import NONE, dataclass
from agent_core.rules.masking import UndisguisedResult, canonical_arguments, digest
from agent_core.settings import GuardCounts

LoopCode: TypeAlias = Literal[
    ExitCode.REPEATING_FAILING_CALL, ExitCode.FAILING_TOOL, ExitCode.NO_PROGRESS, ExitCode.GOING_IN_CIRCLES
]


@dataclass(frozen=True, slots=True)
class LoopFinding:
    """A rule has something to say about the latest call."""

    code: LoopCode
    tool: str
    count: int
    stop: bool
    words: str
    """For the model, in the tool's result."""


@dataclass(slots=True)
class _CallsMade:
    """One tool with one set of arguments."""

    failures: int = 0
    failure: UndisguisedResult | None = None
    same_results: int = 0
    result: UndisguisedResult | None = None
    changes: int = 0
    """How many changes there had been in the turn when it last came back."""
    runs: int = 0
    """How often it has worked, and no other call between."""


@dataclass(frozen=True, slots=True)
class _Passed:
    """A call that came back, as the search for cycles remembers it."""

    key: str
    tool: str
    result: UndisguisedResult

    def same(self, other: _Passed) -> bool:
        return self.key == other.key and self.result.same(other.result)


@dataclass(slots=True)
class Loops:
    """The memory of the four rules for one turn."""

    counts: GuardCounts
    _calls: dict[str, _CallsMade] = field(default_factory=dict[str, _CallsMade])
    _failing: dict[str, int] = field(default_factory=dict[str, int])
    _reply: int = -1
    _before: dict[str, int] = field(default_factory=dict[str, int])
    """How often each tool had failed in a row before the reply whose calls come back now."""
    _worked: frozenset[str] = NONE
    """Tools of which a call of that reply worked."""
    _failed: frozenset[str] = NONE
    """Calls of that reply that failed."""
    _last: str = ""
    """The latest call that worked."""
    _changes: int = 0
    """Successful calls with effects that had not been made before: after one, the world may be another."""
    _trail: list[_Passed] = field(default_factory=list[_Passed])
    """The latest calls, at most enough for the longest cycle to be stopped."""

    def observe(
        self, tool: str, arguments: str, result: str, *, ok: bool, read_only: bool, reply: int | None = None
    ) -> LoopFinding | None:
        """Take note of a call that came back, one of the `reply` with that number (None: one of its own); the gravest finding, or None."""
        if reply is None or reply != self._reply:
            self._reply = self._reply + 1 if reply is None else reply
            self._before, self._worked, self._failed = dict(self._failing), NONE, NONE
        key = digest(f"{tool}\0{canonical_arguments(arguments)}")
        new = key not in self._calls
        call = self._calls.setdefault(key, _CallsMade(changes=self._changes))
        now = UndisguisedResult(result)
        changed = call.changes != self._changes
        better = changed and call.failure is not None and not call.failure.same(now)
        idle = self._no_progress(call, tool, now, changed=changed, counts=ok and read_only)
        if ok:
            call.runs = call.runs + 1 if self._last == key else 1
            self._last = key
            idle = idle or (None if read_only else self._the_same_effect(call, tool))
        circle = self._circles(_Passed(key, tool, now))
        found = [
            self._failing_call(call, tool, ok=ok, better=better, first=key not in self._failed),
            self._failing_tool(tool, ok=ok, better=better),
            idle if circle is None else circle,  # each call of a cycle is also a repeated one; the cycle says more
        ]
        call.failure = None if ok else now
        self._failed |= NONE if ok else {key}
        if ok and not read_only and new:
            self._changes += 1
        call.changes = self._changes
        findings = [finding for finding in found if finding is not None]
        return max(findings, key=lambda finding: finding.stop, default=None)

    def fingerprint(self) -> str:
        """The state in one short text, to compare states with."""
        calls = sorted((key, repr(call)) for key, call in self._calls.items())
        reply = (sorted(self._before.items()), sorted(self._worked), sorted(self._failed))
        return digest(repr((calls, sorted(self._failing.items()), reply, self._changes, self._trail)))

    def _failing_call(self, call: _CallsMade, tool: str, *, ok: bool, better: bool, first: bool) -> LoopFinding | None:
        call.failures = 0 if ok else 1 if better else call.failures + first
        return self._judge(
            ExitCode.REPEATING_FAILING_CALL,
            tool,
            call.failures,
            self.counts.repeating_failing_warn,
            self.counts.repeating_failing_stop,
            f"The same call of {tool} has now failed {call.failures} times. Do not repeat it; change the arguments, use "
            "another tool, or say what is in the way.",
        )

    def _failing_tool(self, tool: str, *, ok: bool, better: bool) -> LoopFinding | None:
        if ok:
            self._worked |= {tool}
        count = 0 if tool in self._worked else 1 if better else self._before.get(tool, 0) + 1
        self._failing[tool] = count
        return self._judge(
            ExitCode.FAILING_TOOL,
            tool,
            count,
            self.counts.failing_tool_warn,
            self.counts.failing_tool_stop,
            f"{tool} has failed {count} times in a row. Try another way, or say what is in the way.",
        )

    def _no_progress(
        self, call: _CallsMade, tool: str, now: UndisguisedResult, *, changed: bool, counts: bool
    ) -> LoopFinding | None:
        if not counts:
            return None
        again = not changed and call.result is not None and call.result.same(now)
        call.same_results = call.same_results + 1 if again else 1
        call.result = now
        return self._judge(
            ExitCode.NO_PROGRESS,
            tool,
            call.same_results,
            self.counts.no_progress_warn,
            self.counts.no_progress_stop,
            f"This call of {tool} gave the same result {call.same_results} times. You have this information already; "
            "use it, or do something else.",
        )

    def _the_same_effect(self, call: _CallsMade, tool: str) -> LoopFinding | None:
        """What has an effect may be meant more than once, and its results differ (a file grows): so it is warned of twice as late, and stopped six times as late (a key that is pressed)."""
        return self._judge(
            ExitCode.NO_PROGRESS,
            tool,
            call.runs,
            2 * self.counts.no_progress_warn,
            6 * self.counts.no_progress_stop,
            f"{tool} has now run {call.runs} times with the same arguments, each time with its effect, and nothing else was done between. "
            "Go on with what is next, or say that you are done.",
        )

    def _circles(self, passed: _Passed) -> LoopFinding | None:
        self._trail.append(passed)
        del self._trail[: -4 * max(self.counts.circles_stop, 2)]
        for period in (2, 3, 4):
            rounds = self._rounds(period)
            if rounds >= self.counts.circles_warn:
                names = ", ".join(passed.tool for passed in self._trail[-period:])
                return self._judge(
                    ExitCode.GOING_IN_CIRCLES,
                    names,
                    rounds,
                    self.counts.circles_warn,
                    self.counts.circles_stop,
                    f"You went round the same calls ({names}) {rounds} times with the same results. "
                    "Stop this cycle: use what you have, or say what is in the way.",
                )
        return None

    def _rounds(self, period: int) -> int:
        """How many whole rounds of `period` calls end the trail; 0 if the calls of a round are all the same."""
        cycle = self._trail[-period:]
        if len(cycle) < period or all(passed.same(cycle[0]) for passed in cycle[1:]):
            return 0
        rounds = 1
        while True:
            start = len(self._trail) - (rounds + 1) * period
            if start < 0 or not all(a.same(b) for a, b in zip(self._trail[start:], cycle, strict=False)):
                return rounds
            rounds += 1

    @staticmethod
    def _judge(code: LoopCode, tool: str, count: int, warn: int, stop: int, words: str) -> LoopFinding | None:
        if count >= stop:
            return LoopFinding(code, tool, count, stop=True, words=words)
        if count >= warn:
            return LoopFinding(code, tool, count, stop=False, words=words)
        return None
