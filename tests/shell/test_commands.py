"""ShellCommands as the model has them: their results, their lives beside turns, gateways that die, and what the conversation is told."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import pytest

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import Amounts, QuotaKind
from agent_core.limits.quotas import Full as FullOf
from agent_core.ports import SystemClock
from agent_core.tools.base import NoRoom, PreparedTool, Tool, ToolContext, ToolOutcome, ToolStatus
from agent_core.tools.registry import Runnable, ToolRegistry
from agent_core.tools.sandbox.ends import EndCause
from agent_core.tools.sandbox.terms import SandboxKind
from agent_core.tools.shell import commands as commands_module
from agent_core.tools.shell import trial
from agent_core.tools.shell.commands import ShellCommands, command_id
from agent_core.tools.shell.record import BEGAN, LOCK, OUTPUT, end_of
from agent_core.tools.shell.tools import shell_tools
from tests.deepfolders import dig
from tests.shell.sandboxes import SMALL, needs_sandbox, put_down, watcher


@dataclass
class Told:
    """Implements `FollowUps`: what conversations were told."""

    said: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    async def begin(self, turn: str, key: str, title: str, words: str) -> bool:
        if turn == "nobody":
            return False
        if not any(one[0] == key for one in self.said):
            self.said.append((key, title, words))
        return True

    async def reaches(self, turn: str) -> bool:
        return turn != "nobody"


class Shell:
    """The tools of one gateway, and one conversation."""

    def __init__(self, place: Path, told: Told, turns: set[str]) -> None:
        self.place, self.told, self.turns = place, told, turns
        self.beats: list[str] = []

        async def is_open(turn: str) -> bool:
            return turn in turns

        self.commands = ShellCommands(place / "commands", SMALL, SystemClock(), told, is_open, 2)
        tools = shell_tools(self.commands, 10)
        self.tools: dict[str, Tool] = {tool.spec.name: tool for tool in tools}
        self.registry = ToolRegistry(tools)

    async def call(
        self, tool: str, call: str = "1", *, turn: str = "t1", again: bool = False, **arguments: Json
    ) -> ToolOutcome:
        one = self.tools[tool]
        context = ToolContext(
            turn, call, f"{turn}:{call}", self.place / "ws", "me", SystemClock(), self.beats.append, again=again
        )
        checked = Runnable(one.spec, arguments)
        if isinstance(one, PreparedTool):
            context = replace(context, intention=await self.registry.prepare(checked, context))
        return await self.registry.run(checked, context)


@asynccontextmanager
async def shell(place: Path, told: Told | None = None, turns: set[str] | None = None) -> AsyncGenerator[Shell]:
    made = Shell(place, told or Told(), {"t1"} if turns is None else turns)
    async with made.commands.running():
        yield made


@pytest.fixture(autouse=True)
def _sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_sandbox()
    monkeypatch.setattr(commands_module, "LOOK_SECONDS", 0.05)


async def until(true: Callable[[], bool], seconds: float = 15) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.02)


async def test_a_command_is_run_and_its_result_is_told(tmp_path: Path) -> None:
    async with shell(tmp_path) as one:
        good = await one.call("run_command", "1", script="echo hello; pwd; echo data > made.txt")
        assert good.status is ToolStatus.OK
        assert "exit status 0" in good.text
        assert "hello\n/workspace" in good.text
        assert (tmp_path / "ws" / "made.txt").read_text() == "data\n"
        bad = await one.call(
            "run_command", "2", argv=["python3", "-c", "import sys; print('\x1b[31mred'); sys.exit(3)"]
        )
        assert bad.status is ToolStatus.FAILED
        assert "exit status 3" in bad.text
        assert "\x1b" not in bad.text
        both = await one.call("run_command", "3", script="true", argv=["true"])
        assert "Nothing was run" in both.text
        long = await one.call("run_command", "4", script="seq 1 20000")
        assert f"commands/{command_id('t1:4')}.txt" in long.text
        assert (tmp_path / "ws" / "commands" / f"{command_id('t1:4')}.txt").read_text().endswith("20000\n")
        assert "left out" in long.text
        killed = await one.call("run_command", "5", script="kill -SEGV $$")
        assert "SIGSEGV" in killed.text
        missing = await one.call("run_command", "6", argv=["/nowhere"])
        assert missing.status is ToolStatus.FAILED
        assert "could not be made" not in missing.text
        assert "/nowhere is no program that can be run" in missing.text or "exit status 127" in missing.text
    assert one.told.said == []


async def test_a_long_command_goes_on_and_its_end_is_told_once(tmp_path: Path) -> None:
    turns = {"t1"}
    async with shell(tmp_path, turns=turns) as one:
        begun = await one.call("run_command", script="echo one; sleep 1.5; echo two; sleep 0.5", wait_seconds=1)
        name = command_id("t1:1")
        assert begun.status is ToolStatus.OK
        assert name in begun.text
        assert "still runs" in begun.text
        assert "you are told so" in begun.text
        nobody = await one.call("run_command", turn="nobody", script="sleep 0.1", wait_seconds=0)
        assert "Nobody can be told" in nobody.text
        looked = await one.call("read_output", "2", command=name)
        assert "It still runs" in looked.text
        await asyncio.sleep(2.2)
        assert one.told.said == []  # its turn is open: it may look by itself
        turns.clear()
        await until(lambda: bool(one.told.said))
        key, title, words = one.told.said[0]
        assert name in key
        assert "exit status 0" in title
        assert words == "one\ntwo\n"
        await asyncio.sleep(0.3)
        assert len(one.told.said) == 1
        seen = await one.call("run_command", "3", script="sleep 0.8; echo x", wait_seconds=0)
        assert "still runs" in seen.text
        assert "exit status 0" in (await one.call("read_output", "4", command=command_id("t1:3"), wait_seconds=5)).text
    assert [one[0].rpartition(":")[2] for one in one.told.said] == [name]


async def test_a_command_is_stopped_and_others_have_none_of_it(tmp_path: Path) -> None:
    async with shell(tmp_path) as one:
        script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.1; done"
        await one.call("run_command", "1", script=script, wait_seconds=1)
        look = 0
        while "ready" not in (await one.call("read_output", f"look{look}", command=command_id("t1:1"))).text:
            look += 1
            await asyncio.sleep(0.2)
        await one.call("run_command", "2", script="sleep 30", wait_seconds=0)
        full = await one.call("run_command", "3", script="true")
        assert "no more may at once" in full.text
        stopped = await one.call("stop_command", "4", command=command_id("t1:1"))
        assert stopped.status is ToolStatus.OK
        assert "was stopped" in stopped.text
        assert "bye" in stopped.text
        again = await one.call("stop_command", "5", command=command_id("t1:1"))
        assert "was stopped" in again.text
        nobody = await one.call("read_output", "6", command="../../etc")
        assert "There is no command" in nobody.text


async def test_the_same_call_begins_one_command_whoever_carries_it_out(tmp_path: Path) -> None:
    async with shell(tmp_path) as one:
        first = await one.call("run_command", script="echo x >> ran; sleep 0.2")
        second = await one.call("run_command", again=True, script="echo x >> ran; sleep 0.2")
        assert first.text == second.text
        assert (tmp_path / "ws" / "ran").read_text() == "x\n"
        one.commands.place = "elsewhere"
        other = ToolContext(
            "t1", "1", "t1:1", tmp_path / "ws", "me", SystemClock(), print, {"place": "here"}, again=True
        )
        assert (await one.tools["run_command"].run({"script": "echo x >> ran"}, other)).status is ToolStatus.UNKNOWN
        assert (tmp_path / "ws" / "ran").read_text() == "x\n"


class Full:
    """Implements `Space`: there is no room any more."""

    @asynccontextmanager
    async def hold(self, adding: Amounts, place: Path | None = None) -> AsyncGenerator[None]:
        raise NoRoom(FullOf(QuotaKind.WORKSPACE, 10, 10, 1))
        yield

    async def left(self) -> Amounts:
        return {QuotaKind.WORKSPACE: 0}

    async def changed(self) -> None: ...


async def test_a_command_that_has_filled_its_folder_is_told_with_its_end_when_its_call_is_carried_out_again(
    tmp_path: Path,
):
    async with shell(tmp_path) as one:
        first = await one.call("run_command", script="echo it was done")
        context = ToolContext(
            "t1", "1", "t1:1", tmp_path / "ws", "me", SystemClock(), print, {"place": one.commands.place}, again=True,
            space=Full(),
        )  # fmt: skip
        checked = Runnable(one.tools["run_command"].spec, {"script": "echo it was done"})
        assert (await one.registry.run(checked, context)).text == first.text
        other = replace(context, key="t1:2")
        assert "Nothing was written" in (await one.registry.run(checked, other)).text


async def test_a_command_over_which_nothing_can_watch_is_not_run_and_not_said_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def none(folder: Path, kind: SandboxKind) -> NoReturn:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    async with shell(tmp_path) as one:
        with monkeypatch.context() as patched:
            patched.setattr(commands_module, "watching", none)
            told = await one.call("run_command", script="echo x >> ran")
        assert (told.status, "nothing was run" in told.text) == (ToolStatus.FAILED, True), told.text
        assert "may have been done" not in told.text
        looked = await one.call("read_output", "2", command=command_id("t1:1"))
        assert "There is no command" in looked.text
        assert (await one.call("run_command", again=True, script="echo x >> ran")).status is ToolStatus.OK
        assert (tmp_path / "ws" / "ran").read_text() == "x\n"


async def test_after_a_killed_gateway_a_command_goes_on_and_is_told(tmp_path: Path) -> None:
    told = Told()
    one = Shell(tmp_path, told, set())
    block = one.commands.running()
    await block.__aenter__()
    await one.call("run_command", script="sleep 1; echo x >> ran", wait_seconds=0)
    live = one.commands.live(tmp_path / "commands" / "ws" / command_id("t1:1"))
    assert live is not None
    assert live.process is not None
    for task in one.commands._tasks:  # as if it were killed: nobody does anything any more
        task.cancel()
    async with shell(tmp_path, told, set()):
        await until(lambda: bool(told.said))
    assert "exit status 0" in told.said[0][1]
    assert (tmp_path / "ws" / "ran").read_text() == "x\n"
    async with shell(tmp_path, told, set()):
        await asyncio.sleep(0.2)
    assert len(told.said) == 1
    await live.process.wait()


async def test_what_watched_over_a_command_is_killed_and_its_end_is_unknown(tmp_path: Path) -> None:
    turns = {"t1"}
    async with shell(tmp_path, turns=turns) as one:
        await one.call("run_command", script="echo on; sleep 30", wait_seconds=0)
        folder = tmp_path / "commands" / "ws" / command_id("t1:1")
        await until(lambda: (folder / OUTPUT).exists() and (folder / OUTPUT).stat().st_size > 0)
        live = one.commands.live(folder)
        assert live is not None
        assert live.process is not None
        live.process.kill()
        turns.clear()
        await until(lambda: bool(one.told.said))
        assert "nobody knows how it ended" in one.told.said[0][1]


async def test_an_orderly_stop_ends_commands_and_the_next_gateway_says_so(tmp_path: Path) -> None:
    told = Told()
    async with shell(tmp_path, told, set()) as one:
        await one.call("run_command", script="sleep 30", wait_seconds=0)
    end = end_of(tmp_path / "commands" / "ws" / command_id("t1:1"))
    assert end is not None
    assert end.cause is EndCause.GATEWAY
    async with shell(tmp_path, told, set()):
        await until(lambda: bool(told.said))
    assert "because the gateway was stopped" in told.said[0][1]


async def test_a_call_that_is_cancelled_takes_its_command_with_its_turn(tmp_path: Path) -> None:
    turns = {"t1"}
    async with shell(tmp_path, turns=turns) as one:
        call = asyncio.create_task(one.call("run_command", script="sleep 30"))
        folder = tmp_path / "commands" / "ws" / command_id("t1:1")
        await until((folder / BEGAN).exists)
        call.cancel()
        turns.clear()
        await until(lambda: end_of(folder) is not None)
        end = end_of(folder)
        assert end is not None
        assert end.cause is EndCause.STOPPED
        await asyncio.sleep(0.2)
    assert one.told.said == []


def test_a_command_is_begun_at_most_once_by_however_many_watchers(tmp_path: Path) -> None:
    folder = put_down(tmp_path, "/bin/sh", "-c", "echo x >> ran; sleep 0.2")
    several = [watcher(folder) for _ in range(4)]
    for one in several:
        one.wait(20)
    assert (tmp_path / "workspace" / "ran").read_text() == "x\n"
    with watcher(folder) as late:
        late.wait(20)
    assert (tmp_path / "workspace" / "ran").read_text() == "x\n"


async def test_a_command_runs_though_one_before_it_left_folders_that_no_path_reaches(tmp_path: Path) -> None:
    async with shell(tmp_path) as agent:
        (tmp_path / "ws").mkdir()
        dig(tmp_path / "ws")
        outcome = await agent.call("run_command", script="rm -rf d && echo gone", wait_seconds=120)
        assert "gone" in outcome.text
        assert list((tmp_path / "ws").iterdir()) == []


@pytest.mark.parametrize(("began", "words"), [(False, "it did not begin"), (True, "")])
async def test_of_a_trial_that_left_no_end_it_is_said_whether_it_began(
    began: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_folder: Path, _kind: SandboxKind) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec("true")

    monkeypatch.setattr(trial, "watching", gone)
    if began:
        (tmp_path / LOCK).touch()
    end, said = await trial._ended(tmp_path, SandboxKind.BUBBLEWRAP, 20)
    assert (end.cause, end.words, said) == (EndCause.SANDBOX, words, "")
