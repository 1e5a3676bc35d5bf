"""What a conversation remembers of calls that broke off, what follows from it for its next turn, and what a turn leaves behind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.exits import ExitCode
from agent_core.failures.known import Known, KnownIncident, KnownStall
from agent_core.failures.remedies import Advice, Remedy
from agent_core.failures.troubles import WHOLE_CHARS, RemedyOutcome, Trouble, TurnTroubles, size_bucket
from agent_core.journal.rows import decode, encode
from agent_core.learning.prevention import TurnStart, prevention
from agent_core.learning.stalls import REMEMBER_MS, rows_of, stalls_of
from agent_core.settings import Route
from agent_core.store.troubles.rows import FORESEEN, TroubleRow
from agent_core.turn.transcript import request_messages
from tests.agent_core.turns import ROUTE, SETTINGS, Rig, opened

CUT = '{"content": "ab'
NOW = 1_700_000_000_000
OTHER = Route("m2", "other", "k2")


def row(
    code: ExitCode = ExitCode.BROKEN_IN_TOOL_CALL, *, ended: bool = False, at: int = NOW, tool: str = "write", chars: int = 500,
    rung: str = "advise_smaller", outcome: str = "not_helped", cause: str = "", model: str = "m1",
) -> TroubleRow:  # fmt: skip
    trouble = Trouble(code, None, "host", model, tool, chars)
    return TroubleRow(
        number=0, at=at, conversation="c", fingerprint=trouble.fingerprint, code=code.value, cause=cause, endpoint="host",
        model=model, tool=tool, size=size_bucket(chars), chars=chars, rung=rung, outcome=outcome, ended=ended,
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
    assert stalls_of(cleared, NOW) == ()


@given(histories)
def test_a_turn_counts_once_however_often_it_tried(history: list[tuple[str, TroubleRow]]) -> None:
    for stall in stalls_of(history, NOW):
        ended = {turn for turn, one in history if one.ended and one.tool == stall.tool}
        assert stall.ended <= len(ended)


@given(histories)
def test_nothing_but_calls_that_broke_off_lately_is_remembered(history: list[tuple[str, TroubleRow]]) -> None:
    found = {stall.tool for stall in stalls_of(history, NOW)}
    assert found == {
        one.tool for _, one in history if one.tool and one.code != ExitCode.EMPTY_REPLY and NOW - one.at < REMEMBER_MS
    }


def test_a_small_call_is_not_a_large_one() -> None:
    small, large = row(ended=True, chars=500), row(ended=True, chars=20_000)
    found = stalls_of([("t1", small), ("t2", large), ("t3", large)], NOW)
    assert [(stall.size, stall.ended) for stall in found] == [("S", 1), ("L", 2)]


def test_what_helped_in_the_conversation_is_known_also_if_it_was_only_to_ask_again() -> None:
    retried = [("t1", row(rung="retry", outcome="helped")), ("t2", row(rung="retry", outcome="helped"))]
    (stall,) = stalls_of(retried, NOW)
    assert stall.remedy is Remedy.RETRY
    (stall,) = stalls_of([("t1", row(rung="retry")), ("t1", row(outcome="helped"))], NOW)
    assert (stall.remedy, stall.models) == (Remedy.ADVISE_SMALLER, (("host", "m1"),))


def test_what_was_tried_beforehand_is_measured_and_is_no_failure() -> None:
    foreseen = row(cause=FORESEEN, outcome="helped", at=NOW - 1)
    assert stalls_of([("t1", foreseen)], NOW) == ()
    (stall,) = stalls_of([("t1", row(rung="")), ("t2", foreseen)], NOW)
    assert (stall.remedy, stall.ended) == (Remedy.ADVISE_SMALLER, 0)


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


def test_no_tool_is_taken_away_beforehand_also_by_what_an_older_version_knew() -> None:
    start = prevention(SETTINGS, stall(ended=3, withheld=True))
    assert [(item.advice, item.detail) for item in start.advice] == [(Advice.SMALLER_FROM_START, "write")]


@pytest.mark.parametrize(
    ("remedy", "advised"),
    [
        (None, True),
        (Remedy.ADVISE_SMALLER, True),
        (Remedy.NEXT_ROUTE, True),
        (Remedy.RETRY, False),
        (Remedy.AS_USUAL, False),
    ],
)
def test_where_nothing_special_was_needed_nothing_special_is_done(remedy: Remedy | None, advised: bool) -> None:
    assert bool(prevention(SETTINGS, stall(remedy=remedy)).advice) is advised


def test_what_broke_off_at_another_model_says_nothing_about_this_one() -> None:
    assert prevention(SETTINGS, stall(ended=2, models=(("host", "m9"),))) == TurnStart()


def test_a_model_at_which_the_same_calls_broke_off_is_passed_over_as_well() -> None:
    third = Route("m3", "third", "k3")
    chain = replace(SETTINGS, routes=(ROUTE, OTHER, third))
    assert prevention(chain, stall(ended=2, models=(("host", "m1"), ("other", "m2")))).route == 2


@pytest.mark.parametrize(
    ("incident", "advised", "route"),
    [
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write"), False, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Remedy.RETRY), False, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Remedy.ADVISE_SMALLER), True, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "gone", Remedy.ADVISE_SMALLER), False, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Remedy.NEXT_ROUTE), False, 1),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m9", "write", Remedy.NEXT_ROUTE), False, 0),
        (KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "else", "m1", "write", Remedy.ADVISE_SMALLER), False, 0),
        (KnownIncident(ExitCode.PROVIDER_DOWN, "host", "m1", "", Remedy.NEXT_ROUTE), False, 1),
        (KnownIncident(ExitCode.REFUSED, "host", "m1", "", Remedy.NEXT_ROUTE), False, 0),
        (KnownIncident(ExitCode.RATE_LIMITED, "host", "m1", "", Remedy.NEXT_ROUTE), False, 0),
    ],
)
def test_a_turn_begins_with_what_was_measured_to_help_its_first_model(
    incident: KnownIncident, advised: bool, route: int
) -> None:
    start = prevention(replace(SETTINGS, routes=(ROUTE, OTHER)), Known(incidents=(incident,)))
    assert (bool(start.advice), start.route) == (advised, route)


# ---------------------------------------------------------------------- in the turn


def asked(rig: Rig) -> str:
    return str(request_messages("", [], rig.turn, rig.last_call))


def test_what_was_tried_beforehand_and_fails_is_set_back_and_the_whole_ladder_follows() -> None:
    chain = (ROUTE, OTHER)
    rig = Rig(replace(SETTINGS, routes=chain), stall(ended=2))
    assert rig.last_call.route == OTHER
    assert "smaller pieces" in asked(rig)
    seen: list[tuple[str, bool]] = []
    for _ in range(4):
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
        seen.append((rig.last_call.route.model, "smaller pieces" in asked(rig)))
    assert seen == [("m1", False), ("m1", False), ("m1", True), ("m2", True)]
    assert [remedy for _, remedy in rig.turn.remedies] == [
        Remedy.AS_USUAL,
        Remedy.RETRY,
        Remedy.ADVISE_SMALLER,
        Remedy.NEXT_ROUTE,
    ]


def test_the_first_call_after_that_has_all_of_its_time() -> None:
    rig = Rig(known=stall())
    rig.begins_call("write", CUT)
    rig.breaks(BreakCause.STALLED)
    assert not rig.turn.hurried
    rig.begins_call("write", CUT)
    rig.breaks(BreakCause.STALLED)
    assert rig.turn.hurried


def test_the_same_stall_again_is_the_name_of_an_end_after_the_whole_ladder_and_after_text_was_asked_for() -> None:
    rig = Rig(known=stall(ended=2, size="S"))
    withheld: list[bool] = []
    while rig.turn.exit is None:
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
        withheld.append(bool(rig.turn.withheld))
    assert rig.code is ExitCode.SAME_STALL_AGAIN
    assert withheld[:-1] == [False, False, False, True]
    assert [remedy for _, remedy in rig.turn.remedies] == [
        Remedy.AS_USUAL,
        Remedy.RETRY,
        Remedy.ADVISE_SMALLER,
        Remedy.WITHOUT_TOOL,
    ]
    assert isinstance(rig.exit, exits.SameStallAgain)
    assert rig.exit.tried == ("advice to send smaller pieces", "the same call again", "asking for text instead")
    assert rig.exit.count == 3


def test_the_tool_is_back_with_the_next_step() -> None:
    rig = Rig(known=stall(ended=2, size="S"))
    for _ in range(4):
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    assert rig.turn.withheld == {"write"}
    rig.calls_tool("read")
    assert rig.turn.withheld == set()


def test_a_stall_of_another_size_is_another_stall() -> None:
    rig = Rig(known=stall(ended=5, size="XL"))
    while rig.turn.exit is None:
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    assert rig.code is ExitCode.BROKEN_IN_TOOL_CALL


@pytest.mark.parametrize(("arrives", "outcome"), [(True, "helped"), (False, "not_helped")])
def test_what_became_of_the_advice_beforehand_is_measured(arrives: bool, outcome: str) -> None:
    known = Known(
        incidents=(KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Remedy.ADVISE_SMALLER, "L"),)
    )
    rig = Rig(known=known)
    if arrives:
        rig.calls_tool("write")
        rig.returns()
    else:
        rig.begins_call("write", CUT)
        rig.breaks(BreakCause.STALLED)
    rig.says("done")
    found = [one for one in rows_of(rig.turn) if one.cause == FORESEEN]
    assert [(one.fingerprint, one.rung, one.outcome) for one in found] == [
        ("broken_in_tool_call|host|m1|write|L", "advise_smaller", outcome)
    ]


def test_advice_that_was_not_needed_is_not_measured_and_neither_is_what_failed_for_another_reason() -> None:
    known = Known(
        incidents=(KnownIncident(ExitCode.BROKEN_IN_TOOL_CALL, "host", "m1", "write", Remedy.ADVISE_SMALLER),)
    )
    rig = Rig(known=known)
    rig.breaks(BreakCause.UNAUTHORISED, status=401)
    assert [one.cause for one in rows_of(rig.turn)] == ["unauthorised"]
    rig = Rig(known=stall())
    rig.says("Hello!")
    assert rows_of(rig.turn) == ()


def test_a_limit_that_the_client_set_is_no_trouble() -> None:
    rig = Rig(replace(SETTINGS, client_output_limit=True))
    rig.says("as much as fits", "length")
    assert rig.code is ExitCode.CUT_BY_LENGTH
    assert rows_of(rig.turn) == ()


def test_what_a_turn_knows_survives_the_journal() -> None:
    event = replace(opened(), known=replace(stall(ended=2, tried=(Remedy.RETRY,)), conversation="api#1"))
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
    record = TurnTroubles(stall())
    record.advised = advised
    assert record.came_whole([("read", 90_000), ("write", chars)]) == (("write",) if cleared else ())


def test_smaller_calls_say_nothing_about_larger_ones() -> None:
    assert TurnTroubles(stall(chars=30_000)).came_whole([("write", 900)]) == ()


def test_a_remedy_is_judged_once() -> None:
    record = TurnTroubles()
    record.judge(helped=True)
    assert record.found == ()
    record.note(Trouble(ExitCode.EMPTY_REPLY, None, "host", "m1"))
    assert record.found[0].outcome is RemedyOutcome.NOT_KNOWN
