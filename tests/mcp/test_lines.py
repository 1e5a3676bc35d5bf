"""What a program says and complains, line by line: no more of it is held, or logged, than may be."""

from __future__ import annotations

import asyncio

import pytest

from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.stdio import READ_BYTES, _Lines

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
