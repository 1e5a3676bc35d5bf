"""A field that an endpoint refuses is left out the second time, and from then on; nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.model.manners import AMENDS, POLITE, Manners, amended, put

SENT: dict[str, object] = {
    "model": "m", "messages": [], "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.2, "max_tokens": 100,
    "parallel_tool_calls": False, "tool_choice": "auto", "store": False, "tools": [], "reasoning_effort": "high", "thinking": {"type": "enabled"},
}  # fmt: skip

REFUSALS: list[tuple[str, int, Json, Manners]] = [
    ("OpenAI", 400, {"message": "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", "param": "temperature", "code": "unsupported_value"}, Manners(frozenset({"temperature"}))),
    ("OpenAI", 400, {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}, Manners(completion_tokens=True)),
    ("Azure", 400, {"message": "Unrecognized request argument supplied: parallel_tool_calls"}, Manners(frozenset({"parallel_tool_calls"}))),
    ("Mistral", 422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, Manners(frozenset({"stream_options"}))),
    ("vLLM", 400, {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'store'), 'msg': 'Extra inputs are not permitted', 'input': False}]"}, Manners(frozenset({"store"}))),
    ("Groq", 400, {"message": "property 'store' is unsupported"}, Manners(frozenset({"store"}))),
    ("Gemini", 400, [{"error": {"message": "Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field."}}], Manners(frozenset({"parallel_tool_calls"}))),
    ("Go", 400, {"error": "json: unknown field \"stream_options\""}, Manners(frozenset({"stream_options"}))),
    ("vLLM", 400, {"message": "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}, Manners(frozenset({"tools", "tool_choice", "parallel_tool_calls"}))),
    ("Ollama", 400, {"message": "registry.ollama.ai/library/gemma:2b does not support tools"}, Manners(frozenset({"tools", "tool_choice", "parallel_tool_calls"}))),
    ("vLLM", 400, {"object": "error", "message": "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 2104 input tokens (8192 > 4096 - 2104).", "code": 400}, Manners(unlimited=True)),
    ("vLLM, older", 400, {"object": "error", "message": "This model's maximum context length is 16384 tokens. However, you requested 19591 tokens (9591 in the messages, 10000 in the completion). Please reduce the length of the messages or completion.", "code": 400}, Manners(unlimited=True)),
    ("Anthropic", 400, {"message": "max_tokens: 21333 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229"}, Manners(unlimited=True)),
    ("DashScope", 400, {"message": "Range of max_tokens should be [1, 8192]"}, Manners(unlimited=True)),
    ("OpenAI o1", 400, {"message": "Unsupported value: 'stream' does not support true with this model. Only the default (false) value is supported.", "param": "stream"}, Manners(frozenset({"stream", "stream_options"}))),
    ("OpenAI o3", 400, {"message": "Your organization must be verified to stream this model. Please go to: https://platform.openai.com/settings/organization/general", "param": "stream"}, Manners(frozenset({"stream", "stream_options"}))),
    ("OpenAI", 400, {"message": "Streaming is not supported for this model.", "param": "stream"}, Manners(frozenset({"stream", "stream_options"}))),
    ("OpenRouter", 404, {"message": "No endpoints found that support tool use."}, Manners(frozenset({"tools", "tool_choice", "parallel_tool_calls"}))),
    ("DeepSeek R1", 400, {"message": "deepseek-reasoner does not support this tool_choice"}, Manners(frozenset({"tool_choice"}))),
    ("DeepSeek", 400, {"message": "Missing `reasoning_content` field in the assistant message at message index 2."}, Manners(wants_thoughts=True)),
    ("DeepSeek V4", 400, {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}, Manners(wants_thoughts=True)),
    ("Groq", 400, {"message": "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"}, Manners(thoughts_refused=True)),
    ("Gemini", 400, [{"error": {"message": "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly"}}], Manners(wants_signatures=True)),
    ("Anthropic", 400, {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}, Manners(forget_thoughts=True)),
    ("Anthropic", 400, {"message": "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."}, Manners(frozenset({"thinking", "reasoning_effort"}))),
]  # fmt: skip


@pytest.mark.parametrize(("who", "status", "body", "manners"), REFUSALS)
def test_the_refused_field_is_left_out(who: str, status: int, body: Json, manners: Manners) -> None:
    assert amended(POLITE, SENT, status, body) == manners, who


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"message": "This model's maximum context length is 8192 tokens"}),
        (400, {"message": "Unknown model m"}),
        (400, {"message": "messages[1].content: unexpected type"}),
        (400, {"message": "Invalid schema for function 'store': unknown keyword"}),
        (401, {"message": "Unsupported parameter: 'store'"}),
        (429, {"message": "Unsupported parameter: 'store'"}),
        (500, {"message": 'unknown field "store"'}),
        (404, {"message": "Unknown name store"}),
        (400, "tools[0].function.strict is not supported"),
        (400, None),
    ],
)
def test_other_refusals_change_nothing(status: int, body: Json) -> None:
    sent = {key: value for key, value in SENT.items() if key != "store"} if "schema" in str(body) else SENT
    assert amended(POLITE, sent, status, body) is None


def test_max_tokens_is_called_otherwise_and_its_number_stays() -> None:
    assert put(SENT, Manners(completion_tokens=True))["max_completion_tokens"] == 100
    assert "max_tokens" not in put(SENT, Manners(completion_tokens=True))
    both = {**SENT, "max_completion_tokens": 5}
    assert put(both, Manners(completion_tokens=True))["max_completion_tokens"] == 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from([400, 404, 422, 500]), st.sampled_from([r[2] for r in REFUSALS]) | st.text(max_size=60)
        ),
        max_size=20,
    )
)
def test_what_a_call_needs_is_never_left_out_and_amending_ends(refusals: list[tuple[int, Json]]) -> None:
    manners = POLITE
    seen = {manners}
    for status, body in refusals * (AMENDS + 1):
        sent = put(SENT, manners)
        assert {"model", "messages"} <= set(sent)
        better = amended(manners, sent, status, body)
        assert better is None or better != manners
        manners = better or manners
        seen.add(manners)
    assert len(seen) <= 2**12
