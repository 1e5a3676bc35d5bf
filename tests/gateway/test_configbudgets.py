"""The section ``[budgets]``: what it means, and what is said of a mistake in it."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from agent_core.limits.budgets import Amount, Price
from agent_core.limits.spend import Budget
from gateway.config.reading import ConfigError, load


def test_without_anything_nobody_counts() -> None:
    rules = load(None, {}).config.budgets.rules()
    assert not rules.active
    assert rules.zone is UTC


def test_limits_and_prices_become_rules(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(
        "[budgets]\nperson_tokens = 1000\nday_tokens = 9000\nday_money = 1.5\ncurrency = 'EUR'\ntime_zone = 'Europe/Berlin'\n"
        "[budgets.prices.'gpt-5-mini']\ninput = 0.25\noutput = 2\n[budgets.prices.'*']\ninput = 1\noutput = 10\ncached = 0.1\n"
    )
    rules = load(file, {}).config.budgets.rules()
    assert rules.limits == {Budget.PERSON: Amount(1000, 0), Budget.DAY: Amount(9000, 1_500_000_000)}
    assert rules.price_of("gpt-5-mini") == Price(250_000, 2_000_000, 250_000)
    assert rules.price_of("x") == Price(1_000_000, 10_000_000, 100_000)
    assert (rules.currency, rules.zone_name) == ("EUR", "Europe/Berlin")


def test_prices_come_from_the_environment_as_json() -> None:
    prices = '{"m*": {"input": 1, "output": 2}}'
    rules = load(None, {"OUTSPOKEN_BUDGETS__PRICES": prices}).config.budgets.rules()
    assert rules.price_of("m1") == Price(1_000_000, 2_000_000, 1_000_000)
    assert rules.active


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("day_tokens = -1", "[budgets] day_tokens must be a whole number, at least 0"),
        ("day_money = 5", "day_money is set, and no price"),
        ("warn_share = 2", "[budgets] warn_share must be a number, 0 to 1"),
        ("time_zone = 'Mars/Olympus'", "must be a time zone that this machine knows"),
        ("time_zone = '../../etc/passwd'", "must be a time zone that this machine knows"),
        (
            "[budgets.prices.m1]\ninput = -1\noutput = 2",
            "[budgets] prices m1 input: must be greater than or equal to 0",
        ),
        ("[budgets.prices.m1]\ninput = 1\noutput = 2\ncache = 1", "Did you mean cached?"),
    ],
)
def test_a_mistake_is_told_in_words(tmp_path: Path, lines: str, words: str) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(f"[budgets]\n{lines}\n")
    with pytest.raises(ConfigError) as told:
        load(file, {})
    assert words in str(told.value)


def test_the_old_place_of_a_turns_limit_is_told_where_it_belongs_now(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text("[model]\nturn_tokens = 5\n")
    with pytest.raises(ConfigError, match=r"It belongs to \[budgets\]"):
        load(file, {})
