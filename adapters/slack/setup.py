"""Setting up a Slack app: the bot's token, and the app-level token for Socket Mode (or the signing secret, if that is given)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pydantic import SecretStr

from adapters.contract.platforms import PAIRING, Asker, Key, Wanted
from adapters.slack.check import SlackSeen, check
from adapters.slack.manifest import new_app_url

if TYPE_CHECKING:
    from adapters.slack.adapter import SlackSettings


class Settings(Protocol):
    """What the app's adapter is told, with these tokens in place of those that are there."""

    def __call__(self, bot_token: str, *, app_token: str = "", signing_secret: str = "") -> SlackSettings: ...


def ask(
    asker: Asker, bot_token: SecretStr | None, app_token: SecretStr | None, settings_with: Settings
) -> Wanted | None:
    """The steps, with the tokens that are there already."""
    if asker.asks:
        asker.say(f"\nThis address opens Slack's form for a new app, filled in:\n\n{new_app_url()}\n")
        asker.say(
            "Choose your workspace, Create, then Install to Workspace. OAuth & Permissions has the bot token (xoxb-…)."
        )
    values: dict[Key, str] = {}

    def settings() -> SlackSettings:
        app, signing = (values.get(("slack", key), "") for key in ("app_token", "signing_secret"))
        return settings_with(values["slack", "bot_token"], app_token=app, signing_secret=signing)

    def attempt() -> SlackSeen | None:
        values.clear()
        token = asker.secret("slack", "bot_token", "Bot token (xoxb-…)", bot_token, needed=not asker.asks)
        if not token:
            return None
        values["slack", "bot_token"] = token
        signing = asker.value("slack", "signing_secret")
        if signing and not asker.value("slack", "app_token"):
            values["slack", "signing_secret"] = signing
            return asker.look(check(settings()))
        if asker.asks and not asker.value("slack", "app_token"):
            asker.say("Basic Information, App-Level Tokens, Generate: any name, the scope connections:write.")
        app = asker.secret("slack", "app_token", "App-level token (xapp-…)", app_token, needed=not asker.asks)
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
