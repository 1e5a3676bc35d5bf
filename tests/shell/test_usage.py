"""How much a folder has grown: by bytes or by files, whatever hides them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from agent_core.tools.sandbox import usage
from agent_core.tools.sandbox.usage import FolderWatch, folder_use

BLOCK = 4096


@pytest.mark.parametrize(
    ("files", "blocks", "over"), [(0, 0, False), (4, 1, False), (5, 1, True), (1, 8, False), (1, 9, True), (2, 5, True)]
)
def test_a_folder_is_over_by_bytes_or_by_files_that_came_since(
    tmp_path: Path, files: int, blocks: int, over: bool
) -> None:
    for number in range(20):
        (tmp_path / f"before{number}").write_bytes(b"x" * BLOCK)
    watch = FolderWatch(tmp_path, most_bytes=8 * BLOCK, most_files=4)
    assert not watch.look()
    for number in range(files):
        (tmp_path / f"new{number}").write_bytes(b"x" * BLOCK * blocks)
    assert watch.look() is over


def test_whoever_goes_too_deep_counts_as_one_who_has_written_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "DEEPEST", 3)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    assert folder_use(tmp_path, 100).size < usage.HIDDEN
    (tmp_path / "a" / "b" / "c" / "d").mkdir()
    assert folder_use(tmp_path, 100).size >= usage.HIDDEN


def test_what_links_lead_to_does_not_count_and_a_closed_folder_does(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside / "closed", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * BLOCK)
    (inside / "closed").chmod(0)
    (inside / "link").symlink_to(outside)
    assert folder_use(inside, 100).files == 3


async def test_more_processes_than_there_may_be_are_seen_to_be_more() -> None:
    """Whoever looks compares their number with the limit: one that ended at it would find nobody over it."""
    shell = await asyncio.create_subprocess_exec(
        "sh", "-c", "sleep 60 & sleep 60 & sleep 60 & echo; wait", stdout=-1, start_new_session=True
    )
    try:
        assert shell.stdout is not None
        await shell.stdout.readline()
        assert sorted(len(usage.family(shell.pid, most)) for most in (2, 3, 4, 100)) == [3, 4, 4, 4]
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        await shell.wait()
