"""Slack's section of the configuration: its keys, of their own because the adapter reads them as well."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from typing_extensions import override

from adapters.contract.platforms import Amiss, ChatSection
from adapters.contract.settings import FromOutside, Proxy, Secret, Texts, Unit, Url, Usual, complaint, revealed


class Direct(StrEnum):
    """How direct messages are answered."""

    ONE = "one"
    """Each in a thread of its own, as Slack's agents do it; all of them are one conversation."""
    THREADS = "threads"
    """Each in a thread of its own, which is a conversation of its own."""
    FLAT = "flat"
    """Beside each other, without threads: then there are no streams and no stop button."""


class SlackSection(ChatSection):
    """Its keys, and what they say by themselves."""

    bot_token: Annotated[Secret | None, Usual(("SLACK_BOT_TOKEN",)), FromOutside("bot_token_file")] = None
    """The bot token (xoxb-…)."""
    bot_token_file: Path | None = Field(default=None, examples=["slack.token"])
    """File that holds the bot token."""
    app_token: Annotated[Secret | None, Usual(("SLACK_APP_TOKEN",)), FromOutside("app_token_file")] = None
    """The app-level token (xapp-…), for Socket Mode. Without it, Slack calls /slack/events."""
    app_token_file: Path | None = Field(default=None, examples=["slack-app.token"])
    """File that holds the app-level token."""
    signing_secret: Annotated[Secret | None, FromOutside("signing_secret_file")] = None
    """The signing secret, by which Slack's calls are known. Not needed for Socket Mode."""
    signing_secret_file: Path | None = Field(default=None, examples=["slack-signing.secret"])
    """File that holds the signing secret."""
    api_base: Url = Field(default="", examples=["http://127.0.0.1:9/slack"])
    """Address of the Web API, if it is not Slack's own."""
    proxy: Proxy = Field(default="", repr=False, examples=["http://proxy.example.org:3128"])
    """Proxy for calls to Slack."""
    sockets: Annotated[int, Unit("sockets")] = Field(default=2, ge=1, le=10)
    """Sockets that are open at once in Socket Mode, so that one can go without a gap. Slack allows an app ten, over all
    processes."""
    spread: bool = False
    """Share the sockets among several gateways, instead of one gateway having all. Then some socket is always open when a gateway
    dies; but what the dead one was told last may come after what was said later."""
    direct: Direct = Direct.ONE
    """Direct messages: one (each answered in its own thread, all of them one conversation), threads (each thread a conversation of
    its own), flat (no threads, and so no streams, status and stop button)."""
    streams: bool = True
    """Show answers on their way by Slack's own streams, where it has them."""
    feedback: bool = True
    """Put buttons for good and bad under answers."""
    prompts: Texts = Field(
        default=("What can you do?", "Summarise a text that I paste", "Explain an error message to me"),
        examples=[["What can you do?"]],
    )
    """Suggestions for who opens the app's messages; at most four, none if empty."""

    @model_validator(mode="after")
    def _usable(self) -> SlackSection:
        if self.bot_token is not None and self.app_token is None and self.signing_secret is None:
            raise complaint(
                "app_token",
                "there is neither an app_token (Socket Mode) nor a signing_secret, so Slack could not be listened to safely",
                "Set SLACK_APP_TOKEN, or OUTSPOKEN_SLACK__SIGNING_SECRET if Slack is to call this gateway.",
            )
        return self

    @property
    @override
    def amiss(self) -> Amiss | None:
        if not revealed(self.bot_token).startswith("xox"):
            what = "bot_token is not a bot token, which begins with xoxb-"
            return Amiss("bot_token", what, "Copy it again from OAuth & Permissions.")
        if self.app_token is not None and not revealed(self.app_token).startswith("xapp-"):
            what = "app_token is not an app-level token, which begins with xapp-"
            return Amiss("app_token", what, "Copy it again from Basic Information, App-Level Tokens.")
        return None

    @property
    @override
    def configured(self) -> bool:
        return self.bot_token is not None

    @property
    def account(self) -> str:
        """The workspace and the app, whose numbers a bot's token holds."""
        found = re.match(r"xox[a-z]-(\d+)-(\d+)-", revealed(self.bot_token))
        return f"{found[1]}-{found[2]}" if found else "workspace"
