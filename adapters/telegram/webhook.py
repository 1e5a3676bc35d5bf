"""Whether the webhook is still ours, in words. Whoever has the bot's token can take it away or point it elsewhere; a program that polls does so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import urlsplit

import structlog

from agent_core.ports import Clock

log = structlog.get_logger("telegram")

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


def unreachable_words(info: Info, now: datetime) -> str:
    """Why Telegram cannot deliver what waits; empty if it can, as far as is known. Pure."""
    at = info.last_error_date
    if not info.pending_update_count or at is None or (now - at).total_seconds() > RECENT_SECONDS:
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


class WebhookWatch:
    """Remembers what looks have shown."""

    def __init__(self, account: str, url: str, clock: Clock) -> None:
        self.url = url
        """Where it has to point."""
        self.deaf_words = ""
        """Why nothing comes in just now; empty if it does."""
        self._account = account
        self._clock = clock
        self._taken = ""
        self._times = 0
        self._at = 0.0

    @property
    def words(self) -> str:
        """What happened to it lately."""
        return self._taken if self._times and self._clock.monotonic() - self._at < TOLD_SECONDS else ""

    def looked(self, info: Info) -> bool:
        """What a look has shown; whether the webhook has to be set again."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        if info.url == self.url:
            self.deaf_words = unreachable_words(info, now)
            if self.deaf_words:
                log.warning("telegram.webhook_fails", account=self._account, words=self.deaf_words)
            return False
        self._times = self._times + 1 if self.words else 1
        self._taken = self.deaf_words = taken_words(info.url, self._times)
        self._at = self._clock.monotonic()
        log.error("telegram.webhook_taken", account=self._account, words=self._taken, times=self._times)
        return True

    def set_again(self) -> None:
        """It is ours again."""
        self.deaf_words = ""
