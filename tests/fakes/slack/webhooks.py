"""The other way to tell the app: signed HTTP requests.

https://docs.slack.dev/authentication/verifying-requests-from-slack and https://docs.slack.dev/apis/events-api/using-http-request-urls
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast
from urllib.parse import urlencode

import aiohttp
import orjson

from tests.fakes.common import Bell, Clock, Json, JsonObject
from tests.fakes.slack.outbox import Envelope, Kind, Outbox, Reason
from tests.fakes.slack.shapes import as_text

CHALLENGE = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"


class Tamper(StrEnum):
    """What is wrong with a request that does not come from Slack."""

    NOTHING = "nothing"
    SIGNATURE = "signature"
    TIMESTAMP = "timestamp"
    """Properly signed, but ten minutes ago."""
    UNSIGNED = "unsigned"


@dataclass(frozen=True, slots=True)
class Request:
    """A request to the app, and its answer."""

    kind: str
    at: float
    """Monotonic seconds."""
    headers: dict[str, str]
    body: bytes
    status: int = 0
    """0: there was no answer."""
    answer: bytes = b""
    last: bool = False
    """Whether the answer said that the app does not want to be told again."""


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """The `x-slack-signature` of a request."""
    return "v0=" + hmac.new(secret.encode(), b"v0:%d:" % timestamp + body, hashlib.sha256).hexdigest()


class Webhooks:
    """Sends what the app is to know to its address, while there is one."""

    def __init__(self, secret: str, clock: Clock, bell: Bell, outbox: Outbox) -> None:
        self._secret = secret
        self._clock = clock
        self._bell = bell
        self._outbox = outbox
        self._session: aiohttp.ClientSession | None = None
        self.url: str | None = None
        """Where events, presses and commands go. None: over sockets."""
        self.urls: dict[Kind, str] = {}
        """Other addresses for some kinds."""
        self.tamper = Tamper.NOTHING
        self.log: list[Request] = []

    async def close(self) -> None:
        """Stop."""
        if self._session is not None:
            await self._session.close()

    def _headers(self, body: bytes, content_type: str) -> dict[str, str]:
        now = int(self._clock.unix())
        headers = {"Content-Type": content_type, "User-Agent": "Slackbot 1.0 (+https://api.slack.com/robots)"}
        if self.tamper is Tamper.UNSIGNED:
            return headers
        if self.tamper is Tamper.TIMESTAMP:
            now -= 600
        secret = "somebody-else" if self.tamper is Tamper.SIGNATURE else self._secret
        return {**headers, "X-Slack-Request-Timestamp": str(now), "X-Slack-Signature": sign(secret, now, body)}

    async def post(self, url: str, body: bytes, content_type: str, kind: str, headers: dict[str, str]) -> Request:
        """Send a signed request and note what came of it.

        Raises:
            TimeoutError: there was no answer in time.
            aiohttp.ClientError: the connection failed.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        sent = Request(kind, self._clock.monotonic(), {**self._headers(body, content_type), **headers}, body)
        timeout = aiohttp.ClientTimeout(total=self._outbox.ack_seconds)
        try:
            async with self._session.post(
                url, data=body, headers=sent.headers, timeout=timeout, allow_redirects=False
            ) as response:
                last = response.headers.get("X-Slack-No-Retry") == "1"
                sent = replace(sent, status=response.status, answer=await response.read(), last=last)
        finally:
            self.log.append(sent)
        return sent

    async def verify(self) -> bool:
        """Ask the app for the challenge, as Slack does when the address is typed in."""
        assert self.url is not None, "no address"
        body = orjson.dumps({"token": "fake", "challenge": CHALLENGE, "type": "url_verification"})
        answer = (await self.post(self.url, body, _JSON, "url_verification", {})).answer
        try:
            said = cast("Json", orjson.loads(answer))
        except orjson.JSONDecodeError:
            return answer.decode().strip() == CHALLENGE
        return isinstance(said, dict) and said.get("challenge") == CHALLENGE

    async def tell(self, envelope: Envelope) -> None:
        """Send one request, and take a 2xx for an acknowledgement."""
        url = self.urls.get(envelope.kind, self.url)
        assert url is not None
        attempt = self._outbox.attempt(envelope, self._clock.monotonic(), None)
        envelope.deadline = None
        body, content_type = _form(envelope)
        headers: dict[str, str] = {}
        if attempt.number:
            headers = {"X-Slack-Retry-Num": str(attempt.number), "X-Slack-Retry-Reason": attempt.reason}
        problem, again = Reason.HTTP_ERROR, True
        try:
            sent = await self.post(url, body, content_type, envelope.name, headers)
        except TimeoutError:
            problem = Reason.HTTP_TIMEOUT
        except (aiohttp.ClientError, OSError):
            problem = Reason.CONNECTION_FAILED
        else:
            attempt.status, again = sent.status, not sent.last
            if 200 <= sent.status < 300:
                # The answer came in time for HTTP; the outbox is not to be the judge of that again.
                attempt.at = max(attempt.at, self._clock.monotonic() - self._outbox.ack_seconds)
                self._outbox.acknowledge(attempt.envelope_id, self._clock.monotonic(), _said(sent.answer))
                self._bell.ring()
                return
        self._outbox.failed(envelope, self._clock.monotonic(), problem, again=again)
        self._bell.ring()


def _form(envelope: Envelope) -> tuple[bytes, str]:
    match envelope.kind:
        case Kind.EVENTS:
            return orjson.dumps(envelope.payload), _JSON
        case Kind.INTERACTIVE:
            return urlencode({"payload": orjson.dumps(envelope.payload).decode()}).encode(), _FORM
        case Kind.COMMANDS:
            return urlencode({name: as_text(value) for name, value in envelope.payload.items()}).encode(), _FORM


def _said(answer: bytes) -> JsonObject | None:
    if not answer.strip():
        return None
    try:
        body = cast("Json", orjson.loads(answer))
    except orjson.JSONDecodeError:
        return {"text": answer.decode("utf-8", "replace")}
    return body if isinstance(body, dict) else None
