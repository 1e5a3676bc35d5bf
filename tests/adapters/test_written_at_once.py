"""A streamed answer is written by whoever brings the text, as long as its client reads it: what goes out is the same, in its order. Without a server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from aiohttp.http import StreamWriter
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Ended, Follower, Showing, Sight, TextReader, Ticket
from adapters.http.api.answering import MOST_UNREAD, STATUS_SECONDS, ApiAnswering, ApiStream
from adapters.http.api.asked import ApiRequest
from adapters.http.api.completions import Completion
from adapters.http.api.spelling import ApiJob
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import ExitCode
from agent_core.turn.state import ThoughtText
from tests.adapters.scripted import CountedIds, StillClock, ended, shown, text
from tests.adapters.scripted import example as exit_of

ASKED = ApiRequest(
    model="m", history=(), latest=(), system=(), tools=(), parameters={}, client_output_limit=False, session="", user="",
    stream=True, include_usage=False, digest="",
)  # fmt: skip
WORDS = "It is a long answer with many words in it."


class Wire(asyncio.Transport):
    """A connection whose client reads, or does not."""

    def __init__(self) -> None:
        super().__init__()
        self.gone, self.unread, self.sent = False, 0, bytearray()

    def is_closing(self) -> bool:
        return self.gone

    def get_write_buffer_size(self) -> int:
        return self.unread

    def write(self, data: Any) -> None:
        self.sent += data


class Line:
    """What aiohttp asks of a connection besides."""

    _paused = False

    def __init__(self, transport: Wire) -> None:
        self.transport, self.connected = transport, True

    async def _drain_helper(self) -> None: ...


class NoMore(Exception):
    """The sights are over."""


class Read:
    """Sights as they come: each is shown to who reads text at once, and else given to the task. What was taken at once is noted."""

    def __init__(self, *sights: Sight) -> None:
        self.sights, self.at_once = [*sights], list[bool]()

    async def next(self, timeout_seconds: float, reader: TextReader | None = None) -> Sight | None:
        del timeout_seconds
        while self.sights:
            sight = self.sights.pop(0)
            if reader is None or not isinstance(sight, Showing):
                return sight
            self.at_once.append(reader.shown(sight))
            if not self.at_once[-1]:
                return sight
        raise NoMore


class Streaming:
    """One stream, and what its client has got."""

    def __init__(self, *, thinking: bool = False, errors: ErrorsAs = ErrorsAs.WORDS) -> None:
        self.wire, self.clock = Wire(), StillClock()
        line = cast("Any", Line(self.wire))
        writer = StreamWriter(line, asyncio.get_running_loop())
        request = make_mocked_request("POST", "/", writer=writer, transport=self.wire)
        job = ApiJob(
            ASKED, Ticket(7, "s_1", duplicate=False), "req", 5, {}, keyed=False, errors=errors, thinking=thinking
        )
        answering = ApiAnswering(self.clock, CountedIds(), 15)
        self.stream = ApiStream(answering, request, job, Completion(job))

    async def tell(self, first: Sight, *rest: Sight) -> Read:
        await self.stream.open()
        read = Read(*rest)
        await self.stream.tell(cast("Follower", read), first)
        await self.stream.close()
        return read

    def got(self, of: str = "content") -> str:
        chunks = bytes(self.wire.sent).split(b"\r\n\r\n", 1)[1]
        body = b""
        while (size := int(chunks.split(b"\r\n", 1)[0], 16)) > 0:
            begin = chunks.index(b"\r\n") + 2
            body, chunks = body + chunks[begin : begin + size], chunks[begin + size + 2 :]
        events = [orjson.loads(one) for one in re.findall(rb"(?m)^data: (\{.*)$", body)]
        return "".join(choice["delta"].get(of) or "" for each in events for choice in each.get("choices", ()))


def growing(chars: int, thought: ThoughtText | None = None) -> Showing:
    showing = Showing("t_1", shown(text("a", WORDS[:chars])))
    return replace(showing, thought=thought) if thought is not None else showing


def over() -> Ended:
    return ended(exit_of(ExitCode.ANSWERED), text("a", WORDS, final=True))


@given(sizes=st.lists(st.integers(0, len(WORDS)), max_size=6))
async def test_what_is_written_at_once_is_all_of_the_text_in_its_order(sizes: Sequence[int]) -> None:
    streaming = Streaming()
    await streaming.tell(growing(1), *(growing(size) for size in sorted(sizes)), over())
    assert streaming.got() == WORDS


@pytest.mark.parametrize("unread", [0, MOST_UNREAD, MOST_UNREAD + 1])
@pytest.mark.parametrize("gone", [False, True])
async def test_text_is_written_at_once_to_a_client_who_reads_and_to_nobody_else(unread: int, *, gone: bool) -> None:
    streaming = Streaming()
    await streaming.stream.open()
    first = Read(growing(10), growing(15), growing(20))
    with pytest.raises(NoMore):
        await streaming.stream.tell(cast("Follower", first), growing(5))
    assert first.at_once == [True] * 3
    streaming.wire.unread, streaming.wire.gone, before = unread, gone, len(streaming.wire.sent)
    reads = not gone and unread <= MOST_UNREAD
    assert streaming.stream.shown(growing(30)) is reads
    assert (len(streaming.wire.sent) > before) is reads


@pytest.mark.parametrize("thinking", [True, False])
async def test_what_was_thought_stands_before_the_text_that_came_with_it_and_none_of_it_is_lost(
    *, thinking: bool
) -> None:
    streaming, thought, later = Streaming(thinking=thinking), ThoughtText(), ThoughtText()
    thought.add("First this.")
    later.add("First this.")
    later.add(" Then that.")
    last = replace(over(), thought=later)
    read = await streaming.tell(growing(5), growing(10, thought), growing(20, thought), last)
    assert read.at_once == [not thinking, True]
    assert (streaming.got(), streaming.got("reasoning_content")) == (WORDS, "First this. Then that." * thinking)
    if thinking:
        sent = bytes(streaming.wire.sent)
        assert sent.index(b"First this.") < sent.index(WORDS[5:9].strip().encode())


async def test_who_reads_nothing_new_for_a_while_is_told_so_by_the_task() -> None:
    streaming = Streaming()
    with pytest.raises(NoMore):
        await streaming.tell(growing(5), growing(10))
    assert streaming.stream.shown(growing(10))
    streaming.clock.at += STATUS_SECONDS
    assert not streaming.stream.shown(growing(10))
    assert streaming.stream.shown(growing(20))
