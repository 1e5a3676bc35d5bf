"""The branches of a conversation: their laws, and the same through the real gateway, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import Inbound
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from agent_core.store.inbox.access import Inbox
from agent_core.store.inbox.rows import Accepted, NewMessage
from agent_core.store.sessions.rows import BranchChange
from agent_core.store.turns.rows import ON_ANOTHER_BRANCH, TAKEN_BACK, OpeningTurn, TurnPlace
from gateway.daemon import Serving
from gateway.queues.branches import before, branches_of, line, to_show
from gateway.sessions import recents
from gateway.sessions.accepting import Accepting
from tests.gateway.test_page_commands import BROWSER, Tab, settled
from tests.gateway.test_standing import chunk
from tests.gateway.test_standing import told as asked_model
from tests.serving import served


class Conversation:
    """Does to rows what the store does to them."""

    def __init__(self) -> None:
        self.places: list[TurnPlace] = []
        self.tip = -1

    @property
    def at(self) -> int:
        return len(self.places) if self.tip < 0 else self.tip

    def say(self) -> None:
        number, follows = len(self.places) + 1, -1 if self.tip in (-1, len(self.places)) else self.tip
        self.places.append(TurnPlace(f"t{number}", number, follows, 0, ""))
        self.tip = -1

    def undo(self) -> None:
        for place, one in enumerate(self.places):
            if one.number == self.at and not one.undone:
                self.places[place], self.tip = replace(one, undone=TAKEN_BACK), one.parent
                return

    def take(self, change: BranchChange | None) -> None:
        if change is None:
            return
        self.tip = change.tip
        self.places = [
            replace(one, undone=0 if one.turn in change.told else ON_ANOTHER_BRANCH if one.turn in change.untold else one.undone)
            for one in self.places
        ]  # fmt: skip

    def lose(self, number: int) -> None:
        self.places[number] = replace(
            self.places[number], removed="old", undone=self.places[number].undone or TAKEN_BACK
        )

    def told(self) -> list[str]:
        return [one.turn for one in self.places if not one.undone]


ACTS = st.lists(st.tuples(st.sampled_from(["say", "say", "undo", "redo", "show"]), st.integers(0, 30)), max_size=30)


def played(acts: list[tuple[str, int]]) -> Conversation:
    made = Conversation()
    for act, number in acts:
        turn = f"t{number % max(1, len(made.places)) + 1}"
        match act:
            case "say":
                made.say()
            case "undo":
                made.undo()
            case "redo" if turn in made.told():
                made.take(before(made.places, turn))
                made.say()
            case _:
                made.take(to_show(made.places, turn))
    return made


@given(ACTS)
def test_what_is_told_is_one_line_to_its_tip(acts: list[tuple[str, int]]):
    made = played(acts)
    assert made.told() == [one.turn for one in line(made.places, made.at)]


@given(ACTS, st.integers(0, 30))
def test_any_version_can_be_shown_and_what_was_shown_again(acts: list[tuple[str, int]], number: int):
    made = played(acts)
    if not made.places:
        return
    turn, before_it, taken_back = (
        f"t{number % len(made.places) + 1}",
        made.told(),
        {one.turn for one in made.places if one.undone == TAKEN_BACK},
    )
    made.take(to_show(made.places, turn))
    assert turn in made.told()
    assert to_show(made.places, turn) is None, "it is shown already"
    asked_for = {one.turn for one in line(made.places, int(turn[1:]))}
    assert not taken_back & set(made.told()) - asked_for
    if before_it:
        made.take(to_show(made.places, before_it[-1]))
        assert made.told()[: len(before_it)] == before_it


@given(ACTS)
def test_everything_is_shown_taken_back_or_another_version(acts: list[tuple[str, int]]):
    made = played(acts)
    seen = branches_of(made.places)
    told = set(made.told())
    assert told.isdisjoint(seen.hidden | seen.undone)
    assert told | seen.hidden | seen.undone == {one.turn for one in made.places}
    by_number = {one.number: one for one in made.places}
    for one in made.places:
        assert one.turn in seen.versions.get(one.turn, (one.turn,))
        if one.turn in seen.hidden:  # from something that is shown one gets to it by its arrows
            up = one
            while up.turn in seen.hidden and not (set(seen.versions.get(up.turn, ())) - seen.hidden):
                up = by_number[up.parent]
            assert set(seen.versions.get(up.turn, ())) & (told | seen.undone)


@given(ACTS, st.integers(0, 30))
def test_what_is_not_kept_is_neither_shown_nor_offered(acts: list[tuple[str, int]], number: int):
    made = played(acts)
    if made.places:
        lost = number % len(made.places)
        made.lose(lost)
        turn = made.places[lost].turn
        assert to_show(made.places, turn) is None
        assert all(turn not in each for each in branches_of(made.places).versions.values())


async def post(
    url: str, path: str, body: dict[str, Any], headers: dict[str, str] = BROWSER
) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{url}/api/conversations/{path}", json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


class Model:
    """What it was asked, and a page that has it answer."""

    def __init__(self, up: Serving, asked: list[dict[str, Any]], http: aiohttp.ClientSession) -> None:
        self.up, self.asked, self.http = up, asked, http
        self.tab = self.open()

    def open(self, name: str = "c-conversation") -> Tab:
        return Tab(self.http, self.up.url, name)

    async def says(self, *texts: str) -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        for text in texts:
            there = len(seen) or len([one for one in (await self.tab.sees("[")).values() if not one["hidden"]])
            await self.tab.says(text)
            seen = await settled(self.tab, there + 1)
        return seen

    async def shown(self) -> list[dict[str, Any]]:
        """What somebody sees who opens the conversation now."""
        seen = sorted((await self.tab.sees("answer 1")).values(), key=lambda one: one["order"])
        return [one for one in seen if not one["hidden"] and not one["undone"]]

    def told(self) -> list[str]:
        """What it was told last of what people said."""
        return [one["content"] for one in self.asked[-1]["messages"] if one["role"] == "user"]


@pytest.fixture
async def model(tmp_path: Path) -> AsyncGenerator[Model]:
    async def reply(number: int, response: web.StreamResponse) -> None:
        await response.write(chunk({"content": f"answer {number}"}, "stop"))

    async with asked_model(reply) as (url, asked):
        env = {"OUTSPOKEN_MODEL__BASE_URL": url, "OUTSPOKEN_MODEL__NAME": "gpt"}
        async with served(tmp_path, env) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
            yield Model(up, asked, http)


def said(seen: list[dict[str, Any]]) -> list[str]:
    return [one["person"] for one in seen]


async def test_one_goes_back_to_an_earlier_version_and_all_that_came_of_it(model: Model):
    first, second, third = await model.says("first", "second", "third")
    await model.tab.says(f"/redo {second['turn']} the second, in other words")
    seen = await settled(model.tab, 2)
    assert said(seen) == model.told() == ["first", "the second, in other words"]
    assert seen[1]["versions"] == [second["turn"], seen[1]["turn"]]
    assert not seen[0]["versions"]
    assert await post(model.up.url, "c-conversation/shown", {"turn": second["turn"]}) == (200, {"done": True})
    again = await settled(model.tab, 3)
    assert [one["turn"] for one in again] == [first["turn"], second["turn"], third["turn"]]
    seen = await model.says("fourth")
    assert said(seen) == ["first", "second", "third", "fourth"]
    assert model.told() == ["first", "second", "third", "fourth"]
    await post(model.up.url, "c-conversation/shown", {"turn": again[1]["versions"][1]})
    await model.says("and on")
    assert model.told() == ["first", "the second, in other words", "and on"]


async def test_whoever_has_the_page_open_is_told_what_is_not_shown_any_more(model: Model):
    (first,) = await model.says("first")
    async with model.http.get(f"{model.up.url}/api/sessions/c-conversation/events", headers=BROWSER) as response:
        seen: dict[str, dict[str, Any]] = {}
        changed = False
        async for line_ in response.content:
            if line_.startswith(b"data: "):
                seen |= {one["key"]: one for one in json.loads(line_[6:])}
            if seen and not changed:  # what was hidden before one looks is not there at all
                changed = True
                await model.tab.says(f"/redo {first['turn']} other words")
            if any(
                one["person"] == "other words" and one["versions"] and one["state"] == "closed" for one in seen.values()
            ):
                break
    assert [one["person"] for one in seen.values() if one["hidden"]] == ["first"]


async def test_all_who_have_the_page_open_see_what_is_shown_now(model: Model):
    first, _ = await model.says("first", "second")
    await model.tab.says(f"/redo {first['turn']} other words")
    await settled(model.tab, 1)

    async def sees() -> bool:
        shown: dict[str, dict[str, Any]] = {}
        async with model.http.get(f"{model.up.url}/api/sessions/c-conversation/events", headers=BROWSER) as response:
            async for told in response.content:
                if told.startswith(b"data: "):
                    ready.append(1)
                    shown |= {one["key"]: one for one in json.loads(told[6:])}
                if sorted(one["person"] for one in shown.values() if not one["hidden"]) == ["first", "second"]:
                    return True
        return False

    ready: list[int] = []
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        tabs = [group.create_task(sees()) for _ in range(4)]
        while len(ready) < len(tabs):
            await asyncio.sleep(0.01)
        assert (await post(model.up.url, "c-conversation/shown", {"turn": first["turn"]}))[0] == 200
    assert all(tab.result() for tab in tabs)


async def test_what_was_said_before_is_told_when_it_is_asked_for(model: Model, monkeypatch: pytest.MonkeyPatch):
    first, second, third = await model.says("first", "second", "third")
    await model.tab.says(f"/redo {second['turn']} other words")
    await settled(model.tab, 2)
    last = (await model.says("third", "fourth", "fifth"))[-1]
    monkeypatch.setattr(recents, "RECENT_TURNS", 2)
    found: list[list[str]] = []
    before_it, path = last["turn"], "/api/sessions/c-conversation/earlier"
    while before_it:
        async with model.http.get(f"{model.up.url}{path}?before={before_it}", headers=BROWSER) as answer:
            told = await answer.json()
        found.append(said(told))
        before_it = told[0]["turn"] if told else ""
    assert found == [["third", "fourth"], ["first", "other words"], []]
    async with model.http.get(f"{model.up.url}{path}?before={third['turn']}&changes=1", headers=BROWSER) as answer:
        (told,) = await answer.json()
    assert (told["turn"], "patch" in told["bubbles"][0]) == (first["turn"], True)
    async with model.http.get(
        f"{model.up.url}{path}?before={third['turn']}", headers={"X-Outspoken-Browser": "somebody-else"}
    ) as answer:
        assert await answer.json() == []


async def test_what_is_shown_survives_a_restart(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("first")
        (first,) = await settled(tab, 1)
        await tab.says(f"/redo {first['turn']} other words")
        await tab.sees('"versions": ["t_')
        await settled(tab, 1)
        assert (await post(up.url, "c-conversation/shown", {"turn": first["turn"]}))[0] == 200
        before_it = await settled(tab, 1)
    async with served(tmp_path) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        assert await settled(Tab(http, up.url), 1) == before_it
        assert said(before_it) == ["first"]


async def test_what_was_taken_back_is_there_again_when_it_is_asked_for(model: Model):
    _, second = await model.says("first", "second")
    await model.tab.says("/undo")
    await model.tab.sees("Forgotten")
    await model.tab.says("another second", key="message-other")
    seen = [one for one in await settled(model.tab, 3) if one["turn"]]
    assert said(seen) == model.told() == ["first", "another second"]
    assert seen[1]["versions"][0] == second["turn"]
    await post(model.up.url, "c-conversation/shown", {"turn": second["turn"]})
    assert said([one for one in await settled(model.tab, 3) if one["turn"]]) == ["first", "second"]


async def test_nothing_else_is_shown_while_an_answer_is_on_its_way(tmp_path: Path):
    async with served(tmp_path) as up, aiohttp.ClientSession(read_bufsize=2**20) as http:
        tab = Tab(http, up.url)
        await tab.says("hello")
        (first,) = await settled(tab, 1)
        await tab.says("rehearse stall in tool call")
        await tab.sees('"open"')
        status, told = await post(up.url, "c-conversation/shown", {"turn": first["turn"]})
        assert (status, told["error"]["code"]) == (409, "conversation_busy")
        assert "on its way" in told["error"]["message"]


async def test_the_turn_of_another_conversation_is_neither_shown_nor_branched_from(model: Model):
    (first,) = await model.says("first")
    model.tab = model.open("c-another-one")
    await model.says("hello")
    for act in ("shown", "branches"):
        body = {"turn": first["turn"], "name": "c-a-third-one"}
        assert (await post(model.up.url, f"c-another-one/{act}", body))[0] == 404
        assert (await post(model.up.url, f"c-conversation/{act}", body, {"X-Outspoken-Browser": "somebody-else"}))[
            0
        ] == 404


async def test_a_branch_is_a_conversation_of_its_own(model: Model):
    _, second, _ = await model.says("first", "second", "third")
    for _ in range(2):  # sent again, it is the same
        done = await post(
            model.up.url, "c-conversation/branches", {"turn": second["turn"], "name": "c-the-branch", "title": "Branch"}
        )
        assert done == (200, {"done": True})
    model.tab = model.open("c-the-branch")
    copied = await settled(model.tab, 2)
    assert [(one["person"], one["bubbles"][-1]["text"]) for one in copied] == [
        ("first", "answer 1"),
        ("second", "answer 2"),
    ]
    await model.says("fourth")
    assert model.told() == ["first", "second", "fourth"]
    async with model.http.get(f"{model.up.url}/api/conversations", headers=BROWSER) as answer:
        listed = {one["id"]: one for one in (await answer.json())["conversations"]}
    assert (listed["c-the-branch"]["title"], listed["c-the-branch"]["turns"]) == ("Branch", 3)
    async with model.http.delete(f"{model.up.url}/api/conversations/c-conversation", headers=BROWSER) as answer:
        assert answer.status == 200
    await model.tab.says(f"/redo {copied[1]['turn']}")  # its message is not kept, its words are
    seen = await settled(model.tab, 2)
    assert said(seen) == model.told() == ["first", "second"]
    assert seen[1]["versions"] == [copied[1]["turn"], seen[1]["turn"]]


async def test_a_copied_message_is_answered_once_more_as_any_other(model: Model):
    _, second = await model.says("first", "second")
    await post(
        model.up.url, "c-conversation/branches", {"turn": second["turn"], "name": "c-the-branch", "title": "Branch"}
    )
    model.tab = model.open("c-the-branch")
    await settled(model.tab, 2)
    await model.tab.says("/retry")
    await model.tab.sees("answer 3")
    assert model.told() == ["first", "second"]


async def test_nobody_sees_a_retry_half_done(model: Model, monkeypatch: pytest.MonkeyPatch):
    await model.says("first", "second")
    commits: list[str] = []
    kept = Inbox.accept

    async def accept(
        self: Inbox, message: NewMessage, opening: OpeningTurn | None = None, *, claims: bool = True
    ) -> Accepted:
        if message.platform_key.startswith("retry:"):
            commits.append("before " + ",".join(said(await model.shown())))
        return await kept(self, message, opening, claims=claims)

    monkeypatch.setattr(Inbox, "accept", accept)
    await model.tab.says("/retry")
    await model.tab.sees("answer 3")
    assert commits == ["before first,second"]
    assert model.told() == ["first", "second"]


async def test_a_retry_that_is_not_taken_takes_nothing_back(model: Model, monkeypatch: pytest.MonkeyPatch):
    await model.says("first", "second")

    async def full(self: Accepting, inbound: Inbound) -> None:
        raise NotAccepted("There is no room.", NotAcceptedCode.QUEUE_FULL)

    monkeypatch.setattr(Accepting, "_check_room", full)
    await model.tab.says("/retry")
    await model.tab.sees("There is no room.")
    assert said(await model.shown())[:2] == ["first", "second"]


@pytest.mark.parametrize("name", ["mine", "other-name", 5, "c-" + "x" * 80])
async def test_a_branch_has_a_name_of_the_pages_kind(model: Model, name: object):
    (first,) = await model.says("first")
    assert (await post(model.up.url, "c-conversation/branches", {"turn": first["turn"], "name": name}))[0] == 400
