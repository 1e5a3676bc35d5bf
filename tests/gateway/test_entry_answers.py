"""Whatever happens while a request is served, it is answered with what can be said of it; and names of conversations take no more memory than there is."""

from __future__ import annotations

import ipaddress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import ClientPayloadError, web
from aiohttp.test_utils import TestClient, TestServer

from adapters.http.behindproxy import BehindProxy
from adapters.http.entrance import NotJson
from agent_core.signals import RequestRefused, Signal
from agent_core.store.errors import Damaged, LeaseLost, StorageUnavailable
from agent_core.store.overview import TurnSummary
from gateway.console import naming
from gateway.console.naming import Names
from gateway.http.connections import SlowBody
from gateway.http.entry import EntryMiddleware
from gateway.limits.patience import DoorLimits
from tests.adapters.scripted import CountedIds


class Keeper:
    """Doors of a proxy of ours, or none."""

    def __init__(self, *, proxied: bool, per_peer: int = 2) -> None:
        self.limits = DoorLimits(per_peer=per_peer, trusted=(ipaddress.ip_network("192.0.2.1/32"),))
        self.open: list[web.BaseRequest] = []
        self.door = SimpleNamespace(peer="192.0.2.1", once=False, begins=self.open.append, ends=self.open.pop)
        self._proxied = proxied

    def door_of(self, _: object) -> Any:
        return self.door if self._proxied else None


async def answered(
    error: Exception | None, *, begun: bool = False, proxied: bool = False
) -> tuple[int, str, str | None, list[int]]:
    """Status, what is said, when to come again, and what was counted as refused."""
    counted: list[int] = []

    def tell(signal: Signal) -> None:
        assert isinstance(signal, RequestRefused)
        counted.append(signal.status)

    async def handle(request: web.Request) -> web.StreamResponse:
        if begun:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"half ")
        if error is not None:
            raise error
        return web.Response(text="whole")

    keeper, app = Keeper(proxied=proxied), web.Application()
    app.router.add_get("/", handle)
    EntryMiddleware(cast("Any", keeper), CountedIds(), tell, BehindProxy()).connect(app)
    async with TestClient(TestServer(app)) as client, client.get("/") as response:
        told = await response.text()
        assert keeper.open == []
        return response.status, told, response.headers.get("Retry-After"), counted


@pytest.mark.parametrize(
    ("error", "status", "words", "again", "refused"),
    [
        (StorageUnavailable("disk I/O"), 503, "Ask again in a moment", "10", False),
        (LeaseLost("another has it"), 503, "Ask again in a moment", "10", False),
        (Damaged("torn"), 503, "damaged there", "10", False),
        (NotJson("It is no JSON."), 400, "It is no JSON.", None, True),
        (RecursionError(), 400, "too deeply", None, True),
        (SlowBody(), 408, "did not come in time", None, True),
        (RuntimeError("a secret of ours"), 500, "reference err_1", None, False),
        (None, 200, "whole", None, False),
    ],
)
async def test_whatever_happens_there_is_an_answer_that_says_what_to_do(
    error: Exception | None, status: int, words: str, again: str | None, *, refused: bool
) -> None:
    got, told, later, counted = await answered(error)
    assert (got, later, counted) == (status, again, [status] if refused else [])
    assert words in told
    assert "secret" not in told
    assert "disk I/O" not in told


@pytest.mark.parametrize("error", [StorageUnavailable("away"), Damaged("torn"), RuntimeError("x")])
async def test_an_answer_that_has_begun_is_cut_and_not_ended_as_if_it_were_whole(error: Exception) -> None:
    with pytest.raises(ClientPayloadError):
        await answered(error, begun=True)


async def test_who_comes_through_a_proxy_has_the_bound_of_anybody_and_gives_it_back() -> None:
    keeper, app = Keeper(proxied=True), web.Application()
    inside: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        inside.append(request)
        if "meanwhile" in request.query:
            async with client.get(
                request.query.get("asks", "/"), headers={"X-Forwarded-For": request.query["meanwhile"]}
            ) as other:
                return web.Response(status=other.status)
        return web.Response()

    for path in ("/", "/healthz", "/readyz"):
        app.router.add_get(path, handle)
    keeper.limits = DoorLimits(per_peer=1, trusted=keeper.limits.trusted)
    EntryMiddleware(cast("Any", keeper), CountedIds(), lambda _: None, BehindProxy()).connect(app)
    async with TestClient(TestServer(app)) as client:
        heads = {"X-Forwarded-For": "203.0.113.1"}
        for other, status in (("203.0.113.1", 429), ("203.0.113.2", 200), ("192.0.2.1", 200), ("203.0.113.1", 429)):
            async with client.get(f"/?meanwhile={other}", headers=heads) as response:
                assert response.status == status, other
        for health in ("/healthz", "/readyz"):
            async with client.get(f"/?meanwhile=203.0.113.1&asks={health}", headers=heads) as response:
                assert response.status == 200, health
        async with client.get("/", headers=heads) as response:
            assert response.status == 200


# ---------------------------------------------------------------------- names in the console


def summary(number: int) -> TurnSummary:
    return TurnSummary(f"t_{number}", f"s_{number}", f"telegram/1/{number}//", 1, "", 5, None, False, 0, 0, "")


async def test_of_so_many_conversations_and_people_it_is_known_how_they_are_called_and_the_others_by_their_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(naming, "KNOWN_MOST", 3)
    monkeypatch.setattr(naming, "AT_ONCE", 2)

    def called_as(key: str, _: object) -> str:
        return f"called {key}"

    monkeypatch.setattr(naming, "_named", called_as)
    asked: list[list[object]] = []

    async def looked(*turns: object) -> list[object]:
        asked.append([*turns])
        return []

    async def these(people: list[tuple[str, str]]) -> list[object]:
        asked.append([*people])
        return [SimpleNamespace(account=account, person=person, name=f"name of {person}") for account, person in people]

    store: Any = SimpleNamespace(inbox=SimpleNamespace(inputs=looked), people=SimpleNamespace(these=these))
    names = Names(store)
    every = [summary(number) for number in range(5)]
    for _ in range(2):
        await names.learn(every[:2])
    assert asked == [["t_0", "t_1"]], "each is looked up once"
    await names.learn(every)
    await names.learn(every[4:])
    called = [names.of(f"s_{n}", f"telegram/1/{n}//").startswith("called") for n in range(5)]
    assert (called.count(True), called[0], called[4]) == (3, False, True)
    asked.clear()
    for _ in range(2):
        await names.meet([("telegram/1", str(number)) for number in range(2)])
    assert len(asked) == 1
    await names.meet([("telegram/1", str(number)) for number in range(5)])
    assert [names.person(("telegram/1", str(n))).startswith("name of") for n in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
