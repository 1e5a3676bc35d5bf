"""How the bot's library reaches Telegram: through aiohttp, which serves everything else here, in the place of its own httpx.

A turn makes four calls to Telegram, and one takes some three thousand Python calls by way of httpx and a sixth of that by way of aiohttp. Counted,
three fifths of all that a turn in a chat cost were spent in there.

It is imported where the library is. Whom it trusts, and which proxies of the environment it heeds, is as it was with httpx.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

import aiohttp
from multidict import CIMultiDict
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData
from typing_extensions import override
from yarl import URL

from agent_core.model.transport import proxy_of

if TYPE_CHECKING:
    from telegram._utils.types import ODVInput

CONNECTIONS = 64
CONNECT_SECONDS = 5.0
PLACE_SECONDS = 5.0
"""For one of the connections to be free, if all are in use."""
KEPT_SECONDS = 30.0
"""So long a connection is kept that nobody uses; Telegram ends it after a minute and more."""
FORM = CIMultiDict({"Content-Type": "application/x-www-form-urlencoded"})
BEFORE = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""What comes before the first byte of a request has gone out."""


@cache
def trusted() -> ssl.SSLContext:
    """Whom all connections trust: reading it takes 50 ms, and there are four. Raises OSError for an unusable SSL_CERT_FILE."""
    import httpx

    return httpx.create_ssl_context()


class Wire(BaseRequest):
    """Implements the library's interface. `initialize` before use, `shutdown` at the end; again and again, if need be."""

    __slots__ = ("_proxy", "_proxy_auth", "_read_seconds", "_session", "date")

    def __init__(self, address: str, *, read_seconds: float, proxy: str) -> None:
        """`address` is the Bot API's; a `proxy` is used in the place of what the environment names for it."""
        self._read_seconds = read_seconds
        self._proxy, self._proxy_auth = _of(proxy) if proxy else proxy_of(address)
        self._session: aiohttp.ClientSession | None = None
        self.date = ""
        """What the last answer said that the time is."""

    @property
    @override
    def read_timeout(self) -> float:
        return self._read_seconds

    @override
    async def initialize(self) -> None:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=CONNECTIONS, ssl=trusted(), keepalive_timeout=KEPT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": self.USER_AGENT}
            )

    @override
    async def shutdown(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @override
    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        write_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        connect_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
        pool_timeout: ODVInput[float] = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        del write_timeout, connect_timeout, pool_timeout  # whoever waits for a call gives it up in time
        if self._session is None:
            raise RuntimeError("The connections to Telegram are not open.")
        read = read_timeout if isinstance(read_timeout, int | float) else self._read_seconds
        data, headers = (None, None) if request_data is None else _body(request_data)
        try:
            async with self._session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy,
                proxy_auth=self._proxy_auth, timeout=_limits(read),
            ) as answer:  # fmt: skip
                payload = await answer.read()
        except TimeoutError as error:
            raise TimedOut from error
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error
        self.date = answer.headers.get("Date", "")
        return answer.status, payload


@cache
def _limits(read_seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=None, connect=CONNECT_SECONDS + PLACE_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=read_seconds
    )


def _of(proxy: str) -> tuple[URL, aiohttp.BasicAuth | None]:
    address = URL(proxy)
    return address.with_user(None), aiohttp.BasicAuth.from_url(address)


def _body(given: RequestData) -> tuple[aiohttp.FormData | bytes, CIMultiDict[str] | None]:
    """What is sent, and the headers that say what it is: with files, each a part of its own."""
    words = given.json_parameters
    if not given.contains_files:
        return encoded(words), FORM
    form = aiohttp.FormData()
    for name, value in words.items():
        form.add_field(name, value)
    for name, (file_name, content, kind) in given.multipart_data.items():
        form.add_field(name, content, filename=file_name, content_type=kind)
    return form, None


def encoded(words: Mapping[str, str]) -> bytes:
    """A form, as the query of an address is written: that is C, and the standard library's takes sixty calls a field. Pure."""
    return URL.build(query=words).raw_query_string.encode()
