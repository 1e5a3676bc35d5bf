"""What a server lists: laws of what is made of it, whatever it sends."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agent_core.jsonvalue import Json
from agent_core.tools.base import EffectClass
from agent_core.tools.mcp.listed import (
    MOST_PROPERTIES,
    MOST_TOOLS,
    SCHEMA_BYTES,
    WORDS_CHARS,
    ServerTool,
    read_listing,
    skeleton,
    written,
)
from agent_core.tools.mcp.logins import login_words
from agent_core.tools.mcp.terms import EVERY, ServerTerms, class_of

LEAVES: st.SearchStrategy[Json] = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20)


def _inner(values: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    lists: st.SearchStrategy[Json] = st.lists(values, max_size=3)
    return lists | st.dictionaries(st.text(max_size=8), values, max_size=3)


VALUES: st.SearchStrategy[Json] = st.recursive(LEAVES, _inner, max_leaves=8)
KINDS = ["string", "integer", "number", "boolean", "array", "object", "null"]
SAID: tuple[Json, ...] = (
    {},
    *({"type": kind} for kind in KINDS),
    {"type": ["string", "null"]},
    {"type": ["integer", "array", "object"]},
    {"enum": ["a", ""]},
    {"type": "string", "pattern": "(a+)+$"},
    {"$ref": "#/$defs/x"},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
)


def _schema(properties: dict[str, Json], required: list[Json], closed: bool) -> dict[str, Json]:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": properties,
        "required": required,
        "$defs": {"x": {"type": "integer"}},
    }
    return {**schema, "additionalProperties": False} if closed else schema


SCHEMAS = st.builds(
    _schema,
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(SAID), max_size=4),
    st.lists(st.sampled_from("abcd"), max_size=2, unique=True),
    st.booleans(),
)


@given(
    st.lists(
        VALUES | st.dictionaries(st.sampled_from(["name", "description", "inputSchema", "annotations"]), VALUES),
        max_size=6,
    )
)
def test_whatever_a_server_lists_what_is_offered_is_bounded_and_can_be_sent(raw: list[Json]):
    found = read_listing(raw)
    assert len({tool.name for tool in found.tools}) == len(found.tools)
    for tool in found.tools:
        assert tool.name
        assert len(tool.description) <= WORDS_CHARS
        assert len(orjson.dumps(dict(tool.parameters))) <= SCHEMA_BYTES + 100
    assert len(found.tools) + len(found.left_out) == len(raw)


def valid(schema: dict[str, Json], arguments: dict[str, Json]) -> bool:
    return Draft202012Validator(schema).is_valid(arguments)  # pyright: ignore[reportUnknownMemberType]


@given(SCHEMAS, st.dictionaries(st.sampled_from("abcde"), LEAVES | st.lists(LEAVES, max_size=2), max_size=4))
def test_the_first_check_takes_all_that_the_whole_schema_takes(schema: dict[str, Json], arguments: dict[str, Json]):
    first = skeleton(schema)
    assert "pattern" not in str(first)
    assert "$ref" not in str(first)
    if valid(schema, arguments):
        assert valid(first, arguments)


@given(SCHEMAS, st.booleans(), st.booleans(), st.booleans())
def test_a_list_that_was_kept_is_read_as_it_was(
    schema: dict[str, Json], read_only: bool, destructive: bool, idempotent: bool
):
    tool = ServerTool("t", "what it does", schema, read_only, destructive, idempotent)
    assert read_listing([written(tool)]).tools == (tool,)


def test_a_name_that_is_listed_twice_counts_once_and_is_told():
    found = read_listing([{"name": "a", "description": "first"}, {"name": "a", "description": "second"}])
    assert [tool.description for tool in found.tools] == ["first"]
    assert found.left_out == ("a is listed twice; the first one counts",)


def test_of_a_list_without_an_end_the_first_are_taken_and_the_rest_is_told():
    found = read_listing([{"name": f"t{n}"} for n in range(MOST_TOOLS + 5)])
    assert len(found.tools) == MOST_TOOLS
    assert found.left_out == (f"5 tools beyond the first {MOST_TOOLS}, more than any model is offered",)


def test_a_schema_that_is_too_deep_or_too_large_is_left_out_with_its_reason():
    deep: Json = {}
    for _ in range(100):
        deep = {"a": deep}
    large: Json = {"type": "object", "properties": {"a": {"description": "x" * SCHEMA_BYTES}}}
    found = read_listing(
        [{"name": "deep", "inputSchema": {"type": "object", "x": deep}}, {"name": "large", "inputSchema": large}]
    )
    assert not found.tools
    assert "nested too deeply" in found.left_out[0]
    assert "bytes, more than" in found.left_out[1]


def listed(*, read_only: bool = False, destructive: bool = False, idempotent: bool = False) -> ServerTool:
    return ServerTool("tool", "", {}, read_only, destructive, idempotent)


def test_annotations_become_classes():
    terms = ServerTerms("s", "s__")
    assert class_of(terms, listed(read_only=True)) is EffectClass.PURE
    assert class_of(terms, listed(idempotent=True)) is EffectClass.KEYED
    assert class_of(terms, listed(destructive=True, idempotent=True)) is EffectClass.KEYED
    assert class_of(terms, listed()) is EffectClass.EFFECT


def test_a_tool_that_only_reads_and_destroys_is_taken_at_its_worst():
    assert class_of(ServerTerms("s", "s__"), listed(read_only=True, destructive=True)) is EffectClass.EFFECT


@given(
    st.booleans(), st.booleans(), st.booleans(), st.sampled_from(list(EffectClass)), st.sampled_from(["tool", EVERY])
)
def test_what_the_operator_says_counts_more_than_what_the_server_says(
    read_only: bool, destructive: bool, idempotent: bool, said: EffectClass, by: str
):
    chosen: dict[str, Any] = {said.value: (by,)}
    terms = ServerTerms("s", "s__", **chosen)
    assert class_of(terms, listed(read_only=read_only, destructive=destructive, idempotent=idempotent)) is said


def test_a_tools_own_name_counts_more_than_all_of_them():
    terms = ServerTerms("s", "s__", effect=(EVERY,), pure=("tool",))
    assert class_of(terms, listed()) is EffectClass.PURE


@given(
    st.sets(st.sampled_from(["a", "b", EVERY])),
    st.sets(st.sampled_from(["a", "b", EVERY])),
    st.sampled_from(["a", "b", "c"]),
)
def test_what_is_denied_is_not_offered_whatever_else_is_said(allow: set[str], deny: set[str], tool: str):
    terms = ServerTerms("s", "s__", allow=tuple(allow), deny=tuple(deny))
    assert terms.offers(tool) == (bool({tool, EVERY} & allow) and not {tool, EVERY} & deny)


@pytest.mark.parametrize(("count", "closed"), [(1, True), (MOST_PROPERTIES, True), (MOST_PROPERTIES + 1, False)])
def test_the_first_check_refuses_no_argument_that_it_does_not_know_of(count: int, closed: bool):
    schema: dict[str, Json] = {
        "type": "object", "additionalProperties": False, "properties": {f"a{n}": {"type": "string"} for n in range(count)},
    }  # fmt: skip
    assert (skeleton(schema).get("additionalProperties") is False) is closed
    assert "additionalProperties" not in skeleton({**schema, "patternProperties": {"^x-": {}}})


HOUR = 3600.0


@pytest.mark.parametrize(
    ("tokens", "left", "words"),
    [
        (None, HOUR, "nobody has logged in"),
        ({"access_token": ""}, HOUR, "nobody has logged in"),
        ({"access_token": "a"}, None, "without a time"),
        ({"access_token": "a", "refresh_token": "r"}, -HOUR, "renewed by itself"),
        ({"access_token": "a"}, -HOUR, "its login ended at"),
        ({"access_token": "a"}, 23 * HOUR, "; then it needs: outspoken mcp login desk"),
        ({"access_token": "a"}, 25 * HOUR, "logged in until"),
    ],
)
def test_an_operator_hears_of_a_login_how_it_stands_and_a_day_before_it_ends(
    tokens: Json, left: float | None, words: str
):
    kept: dict[str, Json] = {"tokens": tokens, "expires_at": None if left is None else 1e9 + left}
    said = login_words(kept, "desk", 1e9)
    assert words in said
    assert ("outspoken mcp login" in said) is (words not in ("without a time", "renewed by itself", "logged in until"))
