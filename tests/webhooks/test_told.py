"""What is told is stored with what it tells: of turns, approvals, parts and incidents, on real stores and in a real chat."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.bell import Bell
from agent_core.store.deliveries.rows import DeliveryRow, DeliveryState
from agent_core.store.errors import StoreError
from agent_core.store.keeping import forgetting
from agent_core.store.keeping.forgetting import TheirSession
from agent_core.store.store import Store
from agent_core.store.webhooks.rows import HookState
from gateway.webhooks.events import HookEvent, HookFact, HookRule, message
from gateway.webhooks.telling import HookTelling
from tests.chats.harness import answer, running
from tests.chats.telegram_harness import TelegramHarness, telegram_harness
from tests.store.support import FakeClock, opened, row, session_of
from tests.store.test_troubles import INCIDENT
from tests.webhooks.receiver import receiving
from tests.webhooks.test_gateway import configured


async def nobody(_: str) -> str:
    return ""


@pytest_asyncio.fixture
async def store(where: str) -> AsyncGenerator[Store]:
    async with opened(where) as opened_store:
        yield opened_store


def telling(*rules: HookRule) -> HookTelling:
    return HookTelling(rules or (HookRule("deploy"),), nobody, FakeClock(), Bell())


async def waiting(store: Store) -> list[str]:
    return [one.row.event for one in await store.hooks.waiting("deploy", 100)]


async def test_an_incident_that_opens_and_closes_is_told_once_each(store: Store) -> None:
    herald = telling()
    for _ in range(3):
        await store.troubles.put_incident(INCIDENT, herald.incident(INCIDENT))
    closed = replace(INCIDENT, state=type(INCIDENT.state).CLOSED, closed_at=99)
    for _ in range(2):
        await store.troubles.put_incident(closed, herald.incident(closed))
    assert await waiting(store) == ["incident.opened", "incident.closed"]


async def test_a_part_that_failed_for_good_is_told_with_its_row_and_one_that_is_tried_again_is_not(
    store: Store,
) -> None:
    herald = telling()
    session, epoch = await session_of(store, "telegram/1/7//")
    part = DeliveryRow("telegram/1/7/", "t_1", "b", 0, 1, b"{}", "h", "k", DeliveryState.WANTED, at=5)
    failed = replace(part, state=DeliveryState.FAILED, cause="blocked")
    on_its_way = replace(failed, final=False, at=4)
    for one in (part, on_its_way, failed, failed):
        await store.deliveries.put(session, epoch, [one], herald.parts(session, [one]))
    assert await waiting(store) == ["delivery.failed"]
    other = replace(failed, bubble="c", key="k2")
    with pytest.raises(StoreError):  # who may not write tells nobody
        await store.deliveries.put(session, epoch + 1, [other], herald.parts(session, [other]))
    assert await waiting(store) == ["delivery.failed"]


async def test_what_a_fenced_turn_would_have_told_is_not_told(store: Store) -> None:
    session, epoch = await session_of(store)
    what = HookFact(event=HookEvent.TURN_ENDED, subject="t_1", at=5, session=session, turn="t_1")
    told = [message(HookRule("deploy"), what)]
    with pytest.raises(StoreError):
        await store.turns.close(session, epoch, "t_1", [row(0)], "answered", 9, hooks=told)
    assert await waiting(store) == []


async def test_what_is_told_of_somebody_goes_when_they_are_forgotten(store: Store) -> None:
    session, _ = await session_of(store)
    other, _ = await session_of(store, "another")
    for name in (session, other):
        what = HookFact(event=HookEvent.TURN_ENDED, subject=f"t_{name}", at=5, session=name, words={"asked": "PURPLE"})
        await store.hooks.put([message(HookRule("deploy", words=True), what)])
    await store.writer.alone(forgetting.remove_session(TheirSession(session, "chat", alone=True), 10))
    left = await store.hooks.waiting("deploy", 10)
    assert [one.row.session for one in left] == [other]
    assert left[0].row.state is HookState.WAITING


@pytest_asyncio.fixture
async def telegram(tmp_path: Path) -> AsyncGenerator[TelegramHarness]:
    async with telegram_harness(tmp_path) as harness:
        yield harness


async def test_an_approval_is_told_when_it_is_asked_and_when_it_is_answered(telegram: TelegramHarness) -> None:
    ada = telegram.person("Ada")
    chat = telegram.private(ada)
    async with receiving() as told:
        settings = configured(told.url, surfaces=["telegram"])
        async with running(telegram, OUTSPOKEN_TOOLS__APPROVAL="write_file", **settings):
            telegram.say(chat, ada, "write note.txt: PURPLE")
            asked = await answer(telegram, chat, "write_file", 30)
            telegram.press(chat, ada, asked.id, "✅ Approve")
            await told.until(3)
    heard = [one.body for one in told.came if one.body["type"] != "alert"]
    assert [one["type"] for one in heard] == ["approval.asked", "approval.answered", "turn.ended"]
    assert [one["data"].get("tool") for one in heard[:2]] == ["write_file"] * 2
    assert heard[1]["data"]["verdict"] == "given"
    assert len({one["data"]["turn"] for one in heard}) == 1
    assert "PURPLE" not in str(heard)
