"""Every number and every condition of the four rules is held by a case: change one, and a case comes out otherwise.

`CASES` says for sequences of calls what is told at which call. They are run with the real rules, with each limit one higher and one lower, and with each
of the mistakes in `MISTAKES` planted into the source.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import pytest

import agent_core.rules.masking as masking
from agent_core.rules import loops
from agent_core.settings import GuardCounts

Call = tuple[str, str, str, bool, bool]
"""Tool, arguments, result, worked, only reads."""
Told = tuple[int, str, str, int]
"""At which call, what, of which rule, with which count."""


def failing(arguments: object = 1, result: str = "no") -> Call:
    return "write", f"{arguments}", result, False, False


def reading(result: str = "same", arguments: object = 1, tool: str = "read") -> Call:
    return tool, f"{arguments}", result, True, True


def changing(arguments: object, tool: str = "edit") -> Call:
    return tool, f"{arguments}", "done", True, False


def told(rule: str, at: dict[int, int], stop: int = 0) -> list[Told]:
    """From {call: count}; the call `stop` is the one that stops."""
    return [(call, "stop" if call == stop else "warn", rule, count) for call, count in at.items()]


def ring(length: int, rounds: int) -> list[Call]:
    return [("abcd"[n], "{}", f"{n}", True, n % 2 == 0) for n in range(length)] * rounds


CASES: dict[str, tuple[list[Call], list[Told]]] = {
    "one call fails four times": (
        [failing()] * 4,
        told("repeating_failing_call", {2: 2, 3: 3, 4: 4}, stop=4),
    ),
    "arguments are data": (
        [failing('{"a": 1, "b": 2}'), failing('{"b": 2, "a": 1}')],
        told("repeating_failing_call", {2: 2}),
    ),
    "a success in between": (
        [failing(), failing(), ("write", "1", "ok", True, False), failing(), failing()],
        told("repeating_failing_call", {2: 2, 5: 2}),
    ),
    "it fails otherwise, and nothing was changed": (
        [failing(result="a"), failing(result="b"), failing(result="c"), failing(result="d")],
        told("repeating_failing_call", {2: 2, 3: 3, 4: 4}, stop=4),
    ),
    "it fails alike after each change": (
        [call for n in range(4) for call in (failing(), changing(n))],
        told("repeating_failing_call", {3: 2, 5: 3, 7: 4}, stop=7),
    ),
    "it fails otherwise after each change": (
        [call for n in range(9) for call in (failing(result=f"error {n}"), changing(n))],
        [],
    ),
    "it fails otherwise after a change that is none": (
        [call for n in range(4) for call in (failing(result=f"error {n}"), changing(0))],
        [*told("repeating_failing_call", {5: 2, 7: 3}), *told("no_progress", {8: 4})],
    ),
    "one tool fails seven times": (
        [failing(n) for n in range(7)],
        told("failing_tool", {3: 3, 4: 4, 5: 5, 6: 6, 7: 7}, stop=7),
    ),
    "one tool fails, others work, and things change": (
        [call for n in range(7) for call in (failing(n, f"no {n}"), changing(n))],
        told("failing_tool", {5: 3, 7: 4, 9: 5, 11: 6, 13: 7}, stop=13),
    ),
    "two tools fail in turn": (
        [call for n in range(3) for call in (failing(n), ("send", f"{n}", "no", False, False))],
        told("failing_tool", {5: 3, 6: 3}),
    ),
    "one tool works once": (
        [failing(1), failing(2), ("write", "3", "ok", True, False), failing(4), failing(5)],
        [],
    ),
    "one reading four times": (
        [reading()] * 4,
        told("no_progress", {2: 2, 3: 3, 4: 4}, stop=4),
    ),
    "one reading, and others in between": (
        [call for n in range(4) for call in (reading(), reading(f"{n}", n, "look"))],
        told("no_progress", {3: 2, 5: 3, 7: 4}, stop=7),
    ),
    "a reading that works and fails with the same words": ([reading(), ("read", "1", "same", False, True)], []),
    "a reading after a change that failed": ([reading(), failing(), reading()], told("no_progress", {3: 2})),
    "readings with other results": ([reading(f"{n} of 9") for n in range(9)], []),
    "readings of other things": ([reading("same", n) for n in range(9)], []),
    "a reading after each change": ([call for n in range(9) for call in (reading(), changing(n))], []),
    "one effect, three times": ([changing(1)] * 3, []),
    "one effect, again and again": ([changing(1)] * 24, told("no_progress", {n: n for n in range(4, 25)}, stop=24)),
    "a reading in disguise": (
        [reading('{"a": 1, "b": "10:00:00"}', 2), reading('{"b": "11:00:00", "a": 1}', 2)],
        told("no_progress", {2: 2}),
    ),
    "a ring of two": (ring(2, 4), told("going_in_circles", {4: 2, 5: 2, 6: 3, 7: 3, 8: 4}, stop=8)),
    "a ring of three": (
        ring(3, 4),
        told("going_in_circles", {6: 2, 7: 2, 8: 2, 9: 3, 10: 3, 11: 3, 12: 4}, stop=12),
    ),
    "a ring of four": (
        ring(4, 4),
        told("going_in_circles", {n: n // 4 for n in range(8, 17)}, stop=16),
    ),
    "a ring of five is none": ([*ring(4, 1), changing(1, "e"), *ring(4, 1), changing(1, "e")], []),
    "a ring whose results differ": ([call for n in range(9) for call in (changing(1), reading(f"{n}"))], []),
    "a ring whose arguments differ": ([call for n in range(9) for call in (changing(n), changing(1, "run"))], []),
    "a ring that is left": ([*ring(2, 3), changing(1)], told("going_in_circles", {4: 2, 5: 2, 6: 3})),
    "a ring of failures": (
        [failing(), changing(1)] * 4,
        [
            (3, "warn", "repeating_failing_call", 2),
            (4, "warn", "going_in_circles", 2),
            (5, "warn", "repeating_failing_call", 3),
            (6, "warn", "going_in_circles", 3),
            (7, "stop", "repeating_failing_call", 4),
        ],
    ),
}


SIDE_BY_SIDE: dict[str, tuple[list[list[Call]], list[Told]]] = {
    "many calls of one reply fail": ([[failing(n) for n in range(9)]], []),
    "the same call fails often in one reply": ([[failing()] * 9], []),
    "replies with failing calls are counted": (
        [[failing(f"{reply}.{n}") for n in range(2)] for reply in range(7)],
        told("failing_tool", {5: 3, 6: 3, 7: 4, 8: 4, 9: 5, 10: 5, 11: 6, 12: 6, 13: 7}, stop=13),
    ),
    "the same call in several replies": (
        [[failing(), failing(n + 10)] for n in range(2)],
        told("repeating_failing_call", {3: 2}),
    ),
    "one of them works": ([*[[failing(n), changing(n, "write"), failing(n + 50)] for n in range(9)]], []),
    "a reply of which one works clears what was before": (
        [[failing(1)], [failing(2)], [failing(3), changing(1, "write")], [failing(4)], [failing(5)], [failing(6)]],
        told("failing_tool", {3: 3, 7: 3}),
    ),
    "another tool that works clears nothing": (
        [[failing(n), reading(f"{n}")] for n in range(3)],
        told("failing_tool", {5: 3}),
    ),
}
"""The same for calls that one reply asked for together."""


def run_replies(replies: list[list[Call]], counts: GuardCounts, rules: ModuleType = loops) -> list[Told]:
    return run(
        [call for reply in replies for call in reply],
        counts,
        rules,
        [n for n, reply in enumerate(replies) for _ in reply],
    )


def run(
    calls: list[Call], counts: GuardCounts, rules: ModuleType = loops, replies: list[int] | None = None
) -> list[Told]:
    loops = rules.Loops(counts)
    said: list[Told] = []
    for at, (tool, arguments, result, ok, read_only) in enumerate(calls, 1):
        reply = replies[at - 1] if replies is not None else None
        finding = loops.observe(tool, arguments, result, ok=ok, read_only=read_only, reply=reply)
        if finding is not None:
            said.append((at, "stop" if finding.stop else "warn", str(finding.code), finding.count))
            if finding.stop:
                break
    return said


def otherwise(counts: GuardCounts, rules: ModuleType = loops) -> list[str]:
    """The cases that come out otherwise than they should."""
    alone = [name for name, (calls, expected) in CASES.items() if run(calls, counts, rules) != expected]
    return alone + [
        n for n, (replies, expected) in SIDE_BY_SIDE.items() if run_replies(replies, counts, rules) != expected
    ]


@pytest.mark.parametrize("name", CASES)
def test_each_case_comes_out_as_it_should(name: str) -> None:
    calls, expected = CASES[name]
    assert run(calls, GuardCounts()) == expected


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_calls_side_by_side_come_out_as_they_should(name: str) -> None:
    replies, expected = SIDE_BY_SIDE[name]
    assert run_replies(replies, GuardCounts()) == expected


@pytest.mark.parametrize("change", [1, -1])
@pytest.mark.parametrize("number", [number.name for number in fields(GuardCounts)])
def test_each_number_is_held(number: str, change: int) -> None:
    counts = GuardCounts()
    assert otherwise(counts) == []
    assert otherwise(replace(counts, **{number: getattr(counts, number) + change}))


MISTAKES: tuple[tuple[str, str, str], ...] = (
    ("loops", "call.runs + 1 if self._last == key else 1", "call.runs + 1"),
    ("loops", "call.runs + 1 if self._last == key else 1", "1"),
    ("loops", "None if read_only else self._the_same", "self._the_same"),
    ("loops", "if count >= stop", "if count > stop"),
    ("loops", "if count >= warn", "if count > warn"),
    ("loops", "stop=True", "stop=False"),
    ("loops", "0 if ok else 1 if better else call.failures + first", "1 if better else call.failures + first"),
    ("loops", "0 if ok else 1 if better else call.failures + first", "0 if ok else call.failures + first"),
    (
        "loops",
        "0 if ok else 1 if better else call.failures + first",
        "0 if ok else 1 if better else call.failures + 1",
    ),
    ("loops", "0 if tool in self._worked else 1 if better else self._before", "1 if better else self._before"),
    (
        "loops",
        "0 if tool in self._worked else 1 if better else self._before",
        "0 if tool in self._worked else self._before",
    ),
    ("loops", "0 if tool in self._worked else 1", "0 if ok else 1"),
    ("loops", "self._before.get(tool, 0)", "self._failing.get(tool, 0)"),
    ("loops", "self._before.get(tool, 0)", "max(self._before.values(), default=0)"),
    ("loops", "self._worked |= {tool}", "pass"),
    ("loops", "first=key not in self._failed", "first=True"),
    ("loops", "if reply is None or reply != self._reply:", "if reply is None:"),
    ("loops", "dict(self._failing), NONE, NONE", "dict(self._failing), self._worked, NONE"),
    ("loops", "dict(self._failing), NONE, NONE", "dict(self._failing), NONE, self._failed"),
    ("loops", "better = changed and ", "better = "),
    ("loops", "not call.failure.same(now)", "call.failure.same(now)"),
    ("loops", "call.failure = None if ok else now", "pass"),
    ("loops", "call.changes = self._changes\n", "pass\n"),
    ("loops", "changed = call.changes != self._changes", "changed = False"),
    ("loops", "if ok and not read_only and new:", "if ok and not read_only:"),
    ("loops", "if ok and not read_only and new:", "if ok and new:"),
    ("loops", "if ok and not read_only and new:", "if not read_only and new:"),
    ("loops", "counts=ok and read_only", "counts=ok"),
    ("loops", "counts=ok and read_only", "counts=read_only"),
    ("loops", "again = not changed and ", "again = "),
    ("loops", "call.result.same(now)", "not call.result.same(now)"),
    ("loops", "call.same_results + 1 if again else 1", "call.same_results + 1"),
    ("loops", "call.result = now", "pass"),
    ("loops", "(2, 3, 4)", "(3, 4)"),
    ("loops", "(2, 3, 4)", "(2, 4)"),
    ("loops", "(2, 3, 4)", "(2, 3)"),
    ("loops", "(2, 3, 4)", "(2, 3, 4, 5)"),
    ("loops", "-4 * max(self.counts.circles_stop, 2)", "-3 * max(self.counts.circles_stop, 2)"),
    ("loops", "self.key == other.key and self.result.same(other.result)", "self.key == other.key"),
    ("loops", "self.key == other.key and self.result.same(other.result)", "self.result.same(other.result)"),
    ("loops", "all(passed.same(cycle[0]) for passed in cycle[1:])", "False"),
    ("loops", "idle if circle is None else circle", "idle"),
    ("loops", "canonical_arguments(arguments)", "arguments"),
    ("loops", "finding.stop, default", "not finding.stop, default"),
    ("masking", "any(mine", "all(mine"),
    ("masking", "mask(text)), digest(found)", "text), digest(text)"),
    ("masking", "sort_keys=True", "sort_keys=False"),
)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake[1][:40]} -> {mistake[2][:40]}")
def test_each_mistake_is_found(mistake: tuple[str, str, str], planted: Callable[..., ModuleType]) -> None:
    assert otherwise(GuardCounts(), planted()) == [], "without a mistake all is well"
    assert otherwise(GuardCounts(), planted(*mistake))


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Gives the rules anew from their source, with a mistake in one of the two modules if one is named."""

    def module(original: ModuleType, source: str) -> ModuleType:
        assert original.__file__ is not None
        new = ModuleType(original.__name__)
        monkeypatch.setitem(sys.modules, original.__name__, new)
        exec(compile(source, original.__file__, "exec"), new.__dict__)
        return new

    def plant(where: str = "", old: str = "", wrong: str = "") -> ModuleType:
        made: dict[str, ModuleType] = {}
        for original in (masking, loops):
            assert original.__file__ is not None
            source = Path(original.__file__).read_text("utf-8")
            if original.__name__.endswith(f".{where}"):
                assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {where}"
                source = source.replace(old, wrong)
            made[original.__name__] = module(original, source)
        return made[loops.__name__]

    return plant


def test_a_result_that_is_no_repetition_is_never_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else thirty patterns go over all of its text."""
    asked: list[str] = []

    def looked(text: str) -> str:
        asked.append(text)
        return text

    monkeypatch.setattr(masking, "mask", looked)
    watch = loops.Loops(GuardCounts())
    for number in range(12):
        watch.observe("read", f'{{"page":{number}}}', f"page {number}", ok=True, read_only=True)
    assert not asked
    watch.observe("read", '{"page":11}', "page 11", ok=True, read_only=True)
    assert asked == ["page 11"] * 2
