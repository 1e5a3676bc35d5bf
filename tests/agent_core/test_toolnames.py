"""A tool's name with something before or behind it is the tool, if it can be only one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.toolnames import meant

TOOLS = ("read_file", "write_file", "list", "fs.read", "mcp__notes__add")


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("functions.read_file", "read_file"),
        ("default_api:read_file", "read_file"),
        ("read_file<|channel|>commentary", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("mcp__files__read_file", "read_file"),
        ("multi_tool_use.functions.write_file", "write_file"),
        ("tools/list", "list"),
        (" read_file ", "read_file"),
        ("read_file()", "read_file"),
        ("default_api.fs.read", "fs.read"),
        ("mcp__notes__add", "mcp__notes__add"),
        ("read_files", "read_files"),
        ("readfile", "readfile"),
        ("list_files", "list_files"),
        ("", ""),
    ],
)
def test_what_is_meant(said: str, tool: str) -> None:
    assert meant(said, TOOLS) == tool


def test_two_that_it_could_be_are_none() -> None:
    assert meant("x.fs.read", ("fs.read", "read")) == "x.fs.read"


@given(st.text(max_size=40))
def test_an_offered_name_is_always_itself(name: str) -> None:
    assert meant(name, (*TOOLS, name)) == name
    assert meant(name, ()) == name
    assert meant(name, TOOLS) in (*TOOLS, name)
