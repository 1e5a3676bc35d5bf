"""The lines of the log that only Slack's adapter writes. See `adapters/contract/logevents.py`."""

from __future__ import annotations

from adapters.contract.logevents import BUG, DISK, LATER, log_event

EVENTS = (
    log_event("slack.not_stored", "warning", "An event is not acknowledged, because it cannot be stored; it comes again.", "words", DISK),
    log_event("slack.bolt_answered", "error", "Slack's library answered a call or an event that the gateway was not shown; it is not acknowledged and comes again.",
              "status", BUG),
    log_event("slack.odd_event", "error", "A message of the history has no number; passed over.", "error", BUG),
    log_event("slack.odd_call", "warning", "A call at the events address was refused: not signed (401), or far too large (413).", "status",
              "Nothing, unless the app does not answer: then compare the signing secret (api.slack.com/apps, Basic Information).", by="status"),
    log_event("slack.envelope_failed", "error", "A mistake while an envelope was taken in; it is not acknowledged and comes again.", "", BUG),
    log_event("slack.name_not_known", "info", "A person's name could not be had; their id stands in for it.", "words"),
    log_event("slack.gap_too_long", "warning", "More was said in a conversation than is read after a gap.", "channel thread read",
              "Tell the people there to say again what was not answered."),
    log_event("slack.gap_too_wide", "warning", "More places were missed than are looked into at once; the others are when something is said there.", "channels threads",
              "Nothing is lost that is said from now on, nor what was missed where somebody writes again. If it comes often, see why sockets do not stand."),
    log_event("slack.no_sessions", "info", "The workspace has no agent sessions: their status is not set any more.", "words"),
    log_event("slack.no_stop_button", "info", "Slack shows no stop button, because the app does not subscribe to its event.", "words"),
    log_event("slack.no_streams", "info", "The workspace refuses streams: text on its way comes as edits.", "words"),
    log_event("slack.odd_frame", "warning", "A socket sent something that is no JSON.", "", LATER),
    log_event("slack.prompts_not_shown", "info", "Suggestions could not be shown.", "words"),
    log_event("slack.socket_broken", "info", "A socket ended without a word; another takes its place.", "error"),
    log_event("slack.socket_not_opened", "info", "A further socket could not be opened; tried again.", "words"),
    log_event("slack.status_not_shown", "info", "What the agent does could not be shown.", "words"),
)  # fmt: skip
