"""How mutants are made: each is another program that can be read, and the mistakes that matter are among them."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.making import mutants
from tests.mutants.map import ASKED, modules
from tests.mutants.named import Named, named, planted
from tests.mutants.page import PAGE, page
from tests.mutants.run import RESULTS

ROOT = Path(__file__).parents[2]
SOURCE = '''
def f(a, b):
    """Words."""
    log.info("said")
    if a < 3 and not b:
        first(a)
        second()
    try:
        x.y = 1
    except OSError:
        raise
    return store.lease_ok()
'''
KINDS = (
    "comparison", "condition", "condition left out", "not left out", "number", "always", "never", "statement left out",
    "except widened", "check left out",
)  # fmt: skip


def test_each_rule_makes_its_change_and_nothing_that_is_only_said_is_changed() -> None:
    made = mutants("m.py", SOURCE)
    assert set(KINDS) <= {one.kind for one in made}
    assert not [one for one in made if "log" in one.before or "Words" in one.before]
    assert len({one.source for one in made}) == len(made)
    for one in made:
        ast.parse(one.source)
        assert one.source != ast.unparse(ast.parse(SOURCE))


def test_mutants_are_made_of_the_whole_product_and_the_tests_are_there() -> None:
    assert {path.partition("/")[0] for path in modules()} == {"agent_core", "adapters", "gateway"}
    assert modules(["slack/missed"]) == ["adapters/slack/missed.py"]
    for test in ASKED:
        assert (ROOT / test).exists(), test


@cache
def unparsed(path: str) -> str:
    return ast.unparse(ast.parse((ROOT / path).read_text("utf-8")))


@pytest.mark.parametrize("one", planted(), ids=lambda one: one.what)
def test_what_was_planted_once_can_be_planted_still(one: Named) -> None:
    made = named(one, ROOT)
    assert made.source != unparsed(one.path)
    assert made.within


def test_the_page_is_as_it_is_printed() -> None:
    assert PAGE.read_text("utf-8") == page(json.loads(RESULTS.read_text("utf-8"))), "run: make mutants"
