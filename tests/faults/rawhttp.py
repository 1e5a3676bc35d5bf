"""A raw HTTP server for what goes wrong there: ``/mcp/FAULT`` is a server of tools, ``/page/FAULT`` a page, ``/search?q=FAULT`` an engine."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from tests.faults.words import BIDI, MARKUP, PERSONATION, SECRET

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
Writer: TypeAlias = asyncio.StreamWriter


def answer(
    body: bytes, kind: str = "application/json", status: int = 200, *headers: str, length: int | None = None
) -> bytes:
    """A whole response."""
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {size}", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


STREAM = b"HTTP/1.1 200 X\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n"


def piece(data: bytes) -> bytes:
    """A piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def words(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@dataclass
class RawHttp:
    """The server."""

    url: str = ""
    effects: list[str] = field(default_factory=list[str])
    """The faults whose tool with an effect was called, as often as it was."""
    changed: set[str] = field(default_factory=set[str])
    relisted: set[str] = field(default_factory=set[str])
    """Those whose new list was asked for."""
    closed: set[str] = field(default_factory=set[str])
    """Faults whose server answers nothing any more."""
    talks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def talk(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """One connection."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.talks.add(task)
        try:
            with contextlib.suppress(asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
                await task
        finally:
            self.talks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            request, *lines = head.decode("latin-1").split("\r\n")
            method, target, _ = request.split(" ", 2)
            length = next((int(one.partition(":")[2]) for one in lines if one.lower().startswith("content-length")), 0)
            body = await reader.readexactly(length)
            parts = urlsplit(target)
            match parts.path.strip("/").split("/"):
                case ["mcp", fault]:
                    await self._mcp(fault, method, body, writer)
                case ["page", fault]:
                    await self._page(fault, writer)
                case ["search"]:
                    await self._search(parse_qs(parts.query)["q"][0].split()[0], writer)
                case _:
                    writer.write(answer(b"no", status=404))
            await writer.drain()

    # ------------------------------------------------------------------ a server of tools

    async def _mcp(self, fault: str, method: str, body: bytes, writer: Writer) -> None:
        if fault == "dies_at_start" or fault in self.closed:
            _reset(writer)
            return
        if method != "POST":
            writer.write(answer(b"", status=405))
            return
        message = json.loads(body)
        number = message.get("id")
        if number is None:
            writer.write(answer(b"", status=202))
            return

        def said(result: Any) -> bytes:
            return answer(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode())

        match message["method"]:
            case "initialize":
                info = {"name": "raw", "version": "1"}
                can = {"tools": {"listChanged": True}}
                writer.write(said({"protocolVersion": "2025-06-18", "capabilities": can, "serverInfo": info}))
            case "tools/list":
                writer.write(said({"tools": self._tools(fault)}))
                if fault in self.changed:
                    self.relisted.add(fault)
            case "tools/call":
                name = message["params"]["name"]
                if name in ("act", "put"):
                    self.effects.append(fault)
                await self._call(fault, number, message["params"].get("_meta", {}).get("progressToken"), writer)
            case "ping":
                writer.write(said({}))
            case _:
                error = {"code": -32601, "message": "Method not found"}
                writer.write(answer(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()))

    def _tools(self, fault: str) -> list[dict[str, Any]]:
        look = {"name": "look", "description": "reads", "inputSchema": EMPTY, "annotations": {"readOnlyHint": True}}
        put = {"name": "put", "description": "puts", "inputSchema": EMPTY, "annotations": {"idempotentHint": True}}
        if fault in self.changed and fault == "withdrawn":
            return [{"name": "act", "description": "acts", "inputSchema": EMPTY}, put]
        if fault in self.changed and fault == "changes":
            del look["annotations"]
        return [{"name": "act", "description": "acts", "inputSchema": EMPTY}, look, put]

    async def _call(self, fault: str, number: Any, token: Any, writer: Writer) -> None:
        """The answer to a call, as the fault wants it."""
        good = {"jsonrpc": "2.0", "id": number, "result": words("done")}

        def result(inner: Any) -> bytes:
            return answer(json.dumps({"jsonrpc": "2.0", "id": number, "result": inner}).encode())

        def note(method: str, params: Mapping[str, Any]) -> bytes:
            return b"data: " + json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n\n"

        events = STREAM % b"text/event-stream"
        match fault:
            case "hangs":
                await asyncio.sleep(600)
            case "no_cancel":
                writer.write(STREAM % b"application/json")
                while True:
                    writer.write(piece(b" "))
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "dies" | "lies":
                _reset(writer)
            case "killed":
                writer.write(events + piece(b": here I am\n\n"))
                await writer.drain()
                await asyncio.sleep(0.1)
                _reset(writer)
            case "floods":
                writer.write(events)
                while True:
                    writer.write(piece(note("notifications/message", {"level": "info", "data": "x"}) * 200))
                    await writer.drain()
            case "endless":
                writer.write(STREAM % b"application/json")
                while True:
                    writer.write(piece(b"x" * 100_000))
                    await writer.drain()
            case "changes" | "withdrawn":
                self.changed.add(fault)
                writer.write(events + piece(note("notifications/tools/list_changed", {})))
                await writer.drain()
                for _ in range(15):  # what is called next is asked for only when somebody has heard of it
                    await asyncio.sleep(0.1)
                    if fault in self.relisted:
                        break
                writer.write(piece(b"data: " + json.dumps(good).encode() + b"\n\n") + piece(b""))
            case "twice":
                again = {**good, "result": words("done again")}
                both = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (good, again))
                writer.write(events + piece(both) + piece(b""))
            case "late":
                await asyncio.sleep(4)
                writer.write(result(words("done")))
            case "another":
                writer.write(answer(json.dumps({**good, "id": 999_999}).encode()))
            case "wrong_types":
                writer.write(result({"content": "words"}))
            case "binary":
                writer.write(answer(b"\x00\x01\x02\xff" * 50, "application/octet-stream"))
            case "not_utf8":
                writer.write(answer(json.dumps(good).encode().replace(b"done", b"caf\xe9")))
            case "half_character":
                writer.write(result({"content": [], "structuredContent": {"a": "\ud800"}}))
            case "huge":
                writer.write(result(words("word " * 200_000)))
            case "empty":
                writer.write(answer(b""))
            case "no_words":
                error = {"code": -32603, "message": ""}
                writer.write(answer(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()))
            case "odd_raise":
                writer.write(answer(b"<h1>It works!</h1>", "text/html", 500))
            case "progress":
                writer.write(events)
                while True:
                    told = {"progressToken": token, "progress": 1, "message": "nearly there"}
                    writer.write(piece(note("notifications/progress", told)))
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "nested":
                deep = b"[" * 100_000 + b"]" * 100_000
                writer.write(answer(json.dumps(good).encode().replace(b'"done"', b'"done","a":' + deep)))
            case "numbers":
                writer.write(result({"content": [], "structuredContent": {"a": 10**40}}))
            case "secret":
                writer.write(result(words(f"key: {SECRET}")))
            case "markup":
                writer.write(result(words(MARKUP)))
            case "controls":
                writer.write(result(words(BIDI)))
            case "impersonates":
                writer.write(result(words(PERSONATION)))
            case _:
                writer.write(result(words("done")))

    # ------------------------------------------------------------------ pages

    async def _page(self, fault: str, writer: Writer) -> None:
        html, plain = "text/html; charset=utf-8", "text/plain; charset=utf-8"
        match fault:
            case "hangs" | "no_cancel":
                await asyncio.sleep(600)
            case "dies_at_start":
                _reset(writer)
            case "dies":
                writer.write(answer(b"<p>half", html, length=100_000))
                await writer.drain()
                _reset(writer)
            case "killed":
                writer.write(STREAM % b"text/html" + piece(b"<p>half"))
                await writer.drain()
                _reset(writer)
            case "floods":
                writer.write(STREAM % b"text/html")
                while True:
                    writer.write(piece(b"<p>again</p>" * 5_000))
                    await writer.drain()
            case "endless":
                writer.write(b"HTTP/1.1 200 OK\r\nX: ")
                while True:
                    writer.write(b"x" * 50_000)
                    await writer.drain()
            case "twice":
                writer.write(answer(b"<p>first</p>", html) + answer(b"<p>second</p>", html))
            case "late" | "progress":
                writer.write(STREAM % b"text/html")
                while True:
                    writer.write(piece(b" "))
                    await writer.drain()
                    await asyncio.sleep(0.1)
            case "another":
                writer.write(answer(b"", status=302, kind=html)[:-2] + b"Location: /page/another\r\n\r\n")
            case "wrong_types":
                writer.write(answer(b"\x89PNG\r\n\x1a\n" + b"\0" * 100, html))
            case "binary":
                writer.write(answer(b"\x00\x01\x02\xff" * 50, "application/octet-stream"))
            case "not_utf8":
                writer.write(answer(b"<p>caf\xe9 \xff\xfe</p>", html))
            case "half_character":
                writer.write(answer(b"<p>a&#xD800;b\xed\xa0\x80</p>", html))
            case "huge":
                writer.write(answer(b"<p>word</p>" * 300_000, html))
            case "empty":
                writer.write(answer(b"", html))
            case "no_words":
                writer.write(answer(b"", html, 500))
            case "odd_raise":
                writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
                await writer.drain()
                _reset(writer)
            case "blocks":
                writer.write(answer(b"<div>" * 100_000 + b"x", html))
            case "nested":
                writer.write(answer(b"<b><i>" * 60_000, html))
            case "numbers":
                writer.write(
                    answer(b"<ol start=" + b"9" * 50_000 + b"><li value=-" + b"9" * 5_000 + b">one</ol>", html)
                )
            case "memory":
                bomb = gzip.compress(b"\0" * 300_000_000, 9)
                writer.write(answer(bomb, plain, 200, "Content-Encoding: gzip"))
            case "secret":
                writer.write(answer(f"<p>key: {SECRET}</p>".encode(), html))
            case "markup":
                writer.write(answer(MARKUP.encode(), plain))
            case "controls":
                writer.write(answer(BIDI.encode(), plain))
            case "impersonates":
                writer.write(answer(PERSONATION.encode(), plain))
            case _:
                writer.write(answer(b"<p>A page.</p>", html))

    # ------------------------------------------------------------------ an engine

    async def _search(self, fault: str, writer: Writer) -> None:
        def found(title: str) -> bytes:
            one = {"title": title, "url": "https://example.org/", "content": title}
            return answer(json.dumps({"results": [one]}).encode())

        match fault:
            case "wrong_types":
                writer.write(answer(b'{"results": {"a": 1}}'))
            case "huge":
                writer.write(found("x" * 20_000_000))
            case "empty":
                writer.write(answer(b""))
            case "no_words":
                writer.write(answer(b"", status=500))
            case "nested":
                writer.write(answer(b'{"results": ' + b"[" * 100_000))
            case "dies":
                writer.write(answer(b'{"results"', length=10_000))
                await writer.drain()
                _reset(writer)
            case _:
                writer.write(found("A page"))


def _reset(writer: Writer) -> None:
    """Break the connection."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def raw_http() -> AsyncGenerator[RawHttp]:
    """The server on a free port."""
    made = RawHttp()
    server = await asyncio.start_server(made.talk, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for task in tuple(made.talks):
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
