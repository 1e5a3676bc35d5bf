"""Links to conversations: they open what they were made for and nothing else, and show what they promise and nothing else. Without a gateway."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import TEMPORARY, SessionKey
from adapters.contract.callers import Caller, ShareLinks
from adapters.contract.sessions import METADATA_CHARS, SHARED, TITLE, SessionSight, SessionTurn
from adapters.http.routes import HttpRoute
from adapters.http.sessions.links import (
    SHOWN,
    TURNS_AT_ONCE,
    ConversationLinks,
    SharedLink,
    digest_of,
    parts_of,
    shared_message,
)
from agent_core.failures.exits import ExitCode
from agent_core.messages import InputMessage
from agent_core.turn.view import Bubble, BubbleKind
from tests.adapters.scripted import StillClock, asked, ended
from tests.adapters.scripted import example as exit_of

numbers = st.integers(1, 2**50)
secrets = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=32, max_size=43)


@given(secrets, numbers, numbers, st.text(max_size=400))
def test_what_is_kept_of_a_link_is_read_again_and_has_no_secret(secret: str, number: int, at: int, title: str):
    link = SharedLink(digest_of(secret), number, at, title)
    noted = link.noted()
    assert len(noted) <= METADATA_CHARS
    assert SharedLink.of(noted) == SharedLink(link.digest, number, at, title[:200])
    assert secret not in link.digest


@given(secrets, secrets)
def test_a_link_is_opened_by_its_secret_alone(secret: str, other: str):
    link = SharedLink(digest_of(secret), 1, 1, "")
    assert link.opened_by(secret)
    assert link.opened_by(other) == (secret == other)


@given(st.text(max_size=80) | secrets.map(lambda one: f"s_01.{one}"))
def test_what_is_no_link_has_no_parts(text: str):
    parts = parts_of(text)
    assert parts is None or ".".join(parts) == text


@pytest.mark.parametrize("noted", ["", "yes", f"{'0' * 32} 1", f"{'g' * 32} 1 2 title", f"{'0' * 32} -1 2 title"])
def test_what_was_noted_otherwise_is_no_link(noted: str):
    assert SharedLink.of(noted) is None


@pytest.mark.parametrize("kind", BubbleKind)
def test_of_a_turn_is_shown_what_was_promised_and_nothing_else(kind: BubbleKind):
    bubble = Bubble(
        "SECRET-key", kind, "Words that are shown, **bold**", final=True, tool="write_file", state="done", call="SECRET-call", whole="SECRET-whole",
        change="SECRET-change", path="SECRET-path", arguments="SECRET-arguments", result="SECRET-result", options=("SECRET-option",),
    )  # fmt: skip
    if kind is BubbleKind.ACTIVITY:
        bubble.text = "write_file SECRET-line"
    said = (InputMessage("What is said"), InputMessage("SECRET-system", role="system"))
    turn = SessionTurn(
        "SECRET-turn",
        7,
        5,
        6,
        told=True,
        asked=said,
        seen=ended(exit_of(ExitCode.ANSWERED), bubble),
        model="SECRET-model",
    )
    shown = shared_message(turn)
    told = json.dumps(shown)
    assert "SECRET" not in told
    assert (shown["number"], shown["person"]) == (7, "What is said")
    mine = [one for one in shown["bubbles"] if one["key"] == "0"]
    assert len(mine) == (kind in SHOWN)
    assert ("Words that are shown" in told) == (kind in SHOWN and kind is not BubbleKind.ACTIVITY)
    assert ("write_file" in told) == (kind is BubbleKind.ACTIVITY)


ADA = Caller("laptop", "ada")


class Linked:
    """One conversation of Ada's with its turns, and what is kept with it."""

    def __init__(self, opens: ShareLinks = ShareLinks.ANYONE, *, temporary: bool = False, turns: int = 3) -> None:
        key = SessionKey("web", "page", f"{TEMPORARY if temporary else ''}chat-0001", person="ada")
        self.sight = SessionSight("s_1", key, 1, 1, metadata={TITLE: "Stones", "pinned": "yes"})
        self.turns = [SessionTurn(f"t_{n}", n, 5, 6, told=True) for n in range(1, turns + 1)]
        self.secrets = iter(("a" * 40, "b" * 40))
        access = cast("Any", self)
        self.served = ConversationLinks(access, opens, StillClock(), lambda: next(self.secrets)).routes()

    async def find(self, realm: str, name: str) -> SessionSight | None:
        return self.sight if (realm, name) == (ADA.realm, "chat-0001") else None

    async def linked(self, session: str) -> SessionSight | None:
        return self.sight if session == "s_1" else None

    async def tip(self, _: SessionSight) -> int:
        return len(self.turns)

    async def describe(self, _: SessionSight, metadata: Any) -> None:
        self.sight = replace(self.sight, metadata=metadata)

    async def line(self, _: SessionSight, tip: int, behind: int, limit: int) -> list[SessionTurn]:
        return [one for one in self.turns if behind < one.number <= tip][:limit]

    async def do(self, route: HttpRoute, **body: Any) -> Any:
        request = asked(ADA, orjson.dumps(body), session="chat-0001")
        answer = cast("web.Response", await self.served[route](request))
        assert isinstance(answer.body, bytes)
        return answer.status, orjson.loads(answer.body)

    async def opens(self, link: str) -> list[int] | None:
        status, told = await self.do(HttpRoute.READ_SHARED, link=link)
        assert (status == 200) == ("error" not in told)
        return [one["number"] for one in told["messages"]] if status == 200 else None


async def test_a_link_opens_what_was_there_when_it_was_made_until_it_is_withdrawn_or_made_anew() -> None:
    linked = Linked()
    _, first = await linked.do(HttpRoute.PAGE_SHARE)
    linked.turns.append(SessionTurn("t_4", 4, 5, 6, told=True))
    assert await linked.opens(first["link"]) == [1, 2, 3]
    _, second = await linked.do(HttpRoute.PAGE_SHARE)
    assert (await linked.opens(first["link"]), await linked.opens(second["link"])) == (None, [1, 2, 3, 4])
    assert await linked.do(HttpRoute.PAGE_WITHDRAW) == (200, {"done": True})
    assert (await linked.opens(second["link"]), dict(linked.sight.metadata)) == (
        None,
        {TITLE: "Stones", "pinned": "yes"},
    )
    assert await linked.do(HttpRoute.PAGE_WITHDRAW) == (200, {"done": False})


@pytest.mark.parametrize(
    ("linked", "status"),
    [
        (Linked(ShareLinks.OFF), 403),
        (Linked(temporary=True), 404),
        (Linked(turns=0), 409),
    ],
)
async def test_nothing_is_shared_where_links_are_off_of_what_is_temporary_or_empty(linked: Linked, status: int) -> None:
    assert (await linked.do(HttpRoute.PAGE_SHARE))[0] == status
    assert SHARED not in linked.sight.metadata


async def test_where_links_are_switched_off_those_that_were_made_open_nothing() -> None:
    before, after = Linked(), Linked(ShareLinks.OFF)
    _, made = await before.do(HttpRoute.PAGE_SHARE)
    after.sight = before.sight
    assert (await before.opens(made["link"]), await after.opens(made["link"])) == ([1, 2, 3], None)


@pytest.mark.parametrize("turns", [1, TURNS_AT_ONCE - 1, TURNS_AT_ONCE, TURNS_AT_ONCE + 1])
async def test_a_piece_of_a_conversation_says_whether_more_follows_and_is_kept_by_nobody(turns: int) -> None:
    linked = Linked(turns=turns)
    _, made = await linked.do(HttpRoute.PAGE_SHARE)
    request = asked(ADA, orjson.dumps({"link": made["link"]}), session="chat-0001")
    answer = cast("web.Response", await linked.served[HttpRoute.READ_SHARED](request))
    assert isinstance(answer.body, bytes)
    shown = orjson.loads(answer.body)
    assert (len(shown["messages"]), shown["more"]) == (min(turns, TURNS_AT_ONCE), turns > TURNS_AT_ONCE)
    assert answer.headers["Cache-Control"] == "no-store"
