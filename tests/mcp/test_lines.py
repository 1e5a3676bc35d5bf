"""What a program says and complains, line by line: no more of it is held, or logged, than may be."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from structlog.testing import capture_logs

from agent_core.tools.mcp import stdio
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.stdio import LINES_A_MINUTE, READ_BYTES, _hear, _Lines, over_stdio
from agent_core.tools.mcp.terms import ServerTerms

MOST = 100


def lines_of(said: bytes) -> tuple[_Lines, McpLink]:
    stream, link = asyncio.StreamReader(), McpLink()
    stream.feed_data(said)
    stream.feed_eof()
    return _Lines(stream, link, MOST), link


@pytest.mark.parametrize(
    "lines", [[b"a\n"], [b"\n"], [b"a" * MOST + b"\n"], [b"one\n", b"two\n", b"a" * MOST + b"\n"] * 99]
)
async def test_lines_come_as_they_were_said(lines: list[bytes]) -> None:
    found, link = lines_of(b"".join(lines) + b"half a")
    assert [await found.next() for _ in lines] == lines
    with pytest.raises(EOFError):
        await found.next()
    assert link.part == len(b"half a")


@pytest.mark.parametrize("more", [b"", b"a" * 20 * READ_BYTES, b"\n"])
async def test_a_line_that_is_too_long_is_given_up_when_it_is_too_long_and_not_at_its_end(more: bytes) -> None:
    found, link = lines_of(b"one\n" + b"a" * (MOST + 1) + more)
    assert await found.next() == b"one\n"
    with pytest.raises(OverflowError):
        await found.next()
    assert link.part <= READ_BYTES + MOST


async def test_what_a_program_began_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "CLOSE_SECONDS", 0.2)
    begun = tmp_path / "pid"
    command = ("sh", "-c", f"sleep 600 & echo $! > {begun}.part; mv {begun}.part {begun}; exec cat")
    lifeline, link = Lifeline(), McpLink()
    async with over_stdio(ServerTerms("desk", "desk__", command), link, lifeline):
        async with asyncio.timeout(30):
            while not begun.exists():
                await asyncio.sleep(0.005)
        child = psutil.Process(int(begun.read_text()))
        assert child.is_running()
    async with asyncio.timeout(30):
        while child.is_running() and child.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.005)
    await lifeline.aclose()


async def test_a_program_whose_input_is_closed_has_a_while_to_come_to_its_end_by_itself(tmp_path: Path) -> None:
    begun, done = tmp_path / "begun", tmp_path / "done"
    command = ("sh", "-c", f"touch {begun}; cat; sleep 0.1; touch {done}")
    lifeline, link = Lifeline(), McpLink()
    async with over_stdio(ServerTerms("desk", "desk__", command), link, lifeline):
        async with asyncio.timeout(30):
            while not begun.exists():
                await asyncio.sleep(0.005)
    await lifeline.aclose()
    assert done.exists()


@pytest.mark.parametrize(
    ("lines", "logged"), [(3, 3), (LINES_A_MINUTE, LINES_A_MINUTE), (5 * LINES_A_MINUTE, LINES_A_MINUTE)]
)
async def test_what_a_program_complains_is_logged_within_bounds_and_the_last_of_it_is_kept(
    lines: int, logged: int
) -> None:
    stream, link = asyncio.StreamReader(), McpLink()
    stream.feed_data(b"".join(b"line %d\n\n" % number for number in range(lines)))
    stream.feed_eof()
    process: Any = SimpleNamespace(stderr=stream)
    with capture_logs() as seen:
        await _hear(process, link, ServerTerms("desk", "desk__", ("x",)))
    assert [one["line"] for one in seen] == [f"line {number}" for number in range(logged)]
    assert [one for one in link.last_lines if one][-1] == f"line {lines - 1}"
