"""How the bot's library reaches Telegram: through aiohttp, which serves everything else here, in the place of its own httpx.

A turn makes four calls to Telegram, and one takes some three thousand Python calls by way of httpx and a sixth of that by way of aiohttp. Counted,
three fifths of all that a turn in a chat cost were spent in there.

It is imported where the library is. Whom it trusts, and which proxies of the environment it heeds, is as it was with httpx.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

import aiohttp
from multidict import CIMultiDict
from typing_extensions import override
from yarl import URL

from adapters.contract.pacing import meant
from adapters.telegram.library import BaseRequest, NetworkError, RequestData, TelegramError, TimedOut
from agent_core.model.transport import OwnAnswers, named_in, proxy_of

if TYPE_CHECKING:
    from telegram._utils.types import ODVInput

CONNECTIONS = 64
CONNECT_SECONDS = 5.0
PLACE_SECONDS = 5.0
"""For one of the connections to be free, if all are in use."""
KEPT_SECONDS = 30.0
"""So long a connection is kept that nobody uses; Telegram ends it after a minute and more."""
LARGE_BYTES = 262_144
"""A larger file is sent in pieces, as the socket takes them: whole, there were four copies of it, and others waited while they were made."""
FORM = CIMultiDict({"Content-Type": "application/x-www-form-urlencoded"})


class NoAuthorities(ssl.SSLError):
    """Nobody can be trusted: what SSL_CERT_FILE or SSL_CERT_DIR name cannot be read."""


BEFORE = (
    NoAuthorities,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
"""What comes before the first byte of a request has gone out."""


DEFAULT_PAUSE_SECONDS = 30.0
"""For a 429 that says no time, or one that nobody means."""


class NotItself(TelegramError):
    """Whoever answered, it was not Telegram: each of its answers is an object with ``ok`` (https://core.telegram.org/bots/api#making-requests). What is
    told with a success is a page."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class AskedToWait(TelegramError):
    """By Telegram, in place of what it was asked for."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"retry after {seconds:g}")
        self.seconds = seconds


@cache
def trusted() -> ssl.SSLContext:
    """Whom all connections trust: reading it takes 50 ms, and there are four. Raises OSError for an unusable SSL_CERT_FILE."""
    import httpx

    return httpx.create_ssl_context()


class Wire(BaseRequest):
    """Implements the library's interface. `initialize` before use, `shutdown` at the end; again and again, if need be."""

    __slots__ = ("_open", "_proxy", "_proxy_auth", "_read_seconds", "_session", "date")

    def __init__(self, address: str, *, read_seconds: float, proxy: str) -> None:
        """`address` is the Bot API's; a `proxy` is used in the place of what the environment names for it."""
        self._read_seconds = read_seconds
        self._proxy, self._proxy_auth = named_in(proxy) if proxy else proxy_of(address)
        self._open = False
        self._session: aiohttp.ClientSession | None = None
        self.date = ""
        """What the last answer said that the time is."""

    @property
    @override
    def read_timeout(self) -> float:
        return self._read_seconds

    @override
    async def initialize(self) -> None:
        self._open = True
        with suppress(OSError):  # told by the first call, which may find it better
            self._begun()

    def _begun(self) -> aiohttp.ClientSession:
        """Raises OSError for authorities that cannot be read."""
        if not self._open:
            raise RuntimeError("The connections to Telegram are not open.")
        if self._session is None:
            connector = OwnAnswers(limit=CONNECTIONS, ssl=trusted(), keepalive_timeout=KEPT_SECONDS)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers={"User-Agent": self.USER_AGENT}
            )
        return self._session

    @override
    async def shutdown(self) -> None:
        self._open = False
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
        try:
            session = self._begun()
        except OSError as error:
            raise NetworkError("nobody can be trusted") from NoAuthorities(str(error))
        read = read_timeout if isinstance(read_timeout, int | float) else self._read_seconds
        data, headers = (None, None) if request_data is None else _body(request_data)
        try:
            async with session.request(
                method, url, data=data, headers=headers, allow_redirects=False, proxy=self._proxy,
                proxy_auth=self._proxy_auth, timeout=_limits(read),
            ) as answer:  # fmt: skip
                payload = await answer.read()
        except TimeoutError as error:
            raise TimedOut from error
        except (aiohttp.ClientError, OSError) as error:
            raise NetworkError(f"{type(error).__name__}: {error}") from error
        self.date = answer.headers.get("Date", "")
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            _refused(answer.status, payload)
        return answer.status, payload

    @staticmethod
    @override
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """An answer; raises `TelegramError` for anything else. The library logs all of what it cannot read, page by page."""
        answer = _read(payload)
        if answer is None and payload.lstrip()[:1] == b"<":
            raise NotItself(HTTPStatus.OK)
        if answer is None:
            raise TelegramError("Invalid server response")
        return answer


@cache
def _limits(read_seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(
        total=None, connect=CONNECT_SECONDS + PLACE_SECONDS, sock_connect=CONNECT_SECONDS, sock_read=read_seconds
    )


def _read(payload: bytes) -> dict[str, Any] | None:
    """An object; None for anything else. Pure."""
    try:
        answer: object = json.loads(payload.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None


def _refused(status: int, payload: bytes) -> None:
    """What the library would make something else of. Raises `NotItself`, `AskedToWait`. Pure."""
    answer = _read(payload)
    if answer is None or "ok" not in answer:
        raise NotItself(status)
    parameters = answer.get("parameters")
    told = cast("dict[str, Any]", parameters).get("retry_after") if isinstance(parameters, dict) else None
    if status == HTTPStatus.TOO_MANY_REQUESTS or told:
        raise AskedToWait(_seconds(told, str(answer.get("description"))))


_RETRY_AFTER = re.compile(r"retry after (\d{1,6})\b")


def _seconds(told: object, words: str) -> float:
    named = _RETRY_AFTER.search(words)
    number = float(told) if isinstance(told, int | float) and not isinstance(told, bool) else 0.0
    given = (number, float(named[1]) if named else 0.0)
    return next((seconds for seconds in given if meant(seconds)), DEFAULT_PAUSE_SECONDS)


def _body(given: RequestData) -> tuple[aiohttp.FormData | bytes, CIMultiDict[str] | None]:
    """What is sent, and the headers that say what it is: with files, each a part of its own."""
    return (form_of(given), None) if given.contains_files else (encoded(given.json_parameters), FORM)


def form_of(given: RequestData) -> aiohttp.FormData:
    """One with files."""
    form = aiohttp.FormData(quote_fields=False)
    for name, value in given.json_parameters.items():
        form.add_field(name, value)
    for name, (file_name, content, kind) in given.multipart_data.items():
        there = BytesIO(content) if isinstance(content, bytes) and len(content) > LARGE_BYTES else content
        form.add_field(name, there, filename=plain_name(file_name), content_type=kind)
    return form


_NOT_IN_NAMES = str.maketrans({'"': "'", ";": ",", "\\": "_", **{chr(sign): " " for sign in (*range(32), 127)}})


def plain_name(file_name: str) -> str:
    """A file's name as Telegram's server reads it: as it stands, without any quoting, and up to a semicolon (`HttpReader` of
    https://github.com/tdlib/td). Pure."""
    return file_name.translate(_NOT_IN_NAMES)


def encoded(words: Mapping[str, str]) -> bytes:
    """A form, as the query of an address is written: that is C, and the standard library's takes sixty calls a field. Pure."""
    return URL.build(query=words).raw_query_string.encode()
