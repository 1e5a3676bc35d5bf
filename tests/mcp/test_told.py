"""What a tool of a server tells in the end: of files that they are there, of a late answer that it came, and of neither what is not so."""

from __future__ import annotations

import asyncio
import sys
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from agent_core.jsonvalue import Json
from agent_core.limits.quotas import BLOCK, QuotaKind
from agent_core.ports import SystemClock
from agent_core.store.errors import StorageUnavailable
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.mcp import servers as servers_module
from agent_core.tools.mcp import tool
from agent_core.tools.mcp.calling import Silent
from agent_core.tools.mcp.listed import Listing, ServerTool, written
from agent_core.tools.mcp.server import ServerState, in_words
from agent_core.tools.mcp.servers import McpServers, _digest, _file
from agent_core.tools.mcp.terms import ServerTerms
from agent_core.tools.mcp.tool import McpTool
from agent_core.tools.registry import ToolRegistry
from tests.agent_core.test_media import NoSpace
from tests.store.support import FakeClock

TERMS = ServerTerms("desk", "desk__", ("desk-server",))
PICTURE: Mapping[str, Json] = {
    "content": [{"type": "image", "data": b64encode(b"x" * 9_000).decode(), "mimeType": "image/png"}]
}


class Told:
    """Implements `FollowUps`; fails as often as it is told to."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.said = fails, list[tuple[str, ...]]()

    async def begin(self, turn: str, key: str, title: str, words: str) -> bool:
        if self.fails:
            self.fails -= 1
            raise StorageUnavailable("away")
        self.said.append((turn, key, title, words))
        return True

    async def reaches(self, turn: str) -> bool:
        return True


def tool_of(told: Told, *, late: bool) -> tuple[McpTool, list[Any]]:
    """A tool whose server gives a picture, in time or not; and what hears of the late answer."""
    heard: list[Any] = []

    async def call(_tool: str, _arguments: object, _progress: object, _ask: object, hears: Any) -> Mapping[str, Json]:
        heard.append(hears)
        if late:
            raise Silent("gave no result within its time")
        return PICTURE

    server: Any = SimpleNamespace(terms=TERMS, call=call)
    return McpTool(
        server, ServerTool("draw", "Draws.", {"type": "object"}), "desk__draw", 5_000, str, told, asks=False
    ), heard


def context(folder: Path, **more: Any) -> ToolContext:
    return ToolContext("t", "c", "t:c", folder / "workspace", "m", SystemClock(), lambda _: None, **more)


async def test_a_late_answer_is_told_with_its_files_where_it_says_that_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "AWAY_SECONDS", 0.0)
    told = Told(fails=2)
    draws, heard = tool_of(told, late=True)
    outcome = await draws.run({}, context(tmp_path))
    assert outcome.status is ToolStatus.TIMED_OUT
    await heard[0](PICTURE)
    ((turn, key, title, words),) = told.said
    assert (turn, key) == ("t", "t:c:late")
    assert title.startswith("desk__draw has answered after all: it was done")
    assert "is in the workspace as mcp/" in words
    name = words.partition(" as ")[2].partition(".]")[0]
    assert (tmp_path / "workspace" / name).read_bytes() == b"x" * 9_000


@pytest.mark.parametrize("late", [False, True])
async def test_files_for_which_there_is_no_room_are_said_not_to_be_there(tmp_path: Path, late: bool) -> None:
    told, space = Told(), NoSpace()
    draws, heard = tool_of(told, late=late)
    outcome = await draws.run({}, context(tmp_path, space=space))
    if late:
        await heard[0](PICTURE)
    words = told.said[0][3] if late else outcome.text
    assert "[Not all files of this result are in the workspace" in words
    assert space.asked == [{QuotaKind.WORKSPACE: 3 * BLOCK, QuotaKind.FILES: 2}], "the folder is one as well"
    assert not (tmp_path / "workspace").exists()


def kept(folder: Path, terms: ServerTerms, of: str, names: list[str]) -> None:
    tools: list[Json] = [dict(written(ServerTool(name, "x", {"type": "object"}))) for name in names]
    _file(folder, terms).write_bytes(orjson.dumps({"of": of, "tools": tools}))


@pytest.mark.parametrize(
    ("offered", "withheld", "names"),
    [
        (None, (), ["look", "act"]),
        (None, ("desk__act",), ["look"]),
        (("desk__act",), (), ["act"]),
        (("desk__act", "desk__look"), ("desk__look",), ["act"]),
        ((), (), []),
    ],
)
async def test_what_is_offered_is_what_may_be_and_is_not_withheld(
    tmp_path: Path, offered: tuple[str, ...] | None, withheld: tuple[str, ...], names: list[str]
) -> None:
    kept(tmp_path, TERMS, _digest(TERMS), ["look", "act"])
    registry = ToolRegistry([])
    servers = McpServers([TERMS], registry, tmp_path, FakeClock(), result_chars=100, offered=offered, withheld=withheld)
    assert dict(servers.names["desk"]) == {name: f"desk__{name}" for name in names}
    assert sorted(registry.names) == sorted(f"desk__{name}" for name in names)


async def test_what_another_program_listed_under_the_name_of_a_server_is_not_offered_as_its_tools(
    tmp_path: Path,
) -> None:
    for other in (
        ServerTerms("desk", "desk__", ("another",)),
        ServerTerms("desk", "desk__", url="https://desk.example/"),
    ):
        kept(tmp_path, TERMS, _digest(other), ["look"])
        servers = McpServers([TERMS], ToolRegistry([]), tmp_path, FakeClock(), result_chars=100)
        assert dict(servers.names["desk"]) == {}
    _file(tmp_path, TERMS).write_bytes(b"half of it: {")
    assert dict(McpServers([TERMS], ToolRegistry([]), tmp_path, FakeClock(), result_chars=100).names["desk"]) == {}


async def test_of_two_lists_that_a_server_gave_quickly_the_latest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [0.2, 0.0]

    def written_slowly(target: Path, data: bytes) -> None:
        time.sleep(slow.pop(0))
        target.write_bytes(data)

    monkeypatch.setattr(servers_module, "write_whole", written_slowly)
    servers = McpServers([TERMS], ToolRegistry([]), tmp_path, FakeClock(), result_chars=100)
    desk = servers.servers["desk"]
    for name in ("look", "act"):
        desk.listing = Listing((ServerTool(name, "x", {"type": "object"}),))
        servers._changed(desk)
        await asyncio.sleep(0.02)
    await asyncio.wait(servers._keeping)
    later = McpServers([TERMS], ToolRegistry([]), tmp_path, FakeClock(), result_chars=100)
    assert dict(later.names["desk"]) == {"act": "desk__act"}


async def test_a_turn_waits_for_a_server_that_nobody_knows_until_it_is_there_or_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("agent_core.tools.mcp.servers.LEARN_SECONDS", 600)
    terms = ServerTerms("gone", "gone__", (sys.executable, "-S", "-c", "raise SystemExit(3)"))
    servers = McpServers([terms], ToolRegistry([]), tmp_path, SystemClock(), result_chars=5_000)
    async with servers.running(), asyncio.timeout(60):
        one = servers.servers["gone"]
        while one.state is ServerState.RESTING:
            await asyncio.sleep(0)
        await servers.settled()
        assert (one.state, "status 3" in one.why) == (ServerState.DOWN, True), one.why


def test_of_several_reasons_the_first_that_says_something_is_told():
    inner = ExceptionGroup("inner", [RuntimeError(), OSError("the disk is gone")])
    assert in_words(ExceptionGroup("outer", [RuntimeError(), inner, OSError("and more")]), "desk") == "the disk is gone"
    assert in_words(ExceptionGroup("outer", [inner.exceptions[0]]), "desk") == "RuntimeError"
    assert in_words(ExceptionGroup("outer", [FileNotFoundError(2, "none")]), "desk").startswith(
        "there is no program desk"
    )
