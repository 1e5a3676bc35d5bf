"""Events as rows and back: nothing is lost, nothing is guessed."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures import exits
from agent_core.failures.errors import ProtocolError, UnreadableJournal
from agent_core.failures.exits import ExitCode
from agent_core.failures.notices import NotStarted
from agent_core.failures.remedies import Advice, AdviceItem, Failure, Remedy
from agent_core.journal.rows import KINDS, decode, encode, fold, merged
from agent_core.jsonvalue import Json
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.messages import InputMessage
from agent_core.settings import RULES
from agent_core.text.diffs import FileChange
from agent_core.tools.base import ToolStatus
from agent_core.turn.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallBroke,
    CallSettled,
    ChangeShown,
    Compacted,
    DeadlinePassed,
    DoneSaid,
    DrainEnded,
    DriverFailed,
    Event,
    FailureJudged,
    LoopFound,
    OverlapFound,
    ReasoningArrived,
    Refusal,
    RefusalBegan,
    RemedyChosen,
    RemedyJudged,
    Reply,
    ReplyFinished,
    ReplyJudged,
    Resume,
    SpendRefused,
    Steered,
    StopRequested,
    SummaryAsked,
    Superseded,
    TakenOver,
    TextArrived,
    TextTakenBack,
    ToolArgumentsArrived,
    ToolCallCut,
    ToolCallNamed,
    ToolReturned,
    ToolsRefused,
    ToolStarted,
    TurnBegun,
    TurnEnded,
    TurnLeft,
    TurnResumed,
    Verdict,
    WaitEnded,
    call_id,
)
from tests.agent_core.turns import SETTINGS, opened

PARTS: Json = [{"type": "text", "text": "look \0 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")}]
SPEND = Spend(
    budget=Budget.DAY, measure=Measure.MONEY, limit=5, used=6, held=1, currency="EUR", opens="then", opens_in_seconds=9
)
EXAMPLES: list[Event] = [
    opened(),
    TextArrived(at=1, text="line\nbreak \0 é😀"),
    ReasoningArrived(at=1, text="hm"),
    TextTakenBack(at=1),
    TextTakenBack(at=1, earlier=True),
    RefusalBegan(at=1),
    ToolsRefused(at=1),
    ToolCallNamed(at=1, index=2, call="c", name="n"),
    ToolArgumentsArrived(at=1, index=2, text='{"a": "'),
    ToolCallCut(at=1, name="n", index=2),
    ReplyFinished(at=1, reason="stop", input_tokens=3, output_tokens=4),
    SpendRefused(at=1, spend=SPEND),
    CallBroke(at=1, cause=BreakCause.STALLED, status=500, retry_after_seconds=1.5, waited_seconds=3.25, detail="d"),
    WaitEnded(at=1),
    ToolStarted(at=1, call="c"),
    ToolReturned(
        at=1, call="c", status=ToolStatus.REFUSED, text="t", refusal=Refusal.UNKNOWN_TOOL, facts={"a": [1, None]}
    ),
    ChangeShown(at=1, call="c", change=FileChange("@@ -0,0 +1,1 @@\n+é", 1, 0, 3)),
    ApprovalAnswered(at=1, call="c", verdict=Verdict.DENIED, by="me"),
    Steered(at=1, input=InputMessage(PARTS, name="x")),
    StopRequested(at=1, by="me"),
    Superseded(at=1),
    DeadlinePassed(at=1),
    DoneSaid(at=1, finished=False, said="ANNOUNCES", input_tokens=90, output_tokens=3),
    Compacted(at=1, summary="s", kept_turns=2, helped=False, tokens_before=9),
    DrainEnded(at=1),
    TurnLeft(at=1),
    TakenOver(at=1, epoch=3, node="n"),
    DriverFailed(at=1, reference="err"),
    RemedyChosen(at=1, failure=Failure.IN_TEXT, remedy=Remedy.CONTINUE, number=2, cause=BreakCause.DROPPED),
    RemedyChosen(
        at=1,
        failure=Failure.EMPTY,
        remedy=Remedy.NUDGE,
        number=1,
        route=2,
        advice=Advice.ACT_NOW,
        detail="d",
        pause_ms=9,
    ),
    RemedyJudged(at=1, failure=Failure.EMPTY, remedy=Remedy.NUDGE, helped=True),
    TurnBegun(at=1, route=1, advice=(AdviceItem(Advice.WITHHELD, "w"),), withheld=("w",)),
    OverlapFound(at=1, dropped=3, text="x"),
    ReplyJudged(at=1),
    ReplyJudged(at=1, reply=Reply.PROMISED, promised="p:", solved=("w",), taken=64, words="no"),
    FailureJudged(
        at=1,
        failure=Failure.IN_TEXT,
        cause=BreakCause.DROPPED,
        code=ExitCode.BROKEN_IN_TEXT,
        detail="d",
        aside_seconds=9,
    ),
    LoopFound(at=1, call="c", code=ExitCode.NO_PROGRESS, tool="t", count=4, stop=True, words="w"),
    ApprovalAsked(at=1, call="c", seconds=60),
    CallSettled(at=1, call="c", words="no", denied=True, unsure=True),
    SummaryAsked(at=1, exit=exits.StepLimit(limit=5), advice=Advice.SUM_UP_LIMIT),
    TurnResumed(at=1, how=Resume.GO_ON),
    TurnEnded(at=1, exit=exits.Answered(), answer="text1"),
    TurnEnded(at=1, exit=exits.SpendLimit(spend=SPEND)),
    TurnEnded(at=1, exit=exits.NeverStarted(reason=NotStarted.QUOTA, tools_done=("a", "b"))),
]


def test_there_is_an_example_of_every_kind():
    assert {event.kind() for event in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_comes_back_as_it_was(event: Event):
    row = encode(event)
    assert decode(row.kind, row.body) == event
    assert row.at == event.at


def test_what_cannot_be_read_is_told_and_not_guessed():
    with pytest.raises(UnreadableJournal, match="does not know: FutureEvent"):
        decode("FutureEvent", b"{}")
    with pytest.raises(UnreadableJournal, match="TextArrived"):
        decode("TextArrived", b'{"at": "yesterday"}')


def test_a_turn_that_a_newer_version_began_by_other_rules_is_not_folded():
    newer = opened(replace(SETTINGS, rules=RULES + 1))
    with pytest.raises(UnreadableJournal, match="newer version"):
        fold([(row.kind, row.body) for row in [encode(newer)]])
    known = encode(opened(replace(SETTINGS, rules=RULES)))
    fold([(known.kind, known.body)])


def test_an_exit_in_the_journal_stands_even_if_this_version_would_decide_otherwise():
    ended = TurnEnded(at=9, exit=exits.StepLimit())
    older = opened(replace(SETTINGS, rules=4))
    turn = fold([(row.kind, row.body) for row in map(encode, [older, ended])])
    assert turn.exit == ended.exit


@pytest.mark.parametrize(
    ("following", "what"),
    [
        (TurnEnded(at=9, exit=exits.StepLimit()), "nothing led to this end"),
        (TurnEnded(at=9, exit=exits.Answered()), "nothing led to this end"),
        (WaitEnded(at=9), "was not waiting"),
        (ToolStarted(at=9, call="c"), "no tools were wanted"),
        (ReplyJudged(at=9), "nothing was to be judged"),
        (RemedyJudged(at=9, failure=Failure.EMPTY, remedy=Remedy.NUDGE, helped=True), "was not at work"),
        (opened(), "twice"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_that_does_not_fit_is_refused_with_its_place_and_the_reason(following: Event, what: str):
    rows = [(row.kind, row.body) for row in map(encode, [opened(), following])]
    with pytest.raises(
        ProtocolError, match=f"event 1 of the journal does not fit: {type(following).__name__}: .*{what}"
    ):
        fold(rows)


def test_a_reply_without_a_judgement_is_not_guessed():
    journal: list[Event] = [opened(), TextArrived(at=2, text="x"), ReplyFinished(at=3, reason="stop")]
    rows = [(row.kind, row.body) for row in map(encode, [*journal, TextArrived(at=4, text="y")])]
    with pytest.raises(ProtocolError, match="a judgement was due here"):
        fold(rows)


PIECES = st.lists(
    st.one_of(
        st.builds(TextArrived, at=st.just(0), text=st.text("ab", min_size=1)),
        st.builds(ReasoningArrived, at=st.just(0), text=st.text("ab", min_size=1)),
        st.builds(ToolArgumentsArrived, at=st.just(0), index=st.integers(0, 2), text=st.text("ab", min_size=1)),
        st.just(ToolCallNamed(at=0, index=3, call="c", name="read")),
    )
)


def whose(one: Event) -> tuple[object, ...]:
    """What a piece belongs to; anything else stands for itself."""
    pieces = isinstance(one, TextArrived | ReasoningArrived | ToolArgumentsArrived)
    return (type(one), getattr(one, "index", None)) if pieces else (type(one), one.at)


@given(PIECES)
def test_neighbours_of_one_text_are_one_and_came_when_the_last_of_them_came(pieces: list[Event]) -> None:
    events = [replace(one, at=at) for at, one in enumerate(pieces)]
    runs = [list(run) for _, run in groupby(events, whose)]
    wanted = [(whose(run[-1]), run[-1].at, "".join(getattr(one, "text", "") for one in run)) for run in runs]
    assert [(whose(one), one.at, getattr(one, "text", "")) for one in merged(events)] == wanted


def test_calls_that_are_named_alike_are_known_by_the_names_that_journals_of_older_versions_have():
    taken: dict[str, None] = {}
    for call in ("c", "c", "c.1", "c", "d"):
        taken[call_id(call, taken)] = None
    assert [*taken] == ["c", "c.1", "c.1.1", "c.2", "d"]
