"""The section ``[budgets]``: what it means, and what is said of a mistake in it."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest

from agent_core.limits.budgets import Amount, Price
from agent_core.limits.spend import Budget
from gateway.config.reading import ConfigError, load
from gateway.schedule.times import Cron


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
        ("time_zone = 'posix/europe/berlin'", "must be a time zone that this machine knows; Europe/Berlin is one"),
        ("time_zone = 'localtime'", "must be a time zone that this machine knows, such as UTC or Europe/Berlin"),
        ("time_zone = ''", "[budgets] time_zone must not be empty"),
        (
            "[[schedule.entries]]\nname='a'\nprompt='b'\nchat='telegram/1'\ncron='0 8 * * *'\ntimezone='Berlin'",
            "Europe/Berlin is one",
        ),
        ("[schedule]\ntimezone='right/UTC'", "must be a time zone that this machine knows; UTC is one"),
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


def test_a_zone_may_be_written_in_any_letters(tmp_path: Path) -> None:
    file = tmp_path / "outspoken.toml"
    file.write_text(
        """budgets = {time_zone = "europe/BERLIN"}
schedule = {timezone = "america/new york", entries = [
    {name = "a", prompt = "b", chat = "telegram/1", cron = "0 8 * * *", timezone = "asia/kolkata"}]}
"""
    )
    config = load(file, {"TELEGRAM_BOT_TOKEN": "1:a"}).config
    assert (config.budgets.time_zone, config.schedule.timezone) == ("Europe/Berlin", "America/New_York")
    assert config.schedule.entries[0].rule("UTC") == Cron("0 8 * * *", "Asia/Kolkata")
