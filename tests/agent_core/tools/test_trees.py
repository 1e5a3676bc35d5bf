"""Folders that no path reaches and that are deeper than Python calls itself are seen, counted and removed like any others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest import pathlib
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_core.tools.files.trees import below, empty_tree, opened, remove_tree
from tests import examples
from tests.deepfolders import DEEP, dig

LONG = "n" * 250


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "top"
    made.mkdir()
    yield made
    if made.exists():
        remove_tree(made)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(("depth", "name"), [(DEEP, "d"), (40, LONG)])
def test_what_is_deep_is_found_and_removed(top: Path, depth: int, name: str) -> None:
    dig(top, depth, name)
    (top / "beside").write_text("x")
    before = open_descriptors()
    found = [(one.path, one.is_folder) for one in below(top)]
    assert len(found) == depth + 2
    assert (f"{name}/" * depth + "lowest", False) in found
    assert ("beside", False) in found
    remove_tree(top)
    assert not top.exists()
    assert open_descriptors() == before


def test_a_walk_that_is_left_closes_what_it_opened(top: Path) -> None:
    dig(top, 50)
    before = open_descriptors()
    walk = below(top)
    for _ in range(20):
        next(walk)
    walk.close()
    assert open_descriptors() == before


def test_nothing_behind_a_link_is_seen_or_removed(top: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (top / "way").symlink_to(outside)
    (top / "inner").mkdir()
    (top / "inner" / "way").symlink_to(outside)
    assert sorted(one.path for one in below(top)) == ["inner", "inner/way", "way"]
    empty_tree(top)
    assert list(top.iterdir()) == []
    assert (outside / "kept").read_text() == "x"


def test_a_folder_that_is_moved_out_under_the_walk_does_not_lead_it_astray(top: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (top / name).mkdir()
        dig(top / name, 3)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "secret").write_text("x")
    seen: list[str] = []
    moved = False
    for one in below(top):
        seen.append(one.path)
        if one.path.endswith("d/d/d") and not moved:
            (top / one.path[0] / "d").rename(elsewhere / "deep" / "d")
            moved = True
    assert moved
    assert "secret" not in " ".join(seen)
    assert {"a", "b"} <= set(seen)


def test_there_is_nothing_in_no_folder(tmp_path: Path) -> None:
    assert list(below(tmp_path / "none")) == []
    with pytest.raises(FileNotFoundError):
        remove_tree(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="root is closed out of nothing")
def test_what_its_owner_has_closed_is_seen_and_removed(top: Path) -> None:
    (top / "shut" / "inner").mkdir(parents=True)
    (top / "shut").chmod(0)
    assert [one.path for one in below(top)] == ["shut", "shut/inner"]
    (top / "shut" / "inner").chmod(0)
    (top / "shut").chmod(0)
    remove_tree(top)
    assert not top.exists()


def test_what_cannot_be_removed_stays_alone_and_is_not_tried_without_end(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (top / "folder" / "inner").mkdir(parents=True)
    for name in ("a", "held", "z"):
        (top / name).touch()
    unlink, tries = os.unlink, list[str]()

    def held(name: str, *, dir_fd: int) -> None:
        if name == "held":
            tries.append(name)
            assert len(tries) < 10
            raise PermissionError
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", held)
        with pytest.raises(OSError, match="not empty"):
            remove_tree(top)
    assert [one.name for one in top.iterdir()] == ["held"]


def test_a_link_is_no_folder_to_open(top: Path) -> None:
    (top / "link").symlink_to("/")
    here = os.open(top, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="link"):
            opened("link", here)
    finally:
        os.close(here)


PARTS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5)


@settings(examples.MANY, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(folders=st.lists(PARTS, max_size=12), files=st.lists(PARTS, max_size=12))
def test_a_walk_finds_what_was_made(
    tmp_path_factory: pytest.TempPathFactory, folders: list[list[str]], files: list[list[str]]
) -> None:
    top = tmp_path_factory.mktemp("walk")
    for one in folders:
        (top / "/".join(one)).mkdir(parents=True, exist_ok=True)
    for one in files:
        (top / "/".join(one)).mkdir(parents=True, exist_ok=True)
        (top / "/".join(one) / "file").touch()
    made = sorted(str(one.relative_to(top)) for one in top.rglob("*"))
    assert sorted(one.path for one in below(top)) == made
    remove_tree(top)
    assert not top.exists()


def test_what_a_killed_run_of_tests_has_left_of_such_folders_is_removed_by_the_next_one(tmp_path: Path) -> None:
    (old := tmp_path / "pytest-0").mkdir()
    dig(old)
    pathlib.rm_rf(old)
    assert not old.exists()
