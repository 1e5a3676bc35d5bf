"""Parts stand in the order of their places: what is new comes below all that may still change, whatever a start was told of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent_core.store.deliveries.access import NEWEST
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState
from gateway.delivery.ledger import Ledger, Records
from gateway.delivery.owners import Owner
from gateway.storage.damage import DamageMet
from tests.store.support import FakeClock, opened, turn_of


async def test_new_parts_come_below_an_old_one_that_is_open_though_a_start_asks_only_for_the_newest(
    tmp_path: Path,
) -> None:
    async with opened(str(tmp_path / "store.db")) as store:
        session, epoch, turn = await turn_of(store)
        base = DeliveryRow("telegram/1/7", turn, "answer", 0, 9_000, b"words", "h", "k0")
        sent = [
            replace(base, part=n, place=n, key=f"k{n}", state=DeliveryState.SENT, platform_id=f"{n}")
            for n in range(1, NEWEST + 1)
        ]
        await store.deliveries.put(session, epoch, [base])
        await store.deliveries.put(session, epoch, sent)
        clock = FakeClock()
        records = Records(store, DamageMet(clock))
        await records.count_on()
        assert records.next_place == NEWEST + 1
        Ledger(base.surface, records, clock, lambda: None).restore([Delivery(session, base)], Owner(session, epoch))
        assert records.next_place == 9_001


async def test_who_is_given_chats_counts_on_behind_those_who_had_them(tmp_path: Path) -> None:
    async with opened(str(tmp_path / "store.db")) as store:
        session, epoch, turn = await turn_of(store)
        mine = Records(store, DamageMet(FakeClock()))
        await mine.count_on()
        await store.deliveries.put(
            session, epoch, [DeliveryRow("telegram/1/7", turn, "answer", 0, 70, b"words", "h", "k")]
        )
        await mine.count_on()
        assert mine.next_place == 71
        mine.placed(90)
        await mine.count_on()
        assert mine.next_place == 91


async def test_a_place_that_nobody_gave_stops_nobody_elses(tmp_path: Path) -> None:
    """The last one that the database can hold: whoever counted on from there could store nothing any more, in no chat."""
    async with opened(str(tmp_path / "store.db")) as store:
        session, epoch, turn = await turn_of(store)
        base = DeliveryRow("telegram/1/7", turn, "answer", 0, 2**63 - 1, b"words", "h", "k")
        await store.deliveries.put(session, epoch, [replace(base, part=1, place=7, key="k1"), base])
        clock = FakeClock()
        records = Records(store, DamageMet(clock))
        await records.count_on()
        assert records.next_place == 8
        Ledger(base.surface, records, clock, lambda: None).restore([Delivery(session, base)], Owner(session, epoch))
        assert records.next_place == 8
