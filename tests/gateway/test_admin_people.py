"""What whoever runs a gateway decides of people over HTTP: done as it was asked, told with why not where it was not. Beside people who are made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from aiohttp import web

from adapters.contract.callers import ANYBODY
from agent_core.store.people.rows import PersonRow, PersonState
from gateway.http.admin import BY, Admin
from gateway.people.access import LetInElsewhere
from tests.adapters.scripted import asked

ADA = PersonRow("telegram/1", "7", PersonState.APPROVED, at=1)
LOCAL = {"Host": "localhost"}


class House:
    """People, and what was decided of them."""

    def __init__(self) -> None:
        self.done: list[tuple[str, ...]] = []
        self.store = self.forgotten = self.members = self.forgetting = self

    async def approve(self, who: str, by: str) -> PersonRow | None:
        return self._did("approve", who, by)

    async def revoke(self, who: str, by: str) -> PersonRow | None:
        if who == "listed":
            raise LetInElsewhere("They are let in by [telegram] allow: take them out there.")
        return self._did("revoke", who, by)

    def _did(self, *what: str) -> PersonRow | None:
        self.done.append(what)
        return ADA if what[1] == "7" else None

    async def known(self, who: list[tuple[str, str]]) -> bool:
        return who == [("telegram/1", "7")] and not self.done  # what is being forgotten may be gone by now

    async def begin(self, who: tuple[str, str], by: str) -> SimpleNamespace:
        self.done.append(("forget", "/".join(who), by))
        return SimpleNamespace(forget="f_1")

    async def do(self, **body: Any) -> tuple[int, dict[str, Any]]:
        admin = Admin(cast("Any", self), None, cast("Any", self))
        handler = next(one.handler for one in admin.routes() if one.method == "POST")
        answer = cast("web.Response", await cast("Any", handler)(asked(ANYBODY, orjson.dumps(body), LOCAL)))
        assert isinstance(answer.body, bytes)
        return answer.status, orjson.loads(answer.body)


@pytest.mark.parametrize("verb", ["approve", "revoke"])
async def test_what_is_decided_is_done_by_hand_and_who_is_not_known_is_said_so(verb: str) -> None:
    house = House()
    status, told = await house.do(verb=verb, who="7")
    assert (status, told["person"]["person"]) == (200, "7")
    assert (await house.do(verb=verb, who="8"))[0] == 404
    assert house.done == [(verb, "7", BY), (verb, "8", BY)]


async def test_who_is_let_in_by_the_configuration_or_a_key_is_not_unknown() -> None:
    house = House()
    status, told = await house.do(verb="revoke", who="listed")
    assert (status, house.done) == (409, [])
    assert "take them out there" in told["error"]["message"]


@pytest.mark.parametrize(("who", "known"), [("telegram/1/7", True), ("telegram/1/8", False)])
async def test_who_is_to_be_forgotten_is_forgotten_also_if_nobody_knows_them(who: str, *, known: bool) -> None:
    house = House()
    status, told = await house.do(verb="forget", who=who)
    assert (status, house.done) == (200, [("forget", who, BY)])
    assert told["person"] == {"account": "telegram/1", "person": who[-1], "forget": "f_1", "known": known}


@pytest.mark.parametrize(
    "body",
    [
        {"verb": "forget", "who": "7"},
        {"verb": "praise", "who": "7"},
        {"who": "7"},
        {"verb": "revoke"},
        {"verb": "revoke", "who": 7},
    ],
)
async def test_what_makes_no_sense_is_refused_and_does_nothing(body: dict[str, Any]) -> None:
    house = House()
    assert (await house.do(**body))[0] == 400
    assert house.done == []
