"""The configuration of budgets: section ``[budgets]``, what may be used, and what a model's tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from agent_core.limits.budgets import NANOS, Amount, BudgetRules, Price
from agent_core.turn.exits import Budget
from gateway.config.types import Section, complaint, parsed_json

MOST_MONEY = 1_000_000_000
MICROS = 1_000_000


class ModelPrice(Section):
    """What a million tokens of a model cost."""

    input: float = Field(ge=0, le=1_000_000, description="A million tokens of prompt.")
    output: float = Field(ge=0, le=1_000_000, description="A million tokens of reply.")
    cached: float | None = Field(
        default=None, ge=0, le=1_000_000, description="A million tokens of prompt from the provider's cache; as input if not set."
    )  # fmt: skip

    def price(self) -> Price:
        """As calls are counted."""
        cached = self.input if self.cached is None else self.cached
        return Price(*(round(value * MICROS) for value in (self.input, self.output, cached)))


def _known_zone(name: str) -> str:
    try:
        zone_of(name)
    except (KeyError, ValueError, OSError):
        raise PydanticCustomError(
            "outspoken", "must be a time zone that this machine knows, such as UTC or Europe/Berlin"
        ) from None
    return name


def zone_of(name: str) -> tzinfo:
    """A time zone by its name. UTC is known also to a machine without a list of time zones."""
    return UTC if name.upper() == "UTC" else ZoneInfo(name)


def _tokens(what: str) -> int:
    """A limit in tokens; typed as its value, because that is what the class has."""
    field: int = Field(default=0, ge=0, description=f"Tokens that {what}, prompts included; 0 is no limit.")
    return field


def _money(what: str) -> float:
    field: float = Field(
        default=0, ge=0, le=MOST_MONEY, description=f"Money that {what}, in units of the currency; 0 is no limit."
    )
    return field


class Budgets(Section):
    """What model calls may use, in tokens and in money. A call that has no room is not made, and the person is told why."""

    turn_tokens: int = _tokens("one turn may use")
    turn_money: float = _money("one turn may cost")
    person_tokens: int = _tokens("one person may use in a day")
    person_money: float = _money("one person may cost in a day")
    chat_tokens: int = _tokens("one chat may use in a day")
    chat_money: float = _money("one chat may cost in a day")
    hour_tokens: int = _tokens("everybody together may use in an hour")
    hour_money: float = _money("everybody together may cost in an hour")
    day_tokens: int = _tokens("everybody together may use in a day")
    day_money: float = _money("everybody together may cost in a day")
    month_tokens: int = _tokens("everybody together may use in a month")
    month_money: float = _money("everybody together may cost in a month")
    prices: Annotated[Mapping[str, ModelPrice], BeforeValidator(parsed_json)] = Field(
        default_factory=dict[str, ModelPrice],
        description="What a million tokens cost, by the model's name (* allowed; the first name that fits counts): input, output, and "
        "cached for what the provider has in its cache. A model without a price counts tokens only. From the environment: JSON.",
        examples=[{"gpt-5*": {"input": 1.25, "output": 10, "cached": 0.125}}],
    )
    currency: str = Field(
        default="USD", min_length=1, max_length=12, description="The word for the money of prices and limits."
    )
    warn_share: float = Field(
        default=0.8,
        ge=0,
        le=1,
        description="Share of a limit at which its chat is warned and the log says so, once a window; 0 never warns.",
    )
    assumed_output_tokens: int = Field(
        default=4_000,
        ge=1,
        le=1_000_000,
        description="Tokens that are held for a reply while its call is under way, if no max_output_tokens is set.",
    )
    time_zone: Annotated[str, AfterValidator(_known_zone)] = Field(
        default="UTC", description="Where days and months begin at midnight.", examples=["Europe/Berlin"]
    )

    @model_validator(mode="after")
    def _priced(self) -> Budgets:
        if self.prices:
            return self
        for budget in Budget:
            if getattr(self, f"{budget.value}_money"):
                raise complaint(
                    f"{budget.value}_money",
                    f"{budget.value}_money is set, and no price, so nothing would ever count for it",
                    'Set prices, such as prices = {"gpt-5*" = {input = 1.25, output = 10}}.',
                )
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
