"""Telegram's section of the configuration: its keys, of their own because the adapter reads them as well."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import override

from adapters.contract.platforms import Amiss, ChatSection
from adapters.contract.settings import FromOutside, Proxy, Secret, Url, Usual, complaint, revealed

TELEGRAM = "https://api.telegram.org"


class TelegramSection(ChatSection):
    """Its keys, and what they say by themselves."""

    token: Annotated[Secret | None, Usual(("TELEGRAM_BOT_TOKEN",)), FromOutside("token_file")] = None
    """The token that @BotFather gave."""
    token_file: Path | None = Field(default=None, examples=["telegram.token"])
    """File that holds the token."""
    api_base: Url = TELEGRAM
    """Address of the Bot API, if you run a server of it yourself."""
    drafts: bool = True
    """Show answers on their way as drafts, in private chats."""
    poll_seconds: int = Field(default=25, ge=1, le=50)
    """Seconds that one request for updates waits for some."""
    webhook_url: Url = Field(default="", examples=["https://chat.example.org"])
    """Public address of this gateway, at which Telegram can call it. Empty: the bot asks for updates itself."""
    webhook_secret: Annotated[Secret | None, FromOutside("webhook_secret_file")] = None
    """Word by which Telegram's calls are known (letters, digits, _ and -)."""
    webhook_secret_file: Path | None = Field(default=None, examples=["telegram-webhook.secret"])
    """File that holds that word."""
    webhook_look_seconds: int = Field(default=60, ge=1, le=3600)
    """Seconds after which it is looked again whether the webhook is still set: whoever has the token can take it away."""
    proxy: Proxy = Field(default="", repr=False, examples=["http://proxy.example.org:3128"])
    """Proxy for calls to Telegram."""

    @model_validator(mode="after")
    def _usable(self) -> TelegramSection:
        if self.webhook_url and self.webhook_secret is None:
            raise complaint(
                "webhook_secret",
                "webhook_url is set, and no webhook_secret, so anybody could pretend to be Telegram",
                "Set OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET to a long random word.",
            )
        return self

    @property
    @override
    def amiss(self) -> Amiss | None:
        number, colon, rest = revealed(self.token).partition(":")
        if self.token is None or (number.isdigit() and colon and rest):
            return None
        return Amiss(
            "token",
            "token is not a bot's token, which looks like 123456789:ABC…",
            "Copy it from @BotFather again (/mybots, API Token).",
        )

    @property
    @override
    def configured(self) -> bool:
        return self.token is not None

    @property
    def account(self) -> str:
        """The bot's id, which its token begins with."""
        number, colon, _ = revealed(self.token).partition(":")
        return number if colon and number.isascii() and number.isdigit() else "bot"
