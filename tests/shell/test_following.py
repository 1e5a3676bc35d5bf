"""Following commands without running any: who is told of an end, who asked for it first, and what is swept."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.store.errors import StorageUnavailable
from agent_core.tools.base import NotPossible
from agent_core.tools.sandbox.ends import CommandEnd, EndCause
from agent_core.tools.sandbox.terms import ShellTerms
from agent_core.tools.shell import commands, watcher
from agent_core.tools.shell.commands import KEPT_MS, TOGETHER, LiveCommand, ShellCommands, command_id
from agent_core.tools.shell.record import COMMAND, OUTPUT, OWNER, STOP, TOLD, CommandRecord, encoded, put_whole
from agent_core.tools.shell.tools import shell_tools
from agent_core.tools.shell.watcher import ORPHAN_SECONDS, CommandWatch
from tests.agent_core.turns import gives
from tests.shell.sandboxes import SMALL, put_down
from tests.store.support import FakeClock

END = CommandEnd(EndCause.EXITED, 0)


class Told:
    """Implements `FollowUps`, and says as a database does whether turns are open."""

    def __init__(self) -> None:
        self.open: set[str] = set()
        self.said: list[str] = []
        self.away = False

    async def begin(self, turn: str, key: str, title: str, words: str) -> bool:
        self.said.append(key)
        return True

    async def reaches(self, turn: str) -> bool:
        return True

    async def is_open(self, turn: str) -> bool:
        if self.away:
            raise StorageUnavailable("away")
        return turn in self.open


def following(place: Path, told: Told | None = None, clock: FakeClock | None = None) -> ShellCommands:
    told = told or Told()
    return ShellCommands(place / "commands", SMALL, clock or FakeClock(0), told, told.is_open, 2)


def command(place: Path, name: str = "c1", workspace: str = "ws", at: int = 0) -> LiveCommand:
    folder = place / "commands" / workspace / name
    folder.mkdir(parents=True)
    return LiveCommand(folder, command_record(place, name, workspace, at))


def command_record(place: Path, name: str, workspace: str = "ws", at: int = 0) -> CommandRecord:
    return CommandRecord(name, "t1", "t1:1", str(place / workspace), "x", ("x",), SMALL, at)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.001)


async def test_a_conversation_is_told_of_an_end_once_nobody_else_can_come_to_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def looked(seconds: float) -> None:
        nonlocal looks
        looks += 1
        await plain(0)

    plain = asyncio.sleep
    monkeypatch.setattr(commands.asyncio, "sleep", looked)
    told, one = Told(), command(tmp_path)
    told.open, one.attended = {"t1"}, 1
    telling = asyncio.create_task(following(tmp_path, told)._tell(one, END))

    async def some_looks() -> None:
        before = looks
        async with asyncio.timeout(20):
            while looks < before + 5:
                await plain(0.001)

    await some_looks()
    told.open = set()  # the turn is over, and a call waits still
    await some_looks()
    assert told.said == []
    one.attended, told.away = 0, True  # nobody knows whether the turn is
    await some_looks()
    assert told.said == []
    told.away = False
    await telling
    assert len(told.said) == 1
    assert (one.folder / TOLD).exists()
    await following(tmp_path, told)._tell(one, END)
    assert len(told.said) == 1, "whoever was told is not told again"


def test_a_gateway_follows_what_the_one_before_it_had_not_told_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "commands"
    for name in ("c1", "c2", "c3"):
        put_whole(command(tmp_path, name).folder, COMMAND, encoded(command_record(tmp_path, name)))
    (place / "ws" / "c2" / TOLD).touch()
    (place / "ws" / "c3" / COMMAND).write_bytes(b"half of it")
    first, found = following(tmp_path)._found()
    assert [record.command for _, record in found] == ["c1"]
    assert (place / "ws" / "c1" / OWNER).read_text() == str(os.getpid())
    assert following(tmp_path)._found()[0] == first, "the place keeps its name"


async def test_a_call_whose_command_was_put_down_has_asked_for_it_also_where_nobody_follows_it(tmp_path: Path) -> None:
    """So no room is asked for once more when the call is carried out again: the command itself may have taken it."""
    put_whole(
        command(tmp_path, command_id("t1:1")).folder, COMMAND, encoded(command_record(tmp_path, command_id("t1:1")))
    )
    shell = following(tmp_path)
    assert await shell.asked_for("t1:1", tmp_path / "ws")
    assert not await shell.asked_for("t1:2", tmp_path / "ws")
    assert not await shell.asked_for("t1:1", tmp_path / "other")


@pytest.mark.parametrize("left_behind", [False, True])
async def test_what_was_left_behind_is_told_to_nobody(tmp_path: Path, left_behind: bool) -> None:
    told, one = Told(), command(tmp_path)
    one.left_behind = left_behind
    await following(tmp_path, told)._tell(one, END)
    assert len(told.said) == (0 if left_behind else 1)


def test_whatever_shows_what_a_command_printed_shows_words_of_others(tmp_path: Path) -> None:
    """A command prints files that others wrote, and what it was sent."""
    assert {tool.spec.name: tool.spec.foreign for tool in shell_tools(following(tmp_path), 10)} == {
        "run_command": True,
        "read_output": True,
        "stop_command": True,
    }


async def test_who_gave_up_waiting_waits_no_more(tmp_path: Path) -> None:
    one, shell = command(tmp_path), following(tmp_path)
    assert await shell.waited(one, 0.0) is None
    assert one.attended == 0
    one.over.set()
    await shell.waited(one, 5.0)
    assert one.attended == 0


def test_of_all_who_ask_for_an_end_the_first_is_told_of(tmp_path: Path) -> None:
    commands._ask(tmp_path, EndCause.STOPPED)
    commands._ask(tmp_path, EndCause.GATEWAY)
    assert EndCause((tmp_path / STOP).read_text()) is EndCause.STOPPED


def test_a_conversation_has_its_own_limit_of_commands_and_all_have_one_together(tmp_path: Path) -> None:
    shell = following(tmp_path)

    def run(name: str, workspace: str) -> LiveCommand:
        one = command(tmp_path, name, workspace)
        shell._live[one.folder] = one
        return one

    first, _ = run("c1", "a"), run("c2", "a")
    with pytest.raises(NotPossible, match="c1, c2"):
        shell._check_room(tmp_path / "a")
    shell._check_room(tmp_path / "b")
    first.over.set()
    shell._check_room(tmp_path / "a")
    for number in range(TOGETHER - 1):
        run(f"c{number}", f"of{number}")
    with pytest.raises(NotPossible, match="everybody"):
        shell._check_room(tmp_path / "b")


@pytest.mark.parametrize(("age", "watched", "live", "stays"), [
    (KEPT_MS, False, False, True),
    (KEPT_MS + 1, False, False, False),
    (KEPT_MS + 1, True, False, True),  # somebody watches over it: it runs
    (KEPT_MS + 1, False, True, True),
])  # fmt: skip
def test_what_is_swept_is_old_and_goes_on_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int, watched: bool, live: bool, stays: bool
) -> None:
    folder = put_down(tmp_path / "commands", "x", workspace=tmp_path / "workspace")
    moved = tmp_path / "commands" / "ws" / "c1"
    moved.parent.mkdir(parents=True)
    folder.rename(moved)
    monkeypatch.setattr(commands, "is_watched", gives(watched))
    shell = following(tmp_path, clock=FakeClock(age))
    if live:
        shell._live[moved] = command(tmp_path, "c2")
    shell._sweep()
    assert moved.exists() is stays


@pytest.mark.parametrize("watched", [False, True])
def test_what_a_deleted_conversation_ran_goes_with_it_once_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    one = command(tmp_path)
    put_whole(one.folder, COMMAND, encoded(one.record))
    monkeypatch.setattr(commands, "is_watched", gives(watched))
    shell, workspace = following(tmp_path, clock=FakeClock(1)), Path(one.record.workspace)
    workspace.mkdir()
    shell._sweep()
    assert one.folder.exists()
    workspace.rmdir()
    shell._sweep()
    assert one.folder.exists() is watched


async def test_a_folder_that_goes_while_it_is_looked_at_ends_no_sweeping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may belong to somebody who is forgotten just then."""
    monkeypatch.setattr(commands, "SWEEP_SECONDS", 0.0)
    folder = tmp_path / "commands" / "ws" / "c1"
    folder.mkdir(parents=True)
    looks = list[Path]()

    def goes(looked_at: Path) -> None:
        looks.append(looked_at)
        if len(looks) == 1:
            shutil.rmtree(looked_at)

    monkeypatch.setattr(commands, "record_of", goes)
    sweeping = asyncio.create_task(following(tmp_path)._sweeping())
    await asyncio.sleep(0.05)
    assert not sweeping.done()
    folder.mkdir()
    await asyncio.sleep(0.05)
    sweeping.cancel()
    assert len(looks) > 1


# ---------------------------------------------------------------------- what watches over one


class Command:
    """Implements `LockedCommand`, of no command at all: `rounds` looks long, and it prints what it is told to."""

    start_seconds = 5.0
    ready = True
    status = 0

    def __init__(self, prints: bytes = b"", rounds: int = 3) -> None:
        self.prints, self.rounds = prints, rounds
        self.asked = self.killed = False
        self.cause: EndCause | None = None

    def start(self, out: int) -> int:
        os.write(out, self.prints)
        reads, writes = os.pipe()
        os.close(writes)
        return reads

    def hear(self, chunk: bytes) -> None: ...

    def go(self) -> None: ...

    def passed(self) -> EndCause | None:
        self.rounds -= 1
        return self.cause

    def ask(self) -> None:
        self.asked = True

    def kill(self) -> None:
        self.killed = True

    @property
    def over(self) -> bool:
        return self.killed or self.asked or self.rounds <= 0

    def close(self) -> EndCause:
        return EndCause.EXITED

    def complaint(self, printed: bytes) -> str:
        return ""


class Time:
    """Goes on by so much with each look."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def monotonic(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def watched(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    one: Command,
    step: float = 0.1,
    *,
    parent: bool = True,
    terms: ShellTerms = SMALL,
) -> tuple[CommandEnd, bytes]:
    """How a command ends, and what is kept of what it printed."""
    folder = put_down(place, "x", terms=terms)
    record = commands.record_of(folder)
    assert record is not None
    monkeypatch.setattr(watcher, "locked", gives(one))
    monkeypatch.setattr(watcher.signal, "signal", gives(None))
    monkeypatch.setattr(watcher, "time", Time(step))
    found = CommandWatch(folder, record, os.getppid() if parent else 0).run()
    return found, (folder / OUTPUT).read_bytes()


def test_a_command_that_comes_to_its_end_has_its_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(tmp_path, monkeypatch, Command(b"done")) == (CommandEnd(EndCause.EXITED, 0), b"done")


def test_of_what_is_printed_beyond_the_limit_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terms = replace(SMALL, output_bytes=10)
    end, kept = watched(tmp_path, monkeypatch, Command(b"x" * 25, rounds=100), terms=terms)
    assert (end.cause, kept) == (EndCause.OUTPUT, b"x" * 10)


@pytest.mark.parametrize(("step", "cause"), [(0.5, EndCause.EXITED), (3.0, EndCause.TIME)])
def test_a_command_has_its_time_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float, cause: EndCause
) -> None:
    end, _ = watched(tmp_path, monkeypatch, Command(rounds=8), step)
    assert (end.cause, end.status) == (cause, 0 if cause is EndCause.EXITED else None)


@pytest.mark.parametrize(("step", "cause"), [(1.0, EndCause.EXITED), (300.0, EndCause.ORPHANED)])
def test_whose_gateway_is_gone_has_time_until_another_one_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: float, cause: EndCause
) -> None:
    patient = replace(SMALL, seconds=1_000_000)  # so that its own time is not over
    end, _ = watched(tmp_path, monkeypatch, Command(rounds=12), step, parent=False, terms=patient)
    assert end.cause is cause


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0, ORPHAN_SECONDS)), max_size=12))
def test_a_command_is_an_orphan_once_no_gateway_was_there_for_a_whole_while(looks: list[tuple[bool, bool, float]]):
    watch, now, alone = CommandWatch.__new__(CommandWatch), 1_000.0, 0.0
    watch._folder, watch._workspace = Path("/nowhere"), Path("/")
    watch._orphan_since = 0.0
    for parent, adopted, later in looks:
        now += later
        watch._gateway = os.getppid() if parent else 0
        watch._adopted = gives(adopted)
        found = watch._unwanted(now)
        if parent or adopted:
            alone = 0.0
        alone = alone or (0.0 if parent or adopted else now)
        assert found == (EndCause.ORPHANED if alone and now - alone > ORPHAN_SECONDS else None)
