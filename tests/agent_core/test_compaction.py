"""What is kept and what is given up when a conversation no longer fits."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.judging.compaction import (
    ELIDE_RESULTS_OVER_CHARS,
    Group,
    SessionMemory,
    ToldTurn,
    digest,
    estimate_tokens,
    groups_of,
    plan,
    summary_request,
    told_turn,
)
from agent_core.messages import THOUGHTS, Message, ToldConversation
from agent_core.turn.events import Compacted
from agent_core.turn.transcript import TOO_MUCH, alternating, repaired
from tests.agent_core.turns import Rig


def group(number: int, size: int) -> list[Message]:
    return [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "x" * size}]


@given(st.lists(st.integers(1, 60_000), max_size=12), st.integers(2_000, 200_000))
def test_kept_groups_are_whole_and_the_latest(sizes: list[int], window: int):
    groups = [group(n, size) for n, size in enumerate(sizes)]
    chosen = plan(groups, [], window)
    assert [*chosen.given_up, *chosen.kept] == groups
    assert chosen.helps == bool(chosen.given_up)
    if groups:
        assert chosen.given_up, "something must be given up, or nothing has been gained"
    if chosen.kept:
        assert sum(estimate_tokens(g) for g in chosen.kept) <= window // 3 + len(groups) * 10


@given(st.integers(1, 30))
def test_of_what_would_fit_by_our_count_half_is_given_up(count: int):
    assert len(plan([group(n, 5) for n in range(count)], [], 10**9).kept) == count // 2


def test_long_results_of_the_running_turn_can_be_shortened():
    current: list[Message] = [{"role": "tool", "tool_call_id": str(n), "content": "x" * 5_000} for n in range(3)]
    assert plan([], current, 10_000).shortens_results
    assert not plan([], current[:2], 10_000).helps


def test_what_just_fills_the_room_is_kept():
    groups = [group(0, 50_000), group(1, 5_000)]
    size = estimate_tokens(groups[1])
    assert plan(groups, [], 3 * size).kept == (groups[1],)
    assert plan(groups, [], 3 * size - 3).kept == ()


def test_only_results_that_are_too_long_are_shortened():
    long = "x" * (ELIDE_RESULTS_OVER_CHARS + 1)
    asked: list[Message] = [{"role": "user", "content": long} for _ in range(3)]
    assert not plan([], asked, 10_000).shortens_results
    short: list[Message] = [{"role": "tool", "tool_call_id": str(n), "content": long[1:]} for n in range(3)]
    assert not plan([], short, 10_000).shortens_results


def test_a_summary_replaces_what_it_sums_up_and_survives_replay():
    memory = SessionMemory()
    for n in range(5):
        memory.take(ToldTurn(group(n, 10)))
    rig = Rig()
    rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    rig.feed(Compacted(at=rig.tick(), summary="They talked.", kept_turns=2))
    rig.says("Fine.")
    memory.add(rig.turn)
    assert memory.summary == "They talked."
    assert [g[0]["content"] for g in memory.groups] == ["question 3", "question 4", "hello"]


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.ANSWERED])
def test_what_was_too_much_all_the_same_is_not_told_shorter(code: ExitCode):
    """What did not fit even with the summary was no fault of what came before, which stays whole for the next turn."""
    rig = Rig()
    rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    rig.feed(Compacted(at=rig.tick(), summary="They talked.", kept_turns=2))
    rig.turn.exit = cast("Any", SimpleNamespace(code=code, notice=lambda: None))
    told = told_turn(rig.turn)
    assert (told.summary, told.kept_turns) == (("", 0) if code in TOO_MUCH else ("They talked.", 2))


def test_a_clients_conversation_is_grouped_by_its_persons_words():
    messages: list[Message] = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "2"},
        {"role": "user", "content": "2b"},
        {"role": "assistant", "content": "b"},
    ]
    system, groups = groups_of(messages)
    assert len(system) == 1
    assert [len(g) for g in groups] == [2, 3]


def test_a_digest_names_what_was_asked_and_stays_small():
    text = digest("before", [group(n, 50_000) for n in range(100)])
    assert "question 99" in text
    assert "before" in text
    assert len(text) < 12_000
    assert len(str(summary_request("", [group(n, 50_000) for n in range(100)]))) < 60_000


def said(role: str, words: str) -> Message:
    return {"role": role, "content": words}


WORDS = st.sampled_from(["", "hello", "[outspoken] go on", "later"])
CALLED: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
}
ONE = st.one_of(
    st.builds(said, st.just("user"), WORDS),
    st.builds(said, st.just("assistant"), WORDS),
    st.just(CALLED),
    st.just({"role": "assistant", "content": "so", THOUGHTS: {"text": "hm"}}),
    st.just({"role": "tool", "tool_call_id": "c1", "content": "a b"}),
    st.just({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}),
)


@given(past=st.lists(st.lists(ONE, min_size=1, max_size=4), max_size=5), now=st.lists(ONE, min_size=1, max_size=4))
def test_a_past_that_is_sent_as_it_lies_is_what_would_be_put_together_anew(past: list[Group], now: list[Message]):
    memory = SessionMemory()
    for one in past:
        memory.take(ToldTurn(one))
    assert memory.groups == past
    sent, rest = memory.sent, alternating(repaired(now))
    if sent is None or not rest or rest[0].get("role") != "user":
        return
    anew = alternating(repaired([*(message for one in past for message in one), *now]))
    conversation = ToldConversation([sent] if sent else [], rest)
    assert len(conversation.encoded) == conversation.size
    assert list(conversation) == orjson.loads(conversation.encoded) == anew
    assert estimate_tokens(conversation) == estimate_tokens(anew)


TURNS = st.tuples(
    st.one_of(st.none(), st.integers(0, 30)), st.booleans(), st.sampled_from(["", "", "", "so far"]), st.integers(0, 3)
)
"""Size (None: it leaves no message behind), whether words of others were read, the summary that it wrote, and how many turns that left as they were."""


@given(st.lists(TURNS, max_size=12), st.one_of(st.none(), st.integers(1, 4)))
def test_what_is_told_is_counted_and_known_for_what_it_is(
    turns: list[tuple[int | None, bool, str, int]], most: int | None
):
    memory = SessionMemory(most)
    told: list[tuple[Group, bool]] = []
    summary, summed, since = "", False, 0
    for number, (size, foreign, wrote, kept) in enumerate(turns):
        if wrote:
            summary, summed, since, told = (
                f"{wrote} {number}",
                foreign,
                0,
                told[max(0, len(told) - kept) :] if kept else [],
            )
        left = [] if size is None else group(number, size)
        if left:
            told.append((left, foreign))
            since += 1
        if most is not None:
            told = told[-most:]
            summary = summary if since <= most else ""
        memory.take(ToldTurn(left, f"{wrote} {number}" if wrote else "", kept, foreign=foreign))
        assert memory.groups == [one for one, _ in told]
        assert memory.summary == summary, "it stands for turns of which some would still be told"
        assert memory.foreign == (any(one for _, one in told) or (bool(summary) and summed))
        assert memory.size == sum(len(orjson.dumps(one)) - 2 for one, _ in told)


def test_what_was_sent_is_not_kept_while_the_answer_streams():
    """It may be a megabyte, and orjson takes four kilobytes for the shortest."""
    conversation = ToldConversation([], [{"role": "user", "content": "hello"}])
    estimate_tokens(conversation)
    sent = conversation.encoded
    assert sys.getrefcount(sent) == 2, "beside this name and the call"


def test_a_long_past_is_told_by_as_few_calls_as_a_short_one():
    def calls(turns: int) -> int:
        memory = SessionMemory(500)
        for number in range(turns):
            memory.take(ToldTurn(group(number, 10)))
        counted = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            memory.take(ToldTurn(group(turns, 10)))
            sent = memory.sent
            assert sent is not None
            assert ToldConversation([sent], [{"role": "user", "content": "and now"}]).encoded
        finally:
            sys.setprofile(None)
        return counted

    assert calls(2) == calls(490)
