"""A diff is true, shows everything that it holds, and is bounded whatever is compared."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_core.text.diffs import KEPT_CHARS, KEPT_LINES, LINE_CHARS, OPEN_END, FileChange, change_of
from tests.agent_core.test_shown import UNSEEN, odd

lines = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "\te", "ff"]), max_size=40)
texts = st.tuples(lines, st.booleans()).map(lambda some: ("\n".join(some[0]) + "\n" * some[1]).encode())
HEAD = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def put_upon(before: bytes, change: FileChange) -> bytes:
    """What a reader of the diff makes of the old text."""
    old = before.decode().split("\n")
    old = [f"{one}\n" for one in old[:-1]] + [one for one in old[-1:] if one]
    new: list[str] = []
    at = 0
    rows = change.diff.split("\n")
    for place, row in enumerate(rows):
        if row == OPEN_END:
            continue
        line = row[1:] if rows[place + 1 : place + 2] == [OPEN_END] else f"{row[1:]}\n"
        if found := HEAD.fullmatch(row):
            start = int(found[1]) - (found[2] != "0")
            new, at = new + old[at:start], start
            assert len(new) == int(found[3]) - (found[4] != "0")
        elif row[0] == "+":
            new.append(line)
        else:
            assert old[at] == line
            new += [line] if row[0] == " " else []
            at += 1
    return "".join(new + old[at:]).encode()


@given(texts, texts)
def test_put_upon_what_was_there_it_gives_what_will_be_there(before: bytes, after: bytes):
    change = change_of(before, after)
    if before == after:
        assert change is None
        return
    assert change is not None
    assert change.more == 0
    assert put_upon(before, change) == after
    marks = [row[0] for row in change.diff.split("\n")]
    assert (marks.count("+"), marks.count("-")) == (change.added, change.removed)


@given(texts, st.lists(odd, max_size=30))
def test_nothing_in_it_is_unseen(before: bytes, after: list[str]):
    change = change_of(before, "\n".join(after).encode("utf-8", "replace"))
    assert change is None or not set(change.diff) - {"\n", "\t"} & set(UNSEEN)


@given(st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 900), st.integers(0, 700))
def test_it_keeps_within_its_bounds_and_says_what_is_left_out(old: int, new: int, wide: int, room: int):
    before = "".join(f"{n % 7}\n" for n in range(old)).encode()
    after = "".join(f"{n % 5} {'x' * wide}\n" for n in range(new)).encode()
    change = change_of(before, after)
    if change is None:
        assert before == after or max(len(before), len(after)) > 200_000
        return
    rows = change.diff.split("\n")
    assert len(rows) <= KEPT_LINES
    assert len(change.diff) <= KEPT_CHARS
    assert all(len(row) <= 2 * LINE_CHARS for row in rows)
    shown, left_out = change.shown(room)
    assert len(shown) <= room
    assert left_out == len(rows) + change.more - (len(shown.split("\n")) if shown else 0)


def test_what_is_no_text_and_what_is_too_large_has_none():
    assert change_of(b"a\0b", b"a") is None
    assert change_of(None, b"x" * 300_000) is None
    assert change_of(b"", None) is None


def test_a_change_in_a_long_file_shows_the_lines_around_it_alone():
    before = "".join(f"{n}\n" for n in range(1, 5_001))
    change = change_of(before.encode(), before.replace("\n2500\n", "\ntwo\n").encode())
    assert change == FileChange(
        "@@ -2497,7 +2497,7 @@\n 2497\n 2498\n 2499\n-2500\n+two\n 2501\n 2502\n 2503", added=1, removed=1
    )


def test_of_two_changes_far_from_each_other_the_lines_between_are_not_in_it():
    before = [f"{n}\n" for n in range(100)]
    after = ["first\n", *before[1:-1], "last\n"]
    change = change_of("".join(before).encode(), "".join(after).encode())
    assert change is not None
    assert (change.added, change.removed, len(HEAD.findall(change.diff))) == (2, 2, 2)
