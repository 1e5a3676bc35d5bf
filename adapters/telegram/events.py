"""The lines of the log that only Telegram's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import DISK, LATER, log_event

EVENTS = (
    log_event("telegram.ready", "info", "The bot is known by its name.", "bot account"),
    log_event("telegram.webhook_removed", "info", "A webhook that would take all updates was removed.", "was"),
    log_event("telegram.conflict", "warning", "Somebody else asks for this bot's updates.", "account words times",
              "Two gateways with one token disturb each other: stop one of them.", by="account", everyone=True),
    log_event("telegram.poll_failed", "warning", "Telegram was asked for updates in vain.", "account words times", LATER, by="account", connection=True),
    log_event("telegram.not_done", "warning", "Something that the bot can live without was refused.", "what words",
              "Nothing with a Bot API server that does not know it.", by="what"),
    log_event("telegram.not_stored", "warning", "An update is not confirmed, because it cannot be stored; it comes again.", "words", DISK),
    log_event("telegram.odd_call", "warning", "A call at the webhook was refused: without the secret word (403), or far too large (413).", "status",
              "Nothing, unless the bot does not answer: then see whether a proxy leaves out Telegram's header.", by="status"),
    log_event("telegram.webhook_taken", "error", "The webhook was taken away or pointed elsewhere; it is set again.", "account words times",
              "Stop the other program that has the bot's token, or give the bot a new token.", by="account"),
    log_event("telegram.webhook_fails", "warning", "Telegram cannot deliver what waits for the webhook.", "account words",
              "See whether the address in [telegram] webhook_url can be reached from outside.", by="account"),
    log_event("telegram.press_not_answered", "debug", "A button's press was acted on, but the button still spins.", "words"),
)  # fmt: skip
