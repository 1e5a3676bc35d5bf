"""A server that is a program of this machine: a message a line on its standard input and output.

The `mcp` package has such a transport as well. It takes a line of any length, hides how the program ended, and leaves it running when we are killed;
so this one is ours, and everything above it is the package's.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from time import monotonic

import anyio
import structlog
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types.jsonrpc import JSONRPCMessage, JSONRPCResponse, jsonrpc_message_adapter

from agent_core.text.wellformed import well_formed
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import FLOODS, McpLink, Pace
from agent_core.tools.mcp.terms import ServerTerms

log = structlog.get_logger("mcp")

CLOSE_SECONDS = 1.0
"""A program may take so long to end when its input is closed, and as long again when it is asked to."""
STDERR_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
LINES_A_MINUTE = 120
"""Lines of its standard error that are logged; more are counted."""
AT_ONCE = 100
"""So many messages are handed on before others have the loop."""
_ANSWER = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*([0-9]{1,15})\s*,\s*"(?:result|error)"\s*:')
"""How an answer begins as programs write it; what stands deeper in a line is nobody's answer."""
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def over_stdio(
    terms: ServerTerms, link: McpLink, lifeline: Lifeline
) -> AsyncGenerator[tuple[Incoming, Outgoing]]:
    """The program runs for the block, and nothing of it after that. Raises `OSError` if it cannot be begun."""
    await lifeline.ready()
    process = await asyncio.create_subprocess_exec(
        *terms.command,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **terms.environment}, cwd=terms.folder, start_new_session=True,
    )  # fmt: skip
    lifeline.hold(process.pid)
    link.pid = process.pid
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_read, process, to_session, link, terms)
            group.start_soon(_write, process, from_session, link)
            group.start_soon(_hear, process, link, terms)
            try:
                yield incoming, outgoing
            finally:
                link.closing()
                with anyio.CancelScope(shield=True):
                    await _end(process)
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _drained(process)
        lifeline.let_go(process.pid)
        for stream in (to_session, incoming, outgoing, from_session):
            stream.close()


class _Lines:
    """What a program says, line by line; the link is told how much of one is there that is not whole."""

    def __init__(self, stream: asyncio.StreamReader, link: McpLink, most: int) -> None:
        self._stream, self._link, self._most = stream, link, most
        self._held = bytearray()
        self._looked = 0
        """So much of it holds no end of a line."""

    async def next(self) -> bytes:
        """The next line. Raises `EOFError` where there is no more, `OverflowError` for one that is too long, and `OSError`."""
        while (end := self._held.find(b"\n", self._looked)) < 0:
            self._looked = self._link.part = len(self._held)
            if self._looked > self._most:
                raise OverflowError
            piece = await self._stream.read(READ_BYTES)
            if not piece:
                raise EOFError
            self._held += piece
        if end > self._most:
            raise OverflowError
        line = bytes(self._held[: end + 1])
        del self._held[: end + 1]
        self._looked = self._link.part = 0
        return line


async def _read(
    process: asyncio.subprocess.Process,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    link: McpLink,
    terms: ServerTerms,
) -> None:
    """Hand on what the program says until it says no more."""
    assert process.stdout is not None
    pace, count = Pace(monotonic()), 0
    lines = _Lines(process.stdout, link, terms.message_bytes)
    async with to_session:
        while not link.over.is_set():
            try:
                line = await lines.next()
            except EOFError:
                link.broke(await _how_it_ended(process))
                return
            except OverflowError:
                link.broke(f"it sent a message of more than {terms.message_bytes} bytes")
                return
            except OSError as error:
                link.broke(f"its output cannot be read: {error.strerror}")
                return
            if pace.took(monotonic()):
                link.broke(FLOODS)
                return
            message = _message(line)
            if message is None:
                _unread(link, terms, line)
                continue
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await to_session.send(SessionMessage(message))
            count += 1
            if count % AT_ONCE == 0:
                await asyncio.sleep(0)


def _message(line: bytes) -> JSONRPCMessage | None:
    """The message in a line, also where its text holds half a character; None if there is none.

    An answer that cannot be read is one without anything in it: whoever waits for it learns that now, not when its time is over.
    """
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        said: object = json.loads(line.decode("utf-8", "replace"))
        return jsonrpc_message_adapter.validate_json(well_formed(json.dumps(said, ensure_ascii=False)), by_name=False)
    except (ValueError, RecursionError):
        answered = _ANSWER.match(line)
    if answered is None:
        return None
    return JSONRPCResponse(jsonrpc="2.0", id=int(answered[1]), result={})


def _unread(link: McpLink, terms: ServerTerms, line: bytes) -> None:
    """A line that is no message: programs print such things by mistake. The first is told, because it explains what follows."""
    if not line.strip():
        return
    link.unread += 1
    if link.unread == 1:
        log.warning("mcp.no_message", server=terms.name, bytes=len(line))


async def _write(
    process: asyncio.subprocess.Process, from_session: MemoryObjectReceiveStream[SessionMessage], link: McpLink
) -> None:
    assert process.stdin is not None
    async with from_session:
        async for one in from_session:
            data = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            try:
                process.stdin.write(data)
                await process.stdin.drain()
            except (OSError, RuntimeError):
                link.broke(await _how_it_ended(process))
                return


async def _hear(process: asyncio.subprocess.Process, link: McpLink, terms: ServerTerms) -> None:
    """What the program writes to its standard error, into the log, within bounds."""
    assert process.stderr is not None
    began, lines, held = monotonic(), 0, 0
    while data := await process.stderr.read(STDERR_BYTES):
        if monotonic() - began > 60:
            began, lines = monotonic(), 0
        for line in data.splitlines():
            text = link.said(line)
            if not text:
                continue
            lines += 1
            if lines <= LINES_A_MINUTE:
                log.info("mcp.stderr", server=terms.name, line=text, held_back=held)
                held = 0
            else:
                held += 1
        await asyncio.sleep(0)


async def _how_it_ended(process: asyncio.subprocess.Process) -> str:
    """In words, as far as it is known."""
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await process.wait()
    status = process.returncode
    if status is None:
        return "it closed its output"
    if status < 0:
        with suppress(ValueError):
            return f"it was killed by {signal.Signals(-status).name}"
    return f"it ended with status {status}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program and all that it began: ask, tell, force."""
    if process.stdin is not None:
        process.stdin.close()
    if process.stdout is not None and process.returncode is None:
        await _over(process)
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        except PermissionError:
            pass
        if number is signal.SIGKILL or await _gone(process.pid):
            break
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await process.wait()


async def _drained(process: asyncio.subprocess.Process) -> None:
    """Let go of its pipes: they count as closed only when what it had still said is read away, unless somebody else holds them."""
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(CLOSE_SECONDS):
            for pipe in (process.stdout, process.stderr):
                while pipe is not None and await pipe.read(STDERR_BYTES):
                    pass
    transport: object = getattr(process, "_transport", None)  # nothing public closes what others still hold
    close = getattr(transport, "close", None)
    if callable(close):
        close()


async def _over(process: asyncio.subprocess.Process) -> None:
    """Wait a while for the program itself. `wait` would also wait for its pipes, which may be held by others."""
    end = monotonic() + CLOSE_SECONDS
    while process.returncode is None and monotonic() < end:  # noqa: ASYNC110 - nothing else says that it ended
        await asyncio.sleep(0.01)


async def _gone(group: int) -> bool:
    end = monotonic() + CLOSE_SECONDS
    while monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        await asyncio.sleep(0.01)
    return False
