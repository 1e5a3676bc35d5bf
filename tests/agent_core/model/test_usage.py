"""What a stream says that it used, wherever it stands and however thoughts are counted in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from agent_core.model.stream.chunks import ChunkReader


def read(*chunks: dict[str, Any]) -> tuple[int, int, int, int]:
    """Tokens: in, out, of these thought, from a cache."""
    reader = ChunkReader(1, frozenset(), parse_text_calls=True)
    reader.feed([orjson.dumps(one) for one in chunks], 5)
    return reader.input_tokens, reader.output_tokens, reader.reasoning_tokens, reader.cached_tokens


USED = {"prompt_tokens": 10, "completion_tokens": 7}
THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 5}}


@pytest.mark.parametrize(
    ("usage", "found"),
    [
        (USED, (10, 7, 0, 0)),
        ({**USED, "total_tokens": 17}, (10, 7, 0, 0)),
        ({**USED, **THOUGHT, "total_tokens": 17}, (10, 7, 5, 0)),  # thoughts are among what was said
        ({**USED, **THOUGHT, "total_tokens": 22}, (10, 12, 5, 0)),  # xAI: they are in the total alone
        ({**USED, "total_tokens": 20}, (10, 10, 0, 0)),  # Google: nothing says that it is thoughts
        ({**USED, **THOUGHT, "total_tokens": 30}, (10, 7, 5, 0)),  # nobody knows what that is
        ({**USED, "prompt_tokens_details": {"cached_tokens": 4}}, (10, 7, 0, 4)),
        ({}, (0, 0, 0, 0)),
        ({"prompt_tokens": "many", "completion_tokens": -1, "total_tokens": None}, (0, 0, 0, 0)),
    ],
)
@pytest.mark.parametrize(
    "places",
    [["chunk"], ["choice"], ["groq"], ["chunk", "choice"]],
    ids=["beside choices", "Moonshot", "Groq", "twice"],
)
def test_what_was_used_is_read_wherever_it_stands(
    usage: dict[str, Any], found: tuple[int, int, int, int], places: Sequence[str]
) -> None:
    last: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    for place in places:
        if place == "choice":
            last["choices"][0]["usage"] = usage
        elif place == "groq":
            last["x_groq"] = {"usage": usage}
        else:
            last["usage"] = usage
    assert read({"choices": [{"index": 0, "delta": {"content": "Hi"}}]}, last) == found


def test_what_is_told_on_the_way_is_replaced_by_what_is_told_last() -> None:
    first: dict[str, Any] = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    last: dict[str, Any] = {
        "choices": [],
        "usage": {"completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 3}},
    }
    assert read(first, last) == (10, 7, 0, 3)
