"""Files that contents carry, and files that people attach: read and fetched, the same for all platforms.

A file is fetched only from where its platform's files lie, and only there is a token sent. Why: the address of a file comes with a message, so
that somebody else may have chosen it (Slack's *external* files name any host). A redirect is an address like any other and is judged again.

Known to be weak: what an allowed name resolves to is not looked at; the platform's own certificate has to stand for that.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from http import HTTPStatus
from pathlib import Path

import aiohttp
from yarl import URL

from adapters import refusing
from adapters.contract.chat import CallFailed, Cause, Content, Fate
from agent_core.messages import VOICE_STEM
from agent_core.records import dataclass
from agent_core.text.tongue import clause


@dataclass(frozen=True, slots=True)
class FileHosts:
    """The hosts of one platform's files."""

    domains: tuple[str, ...]
    """Each with everything below it; over TLS at the usual port only."""
    instead: str = ""
    """A server that the configuration names in the platform's place, with its scheme and port; empty if there is none."""

    def allows(self, url: URL) -> bool:
        """Whether a file may be fetched from there."""
        if not url.absolute or not url.scheme or url.user is not None or url.password is not None or not url.raw_host:
            return False
        if self.instead and url.origin() == URL(self.instead).origin():
            return True
        return url.scheme == "https" and url.port == 443 and _below(url.raw_host, self.domains)


def _below(host: str, domains: Sequence[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


FETCH_SECONDS = 60.0
UPLOAD_SECONDS = 170.0
"""So long a call with a file may take: somewhat less than the outbox gives it."""
MOST_REDIRECTS = 3
ELSEWHERE = clause("it lies on another site, and only files of the platform itself are fetched")
UNREADABLE = clause("it cannot be read ({why})")
EMPTY = clause("it is empty")
LARGER = clause("it is larger than {size} MB, the most that {platform} takes")
NOT_FETCHED = clause("it could not be fetched ({why})")
ROUND = clause("the platform sends one from address to address for it")
NOT_GIVEN = clause("the platform did not give it ({status})")
LARGE = clause("it is too large")
_REDIRECTS = (301, 302, 303, 307, 308)
MIB = 1024 * 1024
MOST_TEXT_BYTES = 32 * 1024
"""A file with more in it is no text for a chat: that would be a wall of messages."""
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def is_voice(name: str) -> bool:
    """Whether a file that is sent is a voice message: see `agent_core.model.speech.tool`."""
    return name.rpartition(".")[0] == VOICE_STEM


async def bytes_of(content: Content, most_bytes: int, platform: str) -> bytes:
    """What a part of kind file carries. Raises `CallFailed` if it is gone, empty, or more than `platform` takes."""
    data = content.file_text.encode()
    if content.file:
        try:
            data = await asyncio.to_thread(Path(content.file).read_bytes)
        except OSError as error:
            raise CallFailed(Fate.REFUSED, UNREADABLE.format(why=error.strerror), cause=Cause.FILE) from error
    if not data:
        raise CallFailed(Fate.REFUSED, EMPTY, cause=Cause.FILE)
    if len(data) > most_bytes:
        words = LARGER.format(size=most_bytes // MIB, platform=platform)
        raise CallFailed(Fate.REFUSED, words, cause=Cause.FILE)
    return data


async def size_of(content: Content) -> int:
    """How large what `bytes_of` gives is; 0 if it is gone."""
    if not content.file:
        return len(content.file_text.encode())
    try:
        return (await asyncio.to_thread(Path(content.file).stat)).st_size
    except OSError:
        return 0


async def spelled_out(content: Content) -> Content:
    """The same with what is in its file as text, if that can be shown as one; else as it is."""
    if not content.file or content.file_text:
        return content
    text = await asyncio.to_thread(_text_in, Path(content.file))
    return replace(content, file_text=text) if text else content


def _text_in(path: Path) -> str:
    """What is in a file, if it is a text of a size for a chat; else nothing."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_TEXT_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    readable = len(data) <= MOST_TEXT_BYTES and text.strip() and not _NOT_TEXT.search(text)
    return text.replace("\r\n", "\n") if readable else ""


@dataclass(frozen=True, slots=True)
class FileSource:
    """How one platform's files are fetched."""

    hosts: FileHosts
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent to these hosts only: they may hold the token."""
    proxy: str = ""

    async def fetched(self, address: str, limit_bytes: int) -> bytes:
        """The bytes at an address. Raises `CallFailed`. A page in place of a file is Slack's way to say no."""
        timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
        try:
            async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as http:
                url = URL(address)
                for _ in range(MOST_REDIRECTS + 1):
                    if not self.hosts.allows(url):
                        raise CallFailed(Fate.REFUSED, ELSEWHERE, cause=Cause.FILE)
                    async with http.get(
                        url, headers=self.headers, proxy=self.proxy or None, allow_redirects=False
                    ) as response:
                        if (to := response.headers.get("Location")) is None or response.status not in _REDIRECTS:
                            return await self._read(response, limit_bytes)
                    url = url.join(URL(to))
        except ValueError as error:  # an address that cannot be read; some of aiohttp's own errors are of this kind too
            raise CallFailed(Fate.REFUSED, ELSEWHERE, cause=Cause.FILE) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise CallFailed(Fate.NOT_SENT, NOT_FETCHED.format(why=refusing.broken(error))) from error
        raise CallFailed(Fate.REFUSED, ROUND, cause=Cause.FILE)

    async def _read(self, response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
        status = response.status
        if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise CallFailed(Fate.NOT_SENT, NOT_GIVEN.format(status=status))  # a moment later it may be
        if status != HTTPStatus.OK or (self.headers and response.content_type == "text/html"):
            raise CallFailed(Fate.REFUSED, NOT_GIVEN.format(status=status), cause=Cause.FILE)
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > limit_bytes:
                raise CallFailed(Fate.REFUSED, LARGE, cause=Cause.FILE)
        return bytes(data)
