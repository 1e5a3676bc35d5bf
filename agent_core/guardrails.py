"""Loops inside a turn (behaviour, section 4): four rules over the sequence of tool calls and their results.

Theory. `Loops` is told of every call that came back, in order, and answers with a `Finding` when a rule's count reaches
its warning or its stop. Results are compared after their volatile parts (times, ids, addresses, temporary paths) are masked,
so that a loop cannot hide behind a clock. A warning becomes text in the tool's result; a stop ends the turn after one
tool-less step. Calls that make progress clear the counts that speak against them.

Laws (tests/agent_core/test_guardrails.py): a rule never stops before it has warned; different results never count as no
progress; masking is idempotent.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agent_core.exits import ExitCode
from agent_core.settings import GuardCounts

LoopCode: TypeAlias = Literal[
    ExitCode.REPEATING_FAILING_CALL, ExitCode.FAILING_TOOL, ExitCode.NO_PROGRESS, ExitCode.GOING_IN_CIRCLES
]


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule has something to say about the latest call."""

    code: LoopCode
    tool: str
    count: int
    stop: bool
    words: str
    """For the model, in the tool's result."""


_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\b"), "<time>"),
    (re.compile(r"\b0x[0-9a-fA-F]{4,}\b"), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b"), "<id>"),
    (re.compile(r"(?:/var)?/tmp/[\w.+-]+(?:/[\w.+-]+)*"), "<temporary path>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds|minutes|min)\b"), "<duration>"),
    (re.compile(r"\b1[5-9]\d{8}(?:\d{3}){0,3}\b"), "<time>"),
)


def mask(text: str) -> str:
    """`text` without its volatile parts and with white space folded; for comparing, never for showing."""
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return " ".join(text.split())


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()


def canonical_arguments(arguments: str) -> str:
    """Arguments in one spelling: keys sorted, white space gone. Unreadable ones stay as they are."""
    try:
        return json.dumps(json.loads(arguments or "{}"), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return " ".join(arguments.split())


@dataclass(slots=True)
class _Call:
    failures: int = 0
    same_results: int = 0
    result: str = ""


@dataclass(slots=True)
class Loops:
    """The memory of the four rules for one turn."""

    counts: GuardCounts
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    _failing: dict[str, int] = field(default_factory=dict[str, int])
    _trail: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(signature, tool name) of the latest calls, at most enough for the longest cycle to be stopped."""

    def observe(self, tool: str, arguments: str, result: str, *, ok: bool, read_only: bool) -> Finding | None:
        """Take note of a call that came back; the gravest finding, or None."""
        key = _digest(f"{tool}\0{canonical_arguments(arguments)}")
        outcome = _digest(mask(result))
        call = self._calls.get(key)
        new = call is None
        call = self._calls.setdefault(key, _Call())
        idle = self._no_progress(call, tool, outcome, counts=ok and read_only)
        circle = self._circles(f"{key}{outcome}", tool)
        found = [
            self._failing_call(call, tool, ok=ok),
            self._failing_tool(tool, ok=ok),
            idle if circle is None else circle,  # each call of a cycle is also a repeated one; the cycle says more
        ]
        if ok and not read_only and new:
            for other in self._calls.values():  # something was changed for the first time: reading again is honest
                other.same_results = 0
                other.result = ""
        findings = [finding for finding in found if finding is not None]
        return max(findings, key=lambda finding: finding.stop, default=None)

    def fingerprint(self) -> str:
        """The state in one short text, to compare states with."""
        calls = sorted((key, call.failures, call.same_results, call.result) for key, call in self._calls.items())
        return _digest(repr((calls, sorted(self._failing.items()), self._trail)))

    def _failing_call(self, call: _Call, tool: str, *, ok: bool) -> Finding | None:
        call.failures = 0 if ok else call.failures + 1
        return self._judge(
            ExitCode.REPEATING_FAILING_CALL,
            tool,
            call.failures,
            self.counts.repeating_failing_warn,
            self.counts.repeating_failing_stop,
            f"The same call of {tool} has now failed {call.failures} times. Do not repeat it; change the arguments, use "
            "another tool, or say what is in the way.",
        )

    def _failing_tool(self, tool: str, *, ok: bool) -> Finding | None:
        count = 0 if ok else self._failing.get(tool, 0) + 1
        self._failing[tool] = count
        return self._judge(
            ExitCode.FAILING_TOOL,
            tool,
            count,
            self.counts.failing_tool_warn,
            self.counts.failing_tool_stop,
            f"{tool} has failed {count} times in a row. Try another way, or say what is in the way.",
        )

    def _no_progress(self, call: _Call, tool: str, outcome: str, *, counts: bool) -> Finding | None:
        if not counts:
            return None
        call.same_results = call.same_results + 1 if call.result == outcome else 1
        call.result = outcome
        return self._judge(
            ExitCode.NO_PROGRESS,
            tool,
            call.same_results,
            self.counts.no_progress_warn,
            self.counts.no_progress_stop,
            f"This call of {tool} gave the same result {call.same_results} times. You have this information already; "
            "use it, or do something else.",
        )

    def _circles(self, signature: str, tool: str) -> Finding | None:
        self._trail.append((signature, tool))
        del self._trail[: -4 * max(self.counts.circles_stop, 2)]
        for period in (2, 3, 4):
            rounds = self._rounds(period)
            if rounds >= self.counts.circles_warn:
                names = ", ".join(name for _, name in self._trail[-period:])
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
        cycle = [signature for signature, _ in self._trail[-period:]]
        if len(cycle) < period or len(set(cycle)) == 1:
            return 0
        rounds = 1
        while True:
            start = len(self._trail) - (rounds + 1) * period
            if start < 0 or [signature for signature, _ in self._trail[start : start + period]] != cycle:
                return rounds
            rounds += 1

    @staticmethod
    def _judge(code: LoopCode, tool: str, count: int, warn: int, stop: int, words: str) -> Finding | None:
        if count >= stop:
            return Finding(code, tool, count, stop=True, words=words)
        if count >= warn:
            return Finding(code, tool, count, stop=False, words=words)
        return None
