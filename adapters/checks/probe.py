"""One HTTP call to a server, made to see whether it can be reached, what time it is there, and whether a gateway of ours answers.

Every way in which that can fail is a value with words: name look-up, connection, TLS, proxy, time. The adapters use their own
libraries; this is for looking only. No address of somebody else's is put into words, because Telegram's holds the token.
"""

from __future__ import annotations

import asyncio
import email.utils
import os
import ssl
import time
import urllib.request
from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from urllib.parse import urlsplit

import aiohttp
import orjson

from adapters.checks.findings import Finding, problem, warning
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

SECONDS = 8.0
"""How long one call may take."""
MAX_BYTES = 4_194_304
"""The most of an answer that is read, unpacked. The longest is a list of models."""


class ProbeTrouble(StrEnum):
    """Why there was no answer."""

    NAME = "name"
    """The host's name is not known."""
    CONNECTION = "connection"
    TLS = "tls"
    PROXY = "proxy"
    TIME = "time"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class ServerReply:
    """An answer, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Json
    """None if it was no JSON."""

    @property
    def table(self) -> Mapping[str, Json]:
        """The body, if it is an object."""
        return self.body if isinstance(self.body, dict) else {}


@dataclass(frozen=True, slots=True)
class NoReply:
    """There was no answer."""

    trouble: ProbeTrouble
    host: str
    words: str


class Probe:
    """Calls one server, for one look."""

    def __init__(self, who: str, *, proxy: str = "", tls: ssl.SSLContext | None = None) -> None:
        """`who` as a person knows it; `proxy` is used as given; `tls` is whom to trust (None: this machine's store)."""
        self.who = who
        self.proxy = proxy
        self.tls = tls
        self.skew_seconds: float | None = None

    async def ask(
        self, method: str, url: str, headers: Mapping[str, str], body: Json = None, seconds: float = SECONDS
    ) -> ServerReply | NoReply:
        """Make one call. Never raises for what the server or the network does."""
        host = urlsplit(url).hostname or "?"
        data = None if body is None else orjson.dumps(body)
        more = {} if data is None else {"Content-Type": "application/json"}
        began = time.time()
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=seconds)) as http,
                http.request(
                    method,
                    url,
                    headers={**headers, **more},
                    data=data,
                    proxy=self.proxy or None,
                    ssl=self.tls if self.tls is not None else True,
                    allow_redirects=False,
                ) as response,
            ):
                raw = await _body(response)
                told = {name.lower(): value for name, value in response.headers.items()}
        except (aiohttp.ClientError, OSError, ValueError) as error:  # a TimeoutError is an OSError
            return no_reply(error, host)
        skew = skew_of(told.get("date", ""), began, time.time())
        self.skew_seconds = skew if skew is not None else self.skew_seconds
        return ServerReply(response.status, told, parsed(raw))


async def greeting(address: str, who: str, proxy: str) -> Json | NoReply:
    """The first frame that a websocket sends (None if it is no JSON), and away. `who` is at the address, as a person knows it."""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    try:
        async with (
            asyncio.timeout(SECONDS),
            aiohttp.ClientSession(timeout=timeout) as http,
            http.ws_connect(address, proxy=proxy or None) as socket,
        ):
            message = await socket.receive()
            return parsed(str(message.data).encode()) if message.type is aiohttp.WSMsgType.TEXT else None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return no_reply(error, who)


async def _body(response: aiohttp.ClientResponse, most: int = MAX_BYTES) -> bytes:
    """The body, as far as anybody looks at it. Whoever answers here may be anybody, and say so without end."""
    body = bytearray()
    while len(body) < most and (piece := await response.content.read(most - len(body))):
        body += piece
    return bytes(body)


def parsed(raw: bytes) -> Json:
    """JSON, or None."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def skew_of(date: str, began: float, ended: float) -> float | None:
    """How many seconds a ``Date`` header is ahead of this machine; the call lasted from `began` to `ended` (Unix seconds)."""
    try:
        told = email.utils.parsedate_to_datetime(date).timestamp() + 0.5  # it is cut to whole seconds
    except (ValueError, TypeError, OverflowError):
        return None
    if told < began:
        return min(0.0, told - began + 0.5)
    return max(0.0, told - ended - 0.5)


def no_reply(error: Exception, host: str) -> NoReply:
    """What an exception of aiohttp means."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return NoReply(ProbeTrouble.PROXY, host, "the proxy does not answer or does not let it through")
        case aiohttp.ClientConnectorDNSError():
            return NoReply(ProbeTrouble.NAME, host, f"the name {host} is not known")
        case aiohttp.ClientConnectorCertificateError():
            inner = error.certificate_error
            words = getattr(inner, "verify_message", "") or type(inner).__name__
            return NoReply(ProbeTrouble.TLS, host, f"its certificate is not trusted ({words})")
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return NoReply(ProbeTrouble.TLS, host, "no secure connection could be agreed on")
        case TimeoutError():
            return NoReply(ProbeTrouble.TIME, host, "there was no answer in time")
        case aiohttp.InvalidURL():
            return NoReply(ProbeTrouble.ADDRESS, host, "the address cannot be used")
        case OSError():
            known = os.strerror(error.errno) if error.errno else ""  # asyncio's own words show a pair of Python's
            reason = (known or error.strerror or type(error).__name__).lower()
            return NoReply(ProbeTrouble.CONNECTION, host, f"no connection to {host} ({reason})")
        case _:
            return NoReply(ProbeTrouble.CONNECTION, host, f"the connection to {host} broke ({type(error).__name__})")


def environment_proxy(url: str) -> str:
    """The proxy that the environment names for an address; empty if none."""
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return ""
    return urllib.request.getproxies().get(parts.scheme, "")


def unreachable(check: str, who: str, why: NoReply, *, proxy_key: str, address_key: str) -> Finding:
    """The finding that somebody cannot be reached, with what to do about it."""
    match why.trouble:
        case ProbeTrouble.NAME:
            fix = f"Look whether this machine has a network and a name server (getent hosts {why.host}), and whether {address_key} is right."
        case ProbeTrouble.CONNECTION:
            fix = f"Look whether {address_key} is right, whether the server runs, and whether a firewall lets this machine out."
        case ProbeTrouble.TIME:
            fix = f"Look whether a firewall swallows the connection, or whether a proxy is needed: {proxy_key}."
        case ProbeTrouble.PROXY:
            fix = f"Look whether the proxy runs and is the right one: {proxy_key}, or HTTPS_PROXY in the environment."
        case ProbeTrouble.TLS if "expired" in why.words or "not yet valid" in why.words:
            fix = (
                "Look at this machine's clock first (date); if it is right, the server's certificate has to be renewed."
            )
        case ProbeTrouble.TLS:
            fix = (
                "If a company's proxy reads the traffic, name its CA: SSL_CERT_FILE=/path/to/ca.pem (all platforms heed it). "
                "In a container, install ca-certificates."
            )
        case ProbeTrouble.ADDRESS:
            fix = f"Correct {address_key}."
    return problem(check, f"{who} cannot be reached: {why.words}.", fix)


def odd(check: str, who: str, reply: ServerReply) -> Finding:
    """The finding for an answer that nothing else explains."""
    if reply.status == 429:
        wait = reply.headers.get("retry-after", "")
        pause = f" for {wait} s" if wait else ""
        return warning(
            check,
            f"{who} asks for fewer calls{pause} (429).",
            "Wait that long. If it happens again, see who else uses the token.",
        )
    if reply.status >= 500:
        return warning(
            check,
            f"{who} has trouble of its own ({reply.status}).",
            "Try again in some minutes; the gateway does, too.",
        )
    if reply.body is None and reply.status >= 300:
        return problem(
            check,
            f"A proxy or firewall answered in place of {who} (HTTP {reply.status}).",
            "Look whether it lets this machine out to there, and whether the configured address is really its API.",
        )
    return problem(
        check,
        f"{who} answered in a way that it should not (HTTP {reply.status}).",
        "Look whether the configured address is really its API.",
    )


MOST_BYTES = 256 * 1024


class Question(StrEnum):
    """What can be asked; `gateway.observe.health` says what each means. A yes is harder to get from one to the next."""

    ALIVE = "alive"
    READY = "ready"
    WELL = "well"

    @property
    def path(self) -> str:
        """Where it is asked."""
        return {Question.ALIVE: "/healthz", Question.READY: "/readyz", Question.WELL: "/wellz"}[self]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of a question."""

    yes: bool
    why: tuple[str, ...] = ()
    """Why it is no, in words."""


async def _asked(address: str, headers: Mapping[str, str], seconds: float) -> tuple[int, Json]:
    """A gateway's answer: its status, and its JSON. Raises what `_NO_ANSWER` names."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as http, http.get(address, headers=headers) as response:
        return response.status, orjson.loads(await _body(response, MOST_BYTES))


_NO_ANSWER = (aiohttp.ClientError, OSError, orjson.JSONDecodeError)


async def health(url: str, question: Question, key: str | None, seconds: float) -> ProbeResult:
    """Ask one of the health questions; an answer after at most so many seconds, whatever is at the address."""
    try:
        status, body = await _asked(url + question.path, {"Authorization": f"Bearer {key}"} if key else {}, seconds)
    except TimeoutError:
        return ProbeResult(yes=False, why=(f"{url} does not answer within {seconds:g} s.",))
    except orjson.JSONDecodeError:
        return ProbeResult(yes=False, why=(f"What answers at {url} is no gateway.",))
    except (aiohttp.ClientError, OSError) as error:
        return ProbeResult(yes=False, why=(f"No gateway answers at {url}: {no_reply(error, url).words}.",))
    table = body if isinstance(body, dict) else {}
    problems, error = table.get("problems"), table.get("error")
    why = [str(one) for one in problems] if isinstance(problems, list) else []
    if isinstance(error, dict):
        why.append(str(error.get("message")))
    if status != 200 or "status" not in table:
        return ProbeResult(yes=False, why=tuple(why) or (f"What answers at {url} is no gateway (HTTP {status}).",))
    return ProbeResult(yes=True)


class Answering(Enum):
    """What came from the address where the gateway should be."""

    GATEWAY = auto()
    SILENT = auto()
    """Somebody took the connection, and said nothing."""
    NOBODY = auto()
    """Nobody listens there, or somebody who is no gateway."""


async def answering_at(url: str, seconds: float = 3.0) -> Answering:
    """What ``/healthz`` at `url` says; asked once, and known after so many seconds."""
    try:
        _, body = await _asked(url + Question.ALIVE.path, {}, seconds)
    except TimeoutError:
        return Answering.SILENT
    except _NO_ANSWER:
        return Answering.NOBODY
    return Answering.GATEWAY if isinstance(body, dict) and body.get("program") == "outspoken" else Answering.NOBODY
