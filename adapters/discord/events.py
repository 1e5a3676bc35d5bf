"""The lines of the log that only Discord's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import BUG, DISK, LATER, log_event

EVENTS = (
    log_event("discord.menu_not_set", "warning", "The slash commands could not be registered.", "words",
              "`outspoken doctor` checks the bot's scopes."),
    log_event("discord.odd_event", "error", "An event that is no person's doing (or has no number) cannot be read; passed over.", "event_kind error", BUG,
              by="event_kind"),
    log_event("discord.not_stored", "warning", "A message cannot be stored yet; tried again.", "words", DISK),
    log_event("discord.no_thread", "warning", "No thread could be begun; the answer goes into the channel.", "words",
              "Give the bot the right to create threads."),
    log_event("discord.channels_not_read", "warning", "More channels than are looked into were missed; these are not read.", "channels",
              "Nothing is lost that is said from now on. If it comes often, see why connections do not stand."),
    log_event("discord.chat_not_noted", "info", "The private chat with somebody who may talk could not be looked up.", "words"),
    log_event("discord.heard_not_noted", "info", "How far Discord was listened to could not be stored; more is read after a gap.", "words"),
    log_event("discord.gap_too_long", "warning", "More was said in a channel than is read after a gap.", "channel read",
              "Tell the people there to say again what was not answered."),
    log_event("discord.press_not_answered", "info warning", "A button's press was acted on, but not acknowledged in time.", "words", LATER),
    log_event("discord.probe_failed", "debug", "The look whether the connection lives failed.", "error"),
)  # fmt: skip
