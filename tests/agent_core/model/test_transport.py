"""A body whose socket is left alone between two reads: nothing is read meanwhile, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import gzip
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import FrameType

import pytest
from aiohttp.client_proto import ResponseHandler

from agent_core.bell import FRAME_SECONDS, Frames
from agent_core.model.reach import ALONE, AskedByOthers, Lives, TransportBroke
from agent_core.model.transport import ModelAnswer, ModelLine, RequestNotTaken
from tests.certificates import self_signed

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MUCH = 64
"""So many pieces of `PIECE` are more than sockets hold."""
PIECE = b"x" * 262_144

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Peer:
    """The server's end: what it has sent, and whether it was hung up on."""

    def __init__(self) -> None:
        self.connections = 0
        self.sent = asyncio.Event()
        self.gone = asyncio.Event()


@asynccontextmanager
async def answered(serve: Serve, lives: Lives = ALONE, tls: ssl.SSLContext | None = None) -> AsyncGenerator[ModelLine]:
    serving: set[asyncio.Task[None]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await serve(reader, writer)
        finally:
            writer.close()
            await asyncio.wait_for(writer.wait_closed(), 10)

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    line = ModelLine(f"http{'s' if tls is not None else ''}://127.0.0.1:{port}/", {}, lives)
    yield line
    await line.aclose()
    server.close()
    await asyncio.wait(serving, timeout=10)


def body_of(line: ModelLine) -> AbstractAsyncContextManager[ModelAnswer]:
    return line.asked(b"{}", 5)


async def asked(reader: asyncio.StreamReader) -> None:
    await reader.readuntil(b"\r\n\r\n")
    await reader.readexactly(2)


async def test_a_body_that_rests_reads_nothing_and_then_everything() -> None:
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first"))
        await writer.drain()
        for _ in range(MUCH):
            writer.write(framed(PIECE))
            await writer.drain()
        peer.sent.set()
        writer.write(b"0\r\n\r\n")

    async with answered(serve) as line, body_of(line) as body:
        first = await body.next() or b""
        assert first.startswith(b"first")
        body.rest()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await peer.sent.wait()
        body.go_on()
        rest = len(first)
        while piece := await body.next():
            rest += len(piece)
            body.rest()
            asyncio.get_running_loop().call_soon(body.go_on)
        assert rest == len(b"first") + MUCH * len(PIECE)
        assert peer.sent.is_set()


async def test_what_comes_while_a_body_rests_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = asyncio.Event()
    resting = asyncio.Event()
    reads: list[bytes] = []
    received = ResponseHandler.data_received

    def noted(self: ResponseHandler, data: bytes) -> None:
        if data:
            reads.append(data)
        received(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", noted)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"0 "))
        await resting.wait()
        for number in range(1, 20):
            writer.write(framed(b"%d " % number))
            await asyncio.sleep(0.005)
        written.set()
        await reader.read()

    async with answered(serve) as line, body_of(line) as body:
        assert await body.next() == b"0 "
        body.rest()
        before = len(reads)
        resting.set()
        await written.wait()
        assert len(reads) == before
        body.go_on()
        assert await body.next() == b"".join(b"%d " % number for number in range(1, 20))
        assert len(reads) == before + 1


async def test_a_body_of_which_much_comes_while_nobody_takes_it_is_read_on() -> None:
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD)
        for _ in range(MUCH):
            writer.write(framed(PIECE))
            await writer.drain()
        peer.sent.set()
        writer.write(b"0\r\n\r\n")

    async with answered(serve) as line, body_of(line) as body:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await peer.sent.wait()
        came = 0
        async with asyncio.timeout(30):
            while piece := await body.next():
                came += len(piece)
        assert came == MUCH * len(PIECE)


async def test_a_connection_by_which_a_request_was_refused_serves_no_other() -> None:
    """Servers hang up after a refusal without saying so, and later than the next request is sent."""
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await asked(reader)
                writer.write(b"HTTP/1.1 400 No\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno")

    async with answered(serve) as line:
        for _ in range(3):
            with pytest.raises(RequestNotTaken):
                async with body_of(line):
                    pass
    assert peer.connections == 3


async def test_who_we_are_for_a_proxy_is_told_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(HEAD + framed(b"Hi") + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    proxy = await asyncio.start_server(serve, "127.0.0.1", 0)
    for name in ("ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "HTTP_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", f"http://we:secret@127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
    line = ModelLine("http://models.example/v1", {"Authorization": "Bearer key"})
    async with body_of(line) as body:
        assert await body.next() == b"Hi"
    await line.aclose()
    proxy.close()
    assert heads[0].startswith(b"POST http://models.example/v1 ")
    assert b"\r\nProxy-Authorization: Basic d2U6c2VjcmV0\r\n" in heads[0]
    assert b"\r\nAuthorization: Bearer key\r\n" in heads[0]


async def test_many_small_pieces_are_taken_together_and_each_costs_next_to_nothing() -> None:
    resting, calls = asyncio.Event(), 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first "))
        await resting.wait()
        writer.write(b"".join(framed(b"%d " % number) for number in range(500)))
        await reader.read()

    async with answered(serve) as line, body_of(line) as body:
        assert await body.next() == b"first "
        body.rest()
        resting.set()
        await asyncio.sleep(0.1)
        body.go_on()
        sys.setprofile(counted)
        try:
            came = await body.next()
        finally:
            sys.setprofile(None)
        assert came == b"".join(b"%d " % number for number in range(500))
        assert calls < 3 * 500 + 100  # what a chunk of HTTP costs: its beginning, what is in it, its end


async def test_a_body_that_rests_can_be_left_and_its_connection_is_closed() -> None:
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first"))
        await reader.read()
        peer.gone.set()

    async with answered(serve) as line:
        async with body_of(line) as body:
            await body.next()
            body.rest()
        body.go_on()
        async with asyncio.timeout(10):
            await peer.gone.wait()


async def test_nothing_of_a_body_that_rests_is_given_before_it_goes_on() -> None:
    """Nor is its end: what was there already when it came to rest, and what is packed, waits as well."""
    for packed in (b"", b"Content-Encoding: gzip\r\n"):

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, packed: bytes = packed) -> None:
            await asked(reader)
            said = gzip.compress(b"first") if packed else b"first"
            writer.write(HEAD.replace(b"\r\n\r\n", b"\r\n" + packed + b"\r\n") + framed(said) + b"0\r\n\r\n")

        async with answered(serve) as line, body_of(line) as body:
            assert await body.next() == b"first"
            body.rest()
            next_one = asyncio.ensure_future(body.next())
            done, _ = await asyncio.wait([next_one], timeout=0.1)
            assert not done
            body.go_on()
            assert await asyncio.wait_for(next_one, 5) is None


async def test_a_connection_that_is_lost_while_a_body_rests_gives_what_came_and_then_breaks() -> None:
    lost = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first"))
        await writer.drain()
        await resting.wait()
        writer.write(framed(b"last"))
        writer.close()
        await writer.wait_closed()
        lost.set()

    resting = asyncio.Event()
    async with answered(serve) as line, body_of(line) as body:
        assert await body.next() == b"first"
        body.rest()
        resting.set()
        await lost.wait()
        body.go_on()
        assert await body.next() == b"last"
        body.rest()
        body.go_on()
        with pytest.raises(TransportBroke):
            await body.next()


async def test_a_connection_whose_body_rested_serves_the_next_request() -> None:
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        for _ in range(2):
            await asked(reader)
            writer.write(HEAD + framed(b"one "))
            await asyncio.sleep(0.02)
            writer.write(framed(b"two") + b"0\r\n\r\n")

    async with answered(serve) as line:
        for _ in range(2):
            async with body_of(line) as body:
                said = b""
                while piece := await body.next():
                    said += piece
                    body.rest()
                    body.go_on()
                assert said == b"one two"
    assert peer.connections == 1


async def test_a_connection_serves_the_next_request_as_soon_as_all_of_an_answer_is_here() -> None:
    """Whoever asked may have long to do with it."""
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        for _ in range(2):
            await asked(reader)
            writer.write(HEAD + framed(b"all of it") + b"0\r\n\r\n")

    async with answered(serve) as line, body_of(line) as first:
        while await first.next():
            pass
        assert not first.waits
        async with body_of(line) as second:
            assert await second.next() == b"all of it"
    assert peer.connections == 1


class Frame:
    """Gathers what a body in frames gives, until it says that this is enough."""

    def __init__(self, until: bytes = b"") -> None:
        self.came: list[bytes] = []
        self._until = until

    def take_frame(self, data: bytes) -> bool:
        self.came.append(data)
        return not self._until or self._until not in data


@pytest.mark.parametrize("tls", [False, True])
async def test_a_body_in_frames_is_read_without_its_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, tls: bool
) -> None:
    """Once a frame, whatever came until then; nothing is lost between that and what is read otherwise before and behind it."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    monkeypatch.setattr("agent_core.model.transport.trusted", lambda: anybody)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"0 "))
        for number in range(1, 60):
            await asyncio.sleep(0.005)
            writer.write(framed(b"%d " % number))
        await asyncio.sleep(2.5 * FRAME_SECONDS)  # a frame or two without anything
        writer.write(framed(b"60 ") + framed(b"enough ") + framed(b"last") + b"0\r\n\r\n")

    spoken = self_signed(tmp_path) if tls else None
    async with answered(serve, tls=spoken) as line, body_of(line) as body:
        assert await body.next() == b"0 "
        frame = Frame(b"enough")
        began = time.monotonic()
        await asyncio.wait_for(body.in_frames(Frames(), frame, 1_000), 20)
        frames = (time.monotonic() - began) / FRAME_SECONDS
        rest = b"".join(frame.came)
        while piece := await body.next():
            rest += piece
        assert rest == b"".join(b"%d " % number for number in range(1, 61)) + b"enough last"
        assert len(frame.came) <= frames + 2  # and not sixty times, unless the machine took a frame for each


async def test_a_body_in_frames_leaves_to_its_task_what_is_no_small_piece() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first"))
        await writer.drain()
        await asyncio.sleep(FRAME_SECONDS)
        writer.write(framed(PIECE))
        await reader.read()

    async with answered(serve) as line, body_of(line) as body:
        assert await body.next() == b"first"
        frame = Frame()
        await asyncio.wait_for(body.in_frames(Frames(), frame, 1_000), 20)
        came = b"".join(frame.came)
        while len(came) < len(PIECE):
            came += await body.next() or b""
        assert came == PIECE


async def test_a_body_that_ends_in_frames_leaves_its_connection_to_the_next_request() -> None:
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        for _ in range(3):
            await asked(reader)
            writer.write(HEAD + framed(b"one "))
            await asyncio.sleep(FRAME_SECONDS / 2)
            writer.write(framed(b"two") + b"0\r\n\r\n")

    async with answered(serve) as line:
        for _ in range(3):
            async with body_of(line) as body:
                assert await body.next() == b"one "
                frame = Frame()
                await asyncio.wait_for(body.in_frames(Frames(), frame, 1_000), 20)
                assert frame.came == [b"two"]
                assert await body.next() is None
    assert peer.connections == 1


@pytest.mark.parametrize("reset", [False, True])
async def test_a_connection_that_is_lost_in_frames_breaks(monkeypatch: pytest.MonkeyPatch, *, reset: bool) -> None:
    """Also where its end would be the end of the body: who resets it has not said all. The kernel tells of that once."""
    head = HEAD.replace(b"Transfer-Encoding: chunked", b"Connection: close") if reset else HEAD

    def lost(_handle: int, _most: int) -> bytes:
        raise ConnectionResetError(errno.ECONNRESET, "reset")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(head + (b"first" if reset else framed(b"first")))
        await writer.drain()
        await asyncio.sleep((20 if reset else 1) * FRAME_SECONDS)

    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    async with answered(serve) as line, body_of(line) as body:
        assert await body.next() == b"first"
        frame = Frame()
        with monkeypatch.context() as patched:
            if reset:
                patched.setattr("agent_core.model.transport.os.read", lost)
            await asyncio.wait_for(body.in_frames(Frames(), frame, 1_000), 20)
        assert not frame.came
        with pytest.raises(TransportBroke):
            await body.next()
    gc.collect()
    assert not complaints, "it is heard by whoever reads, and by nobody else"


async def test_what_fails_in_a_frame_fails_in_the_task_and_nothing_is_taken_behind_it() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"first"))
        with contextlib.suppress(ConnectionError):
            for _ in range(60):
                await asyncio.sleep(0.005)
                writer.write(framed(b"more"))
                await writer.drain()

    async with answered(serve) as line:
        taken = 0

        class Fails:
            def take_frame(self, data: bytes) -> bool:
                nonlocal taken
                taken += len(data) > 0
                raise LookupError

        async with body_of(line) as body:
            await body.next()
            with pytest.raises(LookupError):
                await asyncio.wait_for(body.in_frames(Frames(), Fails(), 1_000), 20)
        async with body_of(line) as body:
            await body.next()
            waiting = asyncio.ensure_future(body.in_frames(Frames(), Fails(), 1_000))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.sleep(3 * FRAME_SECONDS)
            assert waiting.cancelled()
        assert taken == 1


class Lease:
    """What is told at each look, and the last of it from then on."""

    def __init__(self, *told: bool | None) -> None:
        self.told = [*told]
        """None: it is not known just now."""

    @property
    def _now(self) -> bool | None:
        return self.told[0]

    def lease_ok(self) -> bool:
        return self._now is True

    def may_return(self) -> bool:
        now = self._now
        if len(self.told) > 1:
            self.told.pop(0)
        return now is None


async def test_of_a_request_that_others_may_ask_by_now_no_byte_goes_out() -> None:
    peer, read = Peer(), bytearray()

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        peer.connections += 1
        read.extend(await reader.read())
        peer.gone.set()

    async with answered(serve, Lease(False)) as line:
        for body in (b"{}", b"x" * 300_000):
            peer.gone.clear()
            with pytest.raises(AskedByOthers):
                async with line.asked(body, 5):
                    pass
            await asyncio.wait_for(peer.gone.wait(), 10)
    assert peer.connections == 2
    assert not read


async def test_of_a_large_request_nothing_more_goes_out_once_others_may_ask() -> None:
    """Whoever is stopped in the middle of it never lets the server have all."""
    read, whole, body = bytearray(), asyncio.Event(), b"x" * 64 * 262_144
    lease = Lease(True)

    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            read.extend(piece)
            if len(read) > 400_000:
                lease.told[:] = [False]
        whole.set()

    async with answered(serve, lease) as line:
        with pytest.raises(AskedByOthers):
            async with asyncio.timeout(30), line.asked(body, 5):
                pass
        await asyncio.wait_for(whole.wait(), 20)
    assert 400_000 < len(read) < len(body)


async def test_a_refusal_that_comes_before_all_of_a_large_request_is_sent_is_heard() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 413 Too Large\r\nContent-Type: text/plain; charset=latin-1\r\nContent-Length: 5\r\n\r\nf\xfcnf!"
        )
        await writer.drain()
        await reader.read()

    async with answered(serve) as line:
        with pytest.raises(RequestNotTaken) as refused:
            async with line.asked(b"x" * 40_000_000, 5):
                pass
    assert (refused.value.status, refused.value.body) == (413, "fünf!")


async def test_a_large_request_arrives_whole_and_its_connection_serves_the_next() -> None:
    read: list[bytes] = []
    peer = Peer()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer.connections += 1
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            read.append(await reader.readexactly(int(head.split(b"Content-Length: ")[1])))
            writer.write(b"HTTP/1.1 102 Processing\r\n\r\n" + HEAD + framed(b"there") + b"0\r\n\r\n")

    bodies = [b"".join(b"%d " % number for number in range(200_000)), b"{}"]
    async with answered(serve) as line:
        for body in bodies:
            async with line.asked(body, 5) as answer:
                assert await answer.next() == b"there"
                assert await answer.next() is None
    assert read == bodies
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://somebody:secret@host/", {"authorization": "Bearer x"}),
        ("http://host/", {"X": "a\r\nY: b"}),
        ("http://host/", {"X\n": "a"}),
    ],
)
def test_what_no_request_can_say_is_refused_at_once(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"who asks|no header"):
        ModelLine(url, headers)


async def test_a_request_waits_until_it_is_known_whether_it_may_go_out() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asked(reader)
        writer.write(HEAD + framed(b"there") + b"0\r\n\r\n")
        await writer.drain()

    lease = Lease(None, None, True)
    async with answered(serve, lease) as line, body_of(line) as answer:
        assert await answer.next() == b"there"
    assert lease.told == [True]


async def test_what_comes_by_a_kept_connection_unasked_answers_nobody() -> None:
    """A server that says something twice, or that it waits no longer: the next request would have the answer to another."""
    numbers = iter(range(9))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await asked(reader)
                whole = HEAD + framed(b"answer %d" % next(numbers)) + b"0\r\n\r\n"
                writer.write(whole)
                await writer.drain()
                await asyncio.sleep(0.05)
                writer.write(whole)
                await writer.drain()

    async with answered(serve) as line:
        for number in range(3):
            async with body_of(line) as body:
                pieces = [piece async for piece in iterated(body)]
            assert b"".join(pieces) == b"answer %d" % number
            await asyncio.sleep(0.2)


async def iterated(body: ModelAnswer) -> AsyncGenerator[bytes]:
    while (piece := await body.next()) is not None:
        yield piece
