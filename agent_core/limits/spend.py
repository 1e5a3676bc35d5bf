"""What a limit on spending is for, how it stands when it has no room, and how that is said: in notices, warnings, metrics and on the console."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from agent_core.records import dataclass
from agent_core.text.durations import duration
from agent_core.text.tongue import beginning, number, sentence, speak
from agent_core.text.worded import Worded


class Budget(Worded):
    """What a limit on spending is for, with its name in a sentence. All but `TURN` begin anew with their window."""

    TURN = "turn", sentence("the budget for one message")
    PERSON = "person", sentence("your budget for today")
    CHAT = "chat", sentence("this chat's budget for today")
    KEY = "key", sentence("the budget for today of the API key that this came with")
    AGENT = "agent", sentence("this agent's budget for today")
    """Everybody together, a day, of one agent."""
    HOUR = "hour", sentence("the gateway's budget for this hour")
    """Everybody together, an hour."""
    DAY = "day", sentence("the gateway's budget for today")
    """Everybody together, a day."""
    MONTH = "month", sentence("the gateway's budget for this month")
    """Everybody together, a month."""


class Measure(StrEnum):
    """In what a limit is counted."""

    TOKENS = "tokens"
    MONEY = "money"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """How a budget stands that has no room, or little."""

    budget: Budget
    measure: Measure
    limit: int
    """Tokens, or billionths of the currency."""
    used: int
    """In the same unit; what is held for calls under way is not in it."""
    held: int = 0
    """Reserved for calls that are under way, in the same unit."""
    currency: str = ""
    opens: str = ""
    """When the budget opens again, with its time zone; empty if it does not."""
    opens_in_seconds: int = 0


def amount_words(measure: Measure, amount: int, currency: str) -> str:
    """Tokens, or billionths of a currency, in words: 12,000 tokens, 0.37 EUR."""
    figure = _figure(measure, amount)
    return speak("{count} tokens", count=figure) if measure is Measure.TOKENS else f"{figure} {currency}".strip()


def share_words(measure: Measure, amount: int, limit: int, currency: str) -> str:
    """How much of a limit: 300 of 1,000 tokens."""
    return speak("{used} of {limit}", used=_figure(measure, amount), limit=amount_words(measure, limit, currency))


def _figure(measure: Measure, amount: int) -> str:
    match measure:
        case Measure.TOKENS:
            return number(amount)
        case Measure.MONEY:
            digits = 2 if not amount or amount >= 10**8 else 4
            return number(amount / 10**9, digits)
        case _:
            assert_never(measure)


def spent_words(spend: Spend) -> str:
    """How a budget without room stands, as a sentence."""
    name = beginning(speak(spend.budget.words))
    used = share_words(spend.measure, spend.used, spend.limit, spend.currency)
    if spend.used < spend.limit:
        held = amount_words(spend.measure, spend.held, spend.currency)
        return speak(
            "{name} has no room just now: {used} are used, and {held} are held for calls under way.",
            name=name,
            used=used,
            held=held,
        )
    return speak("{name} is used up ({used}).", name=name, used=used)


def opens_words(spend: Spend) -> str:
    """When a budget without room opens again, as a sentence."""
    if spend.used < spend.limit:
        return speak("Try again in a minute, when those calls are done.")
    if not spend.opens:
        return speak("Say “continue” to go on from here in a new message.")
    return speak(
        "It opens again at {opens} (in {duration}). Until then, asking again will not help.",
        opens=spend.opens,
        duration=duration(spend.opens_in_seconds),
    )
