"""The outbox and its sender: a real store on both engines, real sockets, receivers that are slow, refuse, hang, and hang up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import pytest
import pytest_asyncio

from agent_core.bell import Bell
from agent_core.retry import HOOK
from agent_core.store.store import Store
from agent_core.store.webhooks.rows import HookRow, HookState, ReceiverRow
from agent_core.workers.pool import Workers
from gateway.sharing.portion import Portion
from gateway.webhooks.deciding import DAY_MS, OLD_MS
from gateway.webhooks.events import HookEvent, HookFact, HookRule, Receiver, message
from gateway.webhooks.posting import posting
from gateway.webhooks.sender import HookSender
from gateway.webhooks.telling import HookTelling
from tests.store.support import FakeClock, opened
from tests.webhooks.receiver import KEY, Answer, ReceiverServer, endless, hang, hang_up, receiving, status, unfinished


@dataclass
class Outside:
    """A store, and who is told."""

    store: Store
    clock: FakeClock
    told: ReceiverServer

    def receiver(self, **more: object) -> Receiver:
        made = Receiver(HookRule("deploy"), self.told.url, (KEY,), seconds=2, private=True)
        return replace(made, **more)

    @asynccontextmanager
    async def sending(self, *receivers: Receiver) -> AsyncGenerator[HookSender]:
        every = receivers or (self.receiver(),)

        async def key_of(_: str) -> str:
            return ""

        telling = HookTelling([one.rule for one in every], key_of, self.clock, Bell())
        async with Workers() as workers, posting(workers) as poster:
            sender = HookSender(every, telling, self.store, poster, self.clock, seed=1, portion=Portion())
            async with sender.running():
                yield sender

    def row(self, number: int, session: str = "s", receiver: str = "deploy", at: int = 0) -> HookRow:
        what = HookFact(event=HookEvent.TURN_ENDED, subject=f"t_{number}", at=at or self.clock.now, session=session)
        return message(HookRule(receiver), what)

    async def put(self, *rows: HookRow) -> None:
        await self.store.hooks.put(rows)

    async def state(self, row: HookRow) -> HookRow:
        found = await self.store.hooks.one(row.message)
        assert found is not None
        return found

    async def later(self, sender: HookSender, seconds: float) -> None:
        """The time passes."""
        self.clock.now += round(seconds * 1000)
        self.told.punctual = False
        sender.ring()


@pytest_asyncio.fixture
async def outside(where: str) -> AsyncGenerator[Outside]:
    clock = FakeClock(round(__import__("time").time() * 1000))  # receivers compare it with theirs
    async with opened(where, clock) as store, receiving() as told:
        yield Outside(store, clock, told)


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await true():
            await asyncio.sleep(0.02)


async def test_what_stands_in_the_outbox_is_sent_once_and_signed(outside: Outside) -> None:
    rows = [outside.row(n, f"s{n % 3}") for n in range(12)]
    await outside.put(*rows)
    async with outside.sending() as sender:
        await outside.told.until(12)
        await until(lambda: _all(outside, rows, HookState.SENT))
        await outside.put(*rows)  # the same is told again
        sender.ring()
        await asyncio.sleep(0.2)
    assert sorted(outside.told.ids) == sorted(row.message for row in rows)
    assert outside.told.most_under_way <= 4
    for session in ("s0", "s1", "s2"):
        told = [one.id for one in outside.told.came if one.body["data"]["session"] == session]
        assert told == [row.message for row in rows if row.session == session]


async def _all(outside: Outside, rows: list[HookRow], state: HookState) -> bool:
    return all([(await outside.state(row)).state is state for row in rows])


@pytest.mark.parametrize("how", ["500", "302", "hang", "hang up"])
async def test_what_is_not_taken_is_tried_again_under_the_same_id(outside: Outside, how: str) -> None:
    outside.told.answers = [
        {"500": status(500), "302": status(302, Location=outside.told.url), "hang": hang, "hang up": hang_up}[how]
    ]
    row = outside.row(1)
    await outside.put(row)
    async with outside.sending(outside.receiver(seconds=0.5)) as sender:
        await until(lambda: _tried(outside, row, 1))
        failed = await outside.state(row)
        assert failed.state is HookState.WAITING
        assert failed.cause
        sender.ring()
        await asyncio.sleep(0.1)
        assert len(outside.told.came) == 1, "it was tried again at once"
        await outside.later(sender, 5)
        await until(lambda: _all(outside, [row], HookState.SENT))
    assert outside.told.ids == [row.message] * 2
    assert outside.told.came[0].raw == outside.told.came[1].raw


async def _tried(outside: Outside, row: HookRow, times: int) -> bool:
    return (await outside.state(row)).attempt >= times


@pytest.mark.parametrize("answer", [endless, unfinished])
async def test_an_answer_without_an_end_counts_by_its_head(outside: Outside, answer: Answer) -> None:
    outside.told.answers = [answer]
    row = outside.row(1)
    await outside.put(row)
    async with outside.sending():
        await until(lambda: _all(outside, [row], HookState.SENT))
    assert len(outside.told.came) == 1


async def test_a_receiver_that_is_gone_is_turned_off_and_can_be_turned_on(outside: Outside) -> None:
    outside.told.answers = [status(410)]
    rows = [outside.row(n, "s") for n in range(60)]
    await outside.put(*rows)
    async with outside.sending() as sender:
        await until(lambda: _all(outside, rows, HookState.GIVEN_UP))
        assert len(outside.told.came) == 1
        assert sender.telling.off == {"deploy"}
        assert any("off" in words for _, words, _ in sender.troubles())
    async with outside.sending() as sender:  # another process
        await until(lambda: _off(sender))
        sender.ring()
        await asyncio.sleep(0.1)
        assert len(outside.told.came) == 1
        assert await sender.turn_on("deploy")
        assert await sender.resend("deploy") == 60
        await until(lambda: _all(outside, rows, HookState.SENT))
        assert not sender.telling.off
    assert {row.message for row in rows} == set(outside.told.ids)


async def _off(sender: HookSender) -> bool:
    return bool(sender.telling.off)


async def test_a_pause_that_is_asked_for_is_kept_also_by_the_next_process(outside: Outside) -> None:
    outside.told.answers = [status(429, **{"Retry-After": "3600"})]
    one, two = outside.row(1, "a"), outside.row(2, "b")
    await outside.put(one)
    async with outside.sending():
        await until(lambda: _receiver_waits(outside))
    await outside.put(two)
    async with outside.sending() as sender:
        await outside.later(sender, 3_500)
        await asyncio.sleep(0.2)
        assert len(outside.told.came) == 1
        await outside.later(sender, 101)
        await until(lambda: _all(outside, [one, two], HookState.SENT))
    assert (await outside.state(one)).attempt == 1, "the pause counted as a failure"


async def _receiver_waits(outside: Outside) -> bool:
    return any(one.not_before for one in await outside.store.hooks.receivers())


async def test_a_receiver_that_fails_is_asked_one_at_a_time(outside: Outside) -> None:
    outside.told.usual = status(500)
    rows = [outside.row(n, f"s{n}") for n in range(20)]
    await outside.put(*rows)
    async with outside.sending() as sender:
        await outside.told.until(4)
        await until(lambda: _tried(outside, rows[3], 1))
        outside.told.most_under_way = 0
        async with asyncio.timeout(60):
            while len(outside.told.came) < 12:
                await outside.later(sender, 61)
                await asyncio.sleep(0.05)
        assert outside.told.most_under_way == 1
        outside.told.usual = status(200)
        async with asyncio.timeout(60):
            while not await _all(outside, rows, HookState.SENT):
                await outside.later(sender, 61)
                await asyncio.sleep(0.05)


async def test_a_message_that_is_never_taken_is_given_up_told_of_and_sent_again_when_asked(outside: Outside) -> None:
    outside.told.usual = status(500)
    row = outside.row(1)
    await outside.put(row)
    async with outside.sending() as sender:
        for attempt in range(1, HOOK.attempts + 1):  # time that runs ahead of the attempts makes it too old instead
            await until(partial(_tried, outside, row, attempt))
            await outside.later(sender, 4 * 3_600)
        assert (await outside.state(row)).state is HookState.GIVEN_UP
        assert (await outside.state(row)).attempt == HOOK.attempts
        keys = [key for key, _, _ in sender.troubles()]
        assert "webhook:deploy:lost" in keys
        seen = (await sender.status())[0]
        assert isinstance(seen, dict)
        assert (seen["given_up"], seen["waiting"]) == (1, 0)
        outside.told.usual = status(200)
        await outside.later(sender, 61)
        assert await sender.resend("deploy", row.message) == 1
        await until(lambda: _all(outside, [row], HookState.SENT))
        assert "webhook:deploy:lost" not in [key for key, _, _ in sender.troubles()]
    assert set(outside.told.ids) == {row.message}


async def test_what_was_given_up_and_not_sent_again_is_told_of_until_all_of_it_is(outside: Outside) -> None:
    now = outside.clock.now
    rows = [outside.row(n, at=now - OLD_MS - 1) for n in range(3)]
    await outside.store.hooks.settle([], [ReceiverRow("deploy", outside.told.url, "", 9, now - DAY_MS, 0, now)])
    await outside.put(*rows)
    async with outside.sending() as sender:
        await until(lambda: _all(outside, rows, HookState.GIVEN_UP))

        def lost() -> list[str]:
            return [words.split(" were ")[0] for key, words, _ in sender.troubles() if key == "webhook:deploy:lost"]

        assert lost() == ["3 messages to the webhook deploy"]
        assert await sender.resend("deploy", rows[0].message) == 1
        assert await sender.resend("deploy", rows[0].message) == 1, "it is on its way already"
        assert lost() == ["2 messages to the webhook deploy"]
        assert await sender.resend("deploy") == 2
        assert lost() == []
        assert sender.figures()["deploy"].given_up == 3, "what was counted since the start"
        await outside.put(theirs := outside.row(9, receiver="another"))
        assert await sender.resend("deploy", theirs.message) == 0, "it is another one's"
        assert await sender.resend("deploy", "msg_none") == 0


async def test_what_is_very_old_is_given_up_for_a_receiver_that_never_answers(outside: Outside) -> None:
    now = outside.clock.now
    rows = [outside.row(n, at=now - OLD_MS - 1) for n in range(120)]
    fresh = outside.row(200)
    await outside.store.hooks.settle([], [ReceiverRow("deploy", outside.told.url, "", 9, now - DAY_MS, 0, now)])
    await outside.put(*rows, fresh)
    async with outside.sending():
        await until(lambda: _all(outside, [fresh], HookState.SENT))
        assert await _all(outside, rows, HookState.GIVEN_UP)


async def test_an_address_inside_is_refused_unless_it_is_allowed(outside: Outside) -> None:
    row = outside.row(1)
    await outside.put(row)
    async with outside.sending(outside.receiver(private=False)):
        await until(lambda: _tried(outside, row, 1))
    assert outside.told.came == []
    assert "127.0.0.1 is this machine" in (await outside.state(row)).cause


async def test_messages_for_a_receiver_that_is_configured_no_more_are_given_up(outside: Outside) -> None:
    row = outside.row(1, receiver="other")
    await outside.put(row)
    async with outside.sending():
        await until(lambda: _all(outside, [row], HookState.GIVEN_UP))
    assert outside.told.came == []


async def test_one_that_hangs_holds_up_no_other_receiver(outside: Outside) -> None:
    outside.told.usual = hang
    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(receiving())
        slow = outside.receiver(seconds=20)
        quick = replace(outside.receiver(), rule=HookRule("quick"), url=other.url)
        await outside.put(*[outside.row(n, f"s{n}") for n in range(8)])
        await outside.put(*[outside.row(n, f"s{n}", "quick") for n in range(8)])
        async with outside.sending(slow, quick):
            await other.until(8)
        assert outside.told.most_under_way == 4


async def test_a_test_message_goes_to_whoever_is_named_whatever_it_hears(outside: Outside) -> None:
    rule = HookRule("deploy", events=frozenset({HookEvent.ALERT}))
    async with outside.sending(replace(outside.receiver(), rule=rule)) as sender:
        made = await sender.test("deploy", "test_1")
        await outside.told.until(1)
    assert outside.told.came[0].id == made
    assert outside.told.came[0].body["type"] == "test"
