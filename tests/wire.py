"""The network between a gateway and its database, as a test wants it: cut, silent, or as long as a cable to another continent.

A proxy on a thread of its own, so that it goes on whatever the test's loop is at.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import make_url


class Wire:
    """`with wire(port) as w`: whoever connects to `w.port` talks to `port`."""

    def __init__(self, port: int, delay_seconds: float = 0.0, unix: str = "") -> None:
        self.port = 0
        self.there = port
        self.unix = unix
        self.delay = delay_seconds
        """One way."""
        self.connections: dict[int, tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = {}
        """By the port from which the server sees it."""
        self.silent = False
        """Nothing goes through, in either direction, and nobody is told so."""
        self.mute = False
        """What the server says does not come through; what is said to it does."""
        self.deaf: set[int] = set()
        """Connections of which that is true alone."""
        self.endless = False
        """What is said goes through, but not that one side has closed."""
        self.refusing = False
        self.questions: dict[int, int] = {}
        """By the port from which the server sees it: how often something was sent there after something had come back. Each is a way there and back."""
        self._answered: dict[int, bool] = {}
        self._loop = asyncio.new_event_loop()

    def cut(self) -> None:
        """End all connections that there are."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for pair in list(self.connections.values()):
            for one in pair:
                one.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError):
            while self.silent:
                await asyncio.sleep(0.02)
        if self.silent or self.refusing:
            writer.transport.abort()
            return
        try:
            if self.unix:
                far_reader, far_writer = await asyncio.open_unix_connection(self.unix)
            else:
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.there)
        except OSError:
            writer.transport.abort()
            return
        port = int((writer if self.unix else far_writer).get_extra_info("peername" if self.unix else "sockname")[1])
        self.connections[port] = (writer, far_writer)
        self.questions[port], self._answered[port] = 0, True
        try:
            await asyncio.gather(
                self._pass(port, reader, far_writer, True), self._pass(port, far_reader, writer, False)
            )
        except asyncio.CancelledError:  # the test is over
            pass
        finally:
            del self.connections[port]
            for one in (writer, far_writer):
                one.transport.abort()

    async def _pass(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asking: bool) -> None:
        """What comes in, goes out `delay` later, without holding up what comes behind it."""
        loop = asyncio.get_running_loop()
        on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def send() -> None:
            while True:
                due, some = await on_the_way.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                while self.silent or port in self.deaf or (self.mute and not asking):
                    await asyncio.sleep(0.02)
                if not some:
                    while self.endless:
                        await asyncio.sleep(0.02)
                    writer.close()
                    return
                writer.write(some)
                await writer.drain()

        sending = asyncio.ensure_future(send())
        try:
            some = b"-"
            while some:
                some = await reader.read(65_536)
                if asking and some and self._answered[port]:
                    self.questions[port] += 1
                if some:
                    self._answered[port] = not asking
                on_the_way.put_nowait((loop.time() + self.delay, some))
            await sending
        except OSError:  # one side ended it at once: the other one is told, as soon as anything comes through
            while self.silent or self.endless or (self.mute and not asking):
                await asyncio.sleep(0.02)
            writer.transport.abort()
        finally:
            sending.cancel()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)

        async def begin() -> asyncio.Server:
            return await asyncio.start_server(self._serve, "127.0.0.1", 0)

        server = self._loop.run_until_complete(begin())
        self.port = int(server.sockets[0].getsockname()[1])
        ready.set()
        self._loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(_ended(left))
        self._loop.close()


async def _ended(tasks: set[asyncio.Task[Any]]) -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def wire(port: int, delay_seconds: float = 0.0, unix: str = "") -> Generator[Wire]:
    """A proxy before a port of this machine, or a socket of it."""
    made, ready = Wire(port, delay_seconds, unix), threading.Event()
    thread = threading.Thread(target=made._run, args=(ready,), name="wire", daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield made
    finally:
        made._loop.call_soon_threadsafe(made._loop.stop)
        thread.join(10)


@contextmanager
def cable(postgres: str, seconds: float = 0.0) -> Generator[tuple[str, Wire]]:
    """The address of a database over a wire."""
    url = make_url(postgres)
    where = dict(url.query).get("host", url.host)
    port = url.port or 5432
    unix = f"{where}/.s.PGSQL.{port}" if isinstance(where, str) and where.startswith("/") else ""
    with wire(port, seconds, unix) as one:
        query = {name: value for name, value in url.query.items() if name not in ("host", "port")}
        there = url.set(host="127.0.0.1", port=one.port, query=query)
        yield there.render_as_string(hide_password=False), one
