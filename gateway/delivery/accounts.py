"""The platform accounts that can be written to, and how fast: one gate for each account and one for each of its chats.

Gates outlive the process: how long a platform wants to be left alone is stored, and believed at the next start up to the pause that it meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import structlog

from adapters.contract.chat import ChatAddress, ChatPort
from adapters.contract.pacing import URGENCIES, Gate, Rate, RecentRefusals, Urgency
from adapters.delivery.aftermath import within
from agent_core.ports import Clock, steady_ms
from agent_core.records import dataclass
from agent_core.signals import Tell, TooFast
from agent_core.store.deliveries.rows import GateRow
from agent_core.store.store import StorageUnavailable, Store

log = structlog.get_logger("delivery")

LONGEST_GATE_MS = 24 * 3_600_000
"""For what a platform's pause is taken at most, if it is not stored how long it was meant to be."""


_Key: TypeAlias = tuple[str, str]
"""Account and chat; no chat: that of the whole account."""
KEYS_KNOWN = 4_096


@lru_cache(KEYS_KNOWN)
def _keys(address: ChatAddress) -> tuple[_Key, _Key]:
    """Of the chat's gate, and of the account's. Threads of one chat share its gate: the platform counts by the chat. Pure; asked at each look."""
    account = f"{address.platform}/{address.account}"
    return (account, replace(address, thread="").text()), (account, "")


@dataclass(frozen=True, slots=True)
class PlatformAccount:
    """One platform account that can be written to."""

    port: ChatPort
    account_rate: Rate
    chat_rate: Callable[[ChatAddress], Rate]


class Accounts:
    """All of them, by platform and account."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._accounts: dict[tuple[str, str], PlatformAccount] = {}
        self._delivered_at: dict[tuple[str, str], float] = {}
        self._on_missed: dict[tuple[str, str], Callable[[], None]] = {}
        self._on_shut_out: dict[tuple[str, str], Callable[[], None]] = {}

    def add(self, platform: str, account: str, one: PlatformAccount) -> None:
        self._accounts[platform, account] = one

    def on_failing(
        self, platform: str, account: str, *, missed: Callable[[], None], shut_out: Callable[[], None]
    ) -> None:
        """Who is told when a call has perhaps not reached the platform, or was not let in."""
        self._on_missed[platform, account], self._on_shut_out[platform, account] = missed, shut_out

    def of(self, address: ChatAddress) -> PlatformAccount:
        """The account of an address. Raises KeyError if it is not configured (any more)."""
        return self._accounts[address.platform, address.account]

    def knows(self, address: ChatAddress) -> bool:
        """Its account is configured, so that something can be sent there."""
        return (address.platform, address.account) in self._accounts

    def platforms(self) -> set[str]:
        """Those of them that can be written to."""
        return {platform for platform, _ in self._accounts}

    def delivered(self, address: ChatAddress) -> None:
        """Something has reached a chat of this account."""
        self._delivered_at[address.platform, address.account] = self._clock.monotonic()

    def missed(self, address: ChatAddress) -> None:
        """A call has perhaps not reached the platform."""
        self._on_missed.get((address.platform, address.account), _nothing)()

    def shut_out(self, address: ChatAddress) -> None:
        """A call was not let in: the platform does not know our token, says whoever answered."""
        self._on_shut_out.get((address.platform, address.account), _nothing)()

    def outbound_age(self, platform: str, account: str) -> float | None:
        """Seconds since something was delivered; None if nothing was yet."""
        at = self._delivered_at.get((platform, account))
        return None if at is None else self._clock.monotonic() - at


def _nothing() -> None:
    pass


class Gates:
    """How fast each account and each chat may be written to, and until when not at all. They count by the monotonic clock."""

    def __init__(self, accounts: Accounts, store: Store, clock: Clock, tell: Tell) -> None:
        self._accounts = accounts
        self._store = store
        self._clock = clock
        self._tell = tell
        self._gates: dict[_Key, Gate] = {}
        self._closed: dict[_Key, int] = {}
        """Until when a gate is closed that an earlier process has stored, until it is made from that."""
        self._refusals: dict[str, RecentRefusals] = {}

    async def open(self) -> None:
        """Read which gates an earlier process has found closed."""
        for gate in await self._store.deliveries.gates():
            meant = gate.not_before - gate.at if gate.at else LONGEST_GATE_MS
            left = within(gate.not_before, self._clock.now_ms(), meant)
            self._closed[gate.account, gate.bucket] = steady_ms(self._clock) + left

    def _gate(self, address: ChatAddress, *, whole: bool) -> tuple[_Key, Gate]:
        key = _keys(address)[whole]
        gate = self._gates.get(key)
        if gate is None:
            known = self._accounts.of(address)
            rate = known.account_rate if whole else known.chat_rate(address)
            gate = self._gates[key] = Gate.fresh(rate, steady_ms(self._clock), self._closed.pop(key, 0))
        return key, gate

    def waits(self, address: ChatAddress) -> Mapping[Urgency, int]:
        """How long a chat's gate and its account's keep back each urgency, ms."""
        now = steady_ms(self._clock)
        _, chat = self._gate(address, whole=False)
        _, bot = self._gate(address, whole=True)
        return dict(zip(URGENCIES, map(max, chat.waits(now), bot.waits(now)), strict=True))

    def missed(self, address: ChatAddress) -> None:
        """A call has perhaps not reached the platform."""
        self._accounts.missed(address)

    def shut_out(self, address: ChatAddress) -> None:
        """A call was not let in."""
        self._accounts.shut_out(address)

    def passed(self, address: ChatAddress) -> None:
        """A call goes out."""
        now = steady_ms(self._clock)
        for whole in (False, True):
            key, gate = self._gate(address, whole=whole)
            self._gates[key] = gate.passed(now)

    async def too_fast(self, address: ChatAddress, seconds: float, whole_bot: bool | None = None) -> None:
        """The platform wants a pause: for this chat or for the whole bot. If it does not say which: for the bot, if it wants it of several chats at once."""
        now, surface = steady_ms(self._clock), address.text()
        account = f"{address.platform}/{address.account}"
        if whole_bot is None:
            refusals = self._refusals.get(account, RecentRefusals()).noted(address.chat, now)
            self._refusals[account] = refusals
            whole_bot = refusals.whole_bot
        key, gate = self._gate(address, whole=whole_bot)
        self._gates[key] = closed = gate.refused(now, seconds)
        log.warning("delivery.too_fast", chat=surface, seconds=seconds, whole_bot=whole_bot)
        self._tell(TooFast(platform=address.platform, seconds=seconds))
        again = f", {closed.streak} times in a row" if closed.streak > 1 else ""
        reason = f"the platform asked for {seconds:g} s{again}"
        try:
            wall = self._clock.now_ms()
            await self._store.deliveries.put_gate(GateRow(*key, wall + closed.closed_until - now, reason, wall))
        except StorageUnavailable as error:
            log.warning("delivery.gate_not_stored", chat=surface, error=str(error))
