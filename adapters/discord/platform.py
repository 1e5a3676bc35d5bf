"""Discord, to the rest of the program: its section of the configuration, and its record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from adapters.checks.findings import LOCAL_SECONDS, REMOTE_SECONDS, Check, Seen, warning
from adapters.contract.logevents import BUG, DISK, LATER, LogEvent
from adapters.contract.platforms import Asker, Built, CheckContext, Pieces, Platform, SetupResult
from adapters.discord.section import DiscordSection

if TYPE_CHECKING:
    from adapters.contract.chat import ChatIntake
    from agent_core.ports import Clock

EVENTS = (
    LogEvent("discord.menu_not_set", "The slash commands could not be registered.", "`outspoken doctor` checks the bot's scopes."),
    LogEvent("discord.odd_event", "An event that is no person's doing (or has no number) cannot be read; passed over.", BUG, by="event_kind"),
    LogEvent("discord.not_stored", "A message cannot be stored yet; tried again.", DISK),
    LogEvent("discord.no_thread", "No thread could be begun; the answer goes into the channel.", "Give the bot the right to create threads."),
    LogEvent("discord.gap_too_wide", "More channels were missed than are looked into at once; the others are one after the other, and when something is said there.",
             "Nothing is lost, but what was missed in a quiet channel may be answered late. If it comes often, see why connections do not stand."),
    LogEvent("discord.chat_not_noted", "The private chat with somebody who may talk could not be looked up."),
    LogEvent("discord.heard_not_noted", "How far Discord was listened to could not be stored; more is read after a gap."),
    LogEvent("discord.gap_too_long", "More was said in a channel than is read at once after a gap; the rest is read a part after the other.",
             "Nothing is lost, but what was said last in that channel is answered late."),
    LogEvent("discord.press_not_answered", "A button's press was acted on, but not acknowledged in time.", LATER),
    LogEvent("discord.two_gateways", "A message by our own bot that we did not send: another gateway has its token.",
             "Stop one of the two, or give one a bot of its own.", by="account", everyone=True),
    LogEvent("discord.probe_failed", "The look whether the connection lives failed."),
)  # fmt: skip


EPOCH_MS = 1_420_070_400_000
"""From where Discord's ids (snowflakes) count: https://discord.com/developers/docs/reference#snowflakes."""


class Discord(DiscordSection):
    """The Discord bot. It is on as soon as there is a token."""

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        from adapters.discord.adapter import DiscordAdapter
        from adapters.discord.port import ACCOUNT_RATE, CHAT_RATE

        return Built(DiscordAdapter(self, intake, clock), ACCOUNT_RATE, lambda _: CHAT_RATE)

    @override
    def checks(self, around: CheckContext) -> Sequence[Check]:
        async def look() -> Seen:
            from adapters.discord.check import check

            return await check(self)

        async def proxy() -> Seen:
            return _unheeded_proxy(around.env, self.proxy)

        return (
            Check("discord", REMOTE_SECONDS, look, "Discord"),
            Check("discord.proxy", LOCAL_SECONDS, proxy),
        )

    @override
    def ask(self, asker: Asker) -> SetupResult | None:
        from adapters.discord.check import ask

        return ask(asker, self)


def _unheeded_proxy(env: Mapping[str, str], own: str) -> Seen:
    """Discord's library is the only one that does not heed the variable."""
    named = env.get("HTTPS_PROXY") or env.get("https_proxy")
    if not named or own:
        return Seen(())
    what = "HTTPS_PROXY is set, and Discord's library does not heed it."
    return Seen((warning("discord.proxy", what, "If Discord is to be reached through it: [discord] proxy."),))


def _pieces() -> Pieces:
    from adapters.discord.pieces import pieces

    return pieces


def _written_at(text: str) -> int | None:
    return (int(text) >> 22) + EPOCH_MS if re.fullmatch(r"\d{17,20}", text) else None


def _moved_on(last_seen: str, at_ms: int) -> str:
    return str(max(int(last_seen), (at_ms - EPOCH_MS) << 22)) if last_seen.isdigit() else last_seen


PLATFORM = Platform(
    name="discord",
    title="Discord",
    place=20,
    page="discord.md",
    packages=("discord.py",),
    section=Discord,
    setup_keys=("token",),
    pieces=_pieces,
    chat_id=r"\d+",
    written_at=_written_at,
    moved_on=_moved_on,
    takes_markdown=True,
    blocked_words=("cannot send messages to this user",),
    events=EVENTS,
)
