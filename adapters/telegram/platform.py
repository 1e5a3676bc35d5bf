"""Telegram, to the rest of the program: its section of the configuration, and its record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from adapters.checks.findings import REMOTE_SECONDS, Check, Finding, Seen, problem
from adapters.contract.logevents import DISK, LATER, LogEvent
from adapters.contract.platforms import Asker, Built, CheckContext, Pieces, Platform, Proof, SetupResult
from adapters.telegram.section import TelegramSection

if TYPE_CHECKING:
    from adapters.contract.chat import ChatIntake
    from agent_core.ports import Clock

EVENTS = (
    LogEvent("telegram.ready", "The bot is known by its name."),
    LogEvent("telegram.webhook_removed", "A webhook that would take all updates was removed."),
    LogEvent("telegram.poll_ended", "Telegram has ended a poll for another one of the same bot: of a gateway that had it before, mostly. It is asked again."),
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


class Telegram(TelegramSection):
    """The Telegram bot. It is on as soon as there is a token."""

    @override
    def build(self, intake: ChatIntake, clock: Clock) -> Built:
        from adapters.telegram.adapter import TelegramAdapter
        from adapters.telegram.port import ACCOUNT_RATE, chat_rate

        return Built(TelegramAdapter(self, intake, clock), ACCOUNT_RATE, chat_rate)

    @override
    def checks(self, around: CheckContext) -> Sequence[Check]:
        async def look() -> Seen:
            from adapters.telegram.check import check

            return await check(self, wants_all=self.answers_all, poll=not around.runs)

        return (Check("telegram", REMOTE_SECONDS, look, "Telegram"),)

    @override
    def ask(self, asker: Asker) -> SetupResult | None:
        from adapters.telegram.check import ask

        return ask(asker, self)


def _pieces() -> Pieces:
    from adapters.telegram.pieces import pieces

    return pieces


def _said(words: str) -> Finding | None:
    if "(409)" not in words:
        return None
    from adapters.telegram.check import FATHER, TWO_POLLERS, TWO_POLLERS_FIX

    return problem("telegram.pollers", TWO_POLLERS, TWO_POLLERS_FIX, FATHER)


PLATFORM = Platform(
    name="telegram",
    title="Telegram",
    place=10,
    page="telegram.md",
    packages=("python-telegram-bot",),
    section=Telegram,
    setup_keys=("token", "webhook_url", "webhook_secret"),
    setup_options={"webhook_url": "Public address at which Telegram can call; without it, the bot polls."},
    pieces=_pieces,
    chat_id=r"-?\d+",
    counts_messages=True,  # and what was confirmed to it is given to nobody again, so no mark is ever moved on
    blocked_words=("blocked by the user", "user is deactivated"),
    proofs={"X-Telegram-Bot-Api-Secret-Token": Proof(403)},
    said=_said,
    events=EVENTS,
)
