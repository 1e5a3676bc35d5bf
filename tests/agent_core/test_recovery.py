"""The ladders as data: they end, they are bounded, and they never repeat what cannot help."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.remedies import (
    CAUSE_TO_EXIT,
    CAUSE_TO_FAILURE,
    LADDERS,
    Case,
    Failure,
    Helps,
    Pause,
    Remedy,
    exit_for,
    next_remedy,
    next_route,
    pause_seconds,
)
from agent_core.settings import LadderCounts, Route, patience

ROOT = Path(__file__).parents[2]
ROUTES = (Route("m1", "h", "k1"), Route("m1", "h", "k2"), Route("m2", "h", "k1"), Route("m2", "h", "k2"))


def case(failure: Failure, routes: tuple[Route, ...] = ROUTES, current: int = 0, *, too_long: bool = False) -> Case:
    """A failure in a turn in which there is always something left to leave out."""
    return Case(failure, BreakCause.DROPPED, routes, current, LadderCounts(), too_long=too_long, left=True)


@pytest.mark.parametrize("failure", list(Failure))
def test_the_remedies_against_every_failure_come_to_an_end(failure: Failure):
    chosen: Counter[tuple[Failure, Remedy]] = Counter()
    route = 0
    while (found := next_remedy(case(failure, ROUTES, route), chosen)) is not None:
        remedy, use = found
        chosen[failure, remedy] += 1
        if remedy is Remedy.NEXT_ROUTE:
            following = next_route(ROUTES, route, use.helps)
            assert following is not None
            assert following > route
            route = following
        assert chosen.total() < 20
    for remedy, use in LADDERS[failure]:
        assert chosen[failure, remedy] <= use.times(LadderCounts())


@pytest.mark.parametrize("failure", [Failure.CREDENTIAL, Failure.REQUEST])
def test_what_the_same_route_cannot_mend_is_never_sent_there_as_it_was(failure: Failure):
    assert all(remedy in (Remedy.NEXT_ROUTE, Remedy.LEAVE_OUT) for remedy, _ in LADDERS[failure])


def test_the_ladders_are_those_of_the_rules():
    def remedies(failure: Failure) -> list[tuple[Remedy, int | Helps]]:
        counts = LadderCounts()
        return [(one, use.helps if one is Remedy.NEXT_ROUTE else use.times(counts)) for one, use in LADDERS[failure]]

    model, doubted = (Remedy.NEXT_ROUTE, Helps.OTHER_MODEL), (Remedy.LEAVE_OUT, 2)
    assert remedies(Failure.BEFORE_CONTENT) == [(Remedy.RETRY, 3), (Remedy.NEXT_ROUTE, Helps.ANY), doubted]
    assert remedies(Failure.IN_TEXT) == [(Remedy.CONTINUE, 2), model]
    assert remedies(Failure.NOTHING_MORE) == [(Remedy.CONTINUE, 3), (Remedy.NEXT_ROUTE, Helps.ANY)]
    assert remedies(Failure.THOUGHT_MORE) == [(Remedy.CONTINUE, 2), model]
    assert remedies(Failure.IN_TOOL_CALL) == [(Remedy.RETRY, 1), (Remedy.ADVISE_SMALLER, 1), model]
    assert remedies(Failure.EMPTY) == [(Remedy.RETRY, 1), (Remedy.NUDGE, 2), model, doubted]
    assert remedies(Failure.THINKING_ONLY) == [(Remedy.CONTINUE_THINKING, 2), model, doubted]
    assert remedies(Failure.PROMISED) == [(Remedy.NUDGE, 1), model]
    assert remedies(Failure.LENGTH) == [(Remedy.CONTINUE, 3)]
    assert remedies(Failure.LENGTH_IN_TOOL_CALL) == [(Remedy.ADVISE_SMALLER, 2), model]
    assert remedies(Failure.OVERFLOW) == [
        (Remedy.COMPACT, 1),
        (Remedy.NEXT_ROUTE, Helps.LARGER_WINDOW),
        (Remedy.LEAVE_OUT, 6),
    ]
    assert remedies(Failure.TOO_LARGE) == [(Remedy.COMPACT, 1), model, (Remedy.LEAVE_OUT, 6)]
    assert remedies(Failure.CREDENTIAL) == [(Remedy.NEXT_ROUTE, Helps.OTHER_CREDENTIAL)]
    assert remedies(Failure.REQUEST) == [model, (Remedy.LEAVE_OUT, 6)]


@pytest.mark.parametrize(
    ("here", "there", "helps"), [(8, 100, True), (100, 8, False), (8, 8, False), (0, 8, True), (8, 0, True)]
)
def test_a_model_helps_against_an_overflow_unless_its_context_is_known_to_be_no_larger(
    here: int, there: int, helps: bool
):
    routes = (Route("m1", "h", "k1", here), Route("m1", "h", "k2", here), Route("m2", "h", "k1", there))
    assert next_route(routes, 0, Helps.LARGER_WINDOW) == (2 if helps else None)


@given(st.integers(2, 60), st.integers(0, 2**63 - 1))
def test_a_second_try_in_the_text_waits_as_long_as_a_provider_takes_to_restart(number: int, seed: int):
    go_on = Remedy.CONTINUE.recipe.against[Failure.IN_TEXT].pause
    assert pause_seconds(go_on, 1, seed, 1, 30) == 0
    pause = pause_seconds(go_on, number, seed, 1, 30)
    assert 4 <= pause <= 10
    assert pause == pause_seconds(go_on, number, seed, 1, 30)
    assert pause_seconds(go_on, number, seed, 0.1, 0.5) == 0.5


def test_another_credential_and_another_model_are_told_apart():
    assert next_route(ROUTES, 0, Helps.OTHER_CREDENTIAL) == 1
    assert next_route(ROUTES, 0, Helps.OTHER_MODEL) == 2
    assert next_route(ROUTES, 3, Helps.ANY) is None


@pytest.mark.parametrize("cause", list(BreakCause))
def test_every_cause_leads_to_a_failure_and_an_exit(cause: BreakCause):
    failure = CAUSE_TO_FAILURE[cause]
    assert CAUSE_TO_EXIT[cause]
    for any_failure in (failure, *Failure):
        assert exit_for(any_failure, cause, tools_ran=True)


@given(st.integers(1, 60), st.integers(0, 2**63 - 1), st.floats(0.01, 5), st.floats(5, 60))
def test_backoff_stays_in_its_window_and_repeats_itself(number: int, seed: int, low: float, high: float):
    pause = pause_seconds(Pause.BACKOFF, number, seed, low, high)
    window = min(high, low * 2 ** (number - 1))
    assert window * 0.0999 <= pause <= window * 1.0001
    assert pause == pause_seconds(Pause.BACKOFF, number, seed, low, high)


def test_backoff_differs_between_turns():
    assert len({round(pause_seconds(Pause.BACKOFF, 3, seed, 1, 30), 6) for seed in range(200)}) > 190


def test_patience_grows_with_the_prompt():
    assert [patience(n) for n in (0, 50_000, 50_001, 100_001)] == [1.0, 1.0, 1.5, 2.0]


def test_a_retry_can_be_left_out_when_the_provider_asks_for_too_long_a_pause():
    found = next_remedy(case(Failure.BEFORE_CONTENT, too_long=True), {})
    assert found is not None
    assert found[0] is Remedy.NEXT_ROUTE
    nowhere = replace(case(Failure.BEFORE_CONTENT, ROUTES[:1], too_long=True), left=False)
    assert next_remedy(nowhere, {}) is None


@given(st.sampled_from(Failure), st.booleans(), st.booleans(), st.booleans())
def test_what_was_tried_for_earlier_failures_goes_first_and_to_do_without_the_tool_comes_last(
    failure: Failure, trying: bool, named: bool, breaks_off: bool
):
    asked = replace(case(failure), trying=trying, named=named, breaks_off="write" if breaks_off else "")
    used: Counter[tuple[Failure, Remedy]] = Counter()
    order: list[Remedy] = []
    while (found := next_remedy(replace(asked, current=3 if order else 0), used)) is not None:
        used[failure, found[0]] += 1
        order.append(found[0])
    assert (Remedy.AS_USUAL in order[:1], order.count(Remedy.AS_USUAL)) == (trying, trying)
    assert (Remedy.WITHOUT_TOOL in order[-1:], order.count(Remedy.WITHOUT_TOOL)) == (breaks_off, breaks_off)
    if named and failure in (Failure.OVERFLOW, Failure.TOO_LARGE, Failure.REQUEST):
        assert order[trying] is Remedy.LEAVE_OUT


@pytest.mark.parametrize("remedy", list(Remedy))
def test_every_remedy_has_words_for_everybody_who_hears_of_it(remedy: Remedy):
    recipe = remedy.recipe
    for words in (recipe.page, recipe.mended.format(model="m1")):
        assert re.fullmatch(r"[a-z].*[a-z0-9]", words)
    assert re.fullmatch(r"The gateway .*[a-z0-9]\{more\}\.", recipe.story)
    assert recipe.against or recipe.anyway(replace(case(Failure.IN_TOOL_CALL), trying=True, breaks_off="write"))


# ---------------------------------------------------------------------- one more


ADDED = """
    BREATHE = (
        "breathe",
        Recipe(
            against={Failure.CREDENTIAL: Use(lambda _: 2, Pause.BACKOFF)},
            put=Put.AS_TOLD,
            advises=lambda _: (Advice.BREATHE, "the door"),
            hiccup=False,
            page="wait at the door",
            story="waited at the door",
            mended="it waited at the door",
            tried="waiting at the door",
        ),
    )
"""
TOLD = '    BREATHE = ("breathe", "Wait at {detail}, then reply.")\n'
ASKED = """
import json
from agent_core.journal.rows import decode, encode, turn_of
from agent_core.failures.remedies import Remedy
from agent_core.learning.incidents import HICCUPS
from agent_core.learning.measured import best_remedy
from agent_core.learning.stalls import rows_of
from agent_core.turn.events import RemedyChosen
from agent_core.causes import BreakCause
from agent_core.turn.state import Mended, mended_words
from agent_core.turn.transcript import request_messages
from tests.printed.exits import markdown
from tests.agent_core.turns import Rig

rig = Rig()
rig.breaks(BreakCause.UNAUTHORISED, status=401)
asked = request_messages("", [], rig.turn, rig.calls[-1])[-1]["content"]
rig.says("Here I am.")
(mended,) = [entry for entry in rig.turn.timeline if isinstance(entry, Mended)]
events = [decode(*(lambda row: (row.kind, row.body))(encode(event))) for event in rig.fed]
print(json.dumps({
    "page": markdown(), "asked": asked, "people": mended_words(mended), "stored": rows_of(rig.turn)[0].rung,
    "hiccup": Remedy.BREATHE in HICCUPS, "best": best_remedy([(Remedy.BREATHE, True, 3)]), "tried": rig.turn.troubles.tried("", rig.turn.remedies),
    "read": turn_of(events).remedies == rig.turn.remedies, "code": rig.turn.exit.code.value,
    "story": [event.remedy.recipe.story for event in rig.fed if isinstance(event, RemedyChosen)],
}))
"""


def test_a_new_remedy_is_one_record_in_one_file(tmp_path: Path):
    for folder in ("agent_core", "gateway"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    file = tmp_path / "agent_core" / "failures" / "remedies.py"
    text = file.read_text("utf-8")
    file.write_text(
        text.replace("    NEXT_ROUTE = (", f"{ADDED}    NEXT_ROUTE = (").replace(
            "    SUM_UP_LIMIT = (", f"{TOLD}    SUM_UP_LIMIT = ("
        ),
        "utf-8",
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    printed = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=120
    )
    found = json.loads(printed.stdout)
    row = next(line for line in found.pop("page").splitlines() if line.startswith("| 401, 402, 403 |"))
    assert (
        row
        == "| 401, 402, 403 | wait at the door (2 times); then the next key or model with another key, if there is one |"
    )
    assert "Wait at the door, then reply." in found.pop("asked")
    assert found == {
        "people": "The model did not answer; it waited at the door – recovered.", "stored": "breathe", "hiccup": False,
        "best": "breathe", "tried": ["waiting at the door"], "read": True, "code": "answered", "story": ["waited at the door"],
    }  # fmt: skip
