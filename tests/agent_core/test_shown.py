"""Characters that do something instead of being seen."""

from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.shown import harmless, middle, plain, seam

STEERING = [
    *map(chr, range(32)),
    "\x7f",
    *map(chr, range(0x80, 0xA0)),
    *"\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
]
UNSEEN = [
    *STEERING, *"\xa0\xad\u034f\u061c\u115f\u1160\u180e\u2000\u200b\u200c\u200d\u200e\u200f\u2060\u2063\u206f\u2800\u3000\u3164\ufe0f\ufeff\uffa0",
    "\U000e0001", "\U000e0041", "\U000e0100",
]  # fmt: skip
odd = st.text(st.sampled_from([*UNSEEN, "a", "é", "漢", "\U0001f600"]) | st.characters())


@given(odd)
def test_nothing_harmless_steers_a_terminal_and_doing_it_again_changes_nothing(text: str):
    shown = harmless(text)
    assert not set(shown) & (set(STEERING) - {"\n", "\t"})
    assert harmless(shown) == shown


@given(odd)
def test_what_is_plain_is_on_one_line_and_all_of_it_is_seen(text: str):
    shown = plain(text)
    assert not set(shown) & set(UNSEEN)
    assert not [
        c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") or (c.isspace() and c != " ")
    ]
    assert plain(shown) == shown
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "zwei\nZeilen\tund ein Tab",
        "привет, мир",
        "漢字とかな",
        "مرحبا",
        "שלום",
        "👩‍👩‍👧 👍🏽 🇩🇪 ❤️",
        "naïve café",
        "`code` → ü",
    ],
)
def test_what_people_write_is_left_alone_on_a_terminal(text: str):
    assert harmless(text) == text


@pytest.mark.parametrize(
    "sequence",
    ["\x1b[2J", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\", "\x9b31m", "\x9d0;x\x9c", "\x1bP$q\x1b\\", "a\rb", "a\x08b",
     "\x1b[6n", "\x1b]52;c;AAAA\x07", "\x0e", "\u202egnp.exe"],
)  # fmt: skip
def test_sequences_are_written_out(sequence: str):
    shown = harmless(f"before {sequence} after")
    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert all(c.isprintable() for c in shown)


@given(st.dictionaries(st.text(max_size=5), odd, max_size=3))
def test_json_stays_json_and_says_the_same(value: dict[str, str]):
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        return
    assert json.loads(harmless(text)) == value


@given(st.text(), st.integers(0, 50))
def test_a_cut_text_says_how_much_of_its_middle_is_left_out(text: str, most: int):
    shown = middle(text, most)
    if len(text) <= most:
        assert shown == text
        return
    found = re.search(r" \[…([\d,]+) characters are left out here…\] ", shown)
    assert found
    assert len(shown) - len(found[0]) + int(found[1].replace(",", "")) == len(text)


def test_marks_that_stand_upon_each_other_hide_nothing():
    shown = plain("a" + "\u0301" * 50 + "b")
    assert shown.count("\u0301") <= 3
    assert shown.endswith("b")


@pytest.mark.parametrize(
    ("blank", "kept"),
    [
        ("\n" + " " * 12, "\n" + " " * 12),
        ("\n\n\t\t\t", "\n\n\t\t\t"),
        ("\n\n\n\n", "\n\n"),
        (" " * 500, " " * 64),
    ],
)
def test_where_a_text_was_broken_off_the_indentation_of_its_next_line_is_kept(blank: str, kept: str) -> None:
    assert seam(blank) == kept
