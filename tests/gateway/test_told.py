"""Who is told of a turn at the doors of the API and the page: the law, and several keys and browsers before one gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import FromApi, FromChat, SessionKey, once
from adapters.contract.callers import ANYBODY, Caller
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from adapters.http.theirs import asked_by, held_by
from tests.gateway.test_keys import CONFIGURED_KEY, WITH_KEY, add, sdk
from tests.serving import served

callers = st.sampled_from(
    [ANYBODY, Caller("a"), Caller("b"), Caller("a", "ada"), Caller("b", "ada"), Caller("b", "ben")]
)
browsers = st.sampled_from(["", "browser:1", "browser:2"])


def asked_as(caller: Caller, browser: str, *, alone: bool) -> FromApi:
    """What the doors make of a request: in a conversation of the caller's, or with all of it."""
    person = caller.realm or browser
    scope = f"api/{caller.person}" if caller.person else "api"
    return FromApi(
        account="api", platform_key="k", session=once("x") if alone else SessionKey("web", "page", "c-1", person=person),
        input=(), surface="api", memory_scope=scope, own_history=() if alone else None, key=caller.key,
    )  # fmt: skip


@given(callers, browsers, callers, browsers, st.booleans())
def test_who_asked_is_told_and_nobody_else(
    asked: Caller, browser: str, telling: Caller, theirs: str, alone: bool
) -> None:
    one = asked_as(asked, browser, alone=alone)
    same_browser = alone or bool(asked.realm) or browser in ("", theirs)
    assert asked_by(one, telling, theirs) == (asked.realm == telling.realm and same_browser)
    if not alone:
        assert held_by(one.session, telling, theirs) == asked_by(one, telling, theirs)


@given(callers, browsers)
def test_what_was_written_in_a_chat_is_told_at_no_door(caller: Caller, browser: str) -> None:
    origin = ChatOrigin(ChatAddress("telegram", "bot", "7"), ChatKind.PRIVATE, ChatPerson("p", "P"))
    one = FromChat(
        account="telegram/bot", platform_key="k", session=SessionKey("telegram", "bot", "7", person=browser), input=(),
        surface="telegram", memory_scope="telegram/bot/p", chat=origin,
    )  # fmt: skip
    assert not asked_by(one, caller, browser)
    assert not held_by(one.session, caller, browser)


async def test_a_turns_story_is_told_to_whoever_asked_with_the_same_key_or_in_the_same_browser(tmp_path: Path) -> None:
    async with served(tmp_path, WITH_KEY) as up:
        ada, ben = await add(up.url, "laptop", owner="ada"), await add(up.url, "phone", owner="ben")
        async with sdk(up.url, ada) as made:
            client: Any = made
            got: Any = await client.chat.completions.create(
                model="outspoken", messages=[{"role": "user", "content": "hello"}]
            )
        turn = got.model_extra["outspoken"]["turn"]
        assert await _told(up.url, ada, turn)
        for other in (ben, CONFIGURED_KEY):
            assert await _told(up.url, other, turn) == []
        await _says(up.url, CONFIGURED_KEY, "browser-number-one")
        of_page = await _turn_of_page(up.url, CONFIGURED_KEY, "browser-number-one")
        assert await _told(up.url, CONFIGURED_KEY, of_page, "browser-number-one")
        for key, browser in ((CONFIGURED_KEY, "browser-number-two"), (CONFIGURED_KEY, ""), (ada, "browser-number-one")):
            assert await _told(up.url, key, of_page, browser) == []


def _shown(key: str, browser: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} | ({"X-Outspoken-Browser": browser} if browser else {})


async def _told(url: str, key: str, turn: str, browser: str = "") -> list[str]:
    async with (
        aiohttp.ClientSession(headers=_shown(key, browser)) as http,
        http.get(f"{url}/api/turns/{turn}/why") as response,
    ):
        assert response.status == 200
        return (await response.json())["lines"]


async def _says(url: str, key: str, browser: str) -> None:
    async with aiohttp.ClientSession(headers=_shown(key, browser)) as http:
        said = {"id": "message-one", "text": "hello"}
        async with http.post(f"{url}/api/sessions/c-conversation/messages", json=said) as response:
            assert response.status == 202


async def _turn_of_page(url: str, key: str, browser: str) -> str:
    """Of the page's only message, as soon as it has one."""
    async with (
        asyncio.timeout(30),
        aiohttp.ClientSession(headers=_shown(key, browser)) as http,
        http.get(f"{url}/api/sessions/c-conversation/events") as response,
    ):
        async for line in response.content:
            found: list[dict[str, Any]] = orjson.loads(line[6:]) if line.startswith(b"data: ") else []
            for one in found:
                if one.get("turn"):
                    return str(one["turn"])
    raise AssertionError("the page was never told of a turn")
