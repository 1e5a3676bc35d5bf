"""One attempt to hand a message to its receiver. It decides nothing; what came of it is an `Attempt`.

Every address is judged at the moment a socket is made for it, as in `agent_core.tools.builtin.fetch`: whoever may write the configuration need not
be whoever owns the name in it. No redirects, no proxy, no cookies; of the answer only its head counts.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from agent_core.records import dataclass
from agent_core.tools.web.addresses import Address, parsed, refusal
from agent_core.tools.web.names import resolver
from agent_core.workers.pool import Workers
from gateway.webhooks.deciding import Attempt

READ_BYTES = 4_096
"""So much of an answer is read, that the connection can be used again."""
CONNECT_SECONDS = 5.0
CONNECTIONS = 16


class Inside(OSError):
    """An address inside a network, which may not be called."""


def anybody(_: Address) -> str | None:
    """Where addresses inside the network may be called."""
    return None


@dataclass(frozen=True, slots=True)
class HookPost:
    """A message on its way."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    private: bool = False
    """Addresses inside the network may be called."""


class Poster:
    """Made by `posting`."""

    def __init__(self, outside: aiohttp.ClientSession, inside: aiohttp.ClientSession) -> None:
        self._outside = outside
        self._inside = inside

    async def post(self, one: HookPost) -> Attempt:
        """Try it."""
        return await self._tried("POST", one)

    async def reach(self, url: str, seconds: float, *, private: bool) -> Attempt:
        """Ask whoever is there for nothing: any status says that messages can be sent there."""
        return await self._tried("HEAD", HookPost(url, {}, b"", seconds, private))

    async def _tried(self, method: str, one: HookPost) -> Attempt:
        http = self._inside if one.private else self._outside
        found: Attempt | None = None
        try:
            async with asyncio.timeout(one.seconds):
                async with http.request(
                    method, one.url, data=one.body or None, headers=one.headers, allow_redirects=False
                ) as answer:
                    found = Attempt(answer.status, retry_after=answer.headers.get("Retry-After", ""))
                    await _drained(answer)
                    return found
        except (
            aiohttp.ClientError,
            OSError,
            UnicodeError,
            ValueError,
        ) as error:  # a time that is over is an OSError, too
            if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ClientError):
                # If of the rest of an answer: what its head said counts.
                return found or Attempt(words=f"it did not answer within {one.seconds:g} s")
            return Attempt(words=_words(error))


async def _drained(answer: aiohttp.ClientResponse) -> None:
    """Read a short answer to its end. What is long, slow, or breaks off, says nothing against what its head said."""
    try:
        await answer.content.readexactly(READ_BYTES)
    except asyncio.IncompleteReadError:
        return
    except (aiohttp.ClientError, OSError, ValueError):
        pass
    answer.close()


@asynccontextmanager
async def posting(workers: Workers) -> AsyncGenerator[Poster]:
    """For the block."""
    async with _session(workers, refusal) as outside, _session(workers, anybody) as inside:
        yield Poster(outside, inside)


def _session(workers: Workers, refuse: Callable[[Address], str | None]) -> aiohttp.ClientSession:
    def dialled(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, target = info
        address = parsed(str(target[0]))
        why = refuse(address) if address is not None else "the address could not be judged"
        if why is not None:
            raise Inside(f"not called: {why}. Set private = true for this receiver if it is meant")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made

    connector = aiohttp.TCPConnector(
        socket_factory=dialled, use_dns_cache=False, limit=CONNECTIONS, resolver=resolver(workers, "webhooks")
    )
    return aiohttp.ClientSession(
        connector=connector,
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        headers={"User-Agent": "outspoken", "Content-Type": "application/json", "Accept-Encoding": "identity"},
        max_line_size=8_190,
    )


def _words(error: BaseException) -> str:
    """Why there was no answer. Never the address with what may stand in it, which can be a secret."""
    inside = next((one for one in _causes(error) if isinstance(one, Inside)), None)
    match error:
        case _ if inside is not None:
            return str(inside)
        case aiohttp.ClientConnectorDNSError():
            return "its name cannot be found"
        case aiohttp.ClientSSLError():
            return "no secure connection could be made; its certificate may not be valid"
        case aiohttp.ClientConnectorError():
            return f"no connection could be made ({error.os_error.strerror or 'no reason was given'})"
        case aiohttp.ServerTimeoutError():
            return f"no connection could be made within {CONNECT_SECONDS:g} s"
        case aiohttp.ClientResponseError():
            return "what it answered is no HTTP"
        case _:
            return "the connection broke off before it answered"


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(found) < 20:
        current = todo.pop()
        if current is None or current in found:
            continue
        found.append(current)
        inner = getattr(current, "os_error", None)
        todo += [current.__cause__, current.__context__, inner if isinstance(inner, BaseException) else None]
    return found
