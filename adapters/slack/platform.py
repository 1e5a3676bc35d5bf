"""Slack, to the rest of the program: its section of the configuration, and its record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, SecretStr, model_validator
from typing_extensions import override

from adapters.checks.findings import REMOTE_SECONDS, Check, Seen
from adapters.contract.platforms import Around, Asker, Built, ChatSection, Pieces, Platform, Proof, Wanted
from adapters.contract.settings import FromOutside, Secret, Texts, Unit, Url, Usual, complaint
from adapters.slack.direct import Direct
from adapters.slack.events import EVENTS

if TYPE_CHECKING:
    from adapters.contract.chat import ChatIntake
    from adapters.slack.adapter import SlackSettings
    from agent_core.ports import Clock


class Slack(ChatSection):
    """The Slack app. It is on as soon as there is a bot token."""

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
    proxy: str = Field(default="", repr=False, examples=["http://proxy.example.org:3128"])
    """Proxy for calls to Slack."""
    sockets: Annotated[int, Unit("sockets")] = Field(default=2, ge=1, le=10)
    """Sockets that are open at once in Socket Mode, so that one can go without a gap. Slack allows an app ten, over all
    processes."""
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

    @property
    @override
    def configured(self) -> bool:
        return self.bot_token is not None

    def settings(self) -> SlackSettings:
        """What it says to the adapter."""
        from adapters.slack.adapter import SlackSettings

        return SlackSettings(
            bot_token=self.bot_token.get_secret_value() if self.bot_token else "",
            app_token=self.app_token.get_secret_value() if self.app_token else "",
            signing_secret=self.signing_secret.get_secret_value() if self.signing_secret else "",
            api_base=self.api_base,
            proxy=self.proxy,
            sockets=self.sockets,
            direct=self.direct,
            streams=self.streams,
            feedback=self.feedback,
            prompts=self.prompts,
        )

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        from adapters.slack.adapter import SlackAdapter
        from adapters.slack.port import ACCOUNT_RATE, CHAT_RATE

        return Built(SlackAdapter(self.settings(), intake, clock), ACCOUNT_RATE, lambda _: CHAT_RATE)

    @override
    def checks(self, around: Around) -> Sequence[Check]:
        async def look() -> Seen:
            from adapters.slack.check import check

            return await check(self.settings(), open_socket=not around.runs)

        return (Check("slack", REMOTE_SECONDS, look, "Slack"),)

    @override
    def ask(self, asker: Asker) -> Wanted | None:
        from adapters.slack.setup import ask

        def settings(bot_token: str, *, app_token: str = "", signing_secret: str = "") -> SlackSettings:
            given = {"bot_token": bot_token, "app_token": app_token, "signing_secret": signing_secret}
            secrets = {key: SecretStr(value) if value else None for key, value in given.items()}
            return self.model_copy(update=secrets).settings()

        return ask(asker, self.bot_token, self.app_token, settings)


def _pieces() -> Pieces:
    from adapters.slack.pieces import pieces

    return pieces


def _manifest() -> str:
    from adapters.slack.manifest import as_yaml

    return as_yaml()


def _written_at(text: str) -> int | None:
    stamp = re.fullmatch(r"(\d{10})\.(\d{6})", text)
    return int(stamp[1]) * 1000 + int(stamp[2]) // 1000 if stamp else None


def _moved_on(last_seen: str, at_ms: int) -> str:
    try:
        return f"{max(float(last_seen), at_ms / 1000):.6f}"
    except ValueError:
        return last_seen


PLATFORM = Platform(
    name="slack",
    title="Slack",
    place=30,
    page="slack.md",
    packages=("slack-bolt", "slack-sdk"),
    section=Slack,
    setup_keys=("bot_token", "app_token", "signing_secret"),
    forms={"deploy/slack-manifest.yaml": _manifest},
    pieces=_pieces,
    chat_id=r"[A-Z][A-Z0-9]{2,}",
    written_at=_written_at,
    moved_on=_moved_on,
    cards=True,
    blocked_words=("user_not_found", "user_disabled"),
    proofs={
        "X-Slack-Signature": Proof(401),
        "X-Slack-Request-Timestamp": Proof(401, "[0-9]{1,12}", "is no time"),
    },
    events=EVENTS,
)
