"""A path never leaves its workspace: neither by its names nor by what lies on its way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_core.tools.files.workspace import FileMissing, PathRefused, folder, names_of, open_file


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../a",
        "a/..",
        "a/../b",
        "a/b/../../..",
        "./..",
        "/a",
        "~/a",
        "a\\b",
        "a\0b",
        "a/" * 33,
        "x" * 201,
        "\ud800",
    ],
)
def test_a_path_that_leads_elsewhere_or_is_none_is_refused(path: str) -> None:
    with pytest.raises(PathRefused):
        names_of(path)


@pytest.mark.parametrize(
    ("path", "names"), [("", []), (".", []), ("a//./b", ["a", "b"]), ("...", ["..."]), ("a..b", ["a..b"])]
)
def test_what_stands_still_in_a_path_is_passed_over(path: str, names: list[str]) -> None:
    assert names_of(path) == names


@pytest.mark.parametrize("create", [False, True])
def test_no_link_on_the_way_is_followed(tmp_path: Path, create: bool) -> None:
    outside, workspace = tmp_path / "outside", tmp_path / "workspace"
    (outside / "in").mkdir(parents=True)
    (outside / "file").write_text("of others")
    (workspace / "own").mkdir(parents=True)
    for name, to in (("folder", outside), ("file", outside / "file"), ("own/folder", outside)):
        (workspace / name).symlink_to(to)
    for names in (["folder"], ["folder", "in"], ["own", "folder"]):
        with pytest.raises(PathRefused, match="links are not followed"), folder(workspace, names, create=create):
            pass
    with folder(workspace, []) as here, pytest.raises(PathRefused, match="links are not followed"):
        open_file(here, "file", "file")
    with folder(workspace, ["own"]) as here:
        assert os.listdir(here) == ["folder"]  # noqa: PTH208 - by its descriptor
    if not create:
        with pytest.raises(FileMissing), folder(workspace, ["none"]):
            pass
    assert {one.name for one in outside.iterdir()} == {"in", "file"}
