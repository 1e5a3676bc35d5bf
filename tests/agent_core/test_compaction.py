"""What is kept and what is given up when a conversation no longer fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.judging.compaction import SessionMemory, digest, estimate_tokens, groups_of, plan, summary_request
from agent_core.messages import Message
from agent_core.turn.events import Compacted
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


def test_long_results_of_the_running_turn_can_be_shortened():
    current: list[Message] = [{"role": "tool", "tool_call_id": str(n), "content": "x" * 5_000} for n in range(3)]
    assert plan([], current, 10_000).shortens_results
    assert not plan([], current[:2], 10_000).helps


def test_a_summary_replaces_what_it_sums_up_and_survives_replay():
    memory = SessionMemory(groups=[group(n, 10) for n in range(5)])
    rig = Rig()
    rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    rig.feed(Compacted(at=rig.tick(), summary="They talked.", kept_turns=2))
    rig.says("Fine.")
    memory.add(rig.turn)
    assert memory.summary == "They talked."
    assert [g[0]["content"] for g in memory.groups] == ["question 3", "question 4", "hello"]


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
