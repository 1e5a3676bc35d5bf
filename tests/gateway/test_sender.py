"""What a chat is sent: a surface with its real ledger and gates before a platform that does as it is told."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.contract.chat import (
    Ability,
    CallFailed,
    Cause,
    ChatAddress,
    ChatPort,
    Content,
    ContentKind,
    Fate,
    Piece,
    Traits,
)
from adapters.contract.pacing import Rate
from adapters.delivery.parts import WantedPart
from adapters.text.styled import Styled
from agent_core.ports import SystemClock
from agent_core.signals import PartSent
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, Store
from gateway.delivery import sender
from gateway.delivery.accounts import Accounts, Gates, PlatformAccount
from gateway.delivery.forming import Forming
from gateway.delivery.ledger import Records
from gateway.delivery.owners import Owner
from gateway.delivery.sender import Shared
from gateway.delivery.surface import Surface
from gateway.delivery.troubles import SurfaceTroubles
from gateway.delivery.turnoutlet import TurnOutlet
from gateway.storage.damage import DamageMet

CHAT = ChatAddress("telegram", "1", "2")
ME = Owner("s", 7)
ANY = Rate(1_000, 1.0)


async def _nothing(*_: object) -> None:
    """Nobody hears of it."""


class Paper(Records):
    """A store of rows that is ours as long as it is told so."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(cast("Any", None), DamageMet(SystemClock()))
        self.rows: dict[str, DeliveryRow] = {}
        self.ours, self.fenced, self._log = True, False, log

    def may_send(self) -> bool:
        return self.ours

    async def put(self, owner: Owner, rows: Sequence[DeliveryRow]) -> None:
        if self.fenced:
            raise Fenced("somebody else's")
        for row in rows:
            await asyncio.sleep(0)
            self.rows[row.origin] = row
            self._log.append(f"stored {row.state.value}")


class Port(ChatPort):
    """Each call does what is next of `does`, then answers."""

    def __init__(self, ability: Ability) -> None:
        self._ability = ability
        self.does: list[Callable[[], Awaitable[None]]] = []
        self.calls: list[tuple[str, str, float]] = []
        self.there: str | None = None
        self.since = 0

    @property
    def ability(self) -> Ability:
        return self._ability

    def traits(self, address: ChatAddress) -> Traits:
        return Traits(drafts=False, preview_seconds=0.05)

    async def _call(self, what: str, said: str) -> None:
        self.calls.append((what, said, time.monotonic()))
        if self.does:
            await self.does.pop(0)()

    async def create(self, address: ChatAddress, content: Content, key: str) -> str:
        await self._call("create", content.body.text)
        return f"m{len(self.calls)}"

    async def edit(self, address: ChatAddress, platform_id: str, content: Content) -> None:
        await self._call("edit", content.body.text)

    async def delete(self, address: ChatAddress, platform_id: str) -> None:
        await self._call("delete", platform_id)

    @staticmethod
    def parts(markdown: str, *, growing: bool, plain: bool = False) -> tuple[Piece, ...]:
        return (Styled(markdown),)

    @staticmethod
    def shorter(body: Styled, most_units: int) -> tuple[Styled, ...]:
        return (body,)

    async def private(self, person: str) -> str:
        raise NotImplementedError

    async def fetch(self, ref: str, limit_bytes: int) -> bytes:
        raise NotImplementedError

    async def find(self, address: ChatAddress, content: Content, key: str, since_ms: int) -> str | None:
        self.since = since_ms
        return self.there


def fails(fate: Fate, cause: Cause = Cause.OTHER, retry_after: float = 0.0) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise CallFailed(fate, "it is so", cause=cause, retry_after=retry_after)

    return fail


@dataclass
class Chat:
    """A chat that is shown something."""

    surface: Surface
    port: Port
    paper: Paper
    log: list[str] = field(default_factory=list[str])

    def wants(self, origin: str, *texts: str, kind: ContentKind = ContentKind.TEXT, final: bool = True) -> None:
        wanted = [WantedPart("b", n, Content(kind, Styled(one)), final=final) for n, one in enumerate(texts)]
        self.surface.ledger.propose(origin, ME, wanted)
        self.surface.ledger.release(origin)
        self.surface.bell.ring()

    async def takes_back(self) -> None:
        """What is on its way is not wanted any more."""
        self.surface.ledger.propose("t1", ME, [])
        self.surface.ledger.release("t1")

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)

    async def shows(self, origin: str) -> DeliveryRow:
        """What is stored of it, once it was sent."""
        await self.until(lambda: origin in self.paper.rows and self.paper.rows[origin].state is DeliveryState.SENT)
        return self.paper.rows[origin]


@asynccontextmanager
async def chat(ability: Ability = Ability.LOOK_UP) -> AsyncGenerator[Chat]:
    clock, port, log = SystemClock(), Port(ability), list[str]()
    accounts, paper = Accounts(clock), Paper(log)
    accounts.add(CHAT.platform, CHAT.account, PlatformAccount(port, ANY, lambda _: ANY))

    def tell(signal: object) -> None:
        if isinstance(signal, PartSent):
            log.append("told")

    store = cast("Store", SimpleNamespace(deliveries=SimpleNamespace(put_gate=_nothing)))
    shared = Shared(
        accounts, Gates(accounts, store, clock, tell), paper, SurfaceTroubles(clock, _nothing), Forming(), _nothing,
        lambda _: None, tell, clock, random.Random(1),
    )  # fmt: skip
    made = Chat(Surface(CHAT, port, shared, lambda _: None), port, paper, log)
    task = asyncio.create_task(made.surface.run())
    try:
        yield made
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_pause_that_a_platform_asks_for_counts_for_all_that_goes_there() -> None:
    async with chat() as one:
        one.port.does = [fails(Fate.TOO_FAST, retry_after=0.4)]
        one.wants("t1", "hello")
        one.wants("t2", "and you")
        await one.shows("t1")
        await one.shows("t2")
        first, *others = [at for _, _, at in one.port.calls]
        assert len(others) == 2
        assert min(others) - first >= 0.4


async def test_what_may_be_there_is_looked_for_since_it_was_tried_first_and_not_made_twice() -> None:
    async with chat() as one:
        began = SystemClock().now_ms()
        one.port.does, one.port.there = [fails(Fate.UNKNOWN)], "m7"
        one.wants("t1", "hello")
        assert (await one.shows("t1")).platform_id == "m7"
        assert [what for what, _, _ in one.port.calls] == ["create"]
        assert one.port.since <= began


async def test_that_a_part_was_sent_is_told_when_that_is_stored() -> None:
    async with chat() as one:
        one.wants("t1", "hello")
        await one.until(lambda: "told" in one.log)
        assert one.log.index("told") > one.log.index("stored sent")


async def test_a_message_that_a_platform_does_not_take_away_is_not_recorded_as_gone() -> None:
    async with chat() as one:
        one.port.does = [one.takes_back, *[fails(Fate.REFUSED, Cause.NOT_LET_IN)] * 9]
        one.wants("t1", "hello")
        await one.until(lambda: [what for what, _, _ in one.port.calls].count("delete"))
        await one.until(lambda: one.paper.rows["t1"].state is DeliveryState.SKIPPED)
        row = one.paper.rows["t1"]
        assert (row.platform_id, row.cause) == ("m1", "it is so"), "it stands there, and why is known"


async def test_what_is_wanted_while_a_message_is_taken_away_is_shown_afterwards() -> None:
    async with chat() as one:

        async def wanted_again() -> None:
            one.wants("t1", "hello again")

        one.port.does = [one.takes_back, wanted_again]
        one.wants("t1", "hello")
        await one.until(lambda: one.port.calls and one.port.calls[-1][:2] == ("create", "hello again"))
        await one.shows("t1")


async def test_nothing_goes_out_without_a_lease_and_all_of_it_when_there_is_one_again() -> None:
    async with chat() as one:
        one.paper.ours = False
        one.wants("t1", "hello")
        await asyncio.sleep(0.2)
        assert one.port.calls == []
        one.paper.ours = True
        one.surface.bell.ring()
        await one.shows("t1")


async def test_who_was_overtaken_sends_nothing_of_what_it_had() -> None:
    async with chat() as one:
        one.paper.fenced = True
        one.wants("t1", "hello")
        await one.until(lambda: not one.surface.ledger.parts)
        one.paper.fenced = False
        one.surface.bell.ring()
        await asyncio.sleep(0.2)
        assert one.port.calls == []


async def test_a_file_has_longer_than_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "CALL_SECONDS", 0.05)

    async def slowly() -> None:
        await asyncio.sleep(0.3)

    async with chat(Ability.KEYED) as one:
        one.port.does = [slowly]
        one.wants("t1", "", kind=ContentKind.FILE)
        await one.shows("t1")
        assert len(one.port.calls) == 1


class Seen:
    """Who looks at a turn."""

    def __init__(self) -> None:
        self.bells: list[object] = []

    def subscribe(self, bell: object) -> None:
        self.bells.append(bell)

    def unsubscribe(self, bell: object) -> None:
        self.bells.remove(bell)


async def test_a_chat_with_another_id_hears_of_the_turns_that_run_there() -> None:
    async with chat() as old, chat() as new:
        seen = Seen()
        seen.subscribe(old.surface.bell)
        outlet = SimpleNamespace(turn="t1", owner=ME, driver=SimpleNamespace(seen=seen), surface=old.surface, seen=True)
        old.surface._outlets.append(cast("TurnOutlet", outlet))
        old.surface.hand_over(new.surface)
        assert seen.bells == [new.surface.bell]
        assert outlet.surface is new.surface
        new.surface._outlets.clear()
