"""Why there is no connection: each reason has its own cause, by the real client on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from agent_core.causes import BreakCause, cause_words
from agent_core.failures import exits
from agent_core.failures.shortage import NO_FILES
from agent_core.model.client import ModelClient, ModelRequest
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.model.reach import led_elsewhere
from agent_core.ports import SystemClock
from agent_core.settings import Route
from agent_core.text.redaction import Redactor
from agent_core.turn.events import CallBroke
from tests.certificates import self_signed


async def broke(url: str, times: int = 1) -> CallBroke:
    """What the last of `times` calls of one client comes to."""
    client = ModelClient((Endpoint("up", url, (Credential("k", "sk-secret-key"),), ("m",)),), SystemClock(), Redactor())
    request = ModelRequest(Route("m", "up", "k"), 1, [{"role": "user", "content": "x"}], connect_seconds=1)
    ending = None
    try:
        for _ in range(times):
            ending = await client.ask(request, lambda _: None)
    finally:
        await client.aclose()
    assert isinstance(ending, CallBroke)
    return ending


@asynccontextmanager
async def server(answer: bytes = b"", tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """A port where whoever says something gets `answer`, and is hung up on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read(100)
            writer.write(answer)
            await writer.drain()
        writer.close()

    made = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()


@contextmanager
def full() -> Generator[int]:
    """A port that takes no more connections: what is sent to it is not answered."""
    with contextlib.ExitStack() as stack:
        taken = stack.enter_context(socket.socket())
        taken.bind(("127.0.0.1", 0))
        taken.listen(0)
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(taken.getsockname())
        yield taken.getsockname()[1]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


async def test_a_port_where_nobody_listens_has_refused():
    assert (await broke(f"http://127.0.0.1:{free_port()}/v1")).cause is BreakCause.CONNECTION_REFUSED
    assert (await broke(f"https://127.0.0.1:{free_port()}/v1")).cause is BreakCause.CONNECTION_REFUSED


async def test_a_name_that_nobody_has_is_unknown():
    assert (await broke("http://no-such-host.invalid/v1")).cause is BreakCause.UNKNOWN_NAME


async def test_a_certificate_that_nobody_vouches_for_is_bad(tmp_path: Path):
    async with server(tls=self_signed(tmp_path)) as port:
        found = await broke(f"https://127.0.0.1:{port}/v1")
    assert found.cause is BreakCause.BAD_CERTIFICATE
    assert "self-signed" in found.detail


async def test_tls_to_a_plain_port_is_told_as_that():
    async with server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n") as port:
        assert (await broke(f"https://127.0.0.1:{port}/v1")).cause is BreakCause.NOT_TLS


async def test_plain_http_to_a_port_that_wants_tls_is_told_as_that_also_the_second_time(tmp_path: Path):
    async with server(tls=self_signed(tmp_path)) as port:
        assert (await broke(f"http://127.0.0.1:{port}/v1", times=2)).cause is BreakCause.WANTS_TLS


@pytest.mark.parametrize(
    "words",
    [
        "<html><h1>400 Bad Request</h1>The plain HTTP request was sent to HTTPS port</html>",
        "Client sent an HTTP request to an HTTPS server.\n",
    ],
)
async def test_servers_that_say_so_want_tls(words: str):
    answer = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(words)}\r\nConnection: close\r\n\r\n{words}"
    async with server(answer.encode()) as port:
        assert (await broke(f"http://127.0.0.1:{port}/v1")).cause is BreakCause.WANTS_TLS


async def test_no_connection_in_time_is_told_as_that():
    with full() as port:
        assert (await broke(f"http://127.0.0.1:{port}/v1")).cause is BreakCause.NOT_CONNECTED


async def test_a_server_that_hangs_up_was_reached():
    async with server() as port:
        assert (await broke(f"http://127.0.0.1:{port}/v1", times=2)).cause is BreakCause.DROPPED


async def test_what_is_no_address_is_said_to_be_none():
    found = await broke("http://127.0.0.1:99999/v1")
    assert found.cause is BreakCause.UNREACHABLE
    assert "no web address" in found.detail


ADDRESS_CAUSES = [
    BreakCause.UNREACHABLE,
    BreakCause.CONNECTION_REFUSED,
    BreakCause.UNKNOWN_NAME,
    BreakCause.BAD_CERTIFICATE,
    BreakCause.NOT_TLS,
    BreakCause.WANTS_TLS,
    BreakCause.NOT_CONNECTED,
    BreakCause.NO_ROUTE,
    BreakCause.BY_PROXY,
    BreakCause.REGION,
]


def test_every_reason_has_a_sentence_of_its_own():
    sentences = {cause_words(cause) for cause in ADDRESS_CAUSES}
    assert len(sentences) == len(ADDRESS_CAUSES)


@pytest.mark.parametrize("cause", [BreakCause.BAD_CERTIFICATE, BreakCause.NOT_TLS, BreakCause.WANTS_TLS])
def test_nobody_is_told_to_ask_again_where_that_cannot_help(cause: BreakCause):
    notice = exits.ProviderDown(cause=cause, attempts=1).notice()
    assert notice is not None
    assert "in a moment" not in notice.text
    assert "whoever runs this gateway" in notice.text


@pytest.mark.parametrize(
    ("status", "location", "cause", "leads"),
    [
        (301, "https://models.example.org/v1/chat/completions", BreakCause.WANTS_TLS, "https://models.example.org/v1/chat/completions"),
        (307, "https://models.example.org:8443/v1/chat/completions", BreakCause.WANTS_TLS, "https://models.example.org:8443/v1/chat/completions"),
        (308, "/v1/chat/completions/", BreakCause.NO_ROUTE, "http://models.example.org/v1/chat/completions/"),
        (302, "/login?next=%2Fv1", BreakCause.NO_ROUTE, "http://models.example.org/login"),
        (301, "https://www.example.org/v1/chat/completions", BreakCause.NO_ROUTE, "https://www.example.org/v1/chat/completions"),
        (302, "https://user:word@portal.example.net/?key=1#x", BreakCause.BY_PROXY, "https://portal.example.net/"),
        (303, "//portal.example.net", BreakCause.BY_PROXY, "http://portal.example.net"),
        (302, "http://[", BreakCause.GARBAGE, ""),
        (302, "", BreakCause.GARBAGE, ""),
    ],
)  # fmt: skip
def test_where_an_address_leads_says_what_is_wrong_with_it(status: int, location: str, cause: BreakCause, leads: str):
    found, detail = led_elsewhere("http://models.example.org/v1", status, location)
    assert found is cause
    assert detail == (f"it leads to {leads}" if leads else "")


async def test_that_we_can_open_nothing_more_is_not_blamed_on_the_provider() -> None:
    address, before = "http://127.0.0.1:1/v1", resource.getrlimit(resource.RLIMIT_NOFILE)
    await broke(address)  # what is imported for the first call is there
    os.close(free := os.open(os.devnull, os.O_RDONLY))
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        ending = await broke(address)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (ending.cause, ending.detail) == (BreakCause.UNREACHABLE, NO_FILES)
    told = exits.ProviderDown(cause=ending.cause, detail=ending.detail).text()
    assert NO_FILES in told
    assert "address" not in told
