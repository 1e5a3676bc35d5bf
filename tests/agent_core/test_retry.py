"""Trying again is one type, and its numbers stand in one file."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_core.retry as listed_in
from agent_core.retry import Retry
from tests.source import nodes

ROOT = Path(__file__).parents[2]
LISTED: dict[str, Retry] = {name: one for name, one in vars(listed_in).items() if isinstance(one, Retry)}

RETRIES = st.builds(
    Retry,
    first=st.floats(0.01, 100),
    most=st.floats(0.01, 100_000),
    factor=st.floats(1, 10),
    least=st.floats(0, 1),
    attempts=st.integers(0, 20),
)
ATTEMPTS = st.integers(1, 10**6)
CHANCES = st.floats(0, 1)


@given(RETRIES, ATTEMPTS, CHANCES)
def test_no_pause_is_longer_than_the_longest_nor_shorter_than_its_least_share(one: Retry, attempt: int, chance: float):
    pause = one.seconds(attempt, chance)
    longest = one.seconds(attempt)
    assert 0 <= longest <= one.most
    assert longest * one.least * 0.999 <= pause <= longest * 1.001


@given(RETRIES, ATTEMPTS, CHANCES)
def test_a_later_attempt_waits_no_less(one: Retry, attempt: int, chance: float):
    assert one.seconds(attempt, chance) <= one.seconds(attempt + 1, chance)


@given(RETRIES, ATTEMPTS, CHANCES, CHANCES)
def test_more_chance_waits_no_less(one: Retry, attempt: int, chance: float, other: float):
    less, more = sorted((chance, other))
    assert one.seconds(attempt, less) <= one.seconds(attempt, more) * 1.000001


@given(RETRIES, st.integers(-5, 0), CHANCES)
def test_before_the_first_attempt_nothing_is_waited_for(one: Retry, attempt: int, chance: float):
    assert one.seconds(attempt, chance) == 0
    assert not one.over(attempt)


@given(RETRIES, ATTEMPTS)
def test_it_is_given_up_after_so_many_attempts_and_stays_so(one: Retry, attempt: int):
    assert one.over(attempt) == (one.attempts != 0 and attempt >= one.attempts)


@given(RETRIES, st.floats(0.01, 100))
def test_the_first_pause_is_the_first_number_and_doubles_from_there(one: Retry, first: float):
    free = replace(one, first=first, most=1e12, factor=2.0, least=1.0)
    assert [free.seconds(n) for n in (1, 2, 3)] == [first, 2 * first, 4 * first]


@pytest.mark.parametrize("name", sorted(LISTED))
def test_what_is_listed_makes_sense_and_is_used(name: str):
    one = LISTED[name]
    assert one.first > 0
    assert one.most >= one.first
    assert 0 <= one.least <= 1
    users = [path for path in sources() if path.name != "retry.py" and name in names_from_retry(path.read_text())]
    assert users, f"{name} is nobody's"


# ---------------------------------------------------------------------- one place


def sources() -> Iterator[Path]:
    for package in ("agent_core", "adapters", "gateway"):
        yield from (ROOT / package).rglob("*.py")


def names_from_retry(source: str) -> set[str]:
    """What a module takes of the list."""
    taken = (node for node in nodes(source) if isinstance(node, ast.ImportFrom))
    return {name.name for node in taken if node.module == "agent_core.retry" for name in node.names}


PAUSES = ("pause", "delay", "wait", "backoff", "again", "retry")


def growing(source: str) -> list[int]:
    """Lines where a pause grows by arithmetic of its own: a power of something that counts, or a pause that is doubled."""
    lines: list[int] = []
    for node in nodes(source):
        match node:
            case ast.BinOp(left=ast.Constant(value=int() | float() as base), op=ast.Pow(), right=right):
                if base > 1 and not isinstance(right, ast.Constant | ast.UnaryOp):
                    lines.append(node.lineno)
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=ast.Constant(value=int() | float() as by)):
                if any(word in name.lower() for word in PAUSES) and not name.isupper() and by != 1000:
                    lines.append(node.lineno)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Mult()) if any(word in name for word in PAUSES):
                lines.append(node.lineno)
            case _:
                pass
    return lines


def test_no_pause_grows_by_arithmetic_of_its_own():
    found = {str(path.relative_to(ROOT)): growing(path.read_text()) for path in sources() if path.name != "retry.py"}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "own",
    ["pause = min(MOST, pause * 2)", "delay *= 1.5", "wait = FIRST * 2.0 ** min(tries, 10)", "x = 0.5 * 2 ** attempt"],
)
def test_arithmetic_of_its_own_is_found(own: str):
    assert growing(own)


ASKED = """
from dataclasses import replace
from agent_core.ports import SystemClock
from agent_core.settings import TurnSettings
from adapters.delivery.aftermath import LONGEST_MS
from gateway.setaside.takeup import KnownItem, LeftItem, LeftKind, again
print(TurnSettings(routes=()).retry_min_seconds, LONGEST_MS, again(KnownItem(LeftItem(LeftKind.PART, "x", 0), 0.0), 0.0).not_before)
"""


def test_a_number_is_changed_in_one_file_and_everybody_has_it(tmp_path: Path):
    for package in ("agent_core", "adapters", "gateway"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    listed = tmp_path / "agent_core" / "retry.py"
    changed = listed.read_text()
    for before, after in (("MODEL = Retry(1.0,", "MODEL = Retry(7.0,"), ("DELIVERY = Retry(1.0, 300.0", "DELIVERY = Retry(1.0, 77.0"),
                          ("TAKE_UP = Retry(0.5,", "TAKE_UP = Retry(0.75,")):  # fmt: skip
        assert before in changed
        changed = changed.replace(before, after)
    listed.write_text(changed)
    done = subprocess.run([sys.executable, "-B", "-c", ASKED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["7.0", "77000", "0.75"]
