"""Setting up a Slack app: the bot's token, and the app-level token for Socket Mode (or the signing secret, if that is given)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from pydantic import SecretStr

from adapters.contract.platforms import PAIRING, Asker, Key, Wanted
from adapters.slack.check import SlackSeen, check
from adapters.slack.manifest import new_app_url

if TYPE_CHECKING:
    from adapters.slack.adapter import SlackSettings


class Section(Protocol):
    """The section of the configuration as it is."""

    @property
    def bot_token(self) -> SecretStr | None: ...

    @property
    def app_token(self) -> SecretStr | None: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self: ...

    def settings(self) -> SlackSettings: ...


def ask(now: Section, asker: Asker) -> Wanted | None:
    """The steps, with `now` as what is there already."""
    if asker.asks:
        asker.say(f"\nThis address opens Slack's form for a new app, filled in:\n\n{new_app_url()}\n")
        asker.say(
            "Choose your workspace, Create, then Install to Workspace. OAuth & Permissions has the bot token (xoxb-…)."
        )
    values: dict[Key, str] = {}

    def settings() -> SlackSettings:
        secret = {key: SecretStr(value) for (_, key), value in values.items() if value}
        return now.model_copy(update={"app_token": None, "signing_secret": None, **secret}).settings()

    def attempt() -> SlackSeen | None:
        values.clear()
        token = asker.secret("slack", "bot_token", "Bot token (xoxb-…)", now.bot_token, needed=not asker.asks)
        if not token:
            return None
        values["slack", "bot_token"] = token
        signing = asker.value("slack", "signing_secret")
        if signing and not asker.value("slack", "app_token"):
            values["slack", "signing_secret"] = signing
            return asker.look(check(settings()))
        if asker.asks and not asker.value("slack", "app_token"):
            asker.say("Basic Information, App-Level Tokens, Generate: any name, the scope connections:write.")
        app = asker.secret("slack", "app_token", "App-level token (xapp-…)", now.app_token, needed=not asker.asks)
        if not app:
            return None
        values["slack", "app_token"] = app
        return asker.look(check(settings()))

    seen = asker.tried(attempt)
    if seen is None:
        return None
    seen = asker.until(seen, "slack.scopes", lambda: check(settings()))
    where = f" in {seen.workspace}" if seen.workspace else ""
    return Wanted(
        values, (f"\nWrite to the app{where} in private, or invite it into a channel and mention it. {PAIRING}",)
    )
