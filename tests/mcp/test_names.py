"""Laws of the names under which servers' tools are offered."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.mcp.names import MOST_CHARS, offered_names

PREFIXES = st.sampled_from(["", "time__", "a-very-long-prefix-of-forty-characters__"])
TOOLS = st.lists(
    st.text(min_size=1, max_size=80) | st.sampled_from(["read_file", "read.file", "read file", "x" * 70, "x" * 71]),
    max_size=8,
)
TAKEN = st.sets(st.sampled_from(["read_file", "time__read_file", "x" * 64]))


@given(PREFIXES, TOOLS, TAKEN)
def test_every_tool_has_one_name_that_providers_take_and_nobody_else_has(
    prefix: str, tools: list[str], taken: set[str]
):
    names = offered_names("s", prefix, tools, taken)
    assert names.keys() == set(tools)
    assert len(set(names.values())) == len(names)
    assert not taken & set(names.values())
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())


@given(PREFIXES, TOOLS, TAKEN, st.randoms())
def test_a_name_does_not_depend_on_the_order_of_the_list(
    prefix: str, tools: list[str], taken: set[str], random: object
):
    import random as chance

    assert isinstance(random, chance.Random)
    other = [*tools]
    random.shuffle(other)
    assert offered_names("s", prefix, tools, taken) == offered_names("s", prefix, other, taken)


@given(PREFIXES, TOOLS, TAKEN)
def test_who_can_keep_its_own_name_keeps_it(prefix: str, tools: list[str], taken: set[str]):
    names = offered_names("s", prefix, tools, taken)
    for tool in tools:
        own = f"{prefix}{tool}"
        if re.fullmatch(r"[A-Za-z0-9_-]+", own) and len(own) <= MOST_CHARS and own not in taken:
            assert names[tool] == own
