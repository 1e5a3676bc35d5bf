"""`fetch_url`: reads a public page or file over http or https.

Every address is judged at the moment a socket is made for it, so neither a name that resolves to an inner address, nor a literal in
an odd spelling, nor a redirect gets past. Redirects are followed by hand, each checked anew. No proxy (it would hide the
address that is dialled), no cookies, no credentials.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agent_core.tools.addresses import Address, parsed, refusal
from agent_core.tools.base import EffectClass, Json, ToolContext, ToolOutcome, ToolSpec, ToolStatus

if TYPE_CHECKING:
    import aiohttp

MAX_BYTES = 1_000_000
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


class NotAllowed(Exception):
    """The address may not be called; the words are for the model."""


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
)


@dataclass(frozen=True, slots=True)
class FetchUrl:
    """The tool. `refuse` says why an address may not be called, or None."""

    refuse: Callable[[Address], str | None] = refusal
    spec: ToolSpec = _FETCH_URL

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        import aiohttp

        url = str(arguments["url"])
        try:
            async with asyncio.timeout(SECONDS):
                return await self._fetch(url, context)
        except NotAllowed as error:
            return ToolOutcome(ToolStatus.FAILED, str(error))
        except TimeoutError:
            return ToolOutcome(ToolStatus.FAILED, f"The page did not come within {SECONDS:g} s.")
        except (aiohttp.ClientError, OSError, UnicodeError, ValueError) as error:
            cause = next((e for e in _causes(error) if isinstance(e, NotAllowed)), None)
            words = str(cause) if cause is not None else f"The page could not be read: {type(error).__name__}."
            return ToolOutcome(ToolStatus.FAILED, words)

    async def _fetch(self, url: str, context: ToolContext) -> ToolOutcome:
        import aiohttp

        connector = aiohttp.TCPConnector(socket_factory=self._socket, use_dns_cache=False, force_close=True)
        async with aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "outspoken"},
        ) as http:
            for _ in range(MAX_REDIRECTS + 1):
                self._check_url(url)
                context.heartbeat(f"reading {urlsplit(url).hostname}")
                async with http.get(url, allow_redirects=False) as response:
                    target = response.headers.get("Location")
                    if response.status in (301, 302, 303, 307, 308) and target:
                        url = urljoin(url, target)
                        continue
                    return await _outcome(url, response)
        raise NotAllowed(f"The page redirects more than {MAX_REDIRECTS} times.")

    def _check_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https"):
            raise NotAllowed("Only http and https addresses can be read.")
        if parts.username is not None or parts.password is not None:
            raise NotAllowed("An address with a user name or a password in it is not read.")
        if not parts.hostname:
            raise NotAllowed("The address names no host.")
        if parts.port in _NOT_HTTP_PORTS:
            raise NotAllowed(f"Port {parts.port} is not used for web pages.")
        literal = parsed(parts.hostname)
        if literal is not None:
            self._judge(literal)

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
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


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


async def _outcome(url: str, response: aiohttp.ClientResponse) -> ToolOutcome:
    data = await response.content.read(MAX_BYTES + 1)
    while len(data) <= MAX_BYTES and not response.content.at_eof():
        data += await response.content.read(MAX_BYTES + 1 - len(data))
    cut = len(data) > MAX_BYTES
    data = data[:MAX_BYTES]
    kind = response.content_type
    head = f"HTTP {response.status}, {kind}, {url}"
    if b"\0" in data[:2000] or kind.startswith(("image/", "audio/", "video/", "font/")):
        return ToolOutcome(ToolStatus.FAILED, f"{head}\nThis is no text, so it is not shown.")
    try:
        text = data.decode(response.charset or "utf-8", "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    if kind in ("text/html", "application/xhtml+xml"):
        text = await asyncio.to_thread(readable, text, url)
    note = f"\n(cut at {MAX_BYTES} bytes)" if cut else ""
    status = ToolStatus.OK if response.status < 400 else ToolStatus.FAILED
    return ToolOutcome(status, f"{head}\n\n{text}{note}", facts={"status": response.status, "bytes": len(data)})


class _Text(HTMLParser):
    """HTML to plain text with links; scripts, styles and the like are left out."""

    _SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "head"})
    _BLOCKS = frozenset(
        {
            "p",
            "div",
            "br",
            "li",
            "tr",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "section",
            "article",
            "ul",
            "ol",
            "table",
            "pre",
        }
    )

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._skipping: list[str] = []
        self._links: list[str] = []
        self.pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self._SKIPPED:
            self._skipping.append(tag)
        if tag in self._BLOCKS:
            self.pieces.append("\n- " if tag == "li" else "\n")
        if tag == "a":
            self._links.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipping:
            while self._skipping and self._skipping.pop() != tag:
                pass
        if tag in self._BLOCKS:
            self.pieces.append("\n")
        if tag == "a" and self._links:
            target = self._links.pop()
            if target and not target.startswith(("#", "javascript:")):
                self.pieces.append(f" ({urljoin(self._base, target)})")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.pieces.append(data)


def readable(html: str, base: str) -> str:
    """The readable text of a page. Pure."""
    parser = _Text(base)
    try:
        parser.feed(html)
        parser.close()
    except (AssertionError, ValueError):
        parser.pieces.append("\n(the rest of the page could not be read)")
    lines = [" ".join(line.split()) for line in "".join(parser.pieces).splitlines()]
    out: list[str] = []
    for line in lines:
        if line or (out and out[-1]):
            out.append(line)
    return "\n".join(out).strip()
