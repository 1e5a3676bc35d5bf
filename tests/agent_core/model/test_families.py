"""Calls and thoughts in the form of every family: read however they are cut, never shown, and honest text stays as it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.model.families.family import Example, Family
from agent_core.model.families.grammar.values import Offered, converted
from agent_core.model.families.pieces import (
    BrokenReason,
    Piece,
    TakenBack,
    TextCall,
    TextCallBroken,
    TextCallOpened,
    Thought,
    VisibleText,
    merged,
)
from agent_core.model.families.registry import CLOSERS, FAMILIES, NOISE, OPENERS, WRAPPERS
from agent_core.model.stream.text_calls import TextCallParser
from agent_core.model.stream.thoughts import PAIR_CLOSES, PAIR_ENDS, TAG_CLOSES, TAG_OPENS


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def offered(examples: Iterable[Example]) -> Offered:
    """Tools that take what the examples give them."""
    tools: dict[str, dict[str, object]] = {}
    for one in examples:
        for name, arguments in one.calls:
            kinds = {key: {"type": _kind(value)} for key, value in json.loads(arguments).items()}
            tools.setdefault(name, {}).update(kinds)
    schemas = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}
        for name, properties in tools.items()
    ]
    return Offered(orjson.dumps(schemas))


ALL = [(family, one) for family in FAMILIES for one in family.examples]
TOOLS = offered(one for _, one in ALL)


def read_parts(
    parts: Sequence[str], *, calls: bool = True, well: bool = True, inside_thought: bool = False
) -> list[Piece]:
    parser = TextCallParser(TOOLS, calls=calls, inside_thought=inside_thought)
    pieces = [piece for part in parts for piece in parser.feed(part)]
    return merged([*pieces, *parser.finish(well=well)])


def read(text: str, size: int | None = None, *, well: bool = True) -> list[Piece]:
    step = size or max(1, len(text))
    return read_parts([text[at : at + step] for at in range(0, len(text), step)], well=well)


def shown(pieces: Iterable[Piece]) -> str:
    """What is seen at the end."""
    seen: list[str] = []
    for piece in pieces:
        if isinstance(piece, VisibleText):
            seen.append(piece.text)
        elif isinstance(piece, TakenBack):
            seen.clear()
    return "".join(seen)


def thought(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Thought))


def calls(pieces: Iterable[Piece]) -> list[tuple[str, object]]:
    return [(piece.name, json.loads(piece.arguments)) for piece in pieces if isinstance(piece, TextCall)]


def broken(pieces: Iterable[Piece]) -> list[tuple[str | None, BrokenReason]]:
    return [(piece.name, piece.reason) for piece in pieces if isinstance(piece, TextCallBroken)]


def wanted(one: Example) -> list[tuple[str, object]]:
    return [(name, json.loads(arguments)) for name, arguments in one.calls]


# --- every family ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "one"), ALL, ids=lambda value: value.name if isinstance(value, Family) else "")
def test_every_example_is_read_and_nothing_of_its_marks_is_shown(family: Family, one: Example) -> None:
    for size in (None, 1, 2, 3, 7):
        pieces = read(one.text, size)
        assert (calls(pieces), shown(pieces), thought(pieces)) == (wanted(one), one.shown, one.thought), family.name
        assert broken(pieces) == []


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_says_where_its_grammar_is_from_and_gives_examples(family: Family) -> None:
    assert family.examples
    assert family.source
    assert family.models
    assert family.form


@pytest.mark.parametrize(("family", "one"), ALL, ids=lambda value: value.name if isinstance(value, Family) else "")
def test_half_an_example_shows_nothing_of_its_marks_and_never_invents_a_call(family: Family, one: Example) -> None:
    full = wanted(one)
    for end in range(1, len(one.text)):
        pieces = read(one.text[:end], well=False)
        found = calls(pieces)
        for (name, arguments), (whole_name, whole_arguments) in zip(found, full, strict=False):
            assert name == whole_name
            assert arguments == whole_arguments, (family.name, one.text[:end])
        assert len(found) <= len(full)
        assert not re.search(
            r"<[|｜]\w|</\w{4}|<\w+[:_]\w*>|\[TOOL_|\[ARGS|<(?:invoke|function|parameter|think)\b", shown(pieces)
        ), one.text[:end]


@pytest.mark.parametrize(("family", "one"), ALL, ids=lambda value: value.name if isinstance(value, Family) else "")
def test_an_example_in_a_code_block_a_code_span_or_quotation_marks_is_text(family: Family, one: Example) -> None:
    if family.name == "bare":
        return
    line = one.text.replace("\n", " ").replace("`", "")
    for text in (
        f"An example:\n\n````\n{one.text}\n````\n\nThat is all.",
        f"1. Like this:\n   ~~~xml\n{one.text}\n   ~~~\nThat is all.",
        f"Write `` {line} `` and nothing else.",
        f"> {line}\n\nThat is what it said.",
    ):
        for size in (None, 1):
            assert read(text, size) == [VisibleText(text)], family.name


@pytest.mark.parametrize("mark", sorted({*OPENERS, *WRAPPERS, *CLOSERS}))
def test_a_mark_that_is_only_mentioned_is_text(mark: str) -> None:
    for text in (f"The token `{mark}` stands first.", f'It writes "{mark}" and goes on.', f"```\n{mark}\n```\n"):
        assert read(text) == read(text, 1) == [VisibleText(text)]


def test_calls_of_two_families_in_one_reply_are_all_read() -> None:
    picked = [one for family, one in ALL if family.name != "bare"]
    for first, second in pairwise(picked):
        if second.text.startswith(("analysis", "Here")):
            continue
        pieces = read(f"{first.text}\n\n{second.text}", 5)
        assert calls(pieces) == wanted(first) + wanted(second), (first.text, second.text)


# --- honest text ----------------------------------------------------------------------------------------------------

HONEST = [
    "Tool calling works like this: the model writes `<tool_call>` and JSON, the server reads it, and answers.",
    "In Hermes' form a call is\n\n```xml\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n```\n\nand nothing else.",
    "The <think> and </think> tags hold what the model thinks.",
    "What DeepSeek thinks stands between <think> and </think>, what it answers behind.",
    "The opening tag, <thinking>, is often missing.",
    "It ends with the tag </think>, which is all that you get.",
    "<div class=\"a\">\n  <p>Text <b>bold</b> &lt;think&gt;</p>\n  <function>f</function>\n</div>",
    "<invoice name=\"x\"><parameter>1</parameter></invoice> and <tool> and <toolbar> and <functions>",
    '{"result": 3, "items": [1, 2, {"name": "Ann"}]}',
    '{"name": "Ann", "age": 33, "tags": ["a", "b"]}',
    '{"name": "look_up", "meaning": "to search for a word"}',
    '[{"name": "Ann"}, {"name": "Bo"}]',
    "[1, 2, 3]",
    '["look_up", "now"]',
    "[look_up](https://example.org/look_up) is the page.",
    '[look_up(word="tide"), stroll(far=True)]',
    "```tool_code\nlook_up(word=\"tide\")\nprint(stroll(far=True))\n```",
    '[{"name": "look_up", "arguments": {"word": "tide"}}, {"name": "stroll", "arguments": {}}]',
    '{"name": "look_up", "arguments": {"word": "tide"}}; {"name": "stroll", "arguments": {}}',
    '{"tool_calls": [{"name": "look_up", "arguments": {"word": "tide"}}, {"name": "stroll", "arguments": {}}]}',
    "[now] or [later]?",
    "[look_up(word)](x) and [now()](y)",
    '{"name": "look_up", "parameters": {"word": "tide"}}\n\nThat is how a call looks.',
    "functools is a module; functools.reduce folds.",
    "analysis of the figures shows growth.",
    "Here is my idea: we go home.",
    "a < b and c > d, x <- y, i<|j|>k, [T], [TOOLS], [THINKING]",
    "<s>struck out</s> and <response>not a mark</response> and <answer>neither</answer>",
    "def f(x: list[int]) -> dict[str, int]:\n    return {k: v for k, v in x}\n",
    "She said: '<tool_call>{\"name\": \"f\"}</tool_call> here.' And left.",
    "The token “<|python_tag|>{” begins code.",
    "> <tool_call>{\"name\": \"f\"}</tool_call>\n\nis what it printed.",
    "    indented, then text\n\t\ttabs \r\n and ends with blanks   \n\n",
    "`` `<think>` `` in a span, and ```<think>x</think>``` as well.",
    "Call me at <tel:123>, <mailto:a@b.c> or <https://x.y/?a=[b]>.",
    "思考 <b>粗体</b>:◁ 左,▷ 右。",
    "",
    " \n ",
]  # fmt: skip


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_stays_as_it_is(text: str) -> None:
    for size in (None, 1, 2, 3):
        pieces = read(text, size)
        assert pieces == ([VisibleText(text)] if text else [])


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_stays_as_it_is_also_where_no_tool_is_offered(text: str) -> None:
    assert read_parts(list(text), calls=False) == ([VisibleText(text)] if text else [])


@given(
    st.lists(
        st.sampled_from([*"ab <>/[]{}|\"'`\n.,:_", "<b>", "</b>", "word ", "- ", "think", "tool", "\n\n"]), max_size=40
    ).map("".join)
)
@example("<think")
def test_text_without_a_whole_mark_is_shown_word_for_word(text: str) -> None:
    whole = {
        *OPENERS,
        *WRAPPERS,
        *CLOSERS,
        *NOISE,
        *TAG_OPENS,
        *TAG_CLOSES,
        *PAIR_ENDS,
        *PAIR_CLOSES,
    }
    if any(mark in text for mark in whole) or any(
        text.endswith(mark[:length]) for mark in whole for length in range(5, len(mark))
    ):
        return
    assert shown(read(text, 3)) == text


# --- laws -----------------------------------------------------------------------------------------------------------

BITS = [
    *OPENERS, *WRAPPERS, *CLOSERS, *NOISE, *PAIR_ENDS, *PAIR_CLOSES,
    "<think>", "</think>", "<THINK>", "<thinking>", "</thinking>", '<think a="b">', "</ think>", "<reasoning>", "analysis", "assistantfinal",
    "{", "}", "[", "]", '"', "'", "`", "```\n", "\n", "\n\n", " ", " and ", "The tag ", " word", "x", ".", "A", ":", ",", "(", ")", "=",
    '{"name": "look_up", "parameters": {"word": "a"}}', '"name"', "look_up", "functions.", "json", "<|message|>", "<|sep|>",
    "<parameter=a>", "</parameter>", '<parameter name="a">', "<arg_key>k</arg_key>", "<arg_value>v</arg_value>", "[ARGS]", "[CALL_ID]",
    "<｜tool▁sep｜>", "call:", "<escape>", '<|"|>', "<", ">", "/", "name", "é", "\\",
]  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(BITS), st.sampled_from([one.text for _, one in ALL])), max_size=9).map(
    "".join
)


@given(texts, st.lists(st.integers(0, 10_000), max_size=10), st.booleans(), st.booleans())
def test_every_way_of_cutting_a_text_gives_the_same(text: str, cuts: list[int], with_calls: bool, inside: bool) -> None:
    whole = read_parts([text], calls=with_calls, inside_thought=inside)
    at = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    parts = [text[begin:end] for begin, end in pairwise(at)]
    assert read_parts(parts, calls=with_calls, inside_thought=inside) == whole
    assert read_parts(list(text), calls=with_calls, inside_thought=inside) == whole


@given(texts)
def test_what_is_shown_early_is_what_is_shown_in_the_end(text: str) -> None:
    parser = TextCallParser(TOOLS)
    early = ""
    for char in text:
        for piece in parser.feed(char):
            early = (
                "" if isinstance(piece, TakenBack) else early + piece.text if isinstance(piece, VisibleText) else early
            )
            assert (
                isinstance(piece, TakenBack)
                or shown(read(text)).startswith(early)
                or any(isinstance(later, TakenBack) for later in read(text))
            )


@given(texts)
def test_calls_are_opened_once_and_end_once_in_their_order(text: str) -> None:
    pieces = read(text)
    ended = [piece for piece in pieces if isinstance(piece, TextCall | TextCallBroken)]
    opened = {piece.index: piece.name for piece in pieces if isinstance(piece, TextCallOpened)}
    assert len({piece.index for piece in ended}) == len(ended)
    assert {piece.index: piece.name for piece in ended if piece.name is not None} == opened
    for piece in ended:
        if isinstance(piece, TextCall):
            assert isinstance(json.loads(piece.arguments), dict)


@pytest.mark.parametrize(("family", "one"), ALL, ids=lambda value: value.name if isinstance(value, Family) else "")
@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_a_long_reply_of_many_calls_is_read_whole(family: Family, one: Example, size: int) -> None:
    if family.name == "bare":
        return
    pieces = read((one.text + "\n\n") * 200, size)
    assert len(calls(pieces)) == 200 * len(one.calls)


# --- thoughts -------------------------------------------------------------------------------------------------------

THOUGHTS = [
    ("Hello <think>secret</think> world", "secret", "Hello world"),
    ("Hello <think> a secret plan </think> world", " a secret plan ", "Hello world"),
    ("<think>a<think>b</think>c</think>d", "abc", "d"),
    ("<think>\n<think>\nab</think>Hello", "\n\nab", "Hello"),
    ("<THINK>x</Think>Y", "x", "Y"),
    ('<thinking type="x" n=2>q</thinking>\n\nA', "q", "A"),
    ("<think>never closed", "never closed", ""),
    ("<think/>Hi", "", "Hi"),
    ("Yes.\n\n<thought>hm</thought>\n\nNo.", "hm", "Yes.\n\nNo."),
    ("<reasoning>a</reasoning>b<reflection>c</reflection>d", "ac", "bd"),
    ("◁think▷a◁/think▷b", "a", "b"),
    ("[THINK]a[/THINK]b", "a", "b"),
    ("<|channel>thought\nhm\n<channel|>Hi", "\nhm\n", "Hi"),
    ("<seed:think>a</seed:think>b", "a", "b"),
    ("<mm:think>a</mm:think>b", "a", "b"),
    ("<think>a</thinking>b", "a", "b"),
    ("<think>the tag `</think>` ends it</think>b", "the tag `</think>` ends it", "b"),
    ("analysisWe think.assistantfinalHello", "We think.", "Hello"),
    ("Here is my thought process:\nhm\nHere is my response:\nHello", "\nhm\n", "Hello"),
    ("<think>x</think>\n<answer>\nHello\n</answer>", "x", "Hello"),
    ("</think>\n\nHi", "", "Hi"),
    ("Answer.\n</think>", "", "Answer."),
    ("Hm, a number.\n</think>\n\nFour.", "", "Four."),
    ("Hm.</think>Four.", "", "Four."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "inside", "seen"), THOUGHTS)
@pytest.mark.parametrize("with_calls", [True, False])
def test_thoughts_in_any_marks_are_thoughts_and_are_not_shown(
    text: str, inside: str, seen: str, with_calls: bool
) -> None:
    for parts in ([text], list(text), re.findall(r"(?s).{1,3}", text)):
        pieces = read_parts(parts, calls=with_calls)
        assert (thought(pieces), shown(pieces)) == (inside, seen)


def test_calls_at_the_end_of_a_thought_that_was_not_closed_are_calls() -> None:
    pieces = read('Now.<tool_call>{"name": "now"}</tool_call><think>Again.<tool_call>{"name": "now"}</tool_call>')
    assert calls(pieces) == [("now", {}), ("now", {})]
    assert [piece.index for piece in pieces if isinstance(piece, TextCall)] == [0, 1]


@pytest.mark.parametrize("size", [None, 1, 9])
def test_behind_an_end_mark_that_a_thought_quotes_it_is_read_on_at_once(size: int | None) -> None:
    pieces = read('<think>It ends with "</think>" here.</think>Yes.', size)
    assert (thought(pieces), shown(pieces)) == ('It ends with "</think>" here.', "Yes.")


def test_a_thought_that_only_mentions_a_call_makes_none() -> None:
    assert calls(read('<think>I could write <tool_call>{"name": "now"}</tool_call> but I do not.</think>No.')) == []
    assert calls(read('<think>I could write <tool_call>{"name": "now"}</tool_call> but I do not.')) == []


def test_replies_that_are_known_to_begin_inside_a_thought_show_nothing_of_it() -> None:
    assert read_parts(["Hm, ", "four.</th", "ink>Four."], inside_thought=True) == [
        Thought("Hm, four."),
        VisibleText("Four."),
    ]
    assert shown(read_parts(["No thought ", "at all."], inside_thought=True)) == "No thought at all."
    assert shown(read_parts(["A thought that a limit cu"], inside_thought=True, well=False)) == ""
    assert shown(read_parts(["<think>", "Hm.</think>Yes."], inside_thought=True)) == "Yes."


# --- what cannot be read, and what texts mean -----------------------------------------------------------------------

FAILED = [
    ('Text <tool_call>{"name": "now", "arguments": {"a": }}</tool_call>', "now", BrokenReason.UNREADABLE, "Text"),
    ("<tool_call>{no json}</tool_call>", None, BrokenReason.UNREADABLE, ""),
    ('<tool_call>{"name": "now", "arguments": {"a": "', "now", BrokenReason.CUT_OFF, ""),
    ('[TOOL_CALLS]now[ARGS]not json', "now", BrokenReason.UNREADABLE, ""),
    ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>what?<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "now", BrokenReason.UNREADABLE, ""),
    ('<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{"a": 1<|tool_call_end|>', "now", BrokenReason.UNREADABLE, ""),
    ("<function=now>\n<parameter=a>\nhalf", "now", BrokenReason.CUT_OFF, ""),
    ('<minimax:tool_call>\n<invoke name="now">\n<parameter name="a">1</parameter>\nwhat?\n</invoke>', "now", BrokenReason.UNREADABLE, ""),
    ("<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"a\"", "now", BrokenReason.CUT_OFF, ""),
    ("<start_function_call>call:now{a:<escape>b}<end_function_call>", "now", BrokenReason.CUT_OFF, ""),
    ('{"name": "now", "parameters": {"a": ', "now", BrokenReason.CUT_OFF, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "reason", "seen"), FAILED)
def test_what_looks_like_a_call_and_cannot_be_read_is_a_broken_call_and_not_text(
    text: str, name: str | None, reason: BrokenReason, seen: str
) -> None:
    for size in (None, 1):
        pieces = read(text, size)
        assert (broken(pieces), calls(pieces), shown(pieces)) == ([(name, reason)], [], seen)


def test_a_call_that_names_no_tool_is_none() -> None:
    pieces = read('<invoke name="">\n<parameter name="a">1</parameter>\n</invoke>')
    assert (calls(pieces), broken(pieces)) == ([], [])


PROPERTIES = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "share": {"type": ["number", "null"]},
    "on": {"type": "boolean"},
    "many": {"type": "array", "items": {"type": "integer"}},
    "deep": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    "choice": {"enum": ["1", "2"]},
    "any": {},
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("text", "1", "1"),
        ("text", " as it is \n", " as it is \n"),
        ("text", "null", "null"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("count", " 3 ", 3),
        ("count", "three", "three"),
        ("share", "0.5", 0.5),
        ("share", "None", None),
        ("on", "True", True),
        ("on", "false", False),
        ("on", "perhaps", "perhaps"),
        ("many", "[1, 2]", [1, 2]),
        ("many", "(1, 2)", [1, 2]),
        ("many", "1, 2", "1, 2"),
        ("deep", "{'a': [True, None]}", {"a": [True, None]}),
        ("deep", "null", None),
        ("choice", "1", "1"),
        ("any", "1", 1),
        ("any", "word", "word"),
        ("unknown", "1", 1),
    ],
)
def test_texts_become_what_the_schema_says(key: str, text: str, value: object) -> None:
    tools = Offered(orjson.dumps([{"function": {"name": "f", "parameters": {"properties": PROPERTIES}}}]))
    assert tools.value("f", key, text) == value
    assert tools.value("functions.f", key, text) == value
    assert tools.value("unknown", key, text) == text


@pytest.mark.parametrize(
    "unit",
    [
        "<tool_call> is a tag. ",
        "<think> and ",
        "a <b> ",
        "[TOOL_CALLS] ",
        "</think>x ",
        "<think>a</think>b ",
        "`<tool_call>` ",
        "<|channel|> ",
        "</parameter>\n",
        "<think ",
    ],
)
@pytest.mark.parametrize(
    "before",
    [
        "",
        "<function=write_note>\n<parameter=title>\n",
        "<think>",
        '<tool_call>{"name": "now", "arguments": {"a": "',
        "{",
        '[look_up(word="',
    ],
)
def test_time_grows_with_the_text_alone(unit: str, before: str) -> None:
    def steps(size: int, parts: int) -> int:
        text = before + unit * size
        count = 0

        def note(_frame: object, event: str, _arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        cut = [text[at : at + parts] for at in range(0, len(text), parts)]
        sys.setprofile(note)
        try:
            read_parts(cut)
        finally:
            sys.setprofile(None)
        return count

    for parts in (7, 10**9):
        steps(400, parts)  # what is made once (expressions are compiled) is no time that grows
        assert steps(800, parts) < 3 * steps(400, parts) + 1_000


@pytest.mark.parametrize(
    ("text", "types", "value"),
    [
        ("5", {"string"}, "5"), ("true", {"string"}, "true"), ("null", {"string"}, "null"), (" x ", {"string"}, " x "),
        ("5", {"integer"}, 5), ("5", {"string", "integer"}, 5), ("5.5", {"number"}, 5.5), ("five", {"integer"}, "five"),
        ("True", {"boolean"}, True), ("None", {"string", "null"}, None), ("[1]", {"string"}, "[1]"), ("[1]", {"array"}, [1]),
        ('{"a": 1}', {"object"}, {"a": 1}), ("5", set[str](), 5), ("x", set[str](), "x"),
    ],
)  # fmt: skip
def test_what_stands_in_a_text_is_what_its_schema_takes_and_a_text_stays_one(
    text: str, types: set[str], value: object
) -> None:
    found = converted(text, frozenset(types))
    assert (found, type(found)) == (value, type(value))
