"""The tools that write files: what they put down first, what they find when they are begun again, and many of them at once."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core.jsonvalue import Json
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolOutcome, ToolStatus
from agent_core.tools.builtin.writers import FILE_TOOLS
from agent_core.tools.files import writing
from agent_core.tools.files.workspace import PathRefused
from agent_core.tools.files.writing import APPEND_BYTES
from agent_core.tools.registry import Runnable, ToolRegistry

REGISTRY = ToolRegistry(FILE_TOOLS)
EDIT: dict[str, Json] = {"path": "a/f.txt", "old": "two", "new": "2"}
CALLS: list[tuple[str, dict[str, Json], str | None, str]] = [
    ("write_file", {"path": "a/f.txt", "content": "new\n"}, None, "new\n"),
    ("write_file", {"path": "a/f.txt", "content": "new\n"}, "old\n", "new\n"),
    ("append_file", {"path": "a/f.txt", "content": "more\n"}, None, "more\n"),
    ("append_file", {"path": "a/f.txt", "content": "more\n"}, "old\n", "old\nmore\n"),
    ("edit_file", EDIT, "one two three", "one 2 three"),
]


class Call:
    """One call, with what it put down; begun again as often as wanted, as after a kill."""

    def __init__(self, workspace: Path, name: str, arguments: dict[str, Json], key: str = "t:c") -> None:
        spec = next(spec for spec in REGISTRY.specs() if spec.name == name)
        self.checked = Runnable(spec, arguments)
        self.context = ToolContext("t", "c", key, workspace, "m", SystemClock(), lambda _: None, intend=self._intend)
        self.put_down: list[Json] = []
        self.meanwhile: Callable[[], None] | None = None

    async def _intend(self, intention: Json) -> None:
        await asyncio.sleep(0)
        self.put_down.append(intention)
        if self.meanwhile is not None:
            self.meanwhile()

    async def prepare(self) -> None:
        self.put_down.append(await REGISTRY.prepare(self.checked, self.context))

    def run(self, *, again: bool = False) -> Awaitable[ToolOutcome]:
        return REGISTRY.run(self.checked, replace(self.context, intention=self.put_down[-1], again=again))


def placed(workspace: Path, before: str | None) -> Path:
    file = workspace / "a" / "f.txt"
    if before is not None:
        file.parent.mkdir(parents=True)
        file.write_text(before)
    return file


def names(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


@pytest.mark.parametrize(("name", "arguments", "before", "after"), CALLS)
async def test_a_call_that_is_begun_again_is_done_once_and_says_the_same(
    name: str, arguments: dict[str, Json], before: str | None, after: str, tmp_path: Path
) -> None:
    file = placed(tmp_path, before)
    call = Call(tmp_path, name, arguments)
    await call.prepare()
    assert (file.read_text() if file.exists() else None) == before, "it only looked"
    first = await call.run(again=True)  # killed before it had begun, or right before the replacement
    inode = file.stat().st_ino
    assert (first.status, file.read_text()) == (ToolStatus.OK, after)
    for _ in range(3):
        assert await call.run(again=True) == first
    assert (file.read_text(), file.stat().st_ino) == (after, inode)
    assert names(file.parent) == ["f.txt"]
    assert len(call.put_down) == 1


@pytest.mark.parametrize(("name", "arguments", "before", "after"), CALLS)
async def test_what_somebody_else_made_of_the_file_stays_when_a_call_is_begun_again(
    name: str, arguments: dict[str, Json], before: str | None, after: str, tmp_path: Path
) -> None:
    file = placed(tmp_path, before)
    call = Call(tmp_path, name, arguments)
    await call.prepare()
    await call.run()
    file.write_text("by somebody else")
    outcome = await call.run(again=True)
    if name == "append_file" and before is None:  # into a file that was not there, everything may have come before
        assert (outcome.status, file.read_text()) == (ToolStatus.OK, "by somebody elsemore\n")
        return
    assert (outcome.status, file.read_text()) == (ToolStatus.UNKNOWN, "by somebody else")
    assert "may or may not have been done" in outcome.text
    assert "Read the file first" in outcome.text


@pytest.mark.parametrize(("name", "arguments", "before", "after"), CALLS[1:])
async def test_a_file_that_changes_before_the_call_is_put_down_anew_before_it_is_touched(
    name: str, arguments: dict[str, Json], before: str | None, after: str, tmp_path: Path
) -> None:
    file = placed(tmp_path, before)
    call = Call(tmp_path, name, arguments)
    await call.prepare()
    between = f"{before or ''} and two more\n".replace("two three", "three")
    file.parent.mkdir(exist_ok=True)
    file.write_text(between)
    seen: list[str] = []
    call.meanwhile = lambda: seen.append(file.read_text())
    first = await call.run()
    assert (first.status, seen) == (ToolStatus.OK, [between])
    assert len(call.put_down) == 2
    then = file.read_text()
    assert await call.run(again=True) == first
    assert file.read_text() == then


async def test_a_file_that_others_change_all_the_time_is_left_alone(tmp_path: Path) -> None:
    file = placed(tmp_path, "old\n")
    call = Call(tmp_path, "append_file", {"path": "a/f.txt", "content": "more\n"})
    await call.prepare()

    def changes() -> None:
        file.write_text(file.read_text() + "x")

    call.meanwhile = changes
    file.write_text("x")
    outcome = await call.run()
    assert outcome.status is ToolStatus.FAILED
    assert "Nothing was done" in outcome.text
    assert "more" not in file.read_text()


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("edit_file", EDIT, "does not occur"),
        ("edit_file", {**EDIT, "path": "b.txt"}, "no file b.txt"),
        ("append_file", {"path": "../f", "content": "x"}, "cannot leave"),
        ("write_file", {"path": "pipe", "content": "x"}, "not a regular file"),
        ("write_file", {"path": "a/f.txt/x", "content": "x"}, "not a folder"),
    ],
)
async def test_what_cannot_be_done_is_put_down_too_and_said_again(
    name: str, arguments: dict[str, Json], words: str, tmp_path: Path
) -> None:
    placed(tmp_path, "old\n")
    os.mkfifo(tmp_path / "pipe")
    call = Call(tmp_path, name, arguments)
    await call.prepare()
    outcome = await call.run()
    assert outcome.status is ToolStatus.FAILED
    assert words in outcome.text
    (tmp_path / "a" / "f.txt").write_text("two")
    assert await call.run(again=True) == outcome


async def test_many_calls_for_one_file_all_come_through_each_once(tmp_path: Path) -> None:
    calls = [
        Call(tmp_path, "append_file", {"path": "log.txt", "content": f"line {n}\n"}, key=f"t:{n}") for n in range(16)
    ]
    await asyncio.gather(*(call.prepare() for call in calls))
    outcomes = await asyncio.gather(*(call.run() for call in calls))
    assert [outcome.status for outcome in outcomes] == [ToolStatus.OK] * 16
    assert sorted((tmp_path / "log.txt").read_text().split("\n")) == sorted(["", *(f"line {n}" for n in range(16))])
    assert sum(len(call.put_down) for call in calls) == 31, "each but the first put down once more what it found"
    again = await asyncio.gather(*(call.run(again=True) for call in calls))
    assert list(again) == list(outcomes)
    assert names(tmp_path) == ["log.txt"]


def test_one_writes_in_a_folder_at_a_time_of_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LOCK_SECONDS", 0.0)
    mine, others = (os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY) for _ in range(2))
    try:
        with writing._alone(mine, "f.txt"), pytest.raises(PathRefused, match="busy"), writing._alone(others, "f.txt"):
            pass
        with writing._alone(others, "f.txt"):
            pass
    finally:
        os.close(mine)
        os.close(others)


async def test_a_process_that_was_killed_while_it_wrote_leaves_neither_a_part_of_the_file_nor_rubbish(
    tmp_path: Path,
) -> None:
    file = placed(tmp_path, "old\n")
    call = Call(tmp_path, "write_file", {"path": "a/f.txt", "content": "new\n"})
    await call.prepare()
    with pytest.MonkeyPatch.context() as patch:

        def killed(*_: object, **__: object) -> None:
            raise SystemExit

        patch.setattr(os, "replace", killed)
        with pytest.raises(SystemExit):
            await call.run()
    assert file.read_text() == "old\n"
    assert len(names(file.parent)) == 2
    assert (await call.run(again=True)).status is ToolStatus.OK
    assert (file.read_text(), names(file.parent)) == ("new\n", ["f.txt"])


async def test_a_file_keeps_its_mode_and_has_a_largest_size(tmp_path: Path) -> None:
    file = placed(tmp_path, "#!/bin/sh\n")
    file.chmod(0o750)
    call = Call(tmp_path, "append_file", {"path": "a/f.txt", "content": "true\n"})
    await call.prepare()
    assert (await call.run()).status is ToolStatus.OK
    assert (file.stat().st_mode & 0o777, file.read_text()) == (0o750, "#!/bin/sh\ntrue\n")
    os.truncate(file, APPEND_BYTES)
    full = Call(tmp_path, "append_file", {"path": "a/f.txt", "content": "x"})
    await full.prepare()
    outcome = await full.run()
    assert (outcome.status, "Begin another file" in outcome.text) == (ToolStatus.FAILED, True)
    os.truncate(file, APPEND_BYTES + 1)
    over = Call(tmp_path, "write_file", {"path": "a/f.txt", "content": "small"})
    await over.prepare()
    assert file.stat().st_size > APPEND_BYTES
    first = await over.run(again=True)
    assert (first.status, file.read_text()) == (ToolStatus.OK, "small")
    assert await over.run(again=True) == first


async def test_a_file_takes_the_place_of_another_when_all_of_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    did, synced, replaced = list[str](), os.fsync, os.replace

    def sync(number: int) -> None:
        did.append(f"synced {os.fstat(number).st_size}")
        synced(number)

    def put(*what: Any, **more: Any) -> None:
        did.append("replaced")
        replaced(*what, **more)

    monkeypatch.setattr("agent_core.tools.files.writing.os.fsync", sync)
    monkeypatch.setattr("agent_core.tools.files.writing.os.replace", put)
    placed(tmp_path, "old")
    call = Call(tmp_path, "write_file", {"path": "a/f.txt", "content": "x" * 5_000})
    await call.prepare()
    assert (await call.run()).status is ToolStatus.OK
    assert "synced 5000" in did[: did.index("replaced")]


@pytest.mark.parametrize(
    "rest",
    [b"f\xfcr \xe9t\xe9", b"\xff\xfe", b"caf\xc3", b"\xed\xa0\x80", "ein Gruß, 好, \ufffd".encode(), b"a\r\nb\rc"],
)
async def test_an_edit_changes_the_place_that_it_names_and_not_a_byte_beside_it(tmp_path: Path, rest: bytes) -> None:
    file = placed(tmp_path, "")
    file.write_bytes(rest + b"\none two three\n" + rest)
    call = Call(tmp_path, "edit_file", EDIT)
    await call.prepare()
    assert (await call.run()).status is ToolStatus.OK
    assert file.read_bytes() == rest + b"\none 2 three\n" + rest


@pytest.mark.parametrize(("everywhere", "left"), [(False, "two and two"), (True, "2 and 2")])
async def test_of_several_places_none_is_taken_unless_all_are_meant(
    tmp_path: Path, everywhere: bool, left: str
) -> None:
    file = placed(tmp_path, "two and two")
    call = Call(tmp_path, "edit_file", {**EDIT, "everywhere": everywhere})
    await call.prepare()
    outcome = await call.run()
    assert outcome.status is (ToolStatus.OK if everywhere else ToolStatus.FAILED)
    assert ("2 places replaced" if everywhere else "occurs 2 times") in outcome.text
    assert file.read_text() == left


async def test_a_call_of_an_older_version_that_put_nothing_down_is_not_begun_again(tmp_path: Path) -> None:
    call = Call(tmp_path, "append_file", {"path": "a.txt", "content": "x"})
    call.put_down = [None]
    assert (await call.run(again=True)).status is ToolStatus.UNKNOWN
    assert not (tmp_path / "a.txt").exists()


# ---------------------------------------------------------------------- whatever counts can be removed


def _folder(place: Path) -> None:
    place.mkdir()


def _link(place: Path) -> None:
    place.symlink_to(place.parent.parent)


def _dangling(place: Path) -> None:
    place.symlink_to("nowhere")


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(place.parent)  # a path of a socket is short
        try:
            one.bind(place.name)
        finally:
            os.chdir(here)


def _locked(place: Path) -> None:
    place.write_text("x")
    place.chmod(0)


@pytest.mark.parametrize("path", ["thing", "thing/", "./thing"])
@pytest.mark.parametrize("make", [_folder, _link, _dangling, os.mkfifo, _socket, _locked])
async def test_whatever_lies_in_the_workspace_can_be_deleted(
    make: Callable[[Path], None], path: str, tmp_path: Path
) -> None:
    outside = tmp_path / "kept.txt"
    outside.write_text("x")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    make(workspace / "thing")
    call = Call(workspace, "delete_file", {"path": path})
    await call.prepare()
    outcome = await call.run()
    assert outcome.status is ToolStatus.OK, outcome.text
    assert not os.path.lexists(workspace / "thing")
    assert outside.read_text() == "x"
    assert await call.run(again=True) == outcome


async def test_a_folder_that_holds_something_is_not_deleted(tmp_path: Path) -> None:
    placed(tmp_path, "old\n")
    for path in ("a", "a/", "."):
        call = Call(tmp_path, "delete_file", {"path": path})
        await call.prepare()
        assert (await call.run()).status is ToolStatus.FAILED
    assert (tmp_path / "a" / "f.txt").read_text() == "old\n"


async def test_folders_that_a_deletion_leaves_empty_go_with_it(tmp_path: Path) -> None:
    for path in ("a/b/c/f.txt", "a/g.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    first, second = (Call(tmp_path, "delete_file", {"path": path}) for path in ("a/b/c/f.txt", "a/g.txt"))
    await first.prepare()
    assert (await first.run()).status is ToolStatus.OK
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "g.txt"]
    await second.prepare()
    (tmp_path / "a" / "g.txt").unlink()  # killed between the file and its folder
    assert (await second.run(again=True)).status is ToolStatus.OK
    assert tmp_path.is_dir()
    assert not list(tmp_path.iterdir())


async def test_who_writes_while_others_delete_the_folder_empty_comes_through(tmp_path: Path) -> None:
    async def one(number: int) -> None:
        for _ in range(15):
            path = f"a/b/{number}.txt"
            for name, arguments in (("write_file", {"path": path, "content": "x"}), ("delete_file", {"path": path})):
                call = Call(tmp_path, name, dict(arguments), f"t:{number}")
                await call.prepare()
                outcome = await call.run()
                assert outcome.status is ToolStatus.OK, outcome.text

    await asyncio.gather(*(one(number) for number in range(6)))
    assert not list(tmp_path.iterdir())
