"""What the gateway says in chats beside turns: stored before it is sent, but for the one word that nothing can be stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import structlog

from adapters.contract.chat import CallFailed, ChatAddress, Content, Fate, spelled_content
from adapters.contract.pacing import Urgency
from adapters.delivery.parts import WantedPart
from agent_core.ports import Clock, steady_ms
from agent_core.store.deliveries.rows import DeliveryRow
from agent_core.store.store import Store
from agent_core.text.tongue import spoken_now
from gateway.delivery.accounts import LONGEST_GATE_MS, Accounts, Gates
from gateway.delivery.owners import Owner
from gateway.delivery.surfaces import Surfaces

log = structlog.get_logger("delivery")

UNSTORED_SECONDS = 20.0
CLOSED_SECONDS = 300.0
"""So long it is waited for a chat that may not be written to just now: nobody else tells it there."""
UNSTORED_MOST = 10
"""So many chats are told at once that nothing can be stored; those who look ahead do so every second."""


class Words:
    """Those beside turns. What belongs together has one origin."""

    def __init__(self, surfaces: Surfaces, accounts: Accounts, store: Store) -> None:
        self._surfaces = surfaces
        self._accounts = accounts
        self._store = store

    def propose(
        self, address: ChatAddress, owner: Owner, origin: str, contents: Sequence[Content]
    ) -> list[DeliveryRow]:
        """Parts that are to be stored by the caller; then `release` them. None if nobody can be told."""
        if not self._accounts.knows(address):
            return []
        surface = self._surfaces.at(address)
        shown = [spelled_content(content, surface.calls.traits.commands) for content in contents]
        if now := spoken_now():
            shown = [replace(one, language=one.language or now) for one in shown]
        wanted = [WantedPart(f"aside{i}", 0, content, final=True) for i, content in enumerate(shown)]
        return surface.ledger.propose(origin, owner, wanted)

    def release(self, address: ChatAddress, origin: str, *, stored: bool = True) -> None:
        """What was proposed is stored, or cannot be."""
        if self._accounts.knows(address):
            self._surfaces.at(address).ledger.release(origin, stored=stored)

    async def say(self, address: ChatAddress, owner: Owner, origin: str, *contents: Content) -> None:
        """Say something. Saying nothing takes back what was said."""
        rows, stored = self.propose(address, owner, origin, contents), False
        try:
            if rows:
                await self._store.deliveries.put(owner.session, owner.epoch, rows)
            stored = True
        finally:
            self.release(address, origin, stored=stored)

    async def say_with(
        self,
        address: ChatAddress,
        owner: Owner,
        origin: str,
        contents: Sequence[Content],
        store: Callable[[Sequence[DeliveryRow]], Awaitable[object]],
    ) -> None:
        """Say what is true as soon as something else is stored: `store` stores that and these parts in one commit. If it raises, nothing is said."""
        rows, stored = self.propose(address, owner, origin, contents), False
        try:
            await store(rows)
            stored = True
        except BaseException:
            self.take_back(address, origin)
            raise
        finally:
            self.release(address, origin, stored=stored)

    def take_back(self, address: ChatAddress, origin: str) -> None:
        """Words that are not true any more go away, if they are remembered."""
        self._surfaces.when_there(address, lambda surface: surface.ledger.take_back(origin))


class UnstoredWords:
    """What cannot be stored because nothing can: said once, as far as it goes. See `gateway.chats.arrival`."""

    def __init__(self, surfaces: Surfaces, accounts: Accounts, gates: Gates, clock: Clock) -> None:
        self._surfaces = surfaces
        self._accounts = accounts
        self._gates = gates
        self._clock = clock
        self._saying: set[asyncio.Task[None]] = set()
        self._pauses: dict[tuple[str, str], int] = {}
        """Until when an account says nothing of that kind, ms that never go back."""

    def say(self, address: ChatAddress, content: Content, unsaid: Callable[[], None] | None = None) -> bool:
        """Say it; False if that cannot be now.

        `unsaid` is called if it turns out that it was certainly not said, and may be said later. Who gives none says it never again, so
        that it is tried however many are told, and waits until the chat may be written to.
        """
        if not self._surfaces.open or not self._accounts.knows(address):
            return False
        pause = self._pauses.get((address.platform, address.account), 0)
        closed = self._gates.waits(address)[Urgency.FINAL] > 0 or steady_ms(self._clock) < pause
        if unsaid is not None and (len(self._saying) >= UNSTORED_MOST or closed):
            return False
        task = self._surfaces.begin(self._say(address, content, unsaid), f"outage {address.text()}")
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)
        return True

    async def _say(self, address: ChatAddress, content: Content, unsaid: Callable[[], None] | None) -> None:
        name = address.text()
        try:
            async with asyncio.timeout(CLOSED_SECONDS):
                while wait := self._gates.waits(address)[Urgency.FINAL]:  # noqa: ASYNC110 - it says how long
                    await asyncio.sleep(wait / 1000)
        except TimeoutError:
            log.warning("delivery.outage_not_told", chat=name, error="nothing may be said there for too long")
            if unsaid is not None:
                unsaid()
            return
        try:
            async with asyncio.timeout(UNSTORED_SECONDS):
                self._gates.passed(address)
                port = self._accounts.of(address).port
                said = spelled_content(content, port.traits(address).commands)
                await port.create(address, said, f"{name}/outage/{self._clock.now_ms()}")
        except CallFailed as error:
            if error.fate is Fate.TOO_FAST:
                pause = round(min(error.retry_after * 1000, LONGEST_GATE_MS))
                self._pauses[address.platform, address.account] = steady_ms(self._clock) + pause
            if unsaid is not None and error.fate in (Fate.TOO_FAST, Fate.NOT_SENT):
                unsaid()
            log.warning("delivery.outage_not_told", chat=name, error=error.words)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end what others do here
            log.warning("delivery.outage_not_told", chat=name, error=f"{type(error).__name__}: {error}")
