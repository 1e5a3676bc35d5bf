"""What a reply amounts to is judged by its content and its finish reason together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.rules.replies import Finish, ReplyKind, finish_of, judge

WORDS: dict[Finish, tuple[str, ...]] = {
    Finish.STOP: ("[usual] fin", "stop", "STOP", "end_turn", "stop_sequence", "COMPLETE", "eos", "eos_token", "FinishReason.STOP", "[DONE]"),
    Finish.TOOLS: ("tool_calls", "tool-calls", "TOOL_CALL", "tool_use", "function_call"),
    Finish.LENGTH: ("length", "MAX_TOKENS", "max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens"),
    Finish.FILTER: ("content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "sensitive", "refusal", "ERROR_TOXIC", "guardrail_intervened"),
    Finish.BROKEN: ("error", "network_error", "abort", "insufficient_system_resource", "ERROR", "cancelled", "timeout"),
    Finish.BAD_CALL: ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"),
    Finish.LOOP: ("repetition",),
    Finish.UNKNOWN: ("fin", "", "stopped by the moon", "42", "OTHER", "FINISH_REASON_UNSPECIFIED", "unknown", "null"),
}  # fmt: skip


@pytest.mark.parametrize(("finish", "word"), [(finish, word) for finish, words in WORDS.items() for word in words])
def test_words_of_providers(finish: Finish, word: str) -> None:
    assert finish_of(word) is finish


@pytest.mark.parametrize(
    ("reason", "text", "arguments", "cut", "kind"),
    [
        ("stop", "Hello", [], False, ReplyKind.TEXT),
        ("STOP", "Hello", [], False, ReplyKind.TEXT),
        ("[DONE]", "Hello", [], False, ReplyKind.TEXT),
        ("fin", "Hello", [], False, ReplyKind.UNCERTAIN),
        ("fin", "", [], False, ReplyKind.UNCERTAIN),
        ("fin", "Looking", ['{"a": 1}'], False, ReplyKind.TOOLS),
        ("fin", "Looking", ['{"a": '], False, ReplyKind.UNCERTAIN),
        ("stop", "Looking", ['{"a": 1}'], False, ReplyKind.TOOLS),
        ("stop", "Looking", ['{"a": '], False, ReplyKind.CONTRADICTED),
        ("stop", "Looking", [], True, ReplyKind.CONTRADICTED),
        ("[DONE]", "Looking", ['{"a": '], False, ReplyKind.CONTRADICTED),
        ("tool_calls", "Looking", [], False, ReplyKind.CALL_MISSING),
        ("tool_calls", "", [], False, ReplyKind.EMPTY),
        ("tool_calls", "", ["{}"], False, ReplyKind.TOOLS),
        ("length", "", ['{"a": 1}'], False, ReplyKind.TOOLS),
        ("MAX_TOKENS", "", ['{"a": '], False, ReplyKind.LENGTH_IN_TOOL_CALL),
        ("model_length", "Hel", [], False, ReplyKind.LENGTH),
        ("SAFETY", "Hel", [], False, ReplyKind.FILTERED),
        ("sensitive", "", [], False, ReplyKind.FILTERED),
        ("network_error", "Hel", [], False, ReplyKind.ERROR),
        ("MALFORMED_FUNCTION_CALL", "", [], False, ReplyKind.CONTRADICTED),
        ("stop", "", [], False, ReplyKind.EMPTY),
        ("stop", "\u200b\ufeff", [], False, ReplyKind.EMPTY),
        ("stop", "\u2800\u3164 \u00ad", [], False, ReplyKind.EMPTY),
        ("stop", "👍\ufe0f", [], False, ReplyKind.TEXT),
    ],
)
def test_the_finish_is_judged_by_everything(
    reason: str, text: str, arguments: list[str], cut: bool, kind: ReplyKind
) -> None:
    assert judge(reason, text, "", arguments, cut_calls=cut) is kind


@given(st.text(max_size=30))
def test_a_word_that_nobody_knows_never_makes_a_text_an_answer(word: str) -> None:
    known = finish_of(word) == Finish.STOP
    assert (judge(word, "Hello", "", [], cut_calls=False) is ReplyKind.TEXT) == known
