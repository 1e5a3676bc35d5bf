"""A journal is read, not decided again: whatever the rules are by now, its fold is the state that the machine was in."""

from __future__ import annotations

import copy
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from unittest import mock

from hypothesis import assume, given

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.failures.remedies import Failure, Remedy
from agent_core.journal.rows import completed, encode, fold, merged, turn_of
from agent_core.learning.stalls import rows_of as trouble_rows
from agent_core.machine.turn import Turn
from agent_core.settings import LadderCounts, Route
from agent_core.turn.effects import CallModel
from agent_core.turn.events import (
    ApprovalAsked,
    CallBroke,
    CallSettled,
    Event,
    FailureJudged,
    LoopFound,
    OverlapFound,
    RemedyChosen,
    ReplyJudged,
    SummaryAsked,
    TakenOver,
    TurnBegun,
    TurnEnded,
    TurnOpened,
    TurnResumed,
)
from agent_core.turn.state import ToolItem
from agent_core.turn.transcript import closed_turn_messages, request_messages
from agent_core.turn.view import view
from tests.agent_core.journals import Writer, journals
from tests.agent_core.turns import SETTINGS
from tests.examples import MANY

ROUTES = (Route("m1", "h", "k1"), Route("m1", "h", "k2"), Route("m2", "h2", "k3"))
BASE = replace(SETTINGS, routes=ROUTES, max_steps=5)
OLD_CAUSES = tuple(
    BreakCause(word)
    for word in [
        "no_content",
        "stalled",
        "dropped",
        "ended_early",
        "garbage",
        "unreadable_call",
        "error_in_stream",
        "unreachable",
        "connection_refused",
        "unknown_name",
        "not_connected",
        "by_proxy",
        "bad_certificate",
        "not_tls",
        "wants_tls",
        "region",
        "no_route",
        "rate_limited",
        "server_error",
        "restarted",
        "repeating",
        "too_long",
        "unauthorised",
        "forbidden",
        "payment_required",
        "not_found",
        "bad_request",
        "refused",
        "context_overflow",
        "too_large",
    ]
)
"""Those that there were before judgements were journalled."""
NEW = (
    TurnBegun, OverlapFound, ReplyJudged, FailureJudged, LoopFound, ApprovalAsked, CallSettled, SummaryAsked, TurnResumed,
)  # fmt: skip
"""Judgements that older journals do not hold."""


@contextmanager
def rules_gone() -> Generator[None]:
    """Whoever asks a rule fails."""
    with (
        mock.patch("agent_core.machine.turn.decide", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.judging.judge.decide", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.rules.loops.Loops.observe", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.judging.judge.read_ending", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.judging.judge", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.judging.judge.next_remedy", side_effect=AssertionError("a rule was asked")),
        mock.patch("agent_core.judging.judge.prevention", side_effect=AssertionError("a rule was asked")),
    ):
        yield


def state(turn: Turn) -> dict[str, object]:
    """Everything that later decisions and views depend on, in comparable form."""
    other = copy.deepcopy(turn)
    return {
        "view": view(other, other.phase_since),
        "phase": other.phase,
        "exit": other.exit,
        "notice": other.exit.notice() if other.exit is not None else None,
        "items": other.items,
        "history": closed_turn_messages(other),
        "asked": request_messages("", [], other, CallModel(number=1, route=ROUTES[0], offer_tools=True)),
        "step": (other.step, other.steps_done, other.calls_made, other.route_index, other.withheld),
        "recovery": (other.remedies, other.chosen, other.attempts, other.failing, other.last_break),
        "ask": (other.ask, other.closing, other.promised, other.failed_seconds, other.restarts, other.left),
        "troubles": [replace(row, at=0) for row in trouble_rows(other)],
        "tools": (other.round.tools_run, other.round.tools_done, other.round.tools_unsure, other.round.stopping),
        "tokens": (other.input_tokens, other.output_tokens),
        "questions": list(other.questions),
    }  # fmt: skip


def differing(one: Turn, other: Turn) -> dict[str, tuple[object, object]]:
    mine, theirs = state(one), state(other)
    return {name: (mine[name], theirs[name]) for name in mine if mine[name] != theirs[name]}


@MANY
@given(journals(BASE, ended=False))
def test_a_fold_asks_no_rule_and_gives_the_state_that_the_machine_was_in(writer: Writer):
    rows = [(row.kind, row.body) for row in writer.rows()]
    with rules_gone():
        folded = fold(rows)
    assert differing(writer.turn, folded) == {}, told(writer)


def told(writer: Writer) -> str:
    """What happened, to read."""
    return "\n".join(f"{type(event).__name__} {encode(event).body[:150]!r}" for event in writer.events)


LATER = {
    *((failure, Remedy.CONTINUE) for failure in (Failure.IN_TEXT, Failure.NOTHING_MORE, Failure.THOUGHT_MORE)),
    *(
        (failure, Remedy.NEXT_ROUTE)
        for failure in Failure
        if failure not in (Failure.BEFORE_CONTENT, Failure.CREDENTIAL, Failure.REQUEST)
    ),
    *((failure, Remedy.WITHOUT_TOOL) for failure in Failure),
}
"""Remedies that did not exist then, or otherwise: no journal of that version holds them without what they led to."""


UNASKED = replace(BASE, rules=6, ladder=LadderCounts(promise_question=0))
"""As it was when no model was asked whether its reply is finished."""


def unheard_of(event: FailureJudged) -> bool:
    """Nothing came after a promise: then that was the promise again."""
    return event.failure in (Failure.EMPTY, Failure.THINKING_ONLY) and event.code is ExitCode.PROMISED_WITHOUT_ACTING


def older(events: list[Event]) -> list[Event]:
    """The journal as version 4 of the rules would have written it: without most of what was judged."""
    found: list[Event] = []
    for event in events:
        match event:
            case TurnOpened():
                found.append(replace(event, settings=replace(event.settings, rules=5)))
            case RemedyChosen() if (event.failure, event.remedy) in LATER:
                found.append(event)
            case RemedyChosen():
                found.append(replace(event, route=-1, advice=None, detail="", pause_ms=0))
            case TurnEnded():
                found.append(replace(event, answer=""))
            case _ if not isinstance(event, NEW):
                found.append(event)
            case _:
                pass
    return found


def said_again(events: list[Event]) -> bool:
    """A call broke off while it said again what had been said: today that is dropped, however short it is."""
    return any(
        isinstance(one, CallBroke | TakenOver) and isinstance(then, OverlapFound) for one, then in pairwise(events)
    )


@MANY
@given(journals(UNASKED, ended=True, causes=OLD_CAUSES))
def test_an_older_journal_is_read_as_it_was_decided(writer: Writer):
    assume(not said_again(writer.events))
    assume(not any(isinstance(event, FailureJudged) and unheard_of(event) for event in writer.events))
    with rules_gone():
        folded = turn_of(completed(older(merged(writer.events))))
    different = differing(without_words(writer.turn), without_words(folded))
    assert different == {}, told(writer)


def without_words(turn: Turn) -> Turn:
    """A turn without what an older journal does not tell: a loop's warning, which sentence of a reply was a promise, and what a
    failure would have led to, which is not said today as it was then."""
    other = copy.deepcopy(turn)
    other.items[:] = [
        replace(item, text=item.text.partition("\n\n[Note from the gateway: ")[0])
        if isinstance(item, ToolItem)
        else item
        for item in other.items
    ]
    other.troubles.found = tuple(replace(trouble, code=ExitCode.ANSWERED) for trouble in other.troubles.found)
    other.promised = ""
    other.ask = replace(other.ask, detail="")
    return other
