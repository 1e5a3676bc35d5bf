"""The lines of the log that only Slack's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import BUG, DISK, LATER, LogEvent

EVENTS = (
    LogEvent("slack.not_stored", "An event is not acknowledged, because it cannot be stored; it comes again.", DISK),
    LogEvent("slack.bolt_answered", "Slack's library answered a call or an event that the gateway was not shown; it is not acknowledged and comes again.", BUG),
    LogEvent("slack.odd_event", "A message of the history has no number; passed over.", BUG),
    LogEvent("slack.odd_call", "A call at the events address was refused: not signed (401), or far too large (413).",
             "Nothing, unless the app does not answer: then compare the signing secret (api.slack.com/apps, Basic Information).", by="status"),
    LogEvent("slack.envelope_failed", "A mistake while an envelope was taken in; it is not acknowledged and comes again.", BUG),
    LogEvent("slack.name_not_known", "A person's name could not be had; their id stands in for it."),
    LogEvent("slack.gap_too_long", "More was said in a conversation than is read after a gap.", "Tell the people there to say again what was not answered."),
    LogEvent("slack.gap_too_wide", "More places were missed than are looked into at once; the others are when something is said there.",
             "Nothing is lost that is said from now on, nor what was missed where somebody writes again. If it comes often, see why sockets do not stand."),
    LogEvent("slack.no_sessions", "The workspace has no agent sessions: their status is not set any more."),
    LogEvent("slack.no_stop_button", "Slack shows no stop button, because the app does not subscribe to its event."),
    LogEvent("slack.no_streams", "The workspace refuses streams: text on its way comes as edits."),
    LogEvent("slack.odd_frame", "A socket sent something that is no JSON.", LATER),
    LogEvent("slack.prompts_not_shown", "Suggestions could not be shown."),
    LogEvent("slack.socket_broken", "A socket ended without a word; another takes its place."),
    LogEvent("slack.socket_not_opened", "A further socket could not be opened; tried again."),
    LogEvent("slack.status_not_shown", "What the agent does could not be shown."),
)  # fmt: skip
