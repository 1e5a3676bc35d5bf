"""Loops are stopped, whatever they are dressed in, and honest work is not: measured on the corpus, whole and held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from agent_core.failures.exits import ExitCode
from agent_core.rules.loops import LoopFinding, Loops
from agent_core.settings import GuardCounts
from tests.corpora.calls import Sequence, sequences
from tests.corpora.score import Score

DEVELOPMENT = sequences("development")
HELD_OUT = sequences("held_out")
EVERYTHING = DEVELOPMENT + HELD_OUT
RULES = (
    ExitCode.REPEATING_FAILING_CALL,
    ExitCode.FAILING_TOOL,
    ExitCode.NO_PROGRESS,
    ExitCode.GOING_IN_CIRCLES,
)


def findings(sequence: Sequence) -> list[LoopFinding]:
    """What was said of the calls, up to the stop."""
    loops = Loops(GuardCounts())
    said: list[LoopFinding] = []
    for call in sequence.calls:
        finding = loops.observe(call.tool, call.arguments, call.result, ok=call.ok, read_only=call.read_only)
        if finding is not None:
            said.append(finding)
            if finding.stop:
                break
    return said


def stopped(sequence: Sequence) -> ExitCode | None:
    said = findings(sequence)
    return said[-1].code if said and said[-1].stop else None


def score(corpus: list[Sequence]) -> Score:
    return Score.of((sequence.code is not None, stopped(sequence) is not None) for sequence in corpus)


@pytest.mark.parametrize(
    ("name", "corpus"), [("all", EVERYTHING), ("held out", HELD_OUT), ("development", DEVELOPMENT)]
)
def test_loops_are_told_from_honest_work(name: str, corpus: list[Sequence], figure: Callable[[str], None]) -> None:
    result = score(corpus)
    figure(f"loops, {name}: {len(corpus)} sequences, {result}")
    if corpus is DEVELOPMENT:  # nobody looks into the other half
        for sequence in corpus:
            if sequence.code is not stopped(sequence):
                print(f"{sequence.name}: {sequence.code}, but stopped by {stopped(sequence)}")
    assert result.precision >= 0.95
    assert result.recall >= 0.9


@pytest.mark.parametrize("code", RULES)
def test_each_rule_finds_its_own(code: ExitCode, figure: Callable[[str], None]) -> None:
    corpus = [sequence for sequence in EVERYTHING if sequence.code is code]
    found = Counter(stopped(sequence) for sequence in corpus)
    figure(f"loops, {code}: {len(corpus)} sequences, {found[code]} stopped by this rule, {found[None]} by none")
    assert found[code] >= 0.9 * len(corpus)


@pytest.mark.parametrize("sequence", DEVELOPMENT, ids=lambda sequence: sequence.name)
def test_the_right_rule_stops_it_and_has_warned_before(sequence: Sequence) -> None:
    assert stopped(sequence) is sequence.code
    said = findings(sequence)
    if sequence.code is not None:
        assert any(finding.code is sequence.code and not finding.stop for finding in said)


def test_the_corpus_is_what_it_says() -> None:
    assert len(EVERYTHING) >= 300
    assert len({sequence.name for sequence in EVERYTHING}) == len(EVERYTHING)
    for half in (DEVELOPMENT, HELD_OUT):
        told = Counter(sequence.code for sequence in half)
        assert set(told) == {*RULES, None}
        assert told[None] >= 40
        assert len(half) - told[None] >= 60
