"""How an end is told to programs, rule by rule: when to come back, what was cancelled, what was used, and when the head of an answer goes out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.contract.base import Showing, Ticket
from adapters.http.api.asked import ApiRequest, KnownItems
from adapters.http.api.responses import ResponseSpelling
from adapters.http.api.responsesread import read
from adapters.http.api.spelling import ApiJob
from adapters.http.api.truth import failure_of
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import Exit, ExitCode, NeverStarted, SpendLimit, Stopped
from agent_core.failures.notices import NotStarted
from agent_core.limits.spend import Budget, Measure, Spend
from agent_core.turn.view import BubbleKind
from tests.adapters.scripted import SUMMARY, ended, example, said, shown, text


def job(errors: ErrorsAs = ErrorsAs.STATUS, *, background: bool = False) -> ApiJob:
    asked = read(json.dumps({"input": "hi", "background": background}).encode(), "", KnownItems())
    assert isinstance(asked, ApiRequest)
    return ApiJob(asked, Ticket(7, "s_1", duplicate=False), "r", 1_700_000_000, {}, keyed=False, errors=errors)


@pytest.mark.parametrize(("used", "again"), [(1_000, 7_200), (1_001, 7_200), (999, 60), (0, 60)])
@pytest.mark.parametrize("errors", [ErrorsAs.STATUS, ErrorsAs.WORDS])
def test_where_a_budget_is_full_of_what_is_only_held_there_is_room_again_in_a_minute(
    used: int, again: int, errors: ErrorsAs
) -> None:
    spend = Spend(
        budget=Budget.DAY,
        measure=Measure.TOKENS,
        limit=1_000,
        used=used,
        held=1_000,
        opens="tomorrow",
        opens_in_seconds=7_200,
    )
    last = replace(ended(SpendLimit(spend=spend)), summary=replace(SUMMARY, attempts=1))
    problem = failure_of(last, "", errors, keyed=False)
    assert problem is not None
    assert (problem.status, problem.retry_after) == (429, again)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Stopped(), "cancelled"),
        *((NeverStarted(reason=why), "cancelled" if why is NotStarted.WITHDRAWN else "failed") for why in NotStarted),
    ],
)
def test_what_somebody_took_back_was_cancelled_whether_it_had_begun_or_not(ending: Exit, status: str) -> None:
    assert ResponseSpelling(job()).whole(ended(ending))["status"] == status


@pytest.mark.parametrize("thought", [0, 5])
def test_what_was_used_for_a_response_adds_up_to_what_was_told_and_said(thought: int) -> None:
    """What is thought is among what is said, and what was cached among what was told."""
    summary = replace(SUMMARY, input_tokens=30, output_tokens=12, cached_tokens=20, reasoning_tokens=thought)
    used: Any = ResponseSpelling(job()).whole(replace(ended(Stopped()), summary=summary))["usage"]
    assert (used["input_tokens"], used["output_tokens"], used["total_tokens"]) == (30, 12, 42)
    assert used["input_tokens_details"]["cached_tokens"] == 20
    assert used["output_tokens_details"]["reasoning_tokens"] == thought


@pytest.mark.parametrize("errors", [ErrorsAs.STATUS, ErrorsAs.WORDS])
@pytest.mark.parametrize("background", [True, False])
def test_only_for_a_status_the_head_of_an_answer_waits_and_who_wants_the_background_has_its_id_at_once(
    errors: ErrorsAs, *, background: bool
) -> None:
    assert job(errors, background=background).waits is (errors is ErrorsAs.STATUS and not background)


async def test_a_stream_whose_head_waits_begins_with_the_first_words() -> None:
    first, last = "It begins with this, ", "It begins with this, and it ends with that."
    answered = ended(example(ExitCode.ANSWERED), text("a", last, BubbleKind.ANSWER, final=True))
    script = [Showing("t_1", shown(text("a", first))), 5.0, answered]
    body = {"messages": [{"role": "user", "content": "x"}], "stream": True}
    status, _, raw = await said(script, "/v1/chat/completions", body, {"X-Outspoken-Errors": "status"})
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in raw.split(b"\n\n") if line.startswith(b"data: {")]
    words = [delta["content"] for one in chunks for delta in [one["choices"][0]["delta"]] if delta.get("content")]
    assert (status, len(words), "".join(words)) == (200, 2, last)
