"""A call that only reads what is here begins at once, and its start is stored with its result; every other is stored before it runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.contract.base import SessionKey, Showing
from agent_core.driver import closing
from agent_core.driver.closing import TurnJournal
from agent_core.failures.exits import ExitCode
from agent_core.journal.rows import decode
from agent_core.store.turns.access import Turns
from agent_core.store.turns.rows import JournalRow
from agent_core.tools.base import EffectClass, Reach, ToolContext, ToolOutcome, ToolSpec
from agent_core.turn.events import ReplyFinished, ToolReturned, ToolStarted
from agent_core.turn.view import BubbleKind
from tests.gateway.rig import CountingTool, Rig, call_chunk, chunk, gateway

Messages = list[dict[str, Any]]


async def asks_once(messages: Messages, response: web.StreamResponse, _: web.Request) -> None:
    if messages[-1]["role"] == "tool":
        await response.write(chunk({"content": "Done."}, "stop"))
    else:
        await response.write(chunk({"content": "Let me look."}))
        await response.write(call_chunk("look", "{}"))


@dataclass
class Looking(CountingTool):
    """Tells when it runs."""

    reach: Reach = Reach.HERE
    told: list[str] = field(default_factory=list[str])
    goes_on: asyncio.Event | None = None

    @property
    def spec(self) -> ToolSpec:
        return replace(super().spec, reach=self.reach)

    async def run(self, arguments: Any, context: ToolContext) -> ToolOutcome:
        self.told.append("runs")
        if self.goes_on is not None:
            await self.goes_on.wait()
        return await super().run(arguments, context)


@asynccontextmanager
async def looking(
    folder: Path, monkeypatch: pytest.MonkeyPatch, effect: EffectClass = EffectClass.PURE, **more: Any
) -> AsyncGenerator[tuple[Rig, Looking]]:
    """A gateway with such a tool; it tells what is stored, and when."""
    tool = Looking("look", effect, folder / "runs", **more)

    def noting(name: str) -> None:
        done = getattr(Turns, name)

        async def noted(
            self: Turns, session: str, epoch: int, turn: str, rows: Sequence[JournalRow], *rest: Any
        ) -> None:
            await done(self, session, epoch, turn, rows, *rest)
            kinds = [type(decode(row.kind, row.body)) for row in rows]
            words = {ReplyFinished: "replied", ToolStarted: "began", ToolReturned: "came back"}
            tool.told.append(", ".join(words[kind] for kind in kinds if kind in words) or name)

        monkeypatch.setattr(Turns, name, noted)

    for name in ("append", "intend", "close"):
        noting(name)
    async with gateway(folder, asks_once, tools=[tool]) as rig:
        yield rig, tool


async def test_a_call_that_only_reads_is_stored_with_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(closing, "KEEP_SECONDS", 5)
    async with looking(tmp_path, monkeypatch) as (rig, tool):
        end = await rig.say("go")
        assert tool.told == ["runs", "replied, began, came back", "replied"]
        assert end.exit.code is ExitCode.ANSWERED
        assert [b.kind for b in end.view.bubbles] == [BubbleKind.INTERIM, BubbleKind.ACTIVITY, BubbleKind.ANSWER]


async def test_one_that_takes_its_time_is_stored_while_it_runs_and_seen_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on = asyncio.Event()
    async with looking(tmp_path, monkeypatch, goes_on=goes_on) as (rig, tool):
        ticket = await rig.hub.accept(rig.inbound("go"))
        async with asyncio.timeout(20), rig.hub.follow(ticket) as follower:
            while True:
                sight = await follower.next(20)
                if isinstance(sight, Showing) and [b for b in sight.view.bubbles if b.kind is BubbleKind.ACTIVITY]:
                    break
        assert tool.told == ["runs", "replied, began"]
        goes_on.set()
        assert (await rig.end(ticket)).exit.code is ExitCode.ANSWERED
        assert tool.told == ["runs", "replied, began", "came back", "replied"]


@pytest.mark.parametrize(
    ("effect", "reach"),
    [(EffectClass.KEYED, Reach.HERE), (EffectClass.EFFECT, Reach.HERE), (EffectClass.PURE, Reach.ADDRESS)],
)
async def test_every_other_call_is_stored_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effect: EffectClass, reach: Reach
):
    async with looking(tmp_path, monkeypatch, effect, reach=reach) as (rig, tool):
        await rig.say("go")
        assert tool.told == ["replied, began", "runs", "came back", "replied"]


async def test_who_stops_a_turn_meanwhile_ends_it_with_what_was_kept_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(closing, "KEEP_SECONDS", 20)
    async with looking(tmp_path, monkeypatch, goes_on=asyncio.Event()) as (rig, tool):
        ticket = await rig.hub.accept(rig.inbound("go"))
        async with asyncio.timeout(20):
            while not tool.told:
                await asyncio.sleep(0.01)
            await rig.hub.stop(SessionKey("test", "a", "s"))
        end = await rig.end(ticket)
        assert (end.exit.code, tool.told) == (ExitCode.STOPPED, ["runs", "replied, began"])
        assert [call.call for call in await rig.store.turns.calls(end.turn)] == ["call_a"]


async def test_what_was_kept_back_is_in_the_journal_of_a_turn_that_fails_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A bug of ours, met when the result comes, ends the turn; how it came to the call can be read."""
    monkeypatch.setattr(closing, "KEEP_SECONDS", 20)
    commit = TurnJournal.commit

    async def breaks(self: TurnJournal) -> None:
        if [event for event in self.unwritten if isinstance(event, ToolReturned)]:
            raise ValueError("a bug")
        await commit(self)

    monkeypatch.setattr(TurnJournal, "commit", breaks)
    async with looking(tmp_path, monkeypatch) as (rig, tool):
        end = await rig.say("go")
        assert (end.exit.code, tool.told) == (ExitCode.INTERNAL_ERROR, ["runs", "replied, began"])
