"""What a model's way of writing says beside the words: to whom it speaks, of what type an argument is, and where a call begins without any mark."""

from __future__ import annotations

import json

import pytest

from agent_core.jsonvalue import Json
from agent_core.model.families.grammar.notation import NotReadable, read_object, read_value
from agent_core.model.families.pieces import TextCallBroken
from tests.agent_core.model.test_families import calls, read, shown, thought

ASKS = '{"word": "tide"}'


@pytest.mark.parametrize(
    ("to", "called"),
    [("all", ""), ("user", ""), ("assistant", ""), ("functions.look_up", "look_up"), ("look_up", "look_up")],
)
@pytest.mark.parametrize("header", ["commentary to={to}", "commentary to={to} <|constrain|>json"])
def test_only_what_is_said_to_a_tool_is_a_call(to: str, called: str, header: str) -> None:
    said = ASKS if called else "I look at the tables."
    pieces = read(f"<|channel|>{header.format(to=to)}<|message|>{said}{'<|call|>' if called else '<|end|>'}")
    assert calls(pieces) == ([(called, json.loads(ASKS))] if called else [])
    assert shown(pieces) == ("" if called else said)


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("name", ["functions.look_up", "look_up"])
@pytest.mark.parametrize(("end", "seen"), [("", ""), ("assistantfinalHere it is.", "Here it is.")])
def test_a_call_is_known_where_a_server_has_dropped_all_marks(size: int | None, name: str, end: str, seen: str) -> None:
    pieces = read(f"analysisHe asks for tides.assistantcommentary to={name} json{ASKS}{end}", size)
    assert calls(pieces) == [("look_up", json.loads(ASKS))]
    assert (thought(pieces), shown(pieces)) == ("He asks for tides.", seen)


@pytest.mark.parametrize("size", [None, 1, 3])
@pytest.mark.parametrize("before", ["", "assistantcommentaryI look at the tables."])
@pytest.mark.parametrize("many", [1, 2])
@pytest.mark.parametrize("after", ["", "Here it is."])
def test_where_a_server_has_dropped_all_marks_what_is_said_between_is_text_and_each_call_is_one(
    size: int | None, before: str, many: int, after: str
) -> None:
    asks = f"assistantcommentary to=functions.look_up json{ASKS}" * many
    pieces = read(f"analysisHe asks for tides.{before}{asks}{after and f'assistantfinal{after}'}", size)
    assert calls(pieces) == [("look_up", json.loads(ASKS))] * many
    assert shown(pieces) == before.removeprefix("assistantcommentary") + after
    assert thought(pieces) == "He asks for tides."


@pytest.mark.parametrize("size", [None, 1, 3])
def test_what_is_said_before_the_answer_is_shown_without_marks_that_were_words(size: int | None) -> None:
    said = "analysisHe asks.assistantcommentaryI look, as an assistant.assistantfinalHere it is."
    assert shown(read(said, size)) == "I look, as an assistant.Here it is."
    assert shown(read("The word assistantfinal is a mark, assistantcommentary as well.", size)).count("assistant") == 2


@pytest.mark.parametrize("size", [None, 1])
def test_half_a_call_without_marks_is_a_broken_one_and_what_is_none_is_text(size: int | None) -> None:
    pieces = read(f"analysisHe asks.assistantcommentary to=functions.look_up json{ASKS[:-3]}", size, well=False)
    assert [piece.name for piece in pieces if isinstance(piece, TextCallBroken)] == ["look_up"]
    assert shown(pieces) == ""
    assert shown(read("analysisHe asks.assistantcommentaryI look at the tables.", size)) == "I look at the tables."


@pytest.mark.parametrize(
    ("said", "text", "value"),
    [
        ("string", "7", "7"), ("String", "[1]", "[1]"), ("true", "7", "7"), ("number", "7", 7), ("false", "7", 7), ("boolean", "true", True),
        ("object", '{"a": 1}', {"a": 1}), ("number", "seven", "seven"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["word", "pages"])
def test_what_a_tag_says_of_an_arguments_type_counts_before_the_schema(
    key: str, said: str, text: str, value: Json
) -> None:
    mark = "string" if said in ("true", "false") else "type"
    if mark == "string":
        body = f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="look_up">\n<｜DSML｜parameter name="{key}" string="{said}">{text}'
        body += "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    else:
        body = f'<|open|>tools<|sep|><|open|>call tool="look_up" index="1"<|sep|><|open|>argument key="{key}" type="{said}"<|sep|>{text}'
        body += "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>"
    assert calls(read(body)) == [("look_up", {key: value})]


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("7", 7), ("-7", -7), ("+7", 7), ("1_000", 1000), ("-1_000", -1000), ("7.0", 7.0), ("-7.5", -7.5), ("1e3", 1e3), ("-2E-1", -0.2), (".5", 0.5)],
)  # fmt: skip
def test_whole_numbers_stay_whole_and_others_do_not_become_so(text: str, value: float) -> None:
    found = read_value(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", ["-", "1__0", "1_", "0x7", "1.2.3", "7a"])
def test_what_is_no_number_is_not_read_as_one(text: str) -> None:
    try:
        found = read_value(text)
    except NotReadable:
        return
    assert not isinstance(found, int | float), found


def test_where_texts_have_a_mark_of_their_own_one_without_it_is_a_text_as_well() -> None:
    assert read_object("{a:two words,b:<e>x, y<e>,c:3}", "<e>") == {"a": "two words", "b": "x, y", "c": 3}
    with pytest.raises(NotReadable):
        read_object("{a: ,b:1}", "<e>")
