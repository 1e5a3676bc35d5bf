"""The door for what Slack calls with: Bolt, and what of it is acknowledged.

Theory. Bolt checks signatures, and answers Slack's questions about the address. Its 200 is no proof that anything was stored: it answers so
as well where an authorization failed, for instance. So all that is told is taken by a middleware of ours right behind the check of the
signature (further on, Bolt fails at events that are odd), and one answer alone acknowledges: the one of a class of ours, which this
middleware gives when what was told is in a table. Another 200 is none, except for the two questions.

Nor is it Bolt that reads a call for us: it raises where it cannot, and a command whose words hold "payload" is nothing to it
(`slack_bolt.request.internals.parse_body`). Each request has beside it what was told, as we read it; what nobody can read, as it came.

What comes by a socket has no signature to be checked, because we have opened it, with a token of ours: it does not pass here.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.middleware.async_middleware import AsyncMiddleware
from slack_bolt.response import BoltResponse
from typing_extensions import override

from adapters.slack.inbound import body_of, table

log = structlog.get_logger("slack")

MOST_BODY_BYTES = 4_000_000
"""Slack's calls are smaller by far."""
STAMP, MARK = "X-Slack-Request-Timestamp", "X-Slack-Signature"
_TOLD = "outspoken_told"

Take = Callable[[object], Awaitable[bool]]
"""Takes in what Slack tells; whether it is in a table."""


class _Stored(BoltResponse):
    """It is in a table. Nothing else acknowledges."""


class _Taking(AsyncMiddleware):
    """Takes everything that is let in."""

    def __init__(self, take: Take) -> None:
        self._take = take

    @override
    async def async_process(
        self,
        *,
        req: AsyncBoltRequest,
        resp: BoltResponse,
        next: Callable[[], Awaitable[BoltResponse]],
    ) -> BoltResponse | None:
        if _asks(req):
            return await next()
        context: Any = req.context
        return _Stored(status=200) if await self._take(context[_TOLD]) else BoltResponse(status=503)


class AppDoor:
    """That of one app. Without a signing secret no call comes in."""

    def __init__(self, bot_token: str, signing_secret: str, take: Take) -> None:
        self._app = AsyncApp(
            name="outspoken",
            token=bot_token,  # nothing of Bolt's calls Slack
            signing_secret=signing_secret.strip()
            or secrets.token_hex(32),  # at an empty one Bolt fails, and does not refuse
            process_before_response=True,
            before_authorize=_Taking(take),
        )

    async def call(self, request: web.Request) -> web.Response:
        """What Slack calls with: 200 when it is in a table, 503 when it has to come again."""
        if (request.content_length or 0) > MOST_BODY_BYTES:
            log.warning("slack.odd_call", status=413)
            return web.Response(status=413)
        content = await request.read()
        text = content.decode("utf-8", "replace")
        try:
            told = body_of(content, request.content_type)
        except (ValueError, RecursionError):
            told = text  # if it is signed, it is kept, like all that cannot be read
        answer = await self._through(_request(told, text, headers=_headers(request)))
        if answer.status == 401:
            log.warning("slack.odd_call", status=401)
        return await to_aiohttp_response(answer)

    async def _through(self, request: AsyncBoltRequest) -> BoltResponse:
        """Bolt's answer, if it is one that may be passed on."""
        answer = await self._app.async_dispatch(request)
        if isinstance(answer, _Stored) or answer.status >= 400 or _asks(request):
            return answer
        log.error("slack.bolt_answered", status=answer.status)
        return BoltResponse(status=503)


def _asks(request: AsyncBoltRequest) -> bool:
    """Whether Slack looks whether the address is ours, or its certificate good: Bolt answers that."""
    body = table(request.body)
    return body.get("type") == "url_verification" or body.get("ssl_check") == "1"


def _request(told: object, body: str, **more: Any) -> AsyncBoltRequest:
    """What was told, as Bolt takes it."""
    context: dict[str, Any] = {_TOLD: told}
    try:
        return AsyncBoltRequest(body=body, context=context, **more)
    except Exception:  # noqa: BLE001 - Bolt cannot read it, and need not: it checks the signature all the same
        request = AsyncBoltRequest(body="", context=context, **more)
        request.raw_body = body
        return request


def _headers(request: web.Request) -> dict[str, Any]:
    """Those that Bolt reads. One that is odd is left out: Bolt would fail at it, and not refuse the call."""
    stamp, mark = request.headers.get(STAMP, ""), request.headers.get(MARK, "")
    signed = re.fullmatch(r"[0-9]{1,12}", stamp) and mark.isascii()
    return {"Content-Type": request.content_type, **({STAMP: stamp, MARK: mark} if signed else {})}
