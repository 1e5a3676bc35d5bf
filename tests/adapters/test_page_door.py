"""What the page asks reaches the gateway as it was meant, and what it is told is what its key may see. Beside a gateway that is made up."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application

from adapters.contract.base import FromApi, MessageState, Ticket, TurnSight
from adapters.contract.callers import ANYBODY, Caller, KeyTerms
from adapters.http.web import BROWSER, PAGE, WebChat, WebSettings
from agent_core.ports import SystemClock, SystemIds
from agent_core.rules.consents import Lasting
from agent_core.turn.events import Verdict
from agent_core.turn.state import ThoughtText
from agent_core.turn.view import View
from tests.agent_core.turns import gives

HERE = {BROWSER: "browser-number-one"}
MESSAGE = {"id": "message-0001", "text": "hello"}
PATH = "/api/sessions/c-conversation"


class House:
    """A gateway behind the page, and what is asked of it."""

    def __init__(self, caller: Caller = ANYBODY, *, thinking: bool = True) -> None:
        self.caller, self.thinking = caller, thinking
        self.asked: list[tuple[object, ...]] = []
        self.refuses = ""
        self.sights: list[tuple[TurnSight, ...] | None] = []
        self.over = False

    keyless, left = False, staticmethod(gives(()))

    def who(self, *_: object) -> Caller:
        return self.caller

    def holds(self, _: Caller) -> bool:
        return True

    async def accept(self, inbound: FromApi) -> Ticket:
        self.asked.append(("accept", inbound))
        return Ticket(1, "s", duplicate=len(self.asked) > 1)

    async def approve(self, key: Any, *what: object) -> str:
        self.asked.append(("approve", key.chat, *what))
        return self.refuses

    async def answer(self, key: Any, *what: object) -> str | None:
        self.asked.append(("answer", key.chat, *what))
        return self.refuses or None

    async def take(self, inbound: FromApi, command: str, words: str) -> bool:
        self.asked.append(("command", inbound.platform_key, command, words))
        return False

    def named(self, said: str) -> tuple[str, str]:
        name, _, words = said.partition(" ")
        return (name[1:], words) if name.startswith("/") else ("", "")

    @asynccontextmanager
    async def follow_session(self, _: object) -> AsyncGenerator[House]:
        yield self

    async def next(self, _: float) -> tuple[TurnSight, ...] | None:
        if not self.sights:
            self.over = True
            return None
        return self.sights.pop(0)

    @asynccontextmanager
    async def page(self) -> AsyncGenerator[TestClient[Any, Any]]:
        clock, it = SystemClock(), cast("Any", self)
        settings = WebSettings(it, 15, thinking=self.thinking)
        made = WebChat(it, settings, clock, SystemIds(clock), {}, lambda: it)
        app = Application()
        app.add_routes(made.routes())
        async with TestClient(TestServer(app), headers=HERE) as client:
            yield client


@pytest.mark.parametrize(
    ("said", "lasts"),
    [(None, Lasting.ONCE), ("once", Lasting.ONCE), ("conversation", Lasting.CONVERSATION), ("always", Lasting.ALWAYS)],
)
@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize("refused", ["", "That was decided already."])
async def test_what_is_pressed_is_what_is_decided_and_whether_it_counts_is_told(
    said: str | None, lasts: Lasting, refused: str, *, approve: bool
) -> None:
    house = House()
    house.refuses = refused
    async with house.page() as http:
        body: dict[str, Any] = {"turn": "t_1", "call": "c_1", "approve": approve} | (
            {} if said is None else {"lasts": said}
        )
        async with http.post(f"{PATH}/approvals", json=body) as response:
            assert response.status == 200, await response.text()
            assert await response.json() == {"done": not refused, "words": refused}
    verdict = Verdict.GIVEN if approve else Verdict.DENIED
    assert house.asked == [("approve", "c-conversation", "t_1", "c_1", verdict, "web", lasts)]


@pytest.mark.parametrize(
    "body",
    [
        {"turn": "t", "call": "c"},
        {"turn": "t", "call": "c", "approve": "yes"},
        {"approve": True},
        {"turn": "t", "call": "c", "approve": True, "lasts": "long"},
    ],
)
async def test_what_decides_nothing_is_refused(body: dict[str, object]) -> None:
    house = House()
    async with house.page() as http, http.post(f"{PATH}/approvals", json=body) as response:
        assert (response.status, house.asked) == (400, [])


async def test_an_answer_to_a_tool_is_an_answer() -> None:
    house = House()
    async with house.page() as http:
        body = {"turn": "t_1", "call": "c_1", "answer": "blue"}
        async with http.post(f"{PATH}/approvals", json=body) as response:
            assert (await response.json())["done"] is False
    assert house.asked == [("answer", "c-conversation", "t_1", "c_1", "blue", "web")]


@pytest.mark.parametrize(("model", "status"), [("", 202), ("small", 202), ("large", 404), (7, 404)])
async def test_a_key_asks_for_the_models_that_it_may_ask_for(model: object, status: int) -> None:
    house = House(Caller("laptop", "ada", KeyTerms(models=("small",))))
    async with house.page() as http, http.post(f"{PATH}/messages", json={**MESSAGE, "model": model}) as response:
        assert response.status == status
    assert len(house.asked) == (status == 202)


@pytest.mark.parametrize("file", [True, False])
async def test_a_command_is_one_and_words_beside_a_file_are_words(*, file: bool) -> None:
    house = House()
    files = [{"name": "a.txt", "data": "data:text/plain;base64,eA=="}] if file else []
    async with (
        house.page() as http,
        http.post(f"{PATH}/messages", json={**MESSAGE, "text": "/memory all of it", "files": files}) as response,
    ):
        assert (response.status, (await response.json())["command"]) == (202, "" if file else "memory")
    assert [one[0] for one in house.asked] == ["accept" if file else "command"]
    if not file:
        assert house.asked[0][2:] == ("memory", "all of it")


@pytest.mark.parametrize(
    "body",
    [{"id": "short"}, {"id": 7}, {"text": 7}, {"text": " "}, {"text": "x" * 200_001}, {"browser": "?"}, {"files": "x"}],
)
async def test_what_is_no_message_is_not_taken(body: dict[str, object]) -> None:
    house = House()
    async with house.page() as http, http.post(f"{PATH}/messages", json={**MESSAGE, **body}) as response:
        assert response.status in (400, 413)
    assert house.asked == []


@pytest.mark.parametrize(
    ("configured", "told", "shown"),
    [(True, None, True), (False, None, False), (True, False, False), (False, True, True)],
)
@pytest.mark.parametrize("changes", ["1", "0"])
async def test_a_page_is_whole_at_first_and_then_told_what_is_new_and_thoughts_as_its_key_may_see_them(
    changes: str, told: bool | None, *, configured: bool, shown: bool
) -> None:
    house = House(Caller("laptop", "ada", KeyTerms(thinking=told)), thinking=configured)
    thought = ThoughtText()
    thought.add("I think")
    sight = TurnSight(
        "m1", 1, MessageState.OPEN, "hello", view=View((), open=True), thought=thought, thought_chars=thought.chars
    )
    house.sights = [(sight,), None, (sight,)]
    async with house.page() as http, http.get(f"{PATH}/events?changes={changes}") as response:
        said = (await response.read()).decode()
    assert [line for line in said.splitlines() if line.startswith("event:")] == ["event: snapshot", "event: turns"]
    assert ("I think" in said) is (shown and changes == "1")


async def test_an_id_that_a_browser_gave_a_message_is_of_its_conversation_and_its_person_alone() -> None:
    keys: set[str] = set()
    for person in ("", "ada", "bob"):
        for chat in ("c-conversation", "c-conversatioo"):
            house = House(Caller("laptop", person) if person else ANYBODY)
            async with house.page() as http, http.post(f"/api/sessions/{chat}/messages", json=MESSAGE) as response:
                assert response.status == 202, await response.text()
            (what, said) = house.asked[0]
            assert what == "accept"
            assert isinstance(said, FromApi)
            keys.add(said.platform_key)
    assert len(keys) == 6


@pytest.mark.parametrize("language", ["", "de"])
@pytest.mark.parametrize("name", sorted(PAGE._names))
def test_a_file_that_is_given_in_a_language_says_so_to_whoever_keeps_it_for_others(name: str, language: str) -> None:
    given: Any = PAGE.response(name, language)
    english: Any = PAGE.response(name)
    spoken = name in ("index.html", "shared.html", "words.js")
    assert given.headers.get("Vary") == ("Accept-Language" if spoken else None)
    assert given.headers.get("Content-Language") == ((language or "en") if spoken else None)
    assert (given.body != english.body) is (spoken and bool(language))
