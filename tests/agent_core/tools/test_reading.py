"""Looking at a workspace, without a worker: what is numbered, what is passed over, and where a look ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_core.jsonvalue import Json
from agent_core.tools.base import ToolOutcome, ToolStatus
from agent_core.tools.files import reading
from agent_core.tools.files.reading import MAX_ENTRIES, MAX_MATCHES, listing, read, search, work

LINES = "".join(f"line {number}\n" for number in range(1, 6))


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({}, [1, 2, 3, 4, 5]),
        ({"first_line": 1, "lines": 2}, [1, 2]),
        ({"first_line": 4}, [4, 5]),
        ({"first_line": 4, "lines": 100}, [4, 5]),
        ({"first_line": 0, "lines": 1}, [1]),
        ({"first_line": 5, "lines": 0}, [5]),
    ],
)
def test_lines_are_those_that_are_asked_for_and_say_which_they_are(
    tmp_path: Path, asked: Mapping[str, Json], numbers: list[int]
) -> None:
    (tmp_path / "f.txt").write_text(LINES)
    told = read({"path": "f.txt", **asked}, tmp_path)
    assert [line for line in told.text.splitlines() if line.startswith("line")] == [f"line {one}" for one in numbers]
    assert told.facts["lines"] == len(numbers)
    assert (f"(lines {numbers[0]} to {numbers[-1]} of 5)" in told.text) is (len(numbers) < 5)


def test_beyond_its_end_a_file_says_how_long_it_is(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text(LINES)
    told = read({"path": "f.txt", "first_line": 6}, tmp_path)
    assert (told.status, "only 5 lines" in told.text) == (ToolStatus.FAILED, True)


@pytest.mark.parametrize("regex", [False, True])
@pytest.mark.parametrize("query", ["apple", "APPLE", "aPPle"])
def test_a_search_finds_words_however_they_are_written(tmp_path: Path, query: str, regex: bool) -> None:
    (tmp_path / "f.txt").write_text("An Apple\nan apple\nAN APPLE\na pear\n")
    assert search({"query": query, "regex": regex}, tmp_path).facts["matches"] == 3


@pytest.mark.parametrize("tool", ["read_file", "list_files", "search_files"])
@pytest.mark.parametrize("path", ["../f.txt", "/etc/passwd", "folder/f.txt", "nowhere/f.txt"])
def test_a_look_that_is_refused_or_finds_no_such_place_has_failed(tmp_path: Path, tool: str, path: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "f.txt").write_text("apple of others")
    (workspace / "folder").symlink_to(tmp_path)
    asked: dict[str, Json] = {"path": path, "query": "apple"}
    told = work({"tool": tool, "workspace": str(workspace), "arguments": asked}, b"")
    assert isinstance(told, dict)
    assert told["status"] == ToolStatus.FAILED.value
    assert "apple" not in str(told["text"])


def test_what_leads_elsewhere_and_what_is_not_whole_yet_is_neither_listed_nor_searched(tmp_path: Path) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    for one in (outside, workspace, workspace / "in"):
        one.mkdir()
    (outside / "secret.txt").write_text("apple of others")
    (workspace / "in" / "own.txt").write_text("apple")
    (workspace / "in" / ".0123456789abcdef.part").write_text("apple, half")
    (workspace / "in" / "film.part").write_text("an apple of a download")
    (workspace / "in" / "file").symlink_to(outside / "secret.txt")
    (workspace / "folder").symlink_to(outside)
    assert listing({}, workspace).text.splitlines() == ["in/", "in/film.part  22 bytes", "in/own.txt  5 bytes"]
    assert search({"query": "apple"}, workspace).text.splitlines() == [
        "in/film.part:1: an apple of a download",
        "in/own.txt:1: apple",
    ]


LOOKS: dict[str, Callable[[Path], ToolOutcome]] = {
    "listing": lambda workspace: listing({}, workspace),
    "searching": lambda workspace: search({"query": "x"}, workspace),
}


@pytest.mark.parametrize(("look", "most"), [("listing", MAX_ENTRIES), ("searching", MAX_MATCHES)])
def test_a_look_ends_with_so_many_and_says_that_there_may_be_more(tmp_path: Path, look: str, most: int) -> None:
    if look == "listing":
        for number in range(most + 1):
            (tmp_path / f"{number:05}").touch()
    else:
        (tmp_path / "f.txt").write_text("x\n" * (most + 1))
    told = LOOKS[look](tmp_path)
    first, *_, note = told.text.splitlines()
    assert note.startswith("(")
    assert "more" in note
    assert first.startswith("00000" if look == "listing" else "f.txt:1:")
    assert next(iter(told.facts.values())) == most


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_ends_with_its_time_and_says_so(tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f.txt").write_text("x\n")
    assert "(" not in LOOKS[look](tmp_path).text
    monkeypatch.setattr(reading, "SECONDS", -1.0)
    told = LOOKS[look](tmp_path).text
    assert "ends here" in told or "ended here" in told
