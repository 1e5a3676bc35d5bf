"""Telegram's calls at our server, and whether the webhook is still ours.

Whoever has the bot's token can take it away or point it elsewhere; a program that polls does so.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.settings import revealed
from adapters.telegram.polling import UPDATES
from adapters.telegram.port import TelegramPort
from adapters.telegram.section import TelegramSection
from agent_core.ports import Clock

if TYPE_CHECKING:
    from telegram import Bot

log = structlog.get_logger("telegram")

MAX_BODY_BYTES = 1_000_000
MOST_LOOKS_FAILED = 3
"""So many looks at the webhook may fail in a row."""
SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the header's name
TOLD_SECONDS = 600.0
"""So long `status` says that the webhook was taken away and is set again."""
RECENT_SECONDS = 300.0
"""An error of Telegram's calls that is older says nothing about now."""


class Info(Protocol):
    """What Telegram says of a webhook (https://core.telegram.org/bots/api#webhookinfo)."""

    @property
    def url(self) -> str: ...

    @property
    def pending_update_count(self) -> int: ...

    @property
    def last_error_date(self) -> datetime | None: ...

    @property
    def last_error_message(self) -> str | None: ...


def fails_now(waiting: int, error_at: datetime | None, now: datetime) -> bool:
    """Whether Telegram's last error is one of now: it goes on telling of one that is long over. Pure."""
    return bool(waiting) and error_at is not None and (now - error_at).total_seconds() <= RECENT_SECONDS


def unreachable_words(info: Info, now: datetime) -> str:
    """Why Telegram cannot deliver what waits; empty if it can, as far as is known. Pure."""
    if not fails_now(info.pending_update_count, info.last_error_date, now):
        return ""
    error = (info.last_error_message or "it does not say why")[:200]
    return (
        f"Telegram cannot deliver to the webhook ({error}); {info.pending_update_count} updates wait there. Look whether "
        f"{urlsplit(info.url).netloc} can be reached from outside, by HTTPS, with a certificate that is known."
    )


def taken_words(was: str, times: int) -> str:
    """That the webhook was not ours any more. Pure."""
    what = f"pointed to {urlsplit(was).netloc or 'another address'}" if was else "taken away"
    often = f" ({times} times)" if times > 1 else ""
    return (
        f"The webhook was {what}{often} by another program that has this bot's token; it is set again. Stop that program (a second "
        "gateway that polls?), or give the bot a new token (@BotFather, /revoke)."
    )


class Webhook:
    """The webhook of one bot. `take` says whether an update is in a table: only then Telegram is told so."""

    def __init__(
        self, settings: TelegramSection, bot: Bot, clock: Clock, take: Callable[[object], Awaitable[bool]]
    ) -> None:
        self.deaf_words = ""
        """Why nothing comes in just now; empty if it does."""
        self._account = settings.account
        self._path = f"/telegram/{self._account}"
        self._url = settings.webhook_url.rstrip("/") + self._path
        """Where it has to point."""
        self._secret = revealed(settings.webhook_secret)
        self._look_seconds = settings.webhook_look_seconds
        self._bot = bot
        self._clock = clock
        self._take = take
        self._taken = ""
        self._times = 0
        self._at = 0.0

    @property
    def words(self) -> str:
        """What happened to it lately."""
        return self._taken if self._times and self._clock.monotonic() - self._at < TOLD_SECONDS else ""

    async def set(self) -> None:
        """Have it point to us. Raises `CallFailed`."""
        await TelegramPort.asked(
            self._bot.set_webhook(
                self._url,
                secret_token=self._secret,
                allowed_updates=UPDATES,
                max_connections=1,  # so that they come in order
                drop_pending_updates=False,
            )
        )
        self.deaf_words = ""

    async def watch(self) -> None:
        """Look now and then whether it is still ours: whoever has the token can take it away, and nothing tells us. Raises `CallFailed`."""
        failed = 0
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                info = await TelegramPort.asked(self._bot.get_webhook_info())
            except CallFailed as error:
                if error.fate is Fate.REFUSED and error.cause is not Cause.NOT_LET_IN:
                    log.warning("telegram.not_done", what="webhook look", words=error.words)
                    await asyncio.Event().wait()  # a server that does not know the call
                failed += 1
                if failed >= MOST_LOOKS_FAILED:
                    raise
                continue
            failed = 0
            if self._looked(info):
                await self.set()

    def _looked(self, info: Info) -> bool:
        """What a look has shown; whether the webhook has to be set again."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        if info.url == self._url:
            self.deaf_words = unreachable_words(info, now)
            if self.deaf_words:
                log.warning("telegram.webhook_fails", account=self._account, words=self.deaf_words)
            return False
        self._times = self._times + 1 if self.words else 1
        self._taken = self.deaf_words = taken_words(info.url, self._times)
        self._at = self._clock.monotonic()
        log.error("telegram.webhook_taken", account=self._account, words=self._taken, times=self._times)
        return True

    def routes(self) -> list[web.RouteDef]:
        return [web.post(self._path, self.call)]

    async def call(self, request: web.Request) -> web.Response:
        """What Telegram is told: 200 when it is in a table, 503 when it has to come again."""
        given = request.headers.get(SECRET_HEADER, "").encode()
        if not hmac.compare_digest(given, self._secret.encode()):
            log.warning("telegram.odd_call", status=403)
            return web.Response(status=403)
        if (request.content_length or 0) > MAX_BODY_BYTES:
            log.warning("telegram.odd_call", status=413)
            return web.Response(status=413, text="An update has at most half a megabyte; this is none.")
        body = await request.read()
        try:
            update: object = json.loads(body)
        except (ValueError, RecursionError):
            update = body.decode("utf-8", "replace")  # it has the secret word: kept, like all that cannot be read
        return web.Response(status=200 if await self._take(update) else 503)
