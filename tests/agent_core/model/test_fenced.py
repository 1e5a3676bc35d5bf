"""A code block that is the whole reply and nothing but calls of tools on offer is calls; any other is what it is: an example."""

from __future__ import annotations

import pytest

from agent_core.model.families.grammar.values import Offered
from agent_core.model.families.pieces import BrokenReason, Piece, TextCall, TextCallBroken, merged
from agent_core.model.stream.text_calls import TextCallParser
from tests.agent_core.model.test_families import calls, shown

TOOLS = (
    b'[{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}},'
    b' {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]'
)
TIDE = [("look_up", {"word": "tide"})]


def read(text: str, size: int, *, well: bool = True) -> list[Piece]:
    parser = TextCallParser(Offered(TOOLS))
    found = [piece for at in range(0, len(text), size) for piece in parser.feed(text[at : at + size])]
    return merged([*found, *parser.finish(well=well)])


CALLS = {
    "json": '```json\n{"name": "look_up", "arguments": {"word": "tide"}}\n```',
    "no language": '```\n{"name": "look_up", "parameters": {"word": "tide"}}\n```\n',
    "a list": '```json\n[{"name": "look_up", "arguments": {"word": "tide"}}]\n```',
    "white space before it": '\n\n```json\n\n  {"name": "look_up", "arguments": {"word": "tide"}}\n\n```\n\n',
    "a language of its own": '```tool_call\n{"name": "look_up", "arguments": {"word": "tide"}}\n```',
    "no end of the block": '```json\n{"name": "look_up", "arguments": {"word": "tide"}}',
    "Gemma": '```tool_code\nprint(default_api.look_up(word="tide"))\n```',
    "Gemma, without print": '```tool_code\nlook_up(word="tide")\n```',
    "a message's list": '{"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": "{\\"word\\": \\"tide\\"}"}}]}',
    "a message's list in a block": '```json\n{"tool_calls": [{"name": "look_up", "arguments": {"word": "tide"}}]}\n```',
    "backticks in an argument": '```json\n{"name": "look_up", "arguments": {"word": "tide"}}\n```<|im_end|>',
}
TEXTS = [
    'Like this:\n```json\n{"name": "look_up", "arguments": {"word": "tide"}}\n```',
    '```json\n{"name": "look_up", "arguments": {"word": "tide"}}\n```\nThat is how it is called.',
    '```json\n{"name": "Ann", "age": 4}\n```',
    '```json\n{"name": "other_tool", "arguments": {}}\n```',
    '```python\nlook_up(word="tide")\n```',
    "```tool_code\nprint(4)\n```",
    "```\nplain words\n```",
    "```",
    "`look_up`",
    "``` look_up ```",
    '{"tool_calls": []}',
    '{"tool_calls": [{"name": "other_tool", "arguments": {}}]}',
]


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_a_block_that_is_the_whole_reply_is_the_calls_in_it(text: str):
    for size in (1, 3, 1_000):
        pieces = read(text, size)
        assert (calls(pieces), shown(pieces)) == (TIDE, "")


@pytest.mark.parametrize("text", TEXTS)
def test_any_other_block_is_text_word_for_word(text: str):
    for size in (1, 3, 1_000):
        pieces = read(text, size)
        assert not any(isinstance(piece, TextCall | TextCallBroken) for piece in pieces)
        assert shown(pieces) == text


def test_two_calls_in_a_block_are_two():
    text = '```json\n[{"name": "look_up", "arguments": {"word": "tide"}}, {"name": "now", "arguments": {}}]\n```'
    assert calls(read(text, 5)) == [*TIDE, ("now", {})]
    assert calls(read('```tool_code\nlook_up(word="tide")\nnow()\n```', 5)) == [*TIDE, ("now", {})]


@pytest.mark.parametrize(
    "text", ['```json\n{"name": "look_up", "arguments": {"wo', '```tool_code\nprint(default_api.look_up(word="ti']
)
def test_a_call_that_the_end_of_the_reply_cut_is_a_failed_one(text: str):
    pieces = read(text, 4, well=False)
    assert [(piece.name, piece.reason) for piece in pieces if isinstance(piece, TextCallBroken)] == [
        ("look_up", BrokenReason.CUT_OFF)
    ]
    assert shown(pieces) == ""


def test_a_call_in_a_block_that_cannot_be_read_is_a_failed_one():
    pieces = read('```tool_code\nprint(default_api.look_up(word="tide" and so on))\n```', 4)
    assert [piece.name for piece in pieces if isinstance(piece, TextCallBroken)] == ["look_up"]
