"""Behind each door at which a kept response can be asked for, whoever did not ask it finds nothing, and nothing is done to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from multidict import MultiDict

from adapters.contract.base import Ended, FromApi, KeptResponse, SessionKey, Showing, Ticket
from adapters.contract.callers import ANYBODY, Caller
from adapters.http.api.keptresponses import CANCEL_TRIES, KeptResponses
from adapters.http.common import CALLER
from agent_core.messages import InputMessage
from agent_core.turn.view import View

ADA, ADAS_OTHER = Caller("laptop", "ada"), Caller("phone", "ada")
STRANGERS = (Caller("laptop2", "bob"), Caller("laptop", "bob"), Caller("laptop"), ANYBODY)
KEPT = KeptResponse(
    Ticket(5, "s_1", duplicate=False),
    FromApi(
        account="api", platform_key="k", session=SessionKey("api", "key", "c", person=ADA.realm),
        input=(InputMessage("hello"),), surface="api", memory_scope="api/ada", key="laptop", response={},
    ),
    1_000,
    latest=True,
)  # fmt: skip


class Reached(Exception):
    """Something of it would be told or done."""


class Gateway:
    """Has the one response."""

    def __init__(self, kept: KeptResponse) -> None:
        self.kept = kept

    async def response(self, session: str, number: int) -> KeptResponse:
        assert (session, number) == ("s_1", 5)
        return self.kept

    request = response

    def follow(self, *_: object, **__: object) -> Any:
        raise Reached

    async def delete_response(self, *_: object) -> None:
        raise Reached

    stop_message = delete_response


class Asked(dict[Any, Any]):
    """A request of somebody."""

    match_info: Mapping[str, str] = MappingProxyType({"response": "resp_s_1_5", "completion": "chatcmpl-s_1-5"})
    query: Mapping[str, str] = MultiDict()


def served(kept: KeptResponse = KEPT) -> KeptResponses:
    gateway: Any = Gateway(kept)
    return KeptResponses(gateway, SimpleNamespace(), lambda _, job: job, None)  # pyright: ignore[reportArgumentType]


DOORS: Mapping[str, Callable[[KeptResponses, Any], Awaitable[web.StreamResponse]]] = {
    "get": KeptResponses.get,
    "cancel": KeptResponses.cancel,
    "cancel completion": KeptResponses.cancel_completion,
    "delete": KeptResponses.delete,
    "items": KeptResponses.items,
}
STATELESS = replace(KEPT, inbound=replace(KEPT.inbound, own_history=(), response=None))


@pytest.mark.parametrize("kept", [KEPT, STATELESS], ids=["kept", "stateless"])
@pytest.mark.parametrize("door", DOORS)
async def test_who_did_not_ask_it_finds_nothing_behind_any_door(door: str, kept: KeptResponse) -> None:
    for caller in STRANGERS:
        assert (await DOORS[door](served(kept), Asked({CALLER: caller}))).status == 404
    for caller in (ADA, ADAS_OTHER):
        try:
            answer = await DOORS[door](served(kept), Asked({CALLER: caller}))
        except Reached:
            continue
        assert (door, answer.status) == ("items", 200)


@pytest.mark.parametrize("name", ["msg_s_1_5_text0", "in_s_1_5_0", "rs_s_1_5_0", "fc_s_1_5_0"])
async def test_who_did_not_ask_it_can_refer_to_nothing_of_it(name: str) -> None:
    for caller in STRANGERS:
        assert await served().named([name], caller) == {}
    with pytest.raises(Reached):
        await served().named([name], ADA)


@pytest.mark.parametrize("background", [True, False])
@pytest.mark.parametrize(
    ("after", "number"), [("", True), ("0", True), ("17", True), ("-1", False), ("x", False), ("1" * 16, False)]
)
async def test_only_a_stream_of_the_background_is_gone_on_with_and_behind_an_event(
    after: str, *, number: bool, background: bool
) -> None:
    """Else nothing says which events there were."""
    kept = replace(KEPT, inbound=replace(KEPT.inbound, response={"background": background}))
    asked = Asked({CALLER: ADA})
    asked.query = MultiDict({"stream": "true", **({"starting_after": after} if after else {})})
    try:
        answer = await KeptResponses.get(served(kept), asked)  # pyright: ignore[reportArgumentType]
    except Reached:
        assert not after or (number and background)
    else:
        assert answer.status == 400
        assert after
        assert not (number and background)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, (["two", "one", "zero"], False)),
        ({"order": "asc"}, (["zero", "one", "two"], False)),
        ({"limit": "2"}, (["two", "one"], True)),
        ({"limit": "1", "after": "in_s_1_5_2"}, (["one"], True)),
        ({"order": "asc", "after": "in_s_1_5_1"}, (["two"], False)),
        ({"limit": "0"}, None),
        ({"limit": "101"}, None),
        ({"limit": "²"}, None),
        ({"order": "newest"}, None),
    ],
)
async def test_what_was_asked_is_told_in_pages_and_what_is_no_page_is_refused(
    query: dict[str, str], found: tuple[list[str], bool] | None
) -> None:
    words = tuple(InputMessage(one) for one in ("zero", "one", "two"))
    asked = Asked({CALLER: ADA})
    asked.query = MultiDict(query)
    kept = replace(KEPT, inbound=replace(KEPT.inbound, input=words))
    answer: Any = await KeptResponses.items(served(kept), asked)  # pyright: ignore[reportArgumentType]
    assert answer.status == (400 if found is None else 200)
    if found is not None:
        body = json.loads(answer.body)
        assert ([one["content"][0]["text"] for one in body["data"]], body["has_more"]) == found
        assert (body["first_id"], body["last_id"]) == (body["data"][0]["id"], body["data"][-1]["id"])


class Running(Gateway):
    """Its turn hears the stop only when it is open, or not at all."""

    def __init__(self, hears: int | None) -> None:
        super().__init__(KEPT)
        self.hears, self.did = hears, list[str]()
        self.turn = Showing("t_1", View((), open=True))

    @asynccontextmanager
    async def follow(self, *_: object, **__: object) -> AsyncGenerator[Any]:
        yield self

    async def next(self, _: float) -> Any:
        if self.did.count("stop") == self.hears:
            anything: Any = None
            return Ended("t_1", View((), open=False), anything, (), anything)
        seen, self.turn = self.turn, None
        return seen

    async def stop_message(self, *_: object) -> None:
        self.did.append("stop")

    async def delete_response(self, *_: object) -> None:
        self.did.append("delete")


@pytest.mark.parametrize(("hears", "status"), [(1, 200), (3, 200), (None, 409)])
async def test_what_is_deleted_has_been_stopped_before(hears: int | None, status: int) -> None:
    """Else its turn goes on, and what it says is kept behind the word that it is deleted."""
    gateway: Any = Running(hears)
    kept = KeptResponses(gateway, SimpleNamespace(), lambda _, job: job, None)  # pyright: ignore[reportArgumentType]
    answer = await kept.delete(Asked({CALLER: ADA}))  # pyright: ignore[reportArgumentType]
    assert answer.status == status
    assert gateway.did.count("stop") == (hears or CANCEL_TRIES)
    assert ("delete" in gateway.did) == (status == 200)
