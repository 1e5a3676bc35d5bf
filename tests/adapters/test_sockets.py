"""Slack's sockets: one that says that it goes leaves no gap, one that ends without a word does; what was not taken is not acknowledged."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from adapters.contract.chat import CallFailed, Fate
from adapters.contract.supervision import AllConnections
from adapters.slack import sockets
from adapters.slack.sockets import Sockets


class Slack:
    """A server that sends what a test wants, and keeps what is acknowledged."""

    def __init__(self) -> None:
        self.open: list[web.WebSocketResponse] = []
        self.acknowledged: list[str] = []
        self.url = ""

    async def dialled(self) -> str:
        return self.url

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        ws = web.WebSocketResponse()
        await ws.prepare(request)
        self.open.append(ws)
        async for message in ws:
            if message.type is WSMsgType.TEXT:
                self.acknowledged.append(json.loads(message.data)["envelope_id"])
        self.open.remove(ws)
        return ws


@asynccontextmanager
async def slack() -> AsyncGenerator[Slack]:
    made = Slack()
    app = web.Application()
    app.router.add_get("/", made.socket)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    try:
        yield made
    finally:
        await runner.cleanup()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def served(server: Slack, handle: sockets.Handle, gaps: list[str]) -> AsyncGenerator[Sockets]:
    made = Sockets(2, server.dialled, handle, on_gap=lambda: gaps.append("gap"))
    running = asyncio.create_task(made.run(lambda: None))
    try:
        await until(lambda: made.alive == 2 and len(server.open) == 2)
        yield made
    finally:
        running.cancel()
        await asyncio.wait([running])


async def takes(_: object) -> bool:
    return True


async def test_a_socket_that_says_that_it_goes_is_replaced_before_and_leaves_no_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "LINGER_SECONDS", 0.02)
    gaps: list[str] = []
    async with slack() as server, served(server, takes, gaps) as made:
        first = server.open[0]
        await first.send_str(json.dumps({"type": "disconnect", "reason": "warning"}))
        await until(lambda: len(server.open) == 3)
        await until(lambda: first.closed and made.alive == 2)
        assert made.whole
        assert gaps == []


async def test_what_comes_by_a_socket_that_goes_is_taken_and_acknowledged_there_while_its_successor_is_open() -> None:
    async with slack() as server, served(server, takes, []):
        first = server.open[0]
        await first.send_str(json.dumps({"type": "disconnect", "reason": "warning"}))
        await until(lambda: len(server.open) == 3)
        for _ in range(20):
            await asyncio.sleep(0)
        await first.send_str(json.dumps({"envelope_id": "late", "payload": {}}))
        await until(lambda: server.acknowledged == ["late"])


async def test_where_slack_has_too_many_sockets_the_next_is_not_opened_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = asyncio.Event()

    async def patience(_: Sockets, seconds: float, words: str) -> None:
        assert (seconds, bool(words)) == (sockets.SOCKET.most, True)
        waited.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Sockets, "_patience", patience)
    async with slack() as server, served(server, takes, []) as made:
        await server.open[0].send_str(json.dumps({"type": "disconnect", "reason": "too_many_websockets"}))
        await asyncio.wait_for(waited.wait(), 20)
        assert (made.alive, len(server.open)) == (2, 2)


async def test_a_socket_that_ends_without_a_word_leaves_a_gap_though_another_stands() -> None:
    gaps: list[str] = []
    async with slack() as server, served(server, takes, gaps) as made:
        first = server.open[0]
        transport = first._req.transport if first._req is not None else None
        assert transport is not None
        transport.close()
        await until(lambda: bool(gaps))
        await until(lambda: made.alive == 2)
        assert gaps == ["gap"]
        assert made.whole


class Divided(AllConnections):
    """The first of them is ours; the others are once they are given to us, by somebody who lives or not."""

    def __init__(self, *, handed: bool) -> None:
        self.given, self._handed = asyncio.Event(), handed

    async def while_had(self, number: int, work: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        if number:
            await self.given.wait()
        await work()

    def has(self, number: int, /) -> bool:
        return number == 0

    def handed(self, number: int, /) -> bool:
        return number > 0 and self._handed


@pytest.mark.parametrize("handed", [True, False])
async def test_what_somebody_had_who_is_gone_without_a_word_leaves_a_gap_and_what_is_handed_does_not(
    *, handed: bool
) -> None:
    gaps: list[str] = []
    async with slack() as server:
        held = Divided(handed=handed)
        made = Sockets(2, server.dialled, takes, on_gap=lambda: gaps.append("gap"), held=held)
        running = asyncio.create_task(made.run(lambda: None))
        await until(lambda: made.alive == 1)
        assert (gaps, made.whole) == ([], True)
        held.given.set()
        await until(lambda: made.alive == 2)
        await asyncio.sleep(0)
        assert (gaps, made.whole) == ([] if handed else ["gap"], True)
        running.cancel()
        await asyncio.wait([running])


async def test_when_all_sockets_end_and_none_can_be_opened_one_failure_is_told() -> None:
    """And none is left for the loop to complain of, long after."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
    await none_can_be_opened()
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def none_can_be_opened() -> None:
    both, refused = asyncio.Barrier(2), asyncio.Event()

    async def dialled() -> str:
        if refused.is_set():
            await both.wait()  # so that both are refused at once
            raise CallFailed(Fate.REFUSED, "invalid auth")
        return server.url

    async with slack() as server:
        made = Sockets(2, dialled, takes)
        running = asyncio.create_task(made.run(lambda: None))
        await until(lambda: made.alive == 2 and len(server.open) == 2)
        refused.set()
        for one in [*server.open]:
            await one.close()
        with pytest.raises(CallFailed):
            await running


async def test_whether_somebody_else_has_sockets_is_what_the_last_greeting_says() -> None:
    told: list[bool] = []
    async with slack() as server:
        made = Sockets(2, server.dialled, takes, on_hello=told.append)
        running = asyncio.create_task(made.run(lambda: None))
        try:
            await until(lambda: made.alive == 2 and len(server.open) == 2)
            for number in (2, 3, 1, None, "3"):
                await server.open[0].send_str(json.dumps({"type": "hello", "num_connections": number}))
            await until(lambda: len(told) == 5)
            assert told == [False, True, False, False, False]
        finally:
            running.cancel()
            await asyncio.wait([running])


async def test_what_was_not_taken_or_failed_is_not_acknowledged() -> None:
    taken: list[object] = []

    async def handle(payload: object) -> bool:
        taken.append(payload)
        if payload == "fails":
            raise RuntimeError("a mistake")
        return payload == "good"

    async with slack() as server, served(server, handle, []):
        for name in ("bad", "fails", "good"):
            await server.open[0].send_str(json.dumps({"envelope_id": name, "payload": name}))
        await server.open[1].send_str("no json")
        await until(lambda: "good" in server.acknowledged)
        await asyncio.sleep(0.05)
        assert sorted(map(str, taken)) == ["bad", "fails", "good"]
        assert server.acknowledged == ["good"]
