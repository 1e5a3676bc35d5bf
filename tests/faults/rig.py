"""A whole gateway with a tool of each kind for each fault, and turns that call them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adapters.contract.base import Ended, FromApi, SessionKey
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.store.reading import open_reads
from agent_core.tools.builtin import fetch
from agent_core.tools.builtin.fetch import FetchUrl
from agent_core.tools.offer import Offer
from gateway.config.paths import find_paths
from gateway.daemon import Serving
from gateway.explain.story import Explainer
from gateway.limits.whose import workspace_of
from tests.faults import pythontools
from tests.faults.cells import CELLS, PIPE
from tests.faults.kinds import Cell, Kind
from tests.faults.provider import script, scripted, words_of
from tests.faults.rawhttp import RawHttp, raw_http
from tests.faults.words import SECRET
from tests.gateway.rig import Model
from tests.mcp.rig import FAULTY
from tests.serving import served
from tests.shell.sandboxes import no_sandbox

SECONDS = 100.0
"""Far more than any limit of a call."""
AT_ONCE = 4


@dataclass(frozen=True)
class Seen:
    """What became of a turn."""

    cell: Cell
    exit: str
    text: str
    """All that its person reads."""
    notes: str
    told: list[str]
    """What the model read of each call."""
    story: str
    """What `outspoken explain` and `/why` say of it."""
    effects: int
    seconds: float


@dataclass
class FaultRig:
    up: Serving
    model: Model
    raw: RawHttp
    folder: Path

    def _inbound(self, cell: Cell, number: int, words: str) -> FromApi:
        return FromApi(
            account="test", platform_key=f"k{number}", session=SessionKey("test", "a", f"s{number}"), input=(InputMessage(words),), surface="test",
            memory_scope=f"s{number}", can_approve=True,
        )  # fmt: skip

    async def play(self, cell: Cell, number: int) -> Seen:
        """A turn whose model makes the calls of this cell."""
        steps = [(tool, _filled(arguments, self.raw.url)) for tool, arguments in cell.steps]
        inbound = self._inbound(cell, number, f"n{number} {script(*steps)}")
        workspace = workspace_of(inbound, find_paths({"OUTSPOKEN_HOME": str(self.folder)}, self.folder).workspaces)
        await asyncio.to_thread(_put, cell, workspace)
        began = time.monotonic()
        ticket = await self.up.hub.accept(inbound)
        async with asyncio.timeout(SECONDS), self.up.hub.follow(ticket) as follower:
            while not isinstance(sight := await follower.next(30), Ended):
                pass
        seconds = time.monotonic() - began
        asked = [
            one["messages"]
            for one in self.model.requests
            if any(f"n{number} script" in words_of(m) for m in one["messages"])
        ]
        told = [words_of(one) for one in asked[-1] if one["role"] == "tool"] if asked else []
        notes = "\n".join(one.text for one in sight.view.bubbles if one.key.endswith(".unsure"))
        paths = find_paths({"OUTSPOKEN_HOME": str(self.folder)}, self.folder)
        async with open_reads(paths.database) as reads:
            story = await Explainer(reads, SystemClock().now_ms).turn(sight.turn)
        assert story is not None
        text = "\n".join(one.text for one in sight.view.bubbles)
        return Seen(
            cell,
            sight.exit.code.value,
            text,
            notes,
            told,
            "\n".join(line.words for line in story.lines),
            self._effects(cell, workspace),
            seconds,
        )

    def _effects(self, cell: Cell, workspace: Path) -> int:
        match cell.kind:
            case Kind.PYTHON | Kind.SHELL:
                did = workspace / "did"
                return len(did.read_text().splitlines()) if did.exists() else 0
            case Kind.STDIO:
                record = self.folder / f"record-{_fault(cell)}-{_server(cell)}"
                lines = record.read_text().splitlines() if record.exists() else []
                return sum(one in ("act", "put") for one in lines)
            case Kind.HTTP:
                return self.raw.effects.count(_fault(cell))
            case _:
                return 0


def _server(cell: Cell) -> str:
    return str(cell.steps[0][0]).partition("__")[0]


def _fault(cell: Cell) -> str:
    return _server(cell)[2:]


def _filled(arguments: Any, url: str) -> Any:
    return {key: one.replace("URL/", f"{url}/") if isinstance(one, str) else one for key, one in arguments.items()}


def _used(server: str, cells: list[Cell]) -> str:
    """The tools of a server that are called: a gateway offers no more than so many."""
    called = (str(tool).partition("__") for one in cells for tool, _ in one.steps)
    return json.dumps(sorted({tool for name, _, tool in called if name == server}))


def _put(cell: Cell, workspace: Path) -> None:
    for name, data in cell.files.items():
        workspace.mkdir(parents=True, exist_ok=True)
        if data == PIPE:
            os.mkfifo(workspace / name)
        else:
            (workspace / name).write_bytes(data)


def _configuration(folder: Path, raw: RawHttp, cells: list[Cell], *, sandbox: bool) -> str:
    lines = ["[tools]", f'path = "{folder / "own"}"', 'environment = ["SHOP_KEY"]', 'tainted = "allow"']
    lines += ["[search]", 'engine = "searxng"', f'url = "{raw.url}"']
    if sandbox:
        lines += [
            "[shell]",
            'sandbox = "bubblewrap"',
            "seconds = 30",
            "output_mib = 4",
            "memory_mib = 256",
            "at_once = 8",
        ]
    limits = 'timeout_seconds = 2\nlimit_seconds = 5\nstart_seconds = 20\ntrusted = ["*"]'
    for server in dict.fromkeys(_server(one) for one in cells if one.kind is Kind.STDIO):
        fault = server[2:]
        args = ", ".join(f'"{one}"' for one in ("-S", FAULTY, fault, folder / f"record-{fault}-{server}"))
        lines += [
            f"[mcp.{server}]",
            f'command = "{sys.executable}"',
            f"args = [{args}]",
            limits,
            f"allow = {_used(server, cells)}",
        ]
    for server in dict.fromkeys(_server(one) for one in cells if one.kind is Kind.HTTP):
        lines += [f"[mcp.{server}]", f'url = "{raw.url}/mcp/{server[2:]}"', limits, f"allow = {_used(server, cells)}"]
    return "\n".join(lines)


@asynccontextmanager
async def faulty_gateway(folder: Path, cells: list[Cell], patch: pytest.MonkeyPatch) -> AsyncGenerator[FaultRig]:
    """The gateway with the tools of these cells."""
    patch.setenv("SHOP_KEY", "shop-key-of-the-test")
    patch.setattr(fetch, "OFFER", Offer(4, lambda parts: (FetchUrl(parts.workers, refuse=lambda _: None),)))
    (folder / "own").mkdir()
    if any(one.kind is Kind.PYTHON for one in cells):
        shutil.copy(pythontools.__file__, folder / "own" / "faulty.py")
    async with AsyncExitStack() as stack:
        raw, model = await stack.enter_async_context(raw_http()), await stack.enter_async_context(scripted())
        file = find_paths({"OUTSPOKEN_HOME": str(folder)}, folder).config_file
        file.parent.mkdir(parents=True, exist_ok=True)
        sandbox = not await asyncio.to_thread(no_sandbox)
        file.write_text(_configuration(folder, raw, cells, sandbox=sandbox), "utf-8")
        env = {
            "OUTSPOKEN_MODEL__BASE_URL": model.url,
            "OUTSPOKEN_MODEL__API_KEY": SECRET,
            "OUTSPOKEN_MODEL__NAME": "m1",
        }
        up = await stack.enter_async_context(served(folder, env, patient=True))
        rig = FaultRig(up, model, raw, folder)
        await _learnt(rig, cells)
        yield rig


async def _learnt(rig: FaultRig, cells: list[Cell]) -> None:
    """Wait until each server has said what it can do, or cannot be begun."""
    wanted = {
        _server(one)
        for one in cells
        if one.kind in (Kind.STDIO, Kind.HTTP) and not one.told[0].startswith("cannot be used now")
    }
    async with asyncio.timeout(60):
        while wanted - {one.name.partition("__")[0] for one in rig.up.hub.opener.world.tools.brought}:
            await asyncio.sleep(0.05)


async def played(rig: FaultRig, cells: list[Cell]) -> list[Seen]:
    """All of them, a few at once."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(cell: Cell, number: int) -> Seen:
        async with places:
            return await rig.play(cell, number)

    return await asyncio.gather(*(one(cell, number) for number, cell in enumerate(cells)))


def cells_of(kind: Kind) -> list[Cell]:
    """The row of a kind."""
    return [one for one in CELLS if one.kind is kind]
