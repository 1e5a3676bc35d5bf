"""`fetch_url`: reads a public page or file over http or https.

Every address is judged at the moment a socket is made for it, so neither a name that resolves to an inner address, nor a literal in
an odd spelling, nor a redirect gets past. Redirects are followed by hand, each checked anew. No proxy (it would hide the
address that is dialled), no cookies, no credentials. What came is unpacked, decoded and read by a worker (`pages`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agent_core.jsonvalue import Json
from agent_core.patience import came_words
from agent_core.records import dataclass
from agent_core.tools.base import EffectClass, Reach, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.offer import Offer
from agent_core.tools.outside import outside
from agent_core.tools.web.addresses import Address, is_number, parsed, refusal
from agent_core.tools.web.names import resolver
from agent_core.tools.web.pages import MAX_BYTES
from agent_core.workers.pool import Job, Workers

if TYPE_CHECKING:
    import aiohttp

MAX_REDIRECTS = 5
SECONDS = 20.0
_NOT_HTTP_PORTS = frozenset(
    {
        21,
        22,
        23,
        25,
        53,
        110,
        111,
        135,
        139,
        143,
        161,
        389,
        445,
        465,
        514,
        587,
        636,
        993,
        995,
        2049,
        3306,
        5432,
        6379,
        11211,
        27017,
    }
)
_NO_TEXT = ("image/", "audio/", "video/", "font/")
_LESS = "Read another page, or a smaller part of this one if its site has one."


class NotAllowed(OSError):
    """The address may not be called; the words are for the model.

    For the connector it is an address like any other that cannot be dialled: it goes on to the next of the name's.
    """


_FETCH_URL = ToolSpec(
    "fetch_url",
    "Read a public web page or text file (http or https, up to 1 MB). Pages come as plain text with their links.",
    {
        "type": "object",
        "properties": {"url": {"type": "string", "minLength": 8, "maxLength": 2000}},
        "required": ["url"],
        "additionalProperties": False,
    },
    EffectClass.PURE,
    deadline_seconds=SECONDS + 5,
    reach=Reach.ADDRESS,
    foreign=True,
    links=True,
)


JOB = Job("agent_core.tools.web.pages:work", 5.0)


@dataclass(slots=True)
class _Page:
    """What came, as it came."""

    url: str
    status: int
    kind: str
    charset: str
    packed: str
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class FetchUrl:
    """The tool. `refuse` says why an address may not be called, or None."""

    workers: Workers
    refuse: Callable[[Address], str | None] = refusal
    spec: ToolSpec = _FETCH_URL

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        import aiohttp

        url, came = str(arguments["url"]), bytearray()
        try:
            async with asyncio.timeout(SECONDS):
                page = await self._fetch(url, context, came)
        except NotAllowed as error:
            return ToolOutcome(ToolStatus.FAILED, str(error))
        except TimeoutError:
            return ToolOutcome(
                ToolStatus.FAILED, f"The page did not come within {SECONDS:g} s: {came_words(len(came))}."
            )
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            cause = next((e for e in _causes(error) if isinstance(e, NotAllowed)), None)
            return ToolOutcome(ToolStatus.FAILED, _words(error) if cause is None else str(cause))
        return await self._read(page, context)

    async def _fetch(self, url: str, context: ToolContext, came: bytearray) -> _Page:
        """The page; what of it is there at any time is in `came`."""
        import aiohttp

        connector = aiohttp.TCPConnector(
            socket_factory=self._socket,
            use_dns_cache=False,
            force_close=True,
            resolver=resolver(self.workers, context.workspace),
        )
        async with aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,  # the library unpacks on the loop
            headers={"User-Agent": "outspoken", "Accept-Encoding": "gzip, deflate"},
        ) as http:
            for _ in range(MAX_REDIRECTS + 1):
                self._check_url(url)
                context.heartbeat(f"reading {urlsplit(url).hostname}")
                async with http.get(url, allow_redirects=False) as response:
                    target = response.headers.get("Location")
                    if response.status in (301, 302, 303, 307, 308) and target:
                        url = urljoin(url, target)
                        continue
                    return await _taken(url, response, came)
        raise NotAllowed(f"The page redirects more than {MAX_REDIRECTS} times.")

    async def _read(self, page: _Page, context: ToolContext) -> ToolOutcome:
        """The page as text; a worker does it, because all of it is somebody else's choice."""
        head = f"HTTP {page.status}, {page.kind}, {page.url}"
        if page.kind.startswith(_NO_TEXT):
            return ToolOutcome(ToolStatus.FAILED, f"{head}\nThis is no text, so it is not shown.")
        request: dict[str, Json] = {
            "packed": page.packed,
            "kind": page.kind,
            "charset": page.charset,
            "url": page.url,
        }
        read = await outside(self.workers, JOB, request, page.data, owner=context.workspace, less=_LESS)
        if read.status is not ToolStatus.OK:
            return ToolOutcome(read.status, f"{head}\n{read.text}")
        status = ToolStatus.OK if page.status < 400 else ToolStatus.FAILED
        facts: dict[str, Json] = {"status": page.status, **read.facts}
        return ToolOutcome(status, f"{head}\n\n{read.text}", facts=facts)

    def _check_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise NotAllowed("Only http and https addresses can be read.")
        if parts.username is not None or parts.password is not None:
            raise NotAllowed("An address with a user name or a password in it is not read.")
        if not parts.hostname:
            raise NotAllowed("The address names no host.")
        _judge_port(parts.port)
        literal = parsed(parts.hostname)
        if literal is not None:
            self._judge(literal)
        elif is_number(parts.hostname):
            raise NotAllowed(
                f"Not read: {parts.hostname} is a number and no name. Only names and public addresses can be called."
            )

    def _judge(self, address: Address) -> None:
        why = self.refuse(address)
        if why is not None:
            raise NotAllowed(f"Not read: {why}. Only public addresses can be called.")

    def _socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Called by the connector for every address that it is about to dial."""
        family, kind, protocol, _, target = info
        address = parsed(str(target[0]))
        if address is None:
            raise NotAllowed("The address could not be judged.")
        self._judge(address)
        _judge_port(int(target[1]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _judge_port(port: int | None) -> None:
    if port in _NOT_HTTP_PORTS:
        raise NotAllowed(f"Port {port} is not used for web pages.")


def _words(error: Exception) -> str:
    """Why a page could not be read, for the model and whoever looks over its shoulder."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorDNSError():
            why = error.os_error.strerror
            return f"The name {error.host} cannot be found{f' ({why})' if why else ''}."
        case aiohttp.ClientSSLError():
            return f"No secure connection to {error.host} could be made; its certificate may not be valid."
        case aiohttp.ClientConnectorError():
            return f"No connection to {error.host} could be made ({error.os_error.strerror or 'no reason was given'})."
        case aiohttp.ClientResponseError():
            return "The page could not be read: what its server sent is no HTTP."
        case aiohttp.InvalidURL() | UnicodeError() | ValueError():
            return "The address, or the one that it leads to, cannot be read. Look how it is spelt."
        case _:
            return "The page could not be read: the connection broke off."


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(found) < 50:
        current = todo.pop()
        if current is None or current in found:
            continue
        found.append(current)
        todo += [current.__cause__, current.__context__]
        inner = getattr(current, "os_error", None)
        todo.append(inner if isinstance(inner, BaseException) else None)
    return found


async def _taken(url: str, response: aiohttp.ClientResponse, came: bytearray) -> _Page:
    kind, charset = _kind(response.headers.get("Content-Type", ""))
    page = _Page(
        url, response.status, kind, charset, response.headers.get("Content-Encoding", "").strip().lower()[:100]
    )
    if not kind.startswith(_NO_TEXT):
        while len(came) <= MAX_BYTES and not response.content.at_eof():
            came += await response.content.read(MAX_BYTES + 1 - len(came))
        page.data = bytes(came)
    return page


def _kind(header: str) -> tuple[str, str]:
    """The type and the charset that a header names. Pure; a library's reader is made for headers of people who mean well."""
    kind, *parameters = header[:300].split(";")
    named = (one.partition("=") for one in parameters)
    charset = next((value for name, _, value in named if name.strip().lower() == "charset"), "")
    return kind.strip().lower(), charset.strip(" \t\"'")


OFFER = Offer(4, lambda parts: (FetchUrl(parts.workers),))
