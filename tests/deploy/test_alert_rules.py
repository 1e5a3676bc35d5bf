"""Each alert rule fires when what it is for happens, at its first time too, and not before; by promtool, on what a gateway serves."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from adapters.contract.chat import Cause, Fate
from agent_core.causes import BreakCause
from agent_core.failures.exits import ExitCode
from agent_core.limits.spend import Budget, Measure
from agent_core.signals import (
    Committed,
    ConnectionCut,
    FirstSign,
    LawBroken,
    ModelCalled,
    SendFailed,
    Signal,
    SpendStopped,
    TurnClosed,
    TurnedAway,
)
from gateway.daemon import Serving
from gateway.laws.law import Law
from gateway.limits.patience import CutOff
from gateway.setaside.takeup import LeftKind
from tests.chats.harness import running, starting
from tests.chats.telegram_harness import telegram_harness
from tests.deploy.rules import NOBODY, RULES, Case, Series, judged, series_of, tool, with_value

pytestmark = pytest.mark.skipif(
    not tool("promtool"), reason="there is no promtool here (Debian: apt install prometheus)"
)


async def scraped(up: Serving) -> Series:
    async with aiohttp.ClientSession() as client, client.get(f"{up.url}/metrics") as response:
        text = await response.text()
    found = await asyncio.to_thread(
        lambda: subprocess.run([tool("promtool"), "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    )  # fmt: skip
    assert (found.returncode, found.stdout + found.stderr) == (0, "")
    return series_of(text)


def turn(number: int, code: ExitCode) -> TurnClosed:
    return TurnClosed(
        turn=f"t{number}", session="s", surface="telegram", exit=code.value, clean=code is ExitCode.ANSWERED, began_at=1, ended_at=9
    )  # fmt: skip


def stalled_call(number: int, endpoint: str, model: str) -> ModelCalled:
    return ModelCalled(
        turn="t", session="s", name=str(number), endpoint=endpoint, model=model, began_at=1, ended_at=9, content_at=0,
        error=BreakCause.STALLED.value,
    )  # fmt: skip


@dataclass(frozen=True)
class Happening:
    """Something that a rule is for, told to the gateway as its parts tell it."""

    signals: tuple[Signal, ...]
    minutes: int = 1
    goes_on: bool = False
    at_birth: bool = True
    """Nor does the rule miss it if it happens before the first scrape of a process."""


HAPPENINGS: Mapping[str, Happening] = {
    "OutspokenPeopleTurnedAway": Happening((TurnedAway(account="api"),)),
    "OutspokenPartsRefused": Happening(
        (SendFailed(platform="telegram", fate=Fate.REFUSED.value, cause=Cause.BLOCKED.value, final=True),)
    ),
    "OutspokenSpendStopped": Happening((SpendStopped(budget=Budget.DAY.value, measure=Measure.TOKENS.value),)),
    "OutspokenStorageFails": Happening((Committed(1, 0.01, stored=False),)),
    "OutspokenLawBroken": Happening((LawBroken(),)),
    "OutspokenConnectionsCut": Happening(
        tuple(ConnectionCut(why=CutOff.FULL.value) for _ in range(120)), minutes=12, goes_on=True, at_birth=False
    ),
    "OutspokenTurnsFail": Happening(
        (*(turn(n, ExitCode.PROVIDER_DOWN) for n in range(5)), turn(9, ExitCode.ANSWERED)), minutes=7, at_birth=False
    ),
    "OutspokenFirstSignSlow": Happening(
        (FirstSign(surface="telegram", after_ms=8_000),), minutes=12, goes_on=True, at_birth=False
    ),
    "OutspokenStorageSlow": Happening(
        tuple(Committed(1, 1.0, stored=True) for _ in range(50)), minutes=15, goes_on=True, at_birth=False
    ),
}

REACHED: Mapping[str, tuple[Callable[[Series], Series], int]] = {
    "OutspokenNothingDelivered": (lambda s: with_value(s, "outspoken_oldest_undelivered_seconds", 301), 2),
    "OutspokenPeopleWait": (lambda s: with_value(s, "outspoken_oldest_wait_seconds", 121), 3),
    "OutspokenIncident": (lambda s: with_value(s, "outspoken_open_incidents", 1), 6),
    "OutspokenBudgetNearlyUsed": (lambda s: with_value(s, "outspoken_budget_used_ratio", 0.8, budget="day"), 1),
    "OutspokenDiskNearlyFull": (lambda s: with_value(s, "outspoken_disk_free_bytes", 2**29 - 1), 3),
    "OutspokenQuotaNearlyUsed": (
        lambda s: with_value(s, "outspoken_quota_used_bytes", 0.9 * 16 * 2**30, what="whole"),
        3,
    ),
    "OutspokenAuditFindings": (lambda s: with_value(s, "outspoken_audit_findings", 1, law=Law.UNSEEN.value), 1),
    "OutspokenStorageDamaged": (lambda s: with_value(s, "outspoken_storage_damaged", 1), 1),
    "OutspokenUnclaimed": (lambda s: with_value(s, "outspoken_unclaimed_late", 1, left=LeftKind.SESSION.value), 1),
}
"""Gauges at which a rule begins to fire, on series that a gateway serves; and after how many minutes."""


def rules() -> set[str]:
    return {rule["alert"] for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]}


async def served_by_one_that_is_well(up: Serving) -> Series:
    """With what is looked at only now and then."""
    async with asyncio.timeout(60):
        while True:
            found = await scraped(up)
            known = {name: value for (name, _), value in found.items()}
            if {"outspoken_budget_used_ratio", "outspoken_disk_free_bytes"} <= known.keys() and known["outspoken_well"]:
                return found
            await asyncio.sleep(0.05)


def stalls(quiet: Series) -> Happening:
    """More silent calls than are allowed, of a model that is configured."""
    of = dict(next(labels for name, labels in quiet if name == "outspoken_model_stalls_total"))
    calls = tuple(stalled_call(n, of["endpoint"], of["model"]) for n in range(11))
    return Happening(calls, at_birth=False)


async def ready_again(up: Serving) -> None:
    """Whoever asks has the store tried, and what was told of it is over."""
    async with asyncio.timeout(60), aiohttp.ClientSession() as client:
        while True:
            async with client.get(f"{up.url}/readyz") as response:
                if response.status == 200:
                    return
            await asyncio.sleep(0.05)


async def cases_of_happenings(up: Serving, quiet: Series) -> list[Case]:
    found: list[Case] = []
    for name, happening in {**HAPPENINGS, "OutspokenModelStalls": stalls(quiet)}.items():
        before = await scraped(up)
        for signal in happening.signals:
            up.hub.tell(signal)
        after = await scraped(up)
        await ready_again(up)
        if name == "OutspokenStorageFails":
            after = with_value(with_value(after, "outspoken_ready", 1), "outspoken_well", 1)
        found.append(Case(name, before, after, frozenset({name}), happening.minutes, goes_on=happening.goes_on))
        if happening.at_birth:
            found.append(Case(f"{name}, before the first scrape", NOBODY, only(before, after), frozenset({name}), 1))
    return found


def only(before: Series, after: Series) -> Series:
    """What a process would serve that has just begun, and to which only this has happened."""
    return {
        key: value - before[key] if key[0].endswith(("_total", "_bucket", "_count", "_sum")) else value
        for key, value in after.items()
    }


async def test_each_rule_fires_when_what_it_is_for_happens_for_the_first_time_and_no_other_does(tmp_path: Path) -> None:
    more = {"OUTSPOKEN_BUDGETS__DAY_TOKENS": "1000000"}
    async with telegram_harness(tmp_path) as telegram:
        async with running(telegram, **more) as up:
            quiet = await served_by_one_that_is_well(up)
            cases = [Case("quiet", quiet, quiet, frozenset(), 30)]
            cases += [
                Case(name, quiet, change(quiet), frozenset({name}), minutes) for name, (change, minutes) in REACHED.items()
            ]  # fmt: skip
            cases += await cases_of_happenings(up, quiet)
            before = await scraped(up)
            time.sleep(0.9)  # the beat within it is late by 0.4 s at least, whenever it was due
            await asyncio.sleep(0.6)
            late = await scraped(up)
            cases.append(Case("late", before, late, frozenset({"OutspokenLoopLate"}), 12, goes_on=True))
        async with starting(telegram, **telegram.wrong_token()) as up:
            async with asyncio.timeout(60):
                while (away := await scraped(up))[adapter_up(away)] or not away_for_good(away):
                    await asyncio.sleep(0.05)
    set_aside = with_value(quiet, "outspoken_set_aside_total", 1, left=LeftKind.SESSION.value)
    for name, was in (("first", quiet), ("before the first scrape", NOBODY)):
        cases.append(Case(f"set aside, {name}", was, set_aside, frozenset({"OutspokenSetAside"}), 1))
    cases += [
        Case("gone", quiet, NOBODY, frozenset({"OutspokenGone"}), 4, answers=False),
        Case("missing", quiet, NOBODY, frozenset({"OutspokenMissing"}), 16, target_known=False),
        Case("away", quiet, away, frozenset({"OutspokenAdapterDown"}), 3),
        Case("away for long", quiet, away, frozenset({"OutspokenAdapterDown", "OutspokenNotWell"}), 16),
        Case("not ready", quiet, with_value(quiet, "outspoken_ready", 0), frozenset({"OutspokenNotReady"}), 6),
    ]
    assert {name for case in cases for name in case.fires} == rules()
    assert await asyncio.to_thread(judged, cases, tmp_path) == ""


def adapter_up(series: Series) -> tuple[str, tuple[tuple[str, str], ...]]:
    return next(key for key in series if key[0] == "outspoken_adapter_up")


def away_for_good(series: Series) -> bool:
    return next(value for key, value in series.items() if key[0] == "outspoken_well") == 0


def test_the_rules_are_sound() -> None:
    found = subprocess.run(
        [tool("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr
