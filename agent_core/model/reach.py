"""Why no answer came from an address: an exception, and what caused it, to a `BreakCause` and a word for a person. Pure but for `speaks_tls`.

Theory. The library says "timed out" whatever happened; the truth is further down the chain of causes, where Python's own exceptions are.
Each of the reasons has another remedy, so each has its own cause. What is not one of them was a connection that was lost. Which exceptions
libraries let through is nothing that they promise: so all of them count (`TransportBroke`), and where they come from tells them from our mistakes.

Laws (tests/agent_core/model/test_reach.py), on real sockets: refused, unknown name, bad certificate, TLS to a plain port, plain to a TLS
port and no connection in time are six causes, with the real client. Whatever a library raises is a break (test_library_errors.py).
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from agent_core.causes import BreakCause
from agent_core.failures.shortage import shortage
from agent_core.text.patterns import late
from agent_core.text.tongue import clause

TLS_LOOK_SECONDS = 2.0
DOOR_SECONDS = 0.2
"""How often it is looked whether the database is back, by what waits for it before it calls a model, runs a tool, or opens a connection to a platform."""
_NO_TLS = late(r"WRONG_VERSION_NUMBER|HTTP_REQUEST|PACKET_LENGTH_TOO_LONG|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL")
_REFUSED = late(rf"\[Errno {errno.ECONNREFUSED}\]|Connection refused")
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


class TransportBroke(Exception):
    """A library raised in the middle of a call: whatever it was, its ``__cause__``, the call broke."""


class Lives(Protocol):
    """Whether this process is still the one that asks; see `agent_core.store.database.ownership.Ownership`."""

    def lease_ok(self) -> bool: ...

    def may_return(self) -> bool: ...


class Alone:
    """Nobody else ever asks in our place."""

    def lease_ok(self) -> bool:
        return True

    def may_return(self) -> bool:
        return False


ALONE = Alone()


class AskedByOthers(Exception):
    """Another process may ask in our place by now; of this request nothing was sent."""


class Theirs:
    """Around what libraries do for a call: all that they raise is `TransportBroke`, but for what `said`, which are a server's words."""

    __slots__ = ("_said",)

    def __init__(self, *said: type[Exception]) -> None:
        self._said = said

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, self._said):
            raise TransportBroke from error


NO_TLS = clause("no secure connection came about: {what}")
NO_WAY = clause("there is no way to that network")
NO_ADDRESS = clause("what is configured is no web address")
NO_PROXY = clause("the configured proxy cannot be reached")


def reason(error: BaseException) -> tuple[BreakCause, str]:
    """Why there was no connection, or that it was lost; with the library's word for it, if it adds something."""
    chain = [*_chain(error)]
    # Python's own exceptions know most; the library's inherit from them without what they know
    for cause in reversed(chain):
        found = _one(cause)
        if found is not None:
            return found
    return BreakCause.DROPPED, type(chain[-1]).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, the innermost last; at most ten."""
    step: BaseException | None = error
    for _ in range(10):
        if step is None:
            return
        yield step
        step = step.__cause__ or step.__context__


def _one(error: BaseException) -> tuple[BreakCause, str] | None:
    """What one exception alone says, if it is one of those that tell."""
    match error:
        case ssl.SSLCertVerificationError():
            return BreakCause.BAD_CERTIFICATE, str(getattr(error, "verify_message", "")).rstrip(".")
        case ssl.SSLError():
            said = str(getattr(error, "reason", None) or "SSLError")  # only OpenSSL's own have one
            if _NO_TLS.search(f"{said} {_text(error)}"):
                return BreakCause.NOT_TLS, ""
            return BreakCause.UNREACHABLE, NO_TLS.format(what=said.replace("_", " ").lower())
        case socket.gaierror():
            return BreakCause.UNKNOWN_NAME, ""
        case ConnectionRefusedError():
            return BreakCause.CONNECTION_REFUSED, ""
        case OSError() | MemoryError() if short := shortage(error):
            return BreakCause.UNREACHABLE, short
        case OSError() if error.errno in _NO_WAY:
            return BreakCause.UNREACHABLE, NO_WAY
        case OSError() if "Multiple exceptions" in (text := _text(error)) and _REFUSED.search(text):
            return BreakCause.CONNECTION_REFUSED, ""
        case _:
            return _by_name(error)


def _text(error: Exception) -> str:
    """What an exception says; some of the libraries' own fail when they are asked."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return ""


def _by_name(error: BaseException) -> tuple[BreakCause, str] | None:
    """What the libraries' own exceptions say; they are not imported for it."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "ConnectionTimeoutError" in names:
        return BreakCause.NOT_CONNECTED, ""
    if names & {"UnsupportedProtocol", "InvalidURL", "NonHttpUrlClientError"}:
        return BreakCause.UNREACHABLE, NO_ADDRESS
    if names & {"ClientProxyConnectionError", "ProxyError"}:
        return BreakCause.UNREACHABLE, NO_PROXY
    if "ClientHttpProxyError" in names:
        return BreakCause.BY_PROXY, ""
    if "ClientResponseError" in names:
        return BreakCause.GARBAGE, f"the answer is no HTTP that can be read: {getattr(error, 'message', '')}"
    return None


def led_elsewhere(address: str, status: int, location: str) -> tuple[BreakCause, str]:
    """What it means that `address` answers with a redirect, and where it leads: without what may be secret in it. No redirect is followed, because
    the key would go along. Pure."""
    try:
        asked = urlsplit(address)
        there = urlsplit(urljoin(address, location))
        host, port = there.hostname, there.port
    except ValueError:
        return BreakCause.GARBAGE, ""
    if not location or not host:
        return BreakCause.GARBAGE, ""
    at = f"[{host}]" if ":" in host else host
    leads = f"it leads to {there.scheme}://{at}{f':{port}' if port else ''}{there.path}"
    if host != asked.hostname and status not in (301, 308):
        return BreakCause.BY_PROXY, leads  # a login page, mostly
    tls = host == asked.hostname and (asked.scheme, there.scheme) == ("http", "https")
    return BreakCause.WANTS_TLS if tls else BreakCause.NO_ROUTE, leads


async def speaks_tls(address: str) -> bool:
    """Whether the port of a plain ``http`` address wants TLS; asked once it has hung up without a word."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        return False
    if parts.scheme != "http" or not host:
        return False
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Nothing is sent: only the kind of the port is asked
    context.check_hostname, context.verify_mode = (
        False,
        ssl.CERT_NONE,
    )
    try:
        async with asyncio.timeout(TLS_LOOK_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError, ValueError):
        return False
    writer.transport.abort()
    return True
