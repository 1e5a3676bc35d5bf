"""What an upstream can send that no provider documents: every field of a chunk with content that nobody would think of."""

from __future__ import annotations

import json
import random
from typing import Any

TEXTS: tuple[Any, ...] = (
    "", " ", "\n\n", "\u200b", "\ufeff", "word ", "\x00", "a\x00b", "\x1b[31mred", "\ud83d", "\ude00", "\ud83d\ude00", "é😀 ", "\u202e", "\ufffd",
    "<think>", "</think>", "<tool_call>", '<tool_call>{"name": "look", "arguments": {}}</tool_call>', "x" * 300, "The ", ". ",
)  # fmt: skip
NAMES: tuple[Any, ...] = (
    "look", "put", "send", "danger", "nosuch", "functions.look", "default_api:put", "look<|channel|>commentary", "", " ", "\ud83d", "lo\x00ok", "x" * 2_000,
    "\u202elook", "look\nput", "look look",
)  # fmt: skip
IDS: tuple[Any, ...] = ("", "c1", "c1", "c2", "\x00", "\ud83d", "i" * 5_000, "functions.look:0", "é")
ARGUMENTS: tuple[Any, ...] = (
    "",
    " ",
    "{}",
    '{"n": 1}',
    '{"n": ',
    "[]",
    "null",
    "\x00",
    "\ud83d",
    "\ude00",
    '{"a": "\ud83d"}',
    '{"a": "\\u0000"}',
    "{" * 500,
    '{"n": 1}}',
)
REASONS: tuple[Any, ...] = (
    "stop", "STOP", "tool_calls", "length", "MAX_TOKENS", "content_filter", "SAFETY", "fin", "\ud83d", "\x00", "z" * 5_000, "error", "repetition",
    "MALFORMED_FUNCTION_CALL", "tool-calls", "network_error",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2**31,
    2**63,
    10**30,
    -(10**30),
    1.5,
    float("nan"),
    float("inf"),
    True,
    None,
    "12",
    [],
    {},
)


def value(draw: random.Random, deep: int = 3) -> Any:
    """Any JSON."""
    kind = draw.randrange(6 if deep else 4)
    if kind == 0:
        return draw.choice(TEXTS)
    if kind in (1, 2):
        return draw.choice(NUMBERS)
    if kind == 3:
        return draw.choice(REASONS)
    inner = [value(draw, deep - 1) for _ in range(draw.randrange(4))]
    return (
        inner
        if kind == 4
        else {
            draw.choice(("type", "text", "index", "signature", "name", "thinking", "id", "\x00")): each
            for each in inner
        }
    )


def nested(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"a": found}
    return found


def call(draw: random.Random) -> dict[str, Any]:
    function: dict[str, Any] = {}
    if draw.random() < 0.7:
        function["name"] = draw.choice(NAMES)
    if draw.random() < 0.8:
        function["arguments"] = draw.choice(
            (draw.choice(ARGUMENTS), draw.choice(ARGUMENTS), {"n": 1}, value(draw), nested(600))
        )
    found: dict[str, Any] = {"function": function}
    if draw.random() < 0.7:
        found["index"] = draw.choice((0, 0, 1, 2, *NUMBERS))
    if draw.random() < 0.7:
        found["id"] = draw.choice(IDS)
    if draw.random() < 0.2:
        found["extra_content"] = draw.choice(
            ({"google": {"thought_signature": draw.choice(TEXTS)}}, value(draw), nested(400))
        )
    return found


def delta(draw: random.Random) -> Any:
    found: dict[str, Any] = {}
    if draw.random() < 0.6:
        found["content"] = draw.choice(
            (draw.choice(TEXTS), draw.choice(TEXTS), [{"type": "text", "text": draw.choice(TEXTS)}], value(draw))
        )
    if draw.random() < 0.3:
        found[draw.choice(("reasoning_content", "reasoning"))] = draw.choice((draw.choice(TEXTS), value(draw)))
    if draw.random() < 0.3:
        found["tool_calls"] = draw.choice(([call(draw)], [call(draw), call(draw)], [value(draw)], value(draw)))
    if draw.random() < 0.1:
        name = draw.choice(("reasoning_details", "thinking_blocks", "extra_content", "refusal", "function_call"))
        found[name] = draw.choice(
            (value(draw), [{"type": "thinking", "thinking": draw.choice(TEXTS), "signature": draw.choice(TEXTS)}])
        )
    return found


def chunk(draw: random.Random) -> Any:
    """One payload of a stream, as JSON."""
    choice: dict[str, Any] = {"index": 0, draw.choice(("delta", "delta", "delta", "message")): delta(draw)}
    if draw.random() < 0.15:
        choice["finish_reason"] = draw.choice(REASONS)
    found: dict[str, Any] = {"choices": [choice]}
    if draw.random() < 0.15:
        found["usage"] = draw.choice(
            (
                {
                    "prompt_tokens": draw.choice(NUMBERS),
                    "completion_tokens": draw.choice(NUMBERS),
                    "prompt_tokens_details": value(draw),
                },
                value(draw),
            )
        )
    if draw.random() < 0.03:
        found["error"] = draw.choice(
            (
                {"message": draw.choice(TEXTS), "code": draw.choice((*NUMBERS, *REASONS, "²", "४२९"))},
                value(draw),
                nested(500),
            )
        )
    if draw.random() < 0.03:
        found["choices"] = value(draw)
    return found


def payloads(draw: random.Random) -> list[bytes]:
    """A stream, one payload each; a piece may come often."""
    found: list[bytes] = []
    for _ in range(draw.choice((0, 1, 3, 6, 12))):
        payload = json.dumps(chunk(draw)).encode()
        found += [payload] * draw.choice((1, 1, 1, 1, 2, 3, 60))
    if draw.random() < 0.6:
        found.append(
            json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": draw.choice(REASONS)}]}).encode()
        )
    if draw.random() < 0.7:
        found.append(b"[DONE]")
    return found
