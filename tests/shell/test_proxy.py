"""The way out of a sandbox that the operator allows: what is named and public is called, nothing else; seen through the real sandbox, too."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.sandbox import proxy
from agent_core.tools.sandbox.hosts import RULE, may_call, read_host
from agent_core.tools.sandbox.proxy import Proxy, inside
from tests.shell.sandboxes import SMALL, needs_sandbox, ran

NAMES = st.from_regex(r"[a-z0-9]{1,8}(\.[a-z0-9]{1,8}){0,3}", fullmatch=True)


@given(NAMES, st.integers(1, 65535), NAMES)
def test_a_rule_names_itself_or_what_is_below_it_and_nothing_that_only_looks_alike(
    name: str, port: int, other: str
) -> None:
    assert may_call(name, 443, [name])
    assert may_call(f"{name.upper()}.", 80, [name])
    assert may_call(name, port, [f"{name}:{port}"])
    assert not may_call(name, port, [f"{name}:{port % 65535 + 1}"])
    assert may_call(f"{other}.{name}", 443, [f"*.{name}"])
    assert not may_call(name, 443, [f"*.{name}"])
    assert not may_call(f"x{name}", 443, [name])
    assert not may_call(f"x{name}", 443, [f"*.{name}"])
    assert not may_call(f"{name}.evil", 443, [name, f"*.{name}"])
    assert RULE.fullmatch(f"*.{name}:{port}")
    assert read_host(f"{name}:{port}", 1) == (name, port)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1", "0.0.0.0", "x", "100.64.0.1"],
)
def test_no_address_inside_is_called(address: str) -> None:
    assert inside(address)


@asynccontextmanager
async def proxied(
    rules: Sequence[str], addresses: Sequence[str], *, public: bool = True
) -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A proxy that finds these addresses for every name, and a server on the loopback that keeps what it is sent."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(4096))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def lookup(_: str, __: int) -> Sequence[str]:
        return addresses

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    door = socket.create_server(("127.0.0.1", 0))
    door.setblocking(False)
    made = Proxy([rule.replace("PORT", str(port)) for rule in rules], lookup, (lambda _: None) if public else None)
    task = asyncio.create_task(made.serve(door))
    asked: list[bytes] = heard
    try:
        yield door.getsockname()[1] * 100_000 + port, asked
    finally:
        task.cancel()
        await asyncio.wait([task])
        server.close()


async def said(ports: int, request: str) -> bytes:
    door, port = divmod(ports, 100_000)
    reader, writer = await asyncio.open_connection("127.0.0.1", door)
    writer.write(request.replace("PORT", str(port)).encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer


async def test_what_is_named_is_reached_and_told_the_host_that_was_judged() -> None:
    async with proxied(["good.example:PORT"], ["127.0.0.1"]) as (ports, heard):
        plain = await said(
            ports, "GET http://good.example:PORT/a?b=1 HTTP/1.1\r\nHost: evil.example\r\nX-One: 1\r\n\r\n"
        )
        assert plain.endswith(b"hello")
        assert heard[0].startswith(b"GET /a?b=1 HTTP/1.1\r\nHost: good.example:")
        assert b"evil" not in heard[0]
        assert b"X-One: 1" in heard[0]
        through = await said(ports, "CONNECT good.example:PORT HTTP/1.1\r\n\r\nhi")
        assert through.startswith(b"HTTP/1.1 200")
        assert through.endswith(b"hello")


@pytest.mark.parametrize(
    ("request_line", "words"),
    [
        ("GET http://bad.example:PORT/ HTTP/1.1", b"may not be called"),
        ("CONNECT bad.example:PORT HTTP/1.1", b"may not be called"),
        ("CONNECT good.example:1 HTTP/1.1", b"may not be called"),
        ("CONNECT 127.0.0.1:PORT HTTP/1.1", b"may not be called"),
        ("GET ftp://good.example/ HTTP/1.1", b"begins with http"),
        ("GET /etc HTTP/1.1", b"begins with http"),
        ("nonsense", b""),
    ],
)
async def test_what_is_not_named_is_refused_in_words(request_line: str, words: bytes) -> None:
    async with proxied(["good.example:PORT"], ["127.0.0.1"]) as (ports, heard):
        answer = await said(ports, f"{request_line}\r\n\r\n")
        assert words in answer
        assert heard == []


async def test_a_name_that_leads_inside_is_refused_even_if_only_one_of_its_addresses_does() -> None:
    async with proxied(["good.example:PORT"], ["93.184.216.34", "127.0.0.1"], public=False) as (ports, heard):
        answer = await said(ports, "CONNECT good.example:PORT HTTP/1.1\r\n\r\n")
        assert b"is this machine" in answer
        assert heard == []


async def test_so_many_connections_are_carried_at_once_and_who_ends_makes_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxy, "AT_ONCE", 1)
    async with proxied(["good.example:PORT"], ["127.0.0.1"]) as (ports, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", ports // 100_000)
        writer.write(b"CONNECT ")  # the first one has begun
        while b"Too many" not in (told := await said(ports, "CONNECT good.example:PORT HTTP/1.1\r\n\r\nhi")):
            assert told.startswith(b"HTTP/1.1 200"), "it came before the first"
        writer.close()
        await reader.read()
        async with asyncio.timeout(30):
            while b"Too many" in await said(ports, "CONNECT good.example:PORT HTTP/1.1\r\n\r\nhi"):
                await asyncio.sleep(0.02)


def test_a_sandbox_with_hosts_has_no_way_but_the_proxy(tmp_path: Path) -> None:
    needs_sandbox()
    script = (
        "python3 - <<'E'\n"
        "import socket, os\n"
        "def ask(what):\n"
        "    s = socket.create_connection(('127.0.0.1', 3128), 5); s.sendall(what); return s.recv(4000)\n"
        "print(ask(b'CONNECT 169.254.169.254:80 HTTP/1.1\\r\\n\\r\\n'))\n"
        "print(ask(b'CONNECT localhost:80 HTTP/1.1\\r\\n\\r\\n'))\n"
        "for where in (('1.1.1.1', 443), ('127.0.0.1', 22)):\n"
        "    try: socket.create_connection(where, 2); print('ESCAPED')\n"
        "    except OSError as e: print(type(e).__name__)\n"
        "print(os.environ['https_proxy'])\nE"
    )
    end, output = ran(tmp_path, script, replace(SMALL, hosts=("localhost", "example.org")))
    assert end.status == 0, output
    assert "ESCAPED" not in output
    assert "169.254.169.254:80 may not be called" in output
    assert "localhost may not be called" in output
    assert "http://127.0.0.1:3128" in output


def test_a_sandbox_that_is_gone_when_it_should_listen_there_is_said_and_not_waited_for() -> None:
    """In a process of its own: it has to have one thread, and would wait forever."""
    tries = "from agent_core.tools.sandbox.within import listening_within\nlistening_within(2**30, 1)"
    tried = subprocess.run([sys.executable, "-c", tries], check=False, timeout=20, capture_output=True, text=True)
    assert "NoWayIn: the network of the sandbox could not be entered" in tried.stderr
