"""What an operator does to a part: another chat is sent it if that is stored, and else nothing of it stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.contract.chat import ChatAddress, Content, ContentKind
from adapters.delivery.parts import WantedPart
from adapters.delivery.reconcile import Hand, Part, loaded, new_part
from adapters.text.styled import Styled
from agent_core.store.deliveries.rows import Delivery, DeliveryRow, DeliveryState
from agent_core.store.store import Fenced, StorageUnavailable
from gateway.console.acting import Acting, CannotAct, PartName
from gateway.console.words import mark_of
from gateway.delivery.surface import Surface
from gateway.delivery.words import Words
from gateway.sharing.portion import Portion
from tests.agent_core.turns import gives
from tests.gateway.test_recents import gives as answers
from tests.gateway.test_sender import CHAT, Chat, chat
from tests.store.support import IDS, FakeClock

ELSEWHERE = replace(CHAT, chat="99")


def refused() -> Part:
    made = new_part(
        WantedPart("b", 0, Content(ContentKind.TEXT, Styled("the answer")), final=True), CHAT.text(), "t1", 1
    )
    return replace(made, row=replace(made.row, state=DeliveryState.FAILED, cause="it is so"))


class Deliveries:
    """Stores what is done, or fails."""

    def __init__(self, part: Part, fails: BaseException | None) -> None:
        self.found, self.fails = Delivery("s", part.row), fails
        self.stored: list[DeliveryRow] = []

    async def one(self, *_: object) -> Delivery:
        return self.found

    async def act(self, _entry: object, _session: str, _epoch: int, rows: list[DeliveryRow]) -> None:
        if self.fails is not None:
            raise self.fails
        self.stored += rows


def acting(there: Chat, deliveries: Deliveries, to: ChatAddress = ELSEWHERE) -> Acting:
    def when_there(_: ChatAddress, work: Callable[[Surface], None]) -> None:
        work(there.surface)

    async def amend(found: Delivery, _: object, change: Callable[[Part], Any]) -> Part:
        return await change(part_of(found))

    def part_of(found: Delivery) -> Part:
        return loaded(Part(found.row, Content(ContentKind.TEXT, Styled("the answer"))))

    store: Any = SimpleNamespace(deliveries=deliveries, sessions=SimpleNamespace(claim=answers(7)))
    accounts: Any = SimpleNamespace(knows=gives(True))
    surfaces: Any = SimpleNamespace(at=gives(there.surface), when_there=when_there)
    outbox: Any = SimpleNamespace(
        words=Words(surfaces, accounts, store), accounts=accounts, port_of=gives(there.port), part_of=part_of, amend=amend
    )  # fmt: skip
    where: Any = SimpleNamespace(find=answers(to))
    return Acting(store, outbox, where, Portion(), FakeClock(), IDS)


@pytest.mark.parametrize("fails", [None, StorageUnavailable("away"), Fenced("another's"), asyncio.CancelledError()])
async def test_what_goes_elsewhere_is_sent_there_if_it_is_stored_and_else_nobody_is_sent_anything(
    fails: BaseException | None,
) -> None:
    part = refused()
    deliveries = Deliveries(part, fails)
    async with chat(address=ELSEWHERE) as there:
        done = acting(there, deliveries).act(
            "ops", PartName(CHAT.text(), "t1", "b", 0), Hand.REDIRECT, "telegram/99", mark_of(part)
        )
        if fails is None:
            await done
            await there.until(lambda: any("the answer" in said for _, said, _ in there.port.calls))
            assert [row.surface for row in deliveries.stored] == [
                CHAT.text(),
                *[ELSEWHERE.text()] * len(there.port.calls),
            ]
        else:
            with pytest.raises((CannotAct, StorageUnavailable, asyncio.CancelledError)):
                await done
            assert there.surface.ledger.waiting == [], "nobody sends it later"
            assert there.surface.ledger.held == set(), "what is said there next does not wait"


@pytest.mark.parametrize("hand", Hand)
async def test_what_has_changed_since_somebody_looked_is_left_as_it_is(hand: Hand) -> None:
    part = refused()
    deliveries = Deliveries(part, None)
    async with chat(address=ELSEWHERE) as there:
        looked = mark_of(replace(part, row=replace(part.row, attempt=part.row.attempt + 1)))
        with pytest.raises(CannotAct):
            await acting(there, deliveries).act("ops", PartName(CHAT.text(), "t1", "b", 0), hand, "telegram/99", looked)
        assert deliveries.stored == []
        assert there.port.calls == []


async def test_a_part_is_not_sent_once_more_into_the_chat_that_it_is_meant_for() -> None:
    deliveries = Deliveries(refused(), None)
    async with chat(address=ELSEWHERE) as there:
        doing = acting(there, deliveries, to=CHAT)
        for asked in (
            doing.preview(PartName(CHAT.text(), "t1", "b", 0), Hand.REDIRECT, "telegram/7"),
            doing.act("ops", PartName(CHAT.text(), "t1", "b", 0), Hand.REDIRECT, "telegram/7", mark_of(refused())),
        ):
            with pytest.raises(CannotAct, match="Retry it instead"):
                await asked
        assert (deliveries.stored, there.port.calls) == ([], [])
