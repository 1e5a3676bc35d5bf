"""Slack, to the rest of the program: its section of the configuration, and its record."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from adapters.checks.findings import REMOTE_SECONDS, Check, Seen
from adapters.contract.logevents import BUG, DISK, LATER, LogEvent
from adapters.contract.platforms import Asker, Built, CheckContext, Pieces, Platform, Proof, SetupResult
from adapters.slack.section import SlackSection

if TYPE_CHECKING:
    from adapters.contract.chat import ChatIntake
    from agent_core.ports import Clock

EVENTS = (
    LogEvent("slack.not_stored", "An event is not acknowledged, because it cannot be stored; it comes again.", DISK),
    LogEvent("slack.bolt_answered", "Slack's library answered a call or an event that the gateway was not shown; it is not acknowledged and comes again.", BUG),
    LogEvent("slack.odd_event", "A message of the history has no number; passed over.", BUG),
    LogEvent("slack.odd_call", "A call at the events address was refused: not signed (401), or far too large (413).",
             "Nothing, unless the app does not answer: then compare the signing secret (api.slack.com/apps, Basic Information).", by="status"),
    LogEvent("slack.envelope_failed", "A mistake while an envelope was taken in; it is not acknowledged and comes again.", BUG),
    LogEvent("slack.name_not_known", "A person's name could not be had; their id stands in for it."),
    LogEvent("slack.gap_too_long", "More was said in a conversation than is read at once after a gap; the rest is read a part after the other.",
             "Nothing is lost, but what was said last in that conversation is answered late."),
    LogEvent("slack.gap_too_wide", "More places were missed than are looked into at once; the others are one after the other, and when something is said there.",
             "Nothing is lost, but what was missed in a quiet place may be answered late. If it comes often, see why sockets do not stand."),
    LogEvent("slack.no_sessions", "The workspace has no agent sessions: their status is not set any more."),
    LogEvent("slack.no_stop_button", "Slack shows no stop button, because the app does not subscribe to its event."),
    LogEvent("slack.no_streams", "The workspace refuses streams: text on its way comes as edits."),
    LogEvent("slack.odd_frame", "A socket sent something that is no JSON.", LATER),
    LogEvent("slack.prompts_not_shown", "Suggestions could not be shown."),
    LogEvent("slack.socket_broken", "A socket ended without a word; another takes its place."),
    LogEvent("slack.socket_not_opened", "A further socket could not be opened; tried again."),
    LogEvent("slack.not_looked_at", "Whether a message by our own app is ours could not be looked at."),
    LogEvent("slack.status_not_shown", "What the agent does could not be shown."),
    LogEvent("slack.two_gateways", "A message by our own app that we did not send: another gateway has its token.",
             "Stop one of the two, or give one an app of its own.", by="account", everyone=True),
)  # fmt: skip


class Slack(SlackSection):
    """The Slack app. It is on as soon as there is a bot token."""

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        from adapters.slack.adapter import SlackAdapter
        from adapters.slack.port import ACCOUNT_RATE, CHAT_RATE

        return Built(SlackAdapter(self, intake, clock), ACCOUNT_RATE, lambda _: CHAT_RATE)

    @override
    def checks(self, around: CheckContext) -> Sequence[Check]:
        async def look() -> Seen:
            from adapters.slack.check import check

            return await check(self, open_socket=not around.runs)

        return (Check("slack", REMOTE_SECONDS, look, "Slack"),)

    @override
    def ask(self, asker: Asker) -> SetupResult | None:
        from adapters.slack.check import ask

        return ask(asker, self)


def _pieces() -> Pieces:
    from adapters.slack.pieces import pieces

    return pieces


def _manifest() -> str:
    from adapters.slack.manifest import as_yaml

    return as_yaml()


def _written_at(text: str) -> int | None:
    stamp = re.fullmatch(r"(\d{10})\.(\d{6})", text)
    return int(stamp[1]) * 1000 + int(stamp[2]) // 1000 if stamp else None


def _moved_on(last_seen: str, at_ms: int) -> str:
    try:
        return f"{max(float(last_seen), at_ms / 1000):.6f}"
    except ValueError:
        return last_seen


PLATFORM = Platform(
    name="slack",
    title="Slack",
    place=30,
    page="slack.md",
    packages=("slack-bolt", "slack-sdk"),
    section=Slack,
    setup_keys=("bot_token", "app_token", "signing_secret"),
    forms={"deploy/slack-manifest.yaml": _manifest},
    pieces=_pieces,
    chat_id=r"[A-Z][A-Z0-9]{2,}",
    written_at=_written_at,
    moved_on=_moved_on,
    cards=True,
    blocked_words=("user_not_found", "user_disabled"),
    proofs={
        "X-Slack-Signature": Proof(401),
        "X-Slack-Request-Timestamp": Proof(401, "[0-9]{1,12}", "is no time"),
    },
    events=EVENTS,
)
