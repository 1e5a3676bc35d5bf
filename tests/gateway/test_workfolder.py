"""The folder of the workspaces: missing, another one, silent, and there again."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import gateway.storage.workfolder as workfolder
from agent_core.ports import SystemClock
from agent_core.tools.files.workspace import PathRefused, gone, made
from gateway.storage.workfolder import WorkFolder, number_of
from tests.storage.harm import own_disk
from tests.store.support import FakeClock


async def test_what_stands_in_the_place_of_the_folder_is_none_and_the_same_one_is_back(tmp_path: Path) -> None:
    root = tmp_path / "files"
    one = WorkFolder(root, SystemClock())
    with capture_logs() as said:
        async with one.running():
            made(root / "first")
            await one.look()
            assert one.words == ""
            root.rename(tmp_path / "disk")
            for bare in (False, True):
                if bare:
                    root.mkdir()
                await one.look()
                assert "is its disk or share mounted" in one.words
                for workspace in (root / "second", root / "first", root / ".nameless" / "third"):
                    with pytest.raises(PathRefused):
                        made(workspace)
                assert not gone(root / "first"), "nobody knows"
                assert not bare or [*root.iterdir()] == []
            root.rmdir()
            (tmp_path / "disk").rename(root)
            await one.look()
            assert one.words == ""
            made(root / "second")
            assert gone(root / "third")
        made(tmp_path / "of nobody" / "x")
    assert [line["event"] for line in said if line["event"].startswith("workspace.")] == [
        "workspace.away", "workspace.back",
    ]  # fmt: skip


async def test_a_folder_with_another_number_is_another_one(tmp_path: Path) -> None:
    root = tmp_path / "files"
    one = WorkFolder(root, SystemClock())
    async with one.running():
        await one.look()
        mine = (root / workfolder.NUMBER).read_text()
        for number, there in (("another", False), ("", False), (mine, True)):
            (root / workfolder.NUMBER).write_text(number)
            await one.look()
            assert (one.words == "") is there


async def test_a_folder_whose_number_nobody_could_make_at_the_start_is_there_as_soon_as_somebody_can(
    tmp_path: Path,
) -> None:
    root = tmp_path / "files"
    root.write_text("in its place")
    one = WorkFolder(root, SystemClock())
    async with one.running():
        await one.look()
        assert one.words != ""
        root.unlink()
        await one.look()
        assert one.words == ""
        made(root / "first")


async def test_a_number_that_is_there_is_known_where_nothing_can_be_written(tmp_path: Path) -> None:
    with own_disk(tmp_path / "disk", "64k"):
        mine = number_of(tmp_path / "disk")
        assert mine
        with suppress(OSError), (tmp_path / "disk" / "full").open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        assert number_of(tmp_path / "disk") == mine


async def test_each_time_that_it_was_away_is_told_with_its_own_length(tmp_path: Path) -> None:
    root, clock = tmp_path / "files", FakeClock()
    one = WorkFolder(root, clock)
    with capture_logs() as said:
        async with one.running():
            for seconds in (7, 3):
                root.rename(tmp_path / "disk")
                await one.look()
                clock.now += seconds * 1000
                (tmp_path / "disk").rename(root)
                await one.look()
                clock.now += 60_000
    assert [line["seconds"] for line in said if line["event"] == "workspace.back"] == [7, 3]


async def test_one_that_hangs_is_said_so_and_asked_by_one_thread_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workfolder, "PATIENCE_SECONDS", 0.05)
    hanging, asked = threading.Event(), list[int]()

    class Hangs(WorkFolder):
        def there(self) -> bool:
            asked.append(1)
            hanging.wait(30)
            return True

    one = Hangs(tmp_path, SystemClock())
    with capture_logs() as said:
        for _ in range(3):
            await one.look()
            assert "does not answer" in one.words
        hanging.set()
        async with asyncio.timeout(20):
            while one.words:
                await one.look()
    assert len(asked) <= 2
    assert [line["event"] for line in said] == ["workspace.away", "workspace.back"]
