"""The way from a sandbox to the hosts that the operator allows: a proxy for HTTP and for HTTPS by ``CONNECT``, in the process that watches over the command.

Laws (tests/shell/test_proxy.py): nothing is called that no rule names; a name is looked up here, once, and what is called is the address that was judged;
no address inside a network is called, whatever name it has; what is refused is answered in words.

Known to be weak: behind ``CONNECT`` nobody sees what is said, so a host that serves several names serves them all. Whoever may be called may be told
things: allow only those to whom everything may be told that the conversation holds.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from agent_core.tools.sandbox.hosts import may_call, read_host
from agent_core.tools.web.addresses import parsed, refusal

HEAD_BYTES = 16_384
HEAD_SECONDS = 15.0
LEAVE_SECONDS = 1.0
"""Who is refused may say so much longer what it was about to say."""
CONNECT_SECONDS = 15.0
QUIET_SECONDS = 120.0
AT_ONCE = 64
CHUNK = 1 << 16

Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a name."""


class ProxyRefusal(Exception):
    """A request is not carried out; the words are for whoever asked."""


async def looked_up(host: str, port: int) -> Sequence[str]:
    """What the machine's resolver says. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


class Proxy:
    """Serves one sandbox."""

    def __init__(
        self,
        rules: Sequence[str],
        lookup: Lookup = looked_up,
        judge: Callable[[str], str | None] | None = None,
    ) -> None:
        self._rules = rules
        self._lookup = lookup
        self._judge = judge or inside
        self._open = 0

    async def serve(self, listening: socket.socket) -> None:
        """Until it is cancelled."""
        server = await asyncio.start_server(self._take, sock=listening, limit=HEAD_BYTES)
        async with server:
            await server.serve_forever()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > AT_ONCE:
                raise ProxyRefusal("Too many connections are open.")  # noqa: TRY301 - answered like the other refusals
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._carry_out(head, reader, writer)
        except ProxyRefusal as error:
            with suppress(OSError, TimeoutError):
                writer.write(_answer(403, str(error)))
                writer.write_eof()
                async with asyncio.timeout(LEAVE_SECONDS):
                    # Who closes over something unread resets the connection, and the answer is lost
                    await reader.read(HEAD_BYTES)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            self._open -= 1
            writer.close()

    async def _carry_out(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, _, rest = head.partition(b"\r\n")
        method, target, version = first.decode("ascii", "strict").split(" ")
        if method == "CONNECT":
            host, port = read_host(target, 443)
            to_reader, to_writer = await self._connected(host, port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            parts = urlsplit(target)
            if parts.scheme != "http" or not parts.hostname:
                raise ProxyRefusal("Ask for a whole address that begins with http://.")
            host, port = parts.hostname, parts.port or 80
            to_reader, to_writer = await self._connected(host, port)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            to_writer.write(f"{method} {path} {version}\r\n".encode("ascii") + _headers(rest, parts.netloc))
        try:
            await asyncio.gather(_pumped(reader, to_writer), _pumped(to_reader, writer))
        finally:
            to_writer.close()

    async def _connected(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not may_call(host, port, self._rules):
            raise ProxyRefusal(f"{host}:{port} may not be called from here. These may: {', '.join(self._rules)}.")
        try:
            addresses = await self._lookup(host, port)
        except (OSError, UnicodeError):
            raise ProxyRefusal(f"{host} could not be found.") from None
        why = next((words for one in addresses if (words := self._judge(one)) is not None), None)
        if why is not None or not addresses:
            raise ProxyRefusal(f"{host} may not be called: {why or 'it has no address'}.")
        for address in addresses:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_SECONDS):
                    return await asyncio.open_connection(address, port)
        raise ProxyRefusal(f"{host}:{port} could not be reached.")


def inside(address: str) -> str | None:
    """Why an address may not be called."""
    found = parsed(address)
    return refusal(found) if found is not None else "it is no address"


def _headers(rest: bytes, host: str) -> bytes:
    """Of a request that is handed on: to the host that was judged, and one for each connection."""
    lines = [line for line in rest.split(b"\r\n") if line and line.split(b":")[0].strip().lower() not in _OURS]
    return b"\r\n".join([f"Host: {host}".encode("ascii"), b"Connection: close", *lines]) + b"\r\n\r\n"


_OURS = (b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"upgrade")


def _answer(status: int, words: str) -> bytes:
    body = f"[outspoken] {words}\n".encode()
    head = f"HTTP/1.1 {status} Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def _pumped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(QUIET_SECONDS):
                chunk = await reader.read(CHUNK)
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError, RuntimeError):
        if writer.can_write_eof():
            writer.write_eof()


def serve_in_thread(listening: socket.socket, rules: Sequence[str]) -> None:
    """Beside the watch; it ends with the process."""
    listening.setblocking(False)
    threading.Thread(target=lambda: asyncio.run(Proxy(rules).serve(listening)), daemon=True, name="proxy").start()
