"""Setting up a Discord bot: its token; application id and invitation follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import SecretStr

from adapters.contract.platforms import PAIRING, Asker, Key, Wanted
from adapters.discord.check import PORTAL, DiscordSeen, check

if TYPE_CHECKING:
    from adapters.discord.adapter import DiscordSettings


def ask(asker: Asker, present: SecretStr | None, settings: Callable[[str], DiscordSettings]) -> Wanted | None:
    """The steps, with the token that is there already; `settings` are those with another one."""
    if asker.asks:
        asker.say(
            f"\nOpen {PORTAL}, New Application. Under Bot: switch on Message Content Intent, Save Changes, and Reset Token gives the token."
        )
    values: dict[Key, str] = {}

    def attempt() -> DiscordSeen | None:
        token = asker.secret("discord", "token", "Token", present, needed=not asker.asks)
        if not token:
            return None
        values["discord", "token"] = token
        return asker.look(check(settings(token)))

    seen = asker.tried(attempt)
    if seen is None:
        return None
    seen = asker.until(seen, "discord.intent", lambda: check(settings(values["discord", "token"])))
    return Wanted(
        values,
        (f"\nInvite the bot into your server: {seen.invite}", f"Then mention it, or write to it in private. {PAIRING}"),
    )
