"""The configuration of chat platforms: sections ``[telegram]`` and what all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from adapters.slack.inbound import Direct
from gateway.chats.routing import Respond
from gateway.config.types import FromOutside, Secret, Section, Texts, Url, Usual, complaint, parsed_json

Responds = Annotated[dict[str, Respond], BeforeValidator(parsed_json)]


class ChatSection(Section):
    """What every chat platform has."""

    allow: Texts = Field(
        default=(),
        description="Who may talk to the bot: ids, or user names with @. Everybody else needs a pairing code, or is refused.",
        examples=[["12345678", "@ada"]],
    )
    admins: Texts = Field(
        default=(), description="Who may also approve others, in the chat itself.", examples=[["12345678"]]
    )
    open: bool = Field(
        default=False,
        description="Let everybody talk to the bot. Think of who pays for it, and of what its tools can reach.",
    )
    pairing: bool = Field(
        default=True,
        description="Show strangers a code with which whoever runs the gateway can let them in (outspoken access approve CODE).",
    )
    groups: Respond = Field(
        default=Respond.MENTION,
        description="When the bot answers in groups: if it is mentioned or replied to, always, or never.",
    )
    chats: Responds = Field(
        default_factory=dict, description="The same for single chats, by their id.", examples=[{"-1001234": "always"}]
    )
    by_person: bool = Field(default=False, description="In groups, each person has a conversation of their own.")
    per_minute: int = Field(
        default=20, ge=0, le=10_000, description="Messages that a person may send in a minute; 0: no limit."
    )


class People(Section):
    """People who talk to the bot from several accounts."""

    link: bool = Field(
        default=False,
        description="Let people join their accounts by a code (/link), and continue a private conversation in another chat (/resume).",
    )


class Telegram(ChatSection):
    """The Telegram bot. It is on as soon as there is a token."""

    token: Annotated[Secret | None, Usual(("TELEGRAM_BOT_TOKEN",)), FromOutside("token_file")] = Field(
        default=None, description="The token that @BotFather gave."
    )
    token_file: Path | None = Field(default=None, description="File that holds the token.", examples=["telegram.token"])
    api_base: Url = Field(
        default="https://api.telegram.org", description="Address of the Bot API, if you run a server of it yourself."
    )
    drafts: bool = Field(default=True, description="Show answers on their way as drafts, in private chats.")
    poll_seconds: int = Field(
        default=25, ge=1, le=50, description="Seconds that one request for updates waits for some."
    )
    webhook_url: Url = Field(
        default="",
        description="Public address of this gateway, at which Telegram can call it. Empty: the bot asks for updates itself.",
        examples=["https://chat.example.org"],
    )
    webhook_secret: Annotated[Secret | None, FromOutside("webhook_secret_file")] = Field(
        default=None, description="Word by which Telegram's calls are known (letters, digits, _ and -)."
    )
    webhook_secret_file: Path | None = Field(
        default=None, description="File that holds that word.", examples=["telegram-webhook.secret"]
    )
    webhook_look_seconds: int = Field(
        default=60,
        ge=1,
        le=3600,
        description="Seconds after which it is looked again whether the webhook is still set: whoever has the token can take it away.",
    )
    proxy: str = Field(
        default="", repr=False, description="Proxy for calls to Telegram.", examples=["http://proxy.example.org:3128"]
    )

    @model_validator(mode="after")
    def _usable(self) -> Telegram:
        if self.token is not None:
            number, colon, rest = self.token.get_secret_value().partition(":")
            if not (number.isascii() and number.isdigit() and colon and rest):
                raise complaint(
                    "token",
                    "token is not a bot's token, which looks like 123456789:ABC…",
                    "Copy it from @BotFather again (/mybots, API Token).",
                )
        if self.webhook_url and self.webhook_secret is None:
            raise complaint(
                "webhook_secret",
                "webhook_url is set, and no webhook_secret, so anybody could pretend to be Telegram",
                "Set OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET to a long random word.",
            )
        return self


class Discord(ChatSection):
    """The Discord bot. It is on as soon as there is a token."""

    token: Annotated[Secret | None, Usual(("DISCORD_BOT_TOKEN",)), FromOutside("token_file")] = Field(
        default=None, description="The bot's token, from the Developer Portal."
    )
    token_file: Path | None = Field(default=None, description="File that holds the token.", examples=["discord.token"])
    auto_threads: bool = Field(
        default=False,
        description="Answer a mention in a channel in a thread of its own, which is a conversation of its own.",
    )
    shards: int = Field(
        default=0, ge=0, le=1000, description="Connections to divide the servers over; 0 lets one connection serve all."
    )
    api_base: Url = Field(
        default="",
        description="Address of the REST API with its version, if it is not Discord's own.",
        examples=["http://127.0.0.1:9/api/v10"],
    )
    gateway_url: str = Field(
        default="",
        description="Address of the gateway (websocket), if it is not Discord's own.",
        examples=["ws://127.0.0.1:9/"],
    )
    proxy: str = Field(
        default="", repr=False, description="Proxy for calls to Discord.", examples=["http://proxy.example.org:3128"]
    )

    @model_validator(mode="after")
    def _usable(self) -> Discord:
        if self.token is not None and self.token.get_secret_value().count(".") != 2:
            raise complaint(
                "token",
                "token is not a bot's token, which has three parts with dots between",
                "Copy it from the Developer Portal again (Bot, Reset Token).",
            )
        return self


class Slack(ChatSection):
    """The Slack app. It is on as soon as there is a bot token."""

    bot_token: Annotated[Secret | None, Usual(("SLACK_BOT_TOKEN",)), FromOutside("bot_token_file")] = Field(
        default=None, description="The bot token (xoxb-…)."
    )
    bot_token_file: Path | None = Field(
        default=None, description="File that holds the bot token.", examples=["slack.token"]
    )
    app_token: Annotated[Secret | None, Usual(("SLACK_APP_TOKEN",)), FromOutside("app_token_file")] = Field(
        default=None,
        description="The app-level token (xapp-…), for Socket Mode. Without it, Slack calls /slack/events.",
    )
    app_token_file: Path | None = Field(
        default=None, description="File that holds the app-level token.", examples=["slack-app.token"]
    )
    signing_secret: Annotated[Secret | None, FromOutside("signing_secret_file")] = Field(
        default=None, description="The signing secret, by which Slack's calls are known. Not needed for Socket Mode."
    )
    signing_secret_file: Path | None = Field(
        default=None, description="File that holds the signing secret.", examples=["slack-signing.secret"]
    )
    api_base: Url = Field(
        default="",
        description="Address of the Web API, if it is not Slack's own.",
        examples=["http://127.0.0.1:9/slack"],
    )
    proxy: str = Field(
        default="", repr=False, description="Proxy for calls to Slack.", examples=["http://proxy.example.org:3128"]
    )
    sockets: int = Field(
        default=2,
        ge=1,
        le=10,
        description="Sockets that are open at once in Socket Mode, so that one can go without a gap. Slack allows an app ten, over all processes.",
    )
    direct: Direct = Field(
        default=Direct.ONE,
        description="Direct messages: one (each answered in its own thread, all of them one conversation), threads (each thread a conversation of its own), flat (no threads, and so no streams, status and stop button).",
    )
    streams: bool = Field(
        default=True, description="Show answers on their way by Slack's own streams, where it has them."
    )
    feedback: bool = Field(default=True, description="Put buttons for good and bad under answers.")
    prompts: Texts = Field(
        default=("What can you do?", "Summarise a text that I paste", "Explain an error message to me"),
        description="Suggestions for who opens the app's messages; at most four, none if empty.",
        examples=[["What can you do?"]],
    )

    @model_validator(mode="after")
    def _usable(self) -> Slack:
        if self.bot_token is not None and not self.bot_token.get_secret_value().startswith("xox"):
            raise complaint(
                "bot_token",
                "bot_token is not a bot token, which begins with xoxb-",
                "Copy it again from OAuth & Permissions.",
            )
        if self.bot_token is not None and self.app_token is None and self.signing_secret is None:
            raise complaint(
                "app_token",
                "there is neither an app_token (Socket Mode) nor a signing_secret, so Slack could not be listened to safely",
                "Set SLACK_APP_TOKEN, or OUTSPOKEN_SLACK__SIGNING_SECRET if Slack is to call this gateway.",
            )
        return self
