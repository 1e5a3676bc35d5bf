"""A pause that a platform asks for outlives the process, up to what was meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from adapters.contract.chat import ChatAddress
from adapters.contract.pacing import Rate, Urgency
from agent_core.store.deliveries.rows import GateRow
from gateway.delivery.accounts import LONGEST_GATE_MS, Accounts, Gates, PlatformAccount
from tests.store.support import FakeClock

HERE, THERE = ChatAddress("telegram", "bot", "7"), ChatAddress("telegram", "bot", "8")


class Shelf:
    """Keeps gates."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], GateRow] = {}
        self.deliveries = self

    async def put_gate(self, gate: GateRow) -> None:
        self.rows[gate.account, gate.bucket] = gate

    async def gates(self) -> list[GateRow]:
        return list(self.rows.values())


async def gates_of(shelf: Shelf, clock: FakeClock) -> Gates:
    accounts = Accounts(clock)
    accounts.add("telegram", "bot", PlatformAccount(cast("Any", None), Rate(30, 30), lambda _: Rate(1, 3)))
    gates = Gates(accounts, cast("Any", shelf), clock, lambda _: None)
    await gates.open()
    return gates


class Started(FakeClock):
    """That of a machine which runs for an hour."""

    def monotonic(self) -> float:
        return 3_600.0 + (self.now - FakeClock().now) / 1000


@pytest.mark.parametrize("whole", [True, False])
async def test_a_pause_is_kept_by_the_next_process_and_by_the_chats_that_it_is_for(whole: bool) -> None:
    shelf, clock = Shelf(), Started()
    gates = await gates_of(shelf, clock)
    await gates.too_fast(HERE, 60.0, whole_bot=whole)
    for each in (gates, await gates_of(shelf, clock)):
        assert each.waits(HERE)[Urgency.FINAL] == pytest.approx(60_000, abs=1_000)
        assert (each.waits(THERE)[Urgency.FINAL] > 0) is whole


async def test_a_stored_pause_is_no_longer_than_it_was_meant_whatever_the_clock_says() -> None:
    shelf, clock = Shelf(), FakeClock()
    now = clock.now_ms()
    for bucket, row in {
        HERE.text(): GateRow("telegram/bot", HERE.text(), now + 10**10, "x", now + 10**10 - 5_000),
        THERE.text(): GateRow("telegram/bot", THERE.text(), now + 10**10, "x"),
    }.items():
        shelf.rows["telegram/bot", bucket] = row
    gates = await gates_of(shelf, clock)
    assert gates.waits(HERE)[Urgency.FINAL] == 5_000
    assert gates.waits(THERE)[Urgency.FINAL] == LONGEST_GATE_MS


async def test_threads_of_a_chat_are_one_chat_to_its_platform() -> None:
    gates = await gates_of(Shelf(), FakeClock())
    for _ in range(5):
        gates.passed(replace(HERE, thread="1"))
    assert gates.waits(replace(HERE, thread="2"))[Urgency.FINAL] == gates.waits(HERE)[Urgency.FINAL] > 0
    assert gates.waits(THERE)[Urgency.FINAL] == 0


async def test_who_is_refused_in_several_chats_at_once_is_refused_as_a_bot() -> None:
    gates = await gates_of(Shelf(), FakeClock())
    for chat in ("1", "2", "3"):
        assert gates.waits(HERE)[Urgency.FINAL] == 0
        await gates.too_fast(replace(HERE, chat=chat), 60.0)
    assert gates.waits(HERE)[Urgency.FINAL] > 0


async def test_whoever_looks_after_an_account_hears_of_its_own_failures_and_of_which_kind_they_are() -> None:
    gates, heard = await gates_of(Shelf(), FakeClock()), list[str]()
    gates._accounts.on_failing(
        "telegram", "bot", missed=lambda: heard.append("missed"), shut_out=lambda: heard.append("shut out")
    )
    for address in (HERE, replace(HERE, account="another"), THERE):
        gates.missed(address)
        gates.shut_out(address)
    assert heard == ["missed", "shut out"] * 2
