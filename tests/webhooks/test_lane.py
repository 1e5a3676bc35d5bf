"""One receiver's lane beside a storage that is made up: what is never sent, never given up and never forgotten."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web

from agent_core.bell import Bell
from agent_core.store.store import StorageUnavailable
from agent_core.store.webhooks.rows import HookCount, HookRow, ReceiverRow, StoredHook
from agent_core.workers.pool import Workers
from gateway.sharing.portion import Portion
from gateway.webhooks import posting as posts
from gateway.webhooks import sender as sending
from gateway.webhooks.events import HookEvent, HookFact, HookRule, Receiver, message
from gateway.webhooks.posting import HookPost, posting
from gateway.webhooks.sender import LOOK_SECONDS, HookSender
from gateway.webhooks.telling import HookTelling
from tests.store.support import FakeClock

URL = "https://deploy.example"


class Hooks:
    """What the storage has."""

    def __init__(self) -> None:
        self.rows: list[StoredHook] = []
        self.known: list[ReceiverRow] = []
        self.away = 0
        """So often nothing can be stored."""
        self.settled: list[Sequence[HookRow]] = []
        self.asked = 0
        self.lease = True
        self.hooks, self.ownership = self, self

    def lease_ok(self) -> bool:
        return self.lease

    async def receivers(self) -> list[ReceiverRow]:
        return self.known

    async def counts(self) -> list[HookCount]:
        return []

    async def due(self, *_: object) -> list[StoredHook]:
        self.asked += 1
        return self.rows

    async def next_at(self, _: str) -> int | None:
        return None

    async def waiting(self, _: str, limit: int, after: int = 0) -> list[StoredHook]:
        return [one for one in self.rows if one.number > after][:limit]

    async def settle(self, rows: Sequence[HookRow], _: Sequence[ReceiverRow] = ()) -> None:
        if self.away:
            self.away -= 1
            raise StorageUnavailable("it is away")
        self.settled.append(rows)


async def made(hooks: Hooks, clock: FakeClock) -> HookSender:
    receiver = Receiver(HookRule("deploy"), URL, (b"k" * 32,), seconds=2)

    async def key_of(_: str) -> str:
        return ""

    telling = HookTelling([receiver.rule], key_of, clock, Bell())
    return HookSender([receiver], telling, cast("Any", hooks), cast("Any", None), clock, seed=1, portion=Portion())


def rows(count: int, clock: FakeClock) -> list[HookRow]:
    facts = [HookFact(event=HookEvent.TURN_ENDED, subject=f"t_{n}", at=clock.now, session="s") for n in range(count)]
    return [message(HookRule("deploy"), fact) for fact in facts]


async def test_nothing_is_sent_without_a_lease() -> None:
    hooks, clock = Hooks(), FakeClock()
    hooks.lease = False
    lane = (await made(hooks, clock))._lanes["deploy"]
    assert await lane._pass(cast("Any", None)) == LOOK_SECONDS
    assert not hooks.asked
    hooks.lease = True
    await lane._pass(cast("Any", None))
    assert hooks.asked


async def test_what_is_stored_as_sent_while_the_lane_looks_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks, clock = Hooks(), FakeClock()
    sent, waits = rows(2, clock)
    lane = (await made(hooks, clock))._lanes["deploy"]
    lane._in_hand.take(sent.message, sent)
    begun: list[str] = []

    async def due(*_: object) -> list[StoredHook]:
        lane._in_hand.leave(sent.message)  # what came of it is stored behind this question
        return [StoredHook(number, one) for number, one in enumerate((sent, waits), 1)]

    async def send(row: HookRow) -> None:
        begun.append(row.message)

    monkeypatch.setattr(hooks, "due", due)
    monkeypatch.setattr(lane, "_send", send)
    async with asyncio.TaskGroup() as group:
        await lane._pass(group)
    assert begun == [waits.message]


async def test_what_is_under_way_is_not_given_up_with_its_receiver() -> None:
    hooks, clock = Hooks(), FakeClock()
    sent, waits = rows(2, clock)
    hooks.rows = [StoredHook(number, one) for number, one in enumerate((sent, waits), 1)]
    lane = (await made(hooks, clock))._lanes["deploy"]
    lane._in_hand.take(sent.message, sent)
    assert [one.message for one in await lane._rest("it is gone")] == [waits.message]


async def test_what_was_sent_while_it_was_read_what_waits_for_a_receiver_that_is_gone_is_not_said_to_be_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hooks, clock = Hooks(), FakeClock()
    sent, waits = rows(2, clock)
    hooks.rows = [StoredHook(number, one) for number, one in enumerate((sent, waits), 1)]
    lane = (await made(hooks, clock))._lanes["deploy"]
    lane._in_hand.take(sent.message, sent)
    waiting = hooks.waiting

    async def read(name: str, limit: int, after: int = 0) -> list[StoredHook]:
        found = await waiting(name, limit, after)
        lane._in_hand.leave(sent.message)  # and what came of it is stored
        return found

    monkeypatch.setattr(hooks, "waiting", read)
    assert [one.message for one in await lane._rest("it is gone")] == [waits.message]


async def test_a_receiver_that_is_gone_is_stored_so_though_the_storage_is_away_when_what_waits_for_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hooks, clock = Hooks(), FakeClock()
    gone, waits = rows(2, clock)
    hooks.rows = [StoredHook(2, waits)]
    lane = (await made(hooks, clock))._lanes["deploy"]
    before, lane.row = lane.row, replace(lane.row, off="it is gone")
    waiting, away = hooks.waiting, [True]

    async def read(name: str, limit: int, after: int = 0) -> list[StoredHook]:
        if away.pop() if away else False:
            raise StorageUnavailable("it is away")
        return await waiting(name, limit, after)

    async def sleep(_: float) -> None: ...

    monkeypatch.setattr(hooks, "waiting", read)
    monkeypatch.setattr(sending, "asyncio", SimpleNamespace(sleep=sleep))
    await lane._store(gone, before)
    assert [[one.message for one in stored] for stored in hooks.settled] == [[gone.message, waits.message]]
    assert lane.figures.given_up == 1


async def test_what_an_attempt_came_to_is_stored_however_long_the_storage_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hooks, clock = Hooks(), FakeClock()
    hooks.away = 3

    async def sleep(_: float) -> None: ...

    monkeypatch.setattr(sending, "asyncio", SimpleNamespace(sleep=sleep))
    (one,) = rows(1, clock)
    lane = (await made(hooks, clock))._lanes["deploy"]
    await lane._store(one, lane.row)
    assert hooks.settled == [[one]]


@pytest.mark.parametrize(("url", "off"), [(URL, True), ("https://other.example", False)])
async def test_with_another_address_it_is_another_receiver(url: str, off: bool) -> None:
    hooks, clock = Hooks(), FakeClock()
    hooks.known = [ReceiverRow("deploy", url, off="it is gone")]
    sender = await made(hooks, clock)
    await sender._begun()
    assert bool(sender._lanes["deploy"].row.off) is off
    assert ("deploy" in sender.telling.off) is off


async def test_nobody_is_led_elsewhere_by_who_is_told() -> None:
    """An answer that says where else to go would choose whom we call, and with what."""
    came: list[str] = []

    async def told(request: web.Request) -> web.Response:
        came.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", told)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with Workers() as workers, posting(workers) as poster, asyncio.timeout(20):
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/here"
            assert (await poster.post(HookPost(url, {}, b"{}", 9, private=True))).status == 307
    finally:
        await runner.cleanup()
    assert came == ["/here"]


async def test_who_cannot_be_connected_is_not_said_to_have_been_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posts, "CONNECT_SECONDS", 0.2)
    with socket.socket() as listening, ExitStack() as callers:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):  # nobody takes them: who comes now waits at the door
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listening.getsockname())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        async with Workers() as workers, posting(workers) as poster:
            attempt = await poster.post(HookPost(url, {}, b"{}", 15.0, private=True))
    assert attempt.words == "no connection could be made within 0.2 s"
