"""Lines of a log that grows: each comes once and whole, however it was written, cut or put aside meanwhile."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.operate.triage.reading import Tail

LINES = st.lists(st.binary(max_size=6).map(lambda one: one.replace(b"\n", b" ")), min_size=1, max_size=6)


@given(LINES, st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_each_line_comes_once_and_whole_however_it_was_written(lines: list[bytes], pieces: list[int]) -> None:
    whole, found = b"".join(b"%b\n" % one for one in lines), list[bytes]()
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("wb", 0) as log:
        tail, at = Tail(log.name), 0
        for piece in (*pieces, len(whole)):
            log.write(whole[at : at + piece])
            at += piece
            found += tail.more()
        assert not tail.over
        tail.close()
    assert found == lines


@pytest.mark.parametrize("how", ["another file", "cut", "both names for a moment"])
def test_what_is_written_after_a_log_was_put_aside_is_read_from_its_beginning(tmp_path: Path, how: str) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\ntwo\nth")
    tail = Tail(str(log))
    assert [*tail.more()] == [b"one", b"two"]
    match how:
        case "another file":
            log.rename(tmp_path / "log.1")
            log.write_bytes(b"four\n")
        case "cut":
            log.write_bytes(b"four\n")
        case _:
            log.rename(tmp_path / "log.1")
            assert [*tail.more()] == []
            log.write_bytes(b"four\n")
    rest = [*tail.more(), *tail.more()]
    assert rest == [b"th", b"four"]
    tail.close()


@pytest.mark.parametrize("packed", [False, True])
def test_of_a_pipe_that_is_named_as_a_file_nothing_is_lost(packed: bool) -> None:
    """As by ``outspoken triage <(zcat gateway.log.1.gz)``."""
    lines = [b"%d\n" % number for number in range(200)]
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "wb") as pipe:
        pipe.write(gzip.compress(b"".join(lines)) if packed else b"".join(lines))
        pipe.close()
        tail = Tail(f"/dev/fd/{reading}")
        assert [*tail.all()] == lines
        tail.close()


def test_a_packed_log_is_over_when_it_is_read_and_nothing_of_it_comes_twice(tmp_path: Path) -> None:
    log = tmp_path / "log.gz"
    log.write_bytes(gzip.compress(b"one\ntwo\n"))
    tail = Tail(str(log))
    assert [*tail.more()] == [b"one\n", b"two\n"]
    assert tail.over, "whoever waits for more of it would wait for ever"
    assert [*tail.more()] == []
    tail.close()
