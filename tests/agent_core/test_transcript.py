"""What the model gets to read: always a valid conversation, and nothing in the wrong mouth."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.remedies import REASONING_TAIL_CHARS, Advice, advice_words
from agent_core.jsonvalue import Json
from agent_core.machine.turn import Turn
from agent_core.messages import (
    GATEWAY_PREFIX,
    THOUGHTS,
    InputMessage,
    Message,
    said_by_the_gateway,
    said_by_the_person,
    words_of,
)
from agent_core.tools.base import ToolStatus
from agent_core.turn.effects import CallModel
from agent_core.turn.events import StopRequested, ToolStarted
from agent_core.turn.transcript import (
    CHANGED_NOTHING,
    NOT_BEGUN,
    NOT_KNOWN,
    STRAY,
    alternating,
    call_ids,
    closed_turn_messages,
    elide,
    problems,
    repaired,
    request_messages,
)
from tests.agent_core.turns import ROUTE, Rig, opened

CALL = CallModel(number=1, route=ROUTE, offer_tools=True)


def request(rig: Rig) -> list[Message]:
    return request_messages("You are kind.", [], rig.turn, rig.last_call)


def test_a_plain_turn_is_system_and_the_persons_words():
    assert request(Rig()) == [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": "hello"},
    ]


def test_a_tool_call_is_followed_by_its_result():
    rig = Rig()
    rig.calls_tool("read", '{"path": "a"}', text="Looking.")
    rig.returns("contents")
    messages = request(rig)
    assert problems(messages) == []
    assert messages[2]["content"] == "Looking."
    assert messages[3] == {"role": "tool", "tool_call_id": "c1_0", "content": "contents"}


def test_a_continuation_hands_back_the_partial_text_and_asks_for_the_rest():
    rig = Rig()
    rig.text("Half of")
    rig.breaks(BreakCause.STALLED)
    messages = request(rig)
    assert messages[-2] == {"role": "assistant", "content": "Half of"}
    assert str(messages[-1]["content"]).startswith(GATEWAY_PREFIX)


def test_advice_stays_for_the_rest_of_the_turn_and_is_gone_in_the_next():
    rig = Rig()
    for _ in range(2):
        rig.begins_call("write", '{"content": "ab')
        rig.breaks(BreakCause.STALLED)
    assert "smaller pieces" in str(request(rig))
    rig.calls_tool("write", '{"content": "a"}')
    rig.returns()
    assert "smaller pieces" in str(request(rig))
    rig.says("Written.")
    assert "smaller pieces" not in str(closed_turn_messages(rig.turn))


def test_a_notice_is_told_to_the_model_as_the_gateways_and_closes_the_turn():
    rig = Rig()
    for _ in range(4):
        rig.breaks(BreakCause.NO_CONTENT)
    messages = closed_turn_messages(rig.turn)
    assert [m["role"] for m in messages] == ["user", "assistant"]
    assert "[Notice from the gateway, not written by the model:" in str(messages[1]["content"])


def test_cut_text_stands_before_its_notice():
    rig = Rig()
    rig.text("The quick brown")
    for _ in range(5):
        rig.breaks(BreakCause.STALLED)
    content = str(closed_turn_messages(rig.turn)[-1]["content"])
    assert content.startswith("The quick brown\n\n[Notice from the gateway")


def test_a_stopped_tool_call_has_a_result_in_the_history():
    from agent_core.turn.events import StopRequested

    rig = Rig()
    rig.calls_tool("read")
    rig.feed(StopRequested(at=rig.tick()))
    history = repaired(closed_turn_messages(rig.turn))
    assert problems(history) == []
    assert history[2]["role"] == "tool"


def test_a_call_without_a_result_is_told_as_what_the_journal_knows_of_it():
    for name, begun, told in (
        ("send", True, NOT_KNOWN), ("send", False, NOT_BEGUN), ("write", True, NOT_KNOWN), ("write", False, NOT_BEGUN),
        ("danger", False, NOT_BEGUN), ("read", True, CHANGED_NOTHING), ("read", False, CHANGED_NOTHING),
    ):  # fmt: skip
        rig = Rig()
        rig.calls_tool(name, "{}", text="I do it.")
        if begun:
            rig.feed(ToolStarted(at=rig.tick(), call="c1_0"))
        rig.feed(StopRequested(at=rig.tick()))
        messages = closed_turn_messages(rig.turn)
        assert [m["content"] for m in messages if m["role"] == "tool"] == [told], (name, begun)
        assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant"]
        assert repaired(messages) == messages


def test_of_a_client_s_own_calls_nothing_is_said_as_it_brings_their_results():
    messages: list[Message] = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "x", "arguments": "{}"}}]},
    ]  # fmt: skip
    assert repaired(messages)[-1]["content"] == NOT_KNOWN


def test_failing_tools_and_warnings_reach_the_model():
    rig = Rig()
    for _ in range(2):
        rig.calls_tool("write", '{"p": 1}')
        rig.returns("permission denied", status=ToolStatus.FAILED)
    assert "Note from the gateway" in str(request(rig)[-1]["content"])


def test_every_advice_is_marked_as_the_gateways():
    for advice in Advice:
        assert advice_words(advice, "write", "thoughts").startswith(f"{GATEWAY_PREFIX} ")


def test_a_model_that_is_to_think_on_is_handed_the_end_of_its_thoughts():
    thoughts = "first of all " + "x" * REASONING_TAIL_CHARS + " and so at last"
    words = advice_words(Advice.THOUGHT_ONLY, "", thoughts)
    assert words.endswith(" and so at last")
    assert "first of all" not in words
    assert advice_words(Advice.THOUGHT_ONLY, "", "all of it").endswith("\n\nall of it")


def test_long_results_are_shortened_except_the_latest():
    messages: list[Message] = [{"role": "tool", "tool_call_id": str(n), "content": "x" * 100} for n in range(4)]
    short = elide(messages, 10, keep=2)
    assert [len(str(m["content"])) > 60 for m in short] == [False, False, True, True]
    assert "90 characters left out" in str(short[0]["content"])


def person(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str, ids: list[str]) -> Message:
    message: Message = {"role": "assistant", "content": text}
    if ids:
        function: Json = {"name": "n", "arguments": "{}"}
        message["tool_calls"] = [{"id": i, "type": "function", "function": function} for i in ids]
    return message


def result(call: str) -> Message:
    return {"role": "tool", "tool_call_id": call, "content": "r"}


ids = st.lists(st.sampled_from(["a", "b", "c"]), unique=True, max_size=3)
message = st.one_of(
    st.builds(person, st.text(max_size=5)),
    st.builds(assistant, st.text(max_size=5), ids),
    st.builds(result, st.sampled_from(["a", "b", "c", "d"])),
)


@given(st.lists(message, max_size=12))
@example([person("go"), result("d"), person("on"), assistant("", ["a"]), result("b"), result("a")])
@example([assistant("", ["a", "b"]), result("a"), assistant("0", []), result("b")])
def test_whatever_a_client_sends_is_repaired_to_a_valid_conversation(messages: list[Message]):
    fixed = repaired(messages)
    assert problems(fixed) == []
    assert repaired(fixed) == fixed
    known = [call for one in fixed for call in call_ids(one)]
    assert len(known) == len(set(known))
    persons = [m["content"] for m in messages if m["role"] == "user"]
    said = [str(m["content"]) for m in fixed if m["role"] == "user"]
    assert [words for words in said if not words.startswith(STRAY)] == persons
    results = sum(m["role"] == "tool" for m in messages)
    answered = sum(m["role"] == "tool" and m["content"] == "r" for m in fixed)
    assert answered + sum(words.startswith(STRAY) for words in said) == results, "no result is dropped"


def test_a_result_stands_behind_its_call_wherever_it_was_told():
    """Programs put words between them: a new system prompt, what was said meanwhile, the second call of one reply."""
    between: list[Message] = [person("and then"), {"role": "system", "content": "You are B."}]
    for other in between:
        fixed = repaired([person("go"), assistant("", ["a", "b"]), result("a"), other, result("b")])
        assert [message.get("tool_call_id") for message in fixed] == [None, None, "a", "b", None]
        assert [message["content"] for message in fixed if message["role"] == "tool"] == ["r", "r"]
        assert problems(fixed) == []


def test_what_one_reply_said_and_called_in_several_messages_is_one():
    said: Message = {**assistant("first", ["a"]), THOUGHTS: {"text": "I look."}}
    more: Message = {**assistant("second", ["b"]), THOUGHTS: {"text": "Twice."}}
    fixed = repaired([person("go"), said, more, assistant("third", []), result("a"), result("b")])
    assert [message["role"] for message in fixed] == ["user", "assistant", "tool", "tool"]
    calls, thoughts = fixed[1]["tool_calls"], fixed[1][THOUGHTS]
    assert isinstance(calls, list)
    assert isinstance(thoughts, dict)
    assert [call["id"] for call in calls if isinstance(call, dict)] == ["a", "b"]
    assert (fixed[1]["content"], thoughts["text"]) == ("first\n\nsecond\n\nthird", "I look.\n\nTwice.")
    for other in (person("never mind"), result("b")):  # which answers another call
        left = repaired([person("go"), assistant("x", ["a"]), assistant("said later", []), other])
        assert [message["role"] for message in left] == ["user", "assistant", "tool", "assistant", "user"]
        assert [message["content"] for message in left if message["role"] == "assistant"] == ["x", "said later"]


def test_what_says_nothing_is_not_told() -> None:
    """A reply that was stopped before its first word: Anthropic, Bedrock, Gemini and Mistral refuse it, and with it all that comes after."""
    blank: Json = {"type": "text", "text": " \n"}
    words: Json = {"type": "text", "text": "b"}
    voids: list[Json] = ["", " \n", None, [], [blank]]
    for void in voids:
        history: list[Message] = [person("a"), {"role": "assistant", "content": void}, person("b")]
        assert alternating(repaired(history)) == [person("a\n\nb")]
        called = {**assistant("", ["a"]), "content": void}
        done: Message = {"role": "tool", "tool_call_id": "a", "content": void}
        assert repaired([person("a"), called, done])[2]["content"] == "(no output)"
    shown: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    told = repaired([{"role": "user", "content": [blank, words, shown]}])
    assert told == [{"role": "user", "content": [words, shown]}]


def test_an_id_stands_for_one_call() -> None:
    """Providers number the calls of each reply anew; Anthropic, Bedrock and Gemini refuse two with one id (kern-ai #412, claude-code #28515)."""
    turn = [person("go"), assistant("", ["a", "b"]), result("a"), result("b"), assistant("done", [])]
    fixed = repaired([*turn, *turn, person("a"), assistant("", ["a_2"]), result("a_2")])
    ids = [call for message in fixed for call in call_ids(message)]
    assert ids == ["a", "b", "a_2", "b_2", "a_2_2"]
    assert [message["tool_call_id"] for message in fixed if message["role"] == "tool"] == ids
    assert problems(fixed) == []
    assert repaired(fixed) == fixed


PLAIN = st.text("ab \n[]", max_size=12).map(str.strip)


@given(PLAIN, PLAIN)
def test_the_gateways_addition_is_not_the_persons_word_nor_theirs_the_gateways(said: str, added: str):
    """Whoever is told what a person wrote (a consent, a recall, an address of their own) is told that and no more."""
    ours = f"{GATEWAY_PREFIX} {added}".strip()
    whole = f"{said}\n\n{GATEWAY_PREFIX} {added}"
    assert (said_by_the_person(whole), said_by_the_gateway(whole)) == (said, ours)
    assert (said_by_the_person(said), said_by_the_gateway(said)) == (said, "")
    assert (said_by_the_person(ours), said_by_the_gateway(ours)) == ("", ours)
    assert words_of(whole) == said
    assert words_of([{"type": "text", "text": whole}]) == said


@pytest.mark.parametrize("too_much", [False, True])
def test_what_was_said_is_told_whole_in_later_turns_unless_it_was_more_than_can_be_read(too_much: bool):
    said = "word " * 1_000
    rig = Rig()
    rig.turn = Turn()
    rig.feed(replace(opened(rig.settings, rig.now), input=(InputMessage(said),)))
    if too_much:
        rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
        rig.compacts()
        rig.breaks(BreakCause.CONTEXT_OVERFLOW, status=400)
    else:
        rig.says("I have read it.")
    told = str(closed_turn_messages(rig.turn)[0]["content"])
    assert ("are left out here" in told) is too_much
    assert (told == said) is not too_much
