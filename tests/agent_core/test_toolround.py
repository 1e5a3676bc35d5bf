"""What is remembered of the calls of a turn: who agreed to what, what nobody knows was done, what words of others came by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_core.jsonvalue import Json
from agent_core.rules.consents import LONGEST, Kind, Lasting
from agent_core.rules.taint import AskedWhy
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import ApprovalAnswered, ApprovalAsked, Refusal, ToolReturned, ToolStarted, Verdict
from agent_core.turn.state import Activity, ActivityState, Item
from agent_core.turn.toolround import DOUBTFUL, ToolRound
from tests.agent_core.turns import SETTINGS, TOOLS

TO_ANN, TO_BOB = '{"to":"ann"}', '{"to":"bob"}'
LINKING = replace(SETTINGS, tools=tuple(replace(tool, links=tool.name == "read") for tool in TOOLS))


class Rounds:
    """One turn's, with a call at a time."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.round = ToolRound(LINKING, self.items)
        self.calls = 0

    def begins(self, *names: str, arguments: str = TO_ANN) -> list[Activity]:
        found: list[Activity] = []
        for name in names:
            self.calls += 1
            found.append(Activity(f"a{self.calls}", f"c{self.calls}", name, arguments))
        self.round.begin(found)
        return found

    def back(
        self,
        one: Activity,
        status: ToolStatus = ToolStatus.OK,
        refusal: Refusal = Refusal.NONE,
        *,
        foreign: bool = False,
    ) -> None:
        if refusal is Refusal.NONE:
            self.round.started(ToolStarted(at=1, call=one.call))
        self.round.returned(
            ToolReturned(at=2, call=one.call, status=status, text="text", refusal=refusal, foreign=foreign)
        )

    def does(
        self, name: str, status: ToolStatus = ToolStatus.OK, arguments: str = TO_ANN, *, foreign: bool = False
    ) -> None:
        (one,) = self.begins(name, arguments=arguments)
        self.back(one, status, foreign=foreign)

    def doubts(self, name: str, arguments: str = TO_ANN) -> bool:
        return self.round.doubted(Activity("a", "c", name, arguments))


@pytest.mark.parametrize("sources", [(), ("a page",)])
@pytest.mark.parametrize("lasts", Lasting)
def test_what_was_agreed_to_is_kept_for_its_asker_and_with_what_was_read_then(
    lasts: Lasting, sources: tuple[str, ...]
) -> None:
    turn = Rounds()
    (one,) = turn.begins("danger")
    turn.round.asked(ApprovalAsked(at=5, call=one.call, seconds=60, sources=sources), ())
    assert one.approval_deadline == 60_005
    turn.round.approved(ApprovalAnswered(at=6, call=one.call, verdict=Verdict.GIVEN, by="ann", lasts=lasts), "bot/ann")
    assert (one.approved, one.state) == (True, ActivityState.WAITING)
    kind = Kind("danger", (("to", '"ann"'),), tainted=bool(sources), asker="bot/ann")
    assert list(turn.round.consents) == ([] if lasts is Lasting.ONCE else [kind])
    for tainted in (True, False):
        for arguments in (TO_ANN, TO_BOB):
            found = turn.round.consented(Activity("a", "c", "danger", arguments), (), tainted=tainted)
            agreed = lasts is not Lasting.ONCE and arguments == TO_ANN and (bool(sources) or not tainted)
            assert found is agreed


def test_where_words_of_others_stand_is_told_to_whoever_decides_also_if_the_question_says_nothing_of_it() -> None:
    turn = Rounds()
    (one,) = turn.begins("danger")
    turn.round.asked(ApprovalAsked(at=5, call=one.call, seconds=60), ("a page",))
    assert one.sources == ("a page",)


def test_who_agrees_that_something_is_done_anew_agrees_to_that_once() -> None:
    turn = Rounds()
    (one,) = turn.begins("send")
    turn.round.asked(ApprovalAsked(at=5, call=one.call, seconds=60, why=AskedWhy.REPEATED), ())
    turn.round.approved(
        ApprovalAnswered(at=6, call=one.call, verdict=Verdict.GIVEN, lasts=Lasting.CONVERSATION), "bot/ann"
    )
    assert turn.round.consents == {}


@pytest.mark.parametrize("status", ToolStatus)
def test_only_an_effect_that_may_have_been_done_is_in_doubt_until_it_is_done(status: ToolStatus) -> None:
    turn = Rounds()
    turn.does("send", status)
    doubtful = status in DOUBTFUL
    assert turn.doubts("send") is doubtful
    assert not turn.doubts("send", TO_BOB)
    assert not turn.doubts("danger")
    assert turn.round.tools_unsure == (("send",) if doubtful else ())
    for again in DOUBTFUL:
        turn.does("send", again)
        assert turn.doubts("send"), "nobody knows it of this one either"
    turn.does("send", arguments=TO_BOB)
    assert turn.doubts("send"), "that was another one"
    turn.does("send")
    assert turn.doubts("send") is False


@pytest.mark.parametrize("name", ["read", "write"])
def test_what_may_be_done_twice_is_never_in_doubt(name: str) -> None:
    turn = Rounds()
    turn.does(name, ToolStatus.TIMED_OUT)
    assert not turn.doubts(name)
    turn.does("send", ToolStatus.TIMED_OUT, arguments=f'{{"to":"{"x" * LONGEST}"}}')
    assert not turn.doubts(name)
    assert turn.doubts("send"), "what it did cannot be told apart"


def test_links_are_those_of_what_was_read_elsewhere_and_well() -> None:
    turn = Rounds()
    turn.does("read", ToolStatus.FAILED, foreign=True)
    turn.does("read", foreign=False)
    turn.does("todo", foreign=True)
    assert turn.round.links == ()
    assert turn.round.foreign == ("read", "todo")
    turn.does("read", foreign=True)
    assert turn.round.links == ("text",)


def test_calls_that_cannot_be_started_are_counted_in_a_row_and_once_a_reply() -> None:
    turn = Rounds()
    for count in (1, 2):
        for one in turn.begins("nope", "nope"):
            turn.back(one, ToolStatus.FAILED, Refusal.UNKNOWN_TOOL)
        assert (turn.round.unknown_tools, turn.round.unreadable) == (count, 0)
    for count in (1, 2):
        for one in turn.begins("read", "read", "nope"):
            refusal = Refusal.UNKNOWN_TOOL if one.name == "nope" else Refusal.UNREADABLE_ARGUMENTS
            turn.back(one, ToolStatus.FAILED, refusal)
        assert (turn.round.unknown_tools, turn.round.unreadable) == (2 + count, count)
    assert turn.round.tools_run == ()
    turn.does("read")
    assert (turn.round.unknown_tools, turn.round.unreadable) == (0, 0)


def test_at_the_end_what_had_begun_may_have_been_done_and_the_rest_was_not_run() -> None:
    turn = Rounds()
    read, sent, waits = turn.begins("read", "send", "send")
    for one in (read, sent):
        turn.round.started(ToolStarted(at=1, call=one.call))
    assert turn.round.unrepeatable
    assert turn.round.left() == (["read", "send"], ["send"])
    turn.round.close()
    assert [one.state for one in (read, sent, waits)] == [
        ActivityState.NOT_RUN,
        ActivityState.UNSURE,
        ActivityState.NOT_RUN,
    ]


def test_a_call_runs_since_it_was_begun_and_not_since_it_asked_somebody() -> None:
    rounds = Rounds()
    (one,) = rounds.begins("read")
    began: list[tuple[int, Json]] = [
        (1_000, {"put": "down"}),
        (5_000, {"questions_asked": []}),
        (9_000, {"questions_asked": [{}]}),
    ]
    for at, intention in began:
        rounds.round.started(ToolStarted(at=at, call=one.call, intention=intention))
    assert (one.since, one.intention) == (1_000, {"questions_asked": [{}]})
    rounds.round.resume()
    rounds.round.started(ToolStarted(at=20_000, call=one.call))
    assert one.since == 20_000, "begun again after a restart"
