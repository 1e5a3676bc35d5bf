"""Discord's section of the configuration: its keys, of their own because the adapter reads them as well."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Annotated

from pydantic import Field
from typing_extensions import override

from adapters.contract.platforms import Amiss, ChatSection
from adapters.contract.settings import FromOutside, Proxy, Secret, Unit, Url, Usual, revealed


class DiscordSection(ChatSection):
    """Its keys, and what they say by themselves."""

    token: Annotated[Secret | None, Usual(("DISCORD_BOT_TOKEN",)), FromOutside("token_file")] = None
    """The bot's token, from the Developer Portal."""
    token_file: Path | None = Field(default=None, examples=["discord.token"])
    """File that holds the token."""
    auto_threads: bool = False
    """Answer a mention in a channel in a thread of its own, which is a conversation of its own."""
    shards: Annotated[int, Unit("connections")] = Field(default=0, ge=0, le=1000)
    """Connections to divide the servers over; 0 lets one connection serve all."""
    api_base: Url = Field(default="", examples=["http://127.0.0.1:9/api/v10"])
    """Address of the REST API with its version, if it is not Discord's own."""
    gateway_url: str = Field(default="", examples=["ws://127.0.0.1:9/"])
    """Address of the gateway (websocket), if it is not Discord's own."""
    proxy: Proxy = Field(default="", repr=False, examples=["http://proxy.example.org:3128"])
    """Proxy for calls to Discord."""

    @property
    @override
    def amiss(self) -> Amiss | None:
        if self.token is None or revealed(self.token).count(".") == 2:
            return None
        return Amiss(
            "token",
            "token is not a bot's token, which has three parts with dots between",
            "Copy it from the Developer Portal again (Bot, Reset Token).",
        )

    @property
    @override
    def configured(self) -> bool:
        return self.token is not None

    @property
    def account(self) -> str:
        """The bot's id, which its token begins with."""
        return account_of(revealed(self.token)) or "bot"


def account_of(token: str) -> str:
    """The bot's id in a token; empty if there is none."""
    first = token.partition(".")[0]
    try:
        number = base64.b64decode(first + "=" * (-len(first) % 4)).decode()
    except ValueError:  # also for letters that are no ASCII
        return ""
    return number if number.isdigit() else ""
