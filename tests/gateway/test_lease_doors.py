"""A process that may count as dead elsewhere asks no model and runs no tool; whoever has its turns next goes on with them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from agent_core.failures.exits import ExitCode
from agent_core.store.database.ownership import FileOwnership
from agent_core.tools.base import EffectClass
from tests.gateway.rig import CountingTool, call_chunk, chunk, gateway

Messages = list[dict[str, Any]]


class Lease:
    """Whether this process surely counts as alive, as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = True

        def lease_ok(_: FileOwnership) -> bool:
            return self.held

        monkeypatch.setattr(FileOwnership, "lease_ok", lease_ok)


def asks_for(tool: str, before: asyncio.Event | None = None, lease: Lease | None = None) -> Any:
    async def reply(messages: Messages, response: web.StreamResponse, _: web.Request) -> None:
        if messages[-1]["role"] == "tool":
            await response.write(chunk({"content": "Done."}, "stop"))
        else:
            await response.write(call_chunk(tool, "{}"))
        if lease is not None and before is not None:
            lease.held = False
            before.set()

    return reply


async def overtaken(rig: Any, key: str) -> None:
    async with asyncio.timeout(20):
        while (queue := rig.hub.queues.known(key)) is not None and queue.running is not None:
            await asyncio.sleep(0.01)


async def test_no_tool_is_run_after_the_lease_and_the_next_process_runs_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lease, replied = Lease(monkeypatch), asyncio.Event()
    tool = CountingTool("note", EffectClass.KEYED, tmp_path / "runs")
    async with gateway(tmp_path, asks_for("note", replied, lease), tools=[tool]) as rig:
        await rig.hub.accept(rig.inbound("go", key="K1"))
        await asyncio.wait_for(replied.wait(), 20)
        await overtaken(rig, "test/a/s//")
        assert (tool.runs(), len(rig.model.requests)) == ([], 1)
    lease.held = True
    async with gateway(tmp_path, asks_for("note"), tools=[tool]) as rig:
        assert rig.recovered == 1
        end = await rig.say("go", key="K1")
        assert (end.exit.code, end.view.text) == (ExitCode.ANSWERED, "Done.")
        assert len(tool.runs()) == 1


async def test_no_model_is_asked_after_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lease = Lease(monkeypatch)
    tool = CountingTool("note", EffectClass.KEYED, tmp_path / "runs")
    running = tool.run

    async def loses(*given: Any) -> Any:
        outcome = await running(*given)
        lease.held = False
        return outcome

    monkeypatch.setattr(tool, "run", loses)
    async with gateway(tmp_path, asks_for("note"), tools=[tool]) as rig:
        await rig.hub.accept(rig.inbound("go", key="K1"))
        async with asyncio.timeout(20):
            while lease.held:
                await asyncio.sleep(0.01)
        await overtaken(rig, "test/a/s//")
        assert len(rig.model.requests) == 1, "the call with the tool's result is not made"
    lease.held = True
    monkeypatch.setattr(tool, "run", running)
    async with gateway(tmp_path, asks_for("note"), tools=[tool]) as rig:
        assert (await rig.say("go", key="K1")).view.text == "Done."
        assert len(tool.runs()) == 1, "its result was stored"
