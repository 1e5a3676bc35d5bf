"""Inline thoughts are told apart from the reply, however the text is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.model.thoughts import ThoughtSplitter


def split(pieces: list[str]) -> tuple[str, str]:
    splitter = ThoughtSplitter()
    found = [splitter.feed(piece) for piece in pieces] + [splitter.finish()]
    return "".join(r for r, _ in found), "".join(t for _, t in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>Hello", ("hm", "Hello")),
        ("\n<think>\nhm\n</think>\n\nHello", ("\nhm\n", "Hello")),
        ("Hello <think>x</think>", ("", "Hello <think>x</think>")),
        ("<think>never closed", ("never closed", "")),
        ("<thin", ("", "<thin")),
        ("<thinking about it", ("", "<thinking about it")),
        ("  plain", ("", "  plain")),
        ("", ("", "")),
    ],
)
def test_only_a_block_that_opens_the_reply_counts(text: str, expected: tuple[str, str]):
    assert split([text]) == expected
    assert split(list(text)) == expected


@given(st.lists(st.sampled_from(["<", "think", "<think>", "</think>", "</", ">", "a", "\n", " "]), max_size=20))
def test_the_cutting_never_matters(pieces: list[str]):
    assert split(pieces) == split(["".join(pieces)]) == split(list("".join(pieces)))
