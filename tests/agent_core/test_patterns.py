"""A pattern that is compiled late is as good as one that was compiled at once."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.patterns import compile_all, late

PATTERN = r"(?P<word>a+)b|c"


@given(st.text("abcA\n"), st.sampled_from((0, re.IGNORECASE, re.MULTILINE)))
def test_a_late_pattern_finds_what_one_that_is_compiled_at_once_finds(text: str, flags: int) -> None:
    one, other = late(PATTERN, flags), re.compile(PATTERN, flags)
    for ask in ("search", "match", "fullmatch"):
        found, expected = getattr(one, ask)(text), getattr(other, ask)(text)
        assert (found and found.span()) == (expected and expected.span())
    assert one.sub("-", text) == other.sub("-", text)
    assert [m.groupdict() for m in one.finditer(text)] == [m.groupdict() for m in other.finditer(text)]
    assert (one.pattern, one.flags, one.groups) == (other.pattern, other.flags, other.groups)


def test_what_is_wrong_is_told_when_all_are_compiled() -> None:
    wrong = late("(")
    with pytest.raises(re.error):
        compile_all()
    del wrong
    compile_all()


def test_all_patterns_of_the_program_are_right() -> None:
    words = "import gateway.daemon; from agent_core.text import patterns; print(len(patterns._made)); patterns.compile_all()"
    ran = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert int(ran.stdout) > 50


def test_what_nobody_holds_any_more_is_forgotten() -> None:
    from agent_core.text import patterns

    compile_all()
    before = len(patterns._made)
    for number in range(100):
        late(f"x{number}")
    assert len(patterns._made) <= before + 1
