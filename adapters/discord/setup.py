"""Setting up a Discord bot: its token; application id and invitation follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from pydantic import SecretStr

from adapters.contract.platforms import PAIRING, Asker, Key, Wanted
from adapters.discord.check import PORTAL, DiscordSeen, check

if TYPE_CHECKING:
    from adapters.discord.adapter import DiscordSettings


class Section(Protocol):
    """The section of the configuration as it is."""

    @property
    def token(self) -> SecretStr | None: ...

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self: ...

    def settings(self) -> DiscordSettings: ...


def ask(now: Section, asker: Asker) -> Wanted | None:
    """The steps, with `now` as what is there already."""
    if asker.asks:
        asker.say(
            f"\nOpen {PORTAL}, New Application. Under Bot: switch on Message Content Intent, Save Changes, and Reset Token gives the token."
        )
    values: dict[Key, str] = {}

    def settings() -> DiscordSettings:
        return now.model_copy(update={"token": SecretStr(values["discord", "token"])}).settings()

    def attempt() -> DiscordSeen | None:
        token = asker.secret("discord", "token", "Token", now.token, needed=not asker.asks)
        if not token:
            return None
        values["discord", "token"] = token
        return asker.look(check(settings()))

    seen = asker.tried(attempt)
    if seen is None:
        return None
    seen = asker.until(seen, "discord.intent", lambda: check(settings()))
    return Wanted(
        values,
        (f"\nInvite the bot into your server: {seen.invite}", f"Then mention it, or write to it in private. {PAIRING}"),
    )
