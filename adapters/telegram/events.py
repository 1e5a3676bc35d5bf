"""The lines of the log that only Telegram's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import DISK, LATER, LogEvent

EVENTS = (
    LogEvent("telegram.ready", "The bot is known by its name."),
    LogEvent("telegram.webhook_removed", "A webhook that would take all updates was removed."),
    LogEvent("telegram.conflict", "Somebody else asks for this bot's updates.",
             "Two gateways with one token disturb each other: stop one of them.", by="account", everyone=True),
    LogEvent("telegram.poll_failed", "Telegram was asked for updates in vain.", LATER, by="account", connection=True),
    LogEvent("telegram.not_done", "Something that the bot can live without was refused.", "Nothing with a Bot API server that does not know it.", by="what"),
    LogEvent("telegram.not_stored", "An update is not confirmed, because it cannot be stored; it comes again.", DISK),
    LogEvent("telegram.odd_call", "A call at the webhook was refused: without the secret word (403), or far too large (413).",
             "Nothing, unless the bot does not answer: then see whether a proxy leaves out Telegram's header.", by="status"),
    LogEvent("telegram.webhook_taken", "The webhook was taken away or pointed elsewhere; it is set again.",
             "Stop the other program that has the bot's token, or give the bot a new token.", by="account"),
    LogEvent("telegram.webhook_fails", "Telegram cannot deliver what waits for the webhook.",
             "See whether the address in [telegram] webhook_url can be reached from outside.", by="account"),
    LogEvent("telegram.press_not_answered", "A button's press was acted on, but the button still spins."),
)  # fmt: skip
