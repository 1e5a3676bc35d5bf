"""Arguments as they go back to a model: always an object, and the one that was meant if there was one."""

from __future__ import annotations

import json

import orjson
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.tools.arguments import for_programs, parsed, spelt_well

OBJECTS = st.dictionaries(
    st.text(max_size=5), st.one_of(st.integers(-9, 9), st.text(max_size=5), st.none()), max_size=3
)
ODD_OBJECTS = st.dictionaries(st.text(max_size=5), st.floats(), max_size=3)
"""With numbers that are none: Python writes and reads them, and calls that JSON."""


@given(
    st.one_of(
        st.text(max_size=60), (OBJECTS | ODD_OBJECTS).map(json.dumps), OBJECTS.map(lambda o: json.dumps(json.dumps(o)))
    )
)
@example('{"path": nope}')
@example("")
@example("null")
@example("[1]")
@example('{"text": "two\nlines"}')
@example('{"a": "\ud83d"}')
@example('{"a": [NaN, 1e999]}')
@example('{"a": -Infinity}')
def test_what_goes_back_is_an_object_and_the_one_that_was_meant(written: str):
    said = orjson.loads(spelt_well(written))  # which takes nothing that any other program would not take
    meant = parsed(written)
    assert said == (meant if isinstance(meant, dict) else {"unreadable": written})
    assert spelt_well(spelt_well(written)) == spelt_well(written)


@given(OBJECTS, st.booleans(), st.booleans())
def test_a_program_reads_what_we_read(meant: dict[str, Json], sloppy: bool, wrapped: bool):
    written = json.dumps(meant)
    if sloppy:  # as models write it: line breaks stand in words as they are
        written = written.replace("\\n", "\n")
    if wrapped:  # as vLLM and GLM write it: the object as text within text (vllm #54964, openclaw #39366)
        written = json.dumps(written)
    read = parsed(written)
    assert isinstance(read, dict)
    assert json.loads(for_programs(written)) == read
    assert for_programs("") == for_programs("null") == "{}"
    assert for_programs('"Rome"') == '"Rome"'
    assert for_programs('{"a": Rome}') == '{"a": Rome}'


@given(OBJECTS.map(json.dumps))
def test_an_object_goes_back_as_it_was_written(written: str):
    assert spelt_well(written) == written
