"""The task that divides, of several gateways on one table: no two ever work in one slice, and whoever gives one tells, waits and lets go in that order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import pytest

from agent_core.model.reach import ALONE
from agent_core.store.slices.rows import HOUSE, TENURE, Division, PeerNode, Tenure, account_slices, chat_slices
from agent_core.store.store import StorageUnavailable
from gateway.several.dividing import Dividing
from gateway.sharing import portion
from gateway.sharing.portion import AccountConnections, Due, Portion
from gateway.sharing.shares import divided

CHATS = chat_slices()
Decide = Callable[[Division], Mapping[str, int]]


class Table:
    """Who has what, as all see it."""

    def __init__(self) -> None:
        self.owners: dict[str, int | None] = {}
        self.epochs: dict[str, int] = {}
        self.addresses: dict[int, str] = {}
        self.serves: dict[int, frozenset[str]] = {}
        self.gateways: list[One] = []

    def division(self) -> Division:
        peers = tuple(
            PeerNode(node, address, serves=self.serves[node]) for node, address in sorted(self.addresses.items())
        )
        return Division(peers, dict(self.owners), dict(self.epochs))


class One:
    """A gateway that divides, with everything that it is told."""

    def __init__(self, table: Table, node: int) -> None:
        self.table, self.node = table, node
        self.lost = asyncio.Event()
        self.portion = Portion(whole=False)
        self.busy: set[str] = set()
        self.failing: dict[str, float] = {}
        self.waits: set[str] = set()
        """Something waits there, and nothing is done."""
        self.log: list[str] = []
        self.fails = False
        self.while_divided: Callable[[], None] = lambda: None
        self.before = frozenset[str]()
        """What was had when more was coming."""
        store = cast("Any", self)
        self.dividing = Dividing(
            self.portion, store, f"here:{node}", (), lambda: self.failing, self._busy, self._coming, self._gained,
            self._given, self._tell,
        )  # fmt: skip
        table.gateways.append(self)

    # what a store is asked

    @property
    def slices(self) -> One:
        return self

    @property
    def ownership(self) -> One:
        return self

    async def take_part(self, address: str, serves: Collection[str]) -> None:
        self.table.serves[self.node] = frozenset(serves)
        assert not self.lost.is_set(), "it may not write any more"
        self.log.append(f"takes part at {address or 'nowhere'}")
        self.table.addresses[self.node] = address

    async def division(self) -> Division:
        await asyncio.sleep(0)
        return self.table.division()

    async def divide(self, names: Collection[str], decide: Decide) -> Division:
        await asyncio.sleep(0)
        for name in names:
            self.table.owners.setdefault(name, None)
            self.table.epochs.setdefault(name, 0)
        self.while_divided()
        if self.fails:
            raise StorageUnavailable("It is away.")
        there = self.table.division()
        free = {None, self.node} | (set(there.owners.values()) - there.living)
        moved = {name: to for name, to in decide(there).items() if there.owners[name] in free}
        mine = self.portion.held
        given = [name for name, to in moved.items() if to != self.node]
        assert not mine.intersection(given), "it is given while it is worked on here"
        self.table.owners |= moved
        for name in moved:
            self.table.epochs[name] += 1
        self.log.append(f"divided {len(moved)}")
        return self.table.division()

    # what it tells

    def _busy(self, passing: bool) -> Collection[str]:
        return self.busy if passing else self.busy | self.waits

    async def _coming(self) -> None:
        self.log.append("coming")
        self.before = self.portion.held

    def _gained(self) -> None:
        assert self.before < self.portion.held, "what was coming was asked for before"
        self.log.append("gained")

    def _given(self, going: frozenset[str]) -> None:
        assert going <= self.portion.held, "who is told that they go still has them"
        self.log.append("given")

    def _tell(self) -> None:
        self.log.append("told")

    async def look(self) -> None:
        await self.dividing._look()
        held = [name for one in self.table.gateways if not one.lost.is_set() for name in one.portion.held]
        assert len(held) == len(set(held)), "two gateways work in one slice"


async def several(count: int) -> tuple[Table, list[One]]:
    """So many, which have come one after the other, and have divided all."""
    table = Table()
    for node in range(1, count + 1):
        await One(table, node).dividing.begin()
    for _ in range(2 * count):
        for one in table.gateways:
            await one.look()
    return table, table.gateways


def of(name: str, one: One) -> list[str]:
    return [said for said in one.log if said == name]


async def test_who_does_not_reach_a_platform_gives_its_chats_away_and_those_in_which_something_waits() -> None:
    """It could not answer in them."""
    table, (first, second) = await several(2)
    for one in (first, second):
        one.portion.serves = frozenset({"telegram/1"})
        table.serves[one.node] = one.portion.serves
    before = first.portion.held
    first.waits = set(chat_slices())
    first.failing = {"telegram/1": 1.0}
    await first.look()
    assert first.portion.held == before, "it may be back in a moment"
    first.failing = {"telegram/1": 60.0}
    for one in (first, second, first, second):
        await one.look()
    assert not first.portion.held.intersection(CHATS)
    assert table.serves[1] == frozenset()
    assert second.portion.held.issuperset(CHATS)


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_all_is_had_by_somebody_and_evenly(count: int) -> None:
    table, gateways = await several(count)
    counts = [sum(name in CHATS for name in one.portion.held) for one in gateways]
    assert sum(counts) == len(CHATS)
    assert max(counts) - min(counts) <= 1
    assert [name for name in table.owners if name not in CHATS] == [HOUSE]
    assert all(of("gained", one) for one in gateways)


async def test_who_gives_says_so_first_and_tells_all_when_it_is_done() -> None:
    _, (first, _) = await several(2)
    began = first.log.index("given")
    told = first.log.index("told", began)
    assert any(said.startswith("divided") for said in first.log[began:told])
    assert first.log.index("coming") < first.log.index("gained")


async def test_what_is_busy_stays_until_it_is_over_or_everything_goes() -> None:
    _, (first, second) = await several(2)
    busy, waits = sorted(first.portion.held)[:2]
    first.busy, first.waits = {busy}, {waits}
    await first.dividing.leave()
    assert first.portion.held == {busy}, "what only waits is as good as idle"
    await second.look()
    assert first.portion.held == {busy}
    await first.dividing.leave(everything=True)
    assert first.portion.held == frozenset()
    await second.look()
    assert set(CHATS) <= second.portion.held


async def test_who_leaves_takes_nothing_more_whoever_goes() -> None:
    table, (first, second, third) = await several(3)
    first.busy = set(first.portion.held)
    await first.dividing.leave()
    before = first.portion.held
    del table.addresses[second.node]
    second.lost.set()
    for _ in range(3):
        await first.look()
    assert first.portion.held == before
    assert of("takes part at nowhere", first) == ["takes part at nowhere"]
    await third.look()
    assert set(CHATS) <= first.portion.held | third.portion.held


async def test_who_may_count_as_dead_writes_nothing_at_its_end() -> None:
    _, (first, _) = await several(2)
    first.lost.set()
    before = [*first.log]
    await first.dividing.leave(everything=True)
    assert first.log == before


async def test_what_could_not_be_given_is_still_had_and_handed_by_nobody() -> None:
    table, (first, _) = await several(2)
    before = first.portion.held
    first.portion.handed.clear()
    first.fails = True
    with pytest.raises(StorageUnavailable):
        await first.dividing._divide()
    await first.dividing.leave()
    assert first.portion.held == before == table.division().held_by(first.node)
    assert first.portion.handed == set()


async def test_what_is_given_is_quiet_before_it_is_another_gateways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portion, "QUIET_SECONDS", 3_600.0)  # its end is told: that is waited for, and not the time
    table = Table()
    first = One(table, 1)
    await first.dividing.begin()
    done: list[str] = []
    begun = asyncio.Event()
    name = HOUSE

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            done.append("its end")

    working = asyncio.create_task(first.portion.while_had(name, work))
    await begun.wait()
    await One(table, 2).dividing.begin()
    first.while_divided = lambda: done.append("divided")
    async with asyncio.timeout(20):
        await first.dividing.leave()
    working.cancel()
    await asyncio.wait({working})
    assert done[:2] == ["its end", "divided"]
    assert table.owners[name] == 2


async def test_a_connection_is_handed_once_and_only_by_who_had_it() -> None:
    slices = account_slices("discord/1", 2)
    mine = Portion(whole=False)
    connections = AccountConnections(mine, slices, ALONE)
    mine.change(slices, dict.fromkeys(slices, 1), found=slices[:1])
    assert not connections.handed(0), "nobody alive had it"
    assert connections.handed(1)
    assert not connections.handed(1)


class Elsewhere:
    """Others may have what is ours, until they do not."""

    ok = False

    def lease_ok(self) -> bool:
        return self.ok

    def may_return(self) -> bool:
        return True


async def test_nothing_is_connected_while_others_may_have_what_is_ours() -> None:
    lives = Elsewhere()
    opening = asyncio.create_task(AccountConnections(Portion(whole=False), (), lives).may_open())
    assert not (await asyncio.wait({opening}, timeout=0.5))[0]
    lives.ok = True
    async with asyncio.timeout(5):
        await opening


async def test_what_is_done_in_a_slice_writes_under_it_and_under_nothing_when_that_is_over() -> None:
    mine, tenures, begun = Portion(whole=False), list[Tenure | None](), asyncio.Event()
    mine.change([HOUSE], {HOUSE: 4})

    async def work() -> None:
        tenures.append(TENURE.get())
        begun.set()
        await asyncio.Event().wait()

    working = asyncio.create_task(mine.while_had(HOUSE, work))
    await begun.wait()
    (tenure,) = tenures
    assert tenure is not None
    assert tenure.held == (f"{HOUSE}@4",)
    mine.change([])
    await mine.quiet([HOUSE])
    assert tenure.held == ()
    working.cancel()
    await asyncio.wait({working})


async def test_who_has_looked_looks_again_when_it_is_told_or_after_a_while() -> None:
    due = Due()
    assert due.now()
    assert not due.now()
    assert due.seconds > 0
    due.ring()
    assert due.now()


def test_who_leaves_gives_all_that_is_idle_to_others_also_while_it_seems_to_take_part() -> None:
    here, there = PeerNode(1, "here"), PeerNode(2, "there")
    moved = divided(1, Division((here, there), dict.fromkeys(CHATS, 1)), leaving=True, busy=CHATS[:3])
    assert moved == dict.fromkeys(CHATS[3:], 2)


async def test_what_somebody_has_removed_is_shared_anew() -> None:
    """Else nobody would have these chats, and nothing would be answered there until all gateways are started again."""
    table, gateways = await several(2)
    table.owners.clear()
    table.epochs.clear()
    for _ in range(4):
        for one in gateways:
            await one.look()
    assert table.owners.keys() >= {*CHATS, HOUSE}
    assert {owner for name, owner in table.owners.items() if name in CHATS} == {1, 2}
