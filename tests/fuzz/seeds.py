"""Inputs to begin with: real-looking ones, and the nasty ones that were thought of. For the first byte see `targets.pieces`."""

from __future__ import annotations

from agent_core.model.families.registry import FAMILIES

_TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
_CALL = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":'
    b'{"name":"look","arguments":"{\\"n\\""}}]}}]}\n\ndata: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":'
    b'{"arguments":": 1}"}}]},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n'
)
_STREAMS = (
    _TEXT + _TEXT + b"data: [DONE]\n\n",
    _CALL,
    b"\xef\xbb\xbfevent: x\rdata: {\r\ndata: }\r\r: comment\n\nid: 1\nretry: 5\ndata\n\n",
    b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n',
    b"<html><body>502 Bad Gateway</body></html>\n",
    b'data: {"error":{"message":"overloaded"}}\n\n',
    b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"<think>hm"}}]}\n\ndata: {"choices":[{"delta":{"content":"</think> ok"}}]}\n\n',
    b'data: {"choices":[{"delta":{"content":"<tool_c"}}]}\n\ndata: {"choices":[{"delta":{"content":"all>{}"}}]}\n\n',
)
_CALLS = (
    b'Let me look.\n<tool_call>\n{"name": "look", "arguments": {"n": 1}}\n</tool_call>',
    b'<tool_call>{"name": "a", "arguments": "{\\"x\\": \\"</tool_call>\\"}"}</tool_call> and then',
    b'<tool_call>[{"name": "a", "arguments": {}}, {"name": "b"}]</tool_call>',
    b'<tool_call>{"name": "a", "argum',
    b"<tool_cal is no tag, <tool_call> is one",
    b'<tool_call>{"arguments": {"name": "inner"}, "name": "outer"}</tool_call><tool_call></tool_call>',
    *(example.text.encode() for family in FAMILIES for example in family.examples),
    b"Hm. <think>a <think>b</think> c</think> Yes. <|channel|>analysis<|message|>d<|end|>",
    b"thought without a beginning\n</think>\n\nYes. The <think> and </think> tags.",
)
_BODIES = (
    b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}',
    b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}]}]}',
    (
        b'{"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},'
        b'{"role": "tool", "tool_call_id": "c", "content": "r"}], "tools": [{"type": "function", "function": {"name": "f"}}]}'
    ),
    b'{"messages": [{"role": "user", "content": null}], "max_tokens": -1, "n": 2, "temperature": 1e999}',
    b'{"messages": []}',
    b"[[[[[[[[",
)
_CONFIGURATIONS = (
    b'[model]\nname = "m"\nstall_seconds = 3\n',
    b'[model]\nbase_url = "http://x/v1"\napi_key = "${KEY}"\n[[model.fallback]]\nmodel = "y"\n',
    b'[server]\nhost = "0.0.0.0"\nport = 99999\n[nonsense]\na = 1\n',
    b'model = "no table"\n',
    b"[tools]\nenabled = [1, 2]\nworkspace = 5\n",
    b"\xff\xfe[",
)


def _cut(contents: tuple[bytes, ...]) -> list[bytes]:
    return [bytes([how]) + content for content in contents for how in (0, 1, 7)]


SEEDS: dict[str, list[bytes]] = {
    "server_sent_events": _cut(_STREAMS),
    "chunks": _cut(_STREAMS),
    "text_calls": _cut(_CALLS),
    "request_body": list(_BODIES),
    "configuration": list(_CONFIGURATIONS),
}
