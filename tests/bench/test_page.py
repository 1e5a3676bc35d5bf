"""What `make bench` writes: several rounds as one table, and the page that is printed from it."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.bench import page
from tests.bench.cases import Figure
from tests.bench.summary import Row, rows

VALUES = st.lists(st.floats(0, 1e6), min_size=1, max_size=7)


@given(VALUES, st.floats(0, 1e6), st.booleans())
def test_a_row_is_the_median_of_the_rounds_and_is_judged_by_it(
    values: list[float], limit: float, at_least: bool
) -> None:
    (row,) = rows([[Figure("a", value, "ms", limit, at_least)] for value in values], {"peer 1": {"a": 2.0, "b": 3.0}})
    assert row.low <= row.median <= row.high
    assert row.median == statistics.median(values)
    assert row.kept == (row.median >= limit if at_least else row.median <= limit)
    assert row.peers == {"peer 1": 2.0}


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = page.Run(
        "1 May 2026",
        "0123",
        "a machine",
        0.2,
        3,
        [Row("a", "ms", 1.0, 0.5, 2.0, 3.0, peers={"p 1": 2.0}), Row("b", "", 0, 0, 0)],
    )
    run.write(tmp_path / "figures.json")
    assert page.read(tmp_path / "figures.json") == run


def test_the_page_tells_what_was_missed_whether_it_was_quiet_and_what_peers_took() -> None:
    kept, missed = Row("kept", "ms", 1.0, 0.5, 2.0, 3.0, peers={"p 1": 2.0}), Row("missed", "s", 4.0, 4.0, 4.0, 3.0)
    told = page.markdown(page.Run("1 May 2026", "0123", "a machine", 0.2, 3, [kept, missed]))
    assert "1 of 2 aims were kept" in told
    assert "| kept | 1 | 0.5–2 | ms | ≤ 3 |  | 2 |" in told
    assert "| missed | 4 |  | s | ≤ 3 **missed** |  |  |" in told
    assert "The machine was quiet (load 0.2)" in told
    assert "not quiet" in page.markdown(replace(page.read(), load=3.0))


def test_the_digest_is_of_the_products_code_alone(tmp_path: Path) -> None:
    for name in ("gateway/a.py", "tests/b.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x = 1\n")
    before = page.digest(tmp_path)
    (tmp_path / "tests/b.py").write_text("x = 2\n")
    assert page.digest(tmp_path) == before
    (tmp_path / "gateway/a.py").write_text("x = 2\n")
    assert page.digest(tmp_path) != before
