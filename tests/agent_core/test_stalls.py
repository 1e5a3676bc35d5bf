"""What a conversation remembers of calls that broke off, what follows from it for its next turn, and what a turn leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.exits import BreakCause, ExitCode
from agent_core.journal import decode, encode
from agent_core.known import Known, KnownIncident, KnownStall
from agent_core.prevention import prevention
from agent_core.recovery import Advice, Rung
from agent_core.settings import Route
from agent_core.stalls import REMEMBER_MS, WITHHOLD_MS, rows_of, stalls_of
from agent_core.store.rows import TroubleRow
from agent_core.troubles import WHOLE_CHARS, Outcome, Trouble, Troubles, size_bucket
from tests.agent_core.turns import ROUTE, SETTINGS, Rig, opened

NOW = 1_700_000_000_000
OTHER = Route("m2", "other", "k2")


def row(code: ExitCode = ExitCode.BROKEN_IN_TOOL_CALL, *, ended: bool = False, at: int = NOW, tool: str = "write", chars: int = 500, rung: str = "retry") -> TroubleRow:  # fmt: skip
    trouble = Trouble(code, None, "host", "m1", tool, chars)
    return TroubleRow(
        number=0, at=at, conversation="c", fingerprint=trouble.fingerprint, code=code.value, cause="", endpoint="host",
        model="m1", tool=tool, size=size_bucket(chars), chars=chars, rung=rung, outcome="not_helped", ended=ended,
    )  # fmt: skip


troubles = st.builds(
    row,
    st.sampled_from([ExitCode.BROKEN_IN_TOOL_CALL, ExitCode.TOOL_CALL_CUT_BY_LENGTH, ExitCode.EMPTY_REPLY]),
    ended=st.booleans(),
    at=st.integers(NOW - 2 * REMEMBER_MS, NOW),
    tool=st.sampled_from(["write", "send", ""]),
    chars=st.integers(0, 50_000),
)
histories = st.lists(st.tuples(st.sampled_from(["t1", "t2", "t3", "t4"]), troubles), max_size=20)


@given(histories)
def test_a_call_that_came_whole_clears_all_that_was_before_it(history: list[tuple[str, TroubleRow]]) -> None:
    cleared = [*history, *(("t9", row(ExitCode.ANSWERED, tool=tool)) for tool in ("write", "send"))]
    assert stalls_of(cleared, NOW, rounds=3) == ()


@given(histories)
def test_a_turn_counts_once_however_often_it_tried(history: list[tuple[str, TroubleRow]]) -> None:
    for stall in stalls_of(history, NOW, rounds=3):
        ended = {turn for turn, one in history if one.ended and one.tool == stall.tool}
        assert stall.ended <= len(ended)


@given(histories)
def test_nothing_but_calls_that_broke_off_lately_is_remembered(history: list[tuple[str, TroubleRow]]) -> None:
    found = {stall.tool for stall in stalls_of(history, NOW, rounds=3)}
    assert found == {
        one.tool for _, one in history if one.tool and one.code != ExitCode.EMPTY_REPLY and NOW - one.at < REMEMBER_MS
    }


def test_a_tool_is_withheld_for_an_hour_after_the_third_turn() -> None:
    history = [(f"t{n}", row(ended=True)) for n in range(3)]
    assert [s.withheld for s in stalls_of(history[:2], NOW, rounds=3)] == [False]
    assert [s.withheld for s in stalls_of(history, NOW + WITHHOLD_MS - 1, rounds=3)] == [True]
    assert [s.withheld for s in stalls_of(history, NOW + WITHHOLD_MS, rounds=3)] == [False]


# ---------------------------------------------------------------------- before the first call


def stall(**more: object) -> Known:
    return Known(stalls=(replace(KnownStall("write", 500), **more),))


def test_a_turn_that_knows_nothing_begins_as_ever() -> None:
    start = prevention(SETTINGS, Known())
    assert (start.route, start.advice) == (0, ())


@pytest.mark.parametrize(("ended", "route"), [(0, 0), (1, 0), (2, 1), (5, 1)])
def test_from_the_second_turn_that_ended_so_the_next_model_is_asked(ended: int, route: int) -> None:
    chain = replace(SETTINGS, routes=(ROUTE, OTHER))
    start = prevention(chain, stall(ended=ended))
    assert [item.advice for item in start.advice] == [Advice.SMALLER_FROM_START]
    assert start.route == route
    assert prevention(SETTINGS, stall(ended=ended)).route == 0


def test_a_tool_that_is_not_offered_is_no_matter() -> None:
    known = Known(stalls=(KnownStall("gone", 500, ended=3),))
    assert prevention(SETTINGS, known).advice == ()


def test_a_withheld_tool_is_explained_unless_it_is_the_clients() -> None:
    start = prevention(SETTINGS, stall(ended=3, withheld=True))
    assert [(item.advice, item.detail) for item in start.advice] == [(Advice.WITHHELD, "write")]
    theirs = replace(SETTINGS, client_tools=("write",))
    assert [item.advice for item in prevention(theirs, stall(withheld=True)).advice] == [Advice.SMALLER_FROM_START]


@pytest.mark.parametrize(
    ("incident", "advised", "route"),
    [
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write"), True, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Rung.NEXT_ROUTE), True, 1),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m9", "write", Rung.NEXT_ROUTE), False, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "else", "m1", "write"), False, 0),
        (KnownIncident(ExitCode.PROVIDER_DOWN, "host", "m1", "", Rung.NEXT_ROUTE), False, 0),
    ],
)
def test_an_incident_counts_for_the_model_that_it_is_about(incident: KnownIncident, advised: bool, route: int) -> None:
    start = prevention(replace(SETTINGS, routes=(ROUTE, OTHER)), Known(incidents=(incident,)))
    assert (bool(start.advice), start.route) == (advised, route)


# ---------------------------------------------------------------------- in the turn


def test_the_remedy_that_helps_most_comes_first() -> None:
    chain = (ROUTE, OTHER)
    plain = Rig(replace(SETTINGS, routes=chain))
    plain.breaks(BreakCause.SERVER_ERROR)
    assert plain.turn.rungs[-1][1] is Rung.RETRY
    known = Known(incidents=(KnownIncident(ExitCode.PROVIDER_DOWN, "host", "m1", "", Rung.NEXT_ROUTE),))
    rig = Rig(replace(SETTINGS, routes=chain), known)
    rig.breaks(BreakCause.SERVER_ERROR)
    assert rig.turn.rungs[-1][1] is Rung.NEXT_ROUTE
    assert rig.turn.route == OTHER


def test_what_a_turn_knows_survives_the_journal() -> None:
    event = replace(opened(), known=replace(stall(ended=2, tried=(Rung.RETRY,)), conversation="api#1"))
    written = encode(event)
    assert decode(written.kind, written.body) == event


def test_every_failure_leaves_a_row_with_its_remedy_and_what_became_of_it() -> None:
    rig = Rig()
    rig.breaks(BreakCause.SERVER_ERROR)
    rig.breaks(BreakCause.UNREACHABLE)
    rig.says("done")
    rows = rows_of(rig.turn)
    assert [(r.code, r.cause, r.rung, r.outcome, r.ended) for r in rows] == [
        ("provider_down", "server_error", "retry", "not_helped", False),
        ("provider_down", "unreachable", "retry", "helped", False),
    ]


def test_the_failure_that_ends_a_turn_is_one_row() -> None:
    rig = Rig()
    for _ in range(4):
        rig.breaks(BreakCause.SERVER_ERROR)
    rows = rows_of(rig.turn)
    assert [(r.rung, r.ended) for r in rows] == [("retry", False)] * 3 + [("", True)]
    assert {r.fingerprint for r in rows} == {"provider_down|host|m1|-|-"}


# ---------------------------------------------------------------------- what clears


@pytest.mark.parametrize(
    ("chars", "advised", "cleared"),
    [
        (499, False, True),  # the same size bucket
        (1, False, True),
        (20_000, False, True),
        (600, True, False),  # a piece, as it was advised
        (WHOLE_CHARS - 1, True, False),
        (WHOLE_CHARS, True, True),
    ],
)
def test_pieces_clear_nothing_and_whole_calls_do(chars: int, advised: bool, cleared: bool) -> None:
    record = Troubles(stall())
    record.advised = advised
    assert record.came_whole([("read", 90_000), ("write", chars)]) == (("write",) if cleared else ())


def test_smaller_calls_say_nothing_about_larger_ones() -> None:
    record = Troubles(stall(chars=30_000))
    assert record.came_whole([("write", 900)]) == ()


def test_a_remedy_is_judged_once() -> None:
    record = Troubles()
    record.judge(helped=True)
    assert record.found == []
    record.note(Trouble(ExitCode.EMPTY_REPLY, None, "host", "m1"))
    assert record.found[0].outcome is Outcome.NOT_KNOWN
