"""Tool calls in text: the same pieces however the text is cut, and never half a tag in front of a person."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from agent_core.model.families.pieces import (
    BrokenReason,
    Piece,
    TextCall,
    TextCallBroken,
    TextCallOpened,
    VisibleText,
    merged,
)
from agent_core.model.stream.text_calls import TextCallParser

START_TAG, END_TAG = "<tool_call>", "</tool_call>"

CUT, UNREADABLE = BrokenReason.CUT_OFF, BrokenReason.UNREADABLE


def read(text: str, size: int | None = None) -> list[Piece]:
    parser = TextCallParser()
    step = size or max(1, len(text))
    pieces = [piece for at in range(0, len(text), step) for piece in parser.feed(text[at : at + step])]
    return merged([*pieces, *parser.finish()])


def read_cut(text: str, cuts: list[int]) -> list[Piece]:
    parser = TextCallParser()
    pieces: list[Piece] = []
    for begin, end in pairwise([0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]):
        pieces += parser.feed(text[begin:end])
    return merged([*pieces, *parser.finish()])


def shown(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, VisibleText))


def calls(pieces: list[Piece]) -> list[tuple[str, object]]:
    return [(piece.name, json.loads(piece.arguments)) for piece in pieces if isinstance(piece, TextCall)]


def broken(pieces: list[Piece]) -> list[tuple[str | None, BrokenReason]]:
    return [(piece.name, piece.reason) for piece in pieces if isinstance(piece, TextCallBroken)]


def tagged(body: str) -> str:
    return f"{START_TAG}\n{body}\n{END_TAG}"


# --- examples -------------------------------------------------------------------------------------------------------

READABLE: list[tuple[str, list[tuple[str, object]]]] = [
    ('{"name": "ls", "arguments": {"path": "."}}', [("ls", {"path": "."})]),
    ('{"arguments": {"path": "."}, "name": "ls"}', [("ls", {"path": "."})]),
    ('{"name": "ls", "parameters": {"path": "."}}', [("ls", {"path": "."})]),
    ('{"name": "ls", "parameters": {"a": 1}, "arguments": {"b": 2}}', [("ls", {"b": 2})]),
    ('{"name": "ls", "arguments": "{\\"path\\": \\".\\"}"}', [("ls", {"path": "."})]),
    ('{"name": "ls", "arguments": "\\"{}\\""}', [("ls", {})]),
    ('{"name": "ls", "arguments": ""}', [("ls", {})]),
    ('{"name": "ls", "arguments": "null"}', [("ls", {})]),
    ('{"name": "ls"}', [("ls", {})]),
    ('{"name": "ls", "arguments": null}', [("ls", {})]),
    ('{"name": " ls "}', [("ls", {})]),
    ('{"na\\u006de": "l\\u0073"}', [("ls", {})]),
    ('{"name": "say", "arguments": {"t": "</tool_call> } ] <tool_call>{"}}', [("say", {"t": "</tool_call> } ] <tool_call>{"})]),
    ('{"name": "say", "arguments": {"t": "a \\"b\\" \\\\"}}', [("say", {"t": 'a "b" \\'})]),
    ('{"name": "say", "arguments": {"t": "one\ntwo\tthree"}}', [("say", {"t": "one\ntwo\tthree"})]),
    ('{"name": "say", "arguments": "{\\"t\\": \\"one\ntwo\\"}"}', [("say", {"t": "one\ntwo"})]),
    ('{"function": {"name": "ls", "arguments": {"a": 1}}}', [("ls", {"a": 1})]),
    ('{"type": "function", "function": {"arguments": {"name": "x"}, "name": "ls"}}', [("ls", {"name": "x"})]),
    ('{"type": "function", "id": "1", "function": "ls", "arguments": {}}', [("ls", {})]),
    ('{"arguments": {"name": "no", "function": {"name": "no"}}, "name": "yes"}', [("yes", {"name": "no", "function": {"name": "no"}})]),
    ('[{"name": "a"}, {"name": "b", "arguments": {"x": [1, {"y": 2}]}}]', [("a", {}), ("b", {"x": [1, {"y": 2}]})]),
    ('{"name": "a"}\n{"name": "b"}', [("a", {}), ("b", {})]),
    ('{"name": "a", "name": "b"}', [("a", {})]),
    ('{"name": "a", "arguments": {"s": "\\ud83d"}}', [("a", {"s": "\ud83d"})]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), READABLE)
def test_every_form_of_a_call_is_read_and_nothing_of_it_is_shown(body: str, expected: list[tuple[str, object]]) -> None:
    for size in (None, 1, 3):
        pieces = read(tagged(body), size)
        assert calls(pieces) == expected
        assert [piece.name for piece in pieces if isinstance(piece, TextCallOpened)] == [name for name, _ in expected]
        assert shown(pieces) == ""
        assert broken(pieces) == []


UNREADABLE_BODIES = [
    ("{name: 1}", None),
    ('{"name": "ls", "arguments": {"a": }}', "ls"),
    ('{"name": "ls", "arguments": {"a": 1}', "ls"),
    ('{"name": "ls", "arguments": {"a": 1}}}', "ls"),
    ('{"name": "ls", "arguments": [1]}', "ls"),
    ('{"name": "ls", "arguments": "words"}', "ls"),
    ('{"name": "ls", "arguments": 5}', "ls"),
    ('{"name": "ls", "arguments": {"a": NaN}}', "ls"),
    ('{"name": "", "arguments": {}}', None),
    ('{"name": 7, "arguments": {}}', None),
    ('{"arguments": {}}', None),
    ("[]", None),
    ("[[]]", None),
    ('[{"name": "ls"}, 3]', "ls"),
    ('{"name": "ls"} and so on', "ls"),
    ('{"name": "ls"}<b>', "ls"),
]


@pytest.mark.parametrize(("body", "name"), UNREADABLE_BODIES)
def test_what_is_no_call_inside_whole_tags_is_known_to_be_broken_and_not_shown(body: str, name: str | None) -> None:
    for size in (None, 1):
        pieces = read(f"Look: {tagged(body)} Done.", size)
        assert calls(pieces) == []
        assert broken(pieces) == [(name, UNREADABLE)]
        assert shown(pieces) == "Look: Done."


@pytest.mark.parametrize(
    "text",
    [
        "Use the `<tool_call>` tag like this.",
        "<tool_call> opens and </tool_call> closes.",
        "<tool_call></tool_call>",
        "<tool_call>\n\nno",
        "a </tool_call> b",
        "1 < 2, <table>, </t, <tool>, <tool_called>{}",
        "ends with <t",
        "The tag is <tool>",
        "<tools>\n",
        'Write <tool>{"size": 3}</tool>.',
        "<tool>[1, 2] and <tools>{} as well",
        "ends with <",
        "ends with </too",
        "  edges \n",
        " \n\n ",
        "",
    ],
)
def test_prose_that_only_mentions_tags_is_shown_word_for_word(text: str) -> None:
    for size in (None, 1, 2):
        assert read(text, size) == ([VisibleText(text)] if text else [])


def test_the_name_is_known_as_soon_as_its_closing_quote_arrives() -> None:
    parser = TextCallParser()
    assert parser.feed('Now.\n<tool_call>{"name": "wri') == [VisibleText("Now.")]
    assert parser.feed('te"') == [TextCallOpened(0, "write")]
    assert parser.feed(', "arguments": {"text": "' + "x" * 1000) == []
    assert parser.finish() == [TextCallBroken(0, "write", 1041, CUT)]


def test_two_calls_with_text_between_keep_their_order_and_numbers() -> None:
    first, empty, last = tagged('{"name": "z"}'), tagged("[]"), tagged('{"name": "a"}')
    text = f"One.\n\n{first}\nTwo.\n{empty}\n{last}{END_TAG}\n\nThree."
    assert read(text) == [
        VisibleText("One."),
        TextCallOpened(0, "z"),
        TextCall(0, "z", "{}"),
        VisibleText("\n\nTwo."),
        TextCallBroken(1, None, 3, UNREADABLE),
        TextCallOpened(2, "a"),
        TextCall(2, "a", "{}"),
        VisibleText("\n\nThree."),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("A", "B", "AB"),
        ("A ", "B", "A B"),
        ("A\n", "B", "A\nB"),
        ("A\n\n", "\n\nB", "A\n\nB"),
        ("A\n", "\n\n\n\nB", "A\n\nB"),
        ("A\n", "\n  - B", "A\n  - B"),
        ("A.\r\n", "\r\nB", "A.\nB"),
        ("\n\n", "\n\nB", "B"),
        ("A\n\n", "\n\n", "A"),
        ("\n", "\n", ""),
    ],
)
def test_white_space_around_a_call_becomes_one_gap(before: str, after: str, expected: str) -> None:
    one = tagged('{"name": "a"}')
    assert shown(read(before + one + after)) == expected
    assert shown(read(before + one + "\n" + one + after, 1)) == expected


def test_a_forgotten_end_tag_before_the_next_call_costs_neither_call() -> None:
    assert calls(read('<tool_call>{"name": "a"}\n<tool_call>{"name": "b"}</tool_call>')) == [("a", {}), ("b", {})]


def test_half_a_call_before_the_next_one_costs_only_itself() -> None:
    pieces = read('<tool_call>{"name": "a", <tool_call>{"name": "b"}</tool_call>', 1)
    assert broken(pieces) == [("a", UNREADABLE)]
    assert calls(pieces) == [("b", {})]


@pytest.mark.parametrize(
    "text", ["<tool", "<tool_call", "<tool_call>", "<tool_call>\n ", "<tool_call>{", "<tool_call>[1"]
)
def test_a_text_that_ends_inside_an_opening_tag_or_before_a_name_is_a_call_that_was_cut_off(text: str) -> None:
    pieces = read("Well. " + text)
    assert broken(pieces) == [(None, CUT)]
    assert shown(pieces) == "Well."


def test_a_call_whose_end_tag_a_server_swallowed_is_whole_if_its_json_is() -> None:
    for end in ("", "\n", "</tool_cal"):
        pieces = read('<tool_call>{"name": "a", "arguments": {}}' + end)
        assert (calls(pieces), broken(pieces), shown(pieces)) == ([("a", {})], [], "")


def test_half_an_end_tag_outside_a_call_is_not_shown() -> None:
    assert read("word </tool_c") == [VisibleText("word ")]


def test_big_numbers_and_key_order_reach_the_tool_as_written() -> None:
    arguments = '{"z": 123456789012345678901234567890, "a": 1.10, "z2": 1e5}'
    assert read(tagged(f'{{"name": "a", "arguments": {arguments}}}'))[-1] == TextCall(0, "a", arguments)


def test_feeding_after_the_end_is_refused_and_finishing_twice_gives_nothing() -> None:
    parser = TextCallParser()
    parser.feed("<tool_call>")
    assert len(parser.finish()) == 1
    assert parser.finish() == []
    with pytest.raises(RuntimeError, match="after finish"):
        parser.feed("x")


# --- laws -----------------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=12)
    | st.sampled_from([START_TAG, END_TAG, '"', "\\", "}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(max_size=6) | st.just("name"), json_values, max_size=3)
names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


@st.composite
def call_bodies(draw: st.DrawFn) -> tuple[str, tuple[str, object]]:
    name, arguments, indent = draw(names), draw(json_objects), draw(st.sampled_from([None, 1]))
    value: object = json.dumps(arguments) if draw(st.booleans()) else arguments
    items = [("name", name), (draw(st.sampled_from(["arguments", "parameters"])), value)]
    call: object = dict(draw(st.permutations(items)))
    if draw(st.booleans()):
        call = {"type": "function", "function": call}
    return json.dumps(call, indent=indent, ensure_ascii=draw(st.booleans())), (name, arguments)


fragments = st.one_of(
    st.sampled_from(
        [START_TAG, END_TAG, "<", "</", "<tool", "tool_call>", "{", "}", "[", "]", '"', "\\", ":", ",", " ", "\n", "\n\n", "x",
         "é", '{"name"', ': "f"', '"arguments": ', '"function": ', "null", "1", "<tool_call>{", '<tool_call>{"name": "f"', "}</tool_call>"]
    ),
    call_bodies().map(lambda pair: tagged(pair[0])),
)  # fmt: skip
texts = st.lists(fragments, max_size=14).map("".join)


@given(texts, st.lists(st.integers(0, 10_000), max_size=8))
def test_every_way_of_cutting_a_text_gives_the_same_pieces(text: str, cuts: list[int]) -> None:
    whole = read(text)
    assert read_cut(text, cuts) == whole
    assert read(text, 1) == whole


@given(texts)
def test_pieces_keep_order_numbers_and_names(text: str) -> None:
    pieces = read(text)
    opened = {piece.index: piece.name for piece in pieces if isinstance(piece, TextCallOpened)}
    ended = [piece for piece in pieces if isinstance(piece, TextCall | TextCallBroken)]
    assert [piece.index for piece in ended] == list(range(len(ended)))
    assert {piece.index: piece.name for piece in ended if piece.name is not None} == opened
    for piece in ended:
        where = [at for at, each in enumerate(pieces) if isinstance(each, TextCallOpened) and each.index == piece.index]
        assert len(where) == (piece.name is not None)
        assert all(at < pieces.index(piece) for at in where)
    for piece in pieces:
        if isinstance(piece, TextCall):
            assert isinstance(json.loads(piece.arguments), dict)
        if isinstance(piece, VisibleText):
            assert piece.text


@given(st.lists(st.tuples(st.text("ab.é<=/ \n", max_size=12), st.lists(call_bodies(), max_size=3)), max_size=4))
def test_calls_round_trip_and_the_text_around_them_stays(
    parts: list[tuple[str, list[tuple[str, tuple[str, object]]]]],
) -> None:
    text = "".join(prose + "".join(tagged(body) for body, _ in bodies) for prose, bodies in parts)
    pieces = read(text)
    assert calls(pieces) == [expected for _, bodies in parts for _, expected in bodies]
    assert broken(pieces) == []
    assert "".join(shown(pieces).split()) == "".join("".join(prose for prose, _ in parts).split())


@given(texts, st.integers(1, len(START_TAG)))
def test_nothing_is_shown_that_may_yet_become_a_tag(text: str, length: int) -> None:
    parser = TextCallParser()
    so_far = "".join(shown(parser.feed(char)) for char in text + START_TAG[:length])
    assert shown(read(text + tagged('{"name": "f"}'))).startswith(so_far)
    assert shown(read(text + START_TAG[:length] + "|")).startswith(so_far)


@given(texts, st.integers(5, len(START_TAG)))
@example("<tool_call>{} ", 5)
@example("<tool_call><", 5)
def test_a_text_cut_inside_a_tag_never_shows_a_recognisable_half_of_it(text: str, length: int) -> None:
    text = text.replace('"', "")  # a quotation
    decided = shown(read(text + "~"))  # with which no mark goes on
    assert decided.startswith(shown(read(text + START_TAG[:length])))
    assert decided.startswith(shown(read(text + END_TAG[: min(length + 1, 11)])))


@pytest.mark.parametrize("half", ["<", "<|", "<fun"])
def test_half_of_what_should_follow_a_tag_belongs_to_the_call_that_was_cut(half: str) -> None:
    pieces = read(f"So. {START_TAG}\n{half}")
    assert shown(pieces) == "So."
    assert broken(pieces) == [(None, CUT)]


@given(st.text("<tolcai_>/ \n{x", max_size=30))
def test_a_text_without_tags_is_shown_verbatim(text: str) -> None:
    assume(START_TAG not in text)
    assume(not any(text.endswith(tag[:length]) for tag in (START_TAG, END_TAG) for length in range(5, len(tag))))
    assert shown(read(text)) == text


@given(texts, texts)
def test_reading_two_texts_one_after_the_other_finds_the_calls_of_both(first: str, second: str) -> None:
    pieces = read(first)
    assume(not any(isinstance(piece, TextCallBroken) and piece.reason is CUT for piece in pieces))
    assume(not first.endswith(tuple("</tool_cal")))
    assume(first.count(START_TAG) <= first.count(END_TAG))  # else what follows may still be inside a call
    # What is quoted is told by what stands before it.
    assume(not first.endswith(tuple("\"'`")) and not shown(read(second)).startswith(tuple("\"'`")))
    assert calls(read(first + second)) == calls(pieces) + calls(read(second))


def _seconds(text: str, size: int) -> float:
    best = 9.0
    for _ in range(3):
        begin = time.process_time()
        pieces = read(text, size)
        best = min(best, time.process_time() - begin)
        assert len(calls(pieces)) == 1
    return best


@pytest.mark.parametrize(("size", "chars"), [(1_000_000, 1_000_000), (1000, 1_000_000), (1, 60_000)])
@pytest.mark.parametrize("content", ['a line of "code"\n', "[[],{}],", "</tool_call>{"])
def test_time_grows_no_faster_than_the_length_of_an_argument(size: int, chars: int, content: str) -> None:
    def call(length: int) -> str:
        return tagged(json.dumps({"name": "write", "arguments": {"text": content * (length // len(content))}}))

    short, long = call(chars // 4), call(chars)
    few, many = _seconds(short, size), _seconds(long, size)
    print(f"{len(long) / many / 1e6:.1f} million characters a second in pieces of {size}, content {content!r}")
    assert many < 8 * few + 0.05  # four times the length: linear is 4, quadratic 16; speed itself is no test's business


def test_structure_and_prose_full_of_brackets_are_read_in_linear_time_too() -> None:
    bodies = {
        "brackets": tagged('{"name": "a", "arguments": {"x": [' + "[[],[[]]]," * 20_000 + "1]}}"),
        "mentions": tagged('{"name": "a"}') + " <tool_call> is a tag." * 10_000,
        "prose first": "word " * 40_000 + "<tool_call> is " * 10_000 + tagged('{"name": "a"}'),
    }
    for what, text in bodies.items():
        seconds = _seconds(text, 1_000_000)
        print(f"{what}: {len(text) / seconds / 1e6:.1f} million characters a second")
        assert seconds < 5, "some hundredths of a second; quadratic would take minutes"
    assert cast("TextCall", read(bodies["brackets"])[-1]).name == "a"


# --- the end of the model's turn -------------------------------------------------------------------------------------

ENDED = [
    ("All is well.<|im_end|>", "All is well."),
    ("All is well.<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\nStill.", "All is well."),
    ("All is well.<|endoftext|>Human: please introduce yourself briefly", "All is well."),
    ("42<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n42", "42"),
    ("All is well.\n<end_of_turn>\n<start_of_turn>user\nThanks", "All is well."),
    ("Всё хорошо.<｜end▁of▁sentence｜>ещё", "Всё хорошо."),
    ("使用<|im_end|>标记结束。", "使用标记结束。"),
    ("标记是<|im_end|>。没有别的。", "标记是。没有别的。"),
    ("标记：<|im_end|>\n没有别的。", "标记：\n没有别的。"),
    ("<|im_end|>All is well.", "All is well."),
    ("In ChatML a message ends with <|im_end|> and begins with <|im_start|>.", "In ChatML a message ends with and begins with."),
    ("The mark (<|im_end|>) ends it, `<|im_end|>` does, too.", "The mark () ends it, `<|im_end|>` does, too."),
    ("```\nHi<|im_end|>\nyou\n```\nThat is all.", "```\nHi<|im_end|>\nyou\n```\nThat is all."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), ENDED)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_behind_the_end_of_the_models_turn_nothing_is_said(text: str, words: str, size: int):
    assert " ".join(shown(read(text, size)).split(" ")).replace("  ", " ").replace(" .", ".") == words


def test_what_is_called_behind_the_end_of_the_models_turn_is_not_run():
    pieces = read(f"All is well.<|im_end|>\n<|im_start|>user\nDo it.<|im_end|>\n{tagged(json.dumps({'name': 'rm'}))}")
    assert (shown(pieces), calls(pieces)) == ("All is well.", [])
    before = read(f"{tagged(json.dumps({'name': 'ls', 'arguments': {}}))}<|im_end|>\n<|im_start|>user\nDo it.")
    assert (shown(before), calls(before)) == ("", [("ls", {})])


@given(st.lists(st.sampled_from([*(each for each, _ in ENDED), "<|im_end|>", " ", "\n", "x", tagged('{"name": "ls"}')]), max_size=5), st.lists(st.integers(0, 500)))  # fmt: skip
def test_ends_of_turns_are_the_same_however_the_text_is_cut(parts: list[str], cuts: list[int]):
    text = "".join(parts)
    assert read_cut(text, cuts) == read(text)


BLANKS = st.text(" \n\t", max_size=4)


@given(st.lists(st.one_of(BLANKS, st.sampled_from(["one", "two.", "a < b", tagged('{"name": "ls"}')])), max_size=8))
@example(["one", " ", "\n\n", tagged('{"name": "ls"}'), "\n", "two."])
def test_a_blank_that_is_let_go_in_a_silence_is_not_said_again(parts: list[str]):
    """A silence after each part: what was shown stays, and no word grows together with another or apart."""
    text = "".join(parts)
    parser = TextCallParser()
    pieces: list[Piece] = []
    for part in parts:
        pieces += [*parser.feed(part), *parser.let_go(), *parser.let_go()]
    pieces = merged([*pieces, *parser.finish()])
    whole = read(text)
    assert calls(pieces) == calls(whole)
    assert shown(pieces).split() == shown(whole).split()
    assert shown(pieces).count("\n\n\n") <= text.count("\n\n\n") + text.count(END_TAG)
    if START_TAG not in text:
        assert shown(pieces) == shown(whole)
