"""The lines of the log that only Discord's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import BUG, DISK, LATER, LogEvent

EVENTS = (
    LogEvent("discord.menu_not_set", "The slash commands could not be registered.", "`outspoken doctor` checks the bot's scopes."),
    LogEvent("discord.odd_event", "An event that is no person's doing (or has no number) cannot be read; passed over.", BUG, by="event_kind"),
    LogEvent("discord.not_stored", "A message cannot be stored yet; tried again.", DISK),
    LogEvent("discord.no_thread", "No thread could be begun; the answer goes into the channel.", "Give the bot the right to create threads."),
    LogEvent("discord.channels_not_read", "More channels than are looked into were missed; these are not read.",
             "Nothing is lost that is said from now on. If it comes often, see why connections do not stand."),
    LogEvent("discord.chat_not_noted", "The private chat with somebody who may talk could not be looked up."),
    LogEvent("discord.heard_not_noted", "How far Discord was listened to could not be stored; more is read after a gap."),
    LogEvent("discord.gap_too_long", "More was said in a channel than is read after a gap.", "Tell the people there to say again what was not answered."),
    LogEvent("discord.press_not_answered", "A button's press was acted on, but not acknowledged in time.", LATER),
    LogEvent("discord.probe_failed", "The look whether the connection lives failed."),
)  # fmt: skip
