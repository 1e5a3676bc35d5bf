"""Setting up a Telegram bot: its token; with an address of our own, also the word by which Telegram's calls are known."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import SecretStr

from adapters.contract.platforms import PAIRING, Asker, Key, Wanted
from adapters.telegram.check import FATHER, TelegramSeen, check

if TYPE_CHECKING:
    from adapters.telegram.adapter import TelegramSettings


def ask(asker: Asker, present: SecretStr | None, settings: Callable[[str], TelegramSettings]) -> Wanted | None:
    """The steps, with the token that is there already; `settings` are those with another one."""
    if asker.asks:
        asker.say(f"\nOpen {FATHER}, write /newbot, and give it a name and a user name. It answers with a token.")
    values: dict[Key, str] = {}

    def attempt() -> TelegramSeen | None:
        token = asker.secret("telegram", "token", "Token", present, needed=not asker.asks)
        if not token:
            return None
        values["telegram", "token"] = token
        return asker.look(check(settings(token)))

    seen = asker.tried(attempt)
    if seen is None:
        return None
    if url := asker.value("telegram", "webhook_url"):
        values["telegram", "webhook_url"] = url
        values["telegram", "webhook_secret"] = asker.value("telegram", "webhook_secret") or secrets.token_urlsafe(32)
    return Wanted(values, (f"\nYour bot is at {seen.link} – write to it. {PAIRING}",))
