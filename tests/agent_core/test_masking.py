"""What counts as the same result: each mask takes off its disguise, order and white space do not matter, progress is seen."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agent_core.rules.masking as masking
from agent_core.rules.masking import MASKS, UndisguisedResult, mask

DISGUISED: dict[str, tuple[str, str]] = {
    "colour": ("\x1b[31mfailed\x1b[0m", "failed"),
    "uuid": ("for 6f1ed002-ab5b-4c2c-9f3d-0123456789ab", "for 00000000-ab5b-4c2c-9f3d-0123456789ac"),
    "date": ("at 2026-11-20T10:00:01.123Z", "at 2026-11-21T23:10:00.001Z"),
    "compact date": ("dump-20261120T100001Z.sql", "dump-20261121T231000Z.sql"),
    "log date": ("[20/Nov/2026:10:00:01 +0000]", "[21/Nov/2026:23:10:00 +0000]"),
    "day first": ("Stand 20.11.2026, 10:00", "Stand 1.12.2026, 23:10"),
    "day and month": ("Date: Fri, 20 Nov 2026 10:00:01 GMT", "Date: Tue, 1 December 2026 23:10:00 GMT"),
    "month and day": ("Nov 20 10:00:01 box", "Dec  1 23:10:00 box"),
    "clock": ("since 10:00:01", "since 9:59 pm"),
    "epoch": ("t=1763632801.25", "t=1763632999"),
    "address": ("<Queue at 0x7ffdeadbeef>", "<Queue at 0x7ff000beef>"),
    "temporary file": ("in /tmp/tmpabc123/x", "in /var/tmp/pytest-of-ada/pytest-12/x"),
    "temporary file (macOS)": ("in /var/folders/zz/a1/T/x/y", "in /private/var/folders/q1/b/T/z/y"),
    "temporary file (Windows)": (r"in C:\Users\Ada\AppData\Local\Temp\a.ps1", r"in D:\temp\b.ps1"),
    "temporary name": ("wrote tmp_abcd", "wrote tmpk3xyz_"),
    "named id": ("request id: gamma", "request id: delta"),
    "process": ("worker pid=17", "worker pid=4711"),
    "process in words": ("held by process 1234", "held by process 98765"),
    "process in a log": ("cron[123]: none", "cron[98]: none"),
    "thread": ("Thread-1 waits", "Thread-12 waits"),
    "long number as id": ('"id": 83412', '"id": 99127'),
    "pod": ("api-7d9f8b6c5d-x2x9z", "api-12345678-bbbbb"),
    "id with its kind": ("req_ab12cd", "req_zz9zzz"),
    "hexadecimal id": ("v1-g1a2b3c4", "v1-gdeadbe1"),
    "hexadecimal id, upper case": ("trace 0A1B2C3D4E5F", "trace F5E4D3C2B1A0"),
    "ULID": ("got 01ARZ3NDEKTSV4RRFFQ69G5FAV", "got 01BX5ZZKBKACTAV9WEVGEMMVS1"),
    "token": ("cursor Zq7R8sT9uVwX1aaa", "cursor a1B2c3D4e5F6g7H8=="),
    "snowflake": ("in 1234567890123456789", "in 9876543210987654321"),
    "long duration": ("took 1m12s", "took 1h 2m 3s"),
    "duration": ("took 12.5 ms", "took 3 Sekunden"),
}
"""Two texts of one meaning for each mask, which no other mask makes equal."""


def same(one: str, other: str) -> bool:
    return UndisguisedResult(one).same(UndisguisedResult(other)) and UndisguisedResult(other).same(
        UndisguisedResult(one)
    )


@pytest.mark.parametrize("name", [row.name for row in MASKS])
def test_each_mask_takes_off_its_disguise_and_none_is_idle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert same(*DISGUISED[name])
    compiled = [pair for row, pair in zip(MASKS, masking.COMPILED, strict=True) if row.name != name]
    monkeypatch.setattr(masking, "COMPILED", tuple(compiled))
    assert not same(*DISGUISED[name]), "another mask does the same"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b.py\na.py\nc.py", "a.py\nb.py\nc.py"),
        ('{"a": 1, "b": [1, 2]}', '{"b":[2,1],\n "a":1}'),
        ('{"a": 1}\n{"b": 2}', '{"b": 2}\n{"a": 1}'),
        ("members: ada, bob, cyd", "members: cyd, ada, bob"),
        ("{'a', 'b', 'c'}", "{'c', 'a', 'b'}"),
        ("alpha beta", "alpha\tbeta\r\n"),
        ("alpha\nbeta", "alpha beta"),
        ('{"stdout": "x\\ny", "at": 1763632801}', '{"at": 1763632999, "stdout": "y\\nx"}'),
        ("web:\n  port: 80\ndb:\n  port: 5432", "db:\n  port: 5432\nweb:\n  port: 80"),
    ],
)
def test_order_and_white_space_do_not_matter(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 of 10", "4 of 10"),
        ("30 %", "40 %"),
        ("1048576 bytes", "2097152 bytes"),
        ("1.2.0", "1.3.0"),
        ("main.c:10:12: error", "main.c:14:10: error"),
        ("line[3] is wrong", "line[4] is wrong"),
        ("the dog bites the man", "the man bites the dog"),
        ("a: done\nb: running", "a: running\nb: done"),
        ("a:\n  state: done\nb:\n  state: running", "a:\n  state: running\nb:\n  state: done"),
        ('{"a": "done", "b": "running"}', '{"a": "running", "b": "done"}'),
        ('[{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]', '[{"n": 1, "s": "y"}, {"n": 2, "s": "x"}]'),
        ('{"id": 17}', '{"id": 18}'),
        ("process 3 of 10", "process 4 of 10"),
        ("pending", "done"),
        ("user17@example.org", "user18@example.org"),
        ("loss 0.913", "loss 0.874"),
        ("5 metres", "6 metres"),
        ("https://example.org/12", "https://example.org/13"),
        ("", "x"),
    ],
)
def test_progress_is_seen(one: str, other: str) -> None:
    assert not UndisguisedResult(one).same(UndisguisedResult(other))


WHOLE = [text for pair in DISGUISED.values() for text in pair]
FRAGMENTS = st.sampled_from(
    [
        *WHOLE,
        "pid ",
        "id: ",
        "5",
        " s",
        "12:3",
        "2026-",
        "/tmp/",
        "0x",
        ":",
        "\n",
        "<",
        ">",
        "ms",
        "a1",
        "T",
        "分",
        "\x1b[",
    ]
)


@given(st.lists(st.sampled_from(["\x1b", "\x1b[", "[0m", "\x1b[31m", "31", "failed", "\x1b[0m"]), max_size=6))
def test_a_colour_that_is_cut_takes_nothing_into_another_one(pieces: list[str]) -> None:
    assert mask(mask("".join(pieces))) == mask("".join(pieces))


@given(st.sampled_from([" ", "\n", ", "]), st.lists(st.sampled_from(WHOLE), max_size=8))
def test_masking_twice_changes_nothing_more(between: str, pieces: list[str]) -> None:
    once = mask(between.join(pieces))  # whole and apart: of a half, what stood beside a time may make another one
    assert mask(once) == once


@given(st.text(max_size=300) | st.lists(FRAGMENTS, max_size=8).map(" ".join))
def test_a_result_is_the_same_as_itself_and_nothing_raises(text: str) -> None:
    assert same(text, text)
    assert same(text, f" {text}\n")


@given(st.text(max_size=60) | FRAGMENTS)
def test_a_text_that_is_passed_over_holds_nothing_to_mask(text: str) -> None:
    if masking.MAYBE.search(text) is None:
        for pattern, _ in masking.COMPILED:
            assert pattern.search(text) is None


@given(st.lists(st.text(alphabet="abc 1:", min_size=1, max_size=8), max_size=8))
def test_lines_may_come_in_any_order(lines: list[str]) -> None:
    flat = [line.strip() for line in lines]
    assert same("\n".join(flat), "\n".join(sorted(flat, reverse=True)))


def test_json_that_is_nested_too_deep_is_text() -> None:
    deep = "[" * 100_000
    assert same(deep, deep)
    assert masking.canonical_arguments(deep) == deep
    assert same("[" * 3_000 + "]" * 3_000, "[" * 3_000 + "]" * 3_000)


@pytest.mark.parametrize(
    "unit",
    [
        "a", "1", "f1", "12:", "1m ", "1-1-", "C:\\a\\", "tmp_", "id: ", "request id ", "Mar 1 ", "0xf", "\x1b[1;", "5s ", "[1,",
        '{"a":', "  x\n", "/var/folders/a/b/", "x@f", "a1B2", "-1f", "1.", "A1", "a,", "pid ",
    ],
)  # fmt: skip
def test_time_is_linear_in_the_text(unit: str) -> None:
    def seconds(length: int) -> float:
        begin = time.process_time()
        _ = UndisguisedResult(unit * (length // len(unit))).digests
        return time.process_time() - begin

    short, long = min(seconds(5_000) for _ in range(3)), seconds(80_000)
    assert long < 16 * short * 6 + 0.5  # sixteen times the text; a square would take 256 times as long
