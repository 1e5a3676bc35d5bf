"""What may be used and kept: sections ``[budgets]``, ``[quota]`` and ``[retention]``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from adapters.contract.settings import Section, Unit, complaint, parsed_json
from agent_core.limits.budgets import NANOS, Amount, BudgetRules, Price
from agent_core.limits.quotas import QuotaKind, QuotaLimits
from agent_core.limits.retention import Keep
from agent_core.limits.spend import Budget
from gateway.config.types import ZoneName
from gateway.schedule import times

MICROS = 1_000_000
MIB = 1024 * 1024
_KEEP = Keep()
_RULES = BudgetRules()

Tokens: TypeAlias = Annotated[int, Field(ge=0)]
Money: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000_000)]
Cost: TypeAlias = Annotated[float, Field(ge=0, le=1_000_000)]
Size: TypeAlias = Annotated[int, Field(ge=0, le=10**9)]
Days: TypeAlias = Annotated[int, Field(ge=0, le=36_500)]
WeekOrMore: TypeAlias = Annotated[int, Field(ge=7, le=36_500)]


class ModelPrice(Section):
    """What a million tokens of a model cost."""

    input: Cost
    """A million tokens of prompt."""
    output: Cost
    """A million tokens of reply."""
    cached: float | None = Field(default=None, ge=0, le=1_000_000)
    """A million tokens of prompt from the provider's cache; as input if not set."""
    minute: Cost = 0
    """A minute of sound that is listened to or spoken, of models that are paid by time."""

    def price(self) -> Price:
        """As calls are counted."""
        cached = self.input if self.cached is None else self.cached
        tokens = (round(value * MICROS) for value in (self.input, self.output, cached))
        return Price(*tokens, minute=round(self.minute * NANOS))


def zone_of(name: str) -> tzinfo:
    """A time zone by its name. UTC is known also to a machine without a list of time zones."""
    return UTC if name == "UTC" else times.zone_of(name)


class BudgetsSection(Section):
    """What model calls may use, in tokens and in money. A call that has no room is not made, and the person is told why."""

    turn_tokens: Tokens = 0
    """Tokens that one turn may use, prompts included; 0 is no limit."""
    turn_money: Money = 0
    """Money that one turn may cost, in units of the currency; 0 is no limit."""
    person_tokens: Tokens = 0
    """Tokens that one person may use in a day, prompts included; 0 is no limit."""
    person_money: Money = 0
    """Money that one person may cost in a day, in units of the currency; 0 is no limit."""
    chat_tokens: Tokens = 0
    """Tokens that one chat may use in a day, prompts included; 0 is no limit."""
    chat_money: Money = 0
    """Money that one chat may cost in a day, in units of the currency; 0 is no limit."""
    key_tokens: Tokens = 0
    """Tokens that one API key may use in a day, prompts included, if it has no limit of its own; 0 is no limit."""
    key_money: Money = 0
    """Money that one API key may cost in a day, in units of the currency, if it has no limit of its own; 0 is no limit."""
    agent_tokens: Tokens = 0
    """Tokens that everybody together may use of one agent in a day, if it has no limit of its own; 0 is no limit."""
    agent_money: Money = 0
    """Money that everybody together may cost with one agent in a day, if it has no limit of its own; 0 is no limit."""
    hour_tokens: Tokens = 0
    """Tokens that everybody together may use in an hour, prompts included; 0 is no limit."""
    hour_money: Money = 0
    """Money that everybody together may cost in an hour, in units of the currency; 0 is no limit."""
    day_tokens: Tokens = 0
    """Tokens that everybody together may use in a day, prompts included; 0 is no limit."""
    day_money: Money = 0
    """Money that everybody together may cost in a day, in units of the currency; 0 is no limit."""
    month_tokens: Tokens = 0
    """Tokens that everybody together may use in a month, prompts included; 0 is no limit."""
    month_money: Money = 0
    """Money that everybody together may cost in a month, in units of the currency; 0 is no limit."""
    prices: Annotated[Mapping[str, ModelPrice], BeforeValidator(parsed_json)] = Field(
        default_factory=dict[str, ModelPrice], examples=[{"gpt-5*": {"input": 1.25, "output": 10, "cached": 0.125}}]
    )
    """What a million tokens cost, by the model's name (* allowed; the first name that fits counts): input, output, and cached for what
    the provider has in its cache. A model without a price counts tokens only. From the environment: JSON."""
    currency: str = Field(default=_RULES.currency, min_length=1, max_length=12)
    """The word for the money of prices and limits."""
    warn_share: float = Field(default=_RULES.warn_share, ge=0, le=1)
    """Share of a limit at which its chat is warned and the log says so, once a window; 0 never warns."""
    assumed_output_tokens: int = Field(default=_RULES.assumed_output_tokens, ge=1, le=1_000_000)
    """Tokens that are held for a reply while its call is under way, if no max_output_tokens is set."""
    time_zone: ZoneName = Field(default="UTC", min_length=1, examples=["Europe/Berlin"])
    """Where days and months begin at midnight."""

    @model_validator(mode="after")
    def _priced(self) -> BudgetsSection:
        for budget in () if self.prices else Budget:
            if getattr(self, key := f"{budget.value}_money"):
                words = f"{key} is set, and no price, so nothing would ever count for it"
                raise complaint(key, words, 'Set prices, such as prices = {"gpt-5*" = {input = 1.25, output = 10}}.')
        return self

    def rules(self) -> BudgetRules:
        """The rules that calls are held to."""
        limits: dict[Budget, Amount] = {}
        for budget in Budget:
            tokens: int = getattr(self, f"{budget.value}_tokens")
            money: float = getattr(self, f"{budget.value}_money")
            if tokens or money:
                limits[budget] = Amount(tokens, round(money * NANOS))
        return BudgetRules(
            limits=limits,
            prices=tuple((pattern, price.price()) for pattern, price in self.prices.items()),
            currency=self.currency,
            warn_share=self.warn_share,
            assumed_output_tokens=self.assumed_output_tokens,
            zone=zone_of(self.time_zone),
            zone_name=self.time_zone,
        )


class Quota(Section):
    """How much may be kept: of each person (a group, or a user of the API, counts as one), and in all. What has no room is refused in words."""

    workspace_mib: Size = 512
    """Files in the workspaces of one person. MiB; 0 is no limit."""
    workspace_files: Annotated[Size, Unit("files")] = 10_000
    """Files and folders in the workspaces of one person. 0 is no limit."""
    memory_kib: Size = 1024
    """What is remembered for one person, with to-do lists. KiB; 0 is no limit."""
    spool_mib: Size = 512
    """Files on their way to one person. MiB; 0 is no limit."""
    incoming_mib: Size = 256
    """Files and pictures that one person may send in a day (UTC). MiB; 0 is no limit."""
    sessions: Annotated[Size, Unit("conversations")] = 5_000
    """Named conversations that one user of the API may begin in a day (UTC). 0 is no limit."""
    reminders: Annotated[int, Unit("reminders")] = Field(default=50, ge=1, le=1_000)
    """Reminders that may be set in one conversation."""
    whole_mib: Size = 16 * 1024
    """Everything in the state directory. Text is answered all the same; files, and what is to be remembered, are refused from there on.
    MiB; 0 is no limit."""

    def limits(self) -> QuotaLimits:
        """The limits as the core takes them."""
        each = {
            QuotaKind.WORKSPACE: self.workspace_mib * MIB,
            QuotaKind.FILES: self.workspace_files,
            QuotaKind.MEMORY: self.memory_kib * 1024,
            QuotaKind.SPOOL: self.spool_mib * MIB,
            QuotaKind.INCOMING: self.incoming_mib * MIB,
            QuotaKind.SESSIONS: self.sessions,
        }
        return QuotaLimits(each, self.whole_mib * MIB)


class Retention(Section):
    """How long data is kept. What is still needed is never removed, however old it is."""

    journals_days: Days = _KEEP.journals_days
    """Days for which what was said and done in a turn (at least bodies_days, so never 1 to 6; a conversation that goes on keeps what
    the model is still shown) is kept; 0 keeps it for ever."""
    bodies_days: WeekOrMore = _KEEP.bodies_days
    """Days for which a message as it came, and a part that was delivered (platforms send again for days, so at least 7) is kept."""
    attachments_days: Days = _KEEP.attachments_days
    """Days for which a picture or a file of a message, since it was sent last, and a copy of a file that was sent to a chat is kept;
    0 keeps it for ever."""
    workspaces_days: Days = _KEEP.workspaces_days
    """Days for which a conversation's folder, since it was used last, is kept; 0 keeps it for ever."""
    failures_days: WeekOrMore = _KEEP.failures_days
    """Days for which what went wrong in turns, and what could not be taken in, is kept."""
    audit_days: Days = _KEEP.audit_days
    """Days for which the record of what was done by hand is kept; 0 keeps it for ever."""
    records_days: Days = _KEEP.records_days
    """Days for which the number, times, exit and use of a turn, without a word of it (at least journals_days), is kept; 0 keeps it for
    ever."""

    @model_validator(mode="after")
    def _consistent(self) -> Retention:
        if self.journals_days and self.journals_days < self.bodies_days:
            words = "journals are kept for a shorter time than messages, which refer to them"
            raise complaint("journals_days", words, f"Set it to {self.bodies_days} or more, or to 0.")
        if self.records_days and (not self.journals_days or self.records_days < self.journals_days):
            words = "records of turns are kept for a shorter time than their journals"
            fix = f"Set it to {self.journals_days} or more, or to 0." if self.journals_days else "Set it to 0, as well."
            raise complaint("records_days", words, fix)
        return self

    def keep(self) -> Keep:
        """As the upkeep takes it."""
        return Keep(**self.model_dump())


class Audit(Section):
    """The auditor, which reads what is stored and tells where a law is broken (docs/audit.md)."""

    per_second: Annotated[int, Unit("turns, messages or parts")] = Field(default=20, ge=0, le=10_000)
    """So many turns, messages and parts are looked at in a second at most, in the running gateway; 0: it does not look."""
    every_seconds: int = Field(default=300, ge=1, le=86_400)
    """Seconds between two looks at what has happened since."""
    late_seconds: int = Field(default=300, ge=10, le=86_400)
    """Seconds for which a message may wait for its turn, and a part of an answer for its delivery, before that is told."""
    hours: Annotated[int, Unit("hours")] = Field(default=24, ge=0, le=10_000)
    """Hours before a start that its first look goes back. The whole database: outspoken audit."""
